"""Random numbers that are a function of (seed, index) alone, on the host."""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.types import Array


def hash32(value: Array) -> Array:
    """Mix 32-bit integers well; the same function as ``hash32`` of device.cuh."""
    v = np.array(value, np.uint32)
    v ^= v >> np.uint32(16)
    v *= np.uint32(0x7FEB352D)
    v ^= v >> np.uint32(15)
    v *= np.uint32(0x846CA68B)
    v ^= v >> np.uint32(16)
    return v


def uniform(seed: int, index: Array, stream: int) -> Array:
    """Return float64 in (0, 1) for each index of a stream."""
    start = hash32(np.asarray([seed], np.uint32)) + np.uint32(stream) * np.uint32(0x9E3779B9)
    high = hash32(hash32(start) + np.asarray(index).astype(np.uint32))
    return (high.astype(np.float64) + 0.5) / 2.0**32


def normal(seed: int, index: Array) -> Array:
    """Return a standard normal number for each index (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(uniform(seed, index, 0)))
    return radius * np.cos(2.0 * np.pi * uniform(seed, index, 1))
