"""The shape of the serpent among the assets: its spine, and its skin around it.

The skin is a radius that depends on the share s of the spine's length, from the tip of the tail
to the snout, and on the angle around it, 0 at the back and pi at the belly. It is never
negative, so the tube does not cut itself as long as coils and bends keep their distance.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator

from vfx.geometry.handoff.types import Array

LENGTH = 1.43                # [m] of the spine, about: turns shares of it into lengths
TURNS = 2.5

# (s, radius [m]) from tail to snout.
_RADIUS = PchipInterpolator(
    [0.0, 0.04, 0.12, 0.26, 0.45, 0.62, 0.76, 0.87, 0.915, 0.938, 0.955, 0.972, 0.988, 1.0],
    [0.0020, 0.0050, 0.0105, 0.0170, 0.0215, 0.0220, 0.0195, 0.0150, 0.0140, 0.0195, 0.0205,
     0.0165, 0.0125, 0.0095])


def spine_points(t: Array) -> Array:
    """Return points (k, 3) [m] of the spine for t (k,) in 0..1."""
    return np.asarray(_SPINE(t))


def back_direction(t: Array) -> Array:
    """Return which way the back points, (k, 3): out of the coil, then behind the neck."""
    center = spine_points(t)
    out = center * [1.0, 0.0, 1.0]
    out /= np.linalg.norm(out, axis=1)[:, None]
    out = 0.85 * out + [0.0, 0.55, 0.0]
    behind = np.array([0.0, 0.9, -0.75])
    share = _step(t, _NECK - 0.06, _NECK + 0.10)[:, None]
    return np.asarray((1.0 - share) * out + share * behind)


def section(s: Array, angle: Array) -> tuple[Array, Array]:
    """Return how far the skin reaches to the back and across, both of the shape of s [m]."""
    radius = _RADIUS(s) * _round_ends(s) * (1.0 + _relief(s, angle))
    head = _step(s, 0.915, 0.945)
    return (radius * np.cos(angle) * (1.0 - 0.18 * head),
            radius * np.sin(angle) * (1.0 + 0.08 * head))


def sweep(s: Array, angle: Array) -> Array:
    """Return how far the skin is pushed toward the snout [m]: crest and horns lean back."""
    return np.asarray(-0.55 * _RADIUS(s) * _crest(s, angle) - 0.016 * _horns(s, angle))


def _coil() -> tuple[CubicSpline, float]:
    """Return the spine over 0..1 and the parameter at which the neck begins."""
    turn = np.linspace(0.0, 1.0, 90)
    phi = 2.0 * np.pi * TURNS * turn
    radius = 0.074 - 0.012 * turn + 0.034 * np.exp(-turn / 0.09)
    height = 0.0225 + 0.0545 * TURNS * np.maximum(turn - 0.16, 0.0) ** 1.08 - 0.017 * np.exp(
        -turn / 0.10)
    coil = np.column_stack([radius * np.cos(phi), height, radius * np.sin(phi)])
    neck = np.array([
        (-0.057, 0.155, -0.030), (-0.040, 0.180, -0.050), (-0.012, 0.208, -0.056),
        (0.008, 0.238, -0.044), (0.012, 0.264, -0.018), (0.011, 0.277, 0.016),
        (0.010, 0.272, 0.050), (0.010, 0.262, 0.080)])
    point = np.concatenate([coil, neck])
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(point, axis=0), axis=1))])
    return CubicSpline(along / along[-1], point), float(along[len(coil) - 1] / along[-1])


def _relief(s: Array, angle: Array) -> Array:
    """Return the skin's height above the plain tube, as a share of the radius."""
    turned = np.abs((angle + np.pi) % (2.0 * np.pi) - np.pi)
    body = _step(s, 0.02, 0.08) * (1.0 - _step(s, 0.925, 0.955))
    belly = _step(turned, 2.25, 2.45)
    relief = 0.055 * body * (1.0 - belly) * _scales(s, angle)
    relief = relief + 0.05 * body * belly * _plates(s)
    relief = relief + 1.0 * _crest(s, angle) + 1.15 * _horns(s, angle)
    # The head: brows over the eyes, eyes, nostrils and the line of the mouth.
    relief = relief + 0.26 * _bump(s, turned, 0.957, 0.0075, 0.68, 0.18)
    relief = relief + 0.24 * _bump(s, turned, 0.9595, 0.0030, 1.15, 0.16)
    relief = relief + 0.10 * _bump(s, turned, 0.9905, 0.0030, 0.55, 0.25)
    relief = relief - 0.10 * _bump(s, turned, 0.9925, 0.0012, 0.55, 0.12)
    mouth = np.exp(-0.5 * ((turned - 1.92) / 0.055) ** 2) * _step(s, 0.945, 0.953)
    relief = relief - 0.10 * mouth
    return np.asarray(relief + 0.03 * _step(s, 0.93, 0.95) * _scales(1.7 * s, angle)
                      * (1.0 - _step(s, 0.96, 0.985)))


def _scales(s: Array, angle: Array) -> Array:
    """Return overlapping scales in staggered rows, 0 to 1, steepest toward the tail."""
    row = s * LENGTH / 0.0062
    column = angle * 26 / (2.0 * np.pi)
    height = np.zeros_like(row)
    for shift in (0.0, 0.5):
        u = (row + shift) % 1.0
        v = (column + shift) % 1.0 - 0.5
        # A shield whose free edge, toward the tail, is round.
        edge = 0.62 - 2.2 * v**2
        inside = np.clip((u - (0.55 - edge)) / 0.10, 0.0, 1.0)
        rise = np.clip(1.25 - u, 0.0, 1.0)
        keel = 0.22 * np.exp(-0.5 * (v / 0.07) ** 2)
        height = np.maximum(height, inside * inside * (3.0 - 2.0 * inside) * (rise + keel)
                            * np.clip(1.0 - (2.0 * v) ** 6, 0.0, 1.0))
    return height


def _plates(s: Array) -> Array:
    """Return the bands across the belly, 0 to 1."""
    u = (s * LENGTH / 0.0093) % 1.0
    return np.asarray(np.clip(u / 0.14, 0.0, 1.0) * (1.0 - 0.75 * u))


def _crest(s: Array, angle: Array) -> Array:
    """Return the fins along the back, as shares of the radius."""
    turned = (angle + np.pi) % (2.0 * np.pi) - np.pi
    u = (s * LENGTH / 0.0185) % 1.0
    fin = np.sin(np.pi * u) ** 2 * (0.55 + 0.45 * np.cos(np.pi * u))
    grows = _step(s, 0.06, 0.30) * (1.0 - _step(s, 0.895, 0.93))
    thin = np.exp(-0.5 * (turned / 0.13) ** 2)
    return np.asarray(0.62 * grows * thin * (0.16 + fin))


def _horns(s: Array, angle: Array) -> Array:
    """Return the two horns behind the eyes, 0 to 1."""
    turned = np.abs((angle + np.pi) % (2.0 * np.pi) - np.pi)
    reach = ((s - 0.9365) / 0.0058) ** 2 + ((turned - 0.62) / 0.24) ** 2
    return np.asarray(np.clip(1.0 - np.sqrt(reach), 0.0, 1.0) ** 1.25)


def _bump(s: Array, turned: Array, at: float, width: float, angle: float, spread: float) -> Array:
    """Return a soft bump on both sides, 0 to 1."""
    return np.asarray(np.exp(-0.5 * (((s - at) / width) ** 2 + ((turned - angle) / spread) ** 2)))


def _round_ends(s: Array) -> Array:
    """Return a factor that closes the tube in round ends."""
    tail = np.clip(s / 0.0016, 0.0, 1.0)
    snout = np.clip((1.0 - s) / 0.0085, 0.0, 1.0)
    return np.asarray(np.sqrt(tail * (2.0 - tail)) * np.sqrt(snout * (2.0 - snout)))


def _step(x: Array, low: float, high: float) -> Array:
    """Return a smooth step from 0 at ``low`` to 1 at ``high``."""
    u = np.clip((x - low) / (high - low), 0.0, 1.0)
    return np.asarray(u * u * (3.0 - 2.0 * u))


_SPINE, _NECK = _coil()
