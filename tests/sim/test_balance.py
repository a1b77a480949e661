"""What a breaking body keeps: angular momentum, and energy but for what its broken bonds took."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING, block
from tests.solids import build_solid
from vfx.bench.setups import bond_simulation
from vfx.device import Device, open_device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.settings import Floor, Projectile


def moments(sim: Simulation) -> tuple[np.ndarray, float]:
    """Angular momentum [kg m^2/s] about the origin, and what its terms add up to in size."""
    place, momentum = sim.position, sim._mass[:, None] * sim.velocity
    size = np.linalg.norm(place, axis=1) * np.linalg.norm(momentum, axis=1)
    return np.cross(place, momentum).sum(0), float(size.sum())


def test_angular_momentum_is_kept_through_breaking_and_contact(device: Device) -> None:
    # Two turning blocks that meet off their centres: both break, and what broke collides.
    bodies = [
        Body(name="a", material="glass", cells=(6, 6, 4), spacing=SPACING,
             velocity=(15.0, 0.0, 0.0), angular_velocity=(300.0, 2000.0, -900.0)),
        Body(name="b", material="glass", cells=(5, 4, 4), spacing=SPACING,
             center=(7.4e-3, 2.2e-3, 0.7e-3), rotation=(10.0, 20.0, 30.0),
             velocity=(-15.0, 0.0, 2.0), angular_velocity=(-800.0, 100.0, 1500.0))]
    sim = bond_simulation(device, build_solid(bodies), bodies=bodies, materials={"glass": GLASS},
                          gravity=(0.0, 0.0, 0.0), contact_stiffness=1e10,
                          floor=Floor(enabled=False))
    before, size = moments(sim)
    whole, touched = sim.n_bonds, 0.0
    for _ in range(20):
        sim.advance(50)
        touched = max(touched, contact_energy(sim))
    assert sim.n_bonds < 0.9 * whole
    assert touched > 0.0
    after, _ = moments(sim)
    assert np.abs(before).max() > 0.1 * size
    assert np.abs(after - before).max() < 2e-7 * size


def contact_energy(sim: Simulation) -> float:
    """Energy [J] of all contacts: K_c (reach - d)^3 / 3 where parts of both bodies are near."""
    a, b = (sim.position[sim.solid.body == body] for body in (0, 1))
    apart = np.linalg.norm(a[:, None] - b[None], axis=2)
    depth = np.maximum(0.5 * SPACING - apart, 0.0)
    return float((sim.settings.contact_stiffness / 3.0 * depth**3).sum())


def test_work_is_kinetic_and_bond_energy_and_what_broken_bonds_took() -> None:
    # A ball breaks a small plate. Bonds are followed pair by pair in double precision: one breaks
    # where its stretch passes the limit and takes its energy with it, that of half-way through the
    # step, as velocity Verlet gives half of it the old force and half the new.
    ball = Projectile(radius=3e-3, position=(0.3e-3, 0.2e-3, -5.6e-3), velocity=(0.0, 0.0, 30.0),
                      stiffness=1e17, mass=2e-4, push="levine")
    horizon, limit = 2.0, 1e-3
    sim = block(open_device("cpu"), (5, 5, 2), horizon=horizon, contact_stiffness=0.0,
                material=replace(GLASS, strain_limit=limit), projectiles=(ball,),
                timestep=2.0**-24)
    first, second = np.triu_indices(sim.solid.n_elements, 1)
    rest = np.linalg.norm(sim.solid.position[first] - sim.solid.position[second], axis=1)
    live = rest <= horizon * SPACING * (1 + 1e-6)
    first, second, rest = first[live], second[live], rest[live]
    live = np.ones(len(rest), bool)
    assert sim.n_bonds == len(rest)
    stiffness = 18.0 * GLASS.bulk_modulus / (np.pi * (horizon * SPACING) ** 4)
    took, energy = 0.0, 0.5 * stiffness * SPACING**6 * rest
    before, stretch = sim.balls.kinetic_energy, np.zeros(len(rest))
    for _ in range(1500):
        sim.advance(1)
        position, earlier = sim.position, stretch
        stretch = np.linalg.norm(position[first] - position[second], axis=1) / rest - 1.0
        torn = live & (stretch > limit)
        took += float((energy * earlier * stretch)[torn].sum())
        live &= ~torn
    apart = np.linalg.norm(sim.position - sim.balls.place[0], axis=1)
    assert apart.min() > 1.5 * ball.radius, "the ball has let go of the plate"
    assert sim.n_bonds == live.sum() < 0.8 * len(rest)
    work = before - sim.balls.kinetic_energy
    kinetic, bond = sim.energies()
    assert bond == pytest.approx(float((energy * stretch**2)[live].sum()), rel=1e-3, abs=1e-9)
    assert took > 0.03 * work
    assert kinetic + bond + took == pytest.approx(work, rel=1e-4)
