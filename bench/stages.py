"""``vfx bench sim --case drop``, ``window``: a shot that breaks, by the stages' own commands.

Each stage is a process of its own, started as a user would, so that its peak memory is its own. A
shot is one that comes with the package, with another number of elements.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vfx.bench.rows import Row, less_is_better
from vfx.pipeline.errors import FrameFailed
from vfx.pipeline.shot.templates import FOLDER

STAGES = ("geometry", "sim", "align")
AIM = "aim"


def more_elements(n_elements: int) -> dict[str, str]:
    """Return the key of a body that says how many elements it has."""
    return {"elements": str(n_elements)}


def finer_pane(n_elements: int) -> dict[str, str]:
    """Return the cubes of a pane of 1.2 m x 0.8 m of which there are about so many.

    In whole layers it is about 6 mm thick.
    """
    layers = max(1, round(6e-3 / (1.2 * 0.8 * 6e-3 / n_elements) ** (1.0 / 3.0)))
    spacing = (1.2 * 0.8 * layers / n_elements) ** 0.5
    cells = [round(1.2 / spacing), round(0.8 / spacing), layers]
    return {"cells": str(cells), "spacing": f"{spacing:.6g}"}


@dataclass(frozen=True)
class ShotCase:
    """A shot that is measured, and what all stages are to stay below, by the number of elements."""

    name: str
    template: str
    elements: int
    size: Callable[[int], Mapping[str, str]]        # keys of its body, by the number of elements
    minutes: Mapping[int, float]
    memory: Mapping[int, float] = field(default_factory=dict)       # [GB]

    def text(self, n_elements: int) -> str:
        """Return the text of the shot with so many elements."""
        text = (FOLDER / f"{self.template}.toml").read_text(encoding="utf-8")
        for key, value in self.size(n_elements).items():
            text, found = re.subn(rf"(?m)^{key}\s*=\s*[^#\n]*", f"{key} = {value} ", text)
            if found != 1:
                raise FrameFailed(f"{self.template}.toml: {found} lines give {key}, not one")
        return text


CASES = {
    "drop": ShotCase("vase drop", "vase_drop", 40_000, more_elements,
                     {40_000: 10.0, 637_027: 60.0}, {637_027: 4.0}),
    "window": ShotCase("window", "window", 720_000, finer_pane, {720_000: 60.0}, {720_000: 4.0}),
}


@dataclass(frozen=True)
class Cost:
    """What a process took: wall and CPU time [s], and its peak memory [bytes]."""

    wall: float
    cpu: float
    memory: int
    said: str


def measure_shot(
    case: ShotCase, n_elements: int | None, frames: str | None, threads: int | None,
    say: Callable[[str], None],
) -> list[Row]:
    """Run the stages of a shot one after the other."""
    count = n_elements or case.elements
    title = f"{case.name}, {count:,} elements"
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / f"{case.template}.toml"
        shot.write_text(case.text(count), encoding="utf-8")
        words = ["--device", "cpu", *(["--threads", str(threads)] if threads else []),
                 *(["--frames", frames] if frames else [])]
        costs = []
        for stage in STAGES:
            say(f"{title}, {stage} ...")
            costs.append(run_vfx(["stage", stage, shot.name, *words], Path(folder)))
            rows += [Row(title, f"{stage}, wall", costs[-1].wall, "s"),
                     Row(title, f"{stage}, CPU", costs[-1].cpu, "s"),
                     Row(title, f"{stage}, peak memory", costs[-1].memory / 1e9, "GB")]
    minutes = sum(cost.wall for cost in costs) / 60.0
    memory = max(cost.memory for cost in costs) / 1e9
    aims: tuple[Mapping[int, float], ...] = ({}, {}) if frames else (case.minutes, case.memory)
    for metric, value, unit, aim in (("all, wall", minutes, "min", aims[0]),
                                     ("all, peak memory", memory, "GB", aims[1])):
        rows.append(less_is_better(title, metric, value, unit, AIM, aim[count]) if count in aim
                    else Row(title, metric, value, unit))
    rows.append(Row(title, "all, CPU", sum(cost.cpu for cost in costs) / 60.0, "min"))
    return rows


def run_vfx(words: Sequence[str], folder: Path) -> Cost:
    """Run the command line in a folder; raises FrameFailed with its last words if it fails."""
    begun = time.perf_counter()
    process = start_vfx(words, folder)
    return wait_for(process, begun, words)


def start_vfx(words: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start the command line in a folder."""
    return subprocess.Popen(
        [sys.executable, "-c", "from vfx.pipeline.cli.start import main; main()", *words],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(process: subprocess.Popen[str], begun: float, words: Sequence[str]) -> Cost:
    """Return what a process took that began at a time of the clock."""
    said: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=lambda out: said.append(out.read()), args=(process.stdout,))
    reader.start()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    if process.returncode:
        last = " / ".join("".join(said).strip().splitlines()[-3:])
        raise FrameFailed(f"vfx {' '.join(words)}: ended with code {process.returncode} and said: "
                          f"{last}")
    return Cost(wall, used.ru_utime + used.ru_stime, _bytes(used), "".join(said))


def _bytes(used: resource.struct_rusage) -> int:
    return used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * 1024
