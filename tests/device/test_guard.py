"""Laws of the guard device: it refuses what a GPU would refuse, and nothing that works there."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from vfx.device import Device, open_device
from vfx.device import guard as lists


@pytest.fixture
def guard() -> Device:
    return open_device("guard")


@pytest.fixture
def a(guard: Device) -> Any:
    return guard.from_host(np.arange(6, dtype=np.float32))


HOST = np.arange(6, dtype=np.float32)


@pytest.mark.parametrize("mix", [
    lambda a: a + HOST, lambda a: HOST + a, lambda a: a < HOST, lambda a: np.equal(HOST, a),
    lambda a: a @ HOST, lambda a: HOST @ a, lambda a: np.add(HOST, a),
    lambda a: np.add(a, a, out=np.empty(6, np.float32)), lambda a: np.maximum(HOST, a),
    lambda a: a.__iadd__(HOST), lambda a: a.dot(HOST), lambda a: a.take(np.array([1])),
], ids=range(12))
def test_arithmetic_refuses_numpy_arrays(a: Any, mix: Any) -> None:
    with pytest.raises(TypeError, match="numpy array meets a device array"):
        mix(a)


def test_host_array_is_not_changed_in_place_by_a_device_array(a: Any) -> None:
    host = HOST.copy()
    with pytest.raises(TypeError):
        host += a
    with pytest.raises(TypeError):
        host[:] = a


@pytest.mark.parametrize("function", [
    lambda a: np.concatenate([a, HOST]), lambda a: np.concatenate([HOST, a]),
    lambda a: np.stack((a, HOST)), lambda a: np.where(a > 1, a, HOST),
    lambda a: np.where(HOST > 1, a, a), lambda a: np.dot(HOST, a),
    lambda a: np.isin(a, HOST), lambda a: np.take(a, np.array([1, 2])),
    lambda a: np.einsum("i,i->", a, HOST), lambda a: np.clip(a, HOST, 3),
], ids=range(10))
def test_numpy_functions_refuse_to_mix(a: Any, function: Any) -> None:
    with pytest.raises(TypeError, match="numpy array meets a device array"):
        function(a)


@pytest.mark.parametrize("function", [
    lambda xp, a: xp.concatenate([a, HOST]), lambda xp, a: xp.sum(HOST),
    lambda xp, a: xp.sqrt(HOST), lambda xp, a: xp.where(a > 1, a, HOST),
    lambda xp, a: xp.stack([HOST, HOST]), lambda xp, a: xp.zeros_like(HOST),
    lambda xp, a: xp.ascontiguousarray(HOST), lambda xp, a: xp.linalg.norm(HOST),
], ids=range(8))
def test_device_functions_refuse_numpy_arrays(guard: Device, a: Any, function: Any) -> None:
    with pytest.raises(TypeError, match="numpy array meets a device array"):
        function(guard.xp, a)


@pytest.mark.parametrize("index", [
    np.array([0, 1]), HOST > 2, (np.array([0]),), [np.array(1), np.array(2)]], ids=range(4))
def test_numpy_index_is_refused(a: Any, index: Any) -> None:
    with pytest.raises(TypeError, match="numpy array meets a device array"):
        a[index]
    with pytest.raises(TypeError, match="numpy array meets a device array"):
        a[index] = 0


@pytest.mark.parametrize("value", [HOST, HOST[:1], [1.0] * 6, (1.0,) * 6], ids=range(4))
def test_assignment_takes_device_arrays_and_numbers_only(a: Any, value: Any) -> None:
    with pytest.raises(TypeError):
        a[:] = value


@pytest.mark.parametrize("convert", [
    np.asarray, np.array, np.ascontiguousarray, lambda a: np.array([a, a]),
    lambda a: np.array(list(a)), lambda a: np.float32(a[0]), lambda a: HOST.copy().put([0], a[0]),
    lambda a: np.frombuffer(a, np.float32)], ids=range(8))
def test_nothing_converts_to_numpy_silently(a: Any, convert: Any) -> None:
    with pytest.raises(TypeError):
        convert(a)


@pytest.mark.parametrize("use", [
    lambda a: range(a[1].astype(int)), lambda a: [1, 2, 3][a[1].astype(int)],
    lambda a: a[: a[1].astype(int)], lambda a: np.zeros(a[1].astype(int))], ids=range(4))
def test_device_scalar_is_no_index(a: Any, use: Any) -> None:
    with pytest.raises(TypeError):
        use(a)


@pytest.mark.parametrize("name", ["vecdot", "spacing", "isnat"])
def test_ufuncs_that_cupy_lacks_are_refused(guard: Device, a: Any, name: str) -> None:
    if hasattr(np, name):
        with pytest.raises(TypeError, match=f"CuPy has no ufunc {name}"):
            getattr(np, name)(*[a] * getattr(np, name).nin)
    with pytest.raises(AttributeError, match=f"xp.{name} is not among"):
        getattr(guard.xp, name)


@pytest.mark.parametrize("name", ["insert", "block", "trapz", "array2string", "nanpercentile",
                                  "array_repr"])
def test_functions_that_cupy_lacks_are_refused(guard: Device, a: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=f"xp.{name} is not among"):
        getattr(guard.xp, name)
    if hasattr(np, name):
        with pytest.raises(TypeError):
            getattr(np, name)(a, 0, 0) if name == "insert" else getattr(np, name)(a, 50)


def test_function_is_looked_up_by_its_place_in_numpy(a: Any) -> None:
    """numpy.fft.fft or numpy.linalg.outer are not excused by a name in numpy itself."""
    with pytest.raises(TypeError, match=r"numpy\.fft\.fft is not among"):
        np.fft.fft(a)
    if hasattr(np.linalg, "outer"):
        with pytest.raises(TypeError, match=r"numpy\.linalg\.outer is not among"):
            np.linalg.outer(a, a)


@pytest.mark.parametrize("call", [
    lambda xp, a: xp.sum([1, 2]), lambda xp, a: a * [1] * 6,
    lambda xp, a: xp.maximum(a, [1] * 6), lambda xp, a: xp.lexsort((a, a)),
    lambda xp, a: xp.repeat(a, xp.ones(6, dtype=int)),
    lambda xp, a: a.repeat(xp.ones(6, dtype=int)),
    lambda xp, a: xp.searchsorted(a, 3.0), lambda xp, a: np.searchsorted(a, HOST),
    lambda xp, a: np.add.reduce(a),
    lambda xp, a: xp.array(["word"]), lambda xp, a: xp.array([None]),
], ids=range(11))
def test_arguments_that_cupy_does_not_take_are_refused(guard: Device, a: Any, call: Any) -> None:
    with pytest.raises(TypeError):
        call(guard.xp, a)


def test_methods_that_cupy_lacks_are_refused(a: Any) -> None:
    for name in ("newbyteorder", "itemset", "ctypes", "setflags", "__array_interface__"):
        with pytest.raises(AttributeError):
            getattr(a, name)


@pytest.mark.parametrize("compute", [
    lambda xp, a: a + a, lambda xp, a: 2 * a - 1.0, lambda xp, a: -a / np.float32(3),
    lambda xp, a: a**2 // 2, lambda xp, a: (a > 1) & ~(a > 4), lambda xp, a: a[a > 2],
    lambda xp, a: a[::-1], lambda xp, a: a[[0, 2]], lambda xp, a: a[xp.argsort(-a)],
    lambda xp, a: a[None, :, None], lambda xp, a: a.reshape(2, 3).T @ a.reshape(2, 3),
    lambda xp, a: xp.concatenate([a, a]), lambda xp, a: xp.stack((a, a), axis=1),
    lambda xp, a: xp.where(a > 2, a, 0.0), lambda xp, a: xp.sqrt(xp.abs(a)),
    lambda xp, a: xp.cumsum(a), lambda xp, a: a.sum(), lambda xp, a: a.max() - a.min(),
    lambda xp, a: xp.count_nonzero(a), lambda xp, a: xp.allclose(a, a),
    lambda xp, a: xp.array_equal(a, a), lambda xp, a: xp.unique(a.astype(xp.int32) // 2),
    lambda xp, a: xp.bincount(a.astype(xp.int32)), lambda xp, a: xp.searchsorted(a, a + 0.5),
    lambda xp, a: xp.lexsort(xp.stack([a, -a])), lambda xp, a: xp.repeat(a, 3),
    lambda xp, a: xp.repeat(a, [0, 1, 2, 0, 1, 2]), lambda xp, a: xp.einsum("i,i->", a, a),
    lambda xp, a: xp.linalg.norm(a), lambda xp, a: xp.zeros((2, 3), dtype=xp.float32),
    lambda xp, a: xp.full(3, 7), lambda xp, a: xp.arange(5), lambda xp, a: xp.sqrt(2.0),
    lambda xp, a: xp.array([a, a]), lambda xp, a: xp.asarray([1, 2, 3]),
    lambda xp, a: xp.clip(a, 1, 3), lambda xp, a: xp.nonzero(a > 2)[0],
    lambda xp, a: xp.split(a, 3)[1], lambda xp, a: xp.isfinite(a).all(),
    lambda xp, a: np.sum(a), lambda xp, a: np.concatenate([a, a]), lambda xp, a: np.sqrt(a),
    lambda xp, a: np.linalg.norm(a), lambda xp, a: xp.divmod(a, 4)[1], lambda xp, a: a.astype("f8"),
    lambda xp, a: xp.linalg.svd(a.reshape(2, 3))[1], lambda xp, a: xp.outer(a, a),
], ids=range(47))
def test_what_cupy_accepts_gives_numpys_result(guard: Device, a: Any, compute: Any) -> None:
    result = compute(guard.xp, a)
    assert guard.owns(result)
    expected = np.asarray(compute(np, HOST))
    assert result.dtype == expected.dtype and result.shape == expected.shape
    np.testing.assert_array_equal(guard.to_host(result), expected)


def test_in_place_changes_reach_every_view(guard: Device, a: Any) -> None:
    view = a[2:]
    a += 1
    a[0] = 10
    a[1:3] = a[3:5]
    view *= 2
    a[a > 11] = 0
    host = HOST.copy()
    host_view = host[2:]
    host += 1
    host[0] = 10
    host[1:3] = host[3:5]
    host_view *= 2
    host[host > 11] = 0
    assert guard.to_host(a).tolist() == host.tolist()


def test_scalars_leave_the_device_only_when_asked(guard: Device, a: Any) -> None:
    total = a.sum()
    assert guard.owns(total)
    assert (float(total), int(total), total.item(), bool(total)) == (15.0, 15, 15.0, True)
    assert a.tolist() == HOST.tolist() and f"{total:.2f}" == "15.00"
    assert [float(v) for v in a] == HOST.tolist()
    for converted in (copy.copy(a), copy.deepcopy(a)):
        assert guard.owns(converted)


def test_host_arrays_are_told_from_device_arrays(guard: Device, a: Any) -> None:
    with pytest.raises(TypeError, match="from_host was given a device array"):
        guard.from_host(a)
    with pytest.raises(TypeError, match="takes a device array, not ndarray"):
        guard.to_host(HOST)
    assert not open_device("cpu").owns(a) and not guard.owns(HOST)


def test_lists_hold_numpy_names() -> None:
    names = (lists.CUPY_UFUNCS | lists.CUPY_MAKERS | lists.CUPY_JOINERS | lists.CUPY_FUNCTIONS
             | lists.CUPY_NAMES)
    assert {name for name in names if not hasattr(np, name)} == set()
    assert {name for name in lists.CUPY_LINALG if not hasattr(np.linalg, name)} == set()
    assert {name for name in lists.CUPY_METHODS if not hasattr(np.ndarray, name)} == set()


def test_lists_hold_cupys_names() -> None:
    """Where CuPy is installed (it imports without a GPU) its names are the judge."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    names = (lists.CUPY_UFUNCS | lists.CUPY_MAKERS | lists.CUPY_JOINERS | lists.CUPY_FUNCTIONS
             | lists.CUPY_NAMES)
    assert {name for name in names if not hasattr(cupy, name)} == set()
    assert {name for name in lists.CUPY_LINALG if not hasattr(cupy.linalg, name)} == set()
    assert {name for name in lists.CUPY_METHODS if not hasattr(cupy.ndarray, name)} == set()
