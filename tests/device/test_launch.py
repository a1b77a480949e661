"""Laws of launching a kernel: what is accepted, what is refused and how it is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vfx.device import Device, DeviceError, KernelError, open_device
from vfx.device.bind import bind_value
from vfx.device.source import DTYPES, Parameter

SELFTEST = "device/selftest.cu"


def axpy(device: Device, **changed: Any) -> None:
    """Launch y = 2 x + y with some arguments replaced."""
    arguments: dict[str, Any] = {
        "n": 4, "a": 2.0, "x": device.xp.ones(4, dtype=np.float32),
        "y": device.xp.zeros(4, dtype=np.float32)} | changed
    device.module(SELFTEST).selftest_axpy(*arguments.values())


def refusal(device: Device, **changed: Any) -> str:
    """The message with which a launch is refused."""
    with pytest.raises(KernelError) as caught:
        axpy(device, **changed)
    return str(caught.value)


@pytest.mark.warp
def test_kernel_computes_on_device_arrays(device: Device) -> None:
    x = device.from_host(np.arange(1000, dtype=np.float32))
    y = device.from_host(np.ones(1000, np.float32))
    axpy(device, n=1000, a=3, x=x, y=y)
    np.testing.assert_array_equal(
        device.to_host(y), 3 * np.arange(1000, dtype=np.float32) + 1)


@pytest.mark.warp
def test_first_argument_bounds_what_is_touched(device: Device) -> None:
    y = device.xp.zeros(4, dtype=np.float32)
    axpy(device, n=2, y=y)
    axpy(device, n=0, y=y)
    assert device.to_host(y).tolist() == [2, 2, 0, 0]


def test_host_and_device_copies_are_apart(device: Device) -> None:
    host = np.zeros(4, np.float32)
    y = device.from_host(host)
    axpy(device, y=y)
    back = device.to_host(y)
    assert host.tolist() == [0] * 4 and back.tolist() == [2] * 4
    back[:] = 7
    assert device.to_host(y).tolist() == [2] * 4


def test_from_host_makes_c_order(device: Device) -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    for view in (host.T, host[:, ::2], host[::-1], np.asfortranarray(host)):
        copied = device.from_host(view)
        assert copied.flags.c_contiguous
        np.testing.assert_array_equal(device.to_host(copied), view)
        assert device.to_host(copied.T).flags.c_contiguous


def test_wrong_dtype_is_named(device: Device) -> None:
    message = refusal(device, x=device.xp.ones(4))
    assert "kernel selftest_axpy, argument x" in message
    assert "float32" in message and "float64" in message
    assert "argument y" in refusal(device, y=device.xp.ones(4, dtype=np.int32))


def test_array_of_another_device_is_named(device: Device) -> None:
    other = open_device("guard" if device.name == "cpu" else "cpu")
    message = refusal(device, x=other.xp.ones(4, dtype=np.float32))
    assert "argument x" in message and f"device {device.name}" in message


@pytest.mark.parametrize("nothing", [None, [1.0, 1.0, 1.0, 1.0], 1.0])
def test_what_is_no_array_is_named(device: Device, nothing: Any) -> None:
    assert "selftest_axpy, argument x: takes an array" in refusal(device, x=nothing)


def test_non_contiguous_array_is_named(device: Device) -> None:
    strided = device.xp.ones(8, dtype=np.float32)[::2]
    assert "argument y: the array is not C-contiguous" in refusal(device, y=strided)
    turned = device.xp.ones((2, 2), dtype=np.float32).T
    assert "argument x: the array is not C-contiguous" in refusal(device, x=turned)


def test_read_only_array_may_be_read_but_not_written() -> None:
    device = open_device("cpu")
    locked = np.ones(4, np.float32)
    locked.flags.writeable = False
    axpy(device, x=locked)
    assert "argument y" in refusal(device, y=locked)


def test_wrong_number_of_arguments_lists_the_right_ones(device: Device) -> None:
    kernel = device.module(SELFTEST).selftest_axpy
    with pytest.raises(KernelError, match=r"selftest_axpy: 2 arguments .* takes 4: n, a, x, y"):
        kernel(4, 2.0)


@pytest.mark.parametrize("count", [2**31, -(2**31) - 1, 10**30, 1.5, float("nan"), float("inf"),
                                   np.int64(2**40), np.float32(0.5)])
def test_number_that_does_not_fit_an_int_is_named(device: Device, count: Any) -> None:
    assert "selftest_axpy, argument n" in refusal(device, n=count)


@pytest.mark.parametrize("value", [True, np.bool_(True), "4", None, 4j, [4], (4,), np.ones(1)])
def test_what_is_no_number_is_named(device: Device, value: Any) -> None:
    assert "selftest_axpy, argument n: takes one int" in refusal(device, n=value)
    assert "selftest_axpy, argument a: takes one float" in refusal(device, a=value)


def test_device_scalar_is_no_number() -> None:
    """CuPy would have to wait for the GPU to read it: float(...) says so in the code."""
    device = open_device("guard")
    assert "argument a" in refusal(device, a=device.xp.ones(4).sum())


def test_finite_number_never_becomes_infinite(device: Device) -> None:
    assert "argument a: 1e+39 does not fit float" in refusal(device, a=1e39)
    assert "argument a" in refusal(device, a=10**400)
    axpy(device, a=float("inf"))
    axpy(device, a=float("nan"))


@given(st.sampled_from(sorted(set(DTYPES) - {"float", "double", "bool"})),
       st.integers(-(2**65), 2**65))
def test_integer_passes_unchanged_or_is_refused(ctype: str, number: int) -> None:
    parameter = Parameter("k", ctype, "value")
    info = np.iinfo(parameter.dtype)
    if info.min <= number <= info.max:
        value = bind_value("here", parameter, number)
        assert value == number and value.dtype == parameter.dtype
    else:
        with pytest.raises(KernelError, match=f"here: {number} does not fit {ctype}"):
            bind_value("here", parameter, number)


@given(st.floats(allow_nan=False))
def test_double_passes_unchanged(number: float) -> None:
    assert bind_value("here", Parameter("k", "double", "value"), number) == number


def test_unknown_kernel_lists_the_known_ones(device: Device) -> None:
    with pytest.raises(AttributeError, match=r"no kernel 'selftest_axpi'; it has .*selftest_axpy"):
        device.module(SELFTEST).selftest_axpi  # noqa: B018


def test_launch_of_another_device_is_refused(device: Device) -> None:
    other = open_device("cpu")
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    launch = other.module(SELFTEST).selftest_axpy.prepare(4, 2.0, x, y)
    with pytest.raises(KernelError, match="selftest_axpy: prepared for device cpu"):
        device.run([launch])


def test_prepared_launches_run_in_order(device: Device) -> None:
    """y = 2 x + y, then x = 1 y + x, three times over."""
    module = device.module(SELFTEST)
    x, y = (device.from_host(np.ones(5, np.float32)) for _ in range(2))
    device.run([module.selftest_axpy.prepare(5, 2.0, x, y),
                module.selftest_axpy.prepare(5, 1.0, y, x)], repeat=3)
    device.synchronize()
    a, b = 1.0, 1.0
    for _ in range(3):
        b = 2 * a + b
        a = b + a
    assert device.to_host(x).tolist() == [a] * 5 and device.to_host(y).tolist() == [b] * 5


@pytest.mark.warp
@pytest.mark.parametrize("repeat", [0, 1, 6, 7, 8, 1000])
def test_loop_stops_on_halt(device: Device, repeat: int) -> None:
    counter, halt = (device.xp.zeros(1, dtype=np.int32) for _ in range(2))
    launch = device.module(SELFTEST).selftest_count.prepare(1, 7, counter, halt)
    device.run([launch], repeat=repeat, halt=halt)
    assert int(counter[0]) == min(repeat, 7)
    assert int(halt[0]) == (repeat >= 7)


def test_host_loop_runs_no_round_after_the_halt() -> None:
    """Not even of kernels that do not look at the flag themselves."""
    device = open_device("cpu")
    module = device.module(SELFTEST)
    counter, halt = np.zeros(1, np.int32), np.zeros(1, np.int32)
    rounds, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    device.run([module.selftest_count.prepare(1, 5, counter, halt),
                module.selftest_axpy.prepare(1, 1.0, one, rounds)], repeat=100, halt=halt)
    assert rounds[0] == 5


def test_halt_must_be_an_int32_device_array(device: Device) -> None:
    xp = device.xp
    launch = device.module(SELFTEST).selftest_axpy.prepare(
        1, 1.0, xp.ones(1, dtype=np.float32), xp.ones(1, dtype=np.float32))
    for halt in (xp.zeros(1), xp.zeros(0, dtype=np.int32), [0]):
        with pytest.raises(KernelError, match="halt: takes an int32 array"):
            device.run([launch], repeat=2, halt=halt)


@settings(max_examples=20, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(0, 5000), seed=st.integers(0, 2**32 - 1))
def test_number_of_threads_does_not_change_a_bit(device: Device, n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.standard_normal((2, n)).astype(np.float32)
    results = []
    for threads in (1, 2, 5):
        device.threads = threads
        out = device.from_host(y)
        axpy(device, n=n, a=1.7, x=device.from_host(x), y=out)
        results.append(device.to_host(out).tobytes())
    assert len(set(results)) == 1


def test_threads_belong_to_one_device() -> None:
    first, second = open_device("cpu"), open_device("cpu")
    before = second.threads
    first.threads = before + 3
    assert (first.threads, second.threads) == (before + 3, before)
    with pytest.raises(DeviceError, match="0 threads"):
        first.threads = 0


def test_memory_is_available_within_the_total(device: Device) -> None:
    available, total = device.memory()
    assert 0 < available <= total


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:-1", "CPU", "", "opencl:0"])
def test_unknown_device_lists_the_known_ones(name: str) -> None:
    with pytest.raises(DeviceError, match=r"unknown device .* auto, cpu, guard or cuda:N"):
        open_device(name)
