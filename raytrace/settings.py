"""What a shot says about the picture: camera, light, looks and film."""

from __future__ import annotations

from dataclasses import dataclass

from vfx.geometry.bodies import Vector
from vfx.geometry.schema import setting


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
    samples: int = setting(16, "Camera rays a pixel.", at_least=1, at_most=4096)
    occlusion: bool = setting(True, "Whether the environment is occluded by nearby surfaces.")
    lighting: str = setting(
        "harmonic", "harmonic (environment by spherical harmonics, one bounce: quick and smooth) "
        "or path (every bounce traced).", choices=("harmonic", "path"))
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
