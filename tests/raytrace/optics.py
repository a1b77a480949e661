"""Rays of our own choice through a scene, and skies that tell where they end."""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.faces import all_faces
from vfx.raytrace.boundary.cracked import crack_widths
from vfx.raytrace.boundary.make import make_boundary
from vfx.raytrace.light.environment import pixel_directions
from vfx.raytrace.light.lights import sky_on_device
from vfx.raytrace.scene import Rays, Scene, Surroundings
from vfx.raytrace.settings import Film, Finish, FloorLook, Light, MaterialLook
from vfx.raytrace.surface.materials import finish_tables

from .conftest import Plane

NO_KEY = Light(key_color=(0.0, 0.0, 0.0))


def finish_pair(**values):
    """Return a look whose surface and broken faces are alike."""
    return MaterialLook(Finish(**values), Finish(**values))


def preset_pair(name):
    tables = finish_tables({"preset": name}, {})
    return MaterialLook(*(Finish(**{key: tuple(value) if isinstance(value, list) else value
                                    for key, value in table.items()}) for table in tables))


def direction_sky(height=512):
    """A sky whose colour is its direction: 1 + x, 1 + y, 1 + z."""
    rows = [pixel_directions(height, 2 * height, row) for row in range(height)]
    return (1.0 + np.array(rows)).astype(np.float32)


def half_sky():
    """A sky that is white above the horizon and black below, with a sharp edge."""
    sky = np.zeros((4, 8, 3), np.float32)
    sky[:2] = 1.0
    return sky.repeat(64, axis=0).repeat(64, axis=1)


def end_directions(device, solid, pieces, look, origin, direction, **settings):
    """Return where samples of rays leave the scene (n, samples, 3); NaN for a colour they lost.

    The sky's colour tells the direction, and a white sky seen by the same rays their weight.
    """
    told, weight = (traced_light(device, solid, pieces, look, origin, direction, sky, **settings)
                    for sky in (direction_sky(), np.ones((8, 16, 3), np.float32)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return told / weight - 1.0


def traced_light(device, solid, pieces, look, origin, direction, sky, *, samples=1, light=NO_KEY,
                 floor=None, floor_look=None, area_lights=(), eye=(0.0, 0.0, 1e3), **settings):
    """Return the radiance (n, samples, 3) along rays (n, 3) through glass or what else."""
    film = Film(resolution=(8, 8), samples=samples, color_space="linear-rec709", **settings)
    around = Surroundings(light, area_lights, {"stone": look}, floor or Plane(enabled=False),
                          floor_look or FloorLook(), None)
    boundary = make_boundary(device, solid, all_faces(solid), pieces,
                             crack_widths(solid, around.looks))
    scene = Scene(device, boundary, solid, pieces, around, sky_on_device(device, sky), film,
                  eye=np.array(eye), reach=1.0, pixel_angle=1e-4, fade_distance=1e9)
    n = len(origin)
    padded = -(-n * samples // 8) * 8
    index = np.minimum(np.arange(padded) // samples, n - 1)
    direction = np.asarray(direction, float)
    direction = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    rays = Rays(*(device.from_host(np.ascontiguousarray(array)) for array in (
        index.astype(np.int32), (np.arange(padded) % samples).astype(np.int32),
        (np.asarray(origin) - scene.origin)[index].astype(np.float32),
        direction[index].astype(np.float32))))
    radiance = device.to_host(scene.integrate(rays).radiance)
    return radiance[:n * samples].reshape(n, samples, 3).astype(float)
