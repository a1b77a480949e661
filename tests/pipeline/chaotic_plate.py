"""A shot of eight cubes for the pipeline's own laws, and a solver of its own in the table.

The solver is a chaotic map in double precision, so that a resume which is not exact to the bit,
or a step done twice, shows in the next frame. All else that the shot goes through is the program
itself; what a run has made is seen by its files.
"""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import numpy as np

from vfx.geometry.handoff.types import Motion
from vfx.pipeline.stages.table import ALIGN, GEOMETRY, RENDER, SIM
from vfx.raytrace.film.exr import write_exr
from vfx.sim.schedule import SOLVERS
from vfx.sim.solver import IN_BONDS, Event, Matter, Outcome, Unstable

PAUSE = float(os.environ.get("CHAOTIC_PAUSE", "0"))    # [s] a step, for runs to be killed
#: Value of the first element's map above which the next edge breaks.
BREAKS_ABOVE = 0.9
#: How far an element strays from its place at rest, at most [m]: twice its size.
STRAYS = 2e-3
#: What the files of results are called.
RESULTS = {GEOMETRY.name: "solid.npz", SIM.name: "frame.*.npz", ALIGN.name: "frame.*.npz",
           RENDER.name: "plate.*.exr"}

#: Files that were there when somebody asked last, with what tells one from the next of its name.
_seen: dict[Path, tuple[int, int]] = {}


def made() -> dict[str, list[int]]:
    """Return which frames of which stage were written here since the last call; a solid is 0."""
    found: dict[str, list[int]] = {}
    for stage, name in RESULTS.items():
        frames = set()
        for path in Path.cwd().rglob(f"{stage}/{name}"):
            status = path.stat()
            stamp = status.st_ino, status.st_mtime_ns
            if path.is_file() and _seen.get(path) != stamp:
                _seen[path] = stamp
                frames.add(0 if stage == GEOMETRY.name else int(path.name.split(".")[1]))
        if frames:
            found[stage] = sorted(frames)
    return found


class ChaoticSolver:
    """A logistic map an element, of steps as long as those of the bonds."""

    def __init__(self, device, world):
        self._timestep = world.settings.timestep
        self._rate = 3.7 - 1e-3 * world.shared.gravity[1]
        self._rest = world.solid.position
        self._n_edges = len(world.solid.edge)
        self._x = 0.3 + 0.1 * np.sin(1e3 * self._rest[:, 0])
        self.step = 0
        self._broken: list[int] = []        # when each edge broke, in the order of the edges
        self._told: list[Event] = []

    @property
    def time(self):
        return self.step * self._timestep

    def moment(self, time):
        return round(time / self._timestep) * self._timestep

    def state(self):
        return {"x": self._x.copy(), "step": np.array(self.step),
                "broken": np.array(self._broken, np.int64)}

    def restore(self, state):
        if state["x"].shape != self._x.shape:
            raise ValueError("its array x has another shape")
        self._x = state["x"].copy()
        self.step = int(state["step"])
        self._broken = [int(value) for value in state["broken"]]
        self._told = []

    def advance(self, until, seconds):
        if self.time < self.moment(until):
            self._x = self._rate * self._x * (1.0 - self._x)
            self.step += 1
            if self._x[0] > BREAKS_ABOVE and len(self._broken) < self._n_edges:
                self._broken.append(self.step)
                self._told.append(Event(self.time, IN_BONDS, "plate", f"x is {self._x[0]!r}",
                                        1, len(self._broken)))
            time.sleep(PAUSE)
        if self._rate > 4.0:
            raise Unstable(f"step {self.step}: the energy runs away")
        return Outcome.REACHED if self.time >= self.moment(until) else Outcome.PAUSED

    def broken(self):
        return np.arange(len(self._broken), dtype=np.int32)

    def doing(self):
        return ""

    def notes(self):
        return []

    def news(self):
        told, self._told = self._told, []
        return told

    def frame(self, number, since):
        broken = [edge for edge, step in enumerate(self._broken) if step * self._timestep > since]
        return Motion(
            frame=number, time=self.time, position=self._position(),
            velocity=np.zeros_like(self._rest), damage=np.zeros(len(self._x), np.float32),
            broken_edge=np.array(broken, np.int32), projectile_position=np.zeros((0, 3)),
            projectile_radius=np.zeros(0))

    def _position(self):
        return self._rest + STRAYS * self._x[:, None]

    def matter(self):
        return Matter(self.time, self._position(), np.zeros_like(self._rest),
                      np.zeros(len(self._x), np.float32), self.broken())

    def place(self, matter):
        self._x = (matter.position - self._rest)[:, 0] / STRAYS

    def tallies(self):
        return {"time": self.time, "kinetic_energy": float(self._x.sum())}


SHOT = """\
[shot]
name = "plate"
frames = "1001-1006"
[time]
steps_per_frame = 25
[[bodies]]
name = "plate"
material = "glass"
cells = [4, 2, 1]
[materials.glass]
density = 2200.0
[materials.glass.look]
specular = 0.1
[sim]
seed = 1
[floor]
height = -1.0
[camera]
focal_length = 50.0
position = [0.001, 0.001, 0.012]
target = [0.001, 0.001, 0.0]
[light]
exposure = 0.0
[render]
resolution = [8, 6]
samples = 1
passes = ["beauty"]
"""


def write_sky(path: Path, brightness: float) -> None:
    """Write an environment of one brightness."""
    write_exr(path, {name: np.full((2, 4), brightness, np.float32) for name in "RGB"}, {})


def install(set_item=dict.__setitem__) -> None:
    """Put the solver into the place of the bonds."""
    set_item(SOLVERS, "bonds", dataclasses.replace(
        SOLVERS["bonds"], build=ChaoticSolver, pace=lambda device, setup: 1e-9,
        has_timeline=True))


if __name__ == "__main__":
    from vfx.pipeline.cli.commands import main
    from vfx.pipeline.stages import sim as stage_sim

    install()
    stage_sim._CHECKPOINT_SECONDS = (-1.0, -1.0)
    main()
