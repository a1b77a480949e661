"""``vfx bench sim --case drop``: the vase falls, breaks and settles, by the stages' own commands.

Each stage is a process of its own, started as a user would, so that its peak memory is its own. The
shot is shots/vase_drop.toml with another number of elements, or, where there is no such file, what
of it concerns these stages.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vfx.bench.rows import Row, less_is_better
from vfx.pipeline.errors import FrameFailed
from vfx.pipeline.shot.templates import FOLDER

SHOT = FOLDER / "vase_drop.toml"
STAGES = ("geometry", "sim", "align")
ELEMENTS, LARGE = 40_000, 637_027
#: Minutes and GB that all stages are to stay below, by the number of elements.
AIM, AIM_MINUTES, AIM_MEMORY = "aim", {ELEMENTS: 10.0, LARGE: 60.0}, {LARGE: 4.0}
#: Four seconds of a vase that falls by 1.2 m.
DROP = """
[shot]
frames = "1001-1096"
[time]
fps = 24.0
time_scale = 1.0
[[bodies]]
name = "vase"
material = "earthenware"
mesh = "asset:vase"
height = 0.3
shape = "tet-shell"
elements = 40000
layers = 6
place = "on-floor"
drop = 1.2
rotation = [14.0, 30.0, 20.0]
angular_velocity = [0.6, 0.0, -0.8]
[materials.earthenware]
density = 2000.0
bulk_modulus = 4e9
strain_limit = 1.5e-3
strain_scatter = 0.1
[sim]
method = "auto"
[sim.bonds]
horizon = 2.0
"""


@dataclass(frozen=True)
class Cost:
    """What a process took: wall and CPU time [s], and its peak memory [bytes]."""

    wall: float
    cpu: float
    memory: int
    said: str


def measure_drop(
    n_elements: int | None, frames: str | None, threads: int | None, say: Callable[[str], None]
) -> list[Row]:
    """Run the stages of the drop one after the other."""
    count = n_elements or ELEMENTS
    case = f"vase drop, {count:,} elements"
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "vase_drop.toml"
        shot.write_text(drop_text(count), encoding="utf-8")
        words = ["--device", "cpu", *(["--threads", str(threads)] if threads else []),
                 *(["--frames", frames] if frames else [])]
        costs = []
        for stage in STAGES:
            say(f"{case}, {stage} ...")
            costs.append(run_vfx(["stage", stage, shot.name, *words], Path(folder)))
            rows += [Row(case, f"{stage}, wall", costs[-1].wall, "s"),
                     Row(case, f"{stage}, CPU", costs[-1].cpu, "s"),
                     Row(case, f"{stage}, peak memory", costs[-1].memory / 1e9, "GB")]
    minutes = sum(cost.wall for cost in costs) / 60.0
    memory = max(cost.memory for cost in costs) / 1e9
    aims = ({}, {}) if frames else (AIM_MINUTES, AIM_MEMORY)
    for metric, value, unit, aim in (("all, wall", minutes, "min", aims[0]),
                                     ("all, peak memory", memory, "GB", aims[1])):
        rows.append(less_is_better(case, metric, value, unit, AIM, aim[count]) if count in aim
                    else Row(case, metric, value, unit))
    rows.append(Row(case, "all, CPU", sum(cost.cpu for cost in costs) / 60.0, "min"))
    return rows


def drop_text(n_elements: int) -> str:
    """Return the text of the shot with so many elements."""
    text = SHOT.read_text(encoding="utf-8") if SHOT.exists() else DROP
    changed, found = re.subn(r"(?m)^elements\s*=\s*[\d_]+", f"elements = {n_elements}", text)
    if found != 1:
        raise FrameFailed(f"{SHOT.name}: {found} lines give elements, not one")
    return changed


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
