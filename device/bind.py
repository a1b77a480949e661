"""The check of what a kernel is given, and of what its structs are filled with, by the source."""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vfx.device.source import Parameter, Struct

HostArray = npt.NDArray[Any]


class KernelError(TypeError):
    """A kernel was launched with arguments that its source does not allow."""


class Memory(Protocol):
    """What of a device is needed to check its arrays."""

    name: str

    def owns(self, array: Any) -> bool:
        """Whether ``array`` is an array of this device."""

    def writable(self, array: Any) -> bool:
        """Whether kernels may write to an array of this device."""

    def address(self, array: Any) -> int:
        """Return where an array of this device begins in its memory."""


class Record:
    """A struct with all its fields bound and checked; it keeps its arrays alive."""

    def __init__(self, device: Memory, struct: Struct, fields: Mapping[str, Any]) -> None:
        self.device = device
        self.struct = struct
        self.fields = fields
        #: (1,) of the struct's layout, as a kernel takes it.
        self.value: HostArray = np.zeros(1, struct_dtype(struct))
        for field in struct.fields:
            bound = fields[field.name]
            if isinstance(bound, Record):
                self.value[field.name] = bound.value
            else:
                self.value[field.name] = (
                    bound if field.role == "value" else device.address(bound))

    def __repr__(self) -> str:
        return f"<struct {self.struct.name} of device {self.device.name}>"


@functools.cache
def struct_dtype(struct: Struct) -> np.dtype[Any]:
    """Return the numpy dtype that lies in memory as the struct does."""
    formats = [np.dtype(np.uintp) if field.role != "value" else
               struct_dtype(field.struct) if field.struct else np.dtype(field.dtype)
               for field in struct.fields]
    return np.dtype({"names": [field.name for field in struct.fields], "formats": formats,
                     "offsets": list(struct.offsets), "itemsize": struct.size})


def bind_fields(device: Memory, struct: Struct, fields: Mapping[str, Any]) -> Record:
    """Return a struct filled by name, or raise naming struct and field."""
    names = [field.name for field in struct.fields]
    for name in fields:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names)}"
            raise KernelError(f"struct {struct.name}, field {name}: unknown; {hint}")
    missing = [name for name in names if name not in fields]
    if missing:
        raise KernelError(f"struct {struct.name}: nothing given for {', '.join(missing)}")
    return Record(device, struct, {
        field.name: bind(device, f"struct {struct.name}, field {field.name}", field,
                         fields[field.name]) for field in struct.fields})


def bind_rows(device: Memory, struct: Struct, rows: Sequence[Mapping[str, Any]]) -> HostArray:
    """Return structs filled by name as rows of numbers, (n, words), all of one type."""
    kinds = {field.dtype if field.role == "value" else "pointer" for field in leaves(struct)}
    if len(kinds) > 1 or "pointer" in kinds:
        raise KernelError(f"struct {struct.name}: rows hold numbers of one type, "
                          f"not {', '.join(sorted(kinds))}")
    dtype = np.dtype(kinds.pop())
    values = [bind_fields(device, struct, row).value for row in rows]
    table: HostArray = np.concatenate([np.zeros(0, struct_dtype(struct)), *values]).view(dtype)
    return table.reshape(len(rows), struct.size // dtype.itemsize)


def leaves(struct: Struct) -> Iterator[Parameter]:
    """Yield the fields of a struct and of those inside it that are no structs themselves."""
    for field in struct.fields:
        if field.struct is None:
            yield field
        else:
            yield from leaves(field.struct)


def bind(device: Memory, where: str, parameter: Parameter, argument: Any) -> Any:
    """Return ``argument`` as the device takes it, or raise saying where it does not fit."""
    if parameter.struct is not None:
        return bind_record(device, where, parameter.struct, argument)
    if parameter.role == "value":
        return bind_value(where, parameter, argument)
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


def bind_record(device: Memory, where: str, struct: Struct, argument: Any) -> Record:
    """Return a struct that was made for this device and as this source has it."""
    if [field.name for field in struct.fields] == ["x", "y", "z"] and (
            isinstance(argument, (tuple, list))
            or (isinstance(argument, np.ndarray) and argument.ndim == 1)):
        if len(argument) != 3:
            raise KernelError(f"{where}: takes a {struct.name} of 3 numbers, not {len(argument)}")
        return Record(device, struct, {
            field.name: bind_value(f"{where}.{field.name}", field, number)
            for field, number in zip(struct.fields, argument, strict=True)})
    if not isinstance(argument, Record):
        raise KernelError(f"{where}: takes a struct {struct.name}, made by device.struct(...), "
                          f"not {type(argument).__module__}.{type(argument).__name__}")
    if argument.device is not device:
        raise KernelError(f"{where}: takes a struct of device {device.name}, not of "
                          f"{argument.device.name}")
    if argument.struct != struct:
        other = " with other fields" if argument.struct.name == struct.name else ""
        raise KernelError(f"{where}: takes a struct {struct.name}, not {argument.struct.name}"
                          f"{other}")
    return argument


def bind_value(where: str, parameter: Parameter, argument: Any) -> Any:
    """Return a number as the numpy scalar of the parameter's type; nothing is cut off."""
    is_bool = isinstance(argument, (bool, np.bool_))
    is_number = not is_bool and isinstance(argument, (int, float, np.integer, np.floating))
    if not (is_bool if parameter.ctype == "bool" else is_number):
        raise KernelError(f"{where}: takes one {parameter.ctype}, not {type(argument).__name__}")
    dtype = np.dtype(parameter.dtype)
    try:
        if dtype.kind == "b":
            value, fits = np.bool_(argument), True
        elif dtype.kind == "f":
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
