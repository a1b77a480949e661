"""One kernel source, two processors."""

from vfx.device.launch import Device, DeviceError, KernelError, Launch
from vfx.device.select import open_device

__all__ = ["Device", "DeviceError", "KernelError", "Launch", "open_device"]
