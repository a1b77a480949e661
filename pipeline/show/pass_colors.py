"""Passes as pictures to look at: numbers turned into colours."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from vfx.pipeline.show.preview import Pixels, display_pixels

#: Linear colours from low to high: dark blue, cyan, green, yellow, red.
_RAMP = np.array([[0.02, 0.03, 0.30], [0.02, 0.35, 0.60], [0.08, 0.55, 0.20], [0.85, 0.65, 0.05],
                  [0.75, 0.05, 0.03]])
_GOLDEN = 0.6180339887


def ramp(value: Any) -> Pixels:
    """Return linear colours (..., 3) of values from 0 to 1."""
    place = np.linspace(0.0, 1.0, len(_RAMP))
    return np.stack([np.interp(value, place, column) for column in _RAMP.T], axis=-1)


def pass_pixels(layer: str, channels: Mapping[str, Pixels], color_space: str) -> Pixels:
    """Return a pass as 8-bit sRGB (h, w, 3).

    ``channels`` have their whole names; a layer that is no pass is a Cryptomatte, or
    "cryptomatte", that of the pieces.
    """
    def stacked(*names: str) -> Pixels:
        return np.stack([channels[name].astype(np.float32) for name in names], axis=-1)

    if layer == "beauty":
        return display_pixels(stacked(*"RGB"), color_space)
    if layer in ("albedo", "diffuse", "specular", "refraction"):
        return display_pixels(stacked(*(f"{layer}.{c}" for c in "RGB")), color_space)
    if layer == "depth":
        depth = channels["depth.Z"]
        seen = depth < 1e9
        # By 1/z, near is white: how pieces lie tells more than how far the floor goes.
        closeness = 1.0 / np.where(seen, np.maximum(depth, 1e-9), 1.0)
        far, near = np.percentile(closeness[seen], [5.0, 99.5]) if seen.any() else (0.0, 1.0)
        gray = np.where(seen, np.clip((closeness - far) / max(near - far, 1e-9), 0.05, 1.0), 0.0)
        return _straight(np.repeat(gray[..., None], 3, axis=-1))
    if layer == "N":
        normal = stacked("N.X", "N.Y", "N.Z")
        return _straight(np.where((normal != 0.0).any(axis=-1)[..., None], 0.5 + 0.5 * normal, 0.0))
    if layer == "P":
        position = stacked("P.X", "P.Y", "P.Z")
        # By the box of the pieces; what lies around them keeps the colour of its walls.
        inside = position[_is_piece(channels, position.shape[:2])]
        low, high = np.percentile(inside if inside.size else position.reshape(-1, 3),
                                  [1.0, 99.0], axis=0)
        return _straight((position - low) / np.maximum(high - low, 1e-9))
    if layer == "forward":
        u, v = channels["forward.u"], channels["forward.v"]
        speed = np.hypot(u, v)
        most = max(float(np.percentile(speed, 99.5)), 1e-6)
        return _straight(_hues(np.arctan2(v, u) / (2.0 * np.pi), np.clip(speed / most, 0.0, 1.0)))
    if layer == "fragment":
        number = channels["fragment.id"]
        return _straight(_hues(np.mod(number * _GOLDEN, 1.0), np.where(number >= 0, 0.9, 0.0)))
    if layer == "damage":
        color = ramp(channels["damage.Y"])
        on = _is_piece(channels, color.shape[:2])
        return display_pixels(np.where(on[..., None], color, 0.0), "linear-rec709")
    if layer == "mask":
        surface, fracture = channels["mask.surface"], channels["mask.fracture"]
        return _straight(np.stack([fracture, surface, 0.0 * surface], axis=-1))
    if layer == "shadow":
        return _straight(np.repeat(channels["shadow.Y"][..., None], 3, axis=-1))
    return _straight(_matte(channels, "CryptoFragment" if layer == "cryptomatte" else layer))


def _is_piece(channels: Mapping[str, Pixels], shape: tuple[int, ...]) -> Pixels:
    """Return where a piece is seen: everywhere, if the channels do not tell."""
    number = channels.get("fragment.id")
    return np.full(shape, True) if number is None else np.asarray(number >= 0)


def _matte(channels: Mapping[str, Pixels], matte: str) -> Pixels:
    """Return a colour for each name of a Cryptomatte, mixed by coverage."""
    mixed: Pixels = np.zeros((*channels[f"{matte}00.R"].shape, 3))
    for level in itertools.count():
        part = f"{matte}{level // 2:02d}"
        name, cover = ("R", "G") if level % 2 == 0 else ("B", "A")
        if f"{part}.{name}" not in channels:
            break
        bits = np.ascontiguousarray(channels[f"{part}.{name}"]).view(np.uint32)
        color = _hues((bits % 9973) / 9973.0, np.full(bits.shape, 0.9))
        mixed = mixed + color * channels[f"{part}.{cover}"][..., None]
    return mixed


def _hues(hue: Pixels, value: Pixels) -> Pixels:
    """Return colours (..., 3) by hue, in circles, and brightness."""
    turn = np.mod(hue[..., None] + np.array([0.0, 2.0 / 3.0, 1.0 / 3.0]), 1.0)
    shade = 0.25 + 0.75 * np.clip(np.abs(6.0 * turn - 3.0) - 1.0, 0.0, 1.0)
    color: Pixels = value[..., None] * shade
    return color


def _straight(values: Pixels) -> Pixels:
    """Return values from 0 to 1 as 8 bits, without a curve."""
    bits: Pixels = np.round(255.0 * np.clip(np.nan_to_num(values), 0.0, 1.0)).astype(np.uint8)
    return bits
