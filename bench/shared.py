"""``vfx bench sim --case shared``: two sims on one machine, one after the other and both at once.

Both are shots/glass_small.toml for some frames, by the command line and with the threads that it
takes by itself. Where threads do not get in each other's way, both at once take as long as one
after the other.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from vfx.bench.rows import Row, less_is_better
from vfx.bench.stages import run_vfx, start_vfx, wait_for
from vfx.pipeline.shot.templates import FOLDER

SHOT = FOLDER / "glass_small.toml"
FRAMES = "1001-1024"
NAMES = ("one", "two")
#: At most so many times as long as one after the other.
AIM, AIM_RATIO = "aim", 1.3


def measure_shared(frames: str | None, repeats: int, say: Callable[[str], None]) -> list[Row]:
    """Run two sims both ways, in turn; of each way the least counts."""
    words = {name: ["stage", "sim", f"{name}.toml", "--force", "--device", "cpu", "--frames",
                    frames or FRAMES] for name in NAMES}
    apart: list[float] = []
    together: list[float] = []
    alone: list[float] = []
    cpu: dict[str, list[float]] = {"apart": [], "together": []}
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        for name in NAMES:
            (folder / f"{name}.toml").write_text(SHOT.read_text(encoding="utf-8"),
                                                 encoding="utf-8")
            run_vfx(["stage", "geometry", f"{name}.toml", "--device", "cpu"], folder)
        for number in range(repeats):
            say(f"two sims, {number + 1} of {repeats} ...")
            costs = [run_vfx(words[name], folder) for name in NAMES]
            apart.append(sum(cost.wall for cost in costs))
            alone.append(min(cost.wall for cost in costs))
            cpu["apart"].append(sum(cost.cpu for cost in costs))
            begun = time.perf_counter()
            started = [start_vfx(words[name], folder) for name in NAMES]
            costs = [wait_for(process, begun, words[name])
                     for process, name in zip(started, NAMES, strict=True)]
            together.append(time.perf_counter() - begun)
            cpu["together"].append(sum(cost.cpu for cost in costs))
    ratio = min(together) / min(apart)
    return [
        Row("two sims", "one of them alone, wall", min(alone), "s"),
        Row("two sims", "one after the other, wall", min(apart), "s"),
        Row("two sims", "one after the other, CPU", min(cpu["apart"]), "s"),
        Row("two sims", "both at once, wall", min(together), "s"),
        Row("two sims", "both at once, CPU", min(cpu["together"]), "s"),
        less_is_better("two sims", "both at once, relative", ratio, "x", AIM, AIM_RATIO),
    ]
