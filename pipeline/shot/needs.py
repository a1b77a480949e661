"""What a shot needs and allows before anything is built: particles, memory, time step, disk."""

from __future__ import annotations

import functools
import math
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vfx.device.memory import main_memory
from vfx.pipeline.devices import open_device
from vfx.pipeline.errors import MissingInput, PipelineError, ShotError, StorageError
from vfx.pipeline.quantities import as_size
from vfx.pipeline.shot.inputs import no_uv, surface_textures
from vfx.pipeline.shot.shot_file import Shot
from vfx.sim.control.extent import Held, depth_in, find_held, nothing_there
from vfx.sim.matter.material import SHELL, thrown_speed
from vfx.sim.settings import LEVINE_STIFFNESS
from vfx.sim.solver import Plan

if TYPE_CHECKING:
    from vfx.geometry.handoff.bodies import Body
    from vfx.geometry.handoff.elements import Surface
    from vfx.raytrace.camera.path import CameraPath

_GENTLE = 1.0                # [m/s]: a ball that throws things off no faster is no surprise
_MOST_COMPARED = 10_000      # pairs of a body and a collider, whose places are looked at
_MOST_DIVIDED = 4            # bodies that are divided to see whether they can be
_QUICKLY_DIVIDED = 3000      # elements that are divided in a fraction of a second
_FLOOR_SLACK = 1e-3          # of a cube's edge: so deep in the floor still counts as touching
_SOLID_BYTES = 80            # of a particle in geometry/solid.npz, its three edges included
_FACES_BYTES = 700           # of one that stores its faces
_FRAME_BYTES = 64            # of a particle in a frame of sim; in one of align it is less
_CHECKPOINT_BYTES = 512      # of a particle in both checkpoints
_PIXEL_BYTES = 48            # of a pixel in a frame: all channels, compressed, with a margin
_RENDER_BYTES = 640          # of a pixel in memory while its frame is rendered


def check_geometry(shot: Shot, available: int) -> int:
    """Return the bytes that building the bodies takes; refuse those that cannot be built."""
    from vfx.geometry.divide.build import check_bodies, solid_bytes

    check_meshes(shot)
    needed = solid_bytes(shot.placed_bodies)
    _check_memory(shot, needed, available)
    try:
        check_bodies(shot.placed_bodies)
    except ValueError as error:
        raise ShotError(f"{shot.path}: {error}") from None
    return needed


def check_division(shot: Shot) -> None:
    """Divide bodies that are quickly divided: whether a thin one can be shows only then."""
    from vfx.geometry.divide.build import build_solid

    is_sure = all(body.is_block for body in shot.bodies)
    if is_sure or shot.n_particles > _QUICKLY_DIVIDED or len(shot.bodies) > _MOST_DIVIDED:
        return
    try:
        build_solid(open_device("cpu", None), shot.placed_bodies)
    except ValueError as error:
        raise ShotError(f"{shot.path}: {error}") from None


def check_meshes(shot: Shot) -> None:
    """Read the meshes of a shot; refuse those that cannot become solids."""
    from vfx.geometry.divide.sources import surface_of

    for i, body in enumerate(shot.bodies):
        if not body.mesh:
            continue
        where = f"{shot.path}: {shot.headings[i]}.mesh: {body.mesh}"
        try:
            surface_of(body)
        except FileNotFoundError as error:
            raise MissingInput(f"{where}: {error}; paths are named from the folder of the "
                               "shot") from None
        except OSError as error:
            raise MissingInput(f"{where}: cannot be read ({error.strerror}); give yourself the "
                               "right to read it (chmod +r), or name a copy") from None
        except ValueError as error:
            raise ShotError(f"{where} {error}") from error


def check_uv(shot: Shot) -> None:
    """Refuse a texture on a body that will have no uv."""
    textured = surface_textures(shot)
    for i, body in enumerate(shot.bodies):
        if body.material not in textured:
            continue
        surface = _surface(body)
        if body.shape == "grid" or (surface is not None and not surface.uv.any()):
            raise no_uv(shot, i)


def _surface(body: Body) -> Surface | None:
    """Return the surface of a body, None where its mesh is no good, as check_meshes will tell."""
    from vfx.geometry.divide.sources import surface_of

    try:
        return surface_of(body)[0]
    except (OSError, ValueError):
        return None


def _in_place(shot: Shot) -> tuple[Body, ...]:
    """Return bodies in their places; without those that cannot be placed for want of a mesh."""
    try:
        return shot.placed_bodies
    except PipelineError:
        return tuple(body for body in shot.bodies if body.place == "free")


def check_camera(shot: Shot, camera: CameraPath) -> None:
    """Refuse a camera that is ever below the floor, or begins in something opaque."""
    from vfx.geometry.handoff.orientation import body_orientation
    from vfx.geometry.inside.door import encloses
    from vfx.raytrace.surface.materials import material_look

    def found(frame: int) -> str:
        place = [round(x, 6) for x in camera(frame).position]
        return f"{shot.path}: camera.position: found {place} at frame {frame}"

    if shot.floor.enabled and shot.floor_look.visible:
        frames = np.array(shot.frames if camera.moves is not None else [shot.first_frame])
        below = frames[camera.rows(frames)[:, 1] < shot.floor.height]
        if len(below):
            raise ShotError(
                f"{found(int(below[0]))}, which is below the floor at {shot.floor.height:g} m, "
                "behind which nothing would be seen; raise the camera, or set "
                "floor_look.visible = false")
    position = camera(shot.first_frame).position
    for body in _in_place(shot):
        if material_look(shot.looks[body.material]).surface.kind == "glass":
            continue
        surface = _surface(body)
        local = body_orientation(body).T @ np.subtract(position, body.center)
        if surface is not None and encloses(surface, local):
            raise ShotError(
                f"{found(shot.first_frame)}, which is inside body '{body.name}', of which nothing "
                "would be seen but its dark inside; move the camera, or make the surface glass")


def camera_warnings(shot: Shot, camera: CameraPath) -> list[str]:
    """Return which bodies have their middle beside the first picture, and odd cameras."""
    from vfx.geometry.handoff.orientation import body_orientation
    from vfx.geometry.mesh.inspect import place_text
    from vfx.raytrace.camera.camera import camera_view

    view = camera_view(camera(shot.first_frame), shot.film)
    lines = []
    first, last = camera.moves or (shot.first_frame, shot.last_frame)
    if first < last and (last < shot.first_frame or first > shot.last_frame):
        lines.append(
            f"the camera stands still: {camera.source} moves in frames {first:g} to {last:g} only, "
            f"none of which is in the shot, {shot.first_frame} to {shot.last_frame}; shift its "
            "frames to those of the shot")
    for body in _in_place(shot):
        if (surface := _surface(body)) is None:
            continue
        local = 0.5 * (surface.vertex.min(axis=0) + surface.vertex.max(axis=0))
        middle = body_orientation(body) @ local + np.array(body.center)
        place = view.project(middle, shot.film.resolution)
        # What is behind the camera has no place, and fails either comparison.
        if not ((place >= 0.0) & (place <= shot.film.resolution)).all():
            lines.append(
                f"the middle of body '{body.name}', at {place_text(middle)}, is not in the picture "
                f"of frame {shot.first_frame}; set camera.target to it and camera.position farther "
                "away")
    return lines


def check_floor(shot: Shot) -> None:
    """Refuse bodies that begin below the floor; to touch it is allowed."""
    from vfx.geometry.divide.build import lowest_point
    from vfx.geometry.divide.sources import body_size

    if not shot.floor.enabled:
        return
    for i, body in enumerate(shot.placed_bodies):
        lowest, height = lowest_point(body), shot.floor.height
        if lowest >= height - _FLOOR_SLACK * body_size(body).spacing:
            continue
        y = body.center[1] + height - lowest
        heading = shot.headings[i]
        key = "center" if heading.startswith("bodies") else "position"
        raise ShotError(
            f"{shot.path}: {heading}.{key}: body '{body.name}' has its lowest point at "
            f"y = {lowest:.6g} m, below the floor at {height:.6g} m; raise it to "
            f"{key} = [{body.center[0]:g}, {y:.9g}, {body.center[2]:g}] or more, lower "
            "floor.height, or set floor.enabled = false")


def start_warnings(shot: Shot) -> list[str]:
    """Return what is probably too thin, or begins inside of something else and would fly apart."""
    from vfx.geometry.divide.build import thin_bodies
    from vfx.geometry.divide.overlap import find_overlaps
    from vfx.geometry.mesh.inspect import place_text

    lines = thin_bodies(shot.bodies)
    for overlap in find_overlaps(open_device("cpu", None), shot.placed_bodies):
        first, second = overlap.names
        lines.append(
            f"bodies '{first}' and '{second}' overlap at rest, about {overlap.volume:.3g} m^3 "
            f"around {place_text(overlap.place)}; geometry refuses them where an element of one "
            "is inside the other, so move or turn one of them")
    return [*lines, *_thrown(shot), *_blocked(shot), *_perhaps_empty(shot)]


def _thrown(shot: Shot) -> Iterator[str]:
    """Yield which balls begin so near a body that they throw off what is there at once."""
    from vfx.geometry.divide.overlap import ball_depths, harmless_depth, world_boxes

    if not shot.projectiles:
        return
    center = np.array([ball.position for ball in shot.projectiles])
    radius = np.array([ball.radius for ball in shot.projectiles])
    reach = radius * [1.0 if ball.touches else SHELL for ball in shot.projectiles]
    low, high = world_boxes(shot.placed_bodies)
    for body, corner, opposite in zip(shot.placed_bodies, low, high, strict=True):
        beside = np.linalg.norm(np.maximum(np.maximum(corner - center, center - opposite), 0.0),
                                axis=1)
        near = np.flatnonzero(beside < reach)
        if not len(near):
            continue
        slack = harmless_depth(body)
        for k, depth in zip(near.tolist(), ball_depths(
                body, center[near], radius[near]).tolist(), strict=True):
            ball = shot.projectiles[k]
            if ball.touches:
                if depth > slack:
                    yield (f"projectiles[{k + 1}] begins {depth:.3g} m deep in body "
                           f"'{body.name}', and what is inside of it does not feel it; move its "
                           "position back along its flight")
                continue
            away = ball.radius - depth
            speed = thrown_speed(shot.materials[body.material].density, ball, away + slack)
            flight = math.hypot(*ball.velocity)
            who = f"projectiles[{k + 1}] begins"
            back = (f"; move its position back along its flight, to {SHELL * ball.radius:.3g} m or "
                    "more from the body, or lower its stiffness")
            if depth > slack:
                yield (f"{who} {depth:.3g} m deep in body '{body.name}' and bursts it with the "
                       f"first step{back}")
            elif speed > max(2.0 * flight, _GENTLE):
                yield (f"{who} with its centre {away:.3g} m from body '{body.name}', within the "
                       f"{SHELL:g} radii in which it pushes, and throws what is there off at up to "
                       f"{speed:.3g} m/s{back}")


def _blocked(shot: Shot) -> Iterator[str]:
    """Yield which bodies and balls begin in a collider, or balls below the floor."""
    from vfx.geometry.divide.overlap import harmless_depth, world_boxes
    from vfx.geometry.divide.sources import places_in

    if shot.colliders:
        low, high = world_boxes(shot.placed_bodies)
        middle, reach = 0.5 * (low + high), 0.5 * np.linalg.norm(high - low, axis=1)
        slack = np.array([harmless_depth(body) for body in shot.bodies])
        place = functools.lru_cache(maxsize=256)(lambda k: places_in(shot.placed_bodies[k]))
        balls = np.array([ball.position for ball in shot.projectiles]).reshape(-1, 3)
    n_compared = 0
    for i, collider in enumerate(shot.colliders):
        what = f"colliders[{i + 1}]"
        where, way_out = (f"behind {what}", "turn its normal round, or move one of them") \
            if collider.shape == "plane" else (f"in {what}", "move one of them")
        # No place of a body is deeper than its middle by more than its reach.
        near = np.flatnonzero(depth_in(collider, middle) + reach > slack)
        near = near[:_MOST_COMPARED - n_compared]
        n_compared += len(near)
        for k in near.tolist():
            depth = float(depth_in(collider, place(k)).max())
            if depth > slack[k]:
                yield (f"body '{shot.bodies[k].name}' begins {depth:.3g} m deep {where}, which "
                       f"tears at what is there; {way_out}")
        for k in np.flatnonzero(depth_in(collider, balls) > 0.0).tolist():
            if shot.projectiles[k].has_mass:
                yield (f"projectiles[{k + 1}] begins {where}, which it cannot leave as it "
                       f"should; {way_out}")
    for k, ball in enumerate(shot.projectiles):
        if ball.touches and ball.stiffness != LEVINE_STIFFNESS:
            yield (f"projectiles[{k + 1}].stiffness does nothing for a ball that pushes by "
                   "contact, as one with a mass or a material does; leave it out, or write "
                   "push = \"levine\"")
        if ball.has_mass and shot.floor.enabled and ball.position[1] < shot.floor.height:
            yield (f"projectiles[{k + 1}] begins with its centre below the floor, off which "
                   "balls with a mass bounce; raise its position")


def _perhaps_empty(shot: Shot) -> Iterator[str]:
    """Yield which regions may hold no element, of bodies that are not boxes of cubes."""
    for number, held in enumerate(find_held(shot.regions, shot.placed_bodies), 1):
        if held is Held.PERHAPS:
            yield (f"regions[{number}] may hold no element, and then does nothing; make it some "
                   "spacings larger, or move it into the body")


def plan_needs(shot: Shot, available: int) -> Plan[Any]:
    """Return what the simulation needs; refuse bodies that cannot even be built."""
    check_geometry(shot, available)
    return shot.plan


def work_out(shot: Shot) -> Plan[Any]:
    """Return the solver's plan of a shot; refuse bodies that it cannot be made for."""
    check_geometry(shot, sys.maxsize)
    try:
        return shot.solver.plan(shot.setup)
    except (ArithmeticError, ValueError):
        raise ShotError(f"{shot.path}: materials and bodies: density, moduli, stiffnesses or "
                        "spacing are beyond any that a time step can be worked out for") from None


def check_physics(shot: Shot, available: int) -> Plan[Any]:
    """Return what the simulation needs, or raise why it cannot run as it stands."""
    plan = plan_needs(shot, available)
    _check_memory(shot, plan.memory, available)
    for number, held in enumerate(find_held(shot.regions, shot.placed_bodies), 1):
        if held is Held.NONE:
            raise ShotError(f"{shot.path}: regions[{number}]: "
                            f"{nothing_there(shot.regions[number - 1])}")
    if (complaint := plan.complaint()) is not None:
        key, sentence = complaint
        raise ShotError(f"{shot.path}: {shot.found_in.get(key, key)}: {sentence}")
    return plan


@dataclass(frozen=True)
class Estimate:
    """How long a simulation may take: what there is to do, and the seconds of each."""

    parts: list[tuple[str, float]]
    steps_per_second: float
    device: str

    @property
    def seconds(self) -> float:
        """Of all together."""
        return sum(seconds for _, seconds in self.parts)


def estimate_time(shot: Shot) -> Estimate:
    """Let the solver try out how long a step takes, and scale to what there is to do."""
    device = open_device("auto", None)
    step = shot.solver.pace(device, shot.setup)
    return Estimate(shot.plan.effort(shot.time_of(shot.last_frame), step),
                    1.0 / max(step, 1e-12), f"{device.description}, {device.threads} threads")


def check_engine(shot: Shot) -> None:
    """Refuse a shot whose solver needs what is not installed here."""
    if sentence := shot.solver.missing():
        raise MissingInput(f"{shot.path}: sim.method: found '{shot.sim.method}', but {sentence}")


def check_film(shot: Shot, available: int) -> None:
    """Refuse pictures that do not fit into the memory."""
    width, height = _rendered_size(shot)
    needed = width * height * _RENDER_BYTES
    if needed > available:
        film = shot.film
        key, found = "resolution", f"{width} x {height}"
        if film.crop:
            key, found = "crop", f"{list(film.crop)}"
        elif film.overscan:
            key = "overscan" if 2 * film.overscan > max(film.resolution) else key
            found = (f"{film.resolution[0]} x {film.resolution[1]} with an overscan of "
                     f"{film.overscan}, together {width} x {height}")
        raise MissingInput(f"{shot.path}: render.{key}: found {found}, which needs "
                           f"{as_size(needed)} of memory, but {as_size(available)} is "
                           "available; lower it")


def check_denoising(shot: Shot) -> None:
    """Refuse a shot that wants a denoiser where there is none."""
    if not shot.film.denoise:
        return
    from vfx.raytrace.film.denoise import check_denoiser

    try:
        check_denoiser()
    except ModuleNotFoundError as error:
        raise MissingInput(f"{shot.path}: {error}") from None


def _rendered_size(shot: Shot) -> tuple[int, int]:
    """Return width and height of what is rendered: with the overscan, or cropped [pixels]."""
    film = shot.film
    if film.crop:
        return film.crop[2], film.crop[3]
    width, height = film.resolution
    return width + 2 * film.overscan, height + 2 * film.overscan


def geometry_room(shot: Shot, n_frames: int) -> int:
    """Return about how many bytes the solid has in its file."""
    has_faces = any(body.shape != "grid" for body in shot.bodies)
    return shot.n_particles * (_FACES_BYTES if has_faces else _SOLID_BYTES)


def sim_room(shot: Shot, n_frames: int) -> int:
    """Return about how many bytes frames of motion have, and the checkpoints."""
    return shot.n_particles * (n_frames * _FRAME_BYTES + _CHECKPOINT_BYTES)


def align_room(shot: Shot, n_frames: int) -> int:
    """Return about how many bytes frames of pieces have."""
    return shot.n_particles * n_frames * _FRAME_BYTES


def render_room(shot: Shot, n_frames: int) -> int:
    """Return about how many bytes pictures have."""
    width, height = _rendered_size(shot)
    return n_frames * width * height * _PIXEL_BYTES


def check_reachable(folder: Path, option: str = "--work") -> Path:
    """Refuse a folder that can neither be looked into nor made; return what of it is there.

    What is not there is no fault, but a link that leads nowhere or a disk that does not answer
    must not pass for an empty folder. ``option`` is the one that names it.
    """
    existing = folder.absolute()
    try:
        while not existing.exists() and existing != existing.parent:
            if existing.is_symlink():
                raise StorageError(
                    f"{folder}: cannot be reached, {existing} is a link to {existing.readlink()}, "
                    "which is not there (a disk that is not mounted?); bring it back or choose "
                    f"another folder with {option}")
            existing = existing.parent
        is_folder = existing.is_dir()
    except OSError as error:
        raise StorageError(f"{folder}: cannot be reached ({error.strerror}); bring its disk back "
                           f"or choose another folder with {option}") from None
    if not is_folder:
        raise StorageError(f"{folder}: cannot be a folder of results, "
                           f"{existing} is a file; choose another with {option}")
    return existing


def check_folder(folder: Path, needed: int, option: str = "--work") -> None:
    """Refuse a folder that cannot be written or has no room, without making it.

    ``option`` is the one that names it.
    """
    existing = check_reachable(folder, option)
    if not os.access(existing, os.W_OK | os.X_OK):
        raise StorageError(f"{folder}: cannot be written, {existing} belongs to another or is "
                           f"read-only; choose another folder with {option}")
    free = shutil.disk_usage(existing).free
    if needed > free:
        raise StorageError(f"{folder}: the results need about {as_size(needed)} of disk, but "
                           f"{as_size(free)} is free; free some or choose another folder with "
                           f"{option}")


def host_memory() -> int:
    """Return the bytes of main memory that are available, within a container's limit."""
    return main_memory()[0]


def _check_memory(shot: Shot, needed: int, available: int) -> None:
    if needed > available:
        cells = ", ".join("x".join(map(str, body.cells)) for body in shot.bodies
                          if body.is_block)
        what, fewer = (f"cells {cells} make", "cells") if cells else ("they come to", "elements")
        number = f"{shot.n_particles:d}" if shot.n_particles < 1e15 else f"{shot.n_particles:.3g}"
        raise MissingInput(
            f"{shot.path}: bodies: {what} {number} particles, which need "
            f"{as_size(needed)} of memory, but {as_size(available)} is available; use fewer "
            f"{fewer} or a machine with more memory")
