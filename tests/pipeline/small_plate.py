"""A glass plate that a ball breaks, small enough to run whole in a test."""

from __future__ import annotations


def plate_shot(frames: str, steps: int, resolution: tuple[int, int], side: int) -> str:
    """Return a shot of a plate, ``side`` cubes long and high and two thick.

    It takes ``steps`` a frame. Its last table is [render], for tests to go on with.
    """
    return f"""\
[shot]
name = "plate"
frames = "{frames}"
[time]
steps_per_frame = {steps}
[[bodies]]
name = "plate"
material = "glass"
cells = [{side}, {side}, 2]
spacing = 2e-3
center = [0.0, 0.07, 0.0]
[materials.glass]
[[projectiles]]
position = [0.0, 0.07, 0.0135]
velocity = [0.0, 0.0, -60.0]
[sim]
timestep = "auto"
[render]
resolution = [{resolution[0]}, {resolution[1]}]
samples = 2
"""
