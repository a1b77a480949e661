"""The schedule as the table of solvers has it; what takes time to load comes when used."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from vfx.sim.auto.settings import AutoSettings, PlannedAuto
from vfx.sim.bonds.room import ROOM as BONDS
from vfx.sim.solver import Plan, Room, Setup, Solver, World

if TYPE_CHECKING:
    from vfx.device import Device
    from vfx.geometry.handoff.types import Array


def frame_time(setup: Setup[AutoSettings]) -> float | None:
    """Return the time of a frame [s]: a schedule has no steps that it could be given in."""
    return setup.clock.frame_time or 1.0 / setup.clock.fps


def plan(setup: Setup[AutoSettings]) -> Plan[AutoSettings]:
    """Work out what the bodies come to."""
    from vfx.sim.auto.plan import make_plan

    return make_plan(setup)


def pace(device: Device, setup: Setup[AutoSettings]) -> float:
    """Return the time [s] that a step of bonds takes while all that may break is in a window."""
    from vfx.sim.auto.plan import breakable, make_plan

    bonds = make_plan(setup).bonds.setup
    return BONDS.pace(device, dataclasses.replace(bonds, bodies=breakable(setup)))


def missing() -> str:
    """Return how to get the engine where it is not here."""
    from vfx.sim.rigid.engine import missing

    return missing()


def strain_limits(world: World[AutoSettings]) -> Array:
    """Return the stretch at which bonds of each element break, (n,)."""
    settings = world.settings
    assert isinstance(settings, PlannedAuto), "the schedule has to be planned first"
    given = {field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
    return BONDS.strain_limits(World(**{**given, "settings": settings.bonds}))


def build(device: Device, world: World[AutoSettings]) -> Solver:
    """Give all bodies of a world to the engine."""
    from vfx.sim.auto.solver import AutoSolver

    return AutoSolver(device, world)


ROOM = Room(settings=AutoSettings, frame_time=frame_time, plan=plan, pace=pace,
            strain_limits=strain_limits, build=build, missing=missing, counts_steps=False,
            follows=True, has_timeline=True,
            uses={"rigid": {"air_density": 1.2}, "bonds": {
                "timestep": "auto", "contact_distance": 0.9, "contact_friction": 0.5,
                "internal_damping": 0.05, "pieces": "held"}})
