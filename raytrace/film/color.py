"""Colour spaces of the frames: what the numbers of an RGB triple mean.

Colours in shot files and environments are linear Rec. 709; the beauty is converted to the
film's space at output. Matrices follow from the primaries (SMPTE RP 177) with Bradford
adaptation between white points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array


@dataclass(frozen=True)
class ColorSpace:
    """CIE xy of red, green, blue and white, and the id that files carry."""

    chromaticities: tuple[float, float, float, float, float, float, float, float]
    interop_id: str


COLOR_SPACES = {
    "linear-rec709": ColorSpace(
        (0.64, 0.33, 0.30, 0.60, 0.15, 0.06, 0.3127, 0.3290), "lin_rec709_scene"),
    "acescg": ColorSpace(
        (0.713, 0.293, 0.165, 0.830, 0.128, 0.044, 0.32168, 0.33767), "lin_ap1_scene"),
}

#: Share of linear Rec. 709 red, green and blue in the brightness.
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
#: Cone responses of the Bradford adaptation.
BRADFORD = np.array([[0.8951, 0.2664, -0.1614],
                     [-0.7502, 1.7135, 0.0367],
                     [0.0389, -0.0685, 1.0296]])


def film_from_rec709(color_space: str) -> Array:
    """Return the matrix (3, 3) that takes linear Rec. 709 to ``color_space``."""
    source = COLOR_SPACES["linear-rec709"].chromaticities
    target = COLOR_SPACES[color_space].chromaticities
    if source == target:
        return np.eye(3)
    cone = BRADFORD @ _white(target) / (BRADFORD @ _white(source))
    adapt = np.linalg.inv(BRADFORD) @ np.diag(cone) @ BRADFORD
    matrix: Array = np.linalg.inv(_xyz_from_rgb(target)) @ adapt @ _xyz_from_rgb(source)
    return matrix


def _xyz(x: float, y: float) -> Array:
    return np.array([x / y, 1.0, (1.0 - x - y) / y])


def _white(chromaticities: tuple[float, ...]) -> Array:
    return _xyz(chromaticities[6], chromaticities[7])


def _xyz_from_rgb(chromaticities: tuple[float, ...]) -> Array:
    primaries = np.stack([_xyz(chromaticities[2 * i], chromaticities[2 * i + 1])
                          for i in range(3)], axis=1)
    matrix: Array = primaries * np.linalg.solve(primaries, _white(chromaticities))
    return matrix
