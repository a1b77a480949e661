"""``vfx export --to abc``: every piece as a moving mesh in one Alembic archive.

Alembic has no materials and no instances: fracture faces are a face set ``interior``, those of
cracks within a piece a face set ``cracks``, and all pieces, debris too, are meshes. Faces run
clockwise, as the programs that read it expect.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.pipeline.errors import MissingInput
from vfx.pipeline.export.pieces import Piece, PieceReader, Tracks
from vfx.pipeline.work.cache import publish


def require_alembic() -> None:
    """Raise how to get the Alembic library if it is not there."""
    try:
        import alembic3d  # noqa: F401
    except ImportError:
        raise MissingInput("the Alembic library is not installed; 'pip install alembic3d' brings "
                           "it ('alembic' is another program), or export --to usd, which "
                           "most programs that read Alembic read too") from None


def write_abc(path: Path, reader: PieceReader, report: Callable[[float], None]) -> list[str]:
    """Publish the archive; return lines that say what is in it."""
    pieces = reader.pieces(reader.frames[-1])
    motion = reader.motion(pieces)
    publish(path, lambda temporary: _write(temporary, reader, pieces, motion, report))
    return [f"{len(pieces)} pieces as meshes, {len(reader.frames)} frames"]


def _write(path: Path, reader: PieceReader, pieces: list[Piece], motion: Tracks,
           report: Callable[[float], None]) -> None:
    import imath
    from alembic3d.Abc import OArchive
    from alembic3d.AbcCoreAbstract import TimeSampling
    from alembic3d.AbcGeom import OXform, XformSample

    archive = OArchive(str(path))
    sampling = archive.addTimeSampling(_time_sampling(TimeSampling, reader))
    top = OXform(archive.getTop(), reader.work.shot.name)
    for number, piece in enumerate(pieces):
        xform = OXform(top, piece.name, sampling)
        matrix = np.zeros((4, 4))
        for row in range(len(reader.frames)):
            rotation = motion.rotation[row, number]
            # Row vectors, as Imath has them.
            matrix[:3, :3] = rotation.T
            matrix[3, :3] = rotation @ piece.center + motion.translation[row, number]
            matrix[3, 3] = 1.0
            sample = XformSample()
            sample.setMatrix(imath.M44d(*matrix.ravel().tolist()))
            xform.getSchema().set(sample)
        _write_mesh(xform, piece)
        report(number / len(pieces))
    report(1.0)
    del xform, top
    archive.reset()


def _time_sampling(kind: Any, reader: PieceReader) -> Any:
    """Return when samples are: frame / fps, evenly or, for chosen frames, one by one."""
    import imath
    from alembic3d.AbcCoreAbstract import TimeSamplingType

    fps, frames = reader.work.shot.fps, reader.frames
    steps = set(np.diff(frames).tolist()) or {1}
    if len(steps) == 1:
        return kind(steps.pop() / fps, frames[0] / fps)
    times = imath.DoubleArray(len(frames))
    for number, frame in enumerate(frames):
        times[number] = frame / fps
    return kind(TimeSamplingType(TimeSamplingType.kAcyclic), times)


def _write_mesh(xform: Any, piece: Piece) -> None:
    import imath
    from alembic3d.AbcGeom import (
        GeometryScope,
        OFaceSetSchemaSample,
        ON3fGeomParamSample,
        OPolyMesh,
        OPolyMeshSchemaSample,
        OV2fGeomParamSample,
    )

    shape = piece.mesh
    flipped = _clockwise(shape.count)
    points = imath.V3fArrayFromBuffer(_rows(shape.point - piece.center))
    corners = imath.IntArrayFromBuffer(np.ascontiguousarray(shape.corner[flipped], np.int32))
    counts = imath.IntArrayFromBuffer(np.ascontiguousarray(shape.count, np.int32))
    scope = GeometryScope.kFacevaryingScope
    sample = OPolyMeshSchemaSample(
        points, corners, counts,
        OV2fGeomParamSample(imath.V2fArrayFromBuffer(_rows(shape.uv[flipped])), scope),
        ON3fGeomParamSample(imath.V3fArrayFromBuffer(_rows(shape.normal[flipped])), scope))
    schema = OPolyMesh(xform, "mesh").getSchema()
    schema.set(sample)
    for name, chosen in (("interior", shape.is_fracture & ~shape.is_crack),
                         ("cracks", shape.is_crack)):
        if chosen.any():
            face = np.flatnonzero(chosen).astype(np.int32)
            schema.createFaceSet(name).getSchema().set(
                OFaceSetSchemaSample(imath.IntArrayFromBuffer(face)))


def _clockwise(count: Array) -> Array:
    """Return the corners of faces in opposite order, face by face, (c,)."""
    start = np.cumsum(count) - count
    within = np.arange(int(count.sum())) - np.repeat(start, count)
    flipped: Array = np.repeat(start + count - 1, count) - within
    return flipped


def _rows(value: Array) -> Array:
    return np.ascontiguousarray(value, np.float32)
