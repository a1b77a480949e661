"""Residual stress, as tempered glass has it: compressed surfaces around a stretched core.

A pane that was quenched has over its thickness h the same stress in all directions of its plane,

    sigma(z) = s (1/2 - 3/2 (2 z / h)^2),    -h/2 <= z <= h/2,

-s at the surfaces and s/2 in the middle, with no resultant force and no moment (Gardon 1980,
Thermal Tempering of Glass). It stores s^2 h / (10 K) an area, at the Poisson ratio 1/4 of bonds.

It comes of parts that do not fit together. A particle i by itself would be larger by a strain e_i,
and a bond is at rest at the length |xi| (1 + (e_i + e_j) / 2). For the layers of a pane without
edges e follows from the sums over its bonds, so that each layer has the mean of the parabola over
its thickness, whatever its surfaces lack. Toward the edges the pane gives way: that is found by
conjugate gradients. Bonds are then said to be at rest where particles would stand without it,
``shift`` away from where they are, so that the pane as it was built is in equilibrium.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.bonds.bending import wall_factors
from vfx.sim.matter.material import critical_stretch, lattice_offsets, volume_share
from vfx.sim.settings import Complaint, Material

#: Layers below which there is no core between two surfaces.
LEAST_LAYERS = 3
#: The forces that are left in a body that has come to rest, relative to those at first.
REST = 1e-4
#: Rounds of conjugate gradients, at most.
MOST_ROUNDS = 600


@dataclass(frozen=True)
class Residual:
    """What keeps n elements under stress that nothing pulls at."""

    free: Array         # (n,) float64: strain at which an element by itself is at rest
    shift: Array        # (n, 3) float64 [m]: from where its bonds would have it to where it is

    def some(self, element: Array) -> Residual:
        """Return that of some elements."""
        return Residual(self.free[element], self.shift[element])

    def without(self, gone: Array) -> Residual | None:
        """Return it with nothing left in those elements; None where nothing is left in any."""
        if gone.all():
            return None
        return Residual(np.where(gone, 0.0, self.free), np.where(gone[:, None], 0.0, self.shift))


def layer_stress(n_layers: int, surface: float) -> Array:
    """Return the means (n,) [Pa] of the parabola over layers, for a compression at the surface."""
    edge = np.linspace(-1.0, 1.0, n_layers + 1)
    mean: Array = 0.5 * surface * np.diff(edge - edge**3) / np.diff(edge)
    return mean


def stored_energy(material: Material, thickness: float) -> float:
    """Return the energy an area [J/m^2], s^2 h / (10 K): that of sigma^2 / (2 K) over h."""
    return material.prestress**2 * thickness / (10.0 * material.bulk_modulus)


@dataclass(frozen=True)
class Layers:
    """What holds the layers of a pane of cubes: its bonds, as lengths in lambda."""

    factor: Array       # (n,): how much stiffer the bonds of each layer are, see surface.py
    horizon: float
    edge_volume: str

    @property
    def count(self) -> int:
        """Layers."""
        return len(self.factor)

    def bonds(self) -> tuple[Array, Array, Array]:
        """Return offsets (o, 3), the third across the pane, their lengths and shares of volume."""
        offset = np.array(lattice_offsets(self.horizon), np.float64)
        length = np.sqrt((offset**2).sum(axis=1))
        share = np.array([volume_share(each, self.horizon, self.edge_volume)
                          for each in length.tolist()])
        return offset, length, share

    def strains(self, stress: Array, unit: float) -> tuple[Array, Array]:
        """Return the free strain (n,) of each layer and how far it rises (n,) [lambda].

        ``stress`` (n,) [Pa] is that in the plane, which does not move; ``unit`` is c lambda^4 [Pa].
        No layer is pulled across the pane. The stress of a particle is half the sum of
        c s V |xi| n_x^2 over its bonds.
        """
        n, (offset, length, share) = self.count, self.bonds()
        along, across = np.zeros((2, n, 2 * n))
        for step in np.unique(offset[:, 2]).astype(int).tolist():
            here = np.arange(max(0, -step), min(n, n - step))
            own = offset[:, 2] == step
            size, weight, way = length[own], share[own], offset[own] / length[own][:, None]
            stiffer = self.factor[here] * self.factor[here + step]
            for rows, pull in ((along, 0.5 * unit * weight * size * way[:, 0]**2),
                               (across, unit * weight * way[:, 2])):
                # A bond is stretched by n_z (w_j - w_i) / |xi| - (e_i + e_j) / 2.
                rise = stiffer * (pull * way[:, 2] / size).sum()
                both = stiffer * 0.5 * pull.sum()
                rows[here, n + here + step] += rise
                rows[here, n + here] -= rise
                rows[here, here] -= both
                rows[here, here + step] -= both
        found = np.linalg.lstsq(np.concatenate([along, across]),
                                np.concatenate([stress, np.zeros(n)]), rcond=None)[0]
        return found[:n], found[n:]

    def largest_stretch(self, free: Array, rise: Array) -> float:
        """Return the stretch of the most stretched of its bonds."""
        offset, length, _ = self.bonds()
        largest = 0.0
        for (_, _, step), size in zip(offset.astype(int).tolist(), length.tolist(), strict=True):
            here = np.arange(max(0, -step), min(self.count, self.count - step))
            stretch = (step * (rise[here + step] - rise[here]) / size**2
                       - 0.5 * (free[here] + free[here + step]))
            largest = max(largest, float(stretch.max(initial=0.0)))
        return largest


def pane_residual(
    solid: Solid, body: int, factor: Array, horizon: float, edge_volume: str, surface: float,
    unit: float,
) -> tuple[Array, Array]:
    """Return free strains (k,) and rises (k, 3) [m] of the elements of a box of cubes.

    It is thin along the axis with the fewest cubes, and ``factor`` (n,) are those of all elements.
    Raises ValueError where it is no such box.
    """
    inside = solid.body == body
    cell = solid.cell[inside]
    size = cell.max(axis=0) + 1
    if solid.kind[body] != "grid" or int(np.prod(size)) != len(cell):
        raise ValueError(f"body '{solid.body_name[body]}' is no box of cubes: prestress is for "
                         "these alone")
    axis = int(size.argmin())
    others = [other for other in range(3) if other != axis]
    column = (cell[:, others] == size[others] // 2).all(axis=1)
    # Cells stand in order, so these are the layers from the lowest on.
    pane = Layers(factor[inside][column], horizon, edge_volume)
    free, rise = pane.strains(layer_stress(pane.count, surface), unit)
    layer = cell[:, axis]
    return free[layer], np.outer(
        rise[layer] * float(solid.length_scale[body]), solid.orientation[body][:, axis])


def prestress_complaint(
    bodies: Sequence[Body], materials: Mapping[str, Material], horizon: float, edge_volume: str,
    *, corrected: bool,
) -> Complaint | None:
    """Return why a body cannot have its prestress and what to do, or None."""
    for body in bodies:
        material = materials[body.material]
        if material.prestress == 0.0 or body.whole:
            continue
        key, found = f"materials.{body.material}.prestress", f"found {material.prestress:g} Pa"
        if not body.is_block:
            return key, (f"{found}, which is for bodies of cells alone, but body '{body.name}' is "
                         "none; give it cells = [x, y, z], or a material without prestress")
        if min(body.cells) < LEAST_LAYERS:
            return key, (f"{found}, but body '{body.name}' is {min(body.cells)} cells thin; a core "
                         f"between two surfaces takes {LEAST_LAYERS} or more")
        thin = min(body.cells)
        layers = Layers(wall_factors(thin, horizon, edge_volume) if corrected else np.ones(thin),
                        horizon, edge_volume)
        unit = 18.0 * material.bulk_modulus / (math.pi * horizon**4)
        stretch = layers.largest_stretch(
            *layers.strains(layer_stress(layers.count, material.prestress), unit))
        limit = critical_stretch(material, horizon * body.spacing)
        if stretch >= limit:
            return key, (f"{found}, which stretches bonds of body '{body.name}' by {stretch:.3g} "
                         f"where nothing has touched it, but they break at {limit:.3g}; give less "
                         f"than {material.prestress * limit / stretch:.3g}, or more strength")
    return None


def come_to_rest(forces: Callable[[Array], Array], start: Array, probe: float) -> Array:
    """Return displacements (n, 3) [m] near ``start`` at which the forces (n, 3) [N] vanish.

    Conjugate gradients (Hestenes & Stiefel 1952): the forces change evenly with small
    displacements. They are asked for at places up to ``probe`` [m] away. What is left is
    :data:`REST` of the forces without any displacement. Raises ValueError where it is not.
    """
    goal = REST * float(np.linalg.norm(forces(np.zeros_like(start))))
    place, rounds = start.copy(), 0
    while rounds < MOST_ROUNDS:
        # Begin again now and then: single precision loses the way.
        left = here = forces(place)
        base, way, square = place.copy(), left.copy(), float((left**2).sum())
        if np.sqrt(square) <= goal:
            return place
        for _ in range(50):
            rounds += 1
            length = probe / max(float(np.abs(way).max()), 1e-300)
            stiff = (here - forces(base + length * way)) / length
            share = square / float((way * stiff).sum())
            place, left = place + share * way, left - share * stiff
            before, square = square, float((left**2).sum())
            if np.sqrt(square) <= 0.5 * goal:
                break
            way = left + square / before * way
    raise ValueError(f"the residual stress of prestress comes to no rest in {MOST_ROUNDS} rounds; "
                     "use less of it")
