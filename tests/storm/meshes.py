"""Meshes: files of every known kind, hostile in what they say or in how they say it.

Surfaces that enclose nothing, numbers that are none, counts that lie, files cut short. ``check``
has to answer each; what it accepts must divide into elements, and some are rendered.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from .case import QUICK, Case
from .child import start
from .mutate import change_json, change_number, spoil
from .plate import write_sky

Surface = tuple[np.ndarray, np.ndarray]          # vertices (v, 3), triangles (t, 3)

_SUFFIXES = ("obj", "ply", "plyb", "stl", "stlb", "off", "glb", "usda", "usdc", "usdz")
_TEXT = ("obj", "ply", "stl", "off", "usda")


def prepare(ground: Path) -> dict[str, dict[str, bytes]]:
    """Write good surfaces in every kind of file; return their bytes by kind and name."""
    folder = ground / "good-meshes"
    folder.mkdir()
    outcome = start([], folder=folder, writable=[folder],
                    command=lambda: _write_all(folder)).wait()
    if outcome.code:
        raise SystemExit(f"the good meshes could not be written: {outcome.output}")
    good: dict[str, dict[str, bytes]] = {suffix: {} for suffix in _SUFFIXES}
    for path in sorted(folder.iterdir()):
        good[path.suffix[1:]][path.stem] = path.read_bytes()
    return good


def play(case: Case, good: dict[str, dict[str, bytes]]) -> None:
    """Check a shot with one hostile mesh; divide it, or run all, if it is accepted."""
    random = case.random
    suffix = _SUFFIXES[case.number % len(_SUFFIXES)]
    if random.random() < 0.45 and suffix in _WRITERS:
        name = random.choice(list(_SHAPES))
        way = random.choice(_WAYS)
        case.tell(f"{suffix}, {name}, {way.__name__}")
        vertex, triangle = way(random, *_SHAPES[name]())
        data = _WRITERS[suffix](vertex, triangle)
    else:
        name = random.choice(list(good[suffix]) or [""])
        data = good[suffix].get(name, b"")
        if suffix == "glb" and random.random() < 0.6:
            data = _other_gltf(random, data)
        elif random.random() < 0.95:
            data = spoil(random, data, is_text=suffix in _TEXT)
        case.tell(f"{suffix}, {name}, spoilt")
    write_sky(case.shot.parent / "sky.exr")
    file = f"mesh.{suffix[:3] if suffix in ('plyb', 'stlb') else suffix}"
    (case.shot.parent / file).write_bytes(data)
    case.shot.write_text(_shot(random, file))
    words = (case.shot.name, "--work", case.work)
    outcome = case.vfx("check", *words, allowed={0, 2, 3}, writes=False)
    case.tally["refused" if outcome.code else "accepted"] += 1
    if outcome.code:
        return
    # That layers may not fit into a thin body is said beforehand, as a warning.
    allowed = {0, 2} if "which geometry then refuses" in outcome.output else {0}
    if random.random() < 0.15:
        case.tally["run"] += 1
        case.vfx("run", *words, *QUICK, allowed={*allowed, 1})
    else:
        case.tally["divided"] += 1
        case.vfx("stage", "geometry", *words, *QUICK, allowed=allowed)


def _shot(random: Random, file: str) -> str:
    keys = [f"shape = \"{random.choice(['voronoi', 'voronoi', 'grid', 'tet-shell'])}\"",
            random.choice(["elements = 60", "elements = 60", "height = 0.1\nelements = 60",
                           "height = 0.1\nspacing = 0.02", "mesh_unit = \"mm\"\nelements = 80",
                           "mesh_up = \"z\"\nelements = 100"])]
    if random.random() < 0.5:
        keys.append("repair = true")
    return f"""\
[shot]
frames = "1001-1002"
[time]
steps_per_frame = 5
[[bodies]]
name = "thing"
material = "clay"
mesh = "{file}"
center = [0.0, 100.0, 0.0]
{chr(10).join(keys)}
[materials.clay]
[sim]
timestep = "auto"
[camera]
position = [0.0, 100.0, 5.0]
target = [0.0, 100.0, 0.0]
[light]
environment = "sky.exr"
[render]
resolution = [8, 6]
samples = 1
"""


def _tetrahedron() -> Surface:
    return (np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float),
            np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]))


def _box() -> Surface:
    vertex = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return vertex, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def _ball() -> Surface:
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=1)
    return np.array(ball.vertices), np.array(ball.faces)


def _ring() -> Surface:
    import trimesh

    ring = trimesh.creation.torus(1.0, 0.3, 8, 6)
    return np.array(ring.vertices), np.array(ring.faces)


def _shell() -> Surface:
    """A box with a hollow."""
    vertex, triangle = _box()
    return (np.concatenate([vertex, 0.25 + 0.5 * vertex]),
            np.concatenate([triangle, triangle[:, ::-1] + len(vertex)]))


_SHAPES: dict[str, Callable[[], Surface]] = {
    "tetrahedron": _tetrahedron, "box": _box, "ball": _ball, "ring": _ring, "shell": _shell}


def _as_it_is(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    return v, t


def _stretched(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    return v * [random.choice([1e-30, 1e-6, 1.0, 1e6, 1e30, 0.0, -1.0, 1e300])
                for _ in range(3)], t


def _far_away(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    return v + random.choice([1e3, 1e7, 1e12, 1e300]), t


def _no_number(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    v = v.copy()
    v[random.randrange(len(v)), random.randrange(3)] = random.choice(
        [np.nan, np.inf, -np.inf, 1e308, 5e-324])
    return v, t


def _bad_corner(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    t = t.copy()
    t[random.randrange(len(t)), random.randrange(3)] = random.choice(
        [-1, -2, len(v), len(v) + 1, 2**31 - 1, 0, 1])
    return v, t


def _missing_faces(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    return v, np.delete(t, random.sample(range(len(t)), random.choice([1, 1, 2, len(t) - 1])), 0)


def _turned_faces(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    t = t.copy()
    for i in random.sample(range(len(t)), random.choice([1, 2, len(t)])):
        t[i] = t[i, ::-1]
    return v, t


def _doubled(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    """The same again: in the same place, a little aside, or turned over."""
    shift = random.choice([0.0, 1e-12, 1e-6, 0.1, 0.5, 1.0])
    again = t[:, ::-1] if random.random() < 0.3 else t
    return np.concatenate([v, v + shift]), np.concatenate([t, again + len(v)])


def _soup(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    """Triangles that share no vertex."""
    return v[t].reshape(-1, 3), np.arange(3 * len(t)).reshape(-1, 3)


def _flat(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    v = v.copy()
    v[:, random.randrange(3)] = 0.0
    return v, t


def _pinched(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    """Two vertices at one place, or three in a line."""
    v = v.copy()
    a, b, c = (random.randrange(len(v)) for _ in range(3))
    v[a] = random.choice([v[b], 0.5 * (v[b] + v[c]), v[b] + 1e-15])
    return v, t


def _fan(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    """A wing at an edge that has two faces already."""
    a, b, _ = t[random.randrange(len(t))]
    return np.vstack([v, v.mean(0) + 2.0]), np.vstack([t, [a, b, len(v)]])


def _shuffled(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    """Corners that go to other vertices."""
    order = list(range(len(v)))
    random.shuffle(order)
    return v[order], t


def _crumpled(random: Random, v: np.ndarray, t: np.ndarray) -> Surface:
    """A surface that cuts through itself."""
    moved = np.random.default_rng(random.randrange(2**32)).normal(size=v.shape)
    return v + random.choice([1e-9, 0.1, 1.0]) * moved, t


_WAYS = (_as_it_is, _stretched, _far_away, _no_number, _bad_corner, _missing_faces, _turned_faces,
         _doubled, _soup, _flat, _pinched, _fan, _shuffled, _crumpled)


def _obj(vertex: np.ndarray, triangle: np.ndarray) -> bytes:
    lines = [f"v {x:.17g} {y:.17g} {z:.17g}" for x, y, z in vertex]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in triangle]
    return "\n".join(lines).encode()


def _off(vertex: np.ndarray, triangle: np.ndarray) -> bytes:
    lines = ["OFF", f"{len(vertex)} {len(triangle)} 0"]
    lines += [f"{x:.17g} {y:.17g} {z:.17g}" for x, y, z in vertex]
    lines += [f"3 {a} {b} {c}" for a, b, c in triangle]
    return "\n".join(lines).encode()


def _ply(vertex: np.ndarray, triangle: np.ndarray, form: str = "ascii") -> bytes:
    head = (f"ply\nformat {form} 1.0\nelement vertex {len(vertex)}\nproperty double x\n"
            f"property double y\nproperty double z\nelement face {len(triangle)}\n"
            "property list uchar int vertex_indices\nend_header\n").encode()
    if form == "ascii":
        return head + _off(vertex, triangle).split(b"\n", 2)[2]
    with np.errstate(all="ignore"):
        faces = b"".join(struct.pack("<B3i", 3, *(int(i) for i in row)) for row in triangle)
        return head + vertex.astype("<f8").tobytes() + faces


def _ply_binary(vertex: np.ndarray, triangle: np.ndarray) -> bytes:
    return _ply(vertex, triangle, "binary_little_endian")


def _corners(vertex: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        corners: np.ndarray = vertex[np.clip(triangle, 0, len(vertex) - 1)].astype("<f4")
    return corners


def _stl(vertex: np.ndarray, triangle: np.ndarray) -> bytes:
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n" + "".join(f"vertex {x:g} {y:g} {z:g}\n"
                                                     for x, y, z in corners)
        + "endloop\nendfacet\n" for corners in _corners(vertex, triangle))
    return f"solid thing\n{facets}endsolid thing\n".encode()


def _stl_binary(vertex: np.ndarray, triangle: np.ndarray) -> bytes:
    facets = b"".join(b"\0" * 12 + corners.tobytes() + b"\0\0"
                      for corners in _corners(vertex, triangle))
    return b"\0" * 80 + struct.pack("<I", len(triangle)) + facets


def _usda(vertex: np.ndarray, triangle: np.ndarray) -> bytes:
    points = ", ".join(f"({x:.17g}, {y:.17g}, {z:.17g})" for x, y, z in vertex)
    return f"""#usda 1.0
(
    defaultPrim = "Thing"
    metersPerUnit = 1
    upAxis = "Y"
)
def Xform "Thing" {{
    double3 xformOp:translate = (0, 1, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Mesh "Mesh" {{
        int[] faceVertexCounts = {[3] * len(triangle)}
        int[] faceVertexIndices = {[int(i) for i in triangle.ravel()]}
        point3f[] points = [{points}]
        uniform token subdivisionScheme = "none"
    }}
}}
""".encode()


_WRITERS: dict[str, Callable[[np.ndarray, np.ndarray], bytes]] = {
    "obj": _obj, "off": _off, "ply": _ply, "plyb": _ply_binary, "stl": _stl, "stlb": _stl_binary,
    "usda": _usda}


def _other_gltf(random: Random, data: bytes) -> bytes:
    """Change the JSON of a GLB, or an accessor in it, and let its lengths be right again."""
    (length,) = struct.unpack("<I", data[12:16])
    text, rest = data[20:20 + length], data[20 + length:]
    text = change_number(random, text) if random.random() < 0.5 else change_json(random, text)
    text += b" " * (-len(text) % 4)
    return (data[:8] + struct.pack("<II", 20 + len(text) + len(rest), len(text)) + data[16:20]
            + text + rest)


def _write_all(folder: Path) -> None:
    """Write the good surfaces in every kind of file; runs in a process of its own."""
    import trimesh

    for name, shape in _SHAPES.items():
        vertex, triangle = shape()
        for suffix, write in _WRITERS.items():
            (folder / f"{name}.{suffix}").write_bytes(write(vertex, triangle))
        mesh = trimesh.Trimesh(vertex, triangle, process=False)
        (folder / f"{name}.glb").write_bytes(_glb(mesh))
        _write_usd(folder, name)


def _glb(mesh: Any) -> bytes:
    data: bytes = mesh.export(file_type="glb")
    return data


def _write_usd(folder: Path, name: str) -> None:
    try:
        from pxr import Sdf, UsdUtils
    except ImportError:
        return
    source, crate = folder / f"{name}.usda", folder / f"{name}.usdc"
    Sdf.Layer.FindOrOpen(str(source)).Export(str(crate))
    UsdUtils.CreateNewUsdzPackage(str(crate), str(folder / f"{name}.usdz"))
