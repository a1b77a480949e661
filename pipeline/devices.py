"""Devices, as commands name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vfx.pipeline.errors import MissingInput

if TYPE_CHECKING:
    from vfx.device import Device


def open_device(name: str, threads: int | None) -> Device:
    """Open the device of ``--device`` and ``--threads``, or raise MissingInput with the reason."""
    from vfx.device import DeviceError
    from vfx.device import open_device as open_by_name

    try:
        device = open_by_name(name)
        if threads is not None:
            device.threads = threads
    except DeviceError as error:
        raise MissingInput(f"--device {name}: {error}") from None
    return device
