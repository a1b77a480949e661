"""The room of the bonds as the table of solvers has it; what takes time to load comes when used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vfx.sim.bonds import clock
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.solver import Plan, Room, Setup, Solver, World

if TYPE_CHECKING:
    from vfx.device import Device
    from vfx.geometry.handoff.types import Array


def frame_time(setup: Setup[BondSettings]) -> float | None:
    """Return the time of a frame [s], None where the step has to be planned."""
    step = setup.settings.timestep
    return None if isinstance(step, str) else clock.frame_time(setup.clock, step)


def plan(setup: Setup[BondSettings]) -> Plan[BondSettings]:
    """Work out what the bodies come to."""
    from vfx.sim.bonds.plan import make_plan

    return make_plan(setup)


def pace(device: Device, setup: Setup[BondSettings]) -> float:
    """Return the time [s] that a step takes."""
    from vfx.sim.bonds.pace import seconds_per_step

    return seconds_per_step(device, setup)


def strain_limits(world: World[BondSettings]) -> Array:
    """Return the stretch at which bonds of each element break, (n,)."""
    from vfx.sim.bonds.specimen import world_limits

    return world_limits(world)


def build(device: Device, world: World[BondSettings]) -> Solver:
    """Build the bonds of a world."""
    from vfx.sim.bonds.solver import BondSolver

    return BondSolver(device, world)


ROOM = Room(settings=BondSettings, frame_time=frame_time, plan=plan, pace=pace,
            strain_limits=strain_limits, build=build)
