"""The door through which weakening, regions, cracks and strengths of places reach solvers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.control.region import members
from vfx.sim.control.weakening import plane_axes, weak_segments, weakness
from vfx.sim.solver import Controls, Course, Given, S, Setup, Wall, World


def make_world(
    solid: Solid, setup: Setup[S], images: Mapping[str, Array] | None = None,
    courses: tuple[Course, ...] = (),
) -> World[S]:
    """Return what a solver gets of a setup whose bodies are built.

    ``images`` holds the pictures that ``[[weakening]]`` names, (h, w) from 0 to 1; ``courses`` the
    ways of bodies that follow an animation.
    """
    given = {each.name: getattr(setup, each.name) for each in dataclasses.fields(Given)}
    return World(**given, solid=solid, controls=make_controls(solid, setup, images or {}),
                 courses=courses)


def _unbreakable(solid: Solid, setup: Setup[S], strength: list[Array]) -> list[Array]:
    """Return the factor of elements whose bodies never break, none where there are none.

    What weakens or toughens them is undone, for infinitely many times nothing is no number.
    """
    is_whole = np.array([body.whole for body in setup.bodies], bool)
    if not is_whole.any():
        return []
    of_whole = is_whole[solid.body]
    for factor in strength:
        factor[of_whole] = 1.0
    return [np.where(of_whole, math.inf, 1.0)]


def make_controls(solid: Solid, setup: Setup[S], images: Mapping[str, Array]) -> Controls:
    """Return what a shot does to the elements of a solid, as arrays."""
    strength, walls, unmet = [], [], []
    for number, settings in enumerate(setup.weakening, 1):
        weak = weakness(settings, solid.position, images)
        if weak.any():
            strength.append(1.0 - (1.0 - setup.shared.weak_factor) * weak)
        else:
            unmet.append(number)
        if len(segment := weak_segments(settings)):
            walls.append(Wall(number, np.array(settings.origin),
                              plane_axes(np.array(settings.normal)), segment))
    toughness = np.ones(solid.n_elements)
    held = np.full(solid.n_elements, -1, np.int32)
    idle = []
    for row, region in enumerate(setup.regions):
        inside = members(region, solid)
        if not inside.any():
            idle.append(row + 1)
        if region.strain_factor != 1.0:
            toughness[inside] *= region.strain_factor
        if region.holds:
            held[inside] = row
    if (toughness != 1.0).any():
        strength.append(toughness)
    strength += _unbreakable(solid, setup, strength)
    drive = [[*region.velocity, region.until or math.inf] for region in setup.regions]
    cuts = [[crack.origin, crack.u, crack.v] for crack in setup.cracks]
    return Controls(
        strength=tuple(strength), held=held, drive=np.array(drive, np.float64).reshape(-1, 4),
        walls=tuple(walls), cuts=np.array(cuts, np.float64).reshape(-1, 3, 3),
        idle_regions=tuple(idle), unmet=tuple(unmet))
