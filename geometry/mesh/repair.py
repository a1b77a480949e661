"""Mends on request what keeps a mesh from being a solid: holes, flipped faces, overlaps."""

from __future__ import annotations

import dataclasses

import numpy as np

from vfx.geometry.handoff.mesh_error import MeshError
from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.files import RawMesh
from vfx.geometry.mesh.inspect import LARGEST_HOLE, ONE_SIDED, counted
from vfx.geometry.mesh.slits import split_slits
from vfx.geometry.mesh.topology import Topology, find_topology


def turn_triangles(raw: RawMesh, which: Array) -> RawMesh:
    """Return a mesh with the triangles of ``which`` (t,) bool facing the other side."""
    def turned(values: Array) -> Array:
        mask = which.reshape(-1, *([1] * (values.ndim - 1)))
        return np.ascontiguousarray(np.where(mask, values[:, ::-1], values))

    return dataclasses.replace(
        raw, triangle=turned(raw.triangle),
        normal=None if raw.normal is None else turned(raw.normal),
        uv=None if raw.uv is None else turned(raw.uv))


def face_alike(raw: RawMesh, topology: Topology) -> tuple[RawMesh, list[str]]:
    """Turn triangles so that neighbours face one side; raise MeshError if there is none."""
    which = topology.consistent_turns()
    if which is None:
        raise MeshError(ONE_SIDED)
    if not which.any():
        return raw, []
    return turn_triangles(raw, which), [f"Turned {counted(int(which.sum()), 'flipped face')}."]


def close_slits(raw: RawMesh) -> tuple[RawMesh, list[str]]:
    """Split triangles at the vertices of others that lie on their open edges."""
    split = split_slits(raw.vertex, raw.triangle)
    if not split.n_split:
        return raw, []
    closed = dataclasses.replace(
        raw, triangle=split.triangle,
        normal=None if raw.normal is None else split.at_corners(raw.normal),
        uv=None if raw.uv is None else split.at_corners(raw.uv))
    return closed, [f"Split {counted(split.n_split, 'triangle')} at vertices on open edges."]


def close_holes(raw: RawMesh, topology: Topology) -> tuple[RawMesh, list[str]]:
    """Close the borders that are open with a fan each, if none of them is large."""
    holes = topology.holes()
    if not holes:
        return raw, []
    extent = float((raw.vertex.max(axis=0) - raw.vertex.min(axis=0)).max())
    if holes[0].size > LARGEST_HOLE * extent:
        return raw, []
    half = np.flatnonzero(topology.is_open[topology.half_edge])
    start = raw.triangle.ravel()[half]
    end = np.roll(raw.triangle, -1, axis=1).ravel()[half]
    uv_start = uv_end = np.zeros((len(half), 2), np.float32)
    if raw.uv is not None:
        uv_start = raw.uv.reshape(-1, 2)[half]
        uv_end = np.roll(raw.uv, -1, axis=1).reshape(-1, 2)[half]
    vertex, triangle, uv = [raw.vertex], [raw.triangle], []
    n_vertices = len(raw.vertex)
    for loop in _loops(start, end):
        # The filling runs along each border the other way.
        a, b = end[loop], start[loop]
        if len(loop) == 3:
            triangle.append(np.array([[a[0], b[0], b[1] if b[1] not in (a[0], b[0]) else a[1]]]))
            middle_uv = uv_start[loop][1:2]
            a_uv, b_uv = uv_end[loop][:1], uv_start[loop][:1]
        else:
            vertex.append(raw.vertex[b].mean(axis=0)[None])
            triangle.append(np.column_stack([a, b, np.full(len(a), n_vertices)]))
            n_vertices += 1
            a_uv, b_uv = uv_end[loop], uv_start[loop]
            middle_uv = np.broadcast_to(b_uv.mean(axis=0), a_uv.shape)
        uv.append(np.stack([a_uv, b_uv, middle_uv], axis=1).astype(np.float32))
    n_new = sum(map(len, triangle[1:]))
    normal = None
    if raw.normal is not None:
        normal = np.concatenate([raw.normal, np.zeros((n_new, 3, 3), np.float32)])
    closed = dataclasses.replace(
        raw, vertex=np.concatenate(vertex), triangle=np.concatenate(triangle), normal=normal,
        uv=None if raw.uv is None else np.concatenate([raw.uv, *uv]))
    return closed, [f"Closed {counted(len(holes), 'hole')} with {counted(n_new, 'triangle')}."]


def _loops(start: Array, end: Array) -> list[Array]:
    """Return the simple loops of directed border edges (b,), each as indices in order."""
    leaving: dict[int, list[int]] = {}
    for i, vertex in enumerate(start.tolist()):
        leaving.setdefault(vertex, []).append(i)
    loops = []
    for first in range(len(start)):
        path: list[int] = []
        seen: dict[int, int] = {}
        at = int(start[first])
        while leaving.get(at):
            # Cut a loop off as soon as the path comes back to where it was.
            seen[at] = len(path)
            path.append(leaving[at].pop())
            at = int(end[path[-1]])
            if at in seen:
                loop = path[seen[at]:]
                del path[seen[at]:]
                for i in loop:
                    seen.pop(int(start[i]), None)
                loops.append(np.array(loop))
        if path:
            raise MeshError("has a hole whose border does not close; mend it in a modelling "
                            "program")
    return loops


def unite_shells(raw: RawMesh) -> tuple[RawMesh, list[str]]:
    """Return the union of the shells of a mesh, all of which face as they should.

    Normals and uv go along. By manifold3d, whose result has no self-intersections.
    """
    import manifold3d

    topology = find_topology(raw.vertex, raw.triangle)
    shell = topology.shell
    triangle, place = topology.parted()
    raw = dataclasses.replace(raw, vertex=raw.vertex[place], triangle=triangle)
    parts = []
    for number in range(int(shell.max()) + 1):
        inside = shell == number
        corner = raw.triangle[inside].ravel()
        words = [raw.vertex[corner]]
        if raw.normal is not None:
            words.append(raw.normal[inside].reshape(-1, 3).astype(np.float64))
        if raw.uv is not None:
            words.append(raw.uv[inside].reshape(-1, 2).astype(np.float64))
        # Every corner is a vertex of its own, merged by place.
        _, first, which = np.unique(corner, return_index=True, return_inverse=True)
        index = np.arange(len(corner))
        target = first[which]
        split = index != target
        part = manifold3d.Manifold(manifold3d.Mesh64(
            vert_properties=np.ascontiguousarray(np.concatenate(words, axis=1)),
            tri_verts=index.reshape(-1, 3).astype(np.uint64),
            merge_from_vert=index[split].astype(np.uint64),
            merge_to_vert=target[split].astype(np.uint64)))
        if part.status() != manifold3d.Error.NoError:
            raise MeshError("cuts through itself in a way that cannot be united; mend it in a "
                            "modelling program")
        parts.append(part)
    united = manifold3d.Manifold.batch_boolean(parts, manifold3d.OpType.Add).to_mesh64()
    row = np.asarray(united.vert_properties)
    triangle = np.asarray(united.tri_verts).astype(np.int64)
    normal = None if raw.normal is None else row[triangle, 3:6].astype(np.float32)
    uv = None if raw.uv is None else row[triangle, row.shape[1] - 2:].astype(np.float32)
    return (dataclasses.replace(raw, vertex=row[:, :3].copy(), triangle=triangle,
                                normal=normal, uv=uv),
            [f"United {counted(len(parts), 'shell')} that overlap."])
