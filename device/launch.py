"""What all devices share: the device interface, and the check of a kernel's arguments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vfx.device.source import Parameter, Signature, flatten, signatures

HostArray = npt.NDArray[Any]


class DeviceError(Exception):
    """The asked-for device is not to be had here; the message says why and what to do."""


class KernelError(TypeError):
    """A kernel was launched with arguments that its source does not allow."""


class Launch:
    """A kernel with its arguments bound and checked, ready to run any number of times."""

    def __init__(self, kernel: Kernel, arguments: Sequence[Any]) -> None:
        self.kernel = kernel
        self.arguments = [bind(kernel, parameter, argument) for parameter, argument
                          in zip(kernel.signature.parameters, arguments, strict=True)]
        self.count = int(self.arguments[0])


class Kernel:
    """A kernel of one device. Call it to launch it; its first argument is the item count."""

    def __init__(self, device: Device, signature: Signature, native: Any) -> None:
        self.device = device
        self.signature = signature
        self.native = native

    def prepare(self, *arguments: Any) -> Launch:
        """Bind arguments for :meth:`Device.run`."""
        expected = len(self.signature.parameters)
        if len(arguments) != expected:
            names = ", ".join(p.name for p in self.signature.parameters)
            raise KernelError(f"kernel {self.signature.name}: {len(arguments)} arguments given, "
                              f"it takes {expected}: {names}")
        return Launch(self, arguments)

    def __call__(self, *arguments: Any) -> None:
        """Launch over ``arguments[0]`` items."""
        self.device.run([self.prepare(*arguments)])


def bind(kernel: Kernel, parameter: Parameter, argument: Any) -> Any:
    """Return ``argument`` as the device takes it, or raise naming kernel and argument."""
    where = f"kernel {kernel.signature.name}, argument {parameter.name}"
    if parameter.role == "value":
        return bind_value(where, parameter, argument)
    device = kernel.device
    if not device.owns(argument):
        raise KernelError(f"{where}: takes an array of device {device.name}, "
                          f"not {type(argument).__module__}.{type(argument).__name__}")
    if argument.dtype != np.dtype(parameter.dtype):
        raise KernelError(f"{where}: takes {parameter.dtype}, the array holds {argument.dtype}")
    if not argument.flags.c_contiguous:
        raise KernelError(f"{where}: the array is not C-contiguous")
    if parameter.role != "in" and not device.writable(argument):
        raise KernelError(f"{where}: the kernel writes to it, but the array is read-only")
    return argument


def bind_value(where: str, parameter: Parameter, argument: Any) -> Any:
    """Return a number as the numpy scalar of the parameter's type; nothing is cut off."""
    if (isinstance(argument, (bool, np.bool_))
            or not isinstance(argument, (int, float, np.integer, np.floating))):
        raise KernelError(f"{where}: takes one {parameter.ctype}, not {type(argument).__name__}")
    dtype = np.dtype(parameter.dtype)
    try:
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                value = dtype.type(float(argument))
            fits = math.isinf(value) == math.isinf(argument)
        else:
            number, info = int(argument), np.iinfo(dtype)
            fits = number == argument and info.min <= number <= info.max
            value = dtype.type(number if fits else 0)
    except (OverflowError, ValueError):  # of an infinite, undefined or very long number
        fits = False
    if not fits:
        raise KernelError(f"{where}: {argument} does not fit {parameter.ctype}")
    return value


class Module:
    """The kernels of one source file, as attributes."""

    def __init__(self, kernels: dict[str, Kernel], name: str) -> None:
        self._kernels = kernels
        self._name = name

    def __dir__(self) -> list[str]:
        return sorted(self._kernels)

    def __getattr__(self, kernel: str) -> Kernel:
        try:
            return self._kernels[kernel]
        except KeyError:
            raise AttributeError(f"{self._name} has no kernel {kernel!r}; "
                                 f"it has {', '.join(sorted(self._kernels))}") from None


class Device(ABC):
    """A processor that runs kernels on arrays of its own.

    ``xp`` is the array module whose arrays the kernels take. Nothing outside this package
    knows which processor is behind it.
    """

    name: str
    xp: Any
    #: Processor and instruction set; results are bit-identical where this is equal.
    description: str

    def __init__(self) -> None:
        self._modules: dict[str, Module] = {}

    def module(self, name: str) -> Module:
        """Return the kernels of a ``.cu`` file, named relative to the package root."""
        if name not in self._modules:
            text = flatten(name)
            native = self._load(name, text)
            self._modules[name] = Module(
                {s.name: Kernel(self, s, native(s.name)) for s in signatures(text).values()}, name)
        return self._modules[name]

    @abstractmethod
    def _load(self, name: str, text: str) -> Callable[[str], Any]:
        """Return a function from a kernel's name to its native entry."""

    @abstractmethod
    def owns(self, array: Any) -> bool:
        """Whether ``array`` is an array of this device."""

    def writable(self, _array: Any) -> bool:
        """Whether kernels may write to an array of this device."""
        return True

    @abstractmethod
    def from_host(self, array: HostArray) -> Any:
        """Copy a host array to the device, C-contiguous."""

    @abstractmethod
    def to_host(self, array: Any) -> HostArray:
        """Copy a device array to the host."""

    def run(self, launches: Sequence[Launch], repeat: int = 1, halt: Any = None) -> None:
        """Run prepared launches in order, ``repeat`` times, without Python in between.

        Kernels may end the repetition by setting ``halt[0]`` (an int32 device array) and
        must themselves do nothing while it is set: a device may run some more rounds.
        """
        for launch in launches:
            if launch.kernel.device is not self:
                raise KernelError(f"kernel {launch.kernel.signature.name}: prepared for device "
                                  f"{launch.kernel.device.name}, run on {self.name}")
        if halt is not None and not (
                self.owns(halt) and halt.dtype == np.int32 and halt.size > 0
                and halt.flags.c_contiguous):
            raise KernelError(f"halt: takes an int32 array of device {self.name} "
                              "with at least one element")
        if launches and repeat > 0:
            self._run(launches, repeat, halt)

    @abstractmethod
    def _run(self, launches: Sequence[Launch], repeat: int, halt: Any) -> None:
        """Run what :meth:`run` has checked."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything launched is done."""

    @abstractmethod
    def memory(self) -> tuple[int, int]:
        """Return (available, total) bytes of memory for arrays."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """Number of host threads (1 on a GPU)."""

    @threads.setter
    @abstractmethod
    def threads(self, count: int) -> None: ...
