"""Fall, break, scatter, settle: energy never grows, and in the end everything rests somewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sim.auto_worlds import SPACING, auto_solver, block, layout, run
from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.sim.auto.solver import AutoSolver
from vfx.sim.rigid.shapes import Corners
from vfx.sim.settings import Projectile

__all__ = ["layout"]

FALLS: dict[str, dict[str, Any]] = {
    "one": {"bodies": [block((6, 4, 3), center=(0.0, 0.15, 0.0), rotation=(20.0, 30.0, 10.0),
                             velocity=(0.4, -2.0, 0.1), angular_velocity=(4.0, 2.0, 6.0))]},
    "two": {"bodies": [
        block((6, 3, 3), name="one", center=(0.0, 0.016, 0.0)),
        block((5, 3, 3), name="two", center=(0.012, 0.13, 0.005), rotation=(0.0, 0.0, 35.0),
              velocity=(0.0, -6.0, 0.0))]},
    "ball": {"bodies": [block((8, 8, 2), center=(0.0, 0.041, 0.0))], "projectiles": [
        Projectile(radius=0.015, position=(0.004, 0.05, 0.15), velocity=(0.0, 0.0, -4.0),
                   mass=0.03, falls=True)]},
}

AIR = {"rigid": {"air_density": 1.2}}
FALLS |= {"one in air": FALLS["one"] | AIR, "two in air": FALLS["two"] | AIR}


def corners(solver: AutoSolver) -> list[Array]:
    """The corners of every rigid piece where it is now, (v, 3) [m] each."""
    fleet, of = solver._fleet, Corners(solver._world.solid)
    found = []
    for row in range(fleet.n_props, len(fleet.id)):
        pose, number = fleet.after.rows(np.array([row])), int(fleet.id[row])
        arm = of.of(fleet.rigid.members(number)) - fleet.rigid.rest_center(np.array([number]))
        found.append(pose.center[0] + arm @ pose.rotation[0].T)
    return found


@pytest.mark.parametrize("name", FALLS)
def test_energy_falls_and_all_comes_to_rest(device: Device, name: str) -> None:
    given = dict(FALLS[name])
    solver = auto_solver(device, given.pop("bodies"), **given)
    news, least, most, speeds = [], np.inf, 0.0, np.zeros(0)
    for number in range(1, 1601):
        news += run(solver, number * 2.5e-3)
        now = solver.tallies()
        energy = now["kinetic_energy"] + now["potential_energy"] + now["bond_energy"]
        most = max(most, energy)
        assert energy < least + 1e-3 * most, (solver.time, news)
        least = min(least, energy)
        sleeps = solver._fleet.rigid.asleep(solver._fleet.id)
        fast = np.linalg.norm(solver._fleet.after.velocity, axis=1) > 5e-3
        assert not (sleeps & fast).any()
        if now["asleep"] == now["rigid_pieces"] and number > 200:
            break
    assert len(solver.broken()) > 20 and any("in bonds" in each for each in news)
    assert now["asleep"] == now["rigid_pieces"], (now, speeds)

    # Nothing is in the floor, and nothing hangs in the air: it touches the floor or another.
    piece = corners(solver)
    low = np.array([each[:, 1].min() for each in piece])
    size = np.array([np.ptp(each, axis=0).max() for each in piece])
    assert (low > -np.maximum(2e-4, 0.01 * size)).all(), (low.min(), size[low.argmin()])
    hangs = []
    for number, each in enumerate(piece):
        if low[number] < 2e-4:
            continue
        below = [k for k, other in enumerate(piece) if k != number
                 and (other.max(axis=0) > each.min(axis=0) - 1e-3).all()
                 and (other.min(axis=0) < each.max(axis=0) + 1e-3).all()]
        if not below:
            hangs.append((number, low[number] / SPACING))
    assert not hangs
