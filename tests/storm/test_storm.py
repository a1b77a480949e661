"""A small storm of every kind, as each change meets it; ``make storm`` runs the large one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storm import KINDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a storm of every kind, a hundredth of the large one, prints."""
    words = [sys.executable, "-m", "tests.storm", "all", "--share", "0.01", "--seed", "1",
             "--keep", str(tmp_path_factory.mktemp("failed"))]
    return subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False).stdout


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_or_wrong_after_a_storm(output: str, kind: str) -> None:
    summary = re.search(rf"^storm {kind}: [\d,]+ cases, seed 1: (.*?) \(.*$", output, re.MULTILINE)
    assert summary is not None, output
    assert all(count.startswith("0 ") for count in summary[1].split(", ")), output
