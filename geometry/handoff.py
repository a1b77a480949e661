"""The data that goes from stage to stage: Solid, MotionFrame, FragmentsFrame, Lineage.

Shapes and dtypes are documented here, once; arrays are in C order and live on the host.
n particles (= elements), m adjacency edges, b bodies, p projectiles, k fragments of a frame,
g fragments of the whole sequence. A particle is one element: its index means the same in
every stage. SI units; y is up; transforms map rest positions to the world.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Record:
    """A dataclass of arrays and scalars that goes to and from a dict of arrays."""

    def to_arrays(self) -> dict[str, Array]:
        """Return every field as an array, ready for an npz file."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Self:
        """Rebuild a record; scalars come back as Python numbers. Raises KeyError on a gap."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            array = arrays[field.name]
            values[field.name] = array.item() if array.ndim == 0 else array
        return cls(**values)


@dataclass
class Solid(Record):
    """The undeformed object(s) as particles with their elements.

    Elements of the kind ``grid`` are cubes of edge ``length_scale[body]``, turned by
    ``orientation[body]``; their faces are implicit (:func:`vfx.geometry.grid.grid_faces`).
    Particles stand in order of their bodies and, within a body, of their cells, z fastest.
    """

    position: Array          # (n, 3) float64 [m]: element centres at rest
    volume: Array            # (n,)   float64 [m^3]
    body: Array              # (n,)   int32: index of the body
    cell: Array              # (n, 3) int32: grid index within the body
    edge: Array              # (m, 2) int32: adjacent elements, edge[:, 0] < edge[:, 1], sorted
    length_scale: Array      # (b,)   float64 [m]: lambda of each body
    orientation: Array       # (b, 3, 3) float64: world_from_body axes, as columns
    body_name: Array         # (b,)   str
    material_name: Array     # (b,)   str: material of each body

    @property
    def n_particles(self) -> int:
        """Number of particles n."""
        return len(self.position)


@dataclass
class Faces:
    """Quadrilateral faces of elements at rest, each stored once.

    ``side[:, 0]`` is the element that the normal points out of; ``side[:, 1]`` the one it
    points into, or -1 on the original surface. Corners run anticlockwise seen from outside
    ``side[:, 0]``. The first m faces are the inner ones, in the order of ``Solid.edge``.
    """

    side: Array              # (f, 2) int32
    corner: Array            # (f, 4, 3) float64 [m]


@dataclass
class MotionFrame(Record):
    """The state of the particles at one frame, and what broke since the frame before."""

    frame: int
    step: int                    # steps done since the start of the first frame
    time: float                  # [s]
    position: Array              # (n, 3) float64 [m]
    velocity: Array              # (n, 3) float64 [m/s]
    damage: Array                # (n,)   float32: broken share of the particle's bonds, 0..1
    broken_edge: Array           # (e,)   int32: adjacency edges that broke since the last frame
    broken_step: Array           # (e,)   int64: the step at which each broke
    projectile_position: Array   # (p, 3) float64 [m]
    projectile_radius: Array     # (p,)   float64 [m]
    kinetic_energy: float        # [J]
    bond_energy: float           # [J]
    momentum: Array              # (3,)   float64 [kg m/s]
    n_bonds: int                 # live bonds


@dataclass
class Lineage(Record):
    """Who came from whom: one row a fragment of the sequence, in order of birth.

    At ``first_frame`` every whole body b is fragment b unless it is already in pieces.
    ``change_*`` say which particles get which fragment when; the labels of frame f are
    those of the body, overwritten by all changes of frames up to f, in order.
    """

    first_frame: int         # the first frame covered
    last_frame: int          # the last frame covered
    parent: Array            # (g,) int32: fragment it split from, -1 for a whole body
    birth_frame: Array       # (g,) int32: first frame in which it exists
    body: Array              # (g,) int32
    change_start: Array      # (frames + 1,) int64: changes of frame first_frame + f are
                             #   change_start[f] .. change_start[f + 1]
    change_particle: Array   # (c,) int32
    change_fragment: Array   # (c,) int32


@dataclass
class FragmentsFrame(Record):
    """The rigid pieces of one frame: world = rotation @ rest + translation.

    Where particles leave a rotation open (one alone, several in a row), rotation and angular
    velocity are carried on from what they broke off (:mod:`vfx.geometry.align`).
    """

    frame: int
    time: float                  # [s]
    fragment: Array              # (n,) int32: fragment id of each particle
    id: Array                    # (k,) int32: ascending
    rotation: Array              # (k, 3, 3) float64
    translation: Array           # (k, 3) float64 [m]
    center: Array                # (k, 3) float64 [m]: centre of mass in the world
    velocity: Array              # (k, 3) float64 [m/s] of the centre of mass
    angular_velocity: Array      # (k, 3) float64 [rad/s], in world axes
    mass: Array                  # (k,) float64 [kg]
    count: Array                 # (k,) int32: particles
    damage: Array                # (n,) float32: of each particle, carried along
    projectile_position: Array   # (p, 3) float64 [m]
    projectile_radius: Array     # (p,) float64 [m]
