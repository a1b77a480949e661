"""The shot that kills, damage and want are tried on: all stages in half a second."""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .case import QUICK, Case
from .verdict import results

FIRST, LAST = 1001, 1003
SHOT = f"""\
[shot]
name = "plate"
frames = "{FIRST}-{LAST}"
[time]
steps_per_frame = 20
[[bodies]]
name = "plate"
material = "glass"
cells = [4, 4, 2]
spacing = 2e-3
center = [0.0, 0.07, 0.0]
[materials.glass]
[[projectiles]]
position = [0.0, 0.07, 0.0135]
velocity = [0.0, 0.0, -60.0]
[sim]
timestep = "auto"
[light]
environment = "sky.exr"
[render]
resolution = [12, 8]
samples = 2
"""


@dataclass(frozen=True)
class Reference:
    """An undisturbed run: where it lies, the sums of its results, and what it took."""

    work: Path
    sums: Mapping[str, str]
    events: int
    seconds: float


def write_shot(folder: Path) -> None:
    """Write the shot and the sky that lights it."""
    (folder / "plate.toml").write_text(SHOT)
    write_sky(folder / "sky.exr")


def write_sky(path: Path) -> None:
    """Write an environment so small that lighting costs nothing."""
    path.write_bytes(_sky())


@functools.cache
def _sky() -> bytes:
    import OpenEXR

    pixels = np.linspace(0.1, 1.0, 4 * 8 * 3, dtype=np.float32).reshape(4, 8, 3)
    data = io.BytesIO()
    OpenEXR.File({"compression": OpenEXR.NO_COMPRESSION, "type": OpenEXR.scanlineimage},
                 {"RGB": pixels}).write(data)
    return data.getvalue()


@functools.cache
def make_reference(ground: Path) -> Reference:
    """Run the shot undisturbed, twice: what differs between the two could not be judged."""
    made: list[Reference] = []
    for number in (0, 1):
        case = Case("reference", 0, number, ground / f"reference{number}")
        write_shot(case.shot.parent)
        outcome = case.vfx("run", case.shot.name, "--work", case.work, *QUICK, allowed={0})
        if case.faults:
            raise SystemExit(f"the undisturbed run failed: {case.faults}\n{outcome.output}")
        made.append(Reference(case.work, results(case.work), outcome.events, outcome.seconds))
    if made[0].sums != made[1].sums:
        odd = [name for name in made[0].sums if made[0].sums[name] != made[1].sums.get(name)]
        raise SystemExit(f"two undisturbed runs differ in {', '.join(odd)}")
    return made[0]
