"""Laws of structs: filled by name, checked as loose arguments are, found whole by kernels."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from vfx.device import Device, KernelError, Record, open_device
from vfx.device.source import SourceError

SELFTEST = "device/selftest.cu"


def pair(device: Device, **changed: Any) -> Record:
    """The inner struct, with some fields replaced."""
    return device.struct(SELFTEST, "SelftestPair", **{"small": 3, "wide": -1.25} | changed)


def fields(device: Device, **changed: Any) -> Record:
    """The outer struct, with some fields replaced; None leaves one out."""
    given = {"flag": True, "half": 65535, "pair": pair(device), "byte": 200,
             "shift": (0.5, -2.0, 8.0), "x": device.xp.ones(4, dtype=np.float32), "word": 2,
             "y": device.xp.zeros(4, dtype=np.float32), "whole": -(2**40), "large": 2**52,
             } | changed
    return device.struct(SELFTEST, "SelftestFields",
                         **{name: value for name, value in given.items() if value is not None})


def refusal(device: Device, **changed: Any) -> str:
    """The message with which a struct is refused."""
    with pytest.raises(KernelError) as caught:
        fields(device, **changed)
    return str(caught.value)


@pytest.mark.warp
def test_kernel_finds_every_field(device: Device) -> None:
    y = device.from_host(np.arange(4, dtype=np.float32))
    found = device.xp.zeros((4, 10))
    device.module(SELFTEST).selftest_struct(4, fields(device, y=y), found)
    assert device.to_host(y).tolist() == [2, 3, 4, 5]
    for row in device.to_host(found):
        assert row.tolist() == [1, 65535, 3, -1.25, 200, 0.5, -2, 8, -(2.0**40), 2.0**52]


def test_struct_may_be_launched_many_times(device: Device) -> None:
    y, found = device.xp.zeros(4, dtype=np.float32), device.xp.zeros((4, 10))
    given = fields(device, y=y)
    kernel = device.module(SELFTEST).selftest_struct
    device.run([kernel.prepare(4, given, found), kernel.prepare(2, given, found)], repeat=3)
    assert device.to_host(y).tolist() == [12, 12, 6, 6]


def test_prepared_launch_keeps_the_arrays_of_a_struct_alive(device: Device) -> None:
    y = device.xp.zeros(4, dtype=np.float32)
    alive = weakref.ref(y)
    launch = device.module(SELFTEST).selftest_struct.prepare(
        4, fields(device, y=y), device.xp.zeros((4, 10)))
    del y
    gc.collect()
    assert alive() is not None
    device.run([launch])
    assert device.to_host(alive()).tolist() == [2] * 4
    del launch
    gc.collect()
    assert alive() is None


def test_unknown_field_says_which_was_meant(device: Device) -> None:
    assert refusal(device, wrod=1) == (
        "struct SelftestFields, field wrod: unknown; did you mean 'word'?")
    assert "unknown; it has flag, half" in refusal(device, position=1)


def test_missing_fields_are_named(device: Device) -> None:
    assert refusal(device, byte=None, y=None) == (
        "struct SelftestFields: nothing given for byte, y")


@pytest.mark.parametrize(("field", "value", "reason"), [
    ("word", -1, "-1 does not fit uint32"), ("half", 65536, "65536 does not fit uint16"),
    ("word", True, "takes one uint32, not bool"), ("flag", 1, "takes one bool, not int"),
    ("shift", (1.0, 2.0), "takes a Vec3 of 3 numbers, not 2"),
    ("shift", 1.0, "takes a struct Vec3"),
    ("pair", {"small": 1, "wide": 1.0}, "takes a struct SelftestPair"),
    ("x", 1.0, "takes an array of device"), ("x", [1.0], "takes an array of device")])
def test_wrong_value_is_named(device: Device, field: str, value: Any, reason: str) -> None:
    message = refusal(device, **{field: value})
    assert f"struct SelftestFields, field {field}" in message and reason in message


def test_number_of_a_vector_is_named(device: Device) -> None:
    assert "field shift.y: takes one float, not str" in refusal(device, shift=(1.0, "2", 3.0))


def test_wrong_array_is_named(device: Device) -> None:
    xp = device.xp
    assert "field x: takes float32, the array holds float64" in refusal(device, x=xp.ones(4))
    assert "field y: the array is not C-contiguous" in refusal(
        device, y=xp.ones(8, dtype=np.float32)[::2])


def test_array_of_another_device_is_refused_inside_a_struct(device: Device) -> None:
    other = open_device("guard" if device.name == "cpu" else "cpu")
    message = refusal(device, x=other.xp.ones(4, dtype=np.float32))
    assert "field x: takes an array of device " + device.name in message
    assert "takes a struct of device " + device.name in refusal(device, pair=pair(other))
    with pytest.raises(KernelError, match=f"argument fields: takes a struct of .*{device.name}"):
        device.module(SELFTEST).selftest_struct(4, fields(other), device.xp.zeros((4, 10)))


def test_read_only_array_is_refused_where_a_kernel_writes() -> None:
    device = open_device("cpu")
    locked = np.ones(4, np.float32)
    locked.flags.writeable = False
    fields(device, x=locked)
    assert "field y: the kernel writes to it" in refusal(device, y=locked)


def test_struct_of_another_kind_is_refused(device: Device) -> None:
    kernel = device.module(SELFTEST).selftest_struct
    with pytest.raises(KernelError, match="argument fields: takes a struct SelftestFields, "
                                          "not SelftestPair"):
        kernel(4, pair(device), device.xp.zeros((4, 10)))
    with pytest.raises(KernelError, match="argument fields: takes a struct SelftestFields, made"):
        kernel(4, {"flag": True}, device.xp.zeros((4, 10)))


def test_struct_that_no_file_has_is_refused(device: Device) -> None:
    with pytest.raises(SourceError, match="no plain struct Selftest"):
        device.struct(SELFTEST, "Selftest", a=1)
    with pytest.raises(SourceError, match="no such kernel file"):
        device.struct("device/no.cuh", "Selftest", a=1)


def test_rows_are_structs_one_after_the_other(device: Device) -> None:
    rows = device.rows("device/device.cuh", "Vec3d", [{"x": 1.0, "y": 2.0, "z": 3.0},
                                                     {"z": -6.0, "x": 4.0, "y": 5.0}])
    assert device.owns(rows)
    assert rows.dtype == np.float64
    assert device.to_host(rows).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, -6.0]]
    assert device.rows("device/device.cuh", "Vec3d", []).shape == (0, 3)
    assert device.fields("device/device.cuh", "Vec3d") == ["x", "y", "z"]


def test_rows_are_checked_as_structs_are(device: Device) -> None:
    with pytest.raises(KernelError, match=r"struct Vec3d: nothing given for y, z"):
        device.rows("device/device.cuh", "Vec3d", [{"x": 1.0}])
    with pytest.raises(KernelError, match=r"struct Vec3d, field w: unknown"):
        device.rows("device/device.cuh", "Vec3d", [{"x": 0.0, "y": 0.0, "z": 0.0, "w": 0.0}])
    with pytest.raises(KernelError, match=r"one type, not float64, uint8"):
        device.rows(SELFTEST, "SelftestPair", [])
    with pytest.raises(KernelError, match=r"one type, not .*pointer"):
        device.rows(SELFTEST, "SelftestFields", [])
