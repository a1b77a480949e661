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
    volume_share,
)
from vfx.sim.ordering import LANES
from vfx.sim.settings import Material, Projectile, Solver

# Measured as the largest resident memory of ``vfx stage sim`` on plates of 16, 131 and 524
# thousand particles through an impact: 137, 175 and 426 MB, of which 1.09 to 1.26 times is said.
#: Bytes of a process before it simulates anything: interpreter, libraries, kernels.
BYTES_A_PROCESS = 105_000_000
#: Bytes of the plot at the end, drawn when the simulation has given its memory back.
BYTES_A_PLOT = 45_000_000
#: Bytes a lane at the peak: state, contact lists, tables, copies for frames and checkpoints.
BYTES_A_LANE = 790
#: Bytes a lane for each neighbour within the horizon: live and weak bits, and a copy of them.
BYTES_A_NEIGHBOR = 0.25


@dataclass(frozen=True)
class BodyPlan:
    """What one body comes to; lengths in metres."""

    name: str
    n_particles: int
    n_bonds: int
    n_lanes: int             # particles with the padding of their rows
    length_scale: float
    horizon: float
    strain_limit: float


@dataclass(frozen=True)
class Plan:
    """The whole shot; ``step_limits`` names the largest stable step [s] of each cause."""

    bodies: tuple[BodyPlan, ...]
    n_neighbors: int         # of a particle in the interior
    step_limits: Mapping[str, float]

    @property
    def n_particles(self) -> int:
        """Particles of all bodies."""
        return sum(body.n_particles for body in self.bodies)

    @property
    def n_bonds(self) -> int:
        """Bonds of all bodies."""
        return sum(body.n_bonds for body in self.bodies)

    @property
    def memory(self) -> int:
        """Bytes of memory of the whole process at the peak, an estimate from above."""
        lanes = sum(body.n_lanes for body in self.bodies)
        return BYTES_A_PROCESS + max(BYTES_A_PLOT, math.ceil(
            lanes * (BYTES_A_LANE + BYTES_A_NEIGHBOR * self.n_neighbors)))

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
        return (f"{timestep:.4g} s is above the stable step {self.stable_step:.4g} s, set by "
                f"{cause}; use timestep = {self.auto_step!r} or timestep = \"auto\", or "
                "soften what sets it")


def make_plan(
    bodies: Sequence[Body], materials: Mapping[str, Material], solver: Solver,
    projectiles: Sequence[Projectile] = (),
) -> Plan:
    """Work out sizes, strain limits and stable steps from the settings alone."""
    offsets = lattice_offsets(solver.horizon)
    lengths = [math.sqrt(x * x + y * y + z * z) for x, y, z in offsets]
    shares = [volume_share(length, solver.horizon, solver.edge_volume) for length in lengths]
    plans, limits = [], {}
    for body in bodies:
        material = materials[body.material]
        spacing = body.spacing
        delta = solver.horizon * spacing
        stiffness = bond_stiffness(material, delta)
        if solver.calibrate:
            reach = sum(share * length for share, length in zip(shares, lengths, strict=True))
            stiffness = 18.0 * material.bulk_modulus / (reach * spacing**4)
        stiffest = stiffness * spacing**2 * sum(
            share / length for share, length in zip(shares, lengths, strict=True))
        plans.append(BodyPlan(
            body.name, math.prod(body.cells), count_bonds(body.cells, offsets),
            count_lanes(body.cells), spacing, delta, critical_stretch(material, delta)))
        limits[f"the bonds of body '{body.name}' (bulk_modulus, density, spacing)"] = \
            stable_step(material.density, stiffest)
        limits[f"contact of body '{body.name}' (contact_stiffness)"] = \
            contact_step(material.density, spacing, solver.contact_stiffness)
        volume = math.prod(body.cells) * spacing**3
        for number, projectile in enumerate(projectiles):
            keys = "stiffness, radius, mass" if projectile.mass > 0.0 else "stiffness, radius"
            limits[f"projectile {number} on body '{body.name}' ({keys})"] = \
                projectile_step(material.density, projectile, volume)
    return Plan(tuple(plans), len(offsets), limits)


def count_bonds(cells: tuple[int, int, int], offsets: Sequence[tuple[int, int, int]]) -> int:
    """Return the bonds of a whole box: the pairs of its cubes that are such an offset apart."""
    return sum(math.prod(max(0, n - abs(step)) for n, step in zip(cells, offset, strict=True))
               for offset in offsets) // 2


def count_lanes(cells: tuple[int, int, int]) -> int:
    """Return the lanes of a box whose rows lie along the axis that wastes the fewest."""
    return min(math.prod(cells) // n * (-(-n // LANES) * LANES) for n in cells)
