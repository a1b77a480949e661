"""Projectiles that are no balls: a box or a mesh is thrown as a body that never breaks.

It is divided, simulated, drawn, exported and matted as any body is, with few elements, for nothing
of it parts. Balls stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vfx.geometry.handoff.bodies import Body
from vfx.pipeline.shot.validate import Complaints, shown
from vfx.sim.settings import Projectile

#: Elements of a box or a mesh that does not say how many.
ELEMENTS = 300
#: What a projectile may say that is no ball, and what no ball says.
_OF_BODIES = frozenset(("position", "velocity", "material", "box", "mesh", "height", "rotation",
                        "angular_velocity", "elements"))
_NOT_OF_BALLS = ("height", "rotation", "angular_velocity", "elements")


def check_projectiles(tables: Any, complaints: Complaints) -> None:
    """Note keys of [[projectiles]] that do not go with what each one is."""
    for i, table in enumerate(tables if isinstance(tables, list) else ()):
        if not isinstance(table, dict):
            continue
        where, shapes = f"projectiles[{i + 1}]", [key for key in ("box", "mesh") if key in table]
        if not shapes:
            for key in _NOT_OF_BALLS:
                if key in table:
                    complaints.add(f"{where}.{key}", f"found {shown(table[key])}, but it is a "
                                                     "ball; give a box or a mesh, or remove it")
            continue
        if not table.get("material"):
            complaints.add(f"{where}.material", f"missing; a {shapes[0]} has the mass and the look "
                                                "of its material, a [materials.<name>] of this "
                                                "file")
        for key in sorted(Projectile.__dataclass_fields__.keys() & table.keys() - _OF_BODIES):
            complaints.add(f"{where}.{key}", f"found {shown(table[key])}, which is for balls; a "
                                             f"{shapes[0]} hits as bodies do: remove it")


def thrown_bodies(projectiles: Sequence[Projectile]) -> Mapping[int, Body]:
    """Return the bodies that projectiles with a shape are, by their number, counted from 1."""
    return {number: Body(
        name=f"projectile_{number}", material=each.material, shape="voronoi", box=each.box,
        mesh=each.mesh, height=each.height, elements=each.elements or ELEMENTS,
        center=each.position, rotation=each.rotation, velocity=each.velocity,
        angular_velocity=each.angular_velocity, whole=True)
        for number, each in enumerate(projectiles, 1) if each.mesh or any(each.box)}
