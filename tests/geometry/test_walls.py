"""How thick walls are, straight in from their surface, whatever they stand on."""

from __future__ import annotations

import numpy as np
import pytest

from vfx.device import open_device
from vfx.geometry.divide.filling import Filling
from vfx.geometry.divide.sources import box_surface
from vfx.geometry.divide.walls import chords, is_wall, wall_thickness
from vfx.geometry.handoff.bodies import Body


@pytest.mark.parametrize("edges", [(1.0, 1.0, 1.0), (1.0, 0.01, 0.7), (2e-3, 3e-3, 1e-3)])
def test_across_a_box_it_is_as_far_as_its_edges(edges: tuple[float, float, float]) -> None:
    surface = box_surface(edges)
    found = chords(Filling(open_device("cpu"), surface), surface)
    x, y, z = edges
    whole = x * y + y * z + z * x
    for edge in set(edges):
        # As many as their share of the surface.
        share = np.isclose(found, edge, rtol=5e-3).mean()
        expected = sum(x * y * z / e for e in edges if e == edge) / whole
        assert share == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(("asset", "thick"), [("vase", 7e-3), ("bowl", 6e-3), ("mug", 4.5e-3)])
def test_walls_of_vessels_are_as_thick_as_they_were_made(asset: str, thick: float) -> None:
    body = Body(material="glass", mesh=f"asset:{asset}", elements=1000)
    assert wall_thickness(body) == pytest.approx(thick, rel=0.1)
    assert is_wall(body)


def test_a_ball_has_no_walls_and_edges_are_none() -> None:
    ball = Body(material="glass", mesh="asset:sphere", height=0.2, elements=1000)
    assert wall_thickness(ball) == pytest.approx(0.2, rel=0.01)
    # The flutes of a column end in edges.
    column = Body(material="glass", mesh="asset:column", elements=1000)
    assert wall_thickness(column) > 0.03
    assert not is_wall(ball)


@pytest.mark.parametrize("body", [
    Body(material="glass", cells=(20, 30, 2), spacing=1e-3),
    Body(material="glass", box=(0.02, 0.03, 2e-3), shape="voronoi", elements=100)])
def test_of_a_box_the_least_edge_counts(body: Body) -> None:
    assert wall_thickness(body) == pytest.approx(2e-3)
    assert is_wall(body)
