"""A crack gapes where its sides lost bonds toward each other, not where all is damaged alike."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING, block
from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.matter.cracks import GAP_UNIT, GAPES, lost_ways
from vfx.sim.settings import Crack


def bonds_of(sim: Simulation, horizon: float) -> Array:
    """All pairs within the horizon, (k, 2)."""
    rest = sim.solid.position
    apart = np.linalg.norm(rest[:, None] - rest[None], axis=2)
    return np.argwhere(np.triu((apart > 0.0) & (apart < horizon * SPACING * 1.0001)))


def cut(sim: Simulation, pairs: Array) -> None:
    sim.bonds.clear(sim.particles, np.zeros(sim.solid.n_elements), pairs)


def plane_edges(sim: Simulation) -> Array:
    x = sim.solid.position[sim.solid.edge][:, :, 0]
    return np.flatnonzero((x[:, 0] < 0.0) != (x[:, 1] < 0.0))


@pytest.mark.parametrize("horizon", [2.0, 3.0])
def test_all_of_a_plane_crack_gapes_but_its_tip(device: Device, horizon: float) -> None:
    sim = block(device, (8, 8, 5), horizon=horizon)
    rest = sim.solid.position
    pairs = bonds_of(sim, horizon)
    crosses = (rest[pairs[:, 0], 0] < 0.0) != (rest[pairs[:, 1], 0] < 0.0)
    above = rest[pairs, 1].mean(axis=1) > rest[:, 1].mean()
    assert not len(sim.gaping_edges())
    cut(sim, pairs[crosses & above])
    plane = plane_edges(sim)
    height = rest[sim.solid.edge[plane, 0], 1] - rest[:, 1].mean()
    found = sim.gaping_edges()
    assert np.isin(found, plane[height > 0.0]).all()
    assert np.isin(plane[height > SPACING], found).all()
    # Nowhere else, when it has come through; and all of it, by far.
    cut(sim, pairs[crosses])
    assert np.array_equal(sim.gaping_edges(), plane)
    lost = lost_ways(rest, pairs[crosses]) / GAP_UNIT / sim.initial_bonds[:, None]
    least = np.abs(lost[sim.solid.edge[plane], 0]).mean(axis=1).min()
    assert least > 2.0 * GAPES


def test_what_is_damaged_alike_all_over_does_not_gape(device: Device) -> None:
    """All bonds along x, or nearly, are gone: every face across it is broken, none is a crack."""
    sim = block(device, (9, 5, 5), horizon=3.0)
    rest, pairs = sim.solid.position, bonds_of(sim, 3.0)
    way = np.abs(rest[pairs[:, 0]] - rest[pairs[:, 1]])
    cut(sim, pairs[way[:, 0] > way[:, 1:].sum(axis=1)])
    broken = sim.broken_edges(-1)[0]
    assert len(broken) == 8 * 25
    inside = np.abs(rest[sim.solid.edge[broken]][:, :, 0]).max(axis=1) < 2.5 * SPACING
    assert inside.any() and not np.isin(broken[inside], sim.gaping_edges()).any()


def test_cuts_gape_from_the_start_however_short(device: Device) -> None:
    one = Crack(origin=(0.0, 0.1 * SPACING, -1.0), u=(0.0, 1.0, 0.0), v=(0.0, 0.0, 2.0))
    sim = block(device, (6, 4, 3), horizon=3.0, cracks=[one])
    place = sim.solid.position[sim.solid.edge]
    crossing = np.flatnonzero((place[:, 0, 0] * place[:, 1, 0] < 0.0)
                              & (place[:, 0, 1] > 0.0))
    assert len(crossing) and np.array_equal(sim.gaping_edges(), crossing)
    assert np.array_equal(sim.frame(1, -1).torn_edge, crossing)


def test_lost_ways_are_what_the_law_adds_up(device: Device) -> None:
    """Where bonds have a strength the kernel keeps the same sums, to the rounding of one unit."""
    for strong in (False, True):
        material = dataclasses.replace(GLASS, strength=6e7, fracture_energy=10.0)
        sim = block(device, (8, 5, 4), horizon=3.0, material=material if strong else GLASS)
        pairs = bonds_of(sim, 3.0)
        rest = sim.solid.position
        gone = pairs[(rest[pairs[:, 0], 0] < 0.0) != (rest[pairs[:, 1], 0] < 0.0)]
        cut(sim, gone)
        sim.open_cracks()
        assert sim.has_cracks == strong
        if strong:
            assert np.array_equal(sim._on_host(sim.particles.lost), lost_ways(rest, gone))
        assert np.array_equal(sim.gaping_edges(), plane_edges(sim))
