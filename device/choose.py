"""Choose a device by name: ``auto``, ``cpu``, ``guard`` or ``cuda:N``, and ``warp`` for tests."""

from __future__ import annotations

import re

from vfx.device.cpu import CpuDevice
from vfx.device.cuda import CudaDevice
from vfx.device.guard import GuardDevice
from vfx.device.launch import Device, DeviceError
from vfx.device.warp import WarpDevice


def open_device(name: str = "auto") -> Device:
    """Open a device; ``auto`` takes the first GPU that works and else the CPU."""
    if name == "cpu":
        return CpuDevice()
    if name == "guard":
        return GuardDevice()
    if name == "warp":
        return WarpDevice()
    if name == "auto":
        try:
            return CudaDevice(0)
        except DeviceError:
            return CpuDevice()
    match = re.fullmatch(r"cuda(?::(\d{1,3}))?", name)
    if match is None:
        raise DeviceError(f"unknown device {name!r}; use auto, cpu, guard or cuda:N")
    return CudaDevice(int(match.group(1) or 0))
