"""A CPU device that behaves like a GPU toward careless host code.

Its arrays are not numpy arrays: mixing them with plain numpy arrays, converting them
silently, or calling a numpy function that CuPy lacks raises TypeError, as CuPy would. Code
that runs here keeps host and device arrays apart, on a machine without any GPU. Kernels run
on the host as with :class:`CpuDevice`.

Where CuPy copies from the host by itself (a numpy array as an index), the guard refuses too:
such a copy hides in a loop. The names below were compared with those of CuPy 13 and 14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from vfx.device.bind import HostArray
from vfx.device.cpu import CpuDevice

#: Element-wise functions of numpy and CuPy.
CUPY_UFUNCS = frozenset("""
absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or
bitwise_xor cbrt ceil conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2
expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal
heaviside hypot invert isfinite isinf isnan lcm ldexp left_shift less less_equal log log10
log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor matmul maximum
minimum modf multiply negative nextafter not_equal positive power rad2deg radians reciprocal
remainder right_shift rint sign signbit sin sinh sqrt square subtract tan tanh true_divide
trunc
""".split())

#: Functions of numpy and CuPy that take a shape, numbers or text first.
CUPY_MAKERS = frozenset("arange empty einsum eye full identity indices linspace ones zeros".split())

#: Functions of numpy and CuPy that take a list or tuple of device arrays first.
CUPY_JOINERS = frozenset("""
broadcast_arrays column_stack concatenate dstack hstack meshgrid select stack vstack
""".split())

#: Functions of numpy and CuPy that take a device array (or a number) first.
CUPY_FUNCTIONS = frozenset("""
abs all allclose amax amin any append argmax argmin argpartition argsort argwhere around
array_equal array_split ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d
average bincount bitwise_not broadcast_to choose clip compress conj copy copyto count_nonzero
cross cumprod cumsum delete diag diagflat diagonal diff digitize dot empty_like expand_dims
extract fill_diagonal flatnonzero flip fliplr flipud full_like gradient histogram hsplit
inner interp intersect1d isclose isin isneginf isposinf kron lexsort max mean median min mod
moveaxis nan_to_num nanmax nanmean nanmin nansum ndim nonzero ones_like outer packbits pad
partition percentile prod ptp put putmask quantile ravel ravel_multi_index real repeat reshape
resize roll rollaxis rot90 round searchsorted setdiff1d shape size sort split squeeze
std sum swapaxes take take_along_axis tensordot tile trace transpose tri tril triu union1d
unique unpackbits unravel_index var vdot vsplit where zeros_like
""".split())

#: Functions of numpy.linalg and cupy.linalg.
CUPY_LINALG = frozenset("""
cholesky det eigh eigvalsh inv lstsq matrix_power matrix_rank norm pinv qr slogdet solve
svd
""".split())

#: Types and constants that CuPy re-exports from numpy.
CUPY_NAMES = frozenset("""
bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64
complex128 dtype e finfo floating iinfo inf int_ integer intp nan newaxis number pi
can_cast issubdtype promote_types result_type isscalar
""".split())

#: Methods of numpy.ndarray that cupy.ndarray has.
CUPY_METHODS = frozenset("""
all any argmax argmin argpartition argsort astype choose clip compress conj copy cumprod
cumsum diagonal dot fill flatten item max mean min nonzero partition prod put ravel repeat
reshape round searchsorted sort squeeze std sum swapaxes take tolist trace transpose var view
""".split())

#: numpy answers with a Python value where CuPy gives a device scalar.
DEVICE_SCALARS = frozenset("allclose array_equal count_nonzero".split())


class GuardArray(NDArrayOperatorsMixin):
    """A device array: only other device arrays and scalars may meet it."""

    __array_priority__ = 100

    def __init__(self, data: HostArray) -> None:
        if data.dtype.kind not in "biufc":
            raise TypeError(f"CuPy has no arrays of {data.dtype}")
        self._data = data

    def __array__(self, *_: Any, **__: Any) -> HostArray:
        raise TypeError("a device array is not converted to numpy silently; use device.to_host")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc.__name__ not in CUPY_UFUNCS:
            raise TypeError(f"CuPy has no ufunc {ufunc.__name__}")
        if method != "__call__":
            raise TypeError(f"numpy.{ufunc.__name__}.{method} is not for device arrays")
        for value in inputs:
            refuse_sequence(ufunc.__name__, value)
        return guarded(ufunc(*strip(inputs), **strip(kwargs)))

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        # CuPy looks a function up by its place in numpy: numpy.linalg.norm -> cupy.linalg.norm.
        place, name = function.__module__, function.__name__
        if place == "numpy.linalg" and name in CUPY_LINALG:
            return guarded(function(*strip(args), **strip(kwargs)))
        if place != "numpy" or name not in CUPY_FUNCTIONS | CUPY_JOINERS | CUPY_MAKERS:
            raise TypeError(f"{place}.{name} is not among the functions that CuPy offers to this "
                            "project (vfx.device.guard)")
        return call(name, function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name not in CUPY_METHODS:
            raise AttributeError(f"a device array has no attribute {name!r}")
        method = getattr(self._data, name)

        def guarded_method(*args: Any, **kwargs: Any) -> Any:
            check_arguments(name, (self, *args), kwargs)
            result = method(*strip(args), **strip(kwargs))
            return result if name in ("item", "tolist") else guarded(result)
        return guarded_method

    def __getitem__(self, index: Any) -> Any:
        return guarded(self._data[strip(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        refuse_sequence("assignment", value)
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

    def __format__(self, spec: str) -> str:
        return format(self._data, spec)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent along each axis."""
        return self._data.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each axis."""
        return self._data.strides

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
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._data.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
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
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(guarded(item) for item in value))
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
    if isinstance(value, slice):
        return slice(*(strip_bound(bound) for bound in (value.start, value.stop, value.step)))
    if isinstance(value, dict):
        return {key: strip(item) for key, item in value.items()}
    return value


def strip_bound(bound: Any) -> Any:
    """Return a slice's bound, which CuPy does not take from a device scalar."""
    if isinstance(bound, GuardArray):
        raise TypeError("a device scalar bounds a slice; use int(...)")
    return bound


def refuse_sequence(name: str, value: Any) -> None:
    """Raise on a list or tuple where CuPy takes only arrays and numbers."""
    if isinstance(value, (list, tuple)):
        raise TypeError(f"{name}: CuPy takes a device array or a number here, "
                        f"not a {type(value).__name__}")


def check_arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise where numpy takes arguments that CuPy does not."""
    if name in CUPY_FUNCTIONS and args:
        refuse_sequence(name, args[0])
    if name == "lexsort" and not (len(args) == 1 and not kwargs):
        raise TypeError("lexsort: CuPy takes one device array of keys and nothing else")
    if name == "repeat" and isinstance(kwargs.get("repeats", args[1:2] and args[1]), GuardArray):
        raise TypeError("repeat: CuPy takes a number or a list of numbers, not a device array")
    if name == "searchsorted" and not all(isinstance(a, GuardArray) for a in args[:2]):
        raise TypeError("searchsorted: CuPy takes two device arrays")


def call(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a numpy function on device arrays, refusing what CuPy refuses."""
    check_arguments(name, args, kwargs)
    result = function(*strip(args), **strip(kwargs))
    if name in DEVICE_SCALARS and not isinstance(result, np.ndarray):
        return GuardArray(np.asarray(result))
    return guarded(result)


def take_in(data: Any) -> Any:
    """Return host data as it is; of device arrays, also in lists, what is behind them."""
    if isinstance(data, GuardArray):
        return data._data
    if isinstance(data, (list, tuple)):
        return [take_in(item) for item in data]
    return data


class GuardModule:
    """The ``xp`` of the guard device: numpy as far as CuPy goes, on device arrays."""

    ndarray = GuardArray

    def __init__(self) -> None:
        self.linalg = GuardLinalg()

    def __getattr__(self, name: str) -> Any:
        if name in CUPY_NAMES:
            return getattr(np, name)
        # cupy.array and cupy.asarray take host data on purpose: they are the way in.
        if name in ("array", "asarray"):
            function = getattr(np, name)
            return lambda data, *args, **kwargs: guarded(function(take_in(data), *args, **kwargs))
        if name not in CUPY_UFUNCS | CUPY_FUNCTIONS | CUPY_JOINERS | CUPY_MAKERS:
            raise AttributeError(f"xp.{name} is not among the functions that CuPy offers to this "
                                 "project (vfx.device.guard)")
        function = getattr(np, name)
        if isinstance(function, np.ufunc):
            return lambda *args, **kwargs: call_ufunc(function, args, kwargs)
        return lambda *args, **kwargs: call(name, function, args, kwargs)


class GuardLinalg:
    """The ``xp.linalg`` of the guard device."""

    def __getattr__(self, name: str) -> Any:
        if name not in CUPY_LINALG:
            raise AttributeError(f"xp.linalg.{name} is not among the functions that CuPy offers "
                                 "to this project (vfx.device.guard)")
        function = getattr(np.linalg, name)
        return lambda *args, **kwargs: guarded(function(*strip(args), **strip(kwargs)))


def call_ufunc(ufunc: Any, args: Any, kwargs: Any) -> Any:
    """Call an element-wise function, refusing lists as CuPy does."""
    for value in args:
        refuse_sequence(ufunc.__name__, value)
    return guarded(ufunc(*strip(args), **strip(kwargs)))


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
        if not isinstance(array, GuardArray):
            raise TypeError(f"takes a device array, not {type(array).__name__}")
        return array._data

    def from_host(self, array: HostArray) -> Any:
        """Copy a host array to a guarded array."""
        if isinstance(array, GuardArray):
            raise TypeError("from_host was given a device array")
        return GuardArray(np.array(array, order="C"))
