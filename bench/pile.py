"""``vfx bench sim --case pile``: Voronoi cells fall into a bin and come to rest on one another.

The cells of a cube are pieces of one element each, spread out on a lattice and turned at random.
The whole way of the product is timed: :class:`RigidWorld` with its exact flights, its rolling
resistance and the record of hits, not the engine in it alone. The bin is five boxes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.bench.rows import Row, less_is_better
from vfx.bench.timing import peak_memory
from vfx.device import Device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body, Vector
from vfx.geometry.handoff.types import Array
from vfx.sim.control.controls import make_world
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.rigid.world import RigidWorld
from vfx.sim.settings import Collider, Floor, Material, Shared
from vfx.sim.solver import Poses, Setup

#: Hulls, and the edge [m] of a cube of the volume of one.
HULLS, SIZE = 2000, 0.02
#: Time step [s], and the simulated time [s] that is measured: all of them have landed by then.
STEP, SECONDS = 1.0 / 480.0, 2.0
#: Distance of neighbours at the start [m]: far enough that none touch, however they are turned.
APART = 2.1 * SIZE
#: Half the thickness [m] of the bin's floor and walls.
WALL = 0.2
STONE = Material(density=2200.0, friction=0.6, restitution=0.1)
GRAVITY = (0.0, -9.81, 0.0)
#: A run is timed in so many stretches.
STRETCHES = 8


@dataclass(frozen=True)
class Pile:
    """Hulls before they fall."""

    rigid: RigidWorld
    ids: Array                  # (k,)
    hulls: list[Array]          # (v, 3) [m] each, about its centre of mass
    mass: Array                 # (k,) [kg]
    center: Array               # (k, 3) [m]
    turn: Array                 # (k, 4) xyzw
    boxes: list[tuple[Vector, Vector]]      # of the bin: their middles and half edges [m]


@dataclass
class Run:
    """What a run took, and how its hulls lie at the end."""

    wall: list[float] = field(default_factory=list)     # [s], of each stretch
    cpu: list[float] = field(default_factory=list)
    deepest: float = 0.0        # [m]: how far the lowest corner is below the floor
    height: float = 0.0         # [m]: mean height of the centres
    speed: float = 0.0          # [m/s]: root of the mean square


def make_bin(half_width: float, height: float) -> list[tuple[Vector, Vector]]:
    """Return middles and half edges [m] of the boxes of a bin: its floor at 0, and four walls."""
    beside, across, middle = half_width + WALL, half_width + 2.0 * WALL, 0.5 * height
    return [((0.0, -WALL, 0.0), (across, WALL, across)),
            *(((side * beside, middle, 0.0), (WALL, middle, across)) for side in (-1.0, 1.0)),
            *(((0.0, middle, side * beside), (across, middle, WALL)) for side in (-1.0, 1.0))]


def make_pile(device: Device, count: int, threads: int) -> Pile:
    """Return hulls in a world of our own."""
    edge = SIZE * np.cbrt(count)
    body = Body(name="rubble", material="stone", shape="voronoi", box=(edge, edge, edge),
                elements=count)
    solid = build_solid(device, [body]).solid
    count = solid.n_elements
    side = max(2, round(np.cbrt(count / 2.0)))
    half_width = 0.5 * (side + 1) * APART
    bin_boxes = make_bin(half_width, APART * (count // side**2 + 4))
    walls = [Collider(shape="box", position=place, size=(2.0 * x, 2.0 * y, 2.0 * z))
             for place, (x, y, z) in bin_boxes]
    world = make_world(solid, Setup(
        settings=RigidSettings(timestep=STEP), materials={"stone": STONE},
        shared=Shared(gravity=GRAVITY), bodies=(body,), floor=Floor(enabled=False),
        colliders=tuple(walls)))
    rigid = RigidWorld(world, world.settings, threads)
    number = np.arange(count)
    place = np.stack([number % side, number // side**2, number // side % side], axis=1)
    center = (place - np.array([0.5 * (side - 1), -1.0, 0.5 * (side - 1)])) * APART
    turn = Rotation.random(count, random_state=np.random.default_rng(1))
    still = np.zeros((count, 3))
    ids = rigid.add([number[i:i + 1] for i in range(count)],
                    Poses(center, turn.as_matrix(), still, still))
    hulls = [rigid.prop(row).hulls[0] for row in ids.tolist()]
    return Pile(rigid, ids, hulls, rigid.mass(ids), center, turn.as_quat(), bin_boxes)


def run_pile(pile: Pile, seconds: float, n_stretches: int) -> Run:
    """Let hulls fall for a while."""
    run, n_steps = Run(), max(1, round(seconds / STEP / n_stretches))
    for _ in range(n_stretches):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(n_steps):
            pile.rigid.step(STEP)
        run.wall.append(time.perf_counter() - wall)
        run.cpu.append(time.process_time() - cpu)
    poses = pile.rigid.poses(pile.ids)
    note_end(run, pile, poses.center, poses.rotation, poses.velocity)
    return run


def note_end(run: Run, pile: Pile, center: Array, rotation: Array, velocity: Array) -> None:
    """Note how hulls lie."""
    lowest = [float((place + hull @ turn.T)[:, 1].min()) for place, hull, turn
              in zip(center, pile.hulls, rotation, strict=True)]
    run.deepest, run.height = max(0.0, -min(lowest)), float(center[:, 1].mean())
    run.speed = float(np.sqrt((velocity**2).sum(axis=1).mean()))


def measure_pile(
    device: Device, count: int | None, seconds: float, repeats: int, version: str
) -> list[Row]:
    """Let a pile fall, ours some times and the peer's once, if its version is given."""
    runs = []
    for _ in range(repeats):
        pile = make_pile(device, count or HULLS, device.threads)
        runs.append(run_pile(pile, seconds, STRETCHES))
    wall, cpu = (min(sum(getattr(run, name)) for run in runs) / seconds for name in ("wall", "cpu"))
    case = f"pile of {len(pile.ids):,} hulls, {device.threads} threads"
    rows = [Row(case, "corners of a hull, mean", float(np.mean([len(h) for h in pile.hulls])), ""),
            Row(case, "wall a simulated second", wall, "s"),
            Row(case, "CPU a simulated second", cpu, "s"),
            *_end_rows(case, runs[-1]), Row(case, "peak memory", peak_memory() / 1e9, "GB")]
    if not version:
        return rows
    from vfx.bench.peer_pybullet import run_peer

    peer, anchor = run_peer(pile, seconds, STRETCHES), f"pybullet {version}, 1 thread"
    return [*rows,
            Row(anchor, "wall a simulated second", sum(peer.wall) / seconds, "s"),
            Row(anchor, "CPU a simulated second", sum(peer.cpu) / seconds, "s"),
            *_end_rows(anchor, peer),
            less_is_better(f"{case}, against pybullet", "wall a simulated second", wall, "s",
                           anchor, sum(peer.wall) / seconds),
            less_is_better(f"{case}, against pybullet", "CPU a simulated second", cpu, "s",
                           anchor, sum(peer.cpu) / seconds)]


def _end_rows(case: str, run: Run) -> list[Row]:
    return [Row(case, "deepest in the floor", 1e3 * run.deepest, "mm"),
            Row(case, "height of the centres, mean", 1e3 * run.height, "mm"),
            Row(case, "speed at the end", 1e3 * run.speed, "mm/s")]
