"""Meshes that the project makes itself, by formula: vases and vessels, a column, a serpent, a ball.

All are closed, face outward, and have uv; metres, y up, standing on y = 0. The vase, bowl, plate,
wine glass and mug are profiles turned on a lathe, with a wall of real thickness; the mug's
handle is joined to it as a solid. The serpent, of half a million triangles, is one tube along a
coiled spine, its cross-section shaped and displaced into scales, crest, horns and belly plates.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator

from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.files import RawMesh

#: Raised by hand when a change of this file changes a mesh.
VERSION = 1
#: Thickness [m] of the bowl of the wine glass.
WINE_WALL = 1.2e-3


def make_asset(name: str) -> RawMesh:
    """Return an asset by its name, one of ``ASSETS``."""
    return ASSETS[name]()


def vase() -> RawMesh:
    """Return a vase 30 cm high with a foot, a belly, a neck and a rolled lip; walls of 7 mm."""
    outer = _curve([
        (0.000, 0.0000), (0.030, 0.0000), (0.044, 0.0015), (0.0475, 0.0060), (0.045, 0.0120),
        (0.040, 0.0190), (0.0415, 0.0270), (0.056, 0.0520), (0.078, 0.0930), (0.0900, 0.1350),
        (0.0860, 0.1750), (0.066, 0.2120), (0.0430, 0.2380), (0.0345, 0.2560), (0.0345, 0.2700),
        (0.0400, 0.2830), (0.0500, 0.2920), (0.0525, 0.2965), (0.0500, 0.3000)], 170)
    inner = _curve([
        (0.0500, 0.3000), (0.0455, 0.2975), (0.0400, 0.2915), (0.0320, 0.2840), (0.0272, 0.2700),
        (0.0272, 0.2560), (0.0362, 0.2345), (0.0590, 0.2075), (0.0785, 0.1730), (0.0825, 0.1350),
        (0.0708, 0.0960), (0.0490, 0.0570), (0.0300, 0.0330), (0.0150, 0.0285), (0.000, 0.0280)],
        130)
    return _lathe(np.concatenate([outer, inner[1:]]), 192)


def bowl() -> RawMesh:
    """Return a shallow bowl 24 cm wide on a foot ring; walls of 6 mm."""
    outer = _curve([
        (0.000, 0.0040), (0.028, 0.0040), (0.0330, 0.0030), (0.0350, 0.0000), (0.0410, 0.0000),
        (0.0425, 0.0040), (0.0440, 0.0095), (0.0700, 0.0240), (0.0980, 0.0500), (0.1140, 0.0800),
        (0.1195, 0.0920), (0.1190, 0.0945), (0.1165, 0.0955)], 120)
    inner = _curve([
        (0.1165, 0.0955), (0.1140, 0.0940), (0.1085, 0.0820), (0.0930, 0.0545), (0.0660, 0.0300),
        (0.0400, 0.0165), (0.0180, 0.0125), (0.000, 0.0120)], 80)
    return _lathe(np.concatenate([outer, inner[1:]]), 192)


def plate() -> RawMesh:
    """Return a dinner plate 27 cm wide with a rim, on a foot ring; 4.5 mm thick."""
    under = _curve([
        (0.000, 0.0040), (0.066, 0.0040), (0.0730, 0.0034), (0.0755, 0.0008), (0.0772, 0.0000),
        (0.0800, 0.0000), (0.0817, 0.0008), (0.0835, 0.0042), (0.0880, 0.0070), (0.0955, 0.0118),
        (0.1030, 0.0150), (0.1160, 0.0180), (0.1290, 0.0208), (0.1335, 0.0222), (0.1350, 0.0240)],
        150)
    upper = _curve([
        (0.1350, 0.0240), (0.1340, 0.0255), (0.1315, 0.0259), (0.1270, 0.0251), (0.1150, 0.0224),
        (0.1015, 0.0194), (0.0935, 0.0160), (0.0865, 0.0115), (0.0800, 0.0092), (0.0700, 0.0085),
        (0.000, 0.0085)], 120)
    return _lathe(np.concatenate([under, upper[1:]]), 256)


def wineglass() -> RawMesh:
    """Return a wine glass 20 cm high: a bowl with a wall of 1.2 mm, on a stem and a foot."""
    inner = _curve([
        (0.000, 0.0960), (0.008, 0.0966), (0.0190, 0.1010), (0.0300, 0.1105), (0.0375, 0.1240),
        (0.0403, 0.1380), (0.0395, 0.1560), (0.0362, 0.1780), (0.0318, 0.1994)], 130)
    along = np.gradient(inner, axis=0)
    along /= np.linalg.norm(along, axis=1)[:, None]
    away = along[:, ::-1] * [1.0, -1.0]
    outer = inner + WINE_WALL * away
    # The lip is a half round from the outside to the inside.
    turn = np.linspace(0.0, np.pi, 9)[:, None]
    lip = (inner[-1] + 0.5 * WINE_WALL * (
        away[-1] * (1.0 + np.cos(turn)) + along[-1] * np.sin(turn)))
    foot = [
        (0.000, 0.0022), (0.020, 0.0012), (0.0335, 0.0000), (0.0362, 0.0002), (0.0375, 0.0011),
        (0.0365, 0.0021), (0.0290, 0.0034), (0.0170, 0.0054), (0.0088, 0.0088), (0.0054, 0.0150),
        (0.0042, 0.0250), (0.0037, 0.0450), (0.0036, 0.0650), (0.0042, 0.0800), (0.0060, 0.0880),
        (0.0095, 0.0930)]
    stem = _curve([*foot, *map(tuple, outer[(outer[:, 0] > 0.014)][::4].tolist())], 320)
    return _lathe(np.concatenate([stem, lip[1:], inner[-2::-1]]), 192)


def mug() -> RawMesh:
    """Return a mug 9.5 cm high with a handle; walls of 4.5 mm."""
    from vfx.geometry.mesh.repair import unite_shells

    outer = _curve([
        (0.000, 0.0020), (0.030, 0.0020), (0.0340, 0.0000), (0.0375, 0.0008), (0.0395, 0.0040),
        (0.0405, 0.0100), (0.0410, 0.0300), (0.0410, 0.0700), (0.0410, 0.0920), (0.0402, 0.0943),
        (0.0388, 0.0950)], 120)
    inner = _curve([
        (0.0388, 0.0950), (0.0373, 0.0943), (0.0365, 0.0920), (0.0365, 0.0700), (0.0365, 0.0300),
        (0.0360, 0.0120), (0.0330, 0.0080), (0.0200, 0.0070), (0.000, 0.0070)], 100)
    body = _lathe(np.concatenate([outer, inner[1:]]), 160)
    # The handle ends within the wall, short of the hollow.
    spine = CubicSpline(
        [0.0, 0.12, 0.35, 0.5, 0.65, 0.88, 1.0],
        [(0.0388, 0.0770, 0.0), (0.0480, 0.0790, 0.0), (0.0670, 0.0725, 0.0),
         (0.0710, 0.0545, 0.0), (0.0660, 0.0365, 0.0), (0.0490, 0.0230, 0.0),
         (0.0388, 0.0200, 0.0)])

    def section(s: Array, angle: Array) -> tuple[Array, Array]:
        end = np.sqrt(np.clip(np.minimum(s, 1.0 - s) / 0.012, 0.0, 1.0))
        flare = 1.0 + 0.35 * np.exp(-np.minimum(s, 1.0 - s) / 0.06)
        return 0.0078 * end * flare * np.cos(angle), 0.0048 * end * flare * np.sin(angle)

    def sideways(s: Array) -> Array:
        return np.tile([0.0, 0.0, 1.0], (len(s), 1))

    handle = _tube(spine, section, sideways, 220, 64)
    first = len(body.vertex)
    both = RawMesh(
        vertex=np.concatenate([body.vertex, handle.vertex]),
        triangle=np.concatenate([body.triangle, handle.triangle + first]), normal=None,
        uv=np.concatenate([body.uv, handle.uv]))
    return unite_shells(both)[0]


def column() -> RawMesh:
    """Return a fluted column 60 cm high with a moulded base and capital, solid throughout."""
    profile = _curve([
        (0.000, 0.0000), (0.072, 0.0000), (0.0745, 0.0025), (0.0745, 0.0200), (0.0700, 0.0235),
        (0.0730, 0.0310), (0.0690, 0.0385), (0.0610, 0.0430), (0.0585, 0.0500), (0.0640, 0.0570),
        (0.0600, 0.0640), (0.0535, 0.0690), (0.0515, 0.0780), (0.0515, 0.1200), (0.0508, 0.2500),
        (0.0485, 0.3800), (0.0450, 0.5050), (0.0448, 0.5250), (0.0500, 0.5330), (0.0480, 0.5400),
        (0.0520, 0.5470), (0.0640, 0.5620), (0.0720, 0.5690), (0.0745, 0.5730), (0.0745, 0.5975),
        (0.0720, 0.6000), (0.000, 0.6000)], 420)
    height = profile[:, 1]
    fluted = np.clip((height - 0.085) / 0.02, 0.0, 1.0) * np.clip((0.515 - height) / 0.02, 0.0, 1.0)
    fluted = np.sqrt(fluted * (2.0 - fluted))

    def carve(angle: Array) -> Array:
        # Twenty round channels with narrow ridges between them.
        across = np.abs((angle * 20 / (2 * np.pi) + 0.5) % 1.0 - 0.5) / 0.44
        groove = np.sqrt(np.clip(1.0 - across**2, 0.0, 1.0))
        return 1.0 - 0.10 * fluted[:, None] * groove[None, :]

    return _lathe(profile, 480, carve)


def serpent() -> RawMesh:
    """Return a coiled serpent about 30 cm high, 510,000 triangles of scales, crest and horns."""
    from vfx.geometry.assets import serpent as shape

    raw = _tube(shape.spine_points, shape.section, shape.back_direction, 1500, 170,
                sweep=shape.sweep)
    raw.vertex[:, 1] -= raw.vertex[:, 1].min()
    return raw


def sphere() -> RawMesh:
    """Return a ball 10 cm wide: a marble, a cannonball, a globe."""
    angle = np.linspace(0.0, np.pi, 33)
    return _lathe(0.05 * np.column_stack([np.sin(angle), 1.0 - np.cos(angle)]), 64)


ASSETS: dict[str, Callable[[], RawMesh]] = {
    "vase": vase, "bowl": bowl, "plate": plate, "wineglass": wineglass, "mug": mug,
    "column": column, "serpent": serpent, "sphere": sphere,
}


def write_obj(path: Path, raw: RawMesh) -> None:
    """Write a mesh with its uv as an OBJ file."""
    lines = [f"# {len(raw.triangle)} triangles, metres, y up"]
    lines += [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in raw.vertex.tolist()]
    if raw.uv is not None:
        place, index = np.unique(raw.uv.reshape(-1, 2), axis=0, return_inverse=True)
        lines += [f"vt {u:.7g} {v:.7g}" for u, v in place.tolist()]
        number = np.stack([raw.triangle, index.reshape(-1, 3)], axis=2) + 1
        lines += [f"f {a}/{i} {b}/{j} {c}/{k}"
                  for (a, i), (b, j), (c, k) in number.tolist()]
    else:
        lines += [f"f {a} {b} {c}" for a, b, c in (raw.triangle + 1).tolist()]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def _curve(points: list[tuple[float, float]], n: int) -> Array:
    """Return n + 1 points (r, y) evenly along a smooth curve that overshoots nowhere."""
    corner = np.array(points)
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corner, axis=0), axis=1))])
    smooth = PchipInterpolator(along, corner)
    fine = smooth(np.linspace(0.0, along[-1], 40 * n))
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(fine, axis=0), axis=1))])
    even = np.linspace(0.0, length[-1], n + 1)
    return np.column_stack([np.interp(even, length, fine[:, axis]) for axis in range(2)])


def _lathe(
    profile: Array, n_around: int, carve: Callable[[Array], Array] | None = None
) -> RawMesh:
    """Return the surface of a profile (k, 2) of (r, y) turned about y.

    It begins and ends on the axis, with the solid to its left. ``carve`` gives factors of the
    radius, (k, n_around), from the angles.
    """
    angle = 2.0 * np.pi * np.arange(n_around) / n_around
    radius = profile[1:-1, :1] * np.ones(n_around)
    if carve is not None:
        radius = radius * carve(angle)[1:-1]
    ring = np.stack([radius * np.cos(angle), np.broadcast_to(profile[1:-1, 1:], radius.shape),
                     -radius * np.sin(angle)], axis=2)
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(profile, axis=0), axis=1))])
    return _skin(np.array([0.0, profile[0, 1], 0.0]), ring,
                 np.array([0.0, profile[-1, 1], 0.0]), length / length[-1])


def _tube(
    spine: Callable[[Array], Array],
    section: Callable[[Array, Array], tuple[Array, Array]],
    dorsal: Callable[[Array], Array],
    n_along: int, n_around: int,
    sweep: Callable[[Array, Array], Array] | None = None,
) -> RawMesh:
    """Return a closed tube around a curve.

    ``spine`` maps s in 0..1, (k,), to points (k, 3); ``dorsal`` to the direction of the angle 0;
    ``section`` (s, angle) to how far the skin reaches that way and across; ``sweep`` to how far
    it is pushed along the curve. The section closes at both ends.
    """
    # Even steps along the curve.
    fine = np.linspace(0.0, 1.0, 8 * n_along)
    step = np.linalg.norm(np.diff(spine(fine), axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(step)])
    s = np.interp(np.linspace(0.0, length[-1], n_along + 1), length, fine)
    share = np.linspace(0.0, 1.0, n_along + 1)
    angle = 2.0 * np.pi * np.arange(n_around) / n_around
    center = spine(s)
    ahead = np.gradient(center, axis=0)
    ahead /= np.linalg.norm(ahead, axis=1)[:, None]
    up = dorsal(s)
    up = up - np.einsum("ij,ij->i", up, ahead)[:, None] * ahead
    up /= np.linalg.norm(up, axis=1)[:, None]
    across = np.cross(ahead, up)
    grid_s, grid_angle = np.meshgrid(share, angle, indexing="ij")
    high, wide = section(grid_s, grid_angle)
    ring = (center[:, None] + high[..., None] * up[:, None] + wide[..., None] * across[:, None])
    if sweep is not None:
        ring = ring + sweep(grid_s, grid_angle)[..., None] * ahead[:, None]
    return _skin(center[0], ring[1:-1], center[-1], share)


def _skin(start: Array, ring: Array, end: Array, v: Array) -> RawMesh:
    """Return triangles over rings (k, m, 3) between two poles; v (k + 2,) runs along them."""
    k, m, _ = ring.shape
    vertex = np.concatenate([start[None], ring.reshape(-1, 3), end[None]])
    last = len(vertex) - 1
    here = np.arange(m)
    there = (here + 1) % m
    u, u_next = here / m, (here + 1) / m
    base = 1 + m * np.arange(k - 1)[:, None]
    a, b = base + here, base + there
    c, d = b + m, a + m
    low, high = np.broadcast_to(v[1:k, None], a.shape), np.broadcast_to(v[2:k + 1, None], a.shape)
    left, right = np.broadcast_to(u, a.shape), np.broadcast_to(u_next, a.shape)
    corner_a, corner_b = np.stack([left, low], -1), np.stack([right, low], -1)
    corner_c, corner_d = np.stack([right, high], -1), np.stack([left, high], -1)
    # The shorter diagonal of each quadrilateral, so that ridges stay clean.
    shorter = (np.linalg.norm(vertex[a] - vertex[c], axis=-1)
               <= np.linalg.norm(vertex[b] - vertex[d], axis=-1))[..., None]
    first = np.where(shorter, np.stack([a, b, c], -1), np.stack([a, b, d], -1))
    second = np.where(shorter, np.stack([a, c, d], -1), np.stack([b, c, d], -1))
    first_uv = np.where(shorter[..., None], np.stack([corner_a, corner_b, corner_c], -2),
                        np.stack([corner_a, corner_b, corner_d], -2))
    second_uv = np.where(shorter[..., None], np.stack([corner_a, corner_c, corner_d], -2),
                         np.stack([corner_b, corner_c, corner_d], -2))
    top = 1 + m * (k - 1)
    middle = 0.5 * (u + u_next)
    caps = [np.column_stack([np.zeros(m, np.int64), 1 + there, 1 + here]),
            np.column_stack([np.full(m, last), top + here, top + there])]
    cap_uv = [np.stack([np.column_stack([middle, np.full(m, v[0])]),
                        np.column_stack([u_next, np.full(m, v[1])]),
                        np.column_stack([u, np.full(m, v[1])])], 1),
              np.stack([np.column_stack([middle, np.full(m, v[-1])]),
                        np.column_stack([u, np.full(m, v[-2])]),
                        np.column_stack([u_next, np.full(m, v[-2])])], 1)]
    triangle = np.concatenate([caps[0], first.reshape(-1, 3), second.reshape(-1, 3), caps[1]])
    uv = np.concatenate([cap_uv[0], first_uv.reshape(-1, 3, 2), second_uv.reshape(-1, 3, 2),
                         cap_uv[1]])
    return RawMesh(vertex=vertex, triangle=triangle, normal=None, uv=uv.astype(np.float32))
