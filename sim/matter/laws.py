"""What the host knows of a bond law: its constants, by the settings they are, and its slope.

A law stands in ``laws.cuh``: its constants are the fields of ``struct BondLaw``, and each is the
setting of that name, or one of :data:`DERIVED`. A law with another constant has one more field
there and one more setting; no layout and no kernel is told of it, and the stable step follows from
the slope.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vfx.geometry.handoff.schema import rule_of
from vfx.sim.matter.material import growth_share
from vfx.sim.settings import Material

if TYPE_CHECKING:
    from vfx.device import Device

FILE = "sim/matter/laws.cuh"
#: Constants that are made of a material and the horizon [m].
DERIVED: dict[str, Callable[[Material, float], float]] = {"growth_share": growth_share}


def steepest_slope(material: Material) -> float:
    """Return how much steeper than c the force of a bond may become, at any stretch.

    The derivative of ``bond_force`` by the stretch, at its largest: a step is stable if it is
    so for springs of that stiffness. Force and stretch are proportional (levine-2014 eq. 3).
    """
    return 1.0


def bond_laws(device: Device, materials: Sequence[Material], delta: Sequence[float],
              *sections: Any) -> Any:
    """Return the law of each body as a row of ``struct BondLaw``, on the device.

    ``delta`` [m] are the horizons of the bodies, ``sections`` the settings that all share.
    """
    names = device.fields(FILE, "BondLaw")
    return device.rows(FILE, "BondLaw", [
        {name: DERIVED[name](material, reach) if name in DERIVED
         else constant(name, material, *sections) for name in names}
        for material, reach in zip(materials, delta, strict=True)])


def constant(name: str, *sections: Any) -> float:
    """Return the setting of that name of one of the sections as a number; of words their place."""
    for section in sections:
        for field in dataclasses.fields(section):
            if field.name == name:
                value, choices = getattr(section, name), rule_of(field).choices
                return float(list(choices).index(value) if choices else value)
    raise KeyError(f"{FILE}: struct BondLaw has a constant {name}, but there is no such setting "
                   "of a material, of [sim] or of the solver; write one in sim/settings.py, or in "
                   "the settings.py of the solver's room")
