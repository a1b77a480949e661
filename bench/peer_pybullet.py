"""The pile in pybullet: the same hulls, masses, places, bin, step and friction.

Bullet has one thread here, its own margin and its default of 50 rounds of its solver a step; ours
has four substeps a step. How deep hulls lie in the floor at the end is told of both. Both may let
bodies sleep.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import time
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.bench.pile import GRAVITY, STEP, STONE, Pile, Run, note_end
from vfx.pipeline.errors import MissingInput

_HELP = ("--peer pybullet: pybullet is not installed here; get it with "
         "pip install 'vfx-fracture[bench]' (or pip install pybullet)")
#: Rounds of its solver a step, its own default.
ROUNDS = 50
#: Bullet's margins and tolerances are for things of about a metre: lengths are told so many times
#: as long, and gravity with them.
ENLARGED = 10.0


def pybullet_version() -> str:
    """Return the version of the installed pybullet."""
    if importlib.util.find_spec("pybullet") is None:
        raise MissingInput(_HELP)
    return importlib.metadata.version("pybullet")


def run_peer(pile: Pile, seconds: float, n_stretches: int) -> Run:
    """Let the hulls of a pile fall in pybullet; the pile itself stays as it is."""
    import pybullet

    world = pybullet.connect(pybullet.DIRECT)
    try:
        bodies = _fill(pybullet, world, pile)
        run, n_steps = Run(), max(1, round(seconds / STEP / n_stretches))
        for _ in range(n_stretches):
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(n_steps):
                pybullet.stepSimulation(physicsClientId=world)
            run.wall.append(time.perf_counter() - wall)
            run.cpu.append(time.process_time() - cpu)
        _note(pybullet, world, bodies, pile, run)
    finally:
        pybullet.disconnect(world)
    return run


def _fill(pybullet: Any, world: int, pile: Pile) -> list[int]:
    """Put bin and hulls into a world of pybullet."""
    pybullet.setGravity(*(ENLARGED * each for each in GRAVITY), physicsClientId=world)
    pybullet.setPhysicsEngineParameter(
        fixedTimeStep=STEP, numSolverIterations=ROUNDS, numSubSteps=0, physicsClientId=world)
    # It multiplies the numbers of two things.
    material = {"lateralFriction": math.sqrt(STONE.friction),
                "restitution": math.sqrt(STONE.restitution), "physicsClientId": world}
    for place, half in pile.boxes:
        shape = pybullet.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=[ENLARGED * each for each in half],
            physicsClientId=world)
        wall = pybullet.createMultiBody(0.0, shape, physicsClientId=world,
                                        basePosition=[ENLARGED * each for each in place])
        pybullet.changeDynamics(wall, -1, **material)
    bodies = []
    for hull, mass, center, turn in zip(
            pile.hulls, pile.mass.tolist(), (ENLARGED * pile.center).tolist(), pile.turn.tolist(),
            strict=True):
        shape = pybullet.createCollisionShape(
            pybullet.GEOM_MESH, vertices=(ENLARGED * hull).tolist(), physicsClientId=world)
        body = pybullet.createMultiBody(mass, shape, basePosition=center, baseOrientation=turn,
                                        physicsClientId=world)
        pybullet.changeDynamics(
            body, -1, linearDamping=0.0, angularDamping=0.0, ccdSweptSphereRadius=0.0,
            activationState=pybullet.ACTIVATION_STATE_ENABLE_SLEEPING, **material)
        bodies.append(body)
    return bodies


def _note(pybullet: Any, world: int, bodies: list[int], pile: Pile, run: Run) -> None:
    """Note how the hulls lie."""
    poses = [pybullet.getBasePositionAndOrientation(body, physicsClientId=world)
             for body in bodies]
    velocity = [pybullet.getBaseVelocity(body, physicsClientId=world)[0] for body in bodies]
    note_end(run, pile, np.array([place for place, _ in poses]) / ENLARGED,
             Rotation.from_quat([turn for _, turn in poses]).as_matrix(),
             np.array(velocity) / ENLARGED)
