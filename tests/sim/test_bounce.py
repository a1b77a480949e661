"""What bounces keeps its energy: laws of floor and colliders."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.blocks import SPACING, block
from tests.sim.test_controls import setup
from vfx.device import Device
from vfx.sim.settings import Collider, Floor, Material

#: Nothing breaks; pressed hard, it touches the floor for many steps.
CLAY = Material(bulk_modulus=3e9, density=2000.0, strain_limit=1.0, strain_scatter=0.0)
SPEED = 5.0     # [m/s]
CELLS = (10, 6, 6)


def total_energy(sim) -> float:
    return sum(sim.energies())


def bounced(sim, n_steps: int):
    """Return the momentum and energy, over those of the start, when it has left again."""
    mass = CLAY.density * sim.solid.volume
    sim.place(sim.position, np.tile([0.0, -SPEED, 0.0], (sim.solid.n_elements, 1)))
    before = total_energy(sim)
    sim.advance(n_steps)
    assert sim.position[:, 1].min() > 0.6 * SPACING          # off the ground again
    momentum = (mass[:, None] * sim.velocity).sum(0)[1] / (mass.sum() * SPEED)
    return momentum, total_energy(sim) / before


@pytest.mark.parametrize("steps", [400, 1600])
@pytest.mark.parametrize("on", ["floor", "plane", "box"])
def test_a_body_that_does_not_break_keeps_its_energy_when_it_bounces(
    device: Device, on: str, steps: int
) -> None:
    collider = {"plane": Collider(restitution=1.0),
                "box": Collider(shape="box", position=(0.0, -0.5, 0.0), size=(1.0, 1.0, 1.0),
                                restitution=1.0)}
    settings = ({"floor": Floor(restitution=1.0)} if on == "floor"
                else {"colliders": (collider[on],)})
    duration = 60e-6
    sim = setup(device, CELLS, center=(0.0, 0.5 * CELLS[1] * SPACING + 1e-5, 0.0),
                material=CLAY, solver={"timestep": duration / steps}, **settings)
    momentum, energy = bounced(sim, steps)
    assert energy == pytest.approx(1.0, abs=0.03)
    assert momentum > 0.7


def test_a_weight_at_rest_stays_on_the_floor(device: Device) -> None:
    sim = block(device, (4, 4, 4), material=CLAY, center=(0.0, 2.0 * SPACING, 0.0),
                gravity=(0.0, -1e5, 0.0), floor=Floor(restitution=0.5), timestep=2e-7,
                damping=2e4)
    sim.advance(4000)
    lowest = sim.position[:, 1].min() - 0.5 * SPACING
    # It would have sunk by many times that, a little with every step.
    assert -1e-12 <= lowest < 1e-2 * SPACING
    assert np.abs(sim.velocity).max() < 1.0
