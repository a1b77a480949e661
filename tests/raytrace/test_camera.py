"""The camera's matrices and colours say what they should."""

from __future__ import annotations

import numpy as np
import pytest

from vfx.raytrace.camera.camera import camera_view, frame_header, world_to_camera, world_to_ndc
from vfx.raytrace.film.color import film_from_rec709
from vfx.raytrace.film.exr import read_exr, write_exr
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
    header = frame_header(Camera(), Film(color_space="linear-rec709"), 24, 1001)
    assert header["colorInteropID"] == "lin_rec709_scene"
    assert frame_header(Camera(), Film(), 23.976, 1001)["framesPerSecond"] == pytest.approx(23.976)


@pytest.mark.parametrize("fps", [0.1, 1.0, 23.976, 24, 25, 29.97, 30, 31, 47.952, 48, 50, 59.94, 60,
                                 61, 90, 119.88, 120, 121, 240, 241, 479.9, 999.9, 1000])
def test_every_frame_of_any_rate_has_a_time_code_that_grows(tmp_path, fps):
    """To 60 frames a second each has its own; faster, those of two pairs or more share one."""
    rate = max(1, round(fps))
    codes = []
    for frame in (*range(2 * rate + 1), 9_999_999):
        code = frame_header(Camera(), Film(), fps, frame)["timeCode"]
        codes.append((code.hours, code.minutes, code.seconds, code.frame, code.fieldPhase))
    in_order, last = codes[:-1], codes[-1]
    seconds = [code[2] for code in in_order]
    assert seconds == [frame // rate % 60 for frame in range(2 * rate + 1)]
    assert in_order == sorted(in_order) or rate > 60
    assert [code[:4] for code in in_order] == sorted(code[:4] for code in in_order)
    assert max(code[3] for code in codes) < 30
    if rate <= 60:
        assert len(set(in_order)) == len(in_order)
    whole = 9_999_999 // rate
    assert last[:3] == (whole // 3600 % 24, whole // 60 % 60, whole % 60)


def test_a_time_code_of_a_fast_rate_survives_the_file(tmp_path):
    header = frame_header(Camera(), Film(resolution=(2, 2)), 60, 119)
    write_exr(tmp_path / "a.exr", {"R": np.zeros((2, 2))}, header)
    code = read_exr(tmp_path / "a.exr")[1]["timeCode"]
    assert (code.seconds, code.frame, code.fieldPhase) == (1, 29, 1)


def test_white_and_published_matrix_survive_conversion():
    matrix = film_from_rec709("acescg")
    assert np.allclose(matrix.sum(axis=1), 1.0, atol=1e-6)
    assert np.allclose(matrix, [[0.6131, 0.3395, 0.0474],
                                [0.0702, 0.9164, 0.0134],
                                [0.0206, 0.1096, 0.8698]], atol=2e-4)
    assert np.array_equal(film_from_rec709("linear-rec709"), np.eye(3))
