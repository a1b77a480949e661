"""Which samples are taken where: progressive passes, adaptive to noise, at the shutter's times.

A pass adds a range of sample numbers to some tiles. Ranges and tiles follow from the settings and
from the sums on the film alone, and every pixel adds its samples in order: threads, chunks and
the order of tiles leave no trace.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy.ndimage import maximum_filter

from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.film import TILE, FilmSums
from vfx.raytrace.settings import Camera, Film


def motion_steps(camera: Camera, film: Film) -> int:
    """Return at how many times of the open shutter the scene is traced."""
    return min(film.motion_steps, film.samples) if camera.shutter_angle > 0.0 else 1


def sample_passes(film: Film, steps: int) -> Iterator[tuple[int, int]]:
    """Yield the first sample of each pass and the one behind its last, up to ``film.samples``.

    Without a noise target there is one pass; else each doubles the samples, and has at least one
    at every time of the shutter.
    """
    if film.noise_target == 0.0:
        yield 0, film.samples
        return
    end = min(film.samples, max(film.min_samples, steps))
    yield 0, end
    while end < film.samples:
        begin, end = end, min(film.samples, 2 * end)
        # No last pass that is too short to have every time of the shutter.
        if film.samples - end < steps:
            end = film.samples
        yield begin, end


def step_ranges(begin: int, end: int, steps: int) -> list[tuple[int, int]]:
    """Return which samples of a pass are taken at which time of the shutter.

    The numbers of one time follow one another, so that they are spread well over pixel and lens.
    """
    edge = [begin + (end - begin) * k // steps for k in range(steps + 1)]
    return list(itertools.pairwise(edge))


def noisy_tiles(sums: FilmSums, film: Film) -> Array:
    """Return the tiles (t,) int32 that need more samples: noisy ones and their neighbours.

    Neighbours count because few samples may have missed what a tile has little of.
    """
    rows, columns = -(-sums.window.height // TILE), -(-sums.window.width // TILE)
    noise = maximum_filter(sums.noise().reshape(rows, columns), size=3, mode="nearest")
    return np.flatnonzero(noise.ravel() > film.noise_target).astype(np.int32)
