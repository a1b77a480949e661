"""What make promises: an environment that somebody's shot runs from is left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"

pytestmark = [
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
    pytest.mark.skipif(not MAKEFILE.exists(), reason="the tests are not in the source tree")]


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return subprocess.run(["make", "-f", str(MAKEFILE), *words], cwd=folder, text=True,
                          capture_output=True, timeout=60.0, check=False, env=environment)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose wheel is newer than what is installed, with programs that do nothing."""
    (tmp_path / "device").mkdir()
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md"):
        (tmp_path / name).touch()
    for folder in (".venv", "build/test", "build/tools"):
        program(tmp_path / folder / "bin/python", f'echo "$@" >> {tmp_path}/pip.log')
        for name in ("created", "installed"):
            (tmp_path / folder / name).touch()
    for name in ("pytest", "ruff", "lint-imports", "mypy"):
        program(tmp_path / "build/test/bin" / name, "true")
    time.sleep(0.02)
    (tmp_path / "build/wheel").mkdir()
    for name in ("vfx_fracture-0.1.0-py3-none-any.whl", "built"):
        (tmp_path / "build/wheel" / name).touch()
    return tmp_path


@pytest.fixture
def running(tree: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A shot that runs from .venv."""
    program(tree / ".venv/bin/vfx", "read line")
    process = subprocess.Popen([tree / ".venv/bin/vfx", "run", "shot.toml"],
                               stdin=subprocess.PIPE)
    deadline = time.monotonic() + 10.0
    while b"vfx" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("goal", ["test", "lint", "cuda-report", "tutorial", "reference"])
def test_tests_and_checks_have_an_environment_of_their_own(tree: Path, goal: str) -> None:
    shutil.rmtree(tree / ".venv")
    result = make(tree, "-n", goal)
    assert result.returncode == 0, result.stderr
    assert "build/test/bin" in result.stdout and ".venv" not in result.stdout


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc here")
def test_a_shot_that_runs_keeps_the_files_it_was_started_from(
    tree: Path, running: subprocess.Popen[bytes]
) -> None:
    for goal in ("install", "clean"):
        result = make(tree, goal)
        assert result.returncode == 2
        assert f".venv is in use by process {running.pid}," in result.stderr
        assert "vfx run shot.toml" in result.stderr and "wait until it has ended" in result.stderr
    assert not (tree / "pip.log").exists()
    result = make(tree, "test")
    assert result.returncode == 0, result.stderr
    assert (tree / "pip.log").read_text().count("build/wheel/vfx_fracture") == 2
    running.communicate(b"\n")
    result = make(tree, "install")
    assert result.returncode == 0, result.stderr
    assert (tree / "pip.log").read_text().count("build/wheel/vfx_fracture") == 4
    assert "Installing" not in make(tree, "install").stdout, "once is enough"


def test_what_is_up_to_date_is_used_while_a_shot_runs(
    tree: Path, running: subprocess.Popen[bytes]
) -> None:
    (tree / ".venv/installed").touch()
    assert make(tree, "install").returncode == 0
    assert not (tree / "pip.log").exists()
