"""Laws of the warp device: lanes meet as CUDA asks, and what a GPU leaves undefined is refused."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

from tests.conftest import never_launched
from vfx.device import KernelError, cpu, hostlib, source
from vfx.device.launch import Kernel
from vfx.device.warp import WarpDevice

NAME = "device/wrong.cu"
SOURCE = """\
#include "device/device.cuh"
DEVICE float inner(float v) { return lane_sum(v); }

KERNEL void good(int n, OUT float *x)
{
    FOR_EACH_GROUP(g, n, 1) { x[g] = inner((float)(g + lane_index())); }
}
KERNEL void mask_without_itself(int n, OUT float *x)
{
    FOR_EACH_GROUP(g, n, 1) {
        x[g] = g == 5 ? __shfl_sync(0x0fu, 1.0f, 0, LANES) : 0.0f;  // line 11
    }
}
KERNEL void departed_lane(int n, OUT float *x)
{
    FOR_EACH_GROUP(g, n, 1) {
        if (g == 17 && lane_index() == 3) return;
        x[g] = inner(1.0f);  // line 18
    }
}
KERNEL void divergence(int n, OUT float *x)
{
    FOR_EACH_GROUP(g, n, 1) {
        if (lane_index() < 4) lane_fence();  // line 24
        else x[g] = (float)lane_bits(1);  // line 25
    }
}
KERNEL void lane_outside(int n, OUT float *x)
{
    FOR_EACH_GROUP(g, n, 1) {
        const unsigned half = lane_group_mask() & 0x0f0f0f0fu;
        if (lane_index() < 4) x[g] = __shfl_sync(half, 1.0f, 6, LANES);  // line 32
    }
}
KERNEL void odd_width(int n, OUT float *x)
{
    FOR_EACH_GROUP(g, n, 1) { x[g] = __shfl_sync(lane_group_mask(), 1.0f, 0, 6); }
}
KERNEL void not_in_groups(int n, OUT float *x)
{
    FOR_EACH(i, n) { x[i] = __shfl_sync(0xffffffffu, 1.0f, 0, 32); }
}
KERNEL void half_groups(int n, OUT float *x)
{
    FOR_EACH_GROUP(g, n, 1) {
        const unsigned lower = lane_group_mask() & 0x0f0f0f0fu, upper = lane_group_mask() ^ lower;
        const float v = lane_index() < 4 ? __shfl_sync(lower, (float)lane_index(), 2, LANES)
                                         : __shfl_sync(upper, (float)lane_index(), 7, LANES);
        x[LANES * g + lane_index()] = v;
    }
}
KERNEL void order(int n, OUT int *first, OUT int *second, INOUT int *clock)
{
    FOR_EACH_GROUP(g, n, 1) {
        first[LANES * g + lane_index()] = atomic_add_int(clock, 1);
        lane_fence();
        second[LANES * g + lane_index()] = atomic_add_int(clock, 1);
    }
}
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Kernel]:
    """A function from the name of one of the kernels above to the kernel."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++ to build kernels that are wrong on purpose")
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "device").mkdir()
    (folder / source.HEADER).write_text((source.ROOT / source.HEADER).read_text())
    (folder / NAME).write_text(SOURCE)
    flat = source.flatten(NAME, folder)
    (folder / "wrong.cpp").write_text(hostlib.library_text(NAME, flat, "warp"))
    machine = source.ROOT / "device"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-std=c++17", "-O1", "-g1", "-Wno-unknown-pragmas",
         f"-I{machine}", folder / "wrong.cpp", machine / "warp.cpp", "-o",
         folder / "kernels_warp.so", "-ldl"], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "LIBRARIES", folder)
        device = WarpDevice()
    native, known = device._load(NAME, flat), source.signatures(flat)
    return lambda name: Kernel(device, known[name], native(name))


def refusal(kernel: Kernel, n: int = 40) -> str:
    """The message with which a launch ends."""
    with pytest.raises(KernelError) as caught:
        kernel(n, np.zeros(n, np.float32))
    return str(caught.value)


def at(line: int) -> str:
    """What a message says of a line of the source above, where it can be looked up."""
    return f"device/wrong.cu:{line}" if shutil.which("addr2line") else "binutils"


def test_lanes_of_a_group_meet(kernel: Callable[[str], Kernel]) -> None:
    for n in (0, 1, 15, 16, 17, 1000):
        x = np.zeros(n, np.float32)
        kernel("good")(n, x)
        np.testing.assert_array_equal(x, 8 * np.arange(n) + 28)


def test_parts_of_a_group_may_meet_apart(kernel: Callable[[str], Kernel]) -> None:
    x = np.zeros(8 * 40, np.float32)
    kernel("half_groups")(40, x)
    assert x.reshape(40, 8).tolist() == [[2] * 4 + [7] * 4] * 40


def test_mask_without_its_own_lane_is_refused(kernel: Callable[[str], Kernel]) -> None:
    """Group 5 is the second of the second warp: its lanes are 8 to 15."""
    message = refusal(kernel("mask_without_itself"))
    assert "kernel mask_without_itself, block 0, thread 4" in message
    assert "the mask leaves out the lane that gives it" in message
    assert "__shfl_sync, mask 0000000f" in message and at(11) in message


def test_lane_that_has_left_is_refused(kernel: Callable[[str], Kernel]) -> None:
    """Group 17 is the second of the second block; where it waits, the chain of calls is told."""
    message = refusal(kernel("departed_lane"))
    assert "kernel departed_lane, block 1, thread " in message
    assert "the mask names a lane that has left the kernel" in message
    assert "thread 11 has left the kernel" in message
    assert "thread 12 waits at __shfl_xor_sync, mask 0000ff00" in message
    assert at(18) in message


def test_divergence_is_refused(kernel: Callable[[str], Kernel]) -> None:
    message = refusal(kernel("divergence"), n=1)
    assert "kernel divergence, block 0, thread 7: the lanes of the mask have diverged" in message
    assert "thread 0 waits at __syncwarp" in message and at(24) in message
    assert "thread 7 waits at __ballot_sync" in message and at(25) in message


def test_shuffle_from_outside_the_mask_is_refused(kernel: Callable[[str], Kernel]) -> None:
    message = refusal(kernel("lane_outside"))
    assert "a shuffle reads lane 6, which is not in the mask" in message and at(32) in message


def test_odd_width_is_refused(kernel: Callable[[str], Kernel]) -> None:
    assert "the width is no power of two" in refusal(kernel("odd_width"))


def test_lanes_meet_in_groups_only(kernel: Callable[[str], Kernel]) -> None:
    """The last warp of any other loop is not whole."""
    assert "a kernel without FOR_EACH_GROUP meets other lanes" in refusal(kernel("not_in_groups"))


def test_launch_after_a_failure_is_whole(kernel: Callable[[str], Kernel]) -> None:
    refusal(kernel("departed_lane"))
    test_lanes_of_a_group_meet(kernel)


def test_lanes_run_in_no_fixed_order(kernel: Callable[[str], Kernel]) -> None:
    """What depends on the order, as what lacks a fence does, then shows."""
    first, second = np.zeros((2, 32), np.int32)
    kernel("order")(4, first, second, np.zeros(1, np.int32))
    assert sorted(first) == list(range(32)) and sorted(second) == list(range(32, 64))
    assert np.argsort(first).tolist() != np.argsort(second).tolist()
    assert np.argsort(first).tolist() != list(range(32))


def test_a_kernel_that_no_law_runs_on_warp_is_named() -> None:
    """As the end of a whole run of the tests demands of all kernels."""
    known = {name for file in source.kernel_files()
             for name in source.signatures(source.flatten(file))}
    assert len(known) > 100 and never_launched(known) == []
    assert never_launched(known - {"kick"}) == ["kick (sim/matter/step.cu)"]
