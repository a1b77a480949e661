"""Smooth a picture with Intel Open Image Denoise, where it is installed."""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.types import Array

INSTALL = ("render.denoise needs Intel Open Image Denoise; install it with "
           "pip install 'vfx-fracture[denoise]', or set denoise = false")


def check_denoiser() -> None:
    """Raise ModuleNotFoundError, with the way out, where the denoiser is not installed."""
    try:
        import pyoidn  # noqa: F401
    except (ImportError, OSError):
        raise ModuleNotFoundError(INSTALL) from None


def denoised(color: Array, albedo: Array, normal: Array) -> Array:
    """Return linear colour (h, w, 3) without its noise.

    ``albedo`` (h, w, 3) and ``normal`` (h, w, 3), 0 where there is nothing, tell edges from noise.
    """
    check_denoiser()
    import pyoidn

    def prepared(values: Array) -> Array:
        return np.ascontiguousarray(values, np.float32)

    smooth: Array = pyoidn.denoise(
        prepared(color), albedo=prepared(np.clip(albedo, 0.0, 1.0)), normal=prepared(normal),
        hdr=True)
    return smooth
