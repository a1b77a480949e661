"""Pieces are what bonds hold: crumbs that long bonds still hold are no pieces of their own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING, block
from tests.solids import build_solid
from vfx.bench.setups import bond_setup
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.bonds.solver import BondSolver
from vfx.sim.control.controls import make_world
from vfx.sim.matter.held import joined
from vfx.sim.settings import Floor


@pytest.mark.parametrize("n_live, label", [(40, [0, 1]), (50, [0, 1]), (51, [0, 0])])
def test_two_are_one_while_most_bonds_hold(n_live: int, label: list[int]) -> None:
    live, lost = np.tile([0, 1], (n_live, 1)), np.tile([1, 0], (100 - n_live, 1))
    assert joined(np.array([0, 1]), live, lost).tolist() == label


def test_a_crumb_goes_to_the_side_that_holds_it_best() -> None:
    label = np.array([0, 0, 1, 2, 2])
    live = np.array([[0, 2]] * 6 + [[2, 3]] * 9)
    lost = np.array([[1, 2]] * 9 + [[2, 4]] * 1 + [[0, 4]] * 50)
    found = joined(label, live, lost)
    assert found[2] == found[3] == found[4] != found[0] == found[1]


def test_nothing_is_joined_without_bonds() -> None:
    none = np.zeros((0, 2), np.int64)
    assert joined(np.array([0, 1, 1]), none, np.array([[0, 1]])).tolist() == [0, 1, 1]


def cut_out(sim: Simulation, element: int, reach: float) -> Array:
    """Cut the bonds of an element up to a length; return the edges of its faces."""
    rest = sim.solid.position
    others = np.flatnonzero(np.linalg.norm(rest - rest[element], axis=1) < reach * SPACING)
    others = others[others != element]
    sim.bonds.clear(sim.particles, np.zeros(len(rest)), np.sort(np.column_stack(
        [np.full(len(others), element), others]), axis=1))
    return np.flatnonzero((sim.solid.edge == element).any(axis=1))


@pytest.mark.warp
def test_an_element_whose_faces_are_cut_is_held_by_the_rest(device: Device) -> None:
    for pieces, reach, is_open in (("faces", 1.1, True), ("held", 1.1, False),
                                   ("held", 9.0, True)):
        sim = block(device, (7, 7, 7), horizon=3.0, pieces=pieces)
        faces = cut_out(sim, 171, reach)
        assert len(faces) == 6
        assert np.array_equal(sim.open_edges(), faces if is_open else faces[:0]), (pieces, reach)


def test_frames_tell_what_parted_since_the_last_one(device: Device) -> None:
    body = Body(name="block", material="glass", cells=(12, 5, 4), spacing=SPACING)
    world = make_world(build_solid([body]), bond_setup(
        bodies=[body], floor=Floor(enabled=False), horizon=3.0, gravity=(0.0, 0.0, 0.0),
        timestep=1e-8, pieces="held", materials={"glass": GLASS}))
    solver = BondSolver(device, world)
    velocity = np.zeros_like(world.solid.position)
    velocity[:, 0] = 20.0 * np.sign(world.solid.position[:, 0])
    solver.simulation.place(world.solid.position, velocity)
    told, since = [], -1.0
    for frame in range(1, 13):
        solver.advance(frame * 5e-6, 1e9)
        while solver.time < frame * 5e-6 - 1e-9:
            solver.advance(frame * 5e-6, 1e9)
        motion = solver.frame(frame, since)
        told.append(motion.broken_edge)
        since = solver.time
        assert np.array_equal(np.sort(np.concatenate(told)), solver.broken())
        # Where it comes apart a crack gapes.
        assert np.isin(motion.torn_edge, solver.simulation.broken_edges(-1)[0]).all()
    # It parts in the middle, of which each frame tells what is new.
    middle = np.abs(world.solid.position[world.solid.edge].mean(axis=1)[:, 0]) < 1e-9
    assert np.isin(np.flatnonzero(middle), solver.broken()).all() and middle.sum() == 20
    assert np.isin(np.flatnonzero(middle), motion.torn_edge).all()
    state = {name: value.copy() for name, value in solver.state().items()}
    again = BondSolver(device, world)
    again.restore(state)
    assert np.array_equal(again.broken(), solver.broken())
    with pytest.raises(ValueError, match="opened"):
        again.restore({name: value for name, value in state.items() if name != "opened"})
