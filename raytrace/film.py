"""The film: sums of samples for every pixel, and the tiles in which they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff import Array
from vfx.raytrace.camera import TILE
from vfx.raytrace.scene import Rays, Samples

#: Columns of the sums: radiance, its three parts, cover, shade.
FILM_FLOATS = 16
#: Rays that are in memory at once.
CHUNK_RAYS = 1 << 18


class FilmSums:
    """Sums of all samples of a picture, on the device."""

    def __init__(self, device: Device, width: int, height: int) -> None:
        self.device = device
        self.shape = (height, width)
        self.sums = device.xp.zeros((height, width, FILM_FLOATS), device.xp.float32)

    def add(self, rays: Rays, samples: Samples, n_tiles: int, n_samples: int) -> None:
        """Add the samples of rays that come in the order of camera.cu."""
        self.device.module("raytrace/film.cu").add_samples(
            n_tiles * TILE * TILE, n_samples, rays.pixel, samples.radiance, samples.diffuse,
            samples.specular, samples.refraction, samples.cover, samples.shade, self.sums)

    def means(self, n_samples: int) -> dict[str, Array]:
        """Return the means over ``n_samples`` a pixel, on the host, (height, width, ...).

        ``beauty`` has four columns: alpha is what is covered, and what a catcher's shadow takes.
        ``shadow`` is the share of light that does not come to the first surface.
        """
        mean = self.device.to_host(self.sums) / np.float32(n_samples)
        lit, open_ = mean[..., 14], mean[..., 15]
        shadow = np.clip(1.0 - lit / np.maximum(open_, 1e-20), 0.0, 1.0)
        shadow[open_ <= 0.0] = 0.0
        alpha = mean[..., 12] + mean[..., 13] * shadow
        return {
            "beauty": np.concatenate([np.maximum(mean[..., :3], 0.0), alpha[..., None]], axis=-1),
            "diffuse": mean[..., 3:6], "specular": mean[..., 6:9], "refraction": mean[..., 9:12],
            "shadow": shadow}


def tile_chunks(width: int, height: int, n_samples: int) -> Iterator[tuple[Array, int, int]]:
    """Yield (tiles (t,) int32, first sample, number of samples), each a chunk of rays.

    All samples of a tile come before those of later tiles, in order.
    """
    n_tiles = -(-width // TILE) * -(-height // TILE)
    at_once = min(max(n_samples, 1), CHUNK_RAYS // TILE**2)
    tiles_at_once = max(1, CHUNK_RAYS // (TILE**2 * at_once))
    for first in range(0, n_tiles, tiles_at_once):
        tiles = np.arange(first, min(first + tiles_at_once, n_tiles), dtype=np.int32)
        for sample in range(0, max(n_samples, 1), at_once):
            yield tiles, sample, min(at_once, max(n_samples, 1) - sample)


def data_passes(device: Device, width: int, height: int) -> dict[str, Any]:
    """Return empty data passes on the device, as :meth:`Scene.describe` fills them."""
    xp = device.xp
    depths = {"distance": 1, "normal": 3, "position": 3, "albedo": 3}
    passes = {name: xp.zeros((height, width, depth), xp.float32)
              for name, depth in depths.items()}
    passes["identity"] = xp.full((height, width, 4), -1, xp.int32)
    return passes
