"""What a simulation steps: all elements of a world, or some as they are in the whole of it.

When a bond breaks must not depend on who else is stepped. So what is told of an element by its
number (the scatter of its strain limit), by its faces, or by its body as a whole (stiffness, mean
volume) is worked out for the whole world, once, and taken from there.
"""

from __future__ import annotations

import dataclasses
import weakref
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.subset import subset
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.bonds.prestress import Residual
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.control.collider import edge_length
from vfx.sim.control.initial import element_support, strain_limits
from vfx.sim.matter.contact import mean_volume
from vfx.sim.matter.parts import solid_parts
from vfx.sim.solver import Controls, World


@dataclass(frozen=True)
class Network:
    """What the bonds of n elements come to while none is broken."""

    stiffness: Array            # (b,) float64 [N/m^6]: c of each body
    n_bonds: Array              # (n,) int32: bonds of each element
    factor: Array | None        # (n,) float64: see surface.py; None where all bonds are alike
    stable_step: Array          # (b,) float64 [s] of each body
    residual: Residual | None   # stress that nothing pulls at; None where no material has any

    def some(self, element: Array) -> Network:
        """Return that of some elements."""
        return dataclasses.replace(
            self, n_bonds=self.n_bonds[element],
            factor=None if self.factor is None else self.factor[element],
            residual=self.residual and self.residual.some(element))


@dataclass(frozen=True)
class Specimen:
    """n elements to be stepped, with all that depends on the whole world they are of."""

    solid: Solid                # without faces where they are some
    element: Array              # (n,) their numbers in the world
    edge: Array                 # (m,) the numbers of their edges
    controls: Controls
    limit: Array                # (n,) float64: strain limits
    support: Array              # (n,) float64 [m]: reach downward
    edge_length: Array          # (b,) float64 [m], see collider.py
    mean_volume: Array          # (b,) float64 [m^3]
    part: Array | None          # (n,) int32, see parts.py; None where it is yet to be found
    network: Network | None     # None where it is yet to be found: of a whole world

    def without_stress(self, gone: Array) -> Specimen:
        """Return it without the residual stress of some of its elements, (n,) bool."""
        if self.network is None or self.network.residual is None:
            return self
        return dataclasses.replace(self, network=dataclasses.replace(
            self.network, residual=self.network.residual.without(gone)))


def whole_specimen(world: World[BondSettings]) -> Specimen:
    """Return all elements of a world."""
    solid = world.solid
    return Specimen(
        solid=solid, element=np.arange(solid.n_elements), edge=np.arange(len(solid.edge)),
        controls=world.controls, limit=world_limits(world), support=element_support(solid),
        edge_length=edge_length(solid), mean_volume=mean_volume(solid), part=None, network=None)


def world_limits(world: World[BondSettings]) -> Array:
    """Return the strain limit of each particle, (n,) float64."""
    materials = [world.materials[str(name)] for name in world.solid.material_name]
    return strain_limits(world.solid, materials, world.settings.horizon, world.shared.seed,
                         world.controls.strength)


class Whole:
    """A world as a whole, of which specimens are taken."""

    def __init__(self, world: World[BondSettings]) -> None:
        self.specimen = whole_specimen(world)
        self.network: Network | None = None     # for whoever builds it first to note
        self._part: Array | None = None

    def some(self, element: Array) -> Specimen:
        """Return (k,) elements, ascending; the network must be known."""
        if self._part is None:
            self._part = solid_parts(self.specimen.solid)
        assert self.network is not None, "bonds of the whole are found first"
        solid, edge = subset(self.specimen.solid, element)
        controls, whole = self.specimen.controls, self.specimen
        return dataclasses.replace(
            whole, solid=solid, element=element, edge=edge,
            controls=dataclasses.replace(
                controls, held=controls.held[element],
                strength=tuple(factor[element] for factor in controls.strength)),
            limit=whole.limit[element], support=whole.support[element], part=self._part[element],
            network=self.network.some(element))


#: What is known of worlds that still exist, by their identity.
_known: dict[int, Whole] = {}


def whole_of(world: World[BondSettings]) -> Whole:
    """Return a world as a whole; of one that was asked for before, what is known already."""
    if id(world) not in _known:
        _known[id(world)] = Whole(world)
        weakref.finalize(world, _known.pop, id(world))
    return _known[id(world)]
