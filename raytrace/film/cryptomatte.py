"""Cryptomatte: who covers how much of a pixel, by name.

Version 1.2.0 of the specification (Friedman and Jones 2015): a name's id is its 32-bit
MurmurHash3, bent to a number that is no NaN and no denormal, and stored as the bits of a
float32; layers ``<name>00``, ``<name>01``, ... hold two (id, coverage) pairs each, the largest
coverage first. The manifest in the header lists the names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from vfx.geometry.handoff.types import Array

_MASK = 0xFFFFFFFF


def murmur3(data: bytes) -> int:
    """Return MurmurHash3 x86 32 with seed 0."""
    def scrambled(word: int) -> int:
        word = word * 0xCC9E2D51 & _MASK
        return _rotated(word, 15) * 0x1B873593 & _MASK

    state = 0
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        state ^= scrambled(int.from_bytes(data[start:start + 4], "little"))
        state = (_rotated(state, 13) * 5 + 0xE6546B64) & _MASK
    if len(data) > whole:
        state ^= scrambled(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _MASK


def matte_id(name: str) -> int:
    """Return the id of a name: 32 bits that are a plain float32."""
    value = murmur3(name.encode())
    if (value >> 23) & 255 in (0, 255):
        value ^= 1 << 23
    return value


def matte_channels(layer: str, names: Sequence[str], which: Array, coverage: Array,
                   levels: int) -> dict[str, Array]:
    """Return the channels of one Cryptomatte, each (h, w) float32.

    ``which`` (h, w, s) says which of ``names`` a slot belongs to (those of one name are added
    up), ``coverage`` (h, w, s) how much of the pixel it covers, 0 for an empty slot.
    """
    shape, slots = which.shape[:-1], which.shape[-1]
    name = which.reshape(-1, slots).copy()
    cover = coverage.reshape(-1, slots).astype(np.float32)
    # Few pixels see more than one thing: only they are added up and sorted.
    several = np.flatnonzero((cover[:, 1:] > 0.0).any(axis=1))
    name[several], cover[several] = _ranked(name[several], cover[several])
    ids = np.array([matte_id(each) for each in names] + [0], np.uint32).view(np.float32)
    name[cover <= 0.0] = len(names)
    channels = {}
    for level in range(levels + levels % 2):
        part = f"{layer}{level // 2:02d}"
        first, second = "RG" if level % 2 == 0 else "BA"
        empty = np.zeros(shape, np.float32)
        kept = level < min(slots, levels)
        channels[f"{part}.{first}"] = ids[name[:, level]].reshape(shape) if kept else empty
        channels[f"{part}.{second}"] = cover[:, level].reshape(shape) if kept else empty
    return channels


def _ranked(name: Array, cover: Array) -> tuple[Array, Array]:
    """Add up the slots (n, s) of one name, and put the largest coverage first.

    Of equal ones the name with the lower number comes first.
    """
    row = np.arange(len(name))
    merged = np.zeros_like(cover)
    for slot in range(name.shape[1]):
        home = np.full(len(name), slot)
        for before in range(slot - 1, -1, -1):
            same = (name[:, before] == name[:, slot]) & (cover[:, before] > 0.0)
            home[same] = before
        merged[row, home] += cover[:, slot]
    order = np.lexsort((name, -merged), axis=-1)
    return np.take_along_axis(name, order, -1), np.take_along_axis(merged, order, -1)


def matte_header(layer: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the attributes of one Cryptomatte; its key is that of the layer's name."""
    key = f"cryptomatte/{murmur3(layer.encode()):08x}"[:19]
    return {
        f"{key}/name": layer,
        f"{key}/hash": "MurmurHash3_32",
        f"{key}/conversion": "uint32_to_float32",
        f"{key}/manifest": json.dumps({name: f"{matte_id(name):08x}" for name in names},
                                      separators=(",", ":")),
    }
