"""Render a frame: solid, fragments, camera and light in, named passes out.

Light is as in levine-2014 section 5, with what a picture needs on top: the environment by nine
spherical harmonics for diffuse and as background, normalised Blinn-Phong for highlights, one
key light of some width with shadows, and sampled rays that let surfaces hide and light one
another. A surface gathers and reflects the whole sky without sampling, from nine coefficients
and from blurred copies; a sampled ray that meets something takes its part of that sky away and
puts the occluder's light in its place, so that open surfaces carry no noise.

Passes, each (height, width) float32, top row first:

========================= =================================================================
``R G B``                 beauty, scene-linear in the film's colour space; the environment
                          is its background
``A``                     coverage by pieces, balls and floor; R, G, B are final, not to be
                          multiplied again
``depth.Z``               distance along the camera's axis [m]; 1e10 where there is nothing
``N.X N.Y N.Z``           world normal, facing the camera; 0 where there is nothing
``P.X P.Y P.Z``           world position [m]; 0 where there is nothing
``fragment.id``           id of the piece; -1 for floor, balls and background
``albedo.R albedo.G albedo.B`` diffuse colour, in the film's colour space
========================= =================================================================

Data passes are not filtered: they belong to the ray through the pixel's centre.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from vfx.device import Device
from vfx.geometry.faces import all_faces
from vfx.geometry.handoff import Array, Faces, FragmentsFrame, Solid
from vfx.raytrace.boundary import Boundary, moved_boundary
from vfx.raytrace.bvh import build_bvh
from vfx.raytrace.camera import View, camera_view
from vfx.raytrace.color import film_from_rec709
from vfx.raytrace.environment import blur_level_of, blurred_levels
from vfx.raytrace.harmonics import project_environment
from vfx.raytrace.settings import Camera, Film, FloorLook, Light, Look

#: Edge of a tile [pixels] and rows of the material table that are not bodies: as in the kernel.
TILE = 8
FIXED_MATERIALS = 3
#: Projectiles are balls of dark, polished steel.
BALL_ALBEDO = (0.03, 0.03, 0.032)
BALL_REFLECTANCE = (0.42, 0.41, 0.40)
BALL_SHININESS = 900.0
#: The darker fields of a checkered floor, relative to the others.
CHECKER_SHADE = 0.45
#: Full width of the pixel filter [pixels].
FILTER_WIDTH = 2.2
#: Where the floor has faded to 63 % into the horizon, in distances from camera to target.
FADE_DISTANCES = 8.0


class FloorPlane(Protocol):
    """The floor as the sim sees it."""

    @property
    def enabled(self) -> bool:
        """Whether there is a floor."""

    @property
    def height(self) -> float:
        """Its y [m]."""


def render_frame(
    device: Device,
    solid: Solid,
    fragments: FragmentsFrame,
    camera: Camera,
    light: Light,
    looks: Mapping[str, Look],
    floor: FloorPlane,
    floor_look: FloorLook,
    film: Film,
    environment: Array,
    progress: Callable[[float], None] | None = None,
    *,
    faces: Faces | None = None,
) -> dict[str, Array]:
    """Render one frame and return its passes.

    ``looks`` maps material names to looks; a material without one gets the default.
    ``environment`` is (h, w, 3) float32 from :func:`vfx.raytrace.environment.load_environment`.
    ``progress`` is called with the finished part, 0..1. ``faces`` saves their extraction
    where many frames of one solid are rendered.
    """
    boundary = moved_boundary(solid, all_faces(solid) if faces is None else faces, fragments)
    view = camera_view(camera, film)
    width, height = film.resolution
    passes = {"beauty": 4, "depth": 1, "normal": 3, "position": 3, "fragment": 1, "albedo": 3}
    xp = device.xp
    pixels = {name: xp.zeros((height, width, depth), xp.float32)
              for name, depth in passes.items()}

    scene = _scene_arguments(device, solid, fragments, boundary, looks, floor_look)
    values = _constants(film, light, floor, floor_look, view, camera, boundary, environment,
                        len(fragments.projectile_radius))
    shading = _light_arguments(device, view, boundary, light, environment)

    # Trace band by band, so that there is progress to report.
    kernel = device.module("raytrace/trace.cu").trace_pixels
    tiles_across, tiles_down = -(-width // TILE), -(-height // TILE)
    rows = max(1, tiles_down // 20)
    for first in range(0, tiles_down, rows):
        n_tiles = tiles_across * min(rows, tiles_down - first)
        kernel(n_tiles * TILE * TILE, first * tiles_across, width, height,
               *values, *scene, *shading, *pixels.values())
        if progress is not None:
            device.synchronize()
            progress(min(1.0, (first + rows) / tiles_down))
    return _named_passes({name: device.to_host(array) for name, array in pixels.items()},
                         boundary, light, film)


def _scene_arguments(device: Device, solid: Solid, fragments: FragmentsFrame,
                     boundary: Boundary, looks: Mapping[str, Look],
                     floor_look: FloorLook) -> list[Any]:
    """Return what the kernel takes of tree, materials and balls, on the device."""
    tree = build_bvh(device, device.from_host(boundary.triangle), group=2,
                     fragment=device.from_host(boundary.fragment))
    material_of = FIXED_MATERIALS + 2 * boundary.body + boundary.is_fracture
    ball = np.column_stack([fragments.projectile_position - boundary.origin,
                            fragments.projectile_radius]).astype(np.float32)
    return [tree.node_box, tree.node_child, tree.packet, tree.slot_triangle, tree.slot_fragment,
            device.from_host(boundary.fragment.astype(np.int32)),
            device.from_host(material_of.astype(np.int32)),
            device.from_host(_material_table(solid, looks, floor_look)),
            device.from_host(ball)]


def _material_table(solid: Solid, looks: Mapping[str, Look], floor_look: FloorLook) -> Array:
    """Return (3 + 2b, 8) float32: the rows of shade.cuh."""
    dark = tuple(CHECKER_SHADE * value for value in floor_look.albedo)
    shine = (floor_look.specular,) * 3
    rows = [_material_row(floor_look.albedo, shine, floor_look.shininess),
            _material_row(dark, shine, floor_look.shininess),
            _material_row(BALL_ALBEDO, BALL_REFLECTANCE, BALL_SHININESS)]
    for name in solid.material_name:
        look = looks.get(str(name), Look())
        rows += [_material_row(albedo, (look.specular,) * 3, look.shininess)
                 for albedo in (look.albedo, look.fracture_albedo)]
    return np.array(rows, np.float32)


def _material_row(albedo: Sequence[float], reflectance: Sequence[float],
                  shininess: float) -> list[float]:
    return [*albedo, *reflectance, shininess, blur_level_of(shininess)]


def _constants(film: Film, light: Light, floor: FloorPlane, floor_look: FloorLook, view: View,
               camera: Camera, boundary: Boundary, environment: Array,
               n_balls: int) -> list[Any]:
    """Return the kernel's plain numbers, from ``samples`` to ``has_floor``."""
    turn = np.deg2rad(light.environment_rotation)
    sky_height, sky_width = environment.shape[:2]
    # The checker is anchored to the world, whatever the origin; keep the shift small.
    period = 2.0 * floor_look.checker if floor_look.checker > 0.0 else 1.0
    shift = np.mod(boundary.origin, period)
    reach = float(np.linalg.norm(np.array(camera.target) - view.eye))
    return [film.samples, int(film.occlusion),
            floor.height - boundary.origin[1], floor_look.checker, shift[0], shift[2],
            FADE_DISTANCES * reach, float(np.tan(np.deg2rad(light.key_angle))),
            float(np.cos(turn)), float(np.sin(turn)), sky_width, sky_height, n_balls,
            int(floor.enabled and floor_look.visible)]


def _light_arguments(device: Device, view: View, boundary: Boundary, light: Light,
                     environment: Array) -> list[Any]:
    """Return camera, key light, environment and pixel filter, on the device."""
    toward_key = np.array(light.key_direction, float)
    if not np.linalg.norm(toward_key) > 0.0:
        raise ValueError("the key light's direction is zero, so it comes from nowhere; give a "
                         "direction toward the light, or set its colour to 0")
    axes = np.stack([view.eye - boundary.origin, view.half_width * view.right,
                     view.half_height * view.up, view.forward])
    key = np.stack([toward_key / np.linalg.norm(toward_key), np.array(light.key_color, float)])
    axes, key, image, harmonic, pixel_filter = (
        device.from_host(np.ascontiguousarray(array, np.float32)) for array in
        (axes, key, environment, project_environment(environment), _filter_table()))
    return [axes, key, image, blurred_levels(device, environment), harmonic, pixel_filter]


def _filter_table() -> Array:
    """Return the inverse cumulative Blackman-Harris window (129,) [pixels].

    Samples drawn through it need no weights (filter importance sampling).
    """
    place = np.linspace(0.0, 1.0, 4097)
    harmonic = np.cos(2.0 * np.pi * np.outer(np.arange(4), place))
    window = np.array([0.35875, -0.48829, 0.14128, -0.01168]) @ harmonic
    total = np.concatenate([[0.0], np.cumsum(0.5 * (window[1:] + window[:-1]))])
    share = np.linspace(0.0, 1.0, 129)
    return FILTER_WIDTH * (np.interp(share, total / total[-1], place) - 0.5)


def _named_passes(pixels: Mapping[str, Array], boundary: Boundary, light: Light,
                  film: Film) -> dict[str, Array]:
    """Expose, convert colours, move positions to the world, and give the passes their names."""
    film_from_scene = film_from_rec709(film.color_space).astype(np.float32)
    color = 2.0**light.exposure * pixels["beauty"][..., :3] @ film_from_scene.T
    albedo = pixels["albedo"] @ film_from_scene.T
    met = pixels["depth"] < 1e9
    world = np.where(met, pixels["position"] + boundary.origin, 0.0).astype(np.float32)
    named = {name: color[..., i] for i, name in enumerate("RGB")}
    named["A"] = pixels["beauty"][..., 3]
    named["depth.Z"] = pixels["depth"][..., 0]
    for layer, values in (("N", pixels["normal"]), ("P", world)):
        named.update({f"{layer}.{axis}": values[..., i] for i, axis in enumerate("XYZ")})
    named["fragment.id"] = pixels["fragment"][..., 0]
    named.update({f"albedo.{name}": albedo[..., i] for i, name in enumerate("RGB")})
    return {name: np.ascontiguousarray(values, np.float32) for name, values in named.items()}
