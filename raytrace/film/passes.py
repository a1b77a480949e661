"""The passes of a frame: their channels, and how they follow from what the film holds.

============= ======================== ======================================================
pass          channels                 value
============= ======================== ======================================================
beauty        R G B A                  scene-linear light in the film's colour space; A is the
                                       coverage by pieces, balls, colliders and floor. R, G, B
                                       are final, not to be multiplied again; with ``background
                                       = false`` they are premultiplied. With a shadow catcher A
                                       holds its shadow too, and R, G, B are 0 there
depth         depth.Z                  distance along the camera's axis [m]; 1e10: nothing there
N             N.X N.Y N.Z              world normal, facing the camera; 0 where there is nothing
P             P.X P.Y P.Z              world position [m]; 0 where there is nothing
forward       forward.u forward.v      way to the next frame [pixels], u to the right, v up
albedo        albedo.R .G .B           diffuse colour, 1 for glass
diffuse       diffuse.R .G .B          the part of the beauty from the first surface's diffuse
specular      specular.R .G .B         the part that it reflects
refraction    refraction.R .G .B       the part through glass
shadow        shadow.Y                 share of the light that does not come to the first surface
fragment      fragment.id              id of the piece; -1 for all else
damage        damage.Y                 broken share of the element's bonds, 0 to 1
mask          mask.surface .fracture   coverage by original surface, and by broken faces
cryptomatte   a sequence of its own    CryptoFragment by piece, CryptoMaterial by material
============= ======================== ======================================================

Beauty, albedo, diffuse, specular, refraction, shadow, mask and Cryptomattes are filtered: means
over all samples of a pixel, with lens and shutter. The others are data, which a mean would spoil:
they belong to the ray through the pixel's centre, at the frame's time, with all in focus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vfx.geometry.handoff.products import turned
from vfx.geometry.handoff.types import Array, Pieces, Solid
from vfx.raytrace.film.color import film_from_rec709
from vfx.raytrace.film.cryptomatte import matte_channels, matte_header
from vfx.raytrace.settings import PASSES, Film, Light
from vfx.raytrace.surface.materials import FIXED_MATERIALS, first_prop_row

#: What depth.Z is where there is nothing [m].
NO_DEPTH = 1e10
CHANNELS: dict[str, tuple[str, ...]] = {
    "beauty": ("R", "G", "B", "A"),
    "depth": ("depth.Z",),
    "N": ("N.X", "N.Y", "N.Z"),
    "P": ("P.X", "P.Y", "P.Z"),
    "forward": ("forward.u", "forward.v"),
    **{name: (f"{name}.R", f"{name}.G", f"{name}.B")
       for name in ("albedo", "diffuse", "specular", "refraction")},
    "shadow": ("shadow.Y",),
    "fragment": ("fragment.id",),
    "damage": ("damage.Y",),
    "mask": ("mask.surface", "mask.fracture"),
}
#: Passes that are made of what each sample meets first.
FEATURES = ("albedo", "mask", "cryptomatte")
CRYPTO_PIECE, CRYPTO_MATERIAL = "CryptoFragment", "CryptoMaterial"
FLOOR, BALL = "floor", "projectile"


def pass_names(settings: Film) -> tuple[str, ...]:
    """Return the passes that a film's frames hold, in the order of their documentation."""
    return tuple(name for name in PASSES if name in settings.passes)


def channel_names(settings: Film) -> tuple[str, ...]:
    """Return the channels of the frames, without the Cryptomattes."""
    return tuple(channel for name in pass_names(settings) for channel in CHANNELS.get(name, ()))


def named_passes(pixels: Mapping[str, Array], pieces: Pieces, light: Light,
                 film: Film) -> dict[str, Array]:
    """Expose, convert colours, and give the passes of ``film`` their names.

    ``pixels`` has the means of the film; ``depth`` (h, w), ``normal``, ``world`` (h, w, 3) and
    ``forward`` (h, w, 2); and ``identity`` (h, w, 4).
    """
    film_from_scene = film_from_rec709(film.color_space).astype(np.float32)
    exposure = np.float32(2.0**light.exposure)

    def converted(color: Array) -> Array:
        return turned(color[..., :3], film_from_scene)

    identity = pixels["identity"]
    element = identity[..., 1]
    damage = np.where(element >= 0, pieces.damage[element], 0.0) if len(
        pieces.damage) else np.zeros(element.shape)
    values: dict[str, Any] = {
        "beauty": np.concatenate([exposure * converted(pixels["beauty"]),
                                  pixels["beauty"][..., 3:]], axis=-1),
        "depth": pixels["depth"], "N": pixels["normal"], "P": pixels["world"],
        "forward": pixels["forward"], "albedo": converted(pixels["albedo"]),
        **{name: exposure * converted(pixels[name])
           for name in ("diffuse", "specular", "refraction")},
        "shadow": pixels["shadow"], "fragment": identity[..., 0], "damage": damage,
        "mask": pixels["mask"],
    }
    named = {}
    for name in pass_names(film):
        columns = np.atleast_3d(values[name]) if name in values else None
        for i, channel in enumerate(CHANNELS.get(name, ())):
            assert columns is not None
            named[channel] = np.ascontiguousarray(columns[..., i], np.float32)
    return named


def matte_names(solid: Solid, pieces: Pieces,
                props: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return the names that the two Cryptomattes of a frame know.

    Floor, balls and ``props`` come first; then the pieces, as
    :func:`vfx.geometry.pieces.lineage.piece_name` names them, and of each body's material the
    surface and the broken faces.
    """
    body = np.zeros(len(pieces.id), np.int64)
    body[np.searchsorted(pieces.id, pieces.fragment)] = solid.body
    names = [f"{solid.body_name[b]}_{piece:05d}"
             for piece, b in zip(pieces.id.tolist(), body.tolist(), strict=True)]
    materials = [f"{name}{side}" for name in dict.fromkeys(solid.material_name.tolist())
                 for side in ("", "_fracture")]
    return [FLOOR, BALL, *props, *names], [FLOOR, BALL, *props, *materials]


def mattes(pixels: Mapping[str, Array], solid: Solid, pieces: Pieces,
           film: Film, props: Sequence[str] = ()) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return channels and header attributes of both Cryptomattes.

    ``key`` (h, w, s) of ``pixels`` is twice the piece's id for its surface, one more for its
    broken faces, and -1 less the row of the material for what is no piece.
    """
    key, coverage = pixels["key"], pixels["matte"]
    names, materials = matte_names(solid, pieces, props)
    n_fixed = FIXED_MATERIALS + len(props)
    is_piece = key >= 0
    row = np.where(is_piece, np.searchsorted(pieces.id, np.maximum(key, 0) // 2), 0)
    body = np.zeros(len(pieces.id), np.int64)
    body[np.searchsorted(pieces.id, pieces.fragment)] = solid.body
    unique = list(dict.fromkeys(solid.material_name.tolist()))
    material = np.array([unique.index(name) for name in solid.material_name.tolist()])
    fixed = np.maximum(-1 - key, 0)
    # The rows of bodies stand between those of balls and of colliders.
    fixed = np.where(fixed < FIXED_MATERIALS, fixed,
                     fixed - first_prop_row(solid) + FIXED_MATERIALS)
    which_piece = np.where(is_piece, n_fixed + row, fixed)
    which_material = np.where(is_piece, n_fixed + 2 * material[body[row]] + (key & 1), fixed)
    channels = {
        **matte_channels(CRYPTO_PIECE, names, which_piece, coverage, film.cryptomatte_levels),
        **matte_channels(CRYPTO_MATERIAL, materials, which_material, coverage,
                         film.cryptomatte_levels)}
    return channels, {**matte_header(CRYPTO_PIECE, names),
                      **matte_header(CRYPTO_MATERIAL, materials)}
