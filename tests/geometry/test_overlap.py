"""What bodies and balls share at rest is what closed forms say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.geometry.meshes import box, joined, sphere, write_obj
from vfx.geometry.divide.overlap import ball_depths, find_overlaps
from vfx.geometry.handoff.bodies import Body


def body(path, **settings) -> Body:
    return Body(material="clay", mesh=str(path), elements=1000, **settings)


@pytest.fixture
def ball(tmp_path):
    return write_obj(tmp_path / "ball.obj", sphere(rings=48))


@pytest.mark.parametrize("apart", [0.5, 1.0, 1.9])
def test_two_balls_share_a_lens(device, ball, apart):
    place = np.array([0.3, -2.0, 5.0])
    way = np.array([2.0, 1.0, -2.0]) / 3.0
    pair = [body(ball, name="a", center=tuple(place)),
            body(ball, name="b", center=tuple(place + apart * way), rotation=(10.0, 20.0, 30.0))]
    found, = find_overlaps(device, pair)
    assert found.names == ("a", "b")
    # Two caps of unit balls, each 1 - apart/2 high; the middle of the lens is between them.
    high = 1.0 - 0.5 * apart
    assert found.volume == pytest.approx(2.0 * np.pi * high**2 * (3.0 - high) / 3.0, rel=0.1)
    assert found.place == pytest.approx(place + 0.5 * apart * way, abs=0.05)


def test_bodies_that_touch_or_lie_in_a_hollow_share_nothing(device, ball, tmp_path):
    block = write_obj(tmp_path / "block.obj", box())
    stack = [body(block, name="low"), body(block, name="high", center=(0.0, 1.0, 0.0)),
             body(ball, name="far", center=(0.0, 2.51, 0.0))]
    assert not list(find_overlaps(device, stack))
    inner = box((0.9, 0.9, 0.9))
    hollow = write_obj(tmp_path / "hollow.obj", joined(
        box(), type(inner)(inner.vertex, inner.triangle[:, ::-1], None, None)))
    nested = [body(hollow, name="out"), body(ball, name="in", height=0.8)]
    assert not list(find_overlaps(device, nested))


@pytest.mark.parametrize("away", [0.0, 0.4, 1.0, 1.2, 1.6, 30.0])
def test_a_ball_reaches_as_deep_as_radii_and_distance_say(device, ball, away):
    way = np.array([2.0, 1.0, -2.0]) / 3.0
    thing = body(ball, center=(1.0, 2.0, 3.0), rotation=(10.0, 20.0, 30.0), height=4.0)
    center = np.array(thing.center) + 2.0 * away * way
    depth, = ball_depths(thing, center[None], np.array([0.5]))
    # Far away a bound is enough: it does not reach in.
    assert depth == pytest.approx(2.0 + 0.5 - 2.0 * away, abs=0.02) or (
        away > 1.25 and depth <= 0.0)
