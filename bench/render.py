"""``vfx bench render``: what rays, trees and frames cost, against Embree in the same run.

The plate is that of levine-2014 (131,072 cubes) in 400 pieces a little apart; the vase is a shell
of tetrahedra, the serpent Voronoi cells cut by a mesh of half a million triangles. The peer is
Embree through embreex, single rays, on the very triangles of the boundary, with as many threads.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from vfx.bench.rows import Row, less_is_better, more_is_better
from vfx.bench.timing import Timing, load_warning, peak_memory
from vfx.device import Device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.types import Array, Faces, Pieces, Solid
from vfx.pipeline.devices import open_device
from vfx.pipeline.errors import FrameFailed
from vfx.pipeline.stages.table import GEOMETRY
from vfx.pipeline.work.cache import read_npz, write_npz
from vfx.raytrace.boundary.make import make_boundary
from vfx.raytrace.camera.camera import CameraRays, View, camera_view
from vfx.raytrace.film.film import FilmSums, tile_chunks
from vfx.raytrace.light.environment import load_environment
from vfx.raytrace.light.lights import Sky, sky_on_device
from vfx.raytrace.render import frame_scene
from vfx.raytrace.scene import Rays, Scene, Surroundings
from vfx.raytrace.settings import Camera, Film, Finish, FloorLook, Light, Look, MaterialLook
from vfx.raytrace.tree.bvh import build_bvh

CASES = ("plate", "vase", "serpent")
#: Elements of the vase and the serpent at full size: levine-2014 table 1.
ELEMENTS = {"vase": 637_027, "serpent": 473_380}
RESOLUTION = (1280, 720)
PIECES = 400
REPEATS = 5
#: Two distances along a ray that differ by a smaller part of the longest are the same.
GRAZING = 1e-5
#: What float32 may be wrong by across a ray, as a part of the longest distance: eight roundings.
ROUNDING = 8 * 2.0**-24
#: Figures of other programs (facts measured on a machine of this kind), as anchors.
POVRAY_OPAQUE, MITSUBA_GLASS = 1.3, 2.5


@dataclass(frozen=True)
class Request:
    """What is to be measured, as the command line says it."""

    cases: tuple[str, ...] = ("plate",)
    elements: int | None = None
    device: str = "cpu"
    threads: int | None = None
    cache: Path = Path("work/bench")


@dataclass(frozen=True)
class Floor:
    """The ground below the scene."""

    enabled: bool
    height: float = 0.0


@dataclass(frozen=True)
class Hits:
    """What rays meet first."""

    t: Array          # (n,) distance [m], or infinity
    triangle: Array   # (n,) its number, or -1


@dataclass(frozen=True)
class Subject:
    """A solid in pieces, and a camera that sees all of it."""

    name: str
    solid: Solid
    faces: Faces
    pieces: Pieces
    camera: Camera


def measure(request: Request, say: Callable[[str], None]) -> list[Row]:
    """Measure the cases one after the other."""
    device = open_device(request.device, request.threads)
    say(f"device: {device.description}, {device.threads} threads")
    warning = load_warning()
    if warning:
        say(warning)
    sky = sky_on_device(device, load_environment("studio", Path(".")))
    rows: list[Row] = []
    for case in request.cases:
        subject = make_subject(case, request)
        frames = measure_frames(device, subject, sky)
        # Embree's memory is not ours.
        memory = Row(subject.name, "peak memory so far", peak_memory() / 1e9, "GB")
        rows += [*measure_rays(device, subject, sky, say), *frames, memory]
    return rows


def make_subject(case: str, request: Request) -> Subject:
    """Build a case's solid, or read it from the cache, and break it into pieces."""
    elements = request.elements
    if case == "plate":
        side = 128 if elements is None else max(2, round((elements / 8) ** 0.5))
        body = Body(material="glass", cells=(side, side, 8), spacing=0.128 / side,
                    center=(0.0, 0.0645, 0.0))
        camera = Camera(position=(0.1, 0.1, 0.3), target=(0.0, 0.064, 0.0))
    elif case == "vase":
        body = Body(material="glass", shape="tet-shell", mesh="asset:vase", anchor="base",
                    elements=elements or ELEMENTS["vase"])
        camera = Camera(position=(0.2, 0.3, 0.65), target=(0.0, 0.14, 0.0))
    else:
        body = Body(material="glass", shape="voronoi", mesh="asset:serpent", anchor="base",
                    height=0.3, elements=elements or ELEMENTS["serpent"])
        camera = Camera(position=(0.25, 0.35, 0.7), target=(0.0, 0.12, 0.0))
    solid = _cached_solid(case, body, request)
    name = f"{case}, {solid.n_elements} elements in {PIECES} pieces"
    return Subject(name, solid, all_faces(solid), pieces_apart(solid, PIECES), camera)


def pieces_apart(solid: Solid, pieces: int) -> Pieces:
    """Return pieces around random elements, turned and moved apart by a fraction of lambda."""
    random = np.random.default_rng(1)
    site = random.choice(solid.position, pieces, replace=False)
    _, label = cKDTree(site).query(solid.position)
    rotation = Rotation.from_rotvec(0.03 * random.normal(size=(pieces, 3))).as_matrix()
    move = 0.4 * float(solid.length_scale[0]) * random.normal(size=(pieces, 3))
    count = np.bincount(label, minlength=pieces)
    still = np.zeros((pieces, 3))
    return Pieces(
        frame=1001, time=0.0, fragment=label.astype(np.int32),
        id=np.arange(pieces, dtype=np.int32), rotation=rotation,
        translation=site + move - np.einsum("kij,kj->ki", rotation, site), center=site + move,
        velocity=still, angular_velocity=still, mass=count.astype(float),
        damage=np.zeros(solid.n_elements, np.float32),
        projectile_position=np.zeros((0, 3)), projectile_radius=np.zeros(0))


def measure_rays(device: Device, subject: Subject, sky: Sky,
                 say: Callable[[str], None]) -> list[Row]:
    """Time boundary, tree and camera rays, and the same triangles in Embree."""
    film = Film(resolution=RESOLUTION, samples=1)
    view = camera_view(subject.camera, film)
    look = Surroundings(Light(), (), {}, Floor(False), FloorLook(), None)
    frame = timed(lambda: make_scene(device, subject, look, sky, film, view), 3)
    scene = make_scene(device, subject, look, sky, film, view)
    boundary = make_boundary(device, subject.solid, subject.faces, subject.pieces)
    triangle = boundary.triangle
    build = timed(
        lambda: build_bvh(device, triangle, boundary.group, piece=boundary.piece), REPEATS)
    rays = camera_rays(device, scene, film, view)
    walk = timed(lambda: scene.first_hits(rays), REPEATS)
    n_rays = len(rays.pixel)
    hit = float((device.to_host(scene.first_hits(rays)[1]) >= 0).mean())
    say(f"{subject.name}: {len(triangle)} boundary triangles, {hit:.0%} of the rays meet one")
    rows = [Row(subject.name, "boundary triangles", len(triangle), "triangles"),
            Row(subject.name, "boundary, tree and tables", frame.best, "s a frame"),
            Row(subject.name, "boundary, tree and tables, CPU", frame.best_cpu, "CPU-s a frame")]
    peer = embree_times(device.to_host(triangle), rays, device)
    if peer is None:
        say("embreex is not installed: no peer (pip install embreex)")
        return [*rows, Row(subject.name, "tree", build.best, "s"),
                Row(subject.name, "camera rays", n_rays / walk.best / 1e6, "Mrays/s")]
    peer_build, peer_walk, theirs = peer
    t, slot = (device.to_host(values) for values in scene.first_hits(rays))
    slot_triangle = device.to_host(scene.tree.slot_triangle).reshape(-1)
    ours = Hits(t, np.where(slot < 0, -1, slot_triangle[slot]))
    away = disputes(device.to_host(triangle), device.to_host(rays.origin),
                    device.to_host(rays.direction), ours, theirs)
    beyond = int((away > ROUNDING * theirs.t[np.isfinite(theirs.t)].max(initial=0.0)).sum())
    return [
        *rows,
        Row(subject.name, "rays that embreex ends elsewhere", len(away), f"of {n_rays}"),
        Row(subject.name, "how far these miss an edge or plane",
            1e9 * float(away.max(initial=0.0)), "nm"),
        Row(subject.name, "of these, beyond rounding", beyond, "rays"),
        less_is_better(subject.name, "tree", build.best, "s", "embreex", peer_build.best),
        less_is_better(subject.name, "tree, CPU", build.best_cpu, "CPU-s", "embreex",
                       peer_build.best_cpu),
        more_is_better(subject.name, "camera rays", n_rays / walk.best / 1e6, "Mrays/s", "embreex",
                       n_rays / peer_walk.best / 1e6),
        more_is_better(subject.name, "camera rays, CPU", n_rays / walk.best_cpu / 1e6,
                       "Mrays/CPU-s", "embreex", n_rays / peer_walk.best_cpu / 1e6)]


def measure_frames(device: Device, subject: Subject, sky: Sky) -> list[Row]:
    """Time one sample of opaque pieces with shadows on a floor, and of glass ones."""
    glass = Finish(kind="glass", ior=1.52, tint=(0.8, 0.93, 0.9))
    views: list[tuple[str, Film, Any, bool, str, float]] = [
        ("opaque with shadow, a sample", Film(resolution=RESOLUTION, samples=1, occlusion=False),
         Look(), True, "POV-Ray, 131k boxes", POVRAY_OPAQUE),
        ("glass, depth 10, a sample", Film(resolution=RESOLUTION, samples=1, depth=10),
         MaterialLook(glass, glass), False, "Mitsuba, a hand-made boundary", MITSUBA_GLASS)]
    rows = []
    for metric, film, look, has_floor, anchor, anchor_value in views:
        light = Light() if has_floor else Light(key_color=(0.0, 0.0, 0.0))
        around = Surroundings(light, (), {"glass": look}, Floor(has_floor), FloorLook(), None)
        cost = _frame_cost(device, subject, around, sky, film)
        rows += [Row(subject.name, metric, cost.best, "s"),
                 less_is_better(subject.name, f"{metric}, CPU", cost.best_cpu, "CPU-s", anchor,
                                anchor_value)]
    return rows


def _frame_cost(device: Device, subject: Subject, around: Surroundings, sky: Sky,
                film: Film) -> Timing:
    """Time tracing a frame, its scene already made."""
    view = camera_view(subject.camera, film)
    scene = make_scene(device, subject, around, sky, film, view)
    return timed(lambda: trace_frame(device, scene, film, view), 3)


def make_scene(device: Device, subject: Subject, around: Surroundings, sky: Sky, film: Film,
               view: View) -> Scene:
    """Return a subject's scene: its boundary, tree and tables."""
    return frame_scene(device, subject.solid, subject.faces, subject.pieces, around, sky, film,
                       subject.camera, view)


def camera_rays(device: Device, scene: Scene, film: Film, view: View) -> Rays:
    """Return one ray through every pixel, all at once."""
    maker = CameraRays(device, view, film, origin=scene.origin, index_mask=scene.index_mask)
    return maker.centers(np.arange(maker.window.n_tiles, dtype=np.int32))


def trace_frame(device: Device, scene: Scene, film: Film, view: View) -> None:
    """Trace a whole picture and throw it away."""
    maker = CameraRays(device, view, film, origin=scene.origin, index_mask=scene.index_mask)
    sums = FilmSums(device, maker.window)
    every = np.arange(maker.window.n_tiles, dtype=np.int32)
    for tiles, first, count in tile_chunks(every, 0, film.samples):
        rays = maker.samples(tiles, first, count)
        sums.add(rays, scene.integrate(rays), len(tiles), count)
    device.synchronize()


def disputes(triangle: Array, origin: Array, direction: Array, ours: Hits, theirs: Hits) -> Array:
    """Return of each ray that two programs end elsewhere how far rounding must reach for it [m].

    Where both name one triangle, seen from its edge, that is how far the worse of both points is
    off its plane. Else the nearer triangle is met by one of them only: it is how far the ray
    passes its nearest edge, in double precision.
    """
    reach = np.max(theirs.t[np.isfinite(theirs.t)], initial=0.0)
    with np.errstate(invalid="ignore"):
        differs = ~((np.abs(ours.t - theirs.t) <= GRAZING * reach) | (ours.t == theirs.t))
    away = []
    for ray in np.flatnonzero(differs):
        start, along = origin[ray].astype(float), direction[ray].astype(float)
        nearer = ours if ours.t[ray] < theirs.t[ray] else theirs
        corner = triangle[nearer.triangle[ray]].astype(float) - start
        if ours.triangle[ray] == theirs.triangle[ray]:
            away.append(max(plane_distance(corner, float(hits.t[ray]) * along)
                            for hits in (ours, theirs)))
        else:
            away.append(edge_distance(corner, along))
    return np.array(away, float)


def plane_distance(corner: Array, point: Array) -> float:
    """Return how far a point (3,) is off the plane of a triangle (3, 3)."""
    normal = np.cross(corner[1] - corner[0], corner[2] - corner[0])
    return float(abs((point - corner[0]) @ normal) / np.linalg.norm(normal))


def edge_distance(corner: Array, direction: Array) -> float:
    """Return how far a line from 0 passes the nearest edge of a triangle (3, 3)."""
    edge = np.roll(corner, -1, axis=0) - corner
    across = np.cross(edge, direction)
    return float((np.abs(np.einsum("ei,ei->e", corner, across))
                  / np.linalg.norm(across, axis=1)).min())


def embree_times(triangle: Array, rays: Rays,
                 device: Device) -> tuple[Timing, Timing, Hits] | None:
    """Return what building and tracing cost embreex, and what it meets; None without it."""
    try:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene
    except ImportError:
        return None
    origin, direction = device.to_host(rays.origin), device.to_host(rays.direction)

    def build() -> Any:
        peer = EmbreeScene()
        TriangleMesh(peer, triangle)
        peer.run(origin[:1], direction[:1])       # the tree is built at the first query
        return peer

    built = timed(build, 3)
    peer = build()
    parts = np.array_split(np.arange(len(origin)), device.threads)
    halves = [(origin[part], direction[part]) for part in parts]
    with ThreadPoolExecutor(device.threads) as pool:
        walked = timed(lambda: list(pool.map(lambda half: peer.run(*half), halves)), REPEATS)
    distance = peer.run(origin, direction, query="DISTANCE")
    hits = Hits(np.where(distance < 1e30, distance, np.inf), peer.run(origin, direction))
    return built, walked, hits


def timed(work: Callable[[], Any], repeats: int) -> Timing:
    """Return the times of ``repeats`` runs, after one to warm up."""
    timing = Timing()
    work()
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        timing.wall.append(time.perf_counter() - wall)
        timing.cpu.append(time.process_time() - cpu)
    return timing


def _cached_solid(case: str, body: Body, request: Request) -> Solid:
    """Return the solid of a case, kept from an earlier run or made now.

    It is made in a process of its own, so that its memory does not count as the renderer's.
    """
    # Solids of an older version are others.
    version, size = GEOMETRY.version, body.elements or body.cells[0]
    path = request.cache / f"render_{case}_{size}_v{version}.npz"
    if not path.is_file():
        try:
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                pool.submit(_make_solid, body, path, request.device, request.threads).result()
        except BrokenProcessPool:
            raise FrameFailed(f"{case}: the process that made its elements was ended, most likely "
                              "for want of memory; measure less with --elements") from None
    return Solid.from_arrays(read_npz(path))


def _make_solid(body: Body, path: Path, device: str, threads: int | None) -> None:
    solid = build_solid(open_device(device, threads), [body]).solid
    write_npz(path, solid.to_arrays())
