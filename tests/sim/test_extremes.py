"""Settings at the ends of their ranges make finite numbers, and no warning on the way."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from tests.solids import build_solid
from vfx.bench.setups import bond_setup, bond_simulation
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.plan import make_plan
from vfx.sim.settings import Material, Projectile, Weakening
from vfx.sim.solver import Unstable

CORNERS = list(itertools.product((1e-3, 1e6), (1.0, 1e15), (1e-9, 1e5)))


def start_and_step(
    device: Device, material: Material, spacing: float, *,
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0), contact_stiffness: float = 0.0,
    projectiles: tuple[Projectile, ...] = (), weakening: tuple[Weakening, ...] = (),
) -> None:
    """Build a small block, do some steps at its own stable step, and look at all numbers.

    A motion too fast for the step may be refused, in a sentence.
    """
    body = Body(name="block", material="m", cells=(4, 3, 3), spacing=spacing, velocity=velocity,
                center=(0.0, 2.0 * spacing, 0.0))
    keys = {"contact_stiffness": contact_stiffness, "bodies": [body], "materials": {"m": material},
            "projectiles": projectiles, "weakening": weakening}
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        plan = make_plan(bond_setup(**keys))
        assert 0.0 < plan.auto_step < np.inf
        simulation = bond_simulation(
            device, build_solid([body]), timestep=plan.auto_step, **keys)
        try:
            simulation.advance(20)
        except Unstable as error:
            assert "use a smaller sim.bonds.timestep" in str(error)
        frame = simulation.frame(1, -1)
        numbers = simulation.diagnostics()
    for value in (*frame.to_arrays().values(), *numbers.values()):
        assert np.isfinite(value).all()


@pytest.mark.parametrize("density, modulus, spacing", CORNERS)
def test_every_corner_of_the_materials_stays_finite(
    device: Device, density: float, modulus: float, spacing: float
) -> None:
    material = Material(density=density, bulk_modulus=modulus)
    start_and_step(device, material, spacing)


@pytest.mark.parametrize("limits", [
    {"fracture_energy": 1e-9}, {"fracture_energy": 1e12}, {"strain_limit": 1e6},
    {"compression_strengthening": 1e6}, {"strain_scatter": 0.3}])
def test_every_strain_limit_stays_finite(device: Device, limits: dict[str, float]) -> None:
    for density, modulus, spacing in CORNERS[::3]:
        start_and_step(device, Material(density=density, bulk_modulus=modulus, **limits), spacing)


@pytest.mark.parametrize("projectile", [
    Projectile(radius=radius, position=(0.0, 2e-3, 0.0), velocity=(0.0, 0.0, 0.0),
               stiffness=stiffness)
    for radius, stiffness in itertools.product((1e-9, 1e5), (1e-3, 1e24))])
def test_every_ball_stays_finite(
    device: Device, projectile: Projectile
) -> None:
    start_and_step(device, Material(), 1e-3, projectiles=(projectile,))


@pytest.mark.parametrize("speed", [1e6, -1e6])
def test_every_speed_stays_finite(device: Device, speed: float) -> None:
    start_and_step(device, Material(), 1e-3, velocity=(speed, speed, speed),
                   contact_stiffness=1e18)


@pytest.mark.parametrize("stiffness", [5e-324, 1e-300, 1e-150])
def test_every_contact_stiffness_stays_finite(device: Device, stiffness: float) -> None:
    start_and_step(device, Material(), 1e-3, contact_stiffness=stiffness)


def test_walks_of_any_size_stay_finite(device: Device) -> None:
    for length, step in ((1e-9, 1e-9), (1e5, 1e5), (1e-9, 1e5)):
        start_and_step(device, Material(), 1e-3,
                       weakening=(Weakening(paths=3, length=length, step=step),))
