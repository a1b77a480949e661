"""Quick pictures of a shot: its pieces at a frame, or its solid whole, exploded or cut.

They need no rendering before them, and of the solid no simulation: what is not on disk is made
in memory. Values of elements (volume, strength, damage, piece) are shown as colours: the solid
is given as many materials as there are colours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vfx.pipeline.errors import MissingInput, ShotError
from vfx.pipeline.shot.colliders import collider_props
from vfx.pipeline.show.pass_colors import pass_pixels, ramp
from vfx.pipeline.show.preview import Pixels, display_pixels
from vfx.pipeline.stages.render import check_solid_uv, near_frames, neighbors
from vfx.pipeline.stages.stage import Stage
from vfx.pipeline.stages.table import ALIGN, GEOMETRY
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State

if TYPE_CHECKING:
    from vfx.device import Device
    from vfx.geometry.handoff.types import Pieces, Solid
    from vfx.raytrace.settings import Camera, Film

SHOWN = ("shot", "surface", "exploded", "cut")
COLORS = ("look", "volume", "strength", "damage", "fragment")
#: Passes that show the colours of values.
COLORED_PASSES = ("beauty", "albedo", "diffuse")
#: How far elements are moved apart, in distances from the middle of their body.
EXPLOSION = 0.6
N_COLORS = 64
WIDTH, SAMPLES = 640, 8
#: How much of the time goes into dividing the bodies, where that is still to be done.
BUILD_SHARE = 0.7
#: Rows of the legend's strip of colours, its margin, and its background.
BAR, MARGIN, GROUND = 8, 6, (22, 22, 24)


@dataclass(frozen=True)
class ViewRequest:
    """What is to be shown; ``frame`` None is the solid at rest."""

    frame: int | None = None
    show: str = "shot"
    color: str = ""               # by default: volume for exploded and cut, else the look
    layer: str = "beauty"         # a pass of the frames
    width: int | None = None      # [pixels]; by default the frames', at most WIDTH
    samples: int = SAMPLES
    lighting: str = "harmonic"

    @property
    def colored_by(self) -> str:
        """What the colours mean."""
        return self.color or ("volume" if self.show in ("exploded", "cut") else "look")


@dataclass(frozen=True)
class Legend:
    """What the colours of a picture mean: a quantity from ``low`` to ``high``."""

    title: str
    low: float
    high: float
    is_scale: bool = True         # whether colours have the order of the values

    @property
    def range(self) -> str:
        """The values, in words."""
        if not self.is_scale:
            return "a colour for each"
        low, high = f"{self.low:.4g}", f"{self.high:.4g}"
        return f"{low} everywhere" if low == high else f"{low} to {high}"

    @property
    def text(self) -> str:
        """All of it in a line."""
        return f"{self.title}: {self.range}"


def make_view(work: Work, device: Device, request: ViewRequest, say: Callable[[str], None],
              progress: Callable[[str, float], None]) -> Pixels:
    """Return the picture of a request, 8-bit sRGB (h, w, 3), with a legend below where it has one.

    ``progress`` is called with what is being done and the finished part of all, 0..1.
    """
    from vfx.geometry.handoff.faces import all_faces
    from vfx.raytrace.camera.motion import Neighbors
    from vfx.raytrace.render import render_picture

    shot = work.shot
    is_built = _is_done(work, GEOMETRY, shot.first_frame)
    built = 0.0 if is_built else BUILD_SHARE
    solid = _solid(work) if is_built else _built(
        work, device, say, lambda what, share: progress(what, built * share))
    progress("picture", built)
    now = _at_rest(work, solid) if request.frame is None else _pieces(work, request.frame)
    film = _film(work, request)
    camera_at = work.inputs.camera()
    camera = dataclasses.replace(camera_at(now.frame), shutter_angle=0.0)
    near, floor = Neighbors(), shot.floor
    if request.show == "shot" and request.frame is not None:
        following = request.frame + 1 if request.frame < shot.last_frame else None
        if following in near_frames(shot, request.frame) and _is_done(work, ALIGN, following):
            near = neighbors(shot, request.frame, None, _pieces(work, following))
    faces = all_faces(solid)
    check_solid_uv(shot, solid, faces)
    shown, legend, looks = solid, None, dict(shot.looks)
    if request.colored_by != "look":
        shown, looks, legend = _colored(work, solid, now, request.colored_by)
    if request.show in ("exploded", "cut"):
        now = _exploded(solid, now) if request.show == "exploded" else _cut(solid, now, camera)
    if request.show != "shot":
        camera = _fitted(camera, film, solid, now)
        floor = dataclasses.replace(floor, enabled=False)
    picture = render_picture(
        device, shown, now, camera if request.show != "shot" else camera_at, shot.light, looks,
        floor, shot.floor_look, film, work.inputs.environment(),
        lambda share: progress("picture", built + (1.0 - built) * share), faces=faces,
        area_lights=shot.area_lights, texture=work.inputs.texture(), images=work.inputs.images(),
        near=near,
        props=collider_props(shot) if request.show == "shot" else ())
    pixels = pass_pixels(request.layer, {**picture.channels, **picture.matte_channels},
                         film.color_space)
    if legend is None or request.layer not in COLORED_PASSES:
        return pixels
    say(f"preview: colours: {legend.text}")
    return _with_legend(pixels, legend)


def _solid(work: Work) -> Solid:
    """Return the solid of the shot from its file."""
    from vfx.geometry.handoff.types import Solid
    from vfx.pipeline.work.cache import read_npz

    return Solid.from_arrays(read_npz(work.path(GEOMETRY, work.shot.first_frame)))


def _built(work: Work, device: Device, say: Callable[[str], None],
           progress: Callable[[str, float], None]) -> Solid:
    """Return the solid of the shot, built now."""
    from vfx.geometry.divide.build import build_solid

    say("preview: geometry is not done; the bodies are divided in memory")
    try:
        return build_solid(device, work.shot.placed_bodies, progress=progress).solid
    except ValueError as error:
        raise ShotError(f"{work.shot.path}: {error}") from None


def _is_done(work: Work, stage: Stage, frame: int) -> bool:
    return work.state(stage, frame) is State.DONE


def _pieces(work: Work, frame: int) -> Pieces:
    """Return the pieces of a frame; raise with the command that makes them."""
    from vfx.geometry.handoff.types import Pieces
    from vfx.pipeline.work.cache import read_npz

    shot = work.shot
    if frame not in shot.frames:
        raise ShotError(f"{shot.path}: --frame: found {frame}, but the shot has frames "
                        f"{shot.first_frame} to {shot.last_frame}")
    if not _is_done(work, ALIGN, frame):
        raise MissingInput(f"preview of frame {frame} needs its pieces, which are not done; leave "
                           "--frame out for the solid at rest, or run first:\n"
                           f"  vfx stage sim {shot.path} --frames {frame}\n"
                           f"  vfx stage align {shot.path} --frames {frame}")
    return Pieces.from_arrays(read_npz(work.path(ALIGN, frame)))


def _at_rest(work: Work, solid: Solid) -> Pieces:
    """Return whole bodies at rest, and the projectiles where they start."""
    from vfx.geometry.handoff.types import Pieces

    balls = work.shot.projectiles
    used, body = np.unique(solid.body, return_inverse=True)
    mass = np.bincount(body, solid.volume)
    center = np.stack([np.bincount(body, solid.volume * axis) / mass
                       for axis in solid.position.T], axis=1)
    still = np.zeros((len(used), 3))
    return Pieces(
        frame=work.shot.first_frame, time=0.0, fragment=solid.body.astype(np.int32),
        id=used.astype(np.int32), rotation=np.tile(np.eye(3), (len(used), 1, 1)),
        translation=still, center=center, velocity=still, angular_velocity=still, mass=mass,
        damage=np.zeros(solid.n_elements, np.float32),
        projectile_position=np.array([ball.position for ball in balls], float).reshape(-1, 3),
        projectile_radius=np.array([ball.radius for ball in balls], float))


def _film(work: Work, request: ViewRequest) -> Film:
    """Return the shot's film, small and quick."""
    film = work.shot.film
    width, height = film.resolution
    scale = (request.width or min(width, WIDTH)) / width
    return dataclasses.replace(
        film, resolution=(max(1, round(width * scale)), max(1, round(height * scale))),
        samples=request.samples, noise_target=0.0, lighting=request.lighting, denoise=False,
        overscan=0, crop=(), background=True,
        passes=tuple(dict.fromkeys(("beauty", "fragment", request.layer))))


def _exploded(solid: Solid, now: Pieces) -> Pieces:
    """Return every element as a piece of its own, moved away from the middle of its body."""
    n = solid.n_elements
    piece = np.searchsorted(now.id, now.fragment)
    rotation = now.rotation[piece]
    place = np.einsum("kij,kj->ki", rotation, solid.position) + now.translation[piece]
    middle = np.stack([np.bincount(solid.body, axis) / np.maximum(np.bincount(solid.body), 1)
                       for axis in place.T], axis=1)
    away = EXPLOSION * (place - middle[solid.body])
    return dataclasses.replace(
        now, fragment=np.arange(n, dtype=np.int32), id=np.arange(n, dtype=np.int32),
        rotation=rotation, translation=now.translation[piece] + away,
        projectile_position=np.zeros((0, 3)), projectile_radius=np.zeros(0))


def _cut(solid: Solid, now: Pieces, camera: Camera) -> Pieces:
    """Return the pieces without the half that is nearer to the camera.

    The elements of that half are pieces that are shrunk to a point inside of what stays.
    """
    piece = np.searchsorted(now.id, now.fragment)
    place = np.einsum("kij,kj->ki", now.rotation[piece], solid.position) + now.translation[piece]
    toward = np.subtract(camera.position, camera.target) * [1.0, 0.0, 1.0]
    if not np.linalg.norm(toward) > 0.0:
        toward = np.array([0.0, 0.0, 1.0])
    # Along the axis of the grid that comes nearest, so that a cut runs between cubes.
    axis = int(np.abs(toward).argmax())
    middle = 0.5 * (place.min(axis=0) + place.max(axis=0))
    is_gone = (place[:, axis] - middle[axis]) * np.sign(toward[axis]) > 0.0
    ghost = int(now.id.max()) + 1
    stays = place[~is_gone] if (~is_gone).any() else place
    return dataclasses.replace(
        now, fragment=np.where(is_gone, ghost, now.fragment).astype(np.int32),
        id=np.append(now.id, ghost).astype(np.int32),
        rotation=np.concatenate([now.rotation, np.zeros((1, 3, 3))]),
        translation=np.concatenate([now.translation, stays[:1]]),
        projectile_position=np.zeros((0, 3)), projectile_radius=np.zeros(0))


def _fitted(camera: Camera, film: Film, solid: Solid, now: Pieces) -> Camera:
    """Return the camera moved along its line of sight until all pieces fill the picture."""
    from vfx.raytrace.camera.camera import camera_view

    piece = np.searchsorted(now.id, now.fragment)
    seen = np.einsum("kij,kj->ki", now.rotation[piece], solid.position) + now.translation[piece]
    target = 0.5 * (seen.min(axis=0) + seen.max(axis=0))
    view = camera_view(camera, film)
    offset = seen - target
    margin = float(solid.length_scale.max())
    aside = np.maximum((np.abs(offset @ view.right) + margin) / view.half_width,
                       (np.abs(offset @ view.up) + margin) / view.half_height)
    eye = target - 1.08 * float((aside - offset @ view.forward).max()) * view.forward
    return dataclasses.replace(
        camera, position=(float(eye[0]), float(eye[1]), float(eye[2])),
        target=(float(target[0]), float(target[1]), float(target[2])), f_stop=0.0)


def _colored(work: Work, solid: Solid, now: Pieces,
             name: str) -> tuple[Solid, dict[str, Any], Legend]:
    """Return the solid with a material a colour, the looks, and what the colours mean."""
    from vfx.raytrace.settings import Look

    value, title = _values(work, solid, now, name)
    low, high = (np.percentile(value, [1.0, 99.0]) if name in ("volume", "strength")
                 else (float(value.min()), float(value.max())))
    part = (value - low) / (high - low) if high > low else np.full(len(value), 0.5)
    if name == "fragment":
        part = np.mod(value * 0.6180339887, 1.0)
    shade = np.clip(np.floor(N_COLORS * np.clip(part, 0.0, 1.0)), 0, N_COLORS - 1).astype(np.int32)
    looks: dict[str, Any] = {}
    for number in range(N_COLORS):
        red, green, blue = 0.85 * ramp((number + 0.5) / N_COLORS)
        albedo = (float(red), float(green), float(blue))
        looks[f"color{number}"] = Look(albedo=albedo, fracture_albedo=albedo, specular=0.02,
                                       shininess=30.0)
    colored = dataclasses.replace(
        solid, body=shade, material_name=np.array(list(looks)),
        length_scale=np.full(N_COLORS, float(solid.length_scale.min())),
        body_name=np.array(list(looks)))
    return colored, looks, Legend(title, float(low), float(high), name != "fragment")


def _values(work: Work, solid: Solid, now: Pieces, name: str) -> tuple[Any, str]:
    """Return a value for each element (n,), and what it is called."""
    if name == "volume":
        return 1e9 * solid.volume, "volume [mm^3]"
    if name == "damage":
        return now.damage.astype(float), "damage"
    if name == "fragment":
        return now.fragment.astype(float), "piece"
    from vfx.sim.control.controls import make_world

    world = make_world(solid, work.shot.setup, work.inputs.densities())
    limit = work.shot.solver.strain_limits(world)
    # Bodies that never break have the colour of the strongest that does.
    strongest = limit[np.isfinite(limit)].max(initial=0.0)
    return np.minimum(limit, strongest), "strain limit"


def _with_legend(pixels: Pixels, legend: Legend) -> Pixels:
    """Return the picture with what its colours mean below it, in as many lines as that takes."""
    height, width = pixels.shape[:2]
    font = ImageFont.load_default()
    room = width - 2 * MARGIN
    lines = next((lines for lines in ([legend.text], [legend.title, legend.range])
                  if max(map(font.getlength, lines)) <= room), [])
    bar = BAR if legend.is_scale and room > 0 else 0
    step = int(sum(font.getbbox("Ag")[1::2])) if lines else 0
    sheet = Image.new("RGB", (width, height + MARGIN + bar + step * len(lines) + MARGIN), GROUND)
    sheet.paste(Image.fromarray(pixels), (0, 0))
    if bar:
        strip = ramp(np.linspace(0.0, 1.0, room)[None].repeat(bar, axis=0))
        sheet.paste(Image.fromarray(display_pixels(strip, "linear-rec709")),
                    (MARGIN, height + MARGIN))
    draw = ImageDraw.Draw(sheet)
    for number, line in enumerate(lines):
        draw.text((MARGIN, height + MARGIN + bar + step * number), line, fill=(235, 235, 235),
                  font=font)
    return np.asarray(sheet)


def view_path(work: Work, request: ViewRequest) -> Path:
    """Return where the picture of a request goes unless it is said."""
    words = [work.shot.name]
    if request.show != "shot":
        words.append(request.show)
    if request.color:
        words.append(request.color)
    if request.layer != "beauty":
        words.append(request.layer)
    name = "_".join(words) + (f".{request.frame:04d}" if request.frame is not None else "")
    return work.folder / "preview" / f"{name}.png"
