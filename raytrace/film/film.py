"""The film: its windows, and sums of samples for every pixel, tile by tile.

A sample adds to its own pixel only, with weight one: camera rays are drawn through the pixel
filter, so light, coverage and Cryptomattes are all filtered alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.products import along
from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.color import LUMINANCE
from vfx.raytrace.scene import Rays, Samples
from vfx.raytrace.settings import Film

#: Edge of a tile [pixels], as in camera.cu.
TILE = 8
#: Columns of the sums, as in film.cu: radiance, its three parts, cover, shade, the squared
#: brightness, albedo, surface and fracture.
FILM_FLOATS = 22
#: MATTE_SLOTS of film.cu.
MATTE_SLOTS = 12
#: Rays that are in memory at once.
CHUNK_RAYS = 1 << 18
#: The brightness to which noise is compared where a pixel is dark.
DARK = 0.01


@dataclass(frozen=True)
class Window:
    """A rectangle of pixels; x and y count from the top left of the picture, to its corner."""

    x: int
    y: int
    width: int
    height: int

    @property
    def n_tiles(self) -> int:
        """Tiles that cover it."""
        return -(-self.width // TILE) * -(-self.height // TILE)

    def attributes(self, resolution: tuple[int, int]) -> dict[str, tuple[Array, Array]]:
        """Return the two windows of an EXR header, whose corners are inclusive."""
        corner = np.array([self.x, self.y], np.int32)
        return {
            "displayWindow": (np.zeros(2, np.int32), np.array(resolution, np.int32) - 1),
            "dataWindow": (corner, corner + np.array([self.width, self.height], np.int32) - 1)}


def data_window(film: Film) -> Window:
    """Return the part of the picture that is rendered, with its overscan."""
    if film.crop:
        return Window(*film.crop)
    width, height = film.resolution
    return Window(-film.overscan, -film.overscan, width + 2 * film.overscan,
                  height + 2 * film.overscan)


class FilmSums:
    """Sums of all samples of a picture, on the device."""

    def __init__(self, device: Device, window: Window, *, has_background: bool = True) -> None:
        self.device = device
        self.window = window
        self.has_background = has_background
        shape = (window.height, window.width)
        xp = device.xp
        self.sums = xp.zeros((*shape, FILM_FLOATS), xp.float32)
        self.count = xp.zeros(shape, xp.int32)
        self.matte_key = xp.zeros((*shape, MATTE_SLOTS), xp.int32)
        self.matte_count = xp.zeros((*shape, MATTE_SLOTS), xp.uint16)

    def add(self, rays: Rays, samples: Samples, n_tiles: int, n_samples: int) -> None:
        """Add the samples of rays that come in the order of camera.cu."""
        self.device.module("raytrace/film/film.cu").add_samples(
            n_tiles * TILE * TILE, n_samples, int(self.has_background), rays.index,
            samples.radiance, samples.diffuse, samples.specular, samples.refraction,
            samples.cover, samples.shade, self.sums, self.count)

    def add_features(self, rays: Rays, described: dict[str, Any], n_tiles: int,
                     n_samples: int) -> None:
        """Add what rays meet first, as :meth:`Scene.describe` has it for each ray."""
        self.device.module("raytrace/film/film.cu").add_features(
            n_tiles * TILE * TILE, n_samples, rays.index, described["albedo"],
            described["identity"], self.sums, self.matte_key, self.matte_count)

    def means(self) -> dict[str, Array]:
        """Return the means over all samples, on the host, (height, width, ...).

        ``beauty`` has four columns: alpha is what is covered, and what a catcher's shadow takes.
        ``shadow`` is the share of light that does not come to the first surface. ``matte`` has
        the coverage of each slot, and ``key`` what it is.
        """
        count = np.maximum(self.device.to_host(self.count), 1).astype(np.float32)[..., None]
        mean = self.device.to_host(self.sums) / count
        lit, open_ = mean[..., 14], mean[..., 15]
        shadow = np.clip(1.0 - lit / np.maximum(open_, 1e-20), 0.0, 1.0)
        shadow[open_ <= 0.0] = 0.0
        alpha = mean[..., 12] + mean[..., 13] * shadow
        return {
            "beauty": np.concatenate([np.maximum(mean[..., :3], 0.0), alpha[..., None]], axis=-1),
            "diffuse": mean[..., 3:6], "specular": mean[..., 6:9], "refraction": mean[..., 9:12],
            "shadow": shadow, "albedo": mean[..., 17:20], "mask": mean[..., 20:22],
            "key": self.device.to_host(self.matte_key),
            "matte": self.device.to_host(self.matte_count) / count}

    def noise(self) -> Array:
        """Return the largest relative standard error of every tile's pixels, (tiles,) float64.

        The error of a pixel's brightness is compared to the root of the brightness, as the eye
        does. Pixels without two samples count as endlessly noisy.
        """
        sums = self.device.to_host(self.sums).astype(np.float64)
        count = self.device.to_host(self.count).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            bright = along(sums[..., :3], LUMINANCE) / count
            variance = np.maximum(sums[..., 16] / count - bright**2, 0.0) * count / (count - 1.0)
            error = np.sqrt(variance / count) / np.sqrt(np.maximum(bright, 0.0) + DARK)
        error[count < 2.0] = np.inf
        rows, columns = -(-self.window.height // TILE), -(-self.window.width // TILE)
        padded = np.zeros((rows * TILE, columns * TILE))
        padded[:self.window.height, :self.window.width] = error
        worst: Array = padded.reshape(rows, TILE, columns, TILE).max(axis=(1, 3)).ravel()
        return worst


def tile_chunks(tiles: Array, first: int, n_samples: int) -> Iterator[tuple[Array, int, int]]:
    """Yield (some of ``tiles``, first sample, number of samples), each a chunk of rays.

    All samples of a tile come before those of later tiles, in order.
    """
    at_once = min(max(n_samples, 1), max(1, CHUNK_RAYS // TILE**2))
    tiles_at_once = max(1, CHUNK_RAYS // (TILE**2 * at_once))
    for begin in range(0, len(tiles), tiles_at_once):
        for sample in range(0, max(n_samples, 1), at_once):
            yield (tiles[begin:begin + tiles_at_once], first + sample,
                   min(at_once, max(n_samples, 1) - sample))


def data_passes(device: Device, *shape: int) -> dict[str, Any]:
    """Return empty values of ``shape`` places on the device, as :meth:`Scene.describe` fills."""
    xp = device.xp
    depths = {"distance": 1, "normal": 3, "position": 3, "albedo": 3}
    passes = {name: xp.zeros((*shape, depth), xp.float32) for name, depth in depths.items()}
    passes["identity"] = xp.full((*shape, 4), -1, xp.int32)
    return passes
