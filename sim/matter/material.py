"""From material constants to what a particle needs: stiffness, thresholds, the stable step.

Symbols: K bulk modulus [Pa], G fracture energy [J/m^2], delta horizon [m], c bond stiffness
[N/m^6], s0 critical stretch, rho density [kg/m^3], xi a bond at rest [m].
"""

from __future__ import annotations

import math

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.settings import Material, Projectile

#: Young's modulus over bulk modulus, for the Poisson ratio 1/4 of bonds.
YOUNGS_SHARE = 1.5
#: Share of the estimated stable step that a shot may use.
SAFETY = 0.9
#: Radii from its centre within which a ball pushes (levine-2014 eq. 7).
SHELL = 1.5
#: Slices of a ball's shell over which its push is summed.
_SLICES = 64


def bond_stiffness(material: Material, delta: float) -> float:
    """Return c = 18 K / (pi delta^4) (levine-2014 eq. 4, Silling & Askari 2005)."""
    return 18.0 * material.bulk_modulus / (math.pi * delta**4)


def critical_stretch(material: Material, delta: float) -> float:
    """Return the strain limit of whole matter: the shot's, or what its strength or G comes to.

    A bar under a stress is stretched by stress / E. Where cells are so small that a crack needs
    more than that to grow, that counts.
    """
    if material.strain_limit > 0.0:
        return material.strain_limit
    return max(material.strength / (YOUNGS_SHARE * material.bulk_modulus),
               growth_stretch(material, delta))


def growth_stretch(material: Material, delta: float) -> float:
    """Return the stretch s0 = sqrt(5 G / (9 K delta)) at which a crack grows.

    Silling & Askari (2005) derive s0 with the 9 that levine-2014 eq. 4 does not print.
    """
    return math.sqrt(5.0 * material.fracture_energy / (9.0 * material.bulk_modulus * delta))


def growth_energy(material: Material, delta: float, stretch: float) -> float:
    """Return the energy G [J/m^2] of cracks that grow at a stretch."""
    return 9.0 / 5.0 * material.bulk_modulus * delta * stretch**2


def growth_share(material: Material, delta: float) -> float:
    """Return the strain limit of bonds across a crack, relative to that of whole matter.

    It is 1, and cracks are not looked for, where the shot gives no strength.
    """
    if material.strength == 0.0:
        return 1.0
    return min(1.0, growth_stretch(material, delta) / critical_stretch(material, delta))


def lattice_offsets(horizon: float) -> list[tuple[int, int, int]]:
    """Return the neighbours of a cubic lattice's point within ``horizon`` spacings."""
    reach = math.floor(horizon + 1e-6)
    span = range(-reach, reach + 1)
    return [(x, y, z) for x in span for y in span for z in span
            if 0 < x * x + y * y + z * z <= (horizon * (1 + 1e-6)) ** 2]


def volume_share(length: float, horizon: float, edge_volume: str) -> float:
    """Return the share of a neighbour's volume that counts; both lengths in lambda.

    "partial" is the rule of LAMMPS's peri styles: a neighbour whose cell the horizon cuts counts
    by a share that falls from 1 at delta - lambda/2 to 1/2 at delta.
    """
    if edge_volume == "full":
        return 1.0
    return min(1.0, max(0.5, horizon + 0.5 - length))


def stable_step(density: float, stiffness_sum: float) -> float:
    """Return the largest stable step [s] of a particle: sqrt(2 rho / sum_j c V_j / |xi|).

    Silling & Askari (2005), from the stability of a plane wave. ``stiffness_sum`` is the sum
    [N/m^4] over the particle's bonds.
    """
    return math.sqrt(2.0 * density / stiffness_sum) if stiffness_sum > 0.0 else math.inf


def contact_step(density: float, length_scale: float, contact_stiffness: float,
                 distance: float = 0.5) -> float:
    """Return the stable step of two particles in deepest contact.

    The repulsion K_c (d - D)^2, D = ``distance`` lambda, is stiffest at d = 0: 2 K_c D [N/m], on
    the reduced mass of two cubes of edge lambda.
    """
    stiffest = 2.0 * distance * contact_stiffness * length_scale
    return (2.0 * math.sqrt(density * length_scale**3 / 2.0 / stiffest) if stiffest > 0.0
            else math.inf)


def projectile_step(density: float, projectile: Projectile, volume: float = 0.0) -> float:
    """Return the step that resolves the projectile's shell.

    The force density rises by K_S r^2 over r/4 (levine-2014 eq. 7): a stiffness of 4 K_S r.
    ``volume`` [m^3] is that of the body.
    """
    if projectile.stiffness == 0.0:
        return math.inf
    inverse = float(pushed_apart(density, projectile, volume))
    return 2.0 / math.sqrt(4.0 * projectile.stiffness * projectile.radius * inverse)


def pushed_apart(
    density: float | Array, projectile: Projectile, volume: float | Array
) -> float | Array:
    """Return how ball and body part for a force density: acceleration [m/s^2] for each N/m^3.

    A ball with a mass m moves too: two masses on a spring, where at most the volume of the body,
    and no more than fills the shell from 3r/4 to 3r/2, can push at once.
    """
    apart = 1.0 / density
    if projectile.mass > 0.0:
        shell = 4.0 / 3.0 * math.pi * (1.5**3 - 0.75**3) * projectile.radius**3
        apart = apart + np.minimum(shell, volume) / projectile.mass
    return apart


def push(projectile: Projectile, distance: float) -> float:
    """Return the force density [N/m^3] of a ball at a distance from its centre (eq. 7)."""
    inner = distance - 0.75 * projectile.radius
    outer = distance - SHELL * projectile.radius
    if inner <= 0.0 or outer >= 0.0:
        return 0.0
    return projectile.stiffness * math.cbrt(16.0 * inner * outer**2) ** 2


def thrown_speed(density: float, projectile: Projectile, distance: float) -> float:
    """Return the speed [m/s] at which a ball throws off what begins so far from its centre.

    All the work of its push from there outward goes into it, as nothing has had time to give way.
    """
    start = max(distance, 0.75 * projectile.radius)
    width = (SHELL * projectile.radius - start) / _SLICES
    if width <= 0.0:
        return 0.0
    work = width * sum(push(projectile, start + (k + 0.5) * width) for k in range(_SLICES))
    return math.sqrt(2.0 * work / density)
