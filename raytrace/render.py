"""Render a frame: solid, pieces, camera and light in, named passes out.

Camera rays (:mod:`vfx.raytrace.camera.camera`) go through the scene (:mod:`vfx.raytrace.scene`)
and what they bring back adds up on the film (:mod:`vfx.raytrace.film.film`).

``lighting = "harmonic"`` is as in levine-2014 section 5, with what a picture needs on top: the
environment by spherical harmonics for diffuse and as background, normalised Blinn-Phong for
highlights, a key light of some width with shadows, and sampled rays that let surfaces hide and
light one another. A surface gathers and reflects the whole sky without sampling, from nine
coefficients and from blurred copies; a sampled ray that meets something takes its part of that
sky away and puts the occluder's light in its place, so that open surfaces carry no noise.
``lighting = "path"`` follows every bounce and draws directions from the environment and from the
surfaces' scattering. Glass is traced alike in both.

What the frames hold is listed in :mod:`vfx.raytrace.film.passes`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.products import along
from vfx.geometry.handoff.types import Array, Faces, Pieces, Solid
from vfx.raytrace.boundary.cracked import crack_widths
from vfx.raytrace.boundary.make import make_boundary
from vfx.raytrace.camera.camera import CameraRays, View, camera_view
from vfx.raytrace.camera.motion import Neighbors, forward_motion, moved_pieces, shutter_times
from vfx.raytrace.camera.path import CameraPath, resting_path
from vfx.raytrace.film.denoise import denoised
from vfx.raytrace.film.film import FilmSums, data_passes, data_window, tile_chunks
from vfx.raytrace.film.passes import FEATURES, NO_DEPTH, mattes, named_passes
from vfx.raytrace.film.sampling import motion_steps, noisy_tiles, sample_passes, step_ranges
from vfx.raytrace.light.lights import Sky, sky_on_device
from vfx.raytrace.props import Prop
from vfx.raytrace.scene import FloorPlane, Rays, Scene, Surroundings
from vfx.raytrace.settings import (
    AreaLight,
    Camera,
    Film,
    FloorLook,
    Light,
    Look,
    MaterialLook,
)
from vfx.raytrace.surface.materials import first_prop_row

#: Where the floor has faded to 63 % into the horizon, in distances from camera to target.
FADE_DISTANCES = 8.0
#: Trees are kept from pass to pass as long as all of them have so few triangles.
KEPT_TRIANGLES = 4_000_000


@dataclass(frozen=True)
class Picture:
    """A rendered frame: channels by name, each (height, width) float32, top row first."""

    channels: dict[str, Array]
    matte_channels: dict[str, Array] = field(default_factory=dict)   # of the Cryptomattes
    matte_header: dict[str, Any] = field(default_factory=dict)
    samples: float = 0.0          # camera rays a pixel, on average


def render_frame(*arguments: Any, **settings: Any) -> dict[str, Array]:
    """Return the channels of :func:`render_picture`, without Cryptomattes."""
    return render_picture(*arguments, **settings).channels


def render_picture(
    device: Device,
    solid: Solid,
    pieces: Pieces,
    camera: Camera | CameraPath,
    light: Light,
    looks: Mapping[str, Look | MaterialLook],
    floor: FloorPlane,
    floor_look: FloorLook,
    film: Film,
    environment: Array,
    progress: Callable[[float], None] | None = None,
    *,
    faces: Faces | None = None,
    area_lights: Sequence[AreaLight] = (),
    texture: Array | None = None,
    images: Mapping[str, Array] | None = None,
    near: Neighbors | None = None,
    props: Sequence[Prop] = (),
) -> Picture:
    """Render one frame and return its passes.

    ``looks`` maps material names to looks; a material without one gets the default.
    ``environment`` is (h, w, 3) float32 from
    :func:`vfx.raytrace.light.environment.load_environment`, ``texture`` the floor's image,
    alike; ``images`` has those that looks name. ``progress`` is called with the finished part,
    0..1.
    ``faces`` saves their extraction where many frames of one solid are rendered. ``near`` has the
    frames next to this one, for motion; without, pieces stand still. ``props`` are the colliders
    that are seen.
    """
    path = camera if callable(camera) else resting_path(camera)
    around = Surroundings(light, area_lights, looks, floor, floor_look, texture,
                          dict(images or {}), props)
    shoot = _Shoot(device, solid, all_faces(solid) if faces is None else faces, pieces,
                   near or Neighbors(), path, around, sky_on_device(device, environment), film)
    data = shoot.data()
    sums = shoot.expose(progress)
    means = sums.means()
    if film.denoise:
        smooth = denoised(means["beauty"][..., :3], means["albedo"], data["normal"])
        means["beauty"] = np.concatenate([smooth, means["beauty"][..., 3:]], axis=-1)
    # The filtered albedo stands for the one of the centres.
    pixels = data | means
    matte_channels, matte_header = (
        mattes(pixels, solid, pieces, film, [prop.name for prop in props])
        if "cryptomatte" in film.passes else ({}, {}))
    return Picture(named_passes(pixels, pieces, light, film), matte_channels, matte_header,
                   float(device.to_host(sums.count).mean()))


class _Shoot:
    """One frame in front of its camera."""

    def __init__(self, device: Device, solid: Solid, faces: Faces, pieces: Pieces,
                 near: Neighbors, path: CameraPath, around: Surroundings, sky: Sky,
                 film: Film) -> None:
        self.device, self.solid, self.faces, self.film = device, solid, faces, film
        self.pieces, self.near, self.path = pieces, near, path
        self.around, self.sky = around, sky
        self.window = data_window(film)
        self.tiles = np.arange(self.window.n_tiles, dtype=np.int32)
        self.camera = path(pieces.frame)
        self._kept: dict[float, tuple[Scene, CameraRays]] = {}

    def data(self) -> dict[str, Array]:
        """Return the values of the pixels' centres at the frame's time, on the host."""
        scene, rays = self._at(0.0)
        window, view = self.window, camera_view(self.camera, self.film)
        values = data_passes(self.device, window.height, window.width)
        for tiles, _, _ in tile_chunks(self.tiles, 0, 0):
            scene.describe(rays.centers(tiles), values)
        pixels = {name: self.device.to_host(array) for name, array in values.items()}
        met = pixels["distance"][..., 0] < 0.1 * NO_DEPTH
        eye = (view.eye - scene.origin).astype(np.float32)
        depth = along(pixels["position"] - eye, view.forward.astype(np.float32))
        pixels["depth"] = np.where(met, depth, np.float32(NO_DEPTH))
        pixels["world"] = np.where(met[..., None], pixels["position"] + scene.origin, 0.0)
        pixels["forward"] = np.zeros((window.height, window.width, 2), np.float32)
        if "forward" in self.film.passes:
            pixels["forward"] = forward_motion(
                self.pieces, self.near, self.faces, position=pixels["world"], met=met,
                element=pixels["identity"][..., 1], material=pixels["identity"][..., 2],
                triangle=pixels["identity"][..., 3],
                direction=self._directions(view), view=view,
                next_view=camera_view(self.path(self.pieces.frame + 1), self.film),
                resolution=self.film.resolution, props=self.around.props,
                first_prop=first_prop_row(self.solid))
        return pixels

    def expose(self, progress: Callable[[float], None] | None) -> FilmSums:
        """Take all samples, pass by pass, until none is needed any more."""
        device, film = self.device, self.film
        sums = FilmSums(device, self.window, has_background=film.background)
        steps = motion_steps(self.camera, film)
        times = shutter_times(self.camera, steps)
        needs_features = film.denoise or any(name in film.passes for name in FEATURES)
        tiles = self.tiles
        for begin, end in sample_passes(film, steps):
            if begin > 0:
                tiles = noisy_tiles(sums, film)
            for time, (first, last) in zip(times, step_ranges(begin, end, steps), strict=True):
                if first == last or not len(tiles):
                    continue
                scene, rays = self._at(float(time))
                for some, sample, count in tile_chunks(tiles, first, last - first):
                    chunk = rays.samples(some, sample, count)
                    hits = scene.first_hits(chunk)
                    sums.add(chunk, scene.integrate(chunk, hits), len(some), count)
                    if needs_features:
                        sums.add_features(chunk, self._described(scene, chunk, hits), len(some),
                                          count)
                    if progress is not None:
                        device.synchronize()
                        done = int(np.searchsorted(tiles, some[-1])) / len(tiles)
                        progress((first + (last - first) * done) / film.samples)
                del scene, rays
        if progress is not None:
            progress(1.0)
        return sums

    def _described(self, scene: Scene, rays: Rays, hits: tuple[Any, Any]) -> dict[str, Any]:
        """Return what each ray meets first, ray by ray."""
        xp = self.device.xp
        described = data_passes(self.device, len(rays.index))
        each = dataclasses.replace(rays, index=xp.arange(len(rays.index), dtype=xp.int32))
        scene.describe(each, described, hits)
        return described

    def _at(self, time: float) -> tuple[Scene, CameraRays]:
        """Return scene and rays at ``time`` frames after the frame."""
        if time in self._kept:
            return self._kept[time]
        # Make room before the next one is made.
        kept = [scene.n_triangles for scene, _ in self._kept.values()]
        if sum(kept) + max(kept, default=0) > KEPT_TRIANGLES:
            self._kept.clear()
        camera = self.path(self.pieces.frame + time)
        view = camera_view(camera, self.film)
        scene = frame_scene(self.device, self.solid, self.faces,
                            moved_pieces(self.pieces, self.near, time, self.faces),
                            self.around, self.sky, self.film, camera, view)
        rays = CameraRays(self.device, view, self.film, origin=scene.origin,
                          index_mask=scene.index_mask, seed=self.pieces.frame)
        self._kept[time] = scene, rays
        return scene, rays

    def _directions(self, view: View) -> Array:
        """Return the directions (h, w, 3) of the rays through the pixels' centres."""
        window, (width, height) = self.window, self.film.resolution
        x = (np.arange(window.width) + window.x + 0.5) * (2.0 / width) - 1.0
        y = 1.0 - (np.arange(window.height) + window.y + 0.5) * (2.0 / height)
        ray = (view.forward + x[None, :, None] * view.half_width * view.right
               + y[:, None, None] * view.half_height * view.up)
        direction: Array = ray / np.linalg.norm(ray, axis=-1, keepdims=True)
        return direction


def frame_scene(device: Device, solid: Solid, faces: Faces, pieces: Pieces,
                around: Surroundings, sky: Sky, film: Film, camera: Camera, view: View) -> Scene:
    """Return the scene of a frame as a camera sees it."""
    reach = float(np.linalg.norm(np.array(camera.target) - view.eye))
    boundary = make_boundary(device, solid, faces, pieces, crack_widths(solid, around.looks))
    return Scene(device, boundary, solid, pieces, around, sky, film, eye=view.eye, reach=reach,
                 pixel_angle=2.0 * view.half_height / film.resolution[1],
                 fade_distance=FADE_DISTANCES * reach)
