"""The product on one screen: the stages from a shot file to frames that were checked.

A stage takes sections of the shot (``shot.…``), files that the shot names and the results of
stages before it, and gives files. What it takes decides its fingerprint
(:mod:`vfx.pipeline.work.folder`); ``version`` is raised by hand when a change of the program
changes a stage's results. What a section is stands first, the stages at the end.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from vfx.geometry.handoff.bodies import ON_FLOOR
from vfx.pipeline.shot import checks, needs
from vfx.pipeline.shot.colliders import is_seen
from vfx.pipeline.shot.inputs import Inputs
from vfx.pipeline.stages import align, comp, geometry, lineage, render, sim
from vfx.pipeline.stages.stage import (
    Stage,
    files,
    guide_from,
    result_beside,
    result_of,
    result_so_far,
    settings,
)

if TYPE_CHECKING:
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.sim.settings import Collider, Projectile


#: Keys that came later, and what they are where a shot does not use them: old results stay good.
_LATER = {"place": "free", "drop": 0.0, "fall_speed": 0.0}
#: How a body follows an animation, which counts by what is in its file.
_OF_ANIMATION = ("animation", "animation_prim", "animation_until")
#: What says that a projectile is a body; those are in the list of bodies.
_NOT_OF_BALLS = ("box", "mesh", "height", "rotation", "angular_velocity", "elements")
#: What only contact takes of a ball.
_OF_CONTACT = ("push", "material", "restitution", "friction")


def _shape(shot: Shot) -> Any:
    # A mesh counts by what is in it, not by where it lies.
    left_out = ("velocity", "angular_velocity", "mesh", "whole", *_OF_ANIMATION)
    shapes = [{key: value for key, value in dataclasses.asdict(body).items()
               if key not in left_out and (key not in _LATER or value != _LATER[key])}
              for body in shot.bodies]
    for shape in shapes:
        if shape.get("place") == ON_FLOOR:
            shape["floor"] = shot.floor.height
    return shapes


def physics_section(shot: Shot) -> Any:
    """Return what of a shot counts for its simulation."""
    return {
        "sim": dataclasses.asdict(shot.sim),
        "solver": dataclasses.asdict(shot.solver_settings),
        **({"rooms": {name: dataclasses.asdict(each)
                      for name, each in shot.room_settings.items()}} if shot.room_settings else {}),
        "floor": dataclasses.asdict(shot.floor),
        "projectiles": [_ball(shot, item) for item in shot.projectiles],
        "colliders": [{key: value for key, value in dataclasses.asdict(item).items()
                       if key != "visible"} for item in shot.colliders],
        "regions": [dataclasses.asdict(item) for item in shot.regions],
        # A picture counts by what it shows, not by its name.
        "weakening": [dataclasses.asdict(item) | {"image": bool(item.image)}
                      for item in shot.weakening],
        "cracks": [dataclasses.asdict(item) for item in shot.cracks],
        "materials": [dataclasses.asdict(shot.materials[body.material]) for body in shot.bodies],
        "velocity": [[body.velocity, body.angular_velocity,
                      *([{"fall_speed": body.fall_speed}] if body.fall_speed else []),
                      *([{"animation": [body.animation_prim, body.animation_until]}]
                        if body.animation else []),
                      *(["whole"] if body.whole else [])] for body in shot.bodies],
        "time": [shot.first_frame, shot.clock.steps_per_frame, shot.clock.frame_time,
                 *([shot.clock.time_keys] if shot.clock.time_keys else [])],
    }


def _ball(shot: Shot, ball: Projectile) -> Any:
    """Return what of a projectile counts: by contact its mass, else not what contact takes."""
    left_out = _NOT_OF_BALLS if ball.touches else (*_NOT_OF_BALLS, *_OF_CONTACT)
    keys = {key: value for key, value in dataclasses.asdict(ball).items() if key not in left_out}
    return keys | ({"mass": ball.mass_of(shot.materials)} if ball.touches else {})


def _density(shot: Shot) -> Any:
    return [shot.materials[body.material].density for body in shot.bodies]


def _align(shot: Shot) -> Any:
    return dataclasses.asdict(shot.align)


def picture_section(shot: Shot) -> Any:
    """Return what of a shot counts for its pictures."""
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
    if shot.clock.time_keys:
        # Between frames things go as fast as time does.
        picture["time_keys"] = [shot.first_frame, shot.clock.time_keys]
    return picture


def _shape_and_way(collider: Collider) -> Any:
    left_out = ("restitution", "friction", "visible")
    return {key: value for key, value in dataclasses.asdict(collider).items()
            if key not in left_out}


GEOMETRY = Stage(
    "geometry", 7, geometry.build_geometry,
    takes=(settings("shot.shape", _shape), files("meshes", Inputs.mesh_hashes)),
    gives="solid", file_name="solid.npz",
    checks=(checks.meshes, checks.uv, checks.bodies, checks.floor),
    warnings=(checks.start_warnings,), room=needs.geometry_room)

SIM = Stage(
    "sim", 7, sim.simulate,
    takes=(result_of(GEOMETRY), settings("shot.physics", physics_section),
           files("density pictures", Inputs.sim_hashes)),
    gives="motion", file_name="frame.{frame:04d}.npz",
    is_through=True, is_heavy=True, is_exclusive=True,
    aids=sim.aids, unfit_aids=sim.unfit_aids,
    checks=(checks.meshes, checks.uv, checks.physics, checks.engine, checks.density_pictures,
            checks.animations, checks.floor),
    warnings=(checks.start_warnings,), room=needs.sim_room)

LINEAGE = Stage(
    "lineage", 2, lineage.follow_lineage,
    takes=(result_of(GEOMETRY), result_so_far(SIM)),
    gives="lineage", file_name="lineage.npz", folder_name="align",
    is_through=True, aids=lineage.aids,
    checks=(checks.meshes, checks.uv))

ALIGN = Stage(
    "align", 2, align.align_pieces,
    takes=(result_of(GEOMETRY), result_so_far(SIM), guide_from(LINEAGE),
           settings("shot.density", _density), settings("shot.align", _align)),
    gives="fragments", file_name="frame.{frame:04d}.npz",
    begins_with=(LINEAGE,),
    checks=(checks.meshes, checks.uv), room=needs.align_room)

RENDER = Stage(
    "render", 5, render.render_frames,
    takes=(result_of(GEOMETRY), result_of(ALIGN), result_beside(ALIGN, render.near_frames),
           settings("shot.picture", picture_section),
           files("camera file", Inputs.camera_hash),
           files("environment", Inputs.environment_hash),
           files("floor texture", Inputs.texture_hash),
           files("surface textures", Inputs.image_hashes)),
    gives="picture", file_name="{shot}.{frame:04d}.exr", recognise=render.read_config_hash,
    beside=render.matte_name, is_heavy=True,
    checks=(checks.film, checks.environment, checks.floor_texture, checks.surface_textures,
            checks.camera, checks.denoiser),
    warnings=(checks.camera_warnings,), room=needs.render_room)

COMP = Stage(
    "comp", comp.VERSION, comp.make_handoff,
    takes=(result_of(RENDER),),
    gives="hand-off", file_name=comp.HANDOFF_FILE, find_states=comp.handed_over,
    aids=lambda shot: comp.handoff_files(shot.name),
    judges_inputs=True, uses_device=False)

STAGES = (GEOMETRY, SIM, LINEAGE, ALIGN, RENDER, COMP)

STAGE = {stage.name: stage for stage in STAGES}
