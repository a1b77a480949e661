"""One kernel source, two processors."""

from vfx.device.choose import open_device
from vfx.device.launch import Device, DeviceError, KernelError, Launch

__all__ = ["Device", "DeviceError", "KernelError", "Launch", "open_device"]
