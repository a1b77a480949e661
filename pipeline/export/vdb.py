"""``vfx export --to vdb``: dust, a density volume a frame around freshly broken faces.

When two elements part, dust comes off the face between them: as much as the face is large. It
starts with the motion of the two sides, is slowed by the air, spreads, and thins out; the floor
and the colliders hold it up, and none of it is inside them. That is a start for lighting and comp
or for a smoke solver, not a fluid simulation. Grids are ``density`` [kg/m^3, for dust of 1 kg/m^2
of broken face] and ``vel`` [m/s of the shot's own time: what moves a puff from a frame to the next,
as motion blur and smoke solvers take it].

pyopenvdb is on no package index, so the volumes are written by a Python that has it: this one,
the system's, or the one that ``VFX_OPENVDB_PYTHON`` names.
"""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.pipeline.errors import FrameFailed, MissingInput
from vfx.pipeline.export.pieces import PieceReader
from vfx.pipeline.shot.shot_file import Shot
from vfx.pipeline.stages.table import SIM
from vfx.pipeline.work.cache import publish, read_npz
from vfx.sim.control.extent import depth_in
from vfx.sim.settings import Collider

_WRITER = Path(__file__).with_name("openvdb_writer.py")
_LIFE_FRAMES = 12.0              # in which density falls to 1/e
_DRAG_FRAMES = 6.0               # in which speed falls to 1/e
_SPREAD = 1.2                    # width of a puff at birth, in elements
_SPREAD_RATE = 0.15              # and its growth a frame
_AGE_LIMIT = 4.0                 # older than so many lives, dust is forgotten
_STRAIGHT_PUSHES = 4             # of a puff out of one thing into the next, before it goes up
_MOST_PUSHES = 64                # and before it is left where it is
_NUDGE = 1e-6                    # [m]: how far apart depth is measured for its direction
_MOST_VOXELS = 2**28

#: How deep places (n, 3) are in what dust cannot enter, (n,) [m]; below 0 outside.
Depth = Callable[[Array], Array]


@dataclass
class Dust:
    """Puffs of one frame, each a ball of dust with a smooth edge."""

    position: Array          # (d, 3) float64 [m]
    velocity: Array          # (d, 3) float64 [m/s of the shot's own time]
    mass: Array              # (d,) float64 [kg], of 1 kg/m^2 of face
    radius: Array            # (d,) float64 [m]: where a puff ends
    depth: Depth             # of what stands around at that time


def require_openvdb() -> None:
    """Raise how to get OpenVDB unless some Python here has it."""
    if find_python() is None:
        raise MissingInput(
            "no Python here has OpenVDB, and no package index has it; on Debian and Ubuntu 'apt "
            "install python3-openvdb' brings it for the system's Python, which is then used; or "
            "set VFX_OPENVDB_PYTHON to a Python that imports pyopenvdb or openvdb (Blender's does)")


@functools.cache
def find_python() -> str | None:
    """Return a Python that imports OpenVDB, or None."""
    named = os.environ.get("VFX_OPENVDB_PYTHON")
    for python in [named] if named else [sys.executable, "/usr/bin/python3"]:
        try:
            done = subprocess.run([python, str(_WRITER), "--check"], capture_output=True,
                                  timeout=60.0, check=False, env=_plain_environment())
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return python
    return None


def write_dust(folder: Path, reader: PieceReader, voxel: float | None,
               report: Callable[[float], None]) -> list[str]:
    """Publish a volume for each frame; return lines that say where."""
    edge = voxel or 0.5 * float(reader.solid.length_scale.min())
    lines = []
    for number, dust in enumerate(dust_of_frames(reader)):
        frame = reader.frames[number]
        path = folder / f"{reader.work.shot.name}_dust.{frame:04d}.vdb"
        density, momentum, origin = splat(dust, edge)
        publish(path, functools.partial(_write, density, momentum, origin, edge))
        lines.append(f"wrote {path} ({len(dust.mass)} puffs, "
                     f"{' x '.join(map(str, density.shape))} voxels)")
        report((number + 1) / len(reader.frames))
    return lines


def dust_of_frames(reader: PieceReader) -> Iterable[Dust]:
    """Yield the dust of each of the reader's frames.

    Puffs begin where the middle of the face is when its two sides part, with the mean of their
    velocities, and are slowed as v exp(-t / drag).
    """
    from vfx.geometry.handoff.faces import face_normals
    from vfx.geometry.handoff.open_faces import faces_of_edges

    shot, faces = reader.work.shot, reader.faces
    inner = slice(0, faces.n_inner)
    area = np.linalg.norm(face_normals(faces)[inner], axis=1)
    corner = faces.vertex[faces.corner]
    count = np.diff(faces.start)
    middle = (np.add.reduceat(corner, faces.start[:-1], axis=0) / count[:, None])[inner]
    born_frame, born_at, born_velocity, mass, size = (
        np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0))
    wanted = set(reader.frames)
    for frame in range(shot.first_frame, reader.frames[-1] + 1):
        motion = read_npz(reader.work.path(SIM, frame),
                          ["broken_edge", "position", "velocity"])
        fresh = faces_of_edges(faces, motion["broken_edge"])
        side = faces.side[fresh]
        shift = motion["position"] - reader.solid.position
        born_frame = np.append(born_frame, np.full(len(fresh), float(frame)))
        born_at = np.concatenate([born_at, middle[fresh] + shift[side].mean(axis=1)])
        born_velocity = np.concatenate([born_velocity, motion["velocity"][side].mean(axis=1)])
        mass = np.append(mass, area[fresh])
        size = np.append(size, reader.solid.size[side].mean(axis=1))
        if frame not in wanted:
            continue
        age = frame - born_frame
        alive = age <= _AGE_LIMIT * _LIFE_FRAMES
        slowed = np.exp(-age[alive] / _DRAG_FRAMES)
        path = flight_time(shot, frame, age[alive])
        depth = depth_at(shot, shot.time_of(frame))
        position, velocity = held_up(
            born_at[alive] + born_velocity[alive] * path[:, None],
            born_velocity[alive] * slowed[:, None] * shot.speed_at(frame), depth)
        yield Dust(
            position=position, velocity=velocity,
            mass=mass[alive] * np.exp(-age[alive] / _LIFE_FRAMES),
            radius=size[alive] * (_SPREAD + _SPREAD_RATE * age[alive]), depth=depth)


def flight_time(shot: Shot, frame: int, age: Array) -> Array:
    """Return for how long [s] puffs of an age (d,) [frames] would have flown unslowed.

    The air slows them by frames; how far a frame takes them is a matter of the shot's speed.
    """
    slowed = np.exp(-age / _DRAG_FRAMES)
    if not shot.clock.time_keys:
        return np.asarray(_DRAG_FRAMES * shot.frame_time * (1.0 - slowed))
    path, back = np.zeros(len(age)), 0
    while (flew := age > back).any():
        second = shot.time_of(frame - back) - shot.time_of(frame - back - 1)
        ends = np.exp(-(age[flew] - [[back + 1.0], [float(back)]]) / _DRAG_FRAMES)
        path[flew] += _DRAG_FRAMES * second * (ends[0] - ends[1])
        back += 1
    return path


def depth_at(shot: Shot, time: float) -> Depth:
    """Return the function that says how deep places are in floor or colliders at a time [s]."""
    things = list(shot.colliders)
    if shot.floor.enabled:
        things.append(Collider(position=(0.0, shot.floor.height, 0.0)))

    def depth(position: Array) -> Array:
        deepest: Array = np.max([np.full(len(position), -np.inf),
                                 *(depth_in(thing, position, time) for thing in things)],
                                axis=0)
        return deepest

    return depth


def held_up(position: Array, velocity: Array, depth: Depth) -> tuple[Array, Array]:
    """Return puffs with those inside of something on its surface, along which they go on.

    The nearest way out may lead into another thing, as from a box that stands in the floor; those
    that come out of nothing so go up.
    """
    position, velocity = position.copy(), velocity.copy()
    for push in range(_MOST_PUSHES):
        deep = depth(position)
        inside = np.flatnonzero(deep > 0.0)
        if len(inside) == 0:
            break
        at = position[inside]
        out = np.tile((0.0, 1.0, 0.0), (len(at), 1))
        if push < _STRAIGHT_PUSHES:
            out = np.stack([depth(at - step) - depth(at + step) for step in _NUDGE * np.eye(3)], 1)
            out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-300)
        position[inside] += deep[inside, None] * out
        speed = np.einsum("ij,ij->i", velocity[inside], out)
        velocity[inside] -= np.minimum(speed, 0.0)[:, None] * out
    return position, velocity


def splat(dust: Dust, voxel: float) -> tuple[Array, Array, Array]:
    """Return density (x, y, z) float32 [kg/m^3], velocity (x, y, z, 3) [m/s] and first voxel.

    Each puff is spread over the voxels whose middle is within its radius, as (1 - r^2/R^2)^2 times
    the share of the voxel that is outside of everything, scaled so that its mass is kept to the
    bit of a sum; voxel i is centred on (origin + i) voxel.
    """
    if len(dust.mass) == 0:
        return np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1, 3), np.float32), np.zeros(
            3, np.int64)
    reach = np.maximum(dust.radius, voxel)
    low = np.floor((dust.position - reach[:, None]).min(axis=0) / voxel).astype(np.int64)
    high = np.ceil((dust.position + reach[:, None]).max(axis=0) / voxel).astype(np.int64)
    shape = tuple(int(n) for n in high - low + 1)
    if math.prod(shape) > _MOST_VOXELS:
        raise FrameFailed(f"--voxel {voxel:g}: makes {' x '.join(map(str, shape))} voxels; use a "
                          f"larger one, {voxel * (math.prod(shape) / _MOST_VOXELS) ** (1 / 3):.2g} "
                          "or more")
    density = np.zeros(shape)
    momentum = np.zeros((*shape, 3))
    meets = dust.depth(dust.position) > -reach - voxel
    for place, velocity, mass, radius, is_near in zip(
            dust.position, dust.velocity, dust.mass, reach, meets, strict=True):
        first = np.maximum(np.floor((place - radius) / voxel).astype(np.int64), low)
        last = np.minimum(np.ceil((place + radius) / voxel).astype(np.int64), high)
        axes = [np.arange(a, b + 1) * voxel - x for a, b, x in zip(first, last, place,
                                                                  strict=True)]
        squared = (axes[0][:, None, None] ** 2 + axes[1][None, :, None] ** 2
                   + axes[2][None, None, :] ** 2) / radius**2
        weight = np.maximum(1.0 - squared, 0.0) ** 2
        if is_near:
            free = weight * _free_share(dust.depth, first, last, voxel)
            # A puff in a gap that no voxel sees stays as it is, for its mass.
            weight = free if free.any() else weight
        weight *= mass / max(weight.sum(), 1e-300) / voxel**3
        box = tuple(slice(int(a - base), int(b - base) + 1)
                    for a, b, base in zip(first, last, low, strict=True))
        density[box] += weight
        momentum[box] += weight[..., None] * velocity
    velocity_grid = momentum / np.maximum(density, 1e-300)[..., None]
    return density.astype(np.float32), velocity_grid.astype(np.float32), low


def _free_share(depth: Depth, first: Array, last: Array, voxel: float) -> Array:
    """Return the share of each voxel from ``first`` to ``last`` that is outside of everything."""
    index = np.stack(np.meshgrid(*map(np.arange, first, last + 1), indexing="ij"), axis=-1)
    deep = depth(index.reshape(-1, 3) * voxel).reshape(index.shape[:3])
    share: Array = np.clip(0.5 - deep / voxel, 0.0, 1.0)
    return share


def _write(density: Array, velocity: Array, origin: Array, voxel: float, path: Path) -> None:
    python = find_python()
    assert python is not None, "it was found before"
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "grids.npz"
        np.savez(arrays, density=density, vel=velocity, origin=origin, voxel=np.array(voxel))
        done = subprocess.run([python, str(_WRITER), str(arrays), str(path)],
                              capture_output=True, encoding="utf-8",
                              errors="backslashreplace", check=False,
                              env=_plain_environment())
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise FrameFailed(f"{path}: {python} could not write the volume: {reason}")


def _plain_environment() -> dict[str, str]:
    """Return the environment without what would mix this Python's packages into another's."""
    return {key: value for key, value in os.environ.items()
            if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
