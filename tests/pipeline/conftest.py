"""Fixtures of the pipeline's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vfx.pipeline.cli.commands import main

sys.path.insert(0, str(Path(__file__).parent))

Run = Callable[..., Result]


@pytest.fixture
def shot_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shot file in an empty current folder, with the chaotic solver in the table."""
    import chaotic_plate

    chaotic_plate.install(monkeypatch.setitem)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plate.toml"
    path.write_text(chaotic_plate.SHOT)
    return path


@pytest.fixture
def vfx() -> Run:
    """The command line as a function: vfx("run", path).exit_code, .output."""
    def run(*words: object) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert "Traceback" not in result.output
        return result

    return run
