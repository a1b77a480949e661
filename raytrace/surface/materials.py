"""Materials: presets, and the table of numbers that the kernels read.

A row (24 float32) is one finish: albedo, reflectance at normal incidence, Blinn-Phong exponent
``s`` and the blur level of its reflections, kind, GGX alpha, refractive index of red, green and
blue, absorption of the three [1/m], whether glass is thin, slope and size of bumps [m]. The rows
are floor, balls, surface and fracture of each body, and colliders. A finish of kind ggx has the
exponent s = 2 / alpha^2 - 2 of a like lobe, and one of kind phong the alpha, for lighting that
knows only one of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vfx.geometry.handoff.types import Array, Solid
from vfx.raytrace.light.environment import blur_level_of
from vfx.raytrace.settings import Finish, FloorLook, Look, MaterialLook

KINDS = {"phong": 0, "ggx": 1, "glass": 2}
MATERIAL_FLOATS = 24
#: Rows before those of bodies.
FLOOR, BALL, FIXED_MATERIALS = 0, 1, 2
#: Projectiles are balls of dark, polished steel.
STEEL = Finish(kind="phong", albedo=(0.03, 0.03, 0.032), specular=(0.42, 0.41, 0.40),
               shininess=900.0)
#: Wavelengths of red, green and blue, and of the lines d, F, C of the Abbe number [um].
RGB_WAVELENGTH = (0.61, 0.55, 0.465)
LINE_D, LINE_F, LINE_C = 0.5876, 0.4861, 0.6563
#: Alpha of the smoothest lobe: a mirror's would be no number.
LEAST_ALPHA = 0.02

#: Slope of broken glass, which is nearly a mirror: ten times as much shows as grain at any number
#: of samples, since what is seen through a face then differs from pixel to pixel.
GLASS_BUMP = 0.03

#: Finishes by name: of the surface, and of the broken faces where they differ.
PRESETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "glass": (
        {"kind": "glass", "ior": 1.52, "tint": [0.80, 0.93, 0.90], "tint_depth": 0.05},
        {"bump": GLASS_BUMP}),
    "green-glass": (
        {"kind": "glass", "ior": 1.52, "tint": [0.30, 0.72, 0.55], "tint_depth": 0.03},
        {"bump": GLASS_BUMP}),
    "ceramic": (
        {"kind": "ggx", "albedo": [0.72, 0.71, 0.68], "roughness": 0.12,
         "specular": [0.05, 0.05, 0.05]},
        {"albedo": [0.62, 0.55, 0.46], "roughness": 0.75, "specular": [0.03, 0.03, 0.03],
         "bump": 0.5}),
    "clay": (
        {"kind": "ggx", "albedo": [0.45, 0.19, 0.10], "roughness": 0.6,
         "specular": [0.03, 0.03, 0.03]},
        {"albedo": [0.52, 0.24, 0.13], "roughness": 0.9, "bump": 0.7}),
    "stone": (
        {"kind": "ggx", "albedo": [0.42, 0.40, 0.37], "roughness": 0.55,
         "specular": [0.04, 0.04, 0.04], "bump": 0.08},
        {"albedo": [0.55, 0.53, 0.50], "roughness": 0.85, "bump": 0.8}),
    "plaster": (
        {"kind": "ggx", "albedo": [0.78, 0.76, 0.72], "roughness": 0.8,
         "specular": [0.03, 0.03, 0.03]},
        {"albedo": [0.82, 0.81, 0.78], "roughness": 0.95, "bump": 0.6}),
    "metal": (
        {"kind": "ggx", "albedo": [0.0, 0.0, 0.0], "roughness": 0.25,
         "specular": [0.56, 0.57, 0.58]},
        {"roughness": 0.5, "bump": 0.6}),
}


def finish_tables(surface: Mapping[str, Any],
                  fracture: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a shot says of surface and fracture, completed by the presets they name.

    Broken faces look like the surface except where the preset or the shot says otherwise, and
    have no texture.
    """
    surface_preset, _ = PRESETS.get(str(surface.get("preset", "")), ({}, {}))
    whole = {**surface_preset, **surface}
    name = str(fracture.get("preset", surface.get("preset", "")))
    base, broken = PRESETS.get(name, ({}, {}))
    if "preset" in fracture:
        return whole, {**base, **broken, **fracture}
    plain = {key: value for key, value in whole.items() if key != "texture"}
    return whole, {**plain, **broken, **fracture}


def material_look(look: Look | MaterialLook) -> MaterialLook:
    """Return the two finishes of a material."""
    if isinstance(look, MaterialLook):
        return look
    specular = (look.specular,) * 3
    return MaterialLook(*(
        Finish(kind="phong", albedo=albedo, specular=specular, shininess=look.shininess,
               crack_width=look.crack_width)
        for albedo in (look.albedo, look.fracture_albedo)))


def material_table(solid: Solid, looks: Mapping[str, Look | MaterialLook],
                   floor_look: FloorLook, image: Mapping[str, int] | None = None,
                   props: Sequence[Finish] = ()) -> Array:
    """Return (2 + 2b + props, 24) float32; ``image`` says which row of the images a texture is."""
    floor = Finish(kind="phong", albedo=floor_look.albedo, specular=(floor_look.specular,) * 3,
                   shininess=floor_look.shininess)
    rows = [finish_row(floor, 1.0), finish_row(STEEL, 1.0)]
    for name, length in zip(solid.material_name, solid.length_scale, strict=True):
        look = material_look(looks.get(str(name), Look()))
        texture = (image or {})[look.surface.texture] if look.surface.texture else -1
        rows += [finish_row(look.surface, float(length), texture),
                 finish_row(look.fracture, float(length))]
    rows += [finish_row(finish, float(solid.length_scale.min())) for finish in props]
    return np.array(rows, np.float32)


def first_prop_row(solid: Solid) -> int:
    """Return the row of the first collider in the material table."""
    return FIXED_MATERIALS + 2 * len(solid.length_scale)


def finish_row(finish: Finish, length_scale: float, texture: int = -1) -> list[float]:
    """Return the numbers of one finish, 24 of them."""
    alpha = max(finish.roughness ** 2, LEAST_ALPHA)
    shininess = finish.shininess
    if finish.kind == "ggx":
        shininess = max(2.0 / alpha ** 2 - 2.0, 1.0)
    else:
        alpha = max(math.sqrt(2.0 / (shininess + 2.0)), LEAST_ALPHA)
    absorption = [-math.log(tint) / finish.tint_depth for tint in finish.tint]
    row = [*finish.albedo, *finish.specular, shininess, blur_level_of(shininess),
           KINDS[finish.kind], alpha, *refractive_indices(finish.ior, finish.abbe), *absorption,
           float(finish.thin), finish.bump, finish.bump_size or 2.0 * length_scale, texture]
    return row + [0.0] * (MATERIAL_FLOATS - len(row))


def refractive_indices(ior: float, abbe: float) -> list[float]:
    """Return the index of red, green and blue by Cauchy's law n = A + B / wavelength^2.

    ``ior`` is n_d, and the Abbe number (n_d - 1) / (n_F - n_C); 0 stands for no dispersion.
    """
    if abbe == 0.0:
        return [ior] * 3
    b = (ior - 1.0) / abbe / (LINE_F**-2 - LINE_C**-2)
    return [ior + b * (wavelength**-2 - LINE_D**-2) for wavelength in RGB_WAVELENGTH]


@functools.cache
def lobe_albedos(size: int = 32, draws: int = 48) -> Array:
    """Return the albedo of GGX lobes (size, size, 2) float32 over alpha and cosine.

    The first number is that of a lobe with reflectance 1, the second the share of it that
    Schlick's rise (1 - v.h)^5 weighs. Visible normals are drawn on a grid of ``draws``^2.
    """
    return np.stack([_lobe_albedo_row(max(alpha, 1e-3), size, draws)
                     for alpha in np.linspace(0.0, 1.0, size)]).astype(np.float32)


def _lobe_albedo_row(alpha: float, size: int, draws: int) -> Array:
    """Return the two albedos of lobes of one alpha over the cosine, (size, 2)."""
    cosine = np.maximum(np.linspace(0.0, 1.0, size), 1e-3)[:, None]
    grid = (np.arange(draws) + 0.5) / draws
    u, v = (axis.ravel() for axis in np.meshgrid(grid, grid, indexing="ij"))
    sine = np.sqrt(1.0 - cosine**2)

    # Draw visible normals as Heitz 2018 does, for a view in the x-z plane.
    length = np.sqrt((alpha * sine)**2 + cosine**2)
    x, z = alpha * sine / length, cosine / length
    radius, angle = np.sqrt(u), 2.0 * np.pi * v
    first = radius * np.cos(angle)
    part = 0.5 * (1.0 + z)
    second = (1.0 - part) * np.sqrt(1.0 - first**2) + part * radius * np.sin(angle)
    third = np.sqrt(np.maximum(0.0, 1.0 - first**2 - second**2))
    # Axes: t1 = (0, 1, 0), t2 = view x t1 = (-z, 0, x).
    half = np.stack(np.broadcast_arrays(
        alpha * (-z * second + x * third), alpha * first + 0.0 * z,
        np.maximum(0.0, x * second + z * third)))
    half /= np.linalg.norm(half, axis=0)
    along = sine * half[0] + cosine * half[2]
    outgoing = 2.0 * along * half[2] - cosine
    seen = np.maximum(outgoing, 1e-6)
    lambda_view = 0.5 * (np.sqrt(1.0 + alpha**2 * (1.0 / cosine**2 - 1.0)) - 1.0)
    lambda_light = 0.5 * (np.sqrt(1.0 + alpha**2 * (1.0 / seen**2 - 1.0)) - 1.0)
    weight = np.where(outgoing > 0.0, (1.0 + lambda_view) / (1.0 + lambda_view + lambda_light), 0.0)
    rise = np.clip(1.0 - along, 0.0, 1.0)**5
    return np.stack([weight.mean(axis=-1), (weight * rise).mean(axis=-1)], axis=-1)


def has_glass(table: Array) -> bool:
    """Whether any row of a material table is of glass."""
    return bool((table[:, 8] == KINDS["glass"]).any())
