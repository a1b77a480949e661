"""The data that goes from stage to stage: Solid, Motion, Pieces, Lineage.

Shapes and dtypes are documented here, once; arrays are in C order and live on the host.
n elements, m adjacency edges, b bodies, p projectiles, k pieces of a frame,
g pieces of the whole sequence, v vertices of the faces, w nodes. A particle is the point of
an element in a solver: its index is the same in every stage.
SI units; y is up; transforms map rest positions
to the world.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Record:
    """A dataclass of arrays and scalars that goes to and from a dict of arrays."""

    def to_arrays(self) -> dict[str, Array]:
        """Return every field as an array, ready for an npz file."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {each.name: np.asarray(getattr(self, each.name)) for each in fields}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Self:
        """Rebuild a record; scalars come back as Python numbers.

        Arrays that a record has by default may be missing: files of a version before have fewer.
        Raises KeyError on any other gap.
        """
        values: dict[str, Any] = {}
        for each in dataclasses.fields(cls):  # type: ignore[arg-type]
            if each.name not in arrays and each.default_factory is not dataclasses.MISSING:
                continue
            array = arrays[each.name]
            values[each.name] = array.item() if array.ndim == 0 else array
        return cls(**values)


def empty(dtype: Any, *shape: int) -> Any:
    """Declare a field that is an array of no rows, each of ``shape``, by default."""
    return field(default_factory=lambda: np.zeros((0, *shape), dtype))


@dataclass
class Solid(Record):
    """The undeformed bodies as elements.

    Elements of the kind ``grid`` are cubes of edge ``length_scale[body]``, turned by
    ``orientation[body]``; their faces are implicit (:mod:`vfx.geometry.handoff.cube_faces`).
    Those of other kinds are polyhedra whose faces are stored here, as in :class:`Faces`;
    :func:`vfx.geometry.handoff.faces.all_faces` returns the faces of all. Elements stand in
    order of their bodies and, for cubes, of their cells, z fastest.
    """

    position: Array          # (n, 3) float64 [m]: cube centres, barycentres or Voronoi sites
    volume: Array            # (n,)   float64 [m^3]
    size: Array              # (n,)   float64 [m]: lambda of each element; its body's unless graded
    body: Array              # (n,)   int32: index of the body
    cell: Array              # (n, 3) int32: grid index within the body; zeros for other kinds
    edge: Array              # (m, 2) int32: adjacent elements, edge[:, 0] < edge[:, 1], sorted
    length_scale: Array      # (b,)   float64 [m]: lambda of each body
    orientation: Array       # (b, 3, 3) float64: world_from_body axes, as columns
    kind: Array              # (b,)   str: grid, tet-shell or voronoi
    body_name: Array         # (b,)   str
    material_name: Array     # (b,)   str: material of each body
    # The fields of Faces.
    face_vertex: Array = empty(np.float64, 3)          # (v, 3) [m]
    face_start: Array = field(default_factory=lambda: np.zeros(1, np.int64))  # (f + 1,)
    face_corner: Array = empty(np.int32)               # (c,)
    face_side: Array = empty(np.int32, 2)              # (f, 2)
    face_edge: Array = empty(np.int32)                 # (fi,)
    surface_normal: Array = empty(np.float32, 3)       # (cs, 3)
    surface_uv: Array = empty(np.float32, 2)           # (cs, 2)
    surface_triangle: Array = empty(np.int32)          # (f - fi,)

    @property
    def n_elements(self) -> int:
        """Number of elements n."""
        return len(self.position)

    @property
    def grade(self) -> Array:
        """(n,) float64: (lambda of its body / lambda of the element)^2; 1 unless graded."""
        grade: Array = (self.length_scale[self.body] / self.size) ** 2
        return grade

    @property
    def stored_faces(self) -> Faces:
        """The faces of the elements that are not cubes."""
        return Faces(
            vertex=self.face_vertex, start=self.face_start, corner=self.face_corner,
            side=self.face_side, edge=self.face_edge, normal=self.surface_normal,
            uv=self.surface_uv, triangle=self.surface_triangle)


@dataclass
class Faces:
    """Faces of elements at rest: convex, planar polygons, each stored once.

    ``side[:, 0]`` is the element that the normal points out of; ``side[:, 1]`` the one it
    points into, or -1 on the outside. Corners run anticlockwise seen from outside
    ``side[:, 0]``. The first fi faces are the inner ones, in the order of the edges of the
    Solid, whose lower element is ``side[:, 0]``; where two elements share a face that is not
    convex, several polygons have the same edge. What only the outside has (shading normals, uv,
    triangles of the mesh) is stored for the faces that follow, and for their cs corners.
    """

    vertex: Array            # (v, 3) float64 [m]
    start: Array             # (f + 1,) int64: where the corners of each face begin
    corner: Array            # (c,) int32: vertices of the faces, one face after the other
    side: Array              # (f, 2) int32
    edge: Array              # (fi,) int32: adjacency edge of each inner face, ascending
    normal: Array            # (cs, 3) float32: shading normals, or zeros for flat faces
    uv: Array                # (cs, 2) float32: texture coordinates, or zeros
    triangle: Array          # (f - fi,) int32: triangle of the mesh it lies on, or -1

    @property
    def n_inner(self) -> int:
        """Number of inner faces fi."""
        return len(self.edge)


@dataclass
class Motion(Record):
    """The state of the particles at one frame, and what broke since the frame before."""

    frame: int
    time: float                  # [s]
    position: Array              # (n, 3) float64 [m]
    velocity: Array              # (n, 3) float64 [m/s]
    damage: Array                # (n,)   float32: broken share of the particle's bonds, 0..1
    broken_edge: Array           # (e,)   int32: adjacency edges that broke since the last frame
    projectile_position: Array   # (p, 3) float64 [m]
    projectile_radius: Array     # (p,)   float64 [m]
    # How elements are turned where that is known and positions alone do not tell it: pieces of one
    # element or of a row of them. Rows are sorted by element; one that is told once is told in all
    # later frames, or what turns is carried on from where it broke off.
    turned_element: Array = empty(np.int32)              # (s,)
    turned_rotation: Array = empty(np.float64, 3, 3)     # (s, 3, 3): world from rest
    turned_velocity: Array = empty(np.float64, 3)        # (s, 3) [rad/s], in world axes
    # Adjacency edges at which a crack gapes, be it within a piece or between two; ascending.
    torn_edge: Array = empty(np.int32)         # (t,)
    # Of solvers that remesh: the element of the Solid that each came from, by which names
    # survive. Empty: each is its own.
    element_parent: Array = empty(np.int32)    # (n,)
    # Of solvers that have nodes of their own; else empty.
    node_rest: Array = empty(np.float64, 3)    # (w, 3) [m]
    node: Array = empty(np.float64, 3)         # (w, 3) [m]
    tet: Array = empty(np.int32, 4)            # (n, 4): the nodes of each element


@dataclass
class Lineage(Record):
    """Who came from whom: one row a piece of the sequence, in order of birth.

    At ``first_frame`` every whole body b is piece b unless it is already in pieces.
    ``change_*`` say which particles get which piece when; the labels of frame f are
    those of the body, overwritten by all changes of frames up to f, in order.
    """

    first_frame: int         # the first frame covered
    last_frame: int          # the last frame covered
    parent: Array            # (g,) int32: piece it split from, -1 for a whole body
    birth_frame: Array       # (g,) int32: first frame in which it exists
    body: Array              # (g,) int32
    change_start: Array      # (frames + 1,) int64: changes of frame first_frame + f are
                             #   change_start[f] .. change_start[f + 1]
    change_particle: Array   # (c,) int32
    change_fragment: Array   # (c,) int32
    # Cracks: the adjacency edges that gaped while both elements were of one piece, each once, in
    # order of the frames; those of frame first_frame + f begin at torn_start[f].
    torn_start: Array = field(default_factory=lambda: np.zeros(1, np.int64))  # (frames + 1,)
    torn_edge: Array = empty(np.int32)         # (t,)


@dataclass
class Pieces(Record):
    """The pieces of one frame: world = rotation @ (rest + offset) + translation.

    Where particles leave a rotation open (one alone, several in a row), rotation and angular
    velocity are those that the solver tells, or carried on from what they broke off
    (:mod:`vfx.geometry.pieces.align`).

    Rigid pieces have no offsets. Where some piece deforms, all have nodes, which the corners of
    elements stand on: first the v vertices of :func:`vfx.geometry.handoff.faces.all_faces`, then
    copies of them for elements that a crack has parted from the others around a vertex
    (:mod:`vfx.geometry.handoff.nodes`).
    """

    frame: int
    time: float                  # [s]
    fragment: Array              # (n,) int32: piece id of each particle
    id: Array                    # (k,) int32: ascending
    rotation: Array              # (k, 3, 3) float64
    translation: Array           # (k, 3) float64 [m]
    center: Array                # (k, 3) float64 [m]: centre of mass in the world
    velocity: Array              # (k, 3) float64 [m/s] of the centre of mass
    angular_velocity: Array      # (k, 3) float64 [rad/s], in world axes
    mass: Array                  # (k,) float64 [kg]
    damage: Array                # (n,) float32: of each particle, carried along
    projectile_position: Array   # (p, 3) float64 [m]
    projectile_radius: Array     # (p,) float64 [m]
    # Empty for rigid pieces.
    node_offset: Array = empty(np.float32, 3)  # (w, 3) [m], in the piece's own frame
    node_copy: Array = empty(np.int32, 3)      # (s, 3): element, vertex, its node there; sorted
    # Adjacency edges that a crack opened within a piece, be it that the piece has come apart there
    # since (:func:`vfx.geometry.handoff.open_faces.crack_edges`).
    crack_edge: Array = empty(np.int32)        # (e,), ascending

    @property
    def is_rigid(self) -> bool:
        """Whether no piece deforms."""
        return not len(self.node_offset)
