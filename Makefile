# The commands of a day. What you use goes into .venv, what tests and checks use into build/test;
# nothing is installed elsewhere, and nothing is changed that a running vfx loads from.
#   make install      set up .venv with the command vfx
#   make demo         drop a vase, and say where its pictures are
#   make test         run all tests
#   make storm        run the large storms of tests/storm: about an hour
#   make lint         check style, types and the import rule
#   make gallery      make the pictures of docs/gallery
#   make tutorial     make the pictures of docs/tutorial.md (needs Chromium)
#   make reference    write docs/reference.md, every key of a shot file
#   make cuda-report  compile every kernel for NVIDIA GPUs (needs nvcc, no GPU)

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
BUILD := build
WHEEL := $(BUILD)/wheel
TOOLS := $(BUILD)/tools
TEST := $(BUILD)/test
PACKAGES := device geometry sim raytrace pipeline bench envmaps shots
SOURCES := pyproject.toml CMakeLists.txt README.md \
  $(shell find $(wildcard $(PACKAGES)) ! -name '*.pyc' ! -name __pycache__)
PIP := -m pip --disable-pip-version-check
QUIET := --quiet --no-warn-script-location
COMMA := ,

# The first interpreter of a supported version; PYTHON=... overrides.
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python; do \
  if $$name -c '$(SUPPORTED)' 2>/dev/null; then echo $$name; break; fi; done)

.PHONY: help install demo gallery tutorial reference test storm lint cuda-report clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' $(MAKEFILE_LIST)

install: $(VENV)/installed

demo: $(VENV)/installed
	$(BIN)/vfx run shots/vase_drop_small.toml --device cpu
	@echo
	@echo "Frames (OpenEXR): work/vase_drop_small/render/"
	@for file in $$(find work/vase_drop_small/review -name 'vase_drop_small.*'); do \
	  echo "To look at:       $$file"; done

# The three shots of the paper; README shows the first. Some minutes each.
gallery: $(VENV)/installed
	$(BIN)/vfx run shots/glass.toml --frames 1013 --device cpu
	$(BIN)/vfx preview shots/glass.toml --frame 1013 --width 1280 --samples 64 \
	  -o docs/gallery/glass.jpg --device cpu
	$(BIN)/vfx run shots/vase_small.toml --frames 1012 --device cpu
	$(BIN)/vfx preview shots/vase_small.toml --frame 1012 --width 1280 --samples 64 \
	  --lighting path -o docs/gallery/vase.jpg --device cpu
	$(BIN)/vfx run shots/sculpture_small.toml --frames 1020 --device cpu
	$(BIN)/vfx preview shots/sculpture_small.toml --frame 1020 --width 1280 --samples 32 \
	  -o docs/gallery/serpent.jpg --device cpu

# By the commands that stand there; some minutes.
tutorial: $(TEST)/installed
	mkdir -p work
	[ -e work/vase_fall.toml ] || $(TEST)/bin/vfx new work/vase_fall --from vase_small
	$(TEST)/bin/vfx run work/vase_fall.toml --device cpu
	$(TEST)/bin/vfx review work/vase_fall.toml
	$(TEST)/bin/python docs/tutorial_pictures.py work/vase_fall vase_fall 1013

reference: $(TEST)/installed
	$(TEST)/bin/vfx reference > docs/reference.md

# A process a core; each has files of tests to itself, and what they set up.
test: $(TEST)/installed
	$(TEST)/bin/pytest --numprocesses auto --maxprocesses 4 --dist loadfile

storm: $(TEST)/installed
	$(TEST)/bin/python -m tests.storm all

lint: $(TEST)/installed
	$(TEST)/bin/ruff check .
	$(TEST)/bin/lint-imports
	$(TEST)/bin/mypy

cuda-report: $(TEST)/installed $(TEST)/nvrtc
	$(TEST)/bin/python -m vfx.device.report

clean:
	@$(call refuse-in-use,$(VENV))
	@$(call refuse-in-use,$(TEST))
	rm -rf $(VENV) $(BUILD) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Refuse to touch an environment that a vfx runs from: it loads modules until its end, and would
# mix old and new ones. Brackets keep the search from finding itself.
define refuse-in-use
for process in $$(grep -ls -e "$(abspath $(1))/[b]in/vfx" -e "$$(readlink -f $(1))/[l]ib/.*/vfx/" \
    /proc/[0-9]*/cmdline /proc/[0-9]*/maps 2>/dev/null | cut -d/ -f3 | sort -un); do \
  echo "make: $(1) is in use by process $$process," \
    "$$(tr '\0' ' ' < /proc/$$process/cmdline);" \
    "wait until it has ended, or stop it: vfx goes on from there when run again" >&2; exit 1; \
done
endef

# A Python without ensurepip (Debian's without python3-venv) lends its own pip.
%/created:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "make: Python 3.11, 3.12 or 3.13 is needed and not on PATH;" \
	    "install one, or say where it is: make PYTHON=/path/to/python3.11" >&2; exit 1; fi
	@echo "Creating $* with $$($(PYTHON) --version)"
	@$(PYTHON) -c '$(SUPPORTED)' || { echo "make: $(PYTHON) is not Python 3.11 to 3.13" >&2; exit 1; }
	@rm -rf $*
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then $(PYTHON) -m venv $*; \
	  elif $(PYTHON) -m pip --version >/dev/null 2>&1; then \
	    $(PYTHON) -m venv --without-pip $* && \
	    $(PYTHON) -m pip --python $*/bin/python install $(QUIET) pip; \
	  else echo "make: $(PYTHON) has neither ensurepip nor pip;" \
	    "install them (Debian: apt install python3-venv)" >&2; exit 1; fi
	@touch $@

# The build tools stay, so that a build after a small change compiles only that.
$(TOOLS)/installed: $(TOOLS)/created
	@$(TOOLS)/bin/python $(PIP) install $(QUIET) 'scikit-build-core>=0.10,<2' 'cmake>=3.20' ninja
	@touch $@

# One wheel for both environments: what is tested is what is used.
$(WHEEL)/built: $(TOOLS)/installed $(SOURCES)
	@echo "Building vfx: its kernels are compiled for this machine's processor"
	@rm -rf $(WHEEL)
	@$(TOOLS)/bin/python $(PIP) wheel --quiet --no-deps --no-build-isolation -w $(WHEEL) .
	@touch $@

# First what it needs, then itself: of a wheel of the same version pip would take nothing.
define install
@$(call refuse-in-use,$(1))
@echo "Installing vfx in $(1)"
@$(1)/bin/python $(PIP) install $(QUIET) "$$(ls $(WHEEL)/*.whl)$(2)"
@$(1)/bin/python $(PIP) install $(QUIET) --force-reinstall --no-deps $(WHEEL)/*.whl
@touch $(1)/installed
endef

$(VENV)/installed: $(VENV)/created $(WHEEL)/built
	$(call install,$(VENV),)

$(TEST)/installed: $(TEST)/created $(WHEEL)/built
	$(call install,$(TEST),[test$(COMMA)lint])

# The compiler that CuPy uses, to prove that the kernels pass it.
$(TEST)/nvrtc: $(TEST)/created
	@$(TEST)/bin/python $(PIP) install $(QUIET) 'nvidia-cuda-nvrtc>=13,<14'
	@touch $@
