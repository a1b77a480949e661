"""The product on one screen: the stages from a shot file to its frames.

A stage takes sections of the shot (``shot.…``) and the results of stages before it, and gives
files. What it takes decides its fingerprint (:mod:`vfx.pipeline.work.folder`); ``version`` is
raised by hand when a change of the program changes a stage's results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vfx.pipeline.shot.colliders import is_seen
from vfx.pipeline.stages.align import align_fragments
from vfx.pipeline.stages.geometry import build_geometry
from vfx.pipeline.stages.render import matte_name, read_config_hash, render_frames
from vfx.pipeline.stages.sim import simulate
from vfx.pipeline.work.cache import read_fingerprint

if TYPE_CHECKING:
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.pipeline.stages.job import Job
    from vfx.sim.settings import Collider


@dataclass(frozen=True)
class Stage:
    """A step of the pipeline: a function, what it takes, and the files it gives.

    ``file_name`` has ``{frame}`` if there is one file a frame. ``recognise`` returns the
    fingerprint a file carries in itself, having read it whole. ``beside`` names a second file of
    a frame, without which it is not done.
    """

    name: str
    version: int
    run: Callable[[Job], None]
    takes: tuple[str, ...]
    gives: str
    file_name: str
    recognise: Callable[[Path], str] = read_fingerprint
    beside: Callable[[Shot, int], str | None] | None = None

    @property
    def is_per_frame(self) -> bool:
        """Whether the stage makes a file for each frame."""
        return "{frame" in self.file_name


STAGES = (
    Stage("geometry", 7, build_geometry,
          takes=("shot.shape", "meshes"),
          gives="solid", file_name="solid.npz"),
    Stage("sim", 7, simulate,
          takes=("solid", "shot.physics", "density pictures"),
          gives="motion", file_name="frame.{frame:04d}.npz"),
    Stage("align", 1, align_fragments,
          takes=("solid", "motion so far", "shot.density", "shot.align"),
          gives="fragments", file_name="frame.{frame:04d}.npz"),
    Stage("render", 5, render_frames,
          takes=("solid", "fragments", "fragments beside", "shot.picture", "camera file",
                 "environment", "floor texture", "surface textures"),
          gives="picture", file_name="{shot}.{frame:04d}.exr", recognise=read_config_hash,
          beside=matte_name),
)

STAGE = {stage.name: stage for stage in STAGES}


def following(name: str) -> tuple[Stage, ...]:
    """Return a stage and all that come after it."""
    return STAGES[[stage.name for stage in STAGES].index(name):]


def shot_section(name: str, shot: Shot) -> Any:
    """Return, as JSON can hold it, the part of a shot that a ``shot.…`` take stands for."""
    return _SECTIONS[name](shot)


def _shape(shot: Shot) -> Any:
    # A mesh counts by what is in it, not by where it lies.
    left_out = ("velocity", "angular_velocity", "mesh")
    return [{key: value for key, value in dataclasses.asdict(body).items() if key not in left_out}
            for body in shot.bodies]


def _physics(shot: Shot) -> Any:
    return {
        "sim": dataclasses.asdict(shot.sim),
        "solver": dataclasses.asdict(shot.solver_settings),
        "floor": dataclasses.asdict(shot.floor),
        "projectiles": [dataclasses.asdict(item) for item in shot.projectiles],
        "colliders": [{key: value for key, value in dataclasses.asdict(item).items()
                       if key != "visible"} for item in shot.colliders],
        "regions": [dataclasses.asdict(item) for item in shot.regions],
        # A picture counts by what it shows, not by its name.
        "weakening": [dataclasses.asdict(item) | {"image": bool(item.image)}
                      for item in shot.weakening],
        "cracks": [dataclasses.asdict(item) for item in shot.cracks],
        "materials": [dataclasses.asdict(shot.materials[body.material]) for body in shot.bodies],
        "velocity": [[body.velocity, body.angular_velocity] for body in shot.bodies],
        "time": [shot.first_frame, shot.clock.steps_per_frame, shot.clock.frame_time],
    }


def _density(shot: Shot) -> Any:
    return [shot.materials[body.material].density for body in shot.bodies]


def _align(shot: Shot) -> Any:
    return dataclasses.asdict(shot.align)


def _picture(shot: Shot) -> Any:
    light = dataclasses.asdict(shot.light)
    del light["environment"]
    picture = {
        # A file of the camera counts by what is in it, not by where it lies.
        "camera": dataclasses.asdict(shot.camera) | {"usd": bool(shot.camera.usd)},
        "camera_keys": [dataclasses.asdict(key) for key in shot.camera_keys],
        "light": light,
        "area_lights": [dataclasses.asdict(lamp) for lamp in shot.area_lights],
        "looks": [dataclasses.asdict(shot.looks[body.material]) for body in shot.bodies],
        "floor": [shot.floor.enabled, shot.floor.height],
        "floor_look": dataclasses.asdict(shot.floor_look),
        "render": dataclasses.asdict(shot.film),
        "fps": shot.fps,
    }
    seen = [number for number, collider in enumerate(shot.colliders) if is_seen(collider)]
    if seen:
        # Those that no picture shows do not change it.
        picture["colliders"] = [
            [number, _shape_and_way(shot.colliders[number]),
             dataclasses.asdict(shot.collider_looks[number])] for number in seen]
        picture["time"] = shot.clock.frame_time or shot.clock.steps_per_frame
    return picture


def _shape_and_way(collider: Collider) -> Any:
    left_out = ("restitution", "friction", "visible")
    return {key: value for key, value in dataclasses.asdict(collider).items()
            if key not in left_out}


_SECTIONS: dict[str, Callable[[Shot], Any]] = {
    "shot.shape": _shape,
    "shot.physics": _physics,
    "shot.density": _density,
    "shot.align": _align,
    "shot.picture": _picture,
}
