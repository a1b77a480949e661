"""Previews: colours a person would expect, and pictures and movies that others can read."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vfx.pipeline.show.preview import REC709_FROM_ACESCG, display_pixels, read_display, shoulder


def test_white_stays_neutral_between_colour_spaces() -> None:
    assert np.allclose(REC709_FROM_ACESCG.sum(axis=1), 1.0, atol=1e-4)
    grey = np.full((1, 1, 3), 0.18)
    for space in ("acescg", "linear-rec709"):
        assert np.ptp(display_pixels(grey, space)) == 0
        assert display_pixels(grey, space)[0, 0, 0] == 118, "18 % grey in sRGB"


def test_the_shoulder_rises_smoothly_and_never_clips() -> None:
    x = np.linspace(0.0, 20.0, 200_001)
    y = shoulder(x)
    slope = np.diff(y) / np.diff(x)
    assert np.all(slope >= 0.0)
    assert y.max() <= 1.0
    assert np.abs(np.diff(slope)).max() < 1e-3
    assert np.array_equal(y[x <= 0.5], x[x <= 0.5])


def test_broken_pixels_do_not_break_the_preview() -> None:
    bad = np.array([[[np.nan, np.inf, -np.inf], [-1.0, 1e30, 0.0]]])
    pixels = display_pixels(bad, "linear-rec709")
    assert pixels.tolist() == [[[0, 255, 0], [0, 255, 0]]]


def test_a_run_ends_in_a_contact_sheet_and_a_movie(shot_file: Path, vfx) -> None:
    shot_file.write_text(shot_file.read_text().replace("[8, 6]", "[65, 37]"))
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    sheet, movie = (Path(f"work/plate/review/plate.{kind}") for kind in ("png", "mp4"))
    assert f"contact sheet: {sheet}" in result.output
    assert f"movie: {movie}" in result.output
    # Both show the frames, in order; a movie only nearly so.
    shown = [read_display(Path(f"work/plate/render/plate.{frame}.exr"), "acescg")
             for frame in range(1001, 1007)]
    assert all(np.abs(np.subtract(a, b, dtype=float)).mean() > 3.0
               for a, b in itertools.pairwise(shown))
    with Image.open(sheet) as image:
        pixels = np.asarray(image)
    for picture, (row, column) in zip(shown, itertools.product(range(2), range(3)), strict=True):
        top, left = 6 + row * (37 + 18 + 6), 6 + column * (65 + 6)
        assert np.array_equal(pixels[top:top + 37, left:left + 65], picture)
    import imageio_ffmpeg

    frames = imageio_ffmpeg.read_frames(str(movie))
    size = next(frames)["size"]
    assert size == (66, 38)
    moving = [np.frombuffer(frame, np.uint8).reshape(38, 66, 3) for frame in frames]
    assert len(moving) == 6
    for seen in moving:
        error = [np.abs(np.subtract(seen[:37, :65], picture, dtype=float)).mean()
                 for picture in shown]
        assert int(np.argmin(error)) == [m is seen for m in moving].index(True)


def test_without_ffmpeg_the_rest_still_works(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    assert "ffmpeg is missing" in result.output
    assert Path("work/plate/review/plate.png").exists()


def test_the_frames_of_a_log_are_flushed_lines(shot_file: Path) -> None:
    import chaotic_plate

    output = subprocess.run(
        [sys.executable, chaotic_plate.__file__, "run", str(shot_file)], capture_output=True,
        text=True, check=True, env={**os.environ, "OPENJD_SESSION": "1"}).stdout
    assert "sim 1006: 100% done" in output
    assert "openjd_progress: 100" in output


def test_a_contact_sheet_leaves_no_large_hole() -> None:
    from vfx.pipeline.show.preview import _columns

    assert _columns(24) == 6
    for count in range(1, 500):
        columns = _columns(count)
        rows = -(-count // columns)
        assert columns * rows - count <= max(3, columns // 2), "a hole in the last row"
        assert rows <= columns <= 3 * rows, "about square"
