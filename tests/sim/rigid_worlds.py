"""Small worlds of rigid pieces to prove laws on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.solids import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.control.controls import make_world
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.rigid.world import RigidWorld
from vfx.sim.settings import Collider, Floor, Material, Projectile, Region, Shared
from vfx.sim.solver import Poses, Setup, World

STEP = 1.0 / 480.0
GRAVITY = 9.81


@pytest.fixture(autouse=True)
def layout() -> str:
    """Take the place of the fixture that runs laws of bonds on both of their layouts."""
    return "none"


def rigid_setup(
    bodies: Sequence[Body], *, gravity: Sequence[float] = (0.0, -GRAVITY, 0.0),
    floor: Floor | None = None, colliders: Sequence[Collider] = (),
    projectiles: Sequence[Projectile] = (), regions: Sequence[Region] = (),
    material: Material | None = None, **settings: Any,
) -> Setup[RigidSettings]:
    """A shot of bodies of one material "stone", without a floor unless asked for."""
    return Setup(
        settings=RigidSettings(**settings), materials={"stone": material or Material()},
        shared=Shared(gravity=tuple(gravity)), bodies=tuple(bodies),
        floor=floor or Floor(enabled=False), colliders=tuple(colliders),
        projectiles=tuple(projectiles), regions=tuple(regions))


def world_of(bodies: Sequence[Body], solid: Solid | None = None, **given: Any
             ) -> World[RigidSettings]:
    """The world of a setup, its bodies built."""
    return make_world(solid or build_solid(bodies), rigid_setup(bodies, **given))


def block(cells: tuple[int, int, int] = (2, 2, 2), spacing: float = 0.01, **given: Any) -> Body:
    """A block of cubes."""
    return Body(**{"name": "block", "material": "stone", "cells": cells, "spacing": spacing,
                   **given})


def place_bodies(world: World[RigidSettings], threads: int = 1) -> tuple[RigidWorld, Array]:
    """The rigid world with every body in it, as the bodies say, and their ids."""
    rigid, solid = RigidWorld(world, world.settings, threads), world.solid
    _, label = components(solid.n_elements, solid.edge)
    members = [np.flatnonzero(label == each) for each in np.unique(label)]
    return rigid, add_at_rest(rigid, members)


def add_at_rest(rigid: RigidWorld, members: Sequence[Array]) -> Array:
    """Add pieces where they are at rest, with the velocities of their bodies."""
    solid, bodies = rigid.world.solid, rigid.world.bodies
    body = [bodies[int(solid.body[each[0]])] for each in members]
    center = np.array([np.average(solid.position[each], axis=0, weights=solid.volume[each])
                       for each in members])
    spin = np.array([each.angular_velocity for each in body])
    middle = np.array([each.center for each in body])
    return rigid.add(members, Poses(
        center, np.broadcast_to(np.eye(3), (len(members), 3, 3)),
        np.array([each.velocity for each in body]) + np.cross(spin, center - middle), spin))


def run(rigid: RigidWorld, seconds: float) -> None:
    """Go on by about so many seconds."""
    for _ in range(round(seconds / STEP)):
        rigid.step(STEP)


def slope(degrees: float) -> tuple[float, float, float]:
    """Gravity over a floor that is tilted so far, down along x."""
    angle = math.radians(degrees)
    return GRAVITY * math.sin(angle), -GRAVITY * math.cos(angle), 0.0


def angular_momentum(rigid: RigidWorld, ids: Array) -> Array:
    """Of each body about its own centre, (k, 3) [kg m^2/s]."""
    poses, tensor = rigid.poses(ids), rigid.inertia(ids)
    turned = np.einsum("kij,kjl,kml->kim", poses.rotation, tensor, poses.rotation)
    return np.einsum("kij,kj->ki", turned, poses.angular_velocity)
