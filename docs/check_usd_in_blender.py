"""Compares a shot's exported USD, as Blender imports it, with the shot's own caches.

    python docs/check_usd_in_blender.py work/plate [work/plate/export/plate.usd]

Runs in a Python that has Blender as a module (``pip install bpy``, about 1 GB, in an environment
of its own) and needs nothing else of this project: the truth is read from ``geometry`` and
``align``. At every frame, and a quarter, a half and three quarters after, everything that has
an extent must be what is there then, and fill the bodies; at frames every piece must stand
where the cache has it. Prints what differs and ends with 1 if anything does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bpy
import numpy as np

LEAST_SCALE = 1e-3               # things that are drawn smaller than this are not there
LEAST_RADIUS = 1e-7              # [m]: points that are smaller are not there
TOLERANCE = 2e-6                 # [m]: Blender computes places in single precision


class Truth:
    """What the caches of a work folder say about the pieces of the last exported frame."""

    def __init__(self, work: Path, last: int) -> None:
        self._work = work
        with np.load(work / "geometry/solid.npz") as arrays:    # else each use reads it anew
            self.solid = {name: arrays[name] for name in arrays.files}
        lineage = np.load(work / "align/lineage.npz")
        self.birth, self.parent = lineage["birth_frame"], lineage["parent"]
        self.material = self.solid["material_name"][lineage["body"]]
        self.label = self.frame(last)["fragment"]
        names = self.solid["body_name"][lineage["body"]]
        self.number = {f"{name}_{number:05d}".replace("-", "_"): number
                       for number, name in enumerate(names)}
        self.volume = np.bincount(self.label, self.solid["volume"], minlength=len(self.birth))

    def frame(self, frame: int) -> dict[str, np.ndarray]:
        """Return the pieces of a frame."""
        with np.load(self._work / f"align/frame.{frame:04d}.npz") as arrays:
            return {name: arrays[name] for name in arrays.files}

    def unbroken(self, first: int, meshes: set[str]) -> dict[str, np.ndarray]:
        """Return by name what is debris later: the numbers of its pieces."""
        name = {number: name for name, number in self.number.items()}
        groups: dict[str, list[int]] = {}
        for number in sorted(set(self.label.tolist()) - {self.number[each] for each in meshes}):
            if self.birth[number] > first:
                groups.setdefault(f"{name[self.parent[number]]}_until_{self.birth[number]}",
                                  []).append(number)
        return {name: np.array(numbers) for name, numbers in groups.items()}

    def place(self, pieces: dict[str, np.ndarray],
              number: int | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rotation and centre in a frame of pieces that move as one.

        Densities are even in a body.
        """
        mine = np.flatnonzero(np.isin(self.label, number))
        weight = self.solid["volume"][mine]
        center = weight @ self.solid["position"][mine] / weight.sum()
        row = np.searchsorted(pieces["id"], pieces["fragment"][mine[0]])
        rotation = pieces["rotation"][row]
        return rotation, rotation @ center + pieces["translation"][row]


def y_up(points: np.ndarray) -> np.ndarray:
    """Return points of Blender, whose z is up, as the shot has them."""
    return np.stack([points[:, 0], points[:, 2], -points[:, 1]], axis=1)


def vectors(items: object, name: str, width: int) -> np.ndarray:
    """Return an attribute of a collection of Blender as (n, width)."""
    flat = np.zeros(len(items) * width, np.float32)
    items.foreach_get(name, flat)
    return flat.reshape(-1, width).astype(float)


def volume(mesh: bpy.types.Mesh) -> float:
    """Return the volume within a closed mesh at rest [m^3]."""
    mesh.calc_loop_triangles()
    corner = vectors(mesh.loop_triangles, "vertices", 3).astype(int)
    a, b, c = np.moveaxis(vectors(mesh.vertices, "co", 3)[corner], 1, 0)
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


def compare(truth: Truth, frames: range, folders: dict[str, str]) -> list[str]:
    """Return what differs; folders say where in the USD an object stands."""
    scene, faults = bpy.context.scene, []
    meshes = {item.name for item in scene.objects if item.type == "MESH"
              and item.name in truth.number}
    unbroken = truth.unbroken(frames[0], meshes)
    faults += [f"{name}: is missing" for name in sorted(
        unbroken.keys() - {name for name, folder in folders.items() if folder == "unbroken"})]
    for frame in frames:
        for part in (0.0, 0.25, 0.5, 0.75) if frame < frames[-1] else (0.0,):
            scene.frame_set(frame, subframe=part)
            graph = bpy.context.evaluated_depsgraph_get()
            pieces = truth.frame(frame) if part == 0.0 else None
            total = 0.0
            for shown in graph.object_instances:
                item, matrix = shown.object, np.array(shown.matrix_world)
                folder = "instances" if shown.is_instance else folders.get(item.name)
                if folder == "debris":
                    share, found = compare_points(truth, frame + part, pieces, meshes, item,
                                                  matrix)
                elif folder is not None:
                    share, found = compare_mesh(truth, frame + part, pieces, folder, item,
                                                matrix, unbroken)
                else:
                    continue
                total += share
                faults += [f"{frame + part}: {item.name}: {fault}" for fault in found]
            whole = truth.solid["volume"].sum()
            if abs(total / whole - 1.0) > 1e-4:
                faults.append(f"{frame + part}: all together are {total:.6g} m^3, not {whole:.6g}")
    return faults


def compare_mesh(truth: Truth, when: float, pieces: dict[str, np.ndarray] | None, folder: str,
                 item: bpy.types.Object, matrix: np.ndarray,
                 unbroken: dict[str, np.ndarray]) -> tuple[float, list[str]]:
    """Return the volume [m^3] of a mesh that is seen, and what is wrong with it."""
    local = vectors(item.data.vertices, "co", 3)
    world = y_up(local @ matrix[:3, :3].T + matrix[:3, 3])
    is_there = bool(np.ptp(world, axis=0).max() > LEAST_SCALE * np.ptp(local, axis=0).max())
    expected = folder != "unbroken" or when < int(item.name.rpartition("_")[2])
    if is_there != expected:
        return volume(item.data) * is_there, [f"is {'' if is_there else 'not '}there"]
    found = []
    if pieces is not None and is_there:
        rotation, center = truth.place(
            pieces, unbroken[item.name] if folder == "unbroken" else truth.number[item.name])
        error = np.abs(local @ rotation.T + center - world).max()
        # Of instances Blender takes the turn in half precision.
        if error > TOLERANCE + (2e-3 * np.abs(local).max() if folder == "instances" else 0.0):
            found = [f"is {error:.2g} m off"]
    return volume(item.data) * is_there, found


def compare_points(truth: Truth, when: float, pieces: dict[str, np.ndarray] | None,
                   meshes: set[str], item: bpy.types.Object,
                   matrix: np.ndarray) -> tuple[float, list[str]]:
    """Return the volume [m^3] of debris that is seen, and what is wrong with it."""
    number = np.array(sorted(set(truth.label.tolist()) - {truth.number[name] for name in meshes}))
    if item.name != "debris":
        number = number[truth.material[number] == item.name]
    radius = vectors(item.data.points, "radius", 1)[:, 0]
    found = []
    if wrong := int(((radius > LEAST_RADIUS) != (truth.birth[number] <= when)).sum()):
        found.append(f"{wrong} of {len(number)} points are there too early or too late")
    if pieces is not None:
        world = y_up(vectors(item.data.points, "co", 3) @ matrix[:3, :3].T + matrix[:3, 3])
        center = [truth.place(pieces, each)[1] for each in number]
        if not (error := np.abs(world - center).max()) <= TOLERANCE:      # also NaN
            found.append(f"is {error:.2g} m off")
    return float((4.0 / 3.0 * np.pi * radius**3).sum()), found


def main() -> int:
    """Import, compare, and say."""
    work = Path(sys.argv[1])
    usd = Path(sys.argv[2]) if len(sys.argv) > 2 else next((work / "export").glob("*.usd"))
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.wm.usd_import(filepath=str(usd.resolve()), set_frame_range=True)
    scene = bpy.context.scene
    frames = range(scene.frame_start, scene.frame_end + 1)
    folders = {}
    for item in scene.objects:
        above = item
        while above is not None and item.type in ("MESH", "POINTCLOUD"):
            if above.name in ("unbroken", "debris") or (
                    above.name == "pieces" and item is not above):
                folders[item.name] = above.name
            above = above.parent
    print(f"Blender {bpy.app.version_string}: {usd}: frames {frames[0]} to {frames[-1]}")
    faults = compare(Truth(work, frames[-1]), frames, folders)
    print("\n".join(faults) or "all as in the caches")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
