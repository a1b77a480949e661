"""The colliders of a shot as its pictures show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.raytrace.props import Prop
    from vfx.sim.settings import Collider


def is_seen(collider: Collider) -> bool:
    """Whether a collider is in the picture: a plane has no end and never is."""
    return collider.visible and collider.shape != "plane"


def collider_props(shot: Shot) -> list[Prop]:
    """Return the colliders that are in the picture, named by their number in the shot."""
    import numpy as np
    from scipy.spatial.transform import Rotation

    from vfx.raytrace.props import Prop

    props = []
    for number, collider in enumerate(shot.colliders):
        if not is_seen(collider):
            continue
        name, finish = f"collider_{number + 1}", shot.collider_looks[number]
        key = np.array(collider.keys or ((0.0, *collider.position),), float)
        if collider.shape == "sphere":
            props.append(Prop(name, finish, key, radius=collider.radius))
        else:
            turn = Rotation.from_euler("xyz", collider.rotation, degrees=True).as_matrix()
            props.append(Prop(name, finish, key, size=collider.size, rotation=turn))
    return props
