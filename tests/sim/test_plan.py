"""What is worked out before anything is built agrees with what is built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.solids import build_solid
from vfx.bench.setups import bond_setup
from vfx.device import Device, open_device
from vfx.geometry.divide.build import build_solid as build_any
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.lattice import arrange
from vfx.sim.bonds.pace import seconds_per_bond
from vfx.sim.bonds.plan import make_plan
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.control.controls import make_world
from vfx.sim.control.extent import Held, find_held
from vfx.sim.control.region import members
from vfx.sim.matter.ordering import LANES
from vfx.sim.settings import Floor, Material, Projectile, Region
from vfx.sim.solver import Unstable


@pytest.mark.parametrize("horizon", [1.0, 2.0, 3.0, 4.2])
@pytest.mark.parametrize("cells", [(9, 5, 3), (1, 1, 20), (17, 8, 2), (1, 1, 1)])
def test_planned_bonds_are_those_of_the_network(
    device: Device, cells: tuple[int, int, int], horizon: float
) -> None:
    bodies = [Body(name="a", material="glass", cells=cells),
              Body(name="b", material="glass", cells=(3, 3, 3), center=(1.0, 0.0, 0.0))]
    setup = bond_setup(bodies=bodies, materials={"glass": Material()}, horizon=horizon,
                       timestep=1e-9, floor=Floor(enabled=False))
    plan = make_plan(setup)
    sim = Simulation(device, make_world(build_solid(bodies), setup))
    assert plan.n_particles == sim.solid.n_elements
    assert plan.n_bonds == sim.n_bonds
    # Each box stands in the rows that were planned for it.
    boxes, _ = arrange(sim.solid, int(horizon))
    assert [body.n_lanes for body in plan.bodies] == [box.n_clusters * LANES for box in boxes]


@pytest.mark.parametrize("keys", [{}, {"calibrate": True}, {"surface_correction": True}], ids=str)
@pytest.mark.parametrize("horizon", [2.0, 3.0])
@pytest.mark.parametrize("cells", [(3, 3, 2), (1, 1, 20), (1, 1, 1), (9, 8, 1), (12, 12, 12)])
def test_planned_step_is_stable_for_the_network(
    cells: tuple[int, int, int], horizon: float, keys: dict[str, Any]
) -> None:
    bodies = [Body(name="a", material="glass", cells=cells)]
    setup = bond_setup(bodies=bodies, materials={"glass": Material()}, horizon=horizon,
                       timestep=1e-12, floor=Floor(enabled=False), **keys)
    limit, = (step for cause, step in make_plan(setup).step_limits.items() if "the bonds" in cause)
    sim = Simulation(open_device("cpu"), make_world(build_solid(bodies), setup))
    assert limit <= (1.0 + 1e-6) * sim.stable_step


@pytest.mark.parametrize("horizon", [2.0, 3.0, 6.0])
@pytest.mark.parametrize("shape", [
    {"shape": "voronoi", "box": (0.2, 0.2, 0.01), "elements": 1500},
    {"shape": "voronoi", "box": (0.1, 0.1, 0.1), "elements": 1500,
     "grading_center": (0.0, 0.0, 0.05), "grading_deviation": 0.02, "grading_finest": 0.4},
    {"shape": "tet-shell", "box": (0.1, 0.1, 0.1), "elements": 1500, "layers": 4},
    {"shape": "grid", "mesh": "asset:vase", "height": 0.3, "elements": 1500},
], ids=["plate", "graded", "tetrahedra", "cubes in a vase"])
def test_planned_bonds_of_irregular_bodies_are_about_those_of_the_network(
    shape: dict[str, Any], horizon: float
) -> None:
    device = open_device("cpu")
    bodies = [Body(name="a", material="glass", **shape)]
    setup = bond_setup(bodies=bodies, materials={"glass": Material()}, horizon=horizon,
                       timestep=1e-9, floor=Floor(enabled=False))
    (planned,) = make_plan(setup).bodies
    sim = Simulation(device, make_world(build_any(device, bodies).solid, setup))
    assert planned.n_bonds == pytest.approx(sim.n_bonds, rel=0.15)
    assert planned.length_scale == pytest.approx(sim.solid.length_scale[0], rel=0.05)


@pytest.mark.parametrize("motion, cause", [
    ({"velocity": (3e4, 0.0, 0.0)}, "the speed of body 'a'"),
    ({"angular_velocity": (0.0, 1e7, 0.0)}, "the speed of body 'a'"),
    ({}, "regions[1] on body 'a'")])
def test_what_moves_too_fast_for_a_step_is_foretold_and_slowed(
    device: Device, motion: dict[str, Any], cause: str
) -> None:
    bodies = [Body(name="a", material="glass", cells=(6, 4, 2), **motion)]
    materials = {"glass": Material(strain_limit=1e6)}
    regions = () if motion else (Region(size=(1.0, 1.0, 1.0), velocity=(0.0, 0.0, 3e4)),)
    fast = 2.0**-23
    setup = bond_setup(bodies=bodies, materials=materials, regions=regions, timestep=fast,
                       gravity=(0.0, 1.0, 0.0), floor=Floor(enabled=False))
    plan = make_plan(setup)
    key, sentence = plan.complaint() or ("", "")
    assert key == "sim.bonds.timestep" and cause in sentence

    def advance(timestep: float) -> None:
        settings = replace(setup.settings, timestep=timestep)
        sim = Simulation(device, make_world(
            build_solid(bodies), replace(setup, settings=settings)))
        sim.flight = None
        sim.advance(3)

    with pytest.raises(Unstable):
        advance(fast)
    advance(plan.auto_step)


def test_a_ball_stays_some_steps_in_the_shell_that_pushes() -> None:
    bodies = [Body(name="a", material="glass", cells=(4, 4, 4))]
    ball = Projectile(radius=0.01, position=(0.0, 0.0, 1.0), velocity=(0.0, 0.0, -1e6))
    plan = make_plan(bond_setup(bodies=bodies, materials={"glass": Material()},
                                projectiles=(ball,), timestep=2.0**-23))
    assert plan.auto_step * 1e6 * 3 < (1.5 - 0.75) * ball.radius
    assert "the flight of projectiles[1]" in (plan.complaint() or ("", ""))[1]


@pytest.mark.parametrize("layout", ["lattice"], indirect=True)
def test_memory_grows_as_the_arrays_of_the_simulation_do() -> None:
    # The plan says what a process has at its peak: the arrays, and copies of most of them.
    materials, device = {"glass": Material()}, open_device("cpu")

    def memory(cells: tuple[int, int, int], horizon: float) -> tuple[int, int]:
        bodies = [Body(name="a", material="glass", cells=cells)]
        setup = bond_setup(bodies=bodies, materials=materials, horizon=horizon,
                           floor=Floor(enabled=False))
        sim = Simulation(device, make_world(build_solid(bodies), setup))
        return make_plan(setup).memory, held_bytes(sim)

    small, wide, far = (memory(cells, horizon) for cells, horizon in (
        ((128, 64, 8), 2.0), ((128, 128, 8), 2.0), ((128, 128, 8), 6.0)))
    for (planned, held), (more_planned, more_held) in ((small, wide), (wide, far)):
        assert more_held > 1.2 * held
        assert more_held - held <= more_planned - planned <= 3.0 * (more_held - held)


def held_bytes(sim: Simulation) -> int:
    """Bytes of the arrays that a simulation and its parts hold, each once."""
    parts = [vars(part) for part in (
        sim, sim.solid, sim.layout, sim.particles, sim.bonds, sim._contact)]
    arrays = {id(array): array for part in parts for array in part.values()
              if isinstance(array, np.ndarray)}
    return sum(array.nbytes for array in arrays.values())


def test_the_pace_is_of_steps_that_were_done(device: Device, monkeypatch) -> None:
    # A clock that only steps move: 3 s each, twice as long in every second batch.
    done, now = [], [0.0]
    advance, bonds = Simulation.advance, []

    def watched(self: Simulation, n_steps: int) -> None:
        before = self.step
        advance(self, n_steps)
        assert self.flight is None
        assert self.step == before + n_steps
        assert self.energies()[1] > 0.0, "it swings: nothing may be jumped over"
        bonds.append(self.n_bonds)
        done.append(n_steps)
        now[0] += 3.0 * n_steps * (1 + len(done) % 2)

    monkeypatch.setattr(Simulation, "advance", watched)
    monkeypatch.setattr("vfx.sim.bonds.pace.time.perf_counter", lambda: now[0])
    body = Body(name="a", material="glass", cells=(8, 8, 2), velocity=(0.0, -5.0, 0.0))
    setup = bond_setup(bodies=[body], materials={"glass": Material()}, timestep=2.0**-25)
    pace = seconds_per_bond(device, body, Material(), setup.settings)
    assert len(done) > 2
    assert len(set(bonds)) == 1
    assert bonds[0] == make_plan(setup).n_bonds
    assert pace == pytest.approx(3.0 / bonds[0])


@pytest.mark.parametrize("shape", ["grid", "voronoi", "tet-shell"])
def test_what_is_said_of_regions_of_meshes_is_so_of_their_elements(shape: str) -> None:
    rng = np.random.default_rng(5)
    body = Body(name="b", material="g", mesh="asset:vase", height=0.3, elements=1500, shape=shape,
                center=(0.1, 0.0, -0.2), rotation=(30.0, -20.0, 50.0))
    solid = build_any(open_device("cpu"), [body]).solid
    regions = [Region(
        shape=str(rng.choice(["box", "sphere"])), fixed=True, radius=float(10**rng.uniform(-3, -1)),
        center=tuple(solid.position[rng.integers(len(solid.position))] + rng.normal(size=3) * 0.1),
        rotation=tuple(rng.normal(size=3) * 90), size=tuple(10**rng.uniform(-3, -1, 3)))
        for _ in range(200)]
    held = list(find_held(regions, [body]))
    for region, answer in zip(regions, held, strict=True):
        assert answer is Held.PERHAPS or (answer is Held.SOME) == members(region, solid).any()
    assert min(map(held.count, Held)) >= 10
