"""The camera's matrices and colours say what they should."""

from __future__ import annotations

import numpy as np
import pytest

from vfx.raytrace.camera import camera_view, frame_header, world_to_camera, world_to_ndc
from vfx.raytrace.color import film_from_rec709
from vfx.raytrace.settings import Camera, Film


def test_target_lies_in_the_middle_and_ahead():
    camera = Camera(position=(3.0, 2.0, 5.0), target=(0.5, 0.25, -1.0))
    view = camera_view(camera, Film())
    point = np.array([*camera.target, 1.0])
    seen = point @ world_to_camera(view)
    assert np.allclose(seen[:2], 0.0, atol=1e-12) and seen[2] < 0.0
    ndc = point @ world_to_ndc(view)
    assert np.allclose(ndc[:2] / ndc[3], 0.0, atol=1e-12)


def test_corner_of_the_film_is_corner_of_ndc():
    camera = Camera(position=(0.0, 0.0, 4.0), target=(0.0, 0.0, 0.0), focal_length=36.0,
                    film_width=36.0)
    view = camera_view(camera, Film(resolution=(200, 100)))
    corner = np.array([2.0, 1.0, 0.0, 1.0]) @ world_to_ndc(view)
    assert np.allclose(corner[:2] / corner[3], (1.0, 1.0))


@pytest.mark.parametrize(("settings", "message"), [
    ({"target": (0.0, 0.12, 0.4), "position": (0.0, 0.12, 0.4)}, "looks nowhere"),
    ({"position": (0.0, 1.0, 0.0), "target": (0.0, 0.0, 0.0)}, "along its up direction"),
])
def test_camera_that_sees_nothing_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        camera_view(Camera(**settings), Film())


def test_header_values_are_plain_for_any_rate():
    for fps in (24, 23.976, 25, 120):
        header = frame_header(Camera(), Film(color_space="linear-rec709"), fps, 1001)
        assert header["timeCode"].frame < 60
        assert header["colorInteropID"] == "lin_rec709_scene"
    assert frame_header(Camera(), Film(), 23.976, 1001)["framesPerSecond"] == pytest.approx(23.976)


def test_white_and_published_matrix_survive_conversion():
    matrix = film_from_rec709("acescg")
    assert np.allclose(matrix.sum(axis=1), 1.0, atol=1e-6)
    assert np.allclose(matrix, [[0.6131, 0.3395, 0.0474],
                                [0.0702, 0.9164, 0.0134],
                                [0.0206, 0.1096, 0.8698]], atol=2e-4)
    assert np.array_equal(film_from_rec709("linear-rec709"), np.eye(3))
