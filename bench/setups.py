"""Setups and simulations of bonds from loose keys: for benches, validation and tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from vfx.device import Device
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.bonds.cluster_bonds import ClusterBonds
from vfx.sim.bonds.lattice import LatticeBonds
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.control.controls import make_world
from vfx.sim.settings import Shared
from vfx.sim.solver import Setup

BondLayout = type[ClusterBonds] | type[LatticeBonds]


def bond_setup(**keys: object) -> Setup[BondSettings]:
    """Return a setup; keys are those of ``[sim.bonds]``, of ``[sim]`` and of :class:`Setup`.

    Lists become tuples, as shots have them.
    """
    given = {key: tuple(value) if isinstance(value, list) else value
             for key, value in keys.items()}

    def take(section: type[object]) -> dict[str, object]:
        names = [field.name for field in dataclasses.fields(section)]  # type: ignore[arg-type]
        return {name: given.pop(name) for name in names if name in given}

    own = {"settings": BondSettings(**take(BondSettings)),  # type: ignore[arg-type]
           "shared": Shared(**take(Shared))}  # type: ignore[arg-type]
    return Setup(**(own | given))  # type: ignore[arg-type]


def bond_simulation(
    device: Device, solid: Solid, layout: BondLayout | None = None,
    images: Mapping[str, Array] | None = None, **keys: object,
) -> Simulation:
    """Return the bonds of a solid, set up by loose keys."""
    return Simulation(device, make_world(solid, bond_setup(**keys), images), layout)
