"""One frame's scene on its device: rays go in, samples and data values come out.

Nothing here knows pixels' order or the film: :meth:`Scene.integrate` takes any rays with the
number of their pixel and sample, from which all its randomness follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from vfx.device import Device, Record
from vfx.geometry.handoff.types import Array, Pieces, Solid
from vfx.raytrace.boundary.visible import Boundary
from vfx.raytrace.light.lights import Sky, panel_rows
from vfx.raytrace.props import Prop, prop_rows
from vfx.raytrace.settings import AreaLight, Film, FloorLook, Light, Look, MaterialLook
from vfx.raytrace.surface import materials
from vfx.raytrace.tree.bvh import Bvh, build_bvh

#: MAX_INSIDE of bvh.cuh.
MAX_INSIDE = 8
#: Pieces whose common faces are at most this part of lambda apart still touch.
TOUCH = 1e-3
#: Columns of the slots' table, as in scene.cuh.
TAG_INTS, TAG_PIECE, TAG_TRIANGLE = 8, 1, 5
TEXTURES = {"": 0, "checker": 1, "wood": 2, "concrete": 3}
TEXTURE_IMAGE = 4


class FloorPlane(Protocol):
    """The floor as the sim sees it."""

    @property
    def enabled(self) -> bool:
        """Whether there is a floor."""

    @property
    def height(self) -> float:
        """Its y [m]."""


@dataclass(frozen=True)
class Rays:
    """n rays on the device, a multiple of 8; eight in a row should run side by side."""

    pixel: Any            # (n,) int32: number for its randomness; -1: it counts for nothing
    sample: Any           # (n,) int32
    origin: Any           # (n, 3) float32 [m], relative to the scene's origin
    direction: Any        # (n, 3) float32, unit
    index: Any = None     # (n,) int32: where what it brings back belongs, or -1; else ``pixel``


@dataclass(frozen=True)
class Samples:
    """What rays bring back, on the device; scene-linear Rec. 709."""

    radiance: Any         # (n, 3) float32: all light
    diffuse: Any          # (n, 3) float32: the part from the diffuse of the first surface
    specular: Any         # (n, 3) float32: the part that the first surface reflects
    refraction: Any       # (n, 3) float32: the part through the first surface
    cover: Any            # (n, 2) float32: by what is in the picture; by a shadow catcher
    shade: Any            # (n, 2) float32: light on the first surface, as it is and unshadowed


@dataclass(frozen=True)
class Surroundings:
    """What is the same in all frames, if only as a function of time."""

    light: Light
    area_lights: Sequence[AreaLight]
    looks: Mapping[str, Look | MaterialLook]
    floor: FloorPlane
    floor_look: FloorLook
    texture: Array | None     # (h, w, 3) float32: the floor's image
    images: Mapping[str, Array] = field(default_factory=dict)   # alike: those that looks name
    props: Sequence[Prop] = ()
    _placed: dict[Device, tuple[Any, Any]] = field(default_factory=dict, compare=False)

    def images_on(self, device: Device) -> tuple[Any, Any]:
        """Return table and pixels of all images on a device, the same for every scene there.

        The table has where each image begins, and its size (k, 3) int32; pixels are (p, 3)
        float32. The floor's image comes first, then those of the looks in their order.
        """
        if device not in self._placed:
            self._placed[device] = tuple(map(device.from_host, _join_images(self)))
        return self._placed[device]


class Scene:
    """The pieces at their places, with tree, materials and lights.

    ``index_mask`` is one less than the power of two that holds all samples of a pixel.
    """

    def __init__(self, device: Device, boundary: Boundary, solid: Solid, pieces: Pieces,
                 around: Surroundings, sky: Sky, film: Film, *, eye: Array, reach: float,
                 pixel_angle: float, fade_distance: float) -> None:
        self.device = device
        self.origin: Array = boundary.origin
        self.n_triangles = len(boundary.triangle)
        self.index_mask = (1 << (film.samples - 1).bit_length()) - 1
        self.tree: Bvh = build_bvh(device, boundary.triangle, boundary.group,
                                   piece=boundary.piece)
        self._inside = device.from_host(self._pieces_around(boundary, eye - self.origin))
        boundary.drop_triangles()
        table = materials.material_table(solid, around.looks, around.floor_look,
                                         {name: 1 + k for k, name in enumerate(around.images)},
                                         [prop.finish for prop in around.props])
        self.material_table = table
        prop = prop_rows(pieces, around.props, materials.first_prop_row(solid), self.origin)
        panel = panel_rows(around.area_lights, self.origin)
        self._sky = self._sky_struct(sky, around.light)
        self._settings = self._settings_struct(film, around.light, fade_distance)
        image_table, image = around.images_on(device)
        self._scene = device.struct(
            "raytrace/scene.cuh", "Scene",
            bvh=self.tree.struct, tag=self._tags(boundary, solid),
            corner_normal=boundary.normal, corner_uv=boundary.uv,
            pose=boundary.pose, rest_pose=boundary.rest_pose,
            rest_column=TAG_PIECE if boundary.is_rigid else TAG_TRIANGLE,
            piece_material=device.from_host(materials.FIXED_MATERIALS + 2 * boundary.body),
            material=device.from_host(table), energy=device.from_host(materials.lobe_albedos()),
            camera_inside=self._inside,
            n_props=len(prop), n_panels=len(panel), prop=device.from_host(prop),
            panel=device.from_host(panel),
            image_table=image_table, image=image,
            has_glass=materials.has_glass(table),
            has_key=any(value > 0.0 for value in around.light.key_color),
            touch=TOUCH * float(solid.length_scale.min()) + 4e-7 * reach,
            pixel_angle=pixel_angle, **self._floor_fields(around))

    def first_hits(self, rays: Rays) -> tuple[Any, Any]:
        """Return distance and slot of the first face that each ray crosses."""
        return self.tree.first_hits(rays.origin, rays.direction, self._inside)

    def integrate(self, rays: Rays, hits: tuple[Any, Any] | None = None) -> Samples:
        """Return the light along rays; ``hits`` are their :meth:`first_hits` if known."""
        xp = self.device.xp
        n = len(rays.pixel)
        samples = Samples(*(xp.empty((n, width), xp.float32) for width in (3, 3, 3, 3, 2, 2)))
        self.device.module("raytrace/integrate.cu").integrate(
            n, self._settings, self._scene, self._sky,
            self._ray_struct(rays, rays.pixel, hits or self.first_hits(rays)),
            self.device.struct("raytrace/integrate.cu", "Samples", **vars(samples)))
        return samples

    def describe(self, rays: Rays, passes: Mapping[str, Any],
                 hits: tuple[Any, Any] | None = None) -> None:
        """Write what rays meet first to their places: distance, normal, position, albedo, ids.

        ``passes`` holds device arrays of all places, with 1, 3, 3, 3 float32 and 4 int32 each:
        ``distance``, ``normal``, ``position``, ``albedo``, and ``identity`` (piece, element,
        material row, triangle).
        """
        index = rays.pixel if rays.index is None else rays.index
        self.device.module("raytrace/integrate.cu").describe(
            len(rays.pixel), self._scene,
            self._ray_struct(rays, index, hits or self.first_hits(rays)),
            self.device.struct("raytrace/integrate.cu", "Described", **passes))

    def _ray_struct(self, rays: Rays, pixel: Any, hits: tuple[Any, Any]) -> Record:
        """Return rays as the kernels take them, numbered by ``pixel``."""
        first_t, first_slot = hits
        return self.device.struct(
            "raytrace/path.cuh", "Rays", pixel=pixel, sample=rays.sample, origin=rays.origin,
            direction=rays.direction, first_t=first_t, first_slot=first_slot)

    def _pieces_around(self, boundary: Boundary, eye: Array) -> Array:
        """Return number and indices of the pieces that a point is inside of, (9,) int32."""
        inside = np.zeros(1 + MAX_INSIDE, np.int32)
        root = self.device.to_host(self.tree.node_box[:1])[0]
        if not ((eye >= root[:3].min(axis=1)) & (eye <= root[3:].max(axis=1))).all():
            return inside
        corner = boundary.triangle
        # Along a direction that meets no edge by chance.
        direction = np.array([0.5163, 0.6271, 0.5834])
        sign = self.device.xp.empty(len(corner), self.device.xp.int32)
        self.device.module("raytrace/tree/bvh.cu").crossing_signs(
            len(corner), eye, direction, corner, sign)
        crossing = np.bincount(self.device.to_host(boundary.piece), self.device.to_host(sign))
        around = np.flatnonzero(crossing > 0)[:MAX_INSIDE]
        inside[0] = len(around)
        inside[1:1 + len(around)] = around
        return inside

    def _tags(self, boundary: Boundary, solid: Solid) -> Any:
        """Return (slots, 8) int32 on the device: the columns TAG_... of scene.cuh.

        They stand in the order of the tree, where rays that are near one another find them.
        """
        device = self.device
        kernels = device.module("raytrace/scene.cu")
        slot_triangle = self.tree.slot_triangle.reshape(-1)
        slot_of = device.xp.empty(max(self.n_triangles, 1), device.xp.int32)
        tags = device.xp.empty((len(slot_triangle), TAG_INTS), device.xp.int32)
        kernels.triangle_slots(len(slot_triangle), slot_triangle, slot_of)
        kernels.slot_tags(
            len(slot_triangle), slot_triangle, slot_of, *boundary.rows(),
            device.from_host(solid.body), tags)
        return tags

    def _settings_struct(self, film: Film, light: Light, fade_distance: float) -> Record:
        """Return how paths are followed, and the key light."""
        toward_key = np.array(light.key_direction, float)
        if not np.linalg.norm(toward_key) > 0.0:
            raise ValueError("the key light's direction is zero, so it comes from nowhere; give a "
                             "direction toward the light, or set its colour to 0")
        toward_key /= np.linalg.norm(toward_key)
        return self.device.struct(
            "raytrace/path.cuh", "Settings", path=film.lighting == "path",
            occlusion=film.occlusion, bounces=film.bounces, depth=film.depth,
            index_mask=self.index_mask, fade_distance=fade_distance, clamp=film.clamp,
            key_spread=float(np.tan(np.deg2rad(light.key_angle))), key_direction=toward_key,
            key_irradiance=light.key_color)

    def _sky_struct(self, sky: Sky, light: Light) -> Record:
        """Return the environment, turned as the light says."""
        turn = np.deg2rad(light.environment_rotation)
        height, width = sky.image.shape[:2]
        return self.device.struct(
            "raytrace/light/light.cuh", "Sky", width=width, height=height, image=sky.image,
            blurred=sky.blurred, harmonic=sky.harmonic, turn_cos=float(np.cos(turn)),
            turn_sin=float(np.sin(turn)), rows=len(sky.column_sum),
            columns=sky.column_sum.shape[1] - 1, row_sum=sky.row_sum, column_sum=sky.column_sum)

    def _floor_fields(self, around: Surroundings) -> dict[str, Any]:
        """Return what the scene's struct says of the floor."""
        look = around.floor_look
        texture, size = TEXTURES.get(look.texture, TEXTURE_IMAGE), look.texture_size
        if texture == 0 and look.checker > 0.0:
            texture, size = TEXTURES["checker"], look.checker
        # The texture is anchored to the world, whatever the origin; keep the shift small.
        period = _texture_period(texture, size, _image(around.texture))
        shift = self.origin if period is None else np.mod(self.origin, period)
        return {"has_floor": around.floor.enabled and look.visible,
                "is_catcher": look.shadow_catcher,
                "floor_height": around.floor.height - self.origin[1], "shift_x": shift[0],
                "shift_z": shift[2], "floor_texture": texture, "floor_size": size}


def _texture_period(texture: int, size: float, image: Array) -> Array | None:
    """Return after what length (3,) [m] a texture repeats along the axes, or None."""
    if texture == TEXTURES["checker"]:
        return np.full(3, 2.0 * size)
    if texture == TEXTURE_IMAGE:
        return np.array([size, 1.0, size * image.shape[0] / image.shape[1]])
    return None


def _join_images(around: Surroundings) -> tuple[Array, Array]:
    """Return table and pixels of all images, on the host."""
    images = [_image(around.texture), *map(_image, around.images.values())]
    count = [image.shape[0] * image.shape[1] for image in images]
    table = [(sum(count[:k]), image.shape[1], image.shape[0]) for k, image in enumerate(images)]
    pixels = [image.reshape(-1, 3) for image in images]
    return (np.array(table, np.int32), pixels[0] if len(pixels) == 1 else np.concatenate(pixels))


def _image(texture: Array | None) -> Array:
    """Return an image, a white pixel where there is none."""
    if texture is None:
        return np.ones((1, 1, 3), np.float32)
    return np.ascontiguousarray(texture, np.float32)
