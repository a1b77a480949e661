"""Render a frame: solid, fragments, camera and light in, named passes out.

Camera rays (:mod:`vfx.raytrace.camera`) go through the scene (:mod:`vfx.raytrace.scene`) and what
they bring back adds up on the film (:mod:`vfx.raytrace.film`).

``lighting = "harmonic"`` is as in levine-2014 section 5, with what a picture needs on top: the
environment by nine spherical harmonics for diffuse and as background, normalised Blinn-Phong for
highlights, a key light of some width with shadows, and sampled rays that let surfaces hide and
light one another. A surface gathers and reflects the whole sky without sampling, from nine
coefficients and from blurred copies; a sampled ray that meets something takes its part of that
sky away and puts the occluder's light in its place, so that open surfaces carry no noise.
``lighting = "path"`` follows every bounce and draws directions from the environment and from the
surfaces' scattering. Glass is traced alike in both.

Passes, each (height, width) float32, top row first:

========================= =================================================================
``R G B``                 beauty, scene-linear in the film's colour space; the environment
                          is its background
``A``                     coverage by pieces, balls and floor; R, G, B are final, not to be
                          multiplied again. With a shadow catcher its shadow, and R, G, B are 0
                          where neither piece nor ball is
``depth.Z``               distance along the camera's axis [m]; 1e10 where there is nothing
``N.X N.Y N.Z``           world normal, facing the camera; 0 where there is nothing
``P.X P.Y P.Z``           world position [m]; 0 where there is nothing
``fragment.id``           id of the piece; -1 for floor, balls and background
``albedo.R albedo.G albedo.B`` diffuse colour, in the film's colour space; 1 for glass
========================= =================================================================

Data passes are not filtered: they belong to the ray through the pixel's centre.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from vfx.device import Device
from vfx.geometry.faces import all_faces
from vfx.geometry.handoff import Array, Faces, FragmentsFrame, Solid
from vfx.raytrace.camera import TILE, CameraRays, View, camera_view
from vfx.raytrace.color import film_from_rec709
from vfx.raytrace.film import FilmSums, data_passes, tile_chunks
from vfx.raytrace.lights import Sky, sky_on_device
from vfx.raytrace.scene import FloorPlane, Scene, Surroundings
from vfx.raytrace.settings import (
    AreaLight,
    Camera,
    Film,
    FloorLook,
    Light,
    Look,
    MaterialLook,
)

#: Where the floor has faded to 63 % into the horizon, in distances from camera to target.
FADE_DISTANCES = 8.0


def render_frame(
    device: Device,
    solid: Solid,
    fragments: FragmentsFrame,
    camera: Camera,
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
) -> dict[str, Array]:
    """Render one frame and return its passes.

    ``looks`` maps material names to looks; a material without one gets the default.
    ``environment`` is (h, w, 3) float32 from :func:`vfx.raytrace.environment.load_environment`,
    ``texture`` the floor's image, alike. ``progress`` is called with the finished part, 0..1.
    ``faces`` saves their extraction where many frames of one solid are rendered.
    """
    view = camera_view(camera, film)
    sky = sky_on_device(device, environment)
    around = Surroundings(light, area_lights, looks, floor, floor_look, texture)
    scene = frame_scene(device, solid, all_faces(solid) if faces is None else faces, fragments,
                        around, sky, film, camera, view)
    rays = CameraRays(device, view, film, origin=scene.origin, index_mask=scene.index_mask)
    width, height = film.resolution

    data = data_passes(device, width, height)
    for tiles, _, _ in tile_chunks(width, height, 0):
        scene.describe(rays.centers(tiles), data)

    sums = FilmSums(device, width, height)
    n_tiles = -(-width // TILE) * -(-height // TILE)
    for tiles, first, count in tile_chunks(width, height, film.samples):
        chunk = rays.samples(tiles, first, count)
        sums.add(chunk, scene.integrate(chunk), len(tiles), count)
        if progress is not None:
            device.synchronize()
            progress((int(tiles[-1]) + (first + count) / film.samples) / n_tiles)
    pixels = {name: device.to_host(array) for name, array in data.items()}
    return _named_passes(pixels | sums.means(film.samples), scene.origin, view, light, film)


def frame_scene(device: Device, solid: Solid, faces: Faces, fragments: FragmentsFrame,
                around: Surroundings, sky: Sky, film: Film, camera: Camera, view: View) -> Scene:
    """Return the scene of a frame as a camera sees it."""
    reach = float(np.linalg.norm(np.array(camera.target) - view.eye))
    return Scene(device, solid, faces, fragments, around, sky, film, eye=view.eye, reach=reach,
                 pixel_angle=2.0 * view.half_height / film.resolution[1],
                 fade_distance=FADE_DISTANCES * reach)


def _named_passes(pixels: Mapping[str, Array], origin: Array, view: View, light: Light,
                  film: Film) -> dict[str, Array]:
    """Expose, convert colours, move positions to the world, and give the passes their names."""
    film_from_scene = film_from_rec709(film.color_space).astype(np.float32)
    color = 2.0**light.exposure * pixels["beauty"][..., :3] @ film_from_scene.T
    albedo = pixels["albedo"] @ film_from_scene.T
    distance = pixels["distance"][..., 0]
    met = distance < 1e9
    eye = (view.eye - origin).astype(np.float32)
    depth = (pixels["position"] - eye) @ view.forward.astype(np.float32)
    world = np.where(met[..., None], pixels["position"] + origin, 0.0).astype(np.float32)
    named = {name: color[..., i] for i, name in enumerate("RGB")}
    named["A"] = pixels["beauty"][..., 3]
    named["depth.Z"] = np.where(met, depth, distance)
    for layer, values in (("N", pixels["normal"]), ("P", world)):
        named.update({f"{layer}.{axis}": values[..., i] for i, axis in enumerate("XYZ")})
    named["fragment.id"] = pixels["identity"][..., 0]
    named.update({f"albedo.{name}": albedo[..., i] for i, name in enumerate("RGB")})
    return {name: np.ascontiguousarray(values, np.float32) for name, values in named.items()}
