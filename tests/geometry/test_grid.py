"""Laws of boxes of cubes: counts, volumes, edges, faces, and what is refused."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

from tests.solids import build_solid
from vfx.geometry.divide.build import solid_bytes
from vfx.geometry.divide.check import check_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.cube_faces import grid_faces
from vfx.geometry.handoff.faces import Faces, face_normals
from vfx.geometry.handoff.types import Solid

sizes = st.tuples(*[st.integers(1, 5)] * 3)
angles = st.tuples(*[st.floats(-180, 180)] * 3)
places = st.tuples(*[st.floats(-10, 10)] * 3)
spacings = st.floats(1e-4, 2.0)


def body(name: str = "block", **changes: object) -> Body:
    return Body(**{"name": name, "material": "glass", "cells": (2, 3, 4), **changes})


@settings(max_examples=60, deadline=None)
@given(sizes, spacings, places, angles)
def test_counts_and_volumes_are_those_of_the_box(cells, spacing, center, rotation):
    solid = build_solid([body(cells=cells, spacing=spacing, center=center, rotation=rotation)])
    nx, ny, nz = cells
    assert solid.n_elements == nx * ny * nz
    assert len(solid.edge) == (nx - 1) * ny * nz + nx * (ny - 1) * nz + nx * ny * (nz - 1)
    assert solid.volume.sum() == pytest.approx(math.prod(n * spacing for n in cells), rel=1e-12)
    np.testing.assert_allclose(solid.position.mean(axis=0), center, atol=1e-12 * (10 + spacing))


@settings(max_examples=40, deadline=None)
@given(sizes, spacings, places, angles)
def test_edges_join_exactly_the_particles_lambda_apart(cells, spacing, center, rotation):
    solid = build_solid([body(cells=cells, spacing=spacing, center=center, rotation=rotation)])
    apart = np.linalg.norm(solid.position[:, None] - solid.position[None], axis=2)
    expected = np.argwhere(np.triu(np.abs(apart - spacing) < 0.1 * spacing))
    np.testing.assert_array_equal(solid.edge, expected)


def test_rotation_is_about_x_then_y_then_z():
    # A row along z: a quarter turn about x lays it along -y, one about z then along +x.
    solid = build_solid([body(cells=(1, 1, 2), spacing=1.0, rotation=(90.0, 0.0, 90.0))])
    step = solid.position[1] - solid.position[0]
    np.testing.assert_allclose(step, [1.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(solid.orientation[0][:, 2], step, atol=1e-15)


def test_bodies_follow_one_another_and_share_no_edge():
    first = body("a", cells=(2, 2, 2), spacing=0.5)
    second = body("b", cells=(3, 1, 1), spacing=0.1, center=(3.0, 0.0, 0.0), material="clay")
    solid = build_solid([first, second])
    assert solid.body.tolist() == [0] * 8 + [1] * 3
    assert solid.edge[-2:].tolist() == [[8, 9], [9, 10]]
    assert (solid.body[solid.edge[:, 0]] == solid.body[solid.edge[:, 1]]).all()
    assert solid.body_name.tolist() == ["a", "b"]
    assert solid.material_name.tolist() == ["glass", "clay"]
    np.testing.assert_array_equal(solid.length_scale, [0.5, 0.1])
    for array, dtype in ((solid.position, np.float64), (solid.body, np.int32),
                         (solid.cell, np.int32), (solid.edge, np.int32)):
        assert array.dtype == dtype and array.flags.c_contiguous


def test_a_solid_survives_the_way_through_arrays():
    solid = build_solid([body("a"), body("b", center=(1.0, 0.0, 0.0))])
    again = Solid.from_arrays(solid.to_arrays())
    check_solid(again)
    np.testing.assert_array_equal(again.position, solid.position)


def corners(faces: Faces) -> np.ndarray:
    """Return where the corners of faces are that all have four, (f, 4, 3)."""
    assert (np.diff(faces.start) == 4).all()
    return faces.vertex[faces.corner].reshape(-1, 4, 3)


def face_normal(corner: np.ndarray) -> np.ndarray:
    """Return the area vectors (f, 3) of quadrilaterals by the right-hand rule."""
    return 0.5 * np.cross(corner[:, 2] - corner[:, 0], corner[:, 3] - corner[:, 1])


@settings(max_examples=40, deadline=None)
@given(sizes, spacings, places, angles)
def test_every_face_stands_once_with_its_normal_outwards(cells, spacing, center, rotation):
    solid = build_solid([body(cells=cells, spacing=spacing, center=center, rotation=rotation)])
    faces = grid_faces(solid)
    nx, ny, nz = cells
    m = len(solid.edge)
    assert len(faces.side) == m + 2 * (nx * ny + ny * nz + nz * nx)
    np.testing.assert_array_equal(faces.side[:m], solid.edge)
    assert (faces.side[m:, 1] == -1).all()
    # Each cube has six faces, counting those that point into it.
    uses = np.bincount(faces.side[faces.side >= 0], minlength=solid.n_elements)
    assert (uses == 6).all()

    area = face_normal(corners(faces))
    np.testing.assert_allclose(face_normals(faces), area, atol=1e-12 * (10 + spacing))
    middle = corners(faces).mean(axis=1)
    out = middle - solid.position[faces.side[:, 0]]
    np.testing.assert_allclose(area, 2 * out * spacing, atol=1e-12 * (10 + spacing))
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), spacing / 2, rtol=1e-9)
    to_neighbor = middle[:m] - solid.position[faces.side[:m, 1]]
    np.testing.assert_allclose(to_neighbor, -out[:m], atol=1e-11)


@settings(max_examples=40, deadline=None)
@given(sizes, spacings, places, angles)
def test_boundary_encloses_the_box_volume_and_area(cells, spacing, center, rotation):
    solid = build_solid([body(cells=cells, spacing=spacing, center=center, rotation=rotation)])
    faces = grid_faces(solid)
    outer = corners(faces)[faces.side[:, 1] < 0]
    area = face_normal(outer)
    lx, ly, lz = (n * spacing for n in cells)
    assert np.linalg.norm(area, axis=1).sum() == pytest.approx(
        2 * (lx * ly + ly * lz + lz * lx), rel=1e-9)
    np.testing.assert_allclose(area.sum(axis=0), 0, atol=1e-11 * (lx + ly + lz) ** 2)
    volume = ((outer.mean(axis=1) - center) * area).sum() / 3
    assert volume == pytest.approx(lx * ly * lz, rel=1e-9)


def test_faces_of_a_body_share_corners_bit_for_bit():
    solid = build_solid([
        body("a", cells=(3, 4, 2), rotation=(12.0, 34.0, 56.0), center=(9.0, 8.0, 7.0)),
        body("b", cells=(1, 1, 1), rotation=(5.0, 6.0, 7.0))])
    faces = grid_faces(solid)
    assert len(np.unique(faces.vertex, axis=0)) == len(faces.vertex) == 4 * 5 * 3 + 8
    assert (np.unique(faces.corner) == np.arange(len(faces.vertex))).all()


def test_the_paper_plate_has_its_number_of_particles_and_faces():
    solid = build_solid([body("plate", cells=(128, 128, 8))])
    faces = grid_faces(solid)
    assert solid.n_elements == 131_072
    assert len(faces.side) == 3 * 131_072 + 128 * 128 + 2 * 128 * 8


def common_ball(a: Body, b: Body) -> float:
    """Return the radius of the largest ball inside both boxes, negative if they are apart."""
    rows, limits = [], []
    for box in (a, b):
        normal = Rotation.from_euler("xyz", box.rotation, degrees=True).as_matrix().T
        for sign in (1.0, -1.0):
            rows += [[*(sign * n), 1.0] for n in normal]
            limits += list(np.array(box.cells) * box.spacing / 2 + sign * normal @ box.center)
    best = linprog([0, 0, 0, -1], A_ub=rows, b_ub=limits, bounds=[(None, None)] * 4)
    return float(best.x[3])


@settings(max_examples=100, deadline=None)
@given(sizes, sizes, angles, angles, st.tuples(*[st.floats(-4, 4)] * 3))
def test_bodies_are_refused_just_when_a_linear_program_finds_them_to_overlap(
        cells_a, cells_b, turn_a, turn_b, shift):
    a = body("a", cells=cells_a, spacing=1.0, rotation=turn_a)
    b = body("b", cells=cells_b, spacing=1.0, rotation=turn_b, center=shift)
    ball = common_ball(a, b)
    if ball > 1e-5:
        with pytest.raises(ValueError, match="'a' and 'b' overlap"):
            build_solid([a, b])
    elif ball < -1e-5:
        build_solid([a, b])


def test_bodies_may_touch_and_corners_may_pass_close():
    build_solid([body("a", cells=(2, 2, 2), spacing=0.1),
                 body("b", cells=(2, 2, 2), spacing=0.1, center=(0.2, 0.0, 0.0))])
    # The bounding boxes of these overlap, the turned boxes do not.
    build_solid([body("a", cells=(1, 1, 9), spacing=0.1, rotation=(0.0, 45.0, 0.0)),
                 body("b", cells=(1, 1, 9), spacing=0.1, rotation=(0.0, 45.0, 0.0),
                      center=(0.1, 0.0, -0.1))])


@pytest.mark.parametrize(("bodies", "says"), [
    ([], "no body"),
    ([body(cells=(3, 0, 2))], "each must be at least 1"),
    ([body(spacing=-1.0)], "spacing"),
    ([body(spacing=float("nan"))], "spacing"),
    ([body(center=(0.0, float("inf"), 0.0))], "finite"),
    ([body(center=(1e9, 0.0, 0.0))], "too far"),
    ([body("a"), body("a", center=(1.0, 0.0, 0.0))], "called 'a'"),
    ([body(cells=(2000, 2000, 2000))], "8,000,000,000 elements"),
])
def test_bodies_that_cannot_be_built_are_refused_with_a_sentence(bodies, says):
    with pytest.raises(ValueError, match=says):
        build_solid(bodies)


def damaged(**changes: object) -> Solid:
    """Return a sound solid with fields changed by functions of their old value."""
    solid = build_solid([body("a", cells=(2, 3, 2)), body("b", center=(1.0, 0.0, 0.0))])
    return dataclasses.replace(solid, **{
        name: change(getattr(solid, name).copy()) for name, change in changes.items()})


def put(value: object, *index: object):
    """Return a function that sets ``value`` at ``index`` of an array and returns it."""
    def change(array: np.ndarray) -> np.ndarray:
        array[index] = value
        return array
    return change


@pytest.mark.parametrize(("changes", "says"), [
    ({"volume": put(0.0, 3)}, "volume is not lambda"),
    ({"volume": put(2e-9, 3)}, "volume is not lambda"),
    ({"position": put(np.nan, 5, 1)}, "not finite"),
    ({"position": lambda p: p[[0, *range(len(p) - 1)]]}, "off its lattice"),
    ({"position": lambda p: p * 1.001}, "off its lattice"),
    ({"length_scale": lambda s: s * 2}, "volume is not lambda"),
    ({"cell": put((0, 0, 1), 0)}, "two in one"),
    ({"cell": put(-1, 0, 0)}, "negative cell"),
    ({"body": lambda b: b[::-1].copy()}, "body order"),
    ({"edge": lambda e: e[:-1]}, "share a face"),
    ({"edge": lambda e: e[[0, *range(len(e) - 1)]]}, "stands twice"),
    ({"edge": lambda e: e[::-1].copy()}, "not sorted"),
    ({"edge": lambda e: e[:, ::-1].copy()}, "lower element first"),
    ({"edge": put(999, -1, 1)}, "outside"),
    ({"edge": put((14, 35), -1)}, "not sorted"),
    ({"edge": put((10, 35), -1)}, "not sorted"),
    ({"edge": lambda e: np.sort(np.append(e, [[34, 36]], axis=0), axis=0)}, "outside"),
    ({"edge": put((0, 3), 1)}, "share a face"),
    ({"orientation": put(2.0, 0, 0, 0)}, "orthonormal"),
    ({"orientation": put(-1.0, 0, 0, 0)}, "reflection"),
])
def test_a_damaged_solid_is_refused_with_a_sentence(changes, says):
    with pytest.raises(ValueError, match=says):
        check_solid(damaged(**changes))


def test_the_memory_estimate_covers_the_peak_and_is_not_wild():
    bodies = [body("a", cells=(40, 40, 10)), body("b", cells=(30, 20, 20), center=(1.0, 0, 0))]
    tracemalloc.start()
    build_solid(bodies)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < solid_bytes(bodies) < 3 * peak


def test_the_memory_estimate_of_an_enormous_grid_does_not_overflow():
    cells = (100_000, 100_000, 100_000)
    assert solid_bytes([body(cells=cells)]) > 48 * math.prod(cells)
