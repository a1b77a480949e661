"""Writes grids from an npz into a VDB file, in a Python of its own that has OpenVDB.

Run by path, not imported: it must not need this package. ``--check`` only says by its exit code
whether OpenVDB is there; ``--sum`` prints what is in a file, for the tests.
"""

import json
import sys
from typing import Any


def load_library() -> Any:
    """Return the OpenVDB module under whichever name it has."""
    try:
        import openvdb
    except ImportError:
        import pyopenvdb as openvdb
    return openvdb


def write(arrays_path: str, vdb_path: str) -> None:
    """Write density and vel of an npz as a fog volume and its velocity."""
    import numpy as np

    vdb = load_library()
    with np.load(arrays_path, allow_pickle=False) as arrays:
        origin = tuple(int(value) for value in arrays["origin"])
        voxel = float(arrays["voxel"])
        density = vdb.FloatGrid()
        density.copyFromArray(arrays["density"].astype(np.float32), ijk=origin)
        velocity = vdb.Vec3SGrid()
        velocity.copyFromArray(arrays["vel"].astype(np.float32), ijk=origin)
    density.name, velocity.name = "density", "vel"
    density.gridClass = vdb.GridClass.FOG_VOLUME
    for grid in (density, velocity):
        grid.transform = vdb.createLinearTransform(voxelSize=voxel)
    vdb.write(vdb_path, grids=[density, velocity])


def summarise(vdb_path: str) -> None:
    """Print grid names, the sum of density and its box as JSON."""
    vdb = load_library()
    grids = {grid.name: grid for grid in vdb.readAll(vdb_path)[0]}
    total = sum(item.value * item.count for item in grids["density"].iterOnValues())
    low, high = grids["density"].evalActiveVoxelBoundingBox()
    print(json.dumps({
        "names": sorted(grids), "sum": total, "low": low, "high": high,
        "voxel": grids["density"].transform.voxelSize()[0],
        "active": grids["density"].activeVoxelCount()}))


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        load_library()
    elif sys.argv[1] == "--sum":
        summarise(sys.argv[2])
    else:
        write(sys.argv[1], sys.argv[2])
