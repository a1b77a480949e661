"""Boxes of cubes: particles at the centres, edges through shared faces.

The elements of levine-2014 section 4 for the glass plate. A body is a box of
``cells`` cubes of edge lambda, turned about x, then y, then z, and centred in the world.
Within a body the cell index along z runs fastest, then y, then x; bodies follow one
another in the order given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.cube_faces import box_cells, lattice_origin, lattice_points
from vfx.geometry.handoff.types import Array, Solid

# Share of lambda by which lattices may be off and touching boxes may overlap: far above
# round-off, far below anything that matters to bonds or pictures.
TOLERANCE = 1e-6

# Bytes a particle and an edge take at the peak of building and checking (measured; the
# Solid itself holds 48 and 8).
_PEAK_BYTES_PARTICLE = 150
_PEAK_BYTES_EDGE = 100


def build_solid(bodies: Sequence[Body]) -> Solid:
    """Divide ``bodies`` into cubes; raise ValueError if they make no sense together."""
    check_bodies(bodies)
    first = np.cumsum([0] + [math.prod(body.cells) for body in bodies])
    cells = [box_cells(body.cells) for body in bodies]
    orientation = np.stack([body_orientation(body) for body in bodies])
    length_scale = np.array([body.spacing for body in bodies], dtype=np.float64)
    count = np.diff(first)
    solid = Solid(
        position=np.concatenate([
            lattice_points(cell + 0.5 - np.array(body.cells) / 2, body.spacing, axes, body.center)
            for cell, body, axes in zip(cells, bodies, orientation, strict=True)]),
        volume=np.repeat(length_scale**3, count),
        size=np.repeat(length_scale, count),
        body=np.repeat(np.arange(len(bodies), dtype=np.int32), count),
        cell=np.concatenate(cells),
        edge=np.concatenate([
            box_edges(body.cells) + np.int32(start)
            for body, start in zip(bodies, first[:-1], strict=True)]),
        length_scale=length_scale,
        orientation=orientation,
        kind=np.full(len(bodies), "grid"),
        body_name=np.array([body.name for body in bodies]),
        material_name=np.array([body.material for body in bodies]),
    )
    check_solid(solid)
    return solid


def body_orientation(body: Body) -> Array:
    """Return the (3, 3) world_from_body rotation: about world x, then y, then z."""
    return np.asarray(Rotation.from_euler("xyz", body.rotation, degrees=True).as_matrix())


def check_bodies(bodies: Sequence[Body]) -> None:
    """Raise ValueError with a sentence if the bodies cannot be built side by side."""
    if not bodies:
        raise ValueError("there is no body; write at least one [[bodies]]")
    for body in bodies:
        if min(body.cells) < 1:
            raise ValueError(f"body '{body.name}' has no cubes: cells {list(body.cells)}; each "
                             "must be at least 1")
        if not (math.isfinite(body.spacing) and body.spacing > 0):
            raise ValueError(f"body '{body.name}' has a spacing of {body.spacing} m; it must be "
                             "finite and above 0")
        if not all(map(math.isfinite, (*body.center, *body.rotation))):
            raise ValueError(f"body '{body.name}' has a center {list(body.center)} or a rotation "
                             f"{list(body.rotation)} that is not finite; give numbers")
        # A world coordinate must resolve far less than a cube.
        reach = max(map(abs, body.center)) + body.spacing * max(body.cells)
        if math.ulp(reach) > TOLERANCE * body.spacing:
            raise ValueError(f"body '{body.name}' reaches {reach:g} m from the origin, too far "
                             f"for cubes of {body.spacing:g} m: double precision cannot tell "
                             "them apart there; move its center toward the origin or raise its "
                             "spacing")
    names = [body.name for body in bodies]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two bodies are called '{name}', but pieces are named after their "
                             "body; give each its own name")
    n_particles, n_edges = _box_counts(bodies)
    if max(n_particles, n_edges) >= 2**31:
        raise ValueError(f"the bodies have {n_particles:,} cubes, but only {2**31 // 3:,} or so "
                         "can be numbered; use fewer cells")
    refuse_box_overlap(
        names,
        center=np.array([body.center for body in bodies], dtype=np.float64),
        half=np.array([np.array(body.cells) * body.spacing / 2 for body in bodies]),
        axes=np.stack([body_orientation(body) for body in bodies]),
        slack=TOLERANCE * min(body.spacing for body in bodies))


def lowest_point(body: Body) -> float:
    """Return the height y [m] of a body's lowest corner at rest."""
    half = np.array(body.cells) * body.spacing / 2
    return float(body.center[1] - np.abs(body_orientation(body)[1]) @ half)


def check_solid(solid: Solid) -> None:
    """Raise ValueError with a sentence if ``solid`` breaks an invariant of boxes of cubes.

    Volumes are lambda^3 and fill the boxes; every particle sits on its body's lattice;
    edges are exactly the face-adjacent pairs, each once, in order; bodies do not overlap.
    """
    n_bodies, n = len(solid.length_scale), solid.n_particles
    if n == 0:
        raise ValueError("The solid has no particles.")
    if not np.isfinite(solid.position).all():
        raise ValueError("The solid has a rest position that is not finite.")
    step = np.diff(solid.body, prepend=0)
    if solid.body[0] != 0 or solid.body[-1] != n_bodies - 1 or ((step != 0) & (step != 1)).any():
        raise ValueError(f"The particles of the solid's {n_bodies} bodies are not in body order.")
    if np.abs(np.swapaxes(solid.orientation, 1, 2) @ solid.orientation - np.eye(3)).max() > 1e-9:
        raise ValueError("A body's orientation is not orthonormal.")
    if (np.linalg.det(solid.orientation) < 0).any():
        raise ValueError("A body's orientation is a reflection.")
    if not (solid.length_scale > 0).all():
        raise ValueError(f"A body's lambda is {solid.length_scale.min()} m; it must be above 0.")

    first = np.searchsorted(solid.body, np.arange(n_bodies + 1))
    shape = np.array([solid.cell[a:b].max(axis=0) + 1
                      for a, b in pairwise(first)])
    _check_cells_and_volumes(solid, first, shape)
    _check_edges(solid, shape)
    origin = lattice_origin(solid, first[:-1])
    half = shape * solid.length_scale[:, None] / 2
    refuse_box_overlap(
        solid.body_name.tolist(),
        center=origin + np.einsum("bij,bj->bi", solid.orientation, half),
        half=half, axes=solid.orientation, slack=2 * TOLERANCE * solid.length_scale.min())


def solid_bytes(bodies: Sequence[Body]) -> int:
    """Return about how much memory building the solid of ``bodies`` takes [bytes]."""
    return sum(block_bytes(body) for body in bodies)


def block_bytes(body: Body) -> int:
    """Return about how much memory building one box of cubes takes [bytes]."""
    n_particles, n_edges = _box_counts([body])
    return _PEAK_BYTES_PARTICLE * n_particles + _PEAK_BYTES_EDGE * n_edges


def _box_counts(bodies: Sequence[Body]) -> tuple[int, int]:
    """Return the number of cubes and of face-adjacent pairs, exact for any size."""
    n_particles = sum(math.prod(body.cells) for body in bodies)
    n_edges = sum((nx - 1) * ny * nz + nx * (ny - 1) * nz + nx * ny * (nz - 1)
                  for nx, ny, nz in (body.cells for body in bodies))
    return n_particles, n_edges


def box_edges(shape: tuple[int, int, int]) -> Array:
    """Return the face-adjacent pairs of a box, (m, 2) int32, sorted."""
    nx, ny, nz = shape
    low = np.arange(nx * ny * nz, dtype=np.int32)
    cell = box_cells(shape)
    # Neighbours along z, y, x have ascending indices, so row order is lexicographic order.
    pair = np.stack([low + np.int32(1), low + np.int32(nz), low + np.int32(ny * nz)], axis=1)
    exists = cell[:, ::-1] < np.array([nz, ny, nx], dtype=np.int32) - 1
    low = np.broadcast_to(low[:, None], pair.shape)
    return np.stack([low[exists], pair[exists]], axis=1)


def _check_cells_and_volumes(solid: Solid, first: Array, shape: Array) -> None:
    """Check that each body is a full box of distinct cells whose volumes add up."""
    if (solid.cell < 0).any():
        raise ValueError("The solid has a negative cell index.")
    if not (solid.volume > 0).all():
        raise ValueError(f"Particle {int(np.argmin(solid.volume))} has a volume of "
                         f"{solid.volume.min()} m^3; it must be above 0.")
    for b, name in enumerate(solid.body_name):
        inside = slice(first[b], first[b + 1])
        number = np.ravel_multi_index(tuple(solid.cell[inside].T), tuple(shape[b]))
        count = math.prod(map(int, shape[b]))
        if len(number) != count or (np.bincount(number, minlength=count) != 1).any():
            raise ValueError(f"Body '{name}' has {len(number)} cubes that do not fill its box of "
                             f"{count} cells once each.")
        expected = float(solid.length_scale[b]) ** 3
        if np.abs(solid.volume[inside] - expected).max() > 1e-9 * expected:
            raise ValueError(f"Body '{name}' has cubes whose volume is not lambda^3 = "
                             f"{expected:g} m^3, so they do not add up to its box.")


def _check_edges(solid: Solid, shape: Array) -> None:
    """Check that the edges are the face-adjacent pairs, and lambda apart in the world."""
    low, high = solid.edge[:, 0], solid.edge[:, 1]
    if len(solid.edge):
        if solid.edge.min() < 0 or solid.edge.max() >= solid.n_particles:
            raise ValueError(f"An edge names a particle outside 0..{solid.n_particles - 1}.")
        if not (low < high).all():
            raise ValueError("An edge does not name its lower particle first.")
        follows = (low[1:] > low[:-1]) | ((low[1:] == low[:-1]) & (high[1:] > high[:-1]))
        if not follows.all():
            raise ValueError("The edges are not sorted, or one stands twice.")
        if (solid.body[low] != solid.body[high]).any():
            raise ValueError("An edge joins two bodies.")
    step = solid.cell[high] - solid.cell[low]
    if (np.abs(step).sum(axis=1) != 1).any() or (step.sum(axis=1) != 1).any():
        raise ValueError("An edge joins two cubes that share no face.")
    expected = sum(math.prod(map(int, s)) // int(s[a]) * (int(s[a]) - 1)
                   for s in shape for a in range(3))
    if len(solid.edge) != expected:
        raise ValueError(f"The solid has {len(solid.edge)} edges where its boxes have {expected} "
                         "inner faces.")
    axis = np.argmax(step, axis=1)
    body = solid.body[low]
    ideal = np.swapaxes(solid.orientation, 1, 2)[body, axis] * solid.length_scale[body, None]
    error = np.abs(solid.position[high] - solid.position[low] - ideal).max(axis=1, initial=0.0)
    if (error > TOLERANCE * solid.length_scale[body]).any():
        worst = int(np.argmax(error / solid.length_scale[body]))
        raise ValueError(f"Particles {low[worst]} and {high[worst]} are not lambda = "
                         f"{solid.length_scale[body[worst]]:g} m apart along their body's axis.")


def refuse_box_overlap(
    names: Sequence[str], *, center: Array, half: Array, axes: Array, slack: float
) -> None:
    """Raise ValueError if two oriented boxes overlap by more than ``slack`` [m].

    center, half (b, 3) [m]; axes (b, 3, 3) as columns. Boxes that only touch are allowed.
    """
    reach = np.einsum("bij,bj->bi", np.abs(axes), half)
    for a in range(len(names) - 1):
        gap = np.abs(center[a + 1:] - center[a]) - (reach[a + 1:] + reach[a])
        for b in map(int, a + 1 + np.flatnonzero((gap < -slack).all(axis=1))):
            if _box_gap(center[b] - center[a], half[a], axes[a], half[b], axes[b]) < -slack:
                raise ValueError(f"bodies '{names[a]}' and '{names[b]}' overlap at rest; move or "
                                 "turn one of them")


def _box_gap(shift: Array, half_a: Array, axes_a: Array, half_b: Array, axes_b: Array) -> float:
    """Return the largest gap of two boxes over their separating axes [m]; below 0 they meet."""
    cross = np.cross(axes_a.T[:, None, :], axes_b.T[None, :, :]).reshape(9, 3)
    length = np.linalg.norm(cross, axis=1)
    # Parallel edges give no axis of their own.
    cross = cross[length > 1e-6] / length[length > 1e-6, None]
    direction = np.concatenate([axes_a.T, axes_b.T, cross])
    reach = np.abs(direction @ axes_a) @ half_a + np.abs(direction @ axes_b) @ half_b
    return float(np.max(np.abs(direction @ shift) - reach))
