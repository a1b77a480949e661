"""Small worlds of the schedule to prove laws on: soft blocks that break in a few dozen steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.solids import build_solid
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array
from vfx.sim.auto.plan import make_plan
from vfx.sim.auto.room import ROOM
from vfx.sim.auto.settings import AutoSettings, PlannedAuto
from vfx.sim.auto.solver import AutoSolver
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.control.controls import make_world
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.rigid.solver import RigidSolver
from vfx.sim.settings import Floor, Material, Shared
from vfx.sim.solver import Clock, Setup, World

SPACING = 0.01
#: Sound goes 87 m/s in it, and a bar that hits end-on at 0.87 m/s breaks.
CHALK = Material(bulk_modulus=1e7, density=2000.0, strain_limit=0.01, strain_scatter=0.02,
                 compression_strengthening=0.0, restitution=0.2, friction=0.5)
#: Nothing breaks it.
TOUGH = dataclasses.replace(CHALK, strain_limit=10.0)
NO_FLOOR = Floor(enabled=False)
NO_GRAVITY = (0.0, 0.0, 0.0)
FOREVER = 1e9


@pytest.fixture(autouse=True)
def layout() -> str:
    """Take the place of the fixture that runs laws of bonds on both of their layouts."""
    return "none"


def block(cells: tuple[int, int, int] = (6, 3, 3), **given: Any) -> Body:
    """A block of chalk of 1 cm cubes."""
    return Body(**{"name": "block", "material": "chalk", "cells": cells, "spacing": SPACING,
                   **given})


def auto_setup(
    bodies: Sequence[Body], *, gravity: Sequence[float] = (0.0, -9.81, 0.0),
    material: Material = CHALK, bonds: dict[str, Any] | None = None,
    rigid: dict[str, Any] | None = None, floor: Floor | None = None, **given: Any,
) -> Setup[AutoSettings]:
    """A shot of bodies of chalk over a floor; other keys are those of Setup or ``[sim.auto]``."""
    of_setup = {each.name for each in dataclasses.fields(Setup)}
    own = {key: tuple(value) for key, value in given.items() if key in of_setup}
    settings = {key: value for key, value in given.items() if key not in of_setup}
    return Setup(
        settings=AutoSettings(**settings), materials={"chalk": material, "tough": TOUGH},
        shared=Shared(gravity=tuple(gravity)), bodies=tuple(bodies), floor=floor or Floor(),
        clock=Clock(steps_per_frame=None, time_scale=1.0), rooms={
            "bonds": BondSettings(**(dict(ROOM.uses["bonds"]) | (bonds or {}))),
            "rigid": RigidSettings(**(rigid or {}))}, **own)


def auto_world(bodies: Sequence[Body], **given: Any) -> World[AutoSettings]:
    """The world of a setup that is planned, its bodies built."""
    setup = auto_setup(bodies, **given)
    return make_world(build_solid(bodies), dataclasses.replace(
        setup, settings=make_plan(setup).settings))


def auto_solver(device: Device, bodies: Sequence[Body], **given: Any) -> AutoSolver:
    """The schedule of a setup."""
    return AutoSolver(device, auto_world(bodies, **given))


def rigid_solver(device: Device, bodies: Sequence[Body], **given: Any) -> RigidSolver:
    """The engine alone, of the same setup."""
    return RigidSolver(device, rigid_world(auto_world(bodies, **given)))


def rigid_world(world: World[AutoSettings]) -> World[RigidSettings]:
    """The same world for the engine alone."""
    assert isinstance(world.settings, PlannedAuto)
    given = {each.name: getattr(world, each.name) for each in dataclasses.fields(world)}
    return World(**{**given, "settings": world.settings.rigid})


def run(solver: AutoSolver | RigidSolver, until: float) -> list[str]:
    """Go on to a time [s]; return what was said on the way."""
    solver.advance(until, FOREVER)
    return [event.line() for event in solver.news()]


def masses(world: World[AutoSettings]) -> Array:
    """The mass of each element, (n,) [kg]."""
    return np.array([world.materials[str(name)].density for name in world.solid.material_name]
                    )[world.solid.body] * world.solid.volume
