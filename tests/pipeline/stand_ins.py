"""Small stand-ins for the packages below the pipeline, to prove its own laws on.

The stand-in solver, put into the table of solvers, is a chaotic map in double precision, so that
a resume which is not exact to the bit, or a step done twice, shows in the next frame.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
import time
import types

import numpy as np

from vfx.geometry.handoff.faces import face_normals, spans  # noqa: F401 (stand for themselves)
from vfx.geometry.handoff.types import Lineage, Motion, Pieces, Solid

# The first is handed on; the second has to meet the real reader of images before the stand-in.
from vfx.raytrace.camera.camera import camera_view  # noqa: F401
from vfx.raytrace.surface.texture import load_texture  # noqa: F401

# These have to meet the real device before the stand-in.
from vfx.sim.control import controls  # noqa: F401
from vfx.sim.schedule import SOLVERS
from vfx.sim.solver import Matter, Outcome, Unstable

MADE: list[tuple[str, int]] = []       # (stage, frame) in the order of making
PAUSE = float(os.environ.get("STAND_IN_PAUSE", "0"))    # [s] a step, for runs to be killed


class Device:
    """A device that computes nothing."""

    description = "stand-in"
    threads = 1

    def memory(self):
        return 10**10, 10**10


class Record:
    """A struct that no kernel takes."""


class DeviceError(Exception):
    """The stand-in of a device that is not there."""


def open_device(name):
    if name.startswith("cuda"):
        raise DeviceError("no NVIDIA GPU can be used here; use --device cpu")
    return Device()


def check_bodies(bodies):
    """Find every body buildable."""


def thin_bodies(bodies):
    return []


def solid_bytes(bodies):
    return 100 * sum(body.cells[0] * body.cells[1] * body.cells[2] for body in bodies)


def lowest_point(body):
    return body.center[1] - body.spacing * body.cells[1] / 2


def all_faces(solid):
    return None


def mesh_reports(bodies):
    return {}


def build_solid(device, bodies, progress=None):
    MADE.append(("geometry", 0))
    n = sum(int(np.prod(body.cells)) for body in bodies)
    position = np.arange(3.0 * n).reshape(n, 3) * bodies[0].spacing + bodies[0].center
    solid = Solid(
        position=position, volume=np.ones(n), size=np.ones(n), body=np.zeros(n, np.int32),
        cell=np.zeros((n, 3), np.int32), edge=np.zeros((0, 2), np.int32),
        length_scale=np.ones(1), orientation=np.eye(3)[None], kind=np.array(["grid"]),
        body_name=np.array(["plate"]),
        material_name=np.array([body.material for body in bodies]))
    return types.SimpleNamespace(solid=solid, notes={})


class ChaoticSolver:
    """A logistic map a particle, of steps as long as those of the bonds."""

    def __init__(self, device, world):
        self._timestep = world.settings.timestep
        self._rate = 3.7 - 1e-3 * world.shared.gravity[1]
        self._x = 0.3 + 0.1 * np.sin(world.solid.position[:, 0])
        self.step = 0
        self._broken: list[int] = []

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

    def advance(self, until, seconds):
        if self.time < self.moment(until):
            self._x = self._rate * self._x * (1.0 - self._x)
            self.step += 1
            if self._x[0] > 0.5:
                self._broken.append(self.step)
            time.sleep(PAUSE)
        if self._rate > 4.0:
            raise Unstable(f"step {self.step}: the energy runs away")
        return Outcome.REACHED if self.time >= self.moment(until) else Outcome.PAUSED

    def broken(self):
        return np.zeros(0, np.int32)

    def notes(self):
        return []

    def frame(self, number, since):
        MADE.append(("sim", number))
        broken = np.array([step for step in self._broken if step * self._timestep > since],
                          np.int32)
        n = len(self._x)
        return Motion(
            frame=number, time=self.time,
            position=np.repeat(self._x[:, None], 3, axis=1), velocity=np.zeros((n, 3)),
            damage=np.zeros(n, np.float32), broken_edge=broken,
            projectile_position=np.zeros((0, 3)), projectile_radius=np.zeros(0))

    def matter(self):
        return Matter(self.time, np.repeat(self._x[:, None], 3, axis=1),
                      np.zeros((len(self._x), 3)), np.zeros(len(self._x), np.float32))

    def place(self, matter):
        self._x = matter.position[:, 0].copy()

    def tallies(self):
        return {"time": self.time, "kinetic_energy": float(self._x.sum())}


def build_lineage(solid, broken, first_frame):
    frames = [frame for frame, _ in broken]
    zero = np.zeros(0, np.int32)
    return Lineage(first_frame=first_frame, last_frame=frames[-1], parent=zero, birth_frame=zero,
                   body=zero, change_start=np.zeros(len(frames) + 1, np.int64),
                   change_particle=zero, change_fragment=zero)


def count_pieces(solid, broken):
    return len(solid.position)


class Aligner:
    def __init__(self, solid, density_of_body, lineage, read_motion, *, transition_frames=0):
        self.n, self.density, self.read_motion = len(solid.position), density_of_body, read_motion

    def align(self, frame):
        MADE.append(("align", frame))
        motion = self.read_motion(frame)
        center = (motion.position * self.density[0]).sum(axis=0)[None]
        return Pieces(
            frame=frame, time=motion.time, fragment=np.zeros(self.n, np.int32),
            id=np.zeros(1, np.int32), rotation=np.eye(3)[None], translation=np.zeros((1, 3)),
            center=center, velocity=np.zeros((1, 3)), angular_velocity=np.zeros((1, 3)),
            mass=np.ones(1), damage=motion.damage,
            projectile_position=motion.projectile_position,
            projectile_radius=motion.projectile_radius)


def load_environment(name, folder):
    if name == "studio":
        return np.ones((2, 4, 3), np.float32)
    if not (folder / name).is_file():
        raise FileNotFoundError(f"there is no environment {name!r}")
    data = (folder / name).read_bytes()
    if len(data) < 24:
        raise ValueError(f"{name} is truncated")
    return np.frombuffer(data[:24], np.float32).reshape(1, 2, 3)


def render_picture(device, solid, pieces, camera, light, looks, floor, floor_look, film,
                   environment, progress=None, *, faces=None, area_lights=(), texture=None,
                   images=None, near=None, props=()):
    if (light.exposure, pieces.frame) == (-9.0, 1003):
        raise RuntimeError("the tree has a hole")
    MADE.append(("render", pieces.frame))
    progress(0.5)
    width, height = film.resolution
    value = float(pieces.center.sum()) % 1.0
    channels = {name: np.full((height, width), value, np.float32) for name in "RGBA"}
    return types.SimpleNamespace(channels=channels, samples=1.0,
                                 matte_channels={"CryptoFragment00.R": channels["R"]},
                                 matte_header={"cryptomatte/1234567/name": "CryptoFragment"})


def frame_header(camera, film, fps, frame):
    return {"frame": frame}


def write_exr(path, channels, header, *, exact=False):
    with open(path, "wb") as file:
        file.write(json.dumps(header).encode() + b"\n")
        np.savez(file, **channels)


def read_exr(path):
    try:
        header, _, data = path.read_bytes().partition(b"\n")
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}, json.loads(header)
    except Exception as error:
        raise ValueError(f"{path}: {error}") from None


def exr_extent(path):
    height, width = next(iter(read_exr(path)[0].values())).shape[:2]
    return width, height, 0


MODULES = {
    "vfx.device": ("open_device", "DeviceError", "Device", "Record"),
    "vfx.geometry.divide.build": ("check_bodies", "solid_bytes", "build_solid", "lowest_point",
                           "mesh_reports", "thin_bodies"),
    "vfx.geometry.handoff.faces": ("all_faces", "face_normals", "spans"),
    "vfx.geometry.pieces.lineage": ("build_lineage", "count_pieces"),
    "vfx.geometry.pieces.align": ("Aligner",),
    "vfx.raytrace.light.environment": ("load_environment",),
    "vfx.raytrace.film.exr": ("exr_extent", "read_exr", "write_exr"),
    "vfx.raytrace.camera.camera": ("frame_header", "camera_view"),
    "vfx.raytrace.render": ("render_picture",),
}

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
[light]
exposure = 0.0
[render]
resolution = [8, 6]
samples = 1
passes = ["beauty"]
"""


def install(set_item=dict.__setitem__) -> None:
    """Put the stand-ins in the place of the solver and of the packages below."""
    MADE.clear()
    set_item(SOLVERS, "bonds", dataclasses.replace(
        SOLVERS["bonds"], build=ChaoticSolver, pace=lambda device, setup: 1e-9))
    for name, contents in MODULES.items():
        module = types.ModuleType(name)
        for content in contents:
            setattr(module, content, globals()[content])
        set_item(sys.modules, name, module)


if __name__ == "__main__":
    from vfx.pipeline.cli.commands import main
    from vfx.pipeline.stages import sim as stage_sim

    install()
    stage_sim._CHECKPOINT_SECONDS = (-1.0, -1.0)
    main()
