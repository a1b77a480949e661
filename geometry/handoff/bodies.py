"""What a shot says about the things that break: their shape, place and material."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vfx.geometry.handoff.schema import REQUIRED, setting

Vector = tuple[float, float, float]

#: Ranges of lengths, places, speeds and turns: physical, and wide of where numbers overflow.
SIZE: dict[str, Any] = {"unit": "m", "at_least": 1e-9, "at_most": 1e5}
PLACE: dict[str, Any] = {"unit": "m", "at_least": -1e7, "at_most": 1e7}
SPEED: dict[str, Any] = {"unit": "m/s", "at_least": -1e6, "at_most": 1e6}
TURN: dict[str, Any] = {"unit": "degrees", "at_least": -1e6, "at_most": 1e6}

SHAPES = ("grid", "tet-shell", "voronoi")
#: With fewer tetrahedra there is no telling beforehand how many of them layers will have.
LEAST_TETRAHEDRA = 50
#: Lengths in metres of the units that a mesh may be in.
UNITS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 1e-3, "km": 1e3, "in": 0.0254, "ft": 0.3048}
#: What stands in a setting that the mesh file itself decides.
FROM_FILE = "file"
#: Prefix of the meshes that the project makes itself (:mod:`vfx.geometry.assets.catalog`).
ASSET = "asset:"
#: What ``place`` says of a body on the floor, and on another body before its name.
ON_FLOOR, ON = "on-floor", "on:"
#: Edge of a cube [m] where cells are given and nothing else.
DEFAULT_SPACING = 1e-3


@dataclass(frozen=True)
class Body:
    """One breakable object. World axes: y is up; lengths in metres.

    It is a box of ``cells`` cubes, a plain ``box``, or a closed ``mesh``. A mesh is scaled and
    turned upright first; then its ``anchor`` is put at ``center`` and it is rotated about it.
    """

    name: str = setting("body", "Name of the body; pieces are called <name>_<id>.")
    material: str = setting(
        REQUIRED, "The material it is made of: a [materials.<name>] of this file.")
    shape: str = setting(
        "", "How it is divided into elements; by default voronoi for a mesh, grid for a box.",
        choices=("", *SHAPES))
    cells: tuple[int, int, int] = setting(
        (0, 0, 0), "Number of cubes along x, y and z.", at_least=1, at_most=100_000)
    box: Vector = setting((0.0, 0.0, 0.0), "Edges of a plain box along x, y and z.", **SIZE)
    mesh: str = setting(
        "", "A closed mesh: an OBJ, PLY, STL, GLB, OFF or USD file, named from the folder of the "
        "shot, or asset:<name>.")
    mesh_unit: str = setting(
        FROM_FILE, "Unit of the mesh's coordinates; 'file' is what a USD file says, else metres.",
        choices=(FROM_FILE, *UNITS))
    mesh_up: str = setting(
        FROM_FILE, "Axis of the mesh that points up; 'file' is what a USD file says, else y.",
        choices=(FROM_FILE, "x", "y", "z"))
    mesh_scale: float = setting(
        1.0, "Factor by which the mesh is enlarged, after its unit.", above=0.0, at_most=1e12)
    height: float = setting(
        0.0, "Height the mesh is scaled to, before its rotation; without it the mesh keeps its "
        "size.", **SIZE)
    anchor: str = setting(
        "center", "Which point of the mesh is put at center: the centre of its bounding box, the "
        "middle of that box's underside, or the mesh's own origin.",
        choices=("center", "base", "origin"))
    repair: bool = setting(
        False, "Close small holes, turn flipped faces and unite shells that cross.")
    spacing: float = setting(
        0.0, "The length scale lambda: edge of a cube, distance of layers in a tet-shell, least "
        "distance of Voronoi sites (of graded ones at the finest place). Give it or elements; "
        "cubes of a box have 1e-3 m.", **SIZE)
    elements: int = setting(
        0, "Number of elements, from which the spacing follows.", at_least=1,
        at_most=100_000_000)
    layers: int = setting(
        6, "Layers of points of a tet-shell, from the surface inward.", at_least=2, at_most=64)
    seed: int = setting(0, "Seed of the elements' places.", at_least=0, at_most=2**31 - 1)
    grading_center: Vector = setting(
        (0.0, 0.0, 0.0), "Voronoi: place in the world around which elements are finer.", **PLACE)
    grading_deviation: float = setting(
        0.0, "Voronoi: standard deviation of the distance within which elements are finer.",
        **SIZE)
    grading_finest: float = setting(
        0.5, "Voronoi: spacing at the grading's centre, as a share of that far away.",
        at_least=0.05, at_most=1.0)
    center: Vector = setting((0.0, 0.0, 0.0), "Where the body's centre (a mesh's anchor) is put.",
                             **PLACE)
    rotation: Vector = setting((0.0, 0.0, 0.0), "Rotation about x, then y, then z.", **TURN)
    velocity: Vector = setting((0.0, 0.0, 0.0), "Initial velocity.", **SPEED)
    angular_velocity: Vector = setting(
        (0.0, 0.0, 0.0), "Initial angular velocity about the centre.", unit="rad/s",
        at_least=-1e9, at_most=1e9)
    place: str = setting(
        "free", "What its height follows from: \"free\" is center; \"on-floor\" puts its lowest "
        "point on the floor, \"on:<name>\" on the highest point of another body. center then gives "
        "x and z alone.")
    drop: float = setting(
        0.0, "Height of fall of a body that is placed: how far it begins above what it stands on.",
        unit="m", at_least=0.0, at_most=1e5)
    fall_speed: float = setting(
        0.0, "Speed downward with which a body that is placed begins; without a drop it begins "
        "just above what it hits.", unit="m/s", at_least=0.0, at_most=1e6)
    animation: str = setting(
        "", "A USD file, named from the folder of the shot, whose transform the body follows: it "
        "begins where center and rotation put it, and goes and turns from the first frame on as "
        "what is animated does. Time codes are frames. For rigid and auto.")
    animation_prim: str = setting(
        "", "Path of what is animated in that file; by default the only one that moves.")
    animation_until: float = setting(
        0.0, "Frame at which the body is let go, with the velocity and spin it then has.",
        unit="frames", at_least=-1e9, at_most=1e9)
    whole: bool = setting(
        False, "Whether it never breaks, whatever hits it; it still gives way a little.")

    def __post_init__(self) -> None:
        """Fill in the division, and the edge of cubes, where the shot says nothing."""
        if not self.shape:
            object.__setattr__(self, "shape", "voronoi" if self.mesh else "grid")
        if self.is_block and self.spacing == 0.0:
            object.__setattr__(self, "spacing", DEFAULT_SPACING)

    @property
    def is_block(self) -> bool:
        """Whether it is a box of ``cells`` cubes."""
        return any(self.cells)

    @property
    def has_box(self) -> bool:
        """Whether it is a plain box."""
        return any(self.box)

    @property
    def stands_on(self) -> str:
        """The name of the body it is placed on, or "" for none."""
        return self.place.removeprefix(ON) if self.place.startswith(ON) else ""

    def complaints(self) -> Iterator[tuple[str, str]]:
        """Yield (key, sentence) for all that does not go together."""
        yield from self._misplaced()
        yield from self._misled()
        given = [key for key, is_given in (
            ("cells", self.is_block), ("box", self.has_box), ("mesh", bool(self.mesh)))
            if is_given]
        if not given:
            yield "", ("has no shape; give cells = [x, y, z] (a box of cubes), box = [x, y, z] in "
                       "metres, or mesh = \"file.obj\"")
        if len(given) > 1:
            yield given[1], f"is given together with {given[0]}; keep one of them"
        if self.is_block and self.shape != "grid":
            yield "cells", (f"is for shape = \"grid\" only, but the shape is \"{self.shape}\"; "
                            "give box = [x, y, z] in metres, or a mesh")
        if self.is_block and self.elements:
            yield "elements", (f"found {self.elements}, but cells {list(self.cells)} already give "
                               "the number of cubes; leave one of them out")
        if not self.is_block and self.spacing and self.elements:
            yield "elements", (f"found {self.elements} together with spacing = {self.spacing:g}; "
                               "one follows from the other, so keep one of them")
        if given and not self.is_block and not self.spacing and not self.elements:
            yield "elements", ("missing, and so is spacing; give the number of elements, or the "
                               "spacing in metres")
        if self.shape == "tet-shell" and 0 < self.elements < LEAST_TETRAHEDRA:
            yield "elements", (f"found {self.elements}, but layers of tetrahedra take at least "
                               f"{LEAST_TETRAHEDRA}; ask for more, or use shape = \"voronoi\"")
        if not self.mesh:
            for key, value, plain in (
                    ("mesh_unit", self.mesh_unit, FROM_FILE), ("mesh_up", self.mesh_up, FROM_FILE),
                    ("mesh_scale", self.mesh_scale, 1.0), ("height", self.height, 0.0),
                    ("anchor", self.anchor, "center"), ("repair", self.repair, False)):
                if value != plain:
                    yield key, f"found {value!r}, but this body has no mesh; remove it"
        elif self.height and self.mesh_scale != 1.0:
            yield "height", (f"found {self.height:g} together with mesh_scale = "
                             f"{self.mesh_scale:g}; both set the size, so keep one of them")
        if self.grading_deviation and self.shape != "voronoi":
            yield "grading_deviation", (f"is for shape = \"voronoi\" only, but the shape is "
                                        f"\"{self.shape}\"; remove it")

    def _misled(self) -> Iterator[tuple[str, str]]:
        """Yield what does not go together in how it is animated."""
        if not self.animation:
            for key, value in (("animation_prim", self.animation_prim),
                               ("animation_until", self.animation_until)):
                if value:
                    yield key, (f"found {value!r:.60}, but there is no animation; name its file "
                                "with animation, or remove it")
            return
        if self.animation_until == 0.0:
            yield "animation_until", ("missing; give the frame at which the body is let go, or the "
                                      "last of the shot")
        for key, value in (("velocity", any(self.velocity)), ("fall_speed", self.fall_speed),
                           ("angular_velocity", any(self.angular_velocity))):
            if value:
                yield key, (f"stands beside animation, which moves the body; remove {key}, or the "
                            "animation")

    def _misplaced(self) -> Iterator[tuple[str, str]]:
        """Yield what does not go together in how it is placed."""
        if self.place not in ("free", ON_FLOOR) and not self.stands_on:
            yield "place", (f"found {self.place[:60]!r}, but it must be \"free\", "
                            f"\"{ON_FLOOR}\" or \"{ON}<name of a body>\"")
        if self.place == "free":
            for key, value, instead in (("drop", self.drop, "center"),
                                        ("fall_speed", self.fall_speed, "velocity")):
                if value:
                    yield key, (f"found {value:g}, but the body is placed by its center; give "
                                f"{instead}, or place = \"{ON_FLOOR}\"")
            return
        if self.center[1] != 0.0:
            yield "center", (f"found a height of {self.center[1]:g} m, but place = "
                             f"\"{self.place[:60]}\" gives the height; write 0 for it, and "
                             "drop for a height of fall")
        if self.fall_speed and self.velocity[1] != 0.0:
            yield "fall_speed", (f"found {self.fall_speed:g} together with a velocity of "
                                 f"{self.velocity[1]:g} m/s upward; keep one of them")
