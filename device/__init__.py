"""One kernel source, two processors."""

from vfx.device.bind import KernelError, Record
from vfx.device.choose import open_device
from vfx.device.launch import Device, DeviceError, Launch

__all__ = ["Device", "DeviceError", "KernelError", "Launch", "Record", "open_device"]
