"""More samples go where the noise is, the picture stays the same one, and noise goes away."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from vfx.device import open_device
from vfx.raytrace.film.denoise import denoised
from vfx.raytrace.film.sampling import sample_passes, step_ranges
from vfx.raytrace.render import render_picture
from vfx.raytrace.settings import Camera, Film, FloorLook, Light

CAMERA = Camera(position=(0.9, 0.8, 1.4), target=(0.0, 0.1, 0.0))
SKY = np.random.default_rng(1).gamma(0.3, size=(16, 32, 3)).astype(np.float32)


@pytest.fixture
def shoot(make_solid, make_pieces, floor_plane):
    device = open_device("cpu")
    solid = make_solid((6, 6, 6), spacing=0.08, center=(0.0, 0.3, 0.0))
    pieces = make_pieces(solid, pieces=9, spread=0.05, turn=0.3)

    def picture(threads=2, **settings):
        before, device.threads = device.threads, threads
        film = Film(**{"resolution": (88, 64), "samples": 64, "color_space": "linear-rec709"}
                    | settings)
        made = render_picture(device, solid, pieces, CAMERA, Light(), {}, floor_plane(),
                              FloorLook(), film, SKY)
        device.threads = before
        return made

    return picture


@pytest.mark.parametrize(("samples", "least", "steps"), [(64, 8, 1), (100, 8, 16), (5, 8, 5),
                                                        (33, 4, 16), (17, 1, 1), (4096, 7, 16)])
def test_passes_take_every_sample_once_and_every_time_of_the_shutter(samples, least, steps):
    for target in (0.0, 0.01):
        film = Film(samples=samples, min_samples=least, noise_target=target)
        ranges = list(sample_passes(film, steps))
        taken = [s for begin, end in ranges for s in range(begin, end)]
        assert taken == list(range(samples))
        for begin, end in ranges:
            parts = step_ranges(begin, end, steps)
            assert [s for a, b in parts for s in range(a, b)] == list(range(begin, end))
            assert all(b > a for a, b in parts)


def test_noise_target_is_met_with_fewer_samples(shoot):
    """The true error, against a picture of many samples, is about what was asked for."""
    reference = shoot(samples=256).channels
    full = shoot()
    assert full.samples == 64.0
    errors = []
    for target in (0.06, 0.03):
        made = shoot(noise_target=target, min_samples=8)
        bright = [0.2126 * c["R"] + 0.7152 * c["G"] + 0.0722 * c["B"]
                  for c in (made.channels, reference)]
        error = np.abs(bright[0] - bright[1]) / np.sqrt(bright[1] + 0.01)
        assert made.samples < 64.0
        errors.append(np.sqrt(np.mean(error**2)))
        assert errors[-1] < 1.2 * target
    assert errors[1] < errors[0]


def test_same_picture_from_any_number_of_threads(shoot):
    pictures = [shoot(threads, samples=32, noise_target=0.03, lighting="path")
                for threads in (1, 2)]
    assert pictures[0].samples == pictures[1].samples
    for name, values in pictures[0].channels.items():
        assert np.array_equal(values, pictures[1].channels[name]), name
    for name, values in pictures[0].matte_channels.items():
        assert np.array_equal(values, pictures[1].matte_channels[name]), name


def test_frames_have_noise_of_their_own(shoot, make_solid, make_pieces, floor_plane):
    device = open_device("cpu")
    solid = make_solid((4, 4, 4), spacing=0.1)
    film = Film(resolution=(48, 32), samples=1)
    pieces = make_pieces(solid)
    first, second = (render_picture(
        device, solid, dataclasses.replace(pieces, frame=frame), CAMERA, Light(), {},
        floor_plane(), FloorLook(), film, SKY).channels for frame in (1001, 1002))
    assert not np.array_equal(first["R"], second["R"])
    assert np.array_equal(first["P.X"], second["P.X"])


def test_denoiser_brings_the_picture_nearer_to_the_truth(shoot):
    pytest.importorskip("pyoidn")
    reference = shoot(samples=256).channels
    noisy = shoot(samples=2, lighting="harmonic").channels
    smooth = shoot(samples=2, denoise=True).channels
    error = [np.sqrt(np.mean((c["G"] - reference["G"])**2)) for c in (noisy, smooth)]
    assert error[1] < 0.7 * error[0]
    assert np.array_equal(noisy["A"], smooth["A"])


def test_missing_denoiser_is_said_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyoidn", None)
    picture = np.ones((4, 4, 3), np.float32)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'vfx-fracture\[denoise\]'"):
        denoised(picture, picture, picture)
