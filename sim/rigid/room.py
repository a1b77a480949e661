"""Rigid bodies as the table of solvers has them; what takes time to load comes when used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.solver import Plan, Room, Setup, Solver, World

if TYPE_CHECKING:
    from vfx.device import Device
    from vfx.geometry.handoff.types import Array

#: Seconds of the engine a tick and body, on one core: a guess, for piles cost more than flight.
SECONDS_A_BODY = 3e-5


def frame_time(setup: Setup[RigidSettings]) -> float | None:
    """Return the time of a frame [s]: it has no steps that it could be given in."""
    return setup.clock.frame_time or 1.0 / setup.clock.fps


def plan(setup: Setup[RigidSettings]) -> Plan[RigidSettings]:
    """Work out what the bodies come to."""
    from vfx.sim.rigid.plan import make_plan

    return make_plan(setup)


def pace(device: Device, setup: Setup[RigidSettings]) -> float:
    """Return the time [s] that a tick takes."""
    return SECONDS_A_BODY * len(setup.bodies)


def missing() -> str:
    """Return how to get the engine where it is not here."""
    from vfx.sim.rigid.engine import missing

    return missing()


def strain_limits(world: World[RigidSettings]) -> Array:
    """Return the stretch at which each element breaks, (n,): none does."""
    import numpy as np

    return np.full(world.solid.n_elements, np.inf)


def build(device: Device, world: World[RigidSettings]) -> Solver:
    """Give all bodies of a world to the engine."""
    from vfx.sim.rigid.solver import RigidSolver

    return RigidSolver(device, world)


ROOM = Room(settings=RigidSettings, frame_time=frame_time, plan=plan, pace=pace,
            strain_limits=strain_limits, build=build, missing=missing, counts_steps=False,
            follows=True, tries_pace=False)
