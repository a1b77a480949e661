"""What a mesh is like, and whether it can become a solid: a report that a person can act on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.columns import wound_volumes
from vfx.geometry.inside.crossings import build_tree, find_crossings
from vfx.geometry.mesh.shells import Shells, nest_shells
from vfx.geometry.mesh.slits import split_slits
from vfx.geometry.mesh.topology import Hole, Topology, find_topology

#: Share of the volume that may be wound around twice or backward where a mesh cuts itself: the
#: folds of scans have less, and no volume is off by more than what is said of it.
LARGEST_OVERLAP = 1e-3
#: Longest side of a hole that is closed on request, as a share of that of the mesh.
LARGEST_HOLE = 0.25

#: The sentence on a surface that no turning of its triangles helps.
ONE_SIDED = ("has a surface of one side only (like a Moebius strip), which encloses nothing; mend "
             "it in a modelling program")


@dataclass(frozen=True)
class MeshReport:
    """What was found, in metres; places are (3,) arrays, as in the file once they are moved."""

    triangles: int
    vertices: int
    size: Array                          # (3,) of the box
    volume: float                        # [m^3]; of an open mesh what it would be
    area: float                          # [m^2]
    holes: tuple[Hole, ...]
    largest_hole: float                  # [m]: the longest side of one that is no slit, or 0
    flipped: int                         # edges between triangles that face opposite sides
    flipped_place: Array | None
    one_sided: bool                      # no way to turn triangles makes all face one side
    tangled: int                         # edges of three or more triangles that do not balance
    tangled_place: Array | None
    crowded: int                         # edges where parts touch, and balance
    crossings: int                       # pairs of triangles that cut each other
    crossing_place: Array | None
    overlap: float                       # share of the volume wound around twice or backward
    overlap_place: Array | None
    parts: int
    cavities: int
    inside_out: int                      # shells that face inward and should not
    notes: tuple[str, ...] = ()          # what was done on the way

    @property
    def is_watertight(self) -> bool:
        """Whether no edge is open or tangled."""
        return not self.holes and not self.tangled

    @property
    def names_places(self) -> bool:
        """Whether something is wrong that has a place."""
        return bool(self.holes or self.tangled or self.flipped or self.overlap > LARGEST_OVERLAP)

    def moved(self, to_file: Callable[[Array], Array]) -> MeshReport:
        """Return the report with all places moved, so that a modelling program finds them."""
        def move(place: Array | None) -> Array | None:
            return None if place is None else to_file(place)

        return dataclasses.replace(
            self, holes=tuple(dataclasses.replace(hole, place=to_file(hole.place))
                              for hole in self.holes),
            flipped_place=move(self.flipped_place), tangled_place=move(self.tangled_place),
            crossing_place=move(self.crossing_place), overlap_place=move(self.overlap_place))

    def lines(self) -> list[str]:
        """Return the report as lines for a person."""
        x, y, z = self.size
        watertight = "watertight" if self.is_watertight else "not watertight"
        parts = counted(self.parts, "part")
        hollow = f", {counted(self.cavities, 'cavity', 'cavities')}" if self.cavities else ""
        crossings = "no self-intersections"
        if self.crossings:
            crossings = (f"{counted(self.crossings, 'self-intersection')}, the first near "
                         f"{place_text(self.crossing_place)}")
        return [
            f"{counted(self.triangles, 'triangle')}, {x:.4g} x {y:.4g} x {z:.4g} m, {watertight}, "
            f"volume {self.volume:.4g} m^3, {parts}{hollow}", crossings,
            *(f"hole of {counted(hole.edges, 'edge')} and {hole.size:.3g} m at "
              f"{place_text(hole.place)}" for hole in self.holes[:5]),
            *self.notes]

    def problems(self, repaired: bool = False) -> Iterator[str]:
        """Yield what stands in the way of a solid, each with what to do.

        Where the mesh was ``repaired`` already, that is to mend it elsewhere.
        """
        elsewhere = "repair did not help: mend it in a modelling program"
        if self.holes:
            largest = float(self.size.max()) * LARGEST_HOLE
            holes = ", ".join(f"{hole.size:.3g} m wide at {place_text(hole.place)}"
                              for hole in self.holes[:3])
            more = f" and {len(self.holes) - 3} more" if len(self.holes) > 3 else ""
            count = "a hole" if len(self.holes) == 1 else counted(len(self.holes), "hole")
            them = "it" if len(self.holes) == 1 else "them"
            fix = ((f"one over {LARGEST_HOLE:.0%} of the mesh is too large to be closed here: "
                    f"close {them} in a modelling program") if self.largest_hole > largest
                   else elsewhere if repaired else f"set repair = true to close {them}")
            yield f"is open: {count}, {holes}{more}; {fix}"
        if self.tangled:
            count = "an edge" if self.tangled == 1 else counted(self.tangled, "edge")
            yield (f"has {count} where three or more faces meet that enclose nothing together, "
                   f"the first near {place_text(self.tangled_place)}; remove "
                   "inner walls and loose faces in a modelling program")
        if self.one_sided:
            yield ONE_SIDED
        elif self.flipped:
            yield (f"has faces that are flipped, at {counted(self.flipped, 'edge')} between two "
                   f"that face opposite sides, the first near {place_text(self.flipped_place)}; "
                   f"{elsewhere if repaired else 'set repair = true to turn them'}")
        if not self.holes and not self.tangled and not self.flipped:
            if self.inside_out:
                whole = "is inside out" if self.inside_out >= self.parts else (
                    f"has {self.inside_out} of {self.parts} parts inside out")
                fix = elsewhere if repaired else "set repair = true to turn them"
                yield f"{whole} (faces point inward); {fix}"
            elif not self.volume > 0.0:
                yield "encloses no volume, like a flat sheet; give it a thickness"
            if self.overlap > LARGEST_OVERLAP:
                fix = elsewhere if repaired else (
                    "set repair = true to unite parts that overlap, or mend it in a modelling "
                    "program") if self.parts + self.cavities > 1 else (
                    "mend it in a modelling program")
                cuts = (f"cuts through itself: {counted(self.crossings, 'pair')} of triangles, the "
                        f"first near {place_text(self.crossing_place)}, and" if self.crossings
                        else "lies over itself:")
                yield (f"{cuts} {100 * self.overlap:.3g} % of its volume is enclosed twice or "
                       f"backward, as at {place_text(self.overlap_place)}; {fix}")


def counted(number: int, one: str, several: str = "") -> str:
    """Return so many of a thing, or one of it: 1,200 edges, 1 edge."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def place_text(place: Array | Sequence[float] | None) -> str:
    """Return a place as a person writes it: (0.1, 0.25, -0.03)."""
    assert place is not None
    return "(" + ", ".join(f"{x + 0.0:.4g}" for x in np.asarray(place).tolist()) + ")"


class PlacedError(ValueError):
    """What is wrong at a ``place`` (3,) of a body's axes [m], which is told between two texts."""

    def __init__(self, before: str, place: Array, after: str = "") -> None:
        super().__init__(f"{before} {place_text(place)}{after}")
        self.before, self.place, self.after = before, place, after

    def moved(self, to_file: Callable[[Array], Array]) -> PlacedError:
        """Return the same of the place in its mesh file."""
        return PlacedError(self.before, to_file(self.place),
                           f" in the coordinates of the file{self.after}")


def inspect_mesh(
    device: Device, vertex: Array, triangle: Array, notes: tuple[str, ...] = ()
) -> tuple[MeshReport, Topology, Shells]:
    """Look at a mesh: vertex (v, 3) [m] and triangle (t, 3), its vertices merged by place."""
    topology = find_topology(vertex, triangle)
    tree = build_tree(vertex, triangle)
    crossing, n_crossings = find_crossings(device, tree)
    shells = nest_shells(device, tree, vertex, triangle, topology.shell, crossing)
    corner = vertex[triangle]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]),
                          axis=1)
    # Cavities count as such even where their triangles face outward: they are turned.
    volume = float(np.where(shells.is_cavity, -1.0, 1.0) @ np.abs(shells.volume))
    inside_out = int((shells.faces_wrong & ~shells.is_cavity).sum())
    overlap, overlap_place = 0.0, None
    # Parts with sides in common planes may overlap without a triangle that cuts another.
    if topology.is_closed and not inside_out:
        turned = np.where((shells.faces_wrong & shells.is_cavity)[topology.shell, None],
                          triangle[:, ::-1], triangle)
        once, wrong, overlap_place = wound_volumes(device, vertex, turned)
        overlap = wrong / (once + wrong) if once + wrong > 0.0 else 0.0
    holes = tuple(topology.holes())
    # A slit is as long as an edge, but has no width to be filled.
    wide = find_topology(vertex, split_slits(vertex, triangle).triangle).holes() if holes else []
    report = MeshReport(
        triangles=len(triangle), vertices=len(vertex),
        size=vertex.max(axis=0) - vertex.min(axis=0), volume=volume,
        area=0.5 * float(area.sum()), holes=holes, largest_hole=wide[0].size if wide else 0.0,
        flipped=int(topology.is_flipped.sum()),
        flipped_place=topology.place(topology.is_flipped),
        one_sided=bool(topology.is_flipped.any()) and topology.consistent_turns() is None,
        tangled=int(topology.is_tangled.sum()),
        tangled_place=topology.place(topology.is_tangled),
        crowded=int((topology.is_crowded & ~topology.is_tangled).sum()),
        crossings=n_crossings,
        crossing_place=corner[crossing[0, 0]].mean(axis=0) if len(crossing) else None,
        overlap=overlap, overlap_place=overlap_place, parts=shells.n_parts,
        cavities=int(shells.is_cavity.sum()), inside_out=inside_out, notes=notes)
    return report, topology, shells
