"""A CPU device that behaves like a GPU toward careless host code.

Its arrays are not numpy arrays: mixing them with plain numpy arrays, converting them
silently, or calling a numpy function that CuPy lacks raises TypeError, as CuPy would. Code
that runs here keeps host and device arrays apart, on a machine without any GPU. Kernels run
on the host as with :class:`CpuDevice`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from vfx.device.cpu import CpuDevice
from vfx.device.launch import HostArray

#: numpy functions that this project uses on devices and that CuPy offers too.
CUPY_FUNCTIONS = frozenset("""
abs absolute add all allclose amax amin any arange arccos argmax argmin argsort array
array_equal asarray ascontiguousarray bincount bitwise_and bitwise_or broadcast_to ceil clip
concatenate copy cos count_nonzero cross cumsum deg2rad diff divide dot einsum empty
empty_like equal exp expand_dims eye flatnonzero floor full full_like greater hypot isfinite
isin isnan lexsort linspace log log2 logical_and logical_not logical_or matmul max maximum
mean meshgrid min minimum mod moveaxis multiply nonzero not_equal ones ones_like outer power
prod ravel repeat reshape right_shift rint roll round searchsorted sign sin split sqrt square
squeeze stack std subtract sum swapaxes take tan tanh tensordot tile transpose trunc unique
vstack where zeros zeros_like
""".split())

#: Types and constants that CuPy re-exports from numpy.
CUPY_NAMES = frozenset("""
bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 dtype
inf nan newaxis pi intp
""".split())

#: Array methods and attributes that cupy.ndarray has.
CUPY_METHODS = frozenset("""
all any argmax argmin argsort astype clip copy cumsum dot fill flatten max mean min nonzero
prod ravel repeat reshape round sort squeeze std sum swapaxes take transpose var view
""".split())


class GuardArray(NDArrayOperatorsMixin):
    """A device array: only other device arrays and Python scalars may meet it."""

    __array_priority__ = 100

    def __init__(self, data: HostArray) -> None:
        self._data = data

    def __array__(self, *_: Any, **__: Any) -> HostArray:
        raise TypeError("a device array is not converted to numpy silently; use device.to_host")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc.__name__ not in CUPY_FUNCTIONS | {
                "negative", "positive", "floor_divide", "true_divide", "remainder", "less",
                "less_equal", "greater_equal", "left_shift", "bitwise_xor", "invert", "fmin",
                "fmax", "reciprocal", "arctan2", "arcsin", "arctan", "conjugate"}:
            raise TypeError(f"CuPy has no ufunc {ufunc.__name__}")
        return guarded(getattr(ufunc, method)(*strip(inputs), **strip(kwargs)))

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ not in CUPY_FUNCTIONS:
            raise TypeError(f"numpy.{function.__name__} is not among the functions that CuPy "
                            "offers to this project")
        return guarded(function(*strip(args), **strip(kwargs)))

    def __getattr__(self, name: str) -> Any:
        if name in CUPY_METHODS:
            method = getattr(self._data, name)
            return lambda *args, **kwargs: guarded(method(*strip(args), **strip(kwargs)))
        raise AttributeError(f"a device array has no attribute {name!r}")

    def __getitem__(self, index: Any) -> Any:
        return guarded(self._data[strip(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._data[strip(index)] = strip(value)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        return (guarded(item) for item in self._data)

    def __bool__(self) -> bool:
        return bool(self._data)

    def __int__(self) -> int:
        return int(self._data)

    def __float__(self) -> float:
        return float(self._data)

    def __index__(self) -> int:
        raise TypeError("a device scalar is not an index; use int(...)")

    def __repr__(self) -> str:
        return f"GuardArray({self._data!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent along each axis."""
        return self._data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._data.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._data.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._data.size

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self._data.nbytes

    @property
    def flags(self) -> Any:
        """Memory layout."""
        return self._data.flags

    @property
    def T(self) -> GuardArray:  # noqa: N802 (numpy's name)
        """The transpose."""
        return GuardArray(self._data.T)


def guarded(value: Any) -> Any:
    """Wrap numpy results, scalars as 0-d arrays as CuPy does; tuples and lists likewise."""
    if isinstance(value, (np.ndarray, np.generic)):
        return GuardArray(np.asarray(value))
    if isinstance(value, (tuple, list)):
        return type(value)(guarded(item) for item in value)
    return value


def strip(value: Any) -> Any:
    """Unwrap device arrays; a plain numpy array among them is an error."""
    if isinstance(value, GuardArray):
        return value._data
    if isinstance(value, np.ndarray):
        raise TypeError("a numpy array meets a device array; use device.from_host first")
    if isinstance(value, (tuple, list)):
        return type(value)(strip(item) for item in value)
    if isinstance(value, dict):
        return {key: strip(item) for key, item in value.items()}
    return value


class GuardModule:
    """The ``xp`` of the guard device: numpy as far as CuPy goes, on device arrays."""

    ndarray = GuardArray

    def __getattr__(self, name: str) -> Any:
        if name in CUPY_NAMES:
            return getattr(np, name)
        if name not in CUPY_FUNCTIONS:
            raise AttributeError(f"xp.{name} is not among the functions that CuPy offers to this "
                                 "project (vfx.device.guard)")
        function = getattr(np, name)
        # cupy.array and cupy.asarray take host data on purpose: they are the way in.
        if name in ("array", "asarray", "ascontiguousarray"):
            return lambda data, *args, **kwargs: guarded(
                function(getattr(data, "_data", data), *args, **kwargs))
        return lambda *args, **kwargs: guarded(function(*strip(args), **strip(kwargs)))


class GuardDevice(CpuDevice):
    """The CPU behind guarded arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "guard"
        self.xp = GuardModule()

    def owns(self, array: Any) -> bool:
        """Whether ``array`` is a guarded array."""
        return type(array) is GuardArray

    def data(self, array: Any) -> HostArray:
        """Return the numpy array behind a guarded array."""
        data: HostArray = array._data
        return data

    def from_host(self, array: HostArray) -> Any:
        """Copy a host array to a guarded array."""
        if isinstance(array, GuardArray):
            raise TypeError("from_host was given a device array")
        return GuardArray(np.array(array, order="C"))
