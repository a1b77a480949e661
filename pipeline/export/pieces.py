"""The pieces of a shot as rigid meshes with motion, from the caches of geometry and align.

Pieces only ever split, so those of the last frame are parts of all earlier ones: each is one
mesh that never changes, moved in every frame by the piece it is part of then. Its name is
that of its Cryptomatte, ``<body>_<id>``.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vfx.geometry.handoff.types import Array
from vfx.pipeline.errors import MissingInput
from vfx.pipeline.shot.frames import format_frames
from vfx.pipeline.stages.stage import Stage, upstream
from vfx.pipeline.stages.table import ALIGN, GEOMETRY, LINEAGE
from vfx.pipeline.work.cache import read_npz
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State

if TYPE_CHECKING:
    from vfx.geometry.handoff.types import Faces, Lineage, Pieces, Solid


@dataclass
class PieceMesh:
    """A closed polygon mesh at rest, in world axes; corners are anticlockwise from outside.

    Cracks that end within the piece are slits: both sides at one place, with points of their own.
    """

    point: Array             # (v, 3) float64 [m]
    count: Array             # (f,) int32: corners of each face
    corner: Array            # (c,) int32 into point
    normal: Array            # (c, 3) float32: at corners
    uv: Array                # (c, 2) float32: at corners; zeros inside
    is_fracture: Array       # (f,) bool: faces that were inside the body
    is_crack: Array          # (f,) bool: those of them that are open within the piece


@dataclass
class Piece:
    """One rigid piece: its mesh, and what it is."""

    name: str
    id: int                  # its id
    body: int
    parent: int              # piece it broke off, -1 for a whole body
    birth_frame: int
    particle: Array          # (k,) int32: its elements
    center: Array            # (3,) float64 [m]: centre of mass at rest
    mass: float              # [kg]
    size: float              # [m]: diameter of a ball of its volume
    mesh: PieceMesh


@dataclass
class Tracks:
    """How pieces (k) move over frames (t): world = rotation @ rest + translation."""

    rotation: Array          # (t, k, 3, 3) float64
    translation: Array       # (t, k, 3) float64 [m]
    velocity: Array          # (t, k, 3) float64 [m/s]: of each piece's own centre
    angular_velocity: Array  # (t, k, 3) float64 [rad/s]
    damage: Array            # (t, k) float32: mean of the piece's particles


class PieceReader:
    """Reads what pieces are made from; says which stage to run where something is missing."""

    def __init__(self, work: Work, frames: Sequence[int], arguments: tuple[str, ...] = ()) -> None:
        from vfx.geometry.handoff.faces import all_faces
        from vfx.geometry.handoff.types import Lineage, Solid

        self.work = work
        self.frames = list(frames)
        self._arguments = arguments
        self._check()
        self.solid: Solid = Solid.from_arrays(self._read(GEOMETRY, frames[0]))
        self.faces: Faces = all_faces(self.solid)
        self.lineage: Lineage = Lineage.from_arrays(self._read(LINEAGE, frames[0]))

    def posed(self, frame: int) -> Pieces:
        """Return the pieces of a frame."""
        from vfx.geometry.handoff.types import Pieces

        return Pieces.from_arrays(self._read(ALIGN, frame))

    def name_of(self, piece: int) -> str:
        """Return the name of a piece, as Cryptomatte has it."""
        from vfx.geometry.pieces.lineage import piece_name

        return piece_name(self.solid, self.lineage, piece)

    def pieces(self, frame: int) -> list[Piece]:
        """Return the pieces of a frame, by ascending id."""
        posed = self.posed(frame)
        density = np.array([self.work.shot.materials[body.material].density
                            for body in self.work.shot.bodies])
        mass = self.solid.volume * density[self.solid.body]
        meshes = piece_meshes(self.faces, posed.fragment, posed.crack_edge)
        order = np.argsort(posed.fragment, kind="stable")
        start = np.searchsorted(posed.fragment[order], posed.id)
        stop = np.searchsorted(posed.fragment[order], posed.id, side="right")
        pieces = []
        for piece, first, last in zip(posed.id.tolist(), start, stop, strict=True):
            particle = order[first:last].astype(np.int32)
            weight = mass[particle]
            volume = float(self.solid.volume[particle].sum())
            pieces.append(Piece(
                name=self.name_of(piece), id=piece,
                body=int(self.lineage.body[piece]), parent=int(self.lineage.parent[piece]),
                birth_frame=int(self.lineage.birth_frame[piece]), particle=particle,
                center=weight @ self.solid.position[particle] / weight.sum(),
                mass=float(weight.sum()), size=(6.0 * volume / np.pi) ** (1.0 / 3.0),
                mesh=meshes[piece]))
        return pieces

    def motion(self, pieces: Sequence[Piece]) -> Tracks:
        """Return how pieces of the last frame move through all frames."""
        first = np.array([piece.particle[0] for piece in pieces], np.int64)
        center = np.array([piece.center for piece in pieces]).reshape(-1, 3)
        every = np.concatenate([piece.particle for piece in pieces])
        count = np.array([len(piece.particle) for piece in pieces])
        start = np.cumsum(count) - count
        rows: dict[str, list[Array]] = {field.name: [] for field in dataclasses.fields(Tracks)}
        for frame in self.frames:
            posed = self.posed(frame)
            row = np.searchsorted(posed.id, posed.fragment[first])
            rotation, spin = posed.rotation[row], posed.angular_velocity[row]
            world = np.einsum("kij,kj->ki", rotation, center) + posed.translation[row]
            rows["rotation"].append(rotation)
            rows["translation"].append(posed.translation[row])
            rows["velocity"].append(posed.velocity[row] + np.cross(
                spin, world - posed.center[row]))
            rows["angular_velocity"].append(spin)
            rows["damage"].append((np.add.reduceat(
                posed.damage[every].astype(np.float64), start) / count).astype(np.float32))
        return Tracks(**{name: np.array(values) for name, values in rows.items()})

    def _check(self) -> None:
        """Raise what is not done yet, with every command that is still to run."""
        needed = upstream(ALIGN, self.work.shot, self.frames) | {ALIGN: self.frames}
        lacking = {stage: bad for stage, frames in needed.items()
                   if (bad := [frame for frame, state in self.work.states(stage, frames).items()
                               if state is not State.DONE])}
        if lacking:
            first, bad = next(iter(lacking.items()))
            where = f" ({format_frames(bad)})" if first.is_per_frame else ""
            parts = [part for stage in lacking for part in stage.begins_with]
            raise MissingInput("\n  ".join([
                f"{self.work.shot.path}: export needs the result of {first.name}, which is not "
                f"done{where}; run first:",
                *(self._command(stage) for stage in lacking if stage not in parts)]))

    def _command(self, stage: Stage) -> str:
        words = ["vfx", "stage", stage.name, str(self.work.shot.path)]
        if stage.is_per_frame:
            words += ["--frames", format_frames(
                self.frames[-1:] if stage.is_through else self.frames)]
        return shlex.join([*words, *self._arguments])

    def _read(self, stage: Stage, frame: int) -> dict[str, npt.NDArray[np.generic]]:
        return read_npz(self.work.path(stage, frame))


def fracture_name(material: str, materials: Container[str]) -> str:
    """Return what a material is called where it broke: a name that none of ``materials`` has."""
    name = f"{material}_fracture"
    while name in materials:
        name += "_"
    return name


def piece_meshes(faces: Faces, label: Array,
                 crack_edge: Array | None = None) -> dict[int, PieceMesh]:
    """Return the mesh of all the elements of each label: where they end, seen from outside.

    label (n,): of each element; faces between two elements of one label are inside and left out but
    for the cracks ``crack_edge`` (e,), one between two labels is a face of both meshes.
    """
    from vfx.geometry.handoff.crack_opening import open_cracks
    from vfx.geometry.handoff.faces import face_normals, spans
    from vfx.geometry.handoff.open_faces import open_faces

    crack = np.zeros(0, np.int32) if crack_edge is None else crack_edge
    slit = open_cracks(faces, label, crack, np.zeros(len(label)))

    count = np.diff(faces.start)
    n_inner = faces.n_inner
    area = face_normals(faces)
    unit = area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), 1e-300)
    # Every face that is seen, by owner: outer ones, inner ones from their low and high side.
    seen = open_faces(faces, label, crack)
    owner = label[seen.owner]
    order = np.lexsort((seen.is_fracture.astype(np.int8) + seen.reverse, owner))
    face, is_reversed, owner = seen.face[order], seen.reverse[order], owner[order]
    side = faces.side[face]
    is_crack = (side[:, 1] >= 0) & (label[side[:, 0]] == label[side[:, 1]])

    length = count[face]
    place = spans(faces.start[face], length)
    first = np.cumsum(length) - length
    within = np.arange(len(place)) - np.repeat(first, length)
    back = np.repeat(faces.start[face] + length - 1, length) - within
    place = np.where(np.repeat(is_reversed, length), back, place)
    vertex = slit.corners(
        len(faces.vertex), np.repeat(seen.owner[order], length), faces.corner[place])
    point = np.concatenate([faces.vertex, slit.place])
    sign = np.where(is_reversed, -1.0, 1.0)[:, None]
    normal = np.repeat((sign * unit[face]).astype(np.float32), length, axis=0)
    uv = np.zeros((len(place), 2), np.float32)
    on_surface = np.repeat(face >= n_inner, length)
    surface_corner = place[on_surface] - faces.start[n_inner]
    shading = faces.normal[surface_corner]
    is_flat = ~shading.any(axis=1, keepdims=True)
    normal[on_surface] = np.where(is_flat, normal[on_surface], shading)
    uv[on_surface] = faces.uv[surface_corner]

    meshes = {}
    labels, starts = np.unique(owner, return_index=True)
    corner_start = np.append(first, len(place))
    for number, value in enumerate(labels):
        a = starts[number]
        b = starts[number + 1] if number + 1 < len(labels) else len(face)
        corners = slice(corner_start[a], corner_start[b])
        used, corner = np.unique(vertex[corners], return_inverse=True)
        meshes[int(value)] = PieceMesh(
            point=point[used], count=length[a:b].astype(np.int32),
            corner=corner.astype(np.int32), normal=normal[corners], uv=uv[corners],
            is_fracture=face[a:b] < n_inner, is_crack=is_crack[a:b])
    return meshes
