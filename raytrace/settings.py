"""What a shot says about the picture: camera, light, looks and film."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from vfx.geometry.handoff.bodies import Vector
from vfx.geometry.handoff.schema import REQUIRED, setting

#: How diffuse light is found (:mod:`vfx.raytrace.render`).
LIGHTINGS = ("harmonic", "path")
#: What a frame may hold, in the order of its documentation (:mod:`vfx.raytrace.film.passes`).
PASSES = ("beauty", "depth", "N", "P", "forward", "albedo", "diffuse", "specular", "refraction",
          "shadow", "fragment", "damage", "mask", "cryptomatte")
#: The least way from one camera key to the next [frames].
CLOSEST_KEYS = 1e-3
_WIDTH: dict[str, Any] = {"unit": "m", "at_least": 0.0, "at_most": 1e6}
_CRACK_WIDTH = (
    "How wide cracks gape that have not parted a piece yet, as gaps of air: they glint in glass "
    "and are dark lines elsewhere. \"auto\" is 0.04 of the size of the elements beside them; half "
    "of that size is the most, 0 shows none. Only broken faces have it.")


@dataclass(frozen=True)
class Camera:
    """A perspective camera."""

    position: Vector = setting(
        (0.0, 0.12, 0.4), "Where the camera stands.", unit="m", at_least=-1e7, at_most=1e7)
    target: Vector = setting(
        (0.0, 0.06, 0.0), "The point it looks at.", unit="m", at_least=-1e7, at_most=1e7)
    up: Vector = setting(
        (0.0, 1.0, 0.0), "The direction that is up in the picture.", at_least=-1e7, at_most=1e7)
    focal_length: float = setting(
        50.0, "Focal length.", unit="mm", at_least=1e-2, at_most=1e5)
    film_width: float = setting(
        36.0, "Width of the film back.", unit="mm", at_least=1e-2, at_most=1e5)
    f_stop: float = setting(
        0.0, "Focal length over the width of the lens: 2.8 blurs much, 16 little; 0 has all "
        "sharp.", at_least=0.0, at_most=1e6)
    focus_distance: float = setting(
        0.0, "Distance, along the line of sight, of what is sharp; 0 takes the target's.",
        unit="m", at_least=0.0, at_most=1e7)
    shutter_angle: float = setting(
        0.0, "Part of a frame's time for which the shutter is open, of 360; 180 is usual, 0 has "
        "no motion blur.", unit="degrees", at_least=0.0, at_most=360.0)
    shutter: str = setting(
        "centred", "Whether the shutter opens before the frame's time and closes after it, or "
        "opens at it.", choices=("centred", "forward"))
    interpolation: str = setting(
        "smooth", "The way between [[camera_keys]].", choices=("smooth", "linear"))
    usd: str = setting(
        "", "USD file with the camera, relative to the shot file; it replaces position, target, "
        "up, lens and film back. Time codes are frames.")
    usd_camera: str = setting(
        "", "Path of the camera in the USD file; needed where there are several.")

    def complaints(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the camera as a whole."""
        if self.usd_camera and not self.usd:
            yield "usd_camera", (f"found {self.usd_camera!r}, but no file to find it in; name the "
                                 "file with camera.usd, or leave usd_camera out")


@dataclass(frozen=True)
class CameraKey:
    """Where the camera is at a frame; what a key leaves out stays as the key before has it."""

    frame: float = setting(REQUIRED, "The frame.", at_least=-1e6, at_most=1e7)
    position: tuple[float, ...] = setting(
        (), "Where the camera stands.", unit="m", at_least=-1e7, at_most=1e7)
    target: tuple[float, ...] = setting(
        (), "The point it looks at.", unit="m", at_least=-1e7, at_most=1e7)
    focal_length: float = setting(
        0.0, "Focal length; 0 leaves it.", unit="mm", at_least=0.0, at_most=1e5)
    focus_distance: float = setting(
        0.0, "Distance of what is sharp; 0 leaves it.", unit="m", at_least=0.0, at_most=1e7)

    def complaints(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the key as a whole."""
        for name in ("position", "target"):
            if len(value := getattr(self, name)) not in (0, 3):
                yield name, f"found {list(value)}, but it must be a list of 3 numbers"


@dataclass(frozen=True)
class Light:
    """The environment and one key light."""

    environment: str = setting(
        "studio", "Environment: the name of a built-in one, or an equirectangular EXR/HDR file "
        "relative to the shot file.")
    environment_rotation: float = setting(
        0.0, "Turn of the environment about y.", unit="degrees", at_least=-1e6, at_most=1e6)
    exposure: float = setting(
        0.0, "Exposure of the picture.", unit="stops", at_least=-40.0, at_most=40.0)
    key_direction: Vector = setting(
        (-0.5, 1.0, 0.6), "Direction toward the key light.", at_least=-1e7, at_most=1e7)
    key_color: Vector = setting(
        (4.6, 4.2, 3.65), "Irradiance of the key light, linear RGB.",
        at_least=0.0, at_most=1e9)
    key_angle: float = setting(
        2.0, "Angular radius of the key light; soft shadows.", unit="degrees",
        at_least=0.0, at_most=45.0)


@dataclass(frozen=True)
class AreaLight:
    """A rectangle that shines to the side of its target; it is seen by the camera."""

    position: Vector = setting(
        (0.0, 1.0, 0.0), "Its centre.", unit="m", at_least=-1e7, at_most=1e7)
    target: Vector = setting(
        (0.0, 0.0, 0.0), "The point it faces.", unit="m", at_least=-1e7, at_most=1e7)
    size: tuple[float, float] = setting(
        (0.5, 0.5), "Its width and height.", unit="m", at_least=1e-6, at_most=1e6)
    color: Vector = setting(
        (8.0, 8.0, 8.0), "Radiance, linear RGB.", at_least=0.0, at_most=1e9)


@dataclass(frozen=True)
class Look:
    """How a material looks in the simplest way: diffuse plus normalised Blinn-Phong."""

    albedo: Vector = setting(
        (0.05, 0.24, 0.25), "Diffuse colour, linear RGB.", at_least=0.0, at_most=1.0)
    fracture_albedo: Vector = setting(
        (0.66, 0.86, 0.82), "Diffuse colour of broken faces, linear RGB.",
        at_least=0.0, at_most=1.0)
    specular: float = setting(
        0.06, "Specular reflectance at normal incidence.", at_least=0.0, at_most=1.0)
    shininess: float = setting(200.0, "Blinn-Phong exponent.", at_least=1.0, at_most=1e5)
    crack_width: float | Literal["auto"] = setting("auto", _CRACK_WIDTH, **_WIDTH)


@dataclass(frozen=True)
class Finish:
    """How the surface, or the broken faces, of a material look."""

    preset: str = setting(
        "", "Values to start from; keys beside it override them.",
        choices=("", "glass", "green-glass", "ceramic", "clay", "stone", "plaster", "metal"))
    kind: str = setting(
        "phong", "phong (diffuse and normalised Blinn-Phong), ggx (physically based) or glass.",
        choices=("phong", "ggx", "glass"))
    albedo: Vector = setting(
        (0.5, 0.5, 0.5), "Diffuse colour, linear RGB.", at_least=0.0, at_most=1.0)
    texture: str = setting(
        "", "Image file (PNG, JPEG, EXR) relative to the shot file, laid on the surface by the "
        "uv of the mesh, v upward; its colour is times albedo. Not for broken faces, nor glass.")
    specular: Vector = setting(
        (0.04, 0.04, 0.04), "Reflectance at normal incidence, linear RGB.",
        at_least=0.0, at_most=1.0)
    shininess: float = setting(
        200.0, "Blinn-Phong exponent, for phong.", at_least=1.0, at_most=1e5)
    roughness: float = setting(
        0.4, "Roughness, for ggx: 0 is a mirror.", at_least=0.0, at_most=1.0)
    ior: float = setting(
        1.52, "Refractive index, for glass.", at_least=1.0, at_most=4.0)
    abbe: float = setting(
        0.0, "Abbe number, for glass: 60 disperses little, 30 much; 0 not at all.",
        at_least=0.0, at_most=200.0)
    tint: Vector = setting(
        (1.0, 1.0, 1.0), "Colour of white light behind tint_depth of glass, linear RGB.",
        at_least=1e-6, at_most=1.0)
    tint_depth: float = setting(
        0.05, "The thickness for which tint is given.", unit="m", above=0.0, at_most=1e6)
    thin: bool = setting(
        False, "Whether glass leaves rays unbent, as a thin sheet or shell does.")
    bump: float = setting(
        0.0, "Slope of a rough surface; 0 is smooth.", at_least=0.0, at_most=5.0)
    bump_size: float = setting(
        0.0, "Size of the bumps; 0 takes twice lambda.", unit="m", at_least=0.0, at_most=1e6)
    crack_width: float | Literal["auto"] = setting("auto", _CRACK_WIDTH, **_WIDTH)


@dataclass(frozen=True)
class MaterialLook:
    """The two finishes of a material."""

    surface: Finish
    fracture: Finish


@dataclass(frozen=True)
class FloorLook:
    """The floor in the picture."""

    visible: bool = setting(True, "Whether the floor is in the picture.")
    albedo: Vector = setting(
        (0.090, 0.087, 0.085), "Colour, linear RGB.", at_least=0.0, at_most=1.0)
    checker: float = setting(
        0.0, "Size of a checker pattern; 0 for none.", unit="m", at_least=0.0, at_most=1e7)
    texture: str = setting(
        "", "wood, concrete, or an image file (PNG, JPEG, EXR) relative to the shot file; its "
        "colour is times albedo.")
    texture_size: float = setting(
        0.1, "Width of a board, size of concrete's clouds, or width of the image.", unit="m",
        above=0.0, at_most=1e7)
    shadow_catcher: bool = setting(
        False, "Whether the floor and the background are left out, and alpha holds the shadow.")
    specular: float = setting(0.06, "Specular reflectance.", at_least=0.0, at_most=1.0)
    shininess: float = setting(500.0, "Blinn-Phong exponent.", at_least=1.0, at_most=1e5)


@dataclass(frozen=True)
class Film:
    """Size, quality and colour of the frames."""

    resolution: tuple[int, int] = setting(
        (1280, 720), "Width and height.", unit="pixels", at_least=1, at_most=32768)
    samples: int = setting(
        16, "Camera rays a pixel; the most of them where noise_target is given.",
        at_least=1, at_most=4096)
    noise_target: float = setting(
        0.0, "Where a pixel's standard error is below this part of the root of its brightness, "
        "no more rays are sent; 0.02 is fine, 0 sends all.", at_least=0.0, at_most=1.0)
    min_samples: int = setting(
        8, "Rays a pixel before noise is judged.", at_least=1, at_most=4096)
    motion_steps: int = setting(
        16, "Times at which moving pieces are traced while the shutter is open; as many as "
        "samples at most.", at_least=1, at_most=256)
    denoise: bool = setting(
        False, "Whether Intel Open Image Denoise smooths the beauty (pip install "
        "'vfx-fracture[denoise]').")
    background: bool = setting(
        True, "Whether the environment is seen behind everything; without, R, G and B are "
        "premultiplied by A.")
    passes: tuple[str, ...] = setting(
        PASSES, "What the frames hold; cryptomatte is a sequence of its own.", choices=PASSES)
    cryptomatte_levels: int = setting(
        6, "Pieces a pixel that a Cryptomatte tells apart.", at_least=2, at_most=12)
    filter: str = setting(
        "blackman-harris", "How samples weigh about a pixel's centre.",
        choices=("blackman-harris", "gaussian", "box"))
    filter_radius: float = setting(
        0.0, "Reach of the filter from the pixel's centre; 0 takes 1.1 for blackman-harris, 1.5 "
        "for gaussian, 0.5 for box.", unit="pixels", at_least=0.0, at_most=16.0)
    overscan: int = setting(
        0, "Pixels rendered beyond each edge of the picture: the data window is larger than the "
        "display window.", unit="pixels", at_least=0, at_most=8192)
    crop: tuple[int, ...] = setting(
        (), "Render only this part: [x, y, width, height] from the top left, of the picture "
        "with its overscan.", unit="pixels", at_least=-8192, at_most=65536)
    occlusion: bool = setting(True, "Whether the environment is occluded by nearby surfaces.")
    lighting: str = setting(
        "harmonic", "harmonic (environment by spherical harmonics, one bounce: quick and smooth) "
        "or path (every bounce traced).", choices=LIGHTINGS)
    bounces: int = setting(
        4, "Bounces between opaque surfaces, with path lighting.", at_least=0, at_most=1000)
    depth: int = setting(
        16, "Interfaces that a ray through glass may meet.", at_least=1, at_most=300)
    clamp: float = setting(
        0.0, "The most that one sample may add after two bounces or interfaces of glass: cuts "
        "scattered bright pixels, and some light; 0 for any.",
        at_least=0.0, at_most=1e9)
    color_space: str = setting(
        "acescg", "Colour space of the frames.", choices=("acescg", "linear-rec709"))

    def complaints(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the section as a whole."""
        if "beauty" not in self.passes:
            yield "passes", (f"found {list(self.passes)}, which lacks 'beauty'; a frame without "
                             "R, G, B, A opens in no program")
        width, height = self.resolution
        if self.crop:
            if len(self.crop) != 4 or min(self.crop[2:]) < 1:
                yield "crop", (f"found {list(self.crop)}, but it must be [x, y, width, height] "
                               "with a width and height of at least 1 pixel, or [] for none")
                return
            x, y, w, h = self.crop
            low, right, bottom = -self.overscan, width + self.overscan, height + self.overscan
            if x < low or y < low or x + w > right or y + h > bottom:
                yield "crop", (f"found {list(self.crop)}, which reaches beyond the picture of "
                               f"{width} x {height} pixels with an overscan of {self.overscan}; "
                               f"x may go from {low} to {right} and y from {low} to {bottom}")
