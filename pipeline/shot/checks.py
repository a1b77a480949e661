"""What is checked before a stage runs, and what is warned of: all of one form, for its table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vfx.pipeline.errors import PipelineError
from vfx.pipeline.shot import needs
from vfx.pipeline.shot.inputs import Inputs
from vfx.pipeline.shot.plausible import unit_warnings

if TYPE_CHECKING:
    from vfx.device import Device


@dataclass(frozen=True)
class Machine:
    """Where stages are to run: bytes of memory that are free, and whether it is this machine."""

    host_memory: int
    device_memory: int
    is_here: bool = True


#: One of which nothing is known, as the workers of a farm.
ANY_MACHINE = Machine(sys.maxsize, sys.maxsize, is_here=False)

#: Raises PipelineError if a shot cannot be made so.
Check = Callable[[Inputs, Machine], object]


def this_machine(device: Device | None = None) -> Machine:
    """Return what this machine has; without a device, kernels have the main memory."""
    host = needs.host_memory()
    return Machine(host, host if device is None else device.memory()[0])


def meshes(inputs: Inputs, machine: Machine) -> None:
    """Check that meshes can become solids."""
    needs.check_meshes(inputs.shot)


def uv(inputs: Inputs, machine: Machine) -> None:
    """Check that bodies with a texture know where it lies."""
    needs.check_uv(inputs.shot)


def bodies(inputs: Inputs, machine: Machine) -> None:
    """Check that bodies can be divided, in the memory there is."""
    needs.check_geometry(inputs.shot, machine.host_memory)


def floor(inputs: Inputs, machine: Machine) -> None:
    """Check that bodies begin above the floor."""
    needs.check_floor(inputs.shot)


def physics(inputs: Inputs, machine: Machine) -> None:
    """Check that the simulation is stable and fits into the memory."""
    needs.check_physics(inputs.shot, machine.device_memory)


def engine(inputs: Inputs, machine: Machine) -> None:
    """Check that what the solver needs is installed."""
    if machine.is_here:
        needs.check_engine(inputs.shot)


def animations(inputs: Inputs, machine: Machine) -> None:
    """Check that the animations that bodies follow can be read."""
    inputs.courses()


def density_pictures(inputs: Inputs, machine: Machine) -> None:
    """Check that the pictures of [[weakening]] can be read."""
    inputs.densities()


def film(inputs: Inputs, machine: Machine) -> None:
    """Check that pictures fit into the memory."""
    needs.check_film(inputs.shot, machine.device_memory)


def environment(inputs: Inputs, machine: Machine) -> None:
    """Check that the environment can be read."""
    inputs.environment()


def floor_texture(inputs: Inputs, machine: Machine) -> None:
    """Check that the image on the floor can be read."""
    inputs.texture()


def surface_textures(inputs: Inputs, machine: Machine) -> None:
    """Check that the images on surfaces can be read."""
    inputs.images()


def camera(inputs: Inputs, machine: Machine) -> None:
    """Check that the camera is neither below the floor nor in something opaque."""
    needs.check_camera(inputs.shot, inputs.camera())


def denoiser(inputs: Inputs, machine: Machine) -> None:
    """Check that a denoiser is there where one is wanted."""
    if machine.is_here:
        needs.check_denoising(inputs.shot)


def start_warnings(inputs: Inputs) -> list[str]:
    """Return what of the numbers and of the places at the start is odd."""
    shot = inputs.shot
    return [*unit_warnings(shot), *shot.plan.warnings(), *needs.start_warnings(shot)]


def camera_warnings(inputs: Inputs) -> list[str]:
    """Return what the camera does not see; that it cannot be read is said by the check."""
    with suppress(PipelineError):
        return needs.camera_warnings(inputs.shot, inputs.camera())
    return []
