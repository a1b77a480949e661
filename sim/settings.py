"""What a shot says about the physics.

Keys that one solver alone has stand in its room. Symbols: K bulk modulus, G fracture energy,
K_S as in levine-2014 eq. 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from vfx.geometry.handoff.bodies import PLACE, SIZE, SPEED, TURN, Vector
from vfx.geometry.handoff.schema import REQUIRED, setting

#: A time [s] and a place [m] at that time.
Key = tuple[float, float, float, float]
#: What is wrong with a section as a whole: (key, sentence).
Complaint = tuple[str, str]
#: Directions shorter than this point nowhere.
SHORTEST_DIRECTION = 1e-6
#: Rectangles have sides of at least this length [m].
SHORTEST_SIDE = SIZE["at_least"]
#: K_S of a ball that does not say it [N/m^5].
LEVINE_STIFFNESS = 1e15
#: Nothing that breaks bears more.
LARGEST_STRETCH = 1.0
#: The lightest ball [kg], a grain of some nanometres.
LEAST_MASS = 1e-24
#: Walks with all their branches end here, whatever the branching chance.
MAX_SEGMENTS = 20_000


@dataclass(frozen=True)
class Material:
    """A brittle elastic material; its Poisson ratio is 1/4, as bond-based bodies have."""

    density: float = setting(2200.0, "Mass density.", unit="kg/m^3", at_least=1e-3, at_most=1e6)
    bulk_modulus: float = setting(
        32.81e9, "Bulk modulus K.", unit="Pa", at_least=1.0, at_most=1e15)
    strain_limit: float = setting(
        0.0, "Stretch at which a bond breaks; 0 derives it from strength and fracture_energy.",
        at_least=0.0, at_most=1e6)
    strength: float = setting(
        0.0, "Tensile strength: the stress at which a bar without a crack breaks. Cracks, once "
        "there, then grow by fracture_energy, at less than that stress. 0: everything breaks by "
        "strain_limit or fracture_energy alone, as in levine-2014.", unit="Pa",
        at_least=0.0, at_most=1e15)
    fracture_energy: float = setting(
        10.0, "Energy G to open a crack; used where strain_limit is 0.", unit="J/m^2",
        at_least=1e-9, at_most=1e12)
    prestress: float = setting(
        0.0, "Residual stress, as tempered glass has it: the compression at the surfaces of a "
        "pane, whose core is stretched by half of it. A crack that reaches the core runs on by "
        "itself. For bodies of `cells`, at least three thick; 0 for none.", unit="Pa",
        at_least=0.0, at_most=1e15)
    strain_scatter: float = setting(
        0.02, "Standard deviation of the strain limit, relative.", at_least=0.0, at_most=0.3)
    compression_strengthening: float = setting(
        0.25, "alpha of levine-2014 eq. 5: how compression raises the limit.",
        at_least=0.0, at_most=1e6)
    restitution: float = setting(
        0.2, "Part of the normal speed kept by a bounce of rigid pieces; between two of them the "
        "mean counts.", at_least=0.0, at_most=1.0)
    friction: float = setting(
        0.6, "Coulomb friction of rigid pieces; between two of them the mean counts.",
        at_least=0.0, at_most=1e3)

    def complaints(self) -> Iterator[Complaint]:
        """Yield what is wrong with the section as a whole."""
        stretch = self.strength / (1.5 * self.bulk_modulus)
        if stretch >= LARGEST_STRETCH:
            yield "strength", (
                f"found {self.strength:g} Pa, which whole matter of bulk_modulus = "
                f"{self.bulk_modulus:g} Pa reaches at a stretch of {stretch:.3g}, strength / (1.5 "
                f"bulk_modulus); it must be below {LARGEST_STRETCH:g}: give both in Pa, and to a "
                "body that never breaks whole = true")


@dataclass(frozen=True)
class Shared:
    """What all solvers share."""

    gravity: Vector = setting(
        (0.0, -9.81, 0.0), "Gravity.", unit="m/s^2", at_least=-1e6, at_most=1e6)
    weak_factor: float = setting(
        0.3, "Strain limit of what [[weakening]] weakens, relative.",
        at_least=0.0, at_most=1.0)
    seed: int = setting(1, "Seed of the scatter of strain limits.", at_least=0, at_most=2**31 - 1)


@dataclass(frozen=True)
class Floor:
    """A horizontal plane that elements bounce off."""

    enabled: bool = setting(True, "Whether there is a floor (for the sim and in the picture).")
    height: float = setting(0.0, "Height y of the floor.", **PLACE)
    restitution: float | Literal["auto"] = setting(
        "auto", "Part of the normal speed kept by a bounce; \"auto\" is 0.99 for bonds, as in the "
        "paper, and that of the material for rigid pieces.", at_least=0.0, at_most=1.0)
    friction: float | Literal["auto"] = setting(
        "auto", "Coulomb friction of the bounce; \"auto\" is 0 for bonds, as in the paper, and "
        "that of the material for rigid pieces.", at_least=0.0, at_most=1e3)


@dataclass(frozen=True)
class Projectile:
    """A rigid ball that pushes what it hits.

    With a mass or a material it acts by contact, at the surface where it is drawn: elements bounce
    off it, with friction, and it takes the opposite impulse, spins, and bounces off floor and
    colliders. It may begin anywhere outside of the bodies.

    Without, or with `push = "levine"`, it pushes by levine-2014 eq. 7: elements whose centres are
    between 0.75 and 1.5 radii from its own, most at one radius, so let it begin farther than 1.5
    radii from a body, or its first step is a blow. Bodies give way before the ball in the picture
    touches them. Without a mass it flies at constant velocity, whatever it hits, and pushes
    halfway between its flight and straight away, as the paper has it. With one it takes the
    reaction of what it pushes, which is then straight away from its centre.
    """

    radius: float = setting(
        0.01, "Radius r: of the ball that is drawn, and that bounces off floor and colliders if it "
        "has a mass; by contact it pushes at r, as levine-2014 has it from 0.75 r to 1.5 r.",
        **SIZE)
    position: Vector = setting(
        REQUIRED, "Centre at the first frame, outside of all elements; more than 1.5 radii from "
        "them where it pushes as levine-2014 has it.", **PLACE)
    velocity: Vector = setting(REQUIRED, "Velocity at the first frame.", **SPEED)
    push: str = setting(
        "auto", "How it pushes: by contact at its surface, or by levine-2014 eq. 7; \"auto\" is by "
        "contact where it has a mass or a material.", choices=("auto", "contact", "levine"))
    stiffness: float = setting(
        LEVINE_STIFFNESS, "K_S of levine-2014 eq. 7, taken as a body-force density; of no use by "
        "contact.", unit="N/m^5", at_least=0.0, at_most=1e24)
    mass: float = setting(
        0.0, "Mass; 0 is that of its material or, without one, infinite: nothing slows the ball.",
        unit="kg", at_least=0.0, at_most=1e18)
    material: str = setting(
        "", "One of `[materials.<name>]`: gives its look and, where no mass is written, its mass.")
    restitution: float = setting(
        0.2, "By contact: part of the normal speed kept by a bounce.", at_least=0.0, at_most=1.0)
    friction: float = setting(
        0.3, "By contact: Coulomb friction of what it hits.", at_least=0.0, at_most=1e3)
    falls: bool = setting(False, "Whether gravity acts on it; needs a mass or a material.")
    box: Vector = setting(
        (0.0, 0.0, 0.0), "Edges of a box that is thrown instead of a ball: as a body that never "
        "breaks, called projectile_<number>.", **SIZE)
    mesh: str = setting("", "A closed mesh that is thrown so, as `mesh` in `[[bodies]]`.")
    height: float = setting(0.0, "Of a mesh: the height that it is scaled to.", **SIZE)
    rotation: Vector = setting(
        (0.0, 0.0, 0.0), "Of a box or mesh: rotation about x, then y, then z.", **TURN)
    angular_velocity: Vector = setting(
        (0.0, 0.0, 0.0), "Of a box or mesh: angular velocity at the first frame.", unit="rad/s",
        at_least=-1e9, at_most=1e9)
    elements: int = setting(
        0, "Of a box or mesh: number of elements; 300 if left out.", at_least=1,
        at_most=100_000_000)

    @property
    def touches(self) -> bool:
        """Whether it pushes by contact at its surface."""
        return self.push == "contact" or (
            self.push == "auto" and (self.mass > 0.0 or bool(self.material)))

    @property
    def has_mass(self) -> bool:
        """Whether what it hits slows it."""
        return self.mass > 0.0 or bool(self.material)

    def mass_of(self, materials: Mapping[str, Material]) -> float:
        """Return its mass [kg], or that of a ball of its material; 0 is infinite."""
        if self.mass > 0.0 or not self.material:
            return self.mass
        return materials[self.material].density * 4.0 / 3.0 * math.pi * self.radius**3

    def complaints(self) -> Iterator[Complaint]:
        """Yield what is wrong with the section as a whole."""
        if self.falls and not self.has_mass:
            yield "falls", ("is true, but the ball has no mass; give its mass in kg, or its "
                            "material")
        if self.push == "levine" and self.material:
            yield "material", ("does nothing with push = \"levine\"; give the mass in kg, or leave "
                               "out push")
        if 0.0 < self.mass < LEAST_MASS:
            yield "mass", (f"found {self.mass:g} kg, but it must be {LEAST_MASS:g} kg or more; 0 "
                           "is infinite")


@dataclass(frozen=True)
class Collider:
    """A rigid thing that elements bounce off, as off the floor."""

    shape: str = setting("plane", "What it is.", choices=("plane", "sphere", "box"))
    position: Vector = setting(
        (0.0, 0.0, 0.0), "Its centre, or a point of the plane; keys replace it.", **PLACE)
    normal: Vector = setting(
        (0.0, 1.0, 0.0), "Of a plane: the direction toward its free side.",
        at_least=-1e7, at_most=1e7)
    radius: float = setting(0.05, "Of a sphere: its radius.", **SIZE)
    size: Vector = setting((0.1, 0.1, 0.1), "Of a box: its edges.", **SIZE)
    rotation: Vector = setting(
        (0.0, 0.0, 0.0), "Of a box: rotation about x, then y, then z.", **TURN)
    restitution: float | Literal["auto"] = setting(
        "auto", "Part of the normal speed kept by a bounce; \"auto\" is 0.99 for bonds, as in the "
        "paper, and that of the material for rigid pieces.", at_least=0.0, at_most=1.0)
    friction: float | Literal["auto"] = setting(
        "auto", "Coulomb friction of the bounce; \"auto\" is 0 for bonds, as in the paper, and "
        "that of the material for rigid pieces.", at_least=0.0, at_most=1e3)
    keys: tuple[Key, ...] = setting(
        (), "Where it is when: [time, x, y, z] each, straight and even in between, at rest "
        "before the first and after the last; none for a collider at rest.",
        unit="s and m", at_least=-1e7, at_most=1e7)
    visible: bool = setting(
        True, "Whether a sphere or box is in the picture; a plane never is. A table "
        "`[colliders.surface]` below it says how it looks, with the keys of "
        "`[materials.<name>.surface]`; without, it is matt and grey.")

    def complaints(self) -> Iterator[Complaint]:
        """Yield what is wrong with the section as a whole."""
        if self.shape == "plane" and math.hypot(*self.normal) < SHORTEST_DIRECTION:
            yield "normal", (f"found {list(self.normal)}, which is zero or too short; give the "
                             "direction toward the free side")
        for before, after in zip(self.keys, self.keys[1:], strict=False):
            if after[0] <= before[0]:
                yield "keys", (f"the time {after[0]:g} s stands after {before[0]:g} s; "
                               "times must rise from key to key")


@dataclass(frozen=True)
class Region:
    """The elements whose centres at rest are in a box or a sphere: held, driven or toughened."""

    body: str = setting("", "The body it is a part of; all bodies if left out.")
    shape: str = setting("box", "What it is.", choices=("box", "sphere"))
    center: Vector = setting((0.0, 0.0, 0.0), "Its centre.", **PLACE)
    size: Vector = setting((0.01, 0.01, 0.01), "Of a box: its edges.", **SIZE)
    rotation: Vector = setting(
        (0.0, 0.0, 0.0), "Of a box: rotation about x, then y, then z.", **TURN)
    radius: float = setting(0.01, "Of a sphere: its radius.", **SIZE)
    fixed: bool = setting(False, "Whether its elements stay where they are.")
    velocity: Vector = setting(
        (0.0, 0.0, 0.0), "The velocity at which its elements are driven; zero does not drive "
        "them.", **SPEED)
    until: float = setting(
        0.0, "When a fixed or driven region is let go; 0 for never.", unit="s",
        at_least=0.0, at_most=1e9)
    strain_factor: float = setting(
        1.0, "Factor of the strain limit of its elements.", at_least=0.0, at_most=1e6)

    @property
    def holds(self) -> bool:
        """Whether its elements are fixed or driven."""
        return self.fixed or any(self.velocity)

    def complaints(self) -> Iterator[Complaint]:
        """Yield what is wrong with the section as a whole."""
        if self.fixed and any(self.velocity):
            yield "fixed", "is true, but the region has a velocity too; keep one of them"
        if not self.holds and self.strain_factor == 1.0:
            yield "", "does nothing; give fixed = true, a velocity or a strain_factor"


@dataclass(frozen=True)
class Weakening:
    """Where cracks run first: paths that bonds cross, and places of a lower strain limit."""

    paths: int = setting(0, "Number of random walks; 0 for none.", at_least=0, at_most=10_000)
    origin: Vector = setting((0.0, 0.0, 0.0), "Where the walks start.", **PLACE)
    normal: Vector = setting(
        (0.0, 0.0, 1.0), "Walks run perpendicular to this direction; walks and polylines cut "
        "along it.", at_least=-1e7, at_most=1e7)
    length: float = setting(0.1, "Length of a walk.", **SIZE)
    step: float = setting(4e-3, "Length of one stride.", **SIZE)
    wander: float = setting(
        25.0, "Standard deviation of a stride's turn.", unit="degrees", at_least=0.0, at_most=180.0)
    branching: float = setting(
        0.05, "Chance a stride starts a branch.", at_least=0.0, at_most=1.0)
    seed: int = setting(1, "Seed of the walks.", at_least=0, at_most=2**31 - 1)
    polylines: tuple[tuple[Vector, ...], ...] = setting(
        (), "Paths of your own: lists of points, projected along the normal.", **PLACE)
    points: tuple[Vector, ...] = setting(
        (), "Points around which the strain limit falls, to weak_factor at the point.", **PLACE)
    radius: float = setting(0.01, "How far a point reaches.", **SIZE)
    image: str = setting(
        "", "A grey picture, PNG or EXR, relative to the shot file: the darker, the weaker; "
        "black is weak_factor, white leaves the limit. Values are taken as they are stored.")
    image_origin: Vector = setting(
        (0.0, 0.0, 0.0), "Lower left corner of the picture.", **PLACE)
    image_u: Vector = setting(
        (0.1, 0.0, 0.0), "From there along its lower edge to the right.", **PLACE)
    image_v: Vector = setting(
        (0.0, 0.1, 0.0), "From there along its left edge to the top; the picture acts along the "
        "direction across both.", **PLACE)

    def complaints(self) -> Iterator[Complaint]:
        """Yield what is wrong with the section as a whole."""
        if math.hypot(*self.normal) < SHORTEST_DIRECTION:
            yield "normal", (f"found {list(self.normal)}, which is zero or too short; give a "
                             "direction, like [0, 0, 1]")
        if (strides := self.paths * self.length / self.step) > MAX_SEGMENTS:
            yield "step", (
                f"found {self.step:g} m, which makes {strides:.0f} strides of {self.paths} walks "
                f"{self.length:g} m long, but at most {MAX_SEGMENTS} are taken; a step of about "
                "the bodies' spacing is fine enough")
        for number, line in enumerate(self.polylines, 1):
            if len(line) < 2:
                yield "polylines", f"number {number} has {len(line)} point(s); a path needs two"
        if self.image and is_flat(self.image_u, self.image_v):
            yield "image_v", (f"found {list(self.image_v)}, which is along image_u "
                              f"{list(self.image_u)}, or one of them is shorter than "
                              f"{SHORTEST_SIDE:g} m; the two must span a rectangle")


@dataclass(frozen=True)
class Crack:
    """A cut there from the start: no bond crosses this rectangle, and none counts as broken."""

    origin: Vector = setting(REQUIRED, "One corner, at rest.", **PLACE)
    u: Vector = setting(REQUIRED, "From there along one side.", **PLACE)
    v: Vector = setting(REQUIRED, "From there along the other.", **PLACE)

    def complaints(self) -> Iterator[Complaint]:
        """Yield what is wrong with the section as a whole."""
        if is_flat(self.u, self.v):
            yield "v", (f"found {list(self.v)}, which is along u {list(self.u)}, or one of them is "
                        f"shorter than {SHORTEST_SIDE:g} m; the two must span a rectangle")


def is_flat(u: Vector, v: Vector) -> bool:
    """Whether two vectors span no area that numbers can be divided by."""
    across = math.hypot(u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                        u[0] * v[1] - u[1] * v[0])
    sides = math.hypot(*u), math.hypot(*v)
    return min(sides) < SHORTEST_SIDE or across <= 1e-9 * sides[0] * sides[1]
