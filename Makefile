# The commands of a day. Everything goes into .venv; nothing is installed elsewhere.
#   make install      set up .venv with the command vfx
#   make demo         run the small glass shot and say where its pictures are
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
PACKAGES := device geometry sim raytrace pipeline bench envmaps shots
SOURCES := pyproject.toml CMakeLists.txt README.md \
  $(shell find $(wildcard $(PACKAGES)) ! -name '*.pyc' ! -name __pycache__)
PIP := $(BIN)/python -m pip --disable-pip-version-check
QUIET := --quiet --no-warn-script-location

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
	$(BIN)/vfx run shots/glass_small.toml --device cpu
	@echo
	@echo "Frames (OpenEXR): work/glass_small/render/"
	@for file in $$(find work/glass_small/review -name 'glass_small.*'); do \
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
tutorial: $(VENV)/installed-dev
	mkdir -p work
	[ -e work/vase_fall.toml ] || $(BIN)/vfx new work/vase_fall --from vase_small
	$(BIN)/vfx run work/vase_fall.toml --device cpu
	$(BIN)/vfx review work/vase_fall.toml
	$(BIN)/python docs/tutorial_pictures.py work/vase_fall vase_fall 1013

reference: $(VENV)/installed
	$(BIN)/vfx reference > docs/reference.md

test: $(VENV)/installed-dev
	$(BIN)/pytest

storm: $(VENV)/installed-dev
	$(BIN)/python -m tests.storm all

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

cuda-report: $(VENV)/installed-dev $(VENV)/nvrtc
	$(BIN)/python -m vfx.device.report

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A Python without ensurepip (Debian's without python3-venv) lends its own pip. The build tools
# stay in the environment, so that an install after a small change compiles only that.
$(VENV)/created:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "make: Python 3.11, 3.12 or 3.13 is needed and not on PATH;" \
	    "install one, or say where it is: make PYTHON=/path/to/python3.11" >&2; exit 1; fi
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c '$(SUPPORTED)' || { echo "make: $(PYTHON) is not Python 3.11 to 3.13" >&2; exit 1; }
	@rm -rf $(VENV)
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then $(PYTHON) -m venv $(VENV); \
	  elif $(PYTHON) -m pip --version >/dev/null 2>&1; then \
	    $(PYTHON) -m venv --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(BIN)/python install $(QUIET) pip; \
	  else echo "make: $(PYTHON) has neither ensurepip nor pip;" \
	    "install them (Debian: apt install python3-venv)" >&2; exit 1; fi
	@$(PIP) install $(QUIET) 'scikit-build-core>=0.10,<2' 'cmake>=3.20' ninja
	@touch $@

$(VENV)/installed: $(VENV)/created $(SOURCES)
	@echo "Installing vfx: its kernels are compiled for this machine's processor"
	@$(PIP) install $(QUIET) --no-build-isolation .
	@touch $@

$(VENV)/installed-dev: $(VENV)/created $(SOURCES)
	@echo "Installing vfx with what its tests and checks need"
	@$(PIP) install $(QUIET) --no-build-isolation '.[test,lint]'
	@touch $@ $(VENV)/installed

# The compiler that CuPy uses, to prove that the kernels pass it.
$(VENV)/nvrtc: $(VENV)/created
	@$(PIP) install $(QUIET) 'nvidia-cuda-nvrtc>=13,<14'
	@touch $@
