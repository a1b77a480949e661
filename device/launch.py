"""What all devices share: the device interface, kernels and their launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vfx.device.bind import HostArray, KernelError, Record, bind, bind_fields, bind_rows
from vfx.device.source import Signature, Struct, flatten, read_struct, signatures


class DeviceError(Exception):
    """The asked-for device is not to be had here; the message says why and what to do."""


class Launch:
    """A kernel with its arguments bound and checked, ready to run any number of times."""

    def __init__(self, kernel: Kernel, arguments: Sequence[Any]) -> None:
        self.kernel = kernel
        name = kernel.signature.name
        self.arguments = [
            bind(kernel.device, f"kernel {name}, argument {parameter.name}", parameter, argument)
            for parameter, argument in zip(kernel.signature.parameters, arguments, strict=True)]
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
        self._structs: dict[tuple[str, str], Struct] = {}

    def module(self, name: str) -> Module:
        """Return the kernels of a ``.cu`` file, named relative to the package root."""
        if name not in self._modules:
            text = flatten(name)
            native = self._load(name, text)
            self._modules[name] = Module(
                {s.name: Kernel(self, s, native(s.name)) for s in signatures(text).values()}, name)
        return self._modules[name]

    def struct(self, file: str, name: str, /, **fields: Any) -> Record:
        """Return a struct of a kernel file or header, filled by the names of its fields.

        Its arrays live as long as the struct, or a launch prepared with it.
        """
        return bind_fields(self, self._struct(file, name), fields)

    def rows(self, file: str, name: str, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return many structs, each filled by name, as an array (n, words) of this device.

        All their fields are numbers of one type; a kernel takes a pointer to that type and casts
        it: ``((const Ball *)ball)[i]``.
        """
        return self.from_host(bind_rows(self, self._struct(file, name), rows))

    def fields(self, file: str, name: str) -> list[str]:
        """Return the names of a struct's fields."""
        return [field.name for field in self._struct(file, name).fields]

    def _struct(self, file: str, name: str) -> Struct:
        if (file, name) not in self._structs:
            self._structs[file, name] = read_struct(flatten(file), name)
        return self._structs[file, name]

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
    def address(self, array: Any) -> int:
        """Return where an array of this device begins in its memory."""

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
