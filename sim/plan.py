"""What a shot will cost and whether its step is stable, known before anything is built.

For grids the sums over a particle's bonds are those of the cubic lattice; the simulation
checks again with the sums of the network that it built.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vfx.geometry.bodies import Body
from vfx.sim.material import (
    SAFETY,
    bond_stiffness,
    contact_step,
    critical_stretch,
    lattice_offsets,
    projectile_step,
    stable_step,
)
from vfx.sim.settings import Material, Projectile, Solver

#: Bytes a particle at the peak of set-up and run: state, lists, hash table, host copies.
BYTES_A_PARTICLE = 732
#: Bytes a pair of clusters while pairs are found, and how many bonds share one.
BYTES_A_PAIR, BONDS_A_PAIR = 150, 24


@dataclass(frozen=True)
class BodyPlan:
    """What one body comes to; lengths in metres."""

    name: str
    n_particles: int
    n_bonds: int             # upper estimate: every particle as in the interior
    length_scale: float
    horizon: float
    strain_limit: float


@dataclass(frozen=True)
class Plan:
    """The whole shot; ``step_limits`` names the largest stable step [s] of each cause."""

    bodies: tuple[BodyPlan, ...]
    step_limits: Mapping[str, float]

    @property
    def n_particles(self) -> int:
        """Particles of all bodies."""
        return sum(body.n_particles for body in self.bodies)

    @property
    def n_bonds(self) -> int:
        """Bonds of all bodies, an upper estimate."""
        return sum(body.n_bonds for body in self.bodies)

    @property
    def memory(self) -> int:
        """Bytes of memory at the peak, an estimate."""
        return (self.n_particles * BYTES_A_PARTICLE
                + self.n_bonds * BYTES_A_PAIR // BONDS_A_PAIR)

    @property
    def stable_step(self) -> float:
        """The largest step [s] that a shot may use, safety included."""
        return SAFETY * min(self.step_limits.values())

    @property
    def auto_step(self) -> float:
        """The largest power of two that is a stable step [s]."""
        return float(2.0 ** math.floor(math.log2(self.stable_step)))

    def complaint(self, timestep: float) -> str | None:
        """Return why ``timestep`` is refused and what to do, or None."""
        if timestep <= self.stable_step:
            return None
        cause = min(self.step_limits, key=lambda name: self.step_limits[name])
        return (f"{timestep:.4g} s is above the stable step {self.stable_step:.4g} s, which "
                f"{cause} sets; use timestep = {self.auto_step!r} or timestep = \"auto\", or "
                "soften what sets it")


def make_plan(
    bodies: Sequence[Body], materials: Mapping[str, Material], solver: Solver,
    projectiles: Sequence[Projectile] = (),
) -> Plan:
    """Work out sizes, strain limits and stable steps from the settings alone."""
    offsets = lattice_offsets(solver.horizon)
    lengths = [math.sqrt(x * x + y * y + z * z) for x, y, z in offsets]
    plans, limits = [], {}
    for body in bodies:
        material = materials[body.material]
        spacing = body.spacing
        delta = solver.horizon * spacing
        stiffness = bond_stiffness(material, delta)
        if solver.calibrate:
            stiffness = 18.0 * material.bulk_modulus / (sum(lengths) * spacing**4)
        stiffest = stiffness * spacing**2 * sum(1.0 / length for length in lengths)
        count = math.prod(body.cells)
        plans.append(BodyPlan(body.name, count, count * len(offsets) // 2, spacing, delta,
                              critical_stretch(material, delta)))
        limits[f"the bonds of body '{body.name}' (bulk_modulus, density, spacing)"] = \
            stable_step(material.density, stiffest)
        limits[f"contact of body '{body.name}' (contact_stiffness)"] = \
            contact_step(material.density, spacing, solver.contact_stiffness)
        for number, projectile in enumerate(projectiles):
            limits[f"projectile {number} on body '{body.name}' (stiffness, radius)"] = \
                projectile_step(material.density, projectile)
    return Plan(tuple(plans), limits)
