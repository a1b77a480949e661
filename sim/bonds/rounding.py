"""Which limits are too low for displacements that are rounded: a body would crumble by itself."""

from __future__ import annotations

from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.clusters import displacement_grain
from vfx.sim.matter.material import critical_stretch, growth_energy, growth_share
from vfx.sim.settings import Complaint, Material

#: Units of the displacements that the least stretch at which bonds may break is made of.
LEAST_UNITS = 32.0


def rounding_complaint(
    body: Body, material: Material, delta: float, horizon: float
) -> Complaint | None:
    """Return why a body breaks at stretches that cannot be told from rounding, or None.

    ``delta`` is its horizon in metres, ``horizon`` in lambda.
    """
    least = LEAST_UNITS * displacement_grain(horizon)
    limit = critical_stretch(material, delta) * growth_share(material, delta)
    if body.whole or limit >= least:
        return None
    told = (f", with which body '{body.name}' breaks at a stretch of {limit:.2g}; displacements "
            f"are rounded so that stretches below {least:.2g} mean nothing; it must be ")
    where = f"materials.{body.material}"
    if material.strain_limit > 0.0:
        return f"{where}.strain_limit", f"found {limit:g}{told}{least:.2g} or more"
    return f"{where}.fracture_energy", (
        f"found {material.fracture_energy:g} J/m^2{told}"
        f"{growth_energy(material, delta, least):.2g} J/m^2 or more for elements of "
        f"{delta / horizon:.3g} m and bulk_modulus = {material.bulk_modulus:g} Pa")
