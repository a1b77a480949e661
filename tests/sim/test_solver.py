"""Laws of the bonds as a solver: times are met at the nearest step, and matter is handed over."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING
from tests.solids import build_solid
from vfx.bench.setups import bond_setup
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.solver import BondSolver
from vfx.sim.control.controls import make_controls, make_world
from vfx.sim.settings import Crack, Floor, Projectile, Region, Weakening
from vfx.sim.solver import Outcome, Solver

STEP = 2.0**-23
BODIES = [Body(name="plate", material="glass", cells=(8, 8, 2), spacing=SPACING)]
BALL = Projectile(radius=5e-3, position=(0.0, 0.0, -8e-3), velocity=(0.0, 0.0, 80.0))


def shot_plate(device: Device, **keys: object) -> Solver:
    """A small plate that a ball breaks."""
    setup = bond_setup(bodies=BODIES, materials={"glass": GLASS}, floor=Floor(enabled=False),
                       projectiles=[BALL], timestep=STEP, **keys)
    return BondSolver(device, make_world(build_solid(BODIES), setup))


def go_to(solver: Solver, time: float, seconds: float = 10.0) -> None:
    while solver.advance(time, seconds) is not Outcome.REACHED:
        pass


def test_times_are_met_at_the_nearest_step(device: Device) -> None:
    solver = shot_plate(device)
    for time, step in ((3.4 * STEP, 3), (3.6 * STEP, 4), (4.2 * STEP, 4), (10 * STEP, 10)):
        assert solver.moment(time) == step * STEP
        go_to(solver, time)
        assert solver.step == step and solver.time == solver.moment(time)
    frame = solver.frame(1002, 3.4 * STEP)
    assert frame.time == 10 * STEP


def test_pieces_of_time_change_no_bit(device: Device) -> None:
    whole, parts = shot_plate(device), shot_plate(device)
    go_to(whole, 400 * STEP)
    for k in range(1, 41):
        go_to(parts, 10 * k * STEP, seconds=1e-6)
    there, here = whole.state(), parts.state()
    assert len(whole.broken()) > 10
    assert all(np.array_equal(there[name], here[name]) for name in there)


def test_a_frame_has_what_broke_since_the_moment_before(device: Device) -> None:
    solver = shot_plate(device, cracks=[Crack(
        origin=(-0.1, 0.0, -0.1), u=(0.2, 0.0, 0.0), v=(0.0, 0.0, 0.2))])
    cut = solver.frame(1001, -np.inf).broken_edge
    assert len(cut) == 16 and np.array_equal(cut, solver.broken())
    go_to(solver, 200 * STEP)
    first = solver.frame(1002, 0.0).broken_edge
    go_to(solver, 400 * STEP)
    second = solver.frame(1003, solver.moment(200 * STEP)).broken_edge
    assert len(first) and len(second)
    every = np.sort(np.concatenate([cut, first, second]))
    assert np.array_equal(every, solver.broken())


def test_matter_that_is_placed_where_it_was_goes_on_as_before(device: Device) -> None:
    solver, other = shot_plate(device), shot_plate(device)
    go_to(solver, 300 * STEP)
    other.restore(solver.state())
    matter = solver.matter()
    assert 0.0 < matter.damage.max() <= 1.0 and len(matter.broken)
    other.place(matter)
    assert other.time == solver.time and other.step == 300
    assert np.array_equal(other.matter().position, matter.position)
    for each in (solver, other):
        go_to(each, 320 * STEP)
    moved = np.abs(solver.matter().position - matter.position).max()
    assert np.abs(solver.matter().position - other.matter().position).max() < 1e-3 * moved


def test_matter_that_broke_elsewhere_is_refused(device: Device) -> None:
    solver = shot_plate(device)
    matter = dataclasses.replace(solver.matter(), broken=np.array([3, 4], np.int32))
    with pytest.raises(ValueError, match="2 edges broke elsewhere"):
        solver.place(matter)


def test_driven_matter_that_is_placed_later_is_driven_on_from_there(device: Device) -> None:
    region = Region(size=(1.0, 1.0, 1.0), velocity=(0.0, 2.0, 0.0))
    setup = bond_setup(bodies=BODIES, materials={"glass": GLASS}, floor=Floor(enabled=False),
                       timestep=STEP, regions=[region])
    solver = BondSolver(device, make_world(build_solid(BODIES), setup))
    go_to(solver, 50 * STEP)
    matter = dataclasses.replace(solver.matter(), time=200 * STEP)
    solver.place(matter)
    go_to(solver, 210 * STEP)
    assert solver.matter().position[:, 1] == pytest.approx(
        matter.position[:, 1] + 10 * STEP * 2.0, abs=1e-15)


def test_controls_are_arrays_of_all_that_a_shot_does_to_its_elements() -> None:
    solid = build_solid(BODIES)
    setup = bond_setup(
        bodies=BODIES, materials={"glass": GLASS}, weak_factor=0.2,
        weakening=[Weakening(paths=2, length=0.01), Weakening(points=((0.0, 0.0, 0.0),)),
                   Weakening(points=((9.0, 0.0, 0.0),))],
        regions=[Region(center=(9.0, 0.0, 0.0), fixed=True),
                 Region(size=(4e-3, 1.0, 1.0), velocity=(1.0, 0.0, 0.0), strain_factor=3.0),
                 Region(size=(2e-3, 1.0, 1.0), fixed=True, until=0.5)],
        cracks=[Crack(origin=(1.0, 2.0, 3.0), u=(1.0, 0.0, 0.0), v=(0.0, 1.0, 0.0))])
    controls = make_controls(solid, setup, {})
    x = np.abs(solid.position[:, 0])
    assert [wall.number for wall in controls.walls] == [1]
    assert controls.unmet == (1, 3) and controls.idle_regions == (1,)
    weak, tough = controls.strength
    assert 0.2 <= weak.min() < 0.3 and weak.max() <= 1.0
    assert np.array_equal(tough, np.where(x < 2e-3, 3.0, 1.0))
    assert np.array_equal(controls.held, np.where(x < 1e-3, 2, np.where(x < 2e-3, 1, -1)))
    assert controls.drive.tolist() == [
        [0.0, 0.0, 0.0, np.inf], [1.0, 0.0, 0.0, np.inf], [0.0, 0.0, 0.0, 0.5]]
    assert controls.cuts.tolist() == [[[1.0, 2.0, 3.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
