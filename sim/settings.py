"""What a shot says about the physics.

Symbols: K bulk modulus, G fracture energy, N horizon in units of the length scale lambda,
K_c and K_S as in levine-2014 eqs. 6 and 7.
"""

from __future__ import annotations

from dataclasses import dataclass

from vfx.geometry.bodies import Vector
from vfx.geometry.schema import REQUIRED, setting


@dataclass(frozen=True)
class Material:
    """A brittle elastic material; its Poisson ratio is 1/4, as bond-based bodies have."""

    density: float = setting(2200.0, "Mass density.", unit="kg/m^3", above=0.0)
    bulk_modulus: float = setting(32.81e9, "Bulk modulus K.", unit="Pa", above=0.0)
    strain_limit: float = setting(
        0.0, "Stretch at which a bond breaks; 0 derives it from fracture_energy.", at_least=0.0)
    fracture_energy: float = setting(
        10.0, "Energy G to open a crack; used where strain_limit is 0.", unit="J/m^2", above=0.0)
    strain_scatter: float = setting(
        0.02, "Standard deviation of the strain limit, relative.", at_least=0.0, at_most=0.3)
    compression_strengthening: float = setting(
        0.25, "alpha of levine-2014 eq. 5: how compression raises the limit.", at_least=0.0)


@dataclass(frozen=True)
class Solver:
    """The time stepper and the forces common to all bodies."""

    horizon: float = setting(
        3.0, "Horizon delta in units of lambda: reach of the bonds.", at_least=1.0, at_most=8.0)
    timestep: float = setting(2.0**-23, "Time step.", unit="s", above=0.0)
    gravity: Vector = setting((0.0, -9.81, 0.0), "Gravity.", unit="m/s^2")
    contact_stiffness: float = setting(
        1e8, "K_c of levine-2014 eq. 6; 0 turns contact off.", unit="Pa", at_least=0.0)
    calibrate: bool = setting(
        False, "Scale the bond stiffness so that an interior particle has exactly K.")
    edge_volume: str = setting(
        "full", "Share of a neighbour's volume that counts near the horizon: all of it, or "
        "what falls off to a half over the last lambda/2.", choices=("full", "partial"))
    break_rule: str = setting(
        "larger", "Which of the strain limits of its two ends breaks a bond; the paper takes "
        "the larger.", choices=("larger", "smaller"))
    weak_factor: float = setting(
        0.3, "Strain limit of a bond that crosses a [[weakening]] path, relative.",
        at_least=0.0, at_most=1.0)
    seed: int = setting(1, "Seed of the scatter of strain limits.", at_least=0, at_most=2**31 - 1)


@dataclass(frozen=True)
class Floor:
    """A horizontal plane that elements bounce off."""

    enabled: bool = setting(True, "Whether there is a floor (for the sim and in the picture).")
    height: float = setting(0.0, "Height y of the floor.", unit="m")
    restitution: float = setting(
        0.99, "Part of the normal speed kept by a bounce.", at_least=0.0, at_most=1.0)
    friction: float = setting(0.0, "Coulomb friction of the bounce.", at_least=0.0)


@dataclass(frozen=True)
class Projectile:
    """A rigid ball that flies at constant velocity and pushes by levine-2014 eq. 7."""

    radius: float = setting(0.01, "Radius r.", unit="m", above=0.0)
    position: Vector = setting(REQUIRED, "Centre at the first frame.", unit="m")
    velocity: Vector = setting(REQUIRED, "Velocity.", unit="m/s")
    stiffness: float = setting(
        1e15, "K_S of levine-2014 eq. 7, taken as a body-force density.",
        unit="N/m^5", at_least=0.0)


@dataclass(frozen=True)
class Weakening:
    """Crack paths: bonds that cross them break earlier. Random walks from an origin."""

    paths: int = setting(0, "Number of random walks; 0 for none.", at_least=0, at_most=10_000)
    origin: Vector = setting((0.0, 0.0, 0.0), "Where the walks start.", unit="m")
    normal: Vector = setting(
        (0.0, 0.0, 1.0), "The walks run perpendicular to this direction and cut along it.")
    length: float = setting(0.1, "Length of a walk.", unit="m", above=0.0)
    step: float = setting(4e-3, "Length of one stride.", unit="m", above=0.0)
    wander: float = setting(
        25.0, "Standard deviation of a stride's turn.", unit="degrees", at_least=0.0, at_most=180.0)
    branching: float = setting(
        0.05, "Chance a stride starts a branch.", at_least=0.0, at_most=1.0)
    seed: int = setting(1, "Seed of the walks.", at_least=0, at_most=2**31 - 1)
