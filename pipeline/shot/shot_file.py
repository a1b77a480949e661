"""A shot file: TOML in, a frozen :class:`Shot` out, or every mistake in it at once.

The sections are the settings dataclasses of the packages that use them; this module only says
under which heading each stands. Reading a shot runs no code from it and writes nothing. The
one name that becomes part of an output path, the shot's own, must be a plain word.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vfx.geometry.handoff.bodies import ASSET, ON, ON_FLOOR, Body
from vfx.geometry.handoff.schema import setting
from vfx.geometry.handoff.settings import Align
from vfx.pipeline.errors import ShotError
from vfx.pipeline.shot.frames import parse_span
from vfx.pipeline.shot.thrown_bodies import check_projectiles, thrown_bodies
from vfx.pipeline.shot.toml_file import read_toml
from vfx.pipeline.shot.validate import Complaints, cut, nearest, read_section, shown
from vfx.raytrace.props import COLLIDER_LOOK
from vfx.raytrace.settings import (
    CLOSEST_KEYS,
    AreaLight,
    Camera,
    CameraKey,
    Film,
    Finish,
    FloorLook,
    Light,
    Look,
    MaterialLook,
)
from vfx.raytrace.surface.materials import finish_tables
from vfx.sim.schedule import SOLVERS, Sim
from vfx.sim.settings import (
    SHORTEST_DIRECTION,
    Collider,
    Crack,
    Floor,
    Material,
    Projectile,
    Region,
    Weakening,
)
from vfx.sim.solver import AnyRoom, Clock, Plan, Setup

DEFAULT_STEPS_PER_FRAME = 500
#: Speeds that a key of time may say.
LEAST_SPEED, MOST_SPEED = 1e-9, 1000.0
_PLAIN_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)


@dataclass(frozen=True)
class Span:
    """What the shot is called and how long it is."""

    name: str = setting("", "Name of the shot and of its frames; by default that of the file.")
    frames: str = setting("1001-1048", "First and last frame.")


@dataclass(frozen=True)
class Time:
    """How simulated time maps to frames: give one of steps_per_frame, time_scale and time_keys.

    With none of them, steps_per_frame has its default.
    """

    fps: float = setting(24.0, "Frames a second.", unit="frames/s", at_least=0.1, at_most=1000.0)
    steps_per_frame: int = setting(
        DEFAULT_STEPS_PER_FRAME, "Time steps from frame to frame.", at_least=1, at_most=10**8)
    time_scale: float = setting(
        1.0, "Speed of the shot: 1 is real time, 0.01 a hundred times slower.",
        above=0.0, at_most=1000.0)
    time_keys: tuple[tuple[float, float], ...] = setting(
        (), "Speed of the shot where it changes: [frame, speed] each, as time_scale; even in "
        "between, the same before the first and after the last.", unit="frames and 1",
        at_least=-1e9, at_most=1e9)

    def complaints(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the section as a whole."""
        for before, after in itertools.pairwise(self.time_keys):
            if after[0] <= before[0]:
                yield "time_keys", (f"frame {after[0]:g} stands after {before[0]:g}; frames must "
                                    "rise from key to key")
        for frame, speed in self.time_keys:
            if not LEAST_SPEED <= speed <= MOST_SPEED:
                yield "time_keys", (f"found a speed of {speed:g} at frame {frame:g}, but it must "
                                    f"be {LEAST_SPEED:g} to {MOST_SPEED:g}: 1 is real time, 0.05 "
                                    "twenty times slower; time cannot stand still")


@dataclass(frozen=True)
class Shot:
    """Everything a shot file says, validated. Frames are inclusive; SI units."""

    path: Path
    name: str
    first_frame: int
    last_frame: int
    clock: Clock
    sim: Sim
    solver_settings: Any            # [sim.<method>]
    room_settings: Mapping[str, Any]        # of the rooms that the solver stands on
    found_in: Mapping[str, str]     # where a key stands that has moved: "sim.bonds.horizon"
    floor: Floor
    projectiles: tuple[Projectile, ...]
    colliders: tuple[Collider, ...]
    collider_looks: tuple[Finish, ...]     # one each
    regions: tuple[Region, ...]
    weakening: tuple[Weakening, ...]
    cracks: tuple[Crack, ...]
    align: Align
    materials: dict[str, Material]
    looks: dict[str, Look | MaterialLook]
    bodies: tuple[Body, ...]        # as the file has them; see placed_bodies
    headings: tuple[str, ...]       # where each stands in the file: "bodies[1]"
    camera: Camera
    camera_keys: tuple[CameraKey, ...]
    light: Light
    area_lights: tuple[AreaLight, ...]
    floor_look: FloorLook
    film: Film

    @property
    def folder(self) -> Path:
        """The folder of the shot file, from which relative inputs are named."""
        return self.path.parent

    @property
    def frames(self) -> range:
        """All frames of the shot."""
        return range(self.first_frame, self.last_frame + 1)

    @property
    def n_particles(self) -> int:
        """Elements of all bodies, before any of them is built: of meshes about so many."""
        from vfx.geometry.divide.sources import body_size

        return sum(body_size(body).elements for body in self.placed_bodies)

    @property
    def fps(self) -> float:
        """Frames a second of the picture."""
        return self.clock.fps

    @property
    def solver(self) -> AnyRoom:
        """The solver that the shot names."""
        return SOLVERS[self.sim.method]

    @functools.cached_property
    def placed_bodies(self) -> tuple[Body, ...]:
        """The bodies with their centres, for which meshes are read that are put on something."""
        from vfx.geometry.divide.place import placed_bodies
        from vfx.pipeline.shot.needs import check_meshes

        if all(body.place == "free" for body in self.bodies):
            return self.bodies
        check_meshes(self)
        return placed_bodies(self.bodies, self.floor.height)

    @functools.cached_property
    def setup(self) -> Setup[Any]:
        """What the shot says about its simulation, of bodies in their places."""
        return self._setup_of(self.placed_bodies)

    def _setup_of(self, bodies: tuple[Body, ...]) -> Setup[Any]:
        return Setup(
            settings=self.solver_settings, materials=self.materials, shared=self.sim,
            bodies=bodies, floor=self.floor, projectiles=self.projectiles,
            colliders=self.colliders, clock=self.clock, rooms=self.room_settings,
            regions=self.regions,
            weakening=self.weakening, cracks=self.cracks)

    @functools.cached_property
    def plan(self) -> Plan[Any]:
        """What the simulation will need: worked out from the bodies, whose meshes are read."""
        from vfx.pipeline.shot.needs import work_out

        return work_out(self)

    @functools.cached_property
    def frame_time(self) -> float:
        """Simulated time [s] from frame to frame; of an automatic step the plan has to say.

        Where the speed changes no frame is shorter; see ``time_of`` and ``speed_at``.
        """
        given = self.clock.frame_time
        # No mesh is read for it unless a plan has to be made.
        known = self.solver.frame_time(self._setup_of(self.bodies)) if given is None else given
        return self.plan.frame_time if known is None else known

    def time_of(self, frame: float) -> float:
        """Return the simulated time [s] of a frame; the first is the initial state.

        Frames between two, and beyond the ends of the shot, have a time too.
        """
        if self.clock.time_keys:
            return self.clock.key_time(frame - self.first_frame)
        return (frame - self.first_frame) * self.frame_time

    def speed_at(self, frame: float) -> float:
        """Return how many simulated seconds pass in a second of the picture at a frame."""
        if self.clock.time_keys:
            return self.clock.key_speed(frame - self.first_frame)
        return self.frame_time * self.fps


SECTIONS: Mapping[str, type[Any]] = {
    "shot": Span, "time": Time, "sim": Sim, "floor": Floor, "align": Align, "camera": Camera,
    "light": Light, "floor_look": FloorLook, "render": Film,
}
LISTS: Mapping[str, type[Any]] = {
    "bodies": Body, "projectiles": Projectile, "colliders": Collider,
    "regions": Region, "weakening": Weakening, "cracks": Crack, "area_lights": AreaLight,
    "camera_keys": CameraKey,
}


def load_shot(path: Path) -> Shot:
    """Read and validate a shot file; raise ShotError naming every mistake."""
    document = read_toml(path)
    complaints = Complaints(_homes())
    known = [*SECTIONS, *LISTS, "materials"]
    for key in document:
        if key not in known:
            complaints.unknown(key, key, known)
    sections = {name: document.get(name, {}) for name in SECTIONS}
    own, rooms, found_in = _take_solver_settings(sections, complaints)
    read: dict[str, Any] = {name: read_section(cls, sections[name], name, complaints)
                            for name, cls in SECTIONS.items()}
    given = {name: document.get(name, []) for name in LISTS}
    given["colliders"], collider_looks = _take_collider_looks(given["colliders"], complaints)
    lists = {name: _read_list(cls, given[name], name, complaints)
             for name, cls in LISTS.items()}
    materials, looks = _read_materials(document.get("materials", {}), complaints)
    name, first, last = _read_span(read["shot"], sections["shot"], path, complaints)
    _check_time(sections["time"], read["time"], read["sim"], complaints)
    check_projectiles(given["projectiles"], complaints)
    _check_wholes(read, lists, complaints)
    thrown = thrown_bodies(lists["projectiles"])
    lists["bodies"] = _with_mesh_paths((*lists["bodies"], *thrown.values()), path)
    headings = _headings(lists["bodies"], tuple(thrown))
    _check_bodies(lists["bodies"], headings, document, materials, complaints)
    _check_places(lists["bodies"], read["floor"], complaints)
    _check_animations(lists["bodies"], headings, read["sim"], first, complaints)
    _check_directions(read["camera"], read["light"], lists["area_lights"], complaints)
    _check_controls(lists, materials, complaints)
    _check_camera_keys(read["camera"], lists["camera_keys"], complaints)
    if complaints.lines:
        raise ShotError("\n".join(f"{path}: {line}" for line in complaints.lines))

    time: Time = read["time"]
    is_scaled = "time_scale" in sections["time"]
    is_scaled |= not (SOLVERS[read["sim"].method].counts_steps or time.time_keys)
    has_speed = is_scaled or bool(time.time_keys)
    return Shot(
        path=path, name=name, first_frame=first, last_frame=last,
        clock=Clock(time.fps, None if has_speed else time.steps_per_frame,
                    time.time_scale if is_scaled else None,
                    tuple((frame - first, speed) for frame, speed in time.time_keys)),
        sim=read["sim"], solver_settings=own, room_settings=rooms, found_in=found_in,
        floor=read["floor"],
        projectiles=tuple(each for n, each in enumerate(lists["projectiles"], 1)
                          if n not in thrown), colliders=lists["colliders"],
        collider_looks=collider_looks, regions=lists["regions"], weakening=lists["weakening"],
        cracks=lists["cracks"], align=read["align"], materials=materials, looks=looks,
        bodies=lists["bodies"], headings=headings,
        camera=read["camera"], camera_keys=lists["camera_keys"], light=read["light"],
        area_lights=lists["area_lights"],
        floor_look=read["floor_look"], film=read["render"])


def is_plain_word(text: str) -> bool:
    """Whether a name is safe as a file name, a layer name and a matte name."""
    return _PLAIN_WORD.fullmatch(text) is not None


def tables() -> dict[str, type[Any]]:
    """Return every table of a shot file by its heading, with the settings it is read into."""
    rooms = {f"sim.{name}": room.settings for name, room in SOLVERS.items()}
    return {
        **{f"[{name}]": cls for section in SECTIONS for name, cls in (
            {section: SECTIONS[section]} | (rooms if section == "sim" else {})).items()},
        **{f"[[{name}]]": cls for name, cls in LISTS.items()},
        "[materials.<name>]": Material, "[materials.<name>.look]": Look,
        "[materials.<name>.surface]": Finish,
    }


def _homes() -> dict[str, str]:
    """Return the section of each key, for advice on keys that stand in the wrong one."""
    return {field.name: heading for heading, cls in reversed(tables().items())
            for field in dataclasses.fields(cls)}


def _take_solver_settings(
    sections: dict[str, Any], complaints: Complaints
) -> tuple[Any, dict[str, Any], dict[str, str]]:
    """Return the settings of the solver that [sim] names, of rooms it uses, and where keys stood.

    The sections of solvers and what is theirs are taken out of the table of [sim]. Keys of the
    solver that stand in [sim] itself, as in older files, count as if they stood in its own.
    """
    table = sections["sim"]
    if not isinstance(table, dict):
        return None, {}, {}
    shared = {field.name for field in dataclasses.fields(Sim)}
    tables = {name: table[name] for name in SOLVERS if name in table}
    method = table.get("method", Sim().method)
    method = method if isinstance(method, str) and method in SOLVERS else Sim().method
    cls, where = SOLVERS[method].settings, f"sim.{method}"
    names = {field.name for field in dataclasses.fields(cls)}
    old = {key: value for key, value in table.items() if key in names - shared}
    for key in table:
        if key not in shared | names and key not in SOLVERS:
            complaints.unknown(f"sim.{key}", key, shared | names)
    sections["sim"] = {key: value for key, value in table.items() if key in shared}
    # A room that others stand on has other defaults there.
    uses = SOLVERS[method].uses
    tables |= {name: {**defaults, **given} for name, defaults in uses.items()
               if isinstance(given := tables.get(name, {}), dict)}
    read = {name: read_section(SOLVERS[name].settings, values, f"sim.{name}", complaints)
            for name, values in {method: {}, **tables}.items()}
    own, before = read[method], read_section(cls, old, "sim", complaints)
    given = tables.get(method, {})
    for key in sorted(old.keys() & (given if isinstance(given, dict) else {}).keys()):
        complaints.add(f"sim.{key}", f"stands in [sim] and in [{where}]; keep the one in [{where}]")
    for name in tables.keys() - {method}:
        complaints.of_whole(read[name], f"sim.{name}")
    if own is None or before is None:
        return None, {}, {}
    whole = dataclasses.replace(own, **{key: getattr(before, key) for key in old})
    found_in = {f"{where}.{key}": f"sim.{key}" for key in old}
    complaints.of_whole(whole, where, found_in)
    return whole, {name: read[name] for name in uses}, found_in


def _read_list(
    cls: type[Any], tables: Any, where: str, complaints: Complaints
) -> tuple[Any, ...]:
    if not isinstance(tables, list):
        complaints.add(where, f"is a list: write [[{where}]] in two brackets for each entry")
        return ()
    read = [read_section(cls, table, f"{where}[{i + 1}]", complaints)
            for i, table in enumerate(tables)]
    return tuple(item for item in read if item is not None)


def _read_materials(
    tables: Any, complaints: Complaints
) -> tuple[dict[str, Material], dict[str, Look | MaterialLook]]:
    materials: dict[str, Material] = {}
    looks: dict[str, Look | MaterialLook] = {}
    if not isinstance(tables, dict):
        complaints.add("materials", "write each material as [materials.<name>]")
        return materials, looks
    for name, table in tables.items():
        where = f"materials.{name}"
        if not is_plain_word(name):
            complaints.add(where, _word_advice(name))
        physics = table
        if isinstance(table, dict):
            physics = {key: value for key, value in table.items()
                       if key not in ("look", "surface", "fracture")}
            looks[name] = _read_look(table, where, complaints)
        material = read_section(Material, physics, where, complaints)
        complaints.of_whole(material, where)
        if material and material.strength > 0.0 and "bulk_modulus" not in physics:
            complaints.add(f"{where}.bulk_modulus", (
                f"missing; with strength = {material.strength:g} Pa it is required, for whole "
                "matter breaks at the stretch strength / (1.5 bulk_modulus): write it in Pa"))
        materials[name] = material or Material()
    return materials, looks


def _read_look(
    table: Mapping[str, Any], where: str, complaints: Complaints
) -> Look | MaterialLook:
    """Read [materials.<name>.look], or .surface and .fracture."""
    if "surface" not in table and "fracture" not in table:
        plain = read_section(Look, table.get("look", {}), f"{where}.look", complaints)
        complaints.of_whole(plain, f"{where}.look")
        return plain or Look()
    if "look" in table:
        complaints.add(f"{where}.look", "stands beside surface or fracture; keep either look or "
                                        "those two")
    given = {side: table.get(side, {}) for side in ("surface", "fracture")}
    # First what the file says, then what presets add to it.
    for side, values in given.items():
        if read_section(Finish, values, f"{where}.{side}", complaints) is None:
            return Look()
    if given["fracture"].get("texture"):
        complaints.add(f"{where}.fracture.texture",
                       f"found {shown(given['fracture']['texture'])}, but broken faces have no uv; "
                       "texture the surface, and give them an albedo")
    finishes = [read_section(Finish, values, where, complaints)
                for values in finish_tables(given["surface"], given["fracture"])]
    for side, finish in zip(given, finishes, strict=True):
        complaints.of_whole(finish, f"{where}.{side}")
    look = MaterialLook(*(finish or Finish() for finish in finishes))
    if look.surface.texture and look.surface.kind == "glass":
        complaints.add(f"{where}.surface.texture",
                       f"found {shown(look.surface.texture)}, but glass has no albedo to be "
                       "coloured; remove it, or take another kind")
    return look


def _take_collider_looks(
    tables: Any, complaints: Complaints
) -> tuple[Any, tuple[Finish, ...]]:
    """Return the tables of colliders without their looks, and the looks."""
    if not isinstance(tables, list):
        return tables, ()
    looks = []
    for i, table in enumerate(tables):
        values = table.get("surface", {}) if isinstance(table, dict) else {}
        where = f"colliders[{i + 1}].surface"
        # First what the file says, then what presets add to it.
        if read_section(Finish, values, where, complaints) is None:
            continue
        base = {} if values.get("preset") else COLLIDER_LOOK
        whole, _ = finish_tables({**base, **values}, {})
        looks.append(read_section(Finish, whole, where, complaints) or Finish())
        complaints.of_whole(looks[-1], where)
        if looks[-1].kind == "glass":
            complaints.add(where, "is of glass, but only bodies can be; take another preset or "
                                  "kind, or visible = false")
        if looks[-1].texture:
            complaints.add(f"{where}.texture", f"found {shown(looks[-1].texture)}, but colliders "
                                               "have no uv; give an albedo")
    stripped = [{key: value for key, value in table.items() if key != "surface"}
                if isinstance(table, dict) else table for table in tables]
    return stripped, tuple(looks)


def _read_span(
    span: Span | None, table: Mapping[str, Any], path: Path, complaints: Complaints
) -> tuple[str, int, int]:
    if span is None:
        return "", 0, 0
    name = span.name if "name" in table else path.stem
    if not is_plain_word(name):
        origin = "" if "name" in table else " (the file's name; give [shot] name instead)"
        complaints.add("shot.name", _word_advice(name) + origin)
    try:
        return name, *parse_span(span.frames)
    except ShotError as error:
        complaints.add("shot.frames", str(error))
        return name, 0, 0


def _word_advice(name: str) -> str:
    return (f"found {shown(name)}, but it must be a plain word: letters, digits, _ and -, "
            "starting with a letter or digit, at most 64 long, so that no file leaves its folder")


def _check_time(
    table: Any, time: Time | None, sim: Sim | None, complaints: Complaints
) -> None:
    given = [key for key in ("steps_per_frame", "time_scale", "time_keys")
             if isinstance(table, dict) and key in table]
    if len(given) > 1:
        complaints.add("time", f"gives both {given[0]} and {given[1]}; keep one of them")
    if sim is not None and not SOLVERS[sim.method].counts_steps and "steps_per_frame" in given:
        complaints.add("time.steps_per_frame", f"does not go with method = \"{sim.method}\", whose "
                       "steps are no part of a frame; remove it for real time, or give time_scale")
    if time is not None and "time_keys" in given and not time.time_keys:
        complaints.add("time.time_keys", "found no key; give one or more [frame, speed], or "
                                         "time_scale for one speed in all frames")


def _headings(bodies: tuple[Body, ...], thrown: tuple[int, ...]) -> tuple[str, ...]:
    """Return where each body stands in the file; those of projectiles are the last."""
    n_own = len(bodies) - len(thrown)
    return (*(f"bodies[{i + 1}]" for i in range(n_own)), *(f"projectiles[{n}]" for n in thrown))


def _check_bodies(
    bodies: tuple[Body, ...], headings: tuple[str, ...], document: Mapping[str, Any],
    materials: Mapping[str, Material], complaints: Complaints,
) -> None:
    if not document.get("bodies"):
        complaints.add("bodies", "there is nothing to break; write at least one [[bodies]] "
                                 "with material and cells, a box or a mesh")
    seen: set[str] = set()
    for where, body in zip(headings, bodies, strict=True):
        if where.startswith("projectiles"):
            complaints.of_whole(body, where)
        if not is_plain_word(body.name):
            complaints.add(f"{where}.name", _word_advice(body.name))
        if body.name in seen:
            complaints.add(f"{where}.name", f"found {shown(body.name)}, which another body has "
                                            "already; give each body its own name")
        seen.add(body.name)
        if body.mesh.startswith(ASSET):
            _check_asset(body.mesh, where, complaints)
        # Of a projectile without one it is said that it needs one.
        if body.material not in materials and (body.material or where.startswith("bodies")):
            near = nearest(body.material, materials)
            fix = (f"did you mean {shown(near)}?" if near
                   else f"write a [materials.{cut(body.material)}]")
            complaints.add(f"{where}.material",
                           f"found {shown(body.material)}, which this file does not define; {fix}")


def _check_places(
    bodies: tuple[Body, ...], floor: Floor | None, complaints: Complaints
) -> None:
    """Refuse bodies that stand on what is not there, or in a ring on one another."""
    on = {body.name: body.stands_on for body in bodies}
    rings = _rings(on)
    for i, body in enumerate(bodies):
        where = f"bodies[{i + 1}].place"
        if body.place == ON_FLOOR and floor is not None and not floor.enabled:
            complaints.add(where, f"found {shown(body.place)}, but floor.enabled is false; enable "
                                  "the floor, or give the center")
        if body.stands_on and body.stands_on not in on:
            near = nearest(body.stands_on, on)
            fix = f"did you mean {shown(ON + near)}?" if near else (
                f"the bodies are {cut(', '.join(on))}")
            complaints.add(where, f"found {shown(body.place)}, which is no body; {fix}")
        if body.name in rings:
            complaints.add(where, f"found {shown(body.place)}, but what is below stands on this "
                                  "body; place one of them on the floor or by its center")


def _rings(on: Mapping[str, str]) -> set[str]:
    """Return the names that come back to themselves, each being on another."""
    seen: dict[str, str] = {}           # by whose walk
    rings: set[str] = set()
    for begin in on:
        name = begin
        while name in on and name not in seen:
            seen[name] = begin
            name = on[name]
        # Met on the same walk: all from there on are in a ring.
        while seen.get(name) == begin and name not in rings:
            rings.add(name)
            name = on[name]
    return rings


def _check_asset(mesh: str, where: str, complaints: Complaints) -> None:
    from vfx.geometry.assets.catalog import ASSETS

    name = mesh.removeprefix(ASSET)
    if name not in ASSETS:
        near = nearest(name, ASSETS)
        fix = f"did you mean '{ASSET}{near}'?" if near else f"there are {', '.join(ASSETS)}"
        complaints.add(f"{where}.mesh", f"found {shown(mesh)}, which is no asset; {fix}")


def _with_mesh_paths(bodies: tuple[Body, ...], path: Path) -> tuple[Body, ...]:
    """Return bodies whose mesh files are named from the current folder, not from the shot's."""
    return tuple(
        dataclasses.replace(body, mesh=str(path.parent / body.mesh))
        if body.mesh and not body.mesh.startswith(ASSET) else body for body in bodies)


def _check_directions(
    camera: Camera | None, light: Light | None, area_lights: tuple[AreaLight, ...],
    complaints: Complaints,
) -> None:
    """Refuse directions that point nowhere."""
    if camera is not None:
        view = np.subtract(camera.target, camera.position)
        if math.hypot(*view) < SHORTEST_DIRECTION:
            complaints.add("camera.target", f"found {list(camera.target)}, which is the camera's "
                                            "own position; move one of them")
        elif np.linalg.norm(np.cross(view, camera.up)) <= (
                1e-6 * np.linalg.norm(view) * np.linalg.norm(camera.up)):
            complaints.add("camera.up", f"found {list(camera.up)}, which is zero or along the line "
                                        "of sight; give a direction across it")
    for i, lamp in enumerate(area_lights):
        if math.dist(lamp.target, lamp.position) < SHORTEST_DIRECTION:
            complaints.add(f"area_lights[{i + 1}].target", f"found {list(lamp.target)}, which is "
                                                           "the light's own position; move one")
    if light is not None and math.hypot(*light.key_direction) < SHORTEST_DIRECTION:
        complaints.add("light.key_direction", f"found {list(light.key_direction)}, which is zero "
                                              "or too short; give the direction toward the light")


def _check_wholes(
    sections: Mapping[str, Any], lists: Mapping[str, tuple[Any, ...]], complaints: Complaints
) -> None:
    """Note what is wrong with the keys of each section and of each entry of a list together."""
    for name, section in sections.items():
        complaints.of_whole(section, name)
    for name, items in lists.items():
        for i, item in enumerate(items):
            complaints.of_whole(item, f"{name}[{i + 1}]")


def _check_camera_keys(
    camera: Camera | None, keys: tuple[CameraKey, ...], complaints: Complaints
) -> None:
    """Note keys that do not follow one another, or stand beside another way of the camera."""
    for i, key in enumerate(keys):
        if i and not key.frame - keys[i - 1].frame >= CLOSEST_KEYS:
            complaints.add(f"camera_keys[{i + 1}].frame",
                           f"found {key.frame:g}, which stands after {keys[i - 1].frame:g}; frames "
                           f"must rise from key to key, by at least {CLOSEST_KEYS:g}")
    if keys and camera is not None and camera.usd:
        complaints.add("camera_keys", "stand beside camera.usd, which moves the camera already; "
                                      "keep one of them")


def _check_animations(bodies: tuple[Body, ...], headings: tuple[str, ...], sim: Sim | None,
                      first: int, complaints: Complaints) -> None:
    """Note animations that no body can follow, or that end before they begin."""
    follows = [name for name, room in SOLVERS.items() if room.follows]
    for body, heading in zip(bodies, headings, strict=True):
        if not body.animation:
            continue
        if sim is not None and not SOLVERS[sim.method].follows:
            complaints.add(f"{heading}.animation",
                           f"found {shown(body.animation)}, but with method = \"{sim.method}\" no "
                           "body follows an animation; write method = "
                           + " or ".join(f'"{name}"' for name in reversed(follows))
                           + " in [sim], or remove it")
        if body.animation_until and body.animation_until <= first:
            complaints.add(f"{heading}.animation_until",
                           f"found {body.animation_until:g}, but the shot begins at frame {first}; "
                           "give a later frame, or remove the animation")


def _check_controls(lists: Mapping[str, tuple[Any, ...]], materials: Mapping[str, Material],
                    complaints: Complaints) -> None:
    """Note regions of bodies that there are not, and balls of materials that there are not."""
    for i, ball in enumerate(lists["projectiles"]):
        if ball.material and ball.material not in materials:
            near = nearest(ball.material, list(materials))
            fix = (f"did you mean {shown(near)}?" if near
                   else f"the materials are {cut(', '.join(materials)) or 'none'}")
            complaints.add(f"projectiles[{i + 1}].material",
                           f"found {shown(ball.material)}, which is no material; {fix}")
    bodies = [body.name for body in lists["bodies"]]
    for i, region in enumerate(lists["regions"]):
        if region.body and region.body not in bodies:
            near = nearest(region.body, bodies)
            fix = (f"did you mean {shown(near)}?" if near
                   else f"the bodies are {cut(', '.join(bodies))}")
            complaints.add(f"regions[{i + 1}].body",
                           f"found {shown(region.body)}, which is no body; {fix}")
