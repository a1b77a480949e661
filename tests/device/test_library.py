"""Laws of the built host libraries: each instruction set computes, stale ones are refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vfx.device import Device, DeviceError, cpu, hostlib, memory, open_device, source

LIBRARIES = sorted(
    {path.stem.removeprefix("kernels_") for path in cpu.LIBRARIES.glob("*.so")} - {"warp"})

#: Kernels whose inner loop is written in lanes: on AVX2 it must compute whole vectors.
HOT_KERNELS = ("selftest_lane_arithmetic", "bond_forces", "lattice_forces")
ARITHMETIC = r"\bv(?:add|sub|mul|div|min|max|sqrt|rsqrt|fn?m(?:add|sub)\d+)"
PACKED = re.compile(ARITHMETIC + r"ps\b.*%ymm")
SCALAR = re.compile(ARITHMETIC + r"ss\b")


def lanes_agree_with_numpy(device: Device) -> None:
    """Check every lane operation of a device against numpy."""
    random = np.random.default_rng(1)
    n = 300
    a, b = random.standard_normal((2, n, 8)).astype(np.float32)
    whole = random.integers(-99, 99, (n, 8), dtype=np.int32)
    module = device.module("device/selftest.cu")

    fused, smaller, larger, chosen = (
        device.xp.empty((n, 8), dtype=np.float32) for _ in range(4))
    doubled = device.xp.empty((n, 8), dtype=np.int32)
    module.selftest_lane_arithmetic(
        n, 0b01011001, device.from_host(a), device.from_host(b), device.from_host(whole),
        fused, smaller, larger, chosen, doubled)
    # Rounded once (fused) or twice (in two steps), the exact value is no farther than this.
    exact = a.astype(np.float64) * b + whole
    error = np.abs(device.to_host(fused) - exact)
    assert (error <= 2.0**-24 * (np.abs(exact) + np.abs(a * b)) * 1.001).all()
    np.testing.assert_array_equal(device.to_host(smaller), np.minimum(a, b))
    np.testing.assert_array_equal(device.to_host(larger), np.maximum(a, b))
    mask = np.array([True, False, False, True, True, False, True, False])
    np.testing.assert_array_equal(device.to_host(chosen), np.where(mask & (a < b), a, b))
    np.testing.assert_array_equal(device.to_host(doubled), 2 * whole)

    total, lowest = (device.xp.empty(n, dtype=np.float32) for _ in range(2))
    positive = device.xp.empty(n, dtype=np.int32)
    module.selftest_lanes(n, device.from_host(a), total, lowest, positive)
    pairs = a[:, :4] + a[:, 4:]
    pairs = pairs[:, :2] + pairs[:, 2:]
    np.testing.assert_array_equal(device.to_host(total), pairs[:, 0] + pairs[:, 1])
    np.testing.assert_array_equal(device.to_host(lowest), a.min(axis=1))
    np.testing.assert_array_equal(
        device.to_host(positive), np.packbits(a > 0, axis=1, bitorder="little")[:, 0])

    exact = random.standard_normal((n, 8)) * 1e12
    exact[0, 3] = np.nan
    twice = device.xp.empty((n, 8), dtype=np.float64)
    nearest, within = (device.xp.empty(s, dtype=np.int32) for s in ((n, 8), n))
    module.selftest_lane_doubles(n, 1.5e12, device.from_host(exact), twice, nearest, within)
    np.testing.assert_array_equal(device.to_host(twice), 2 * exact)
    np.testing.assert_array_equal(device.to_host(within) != 0, (exact <= 1.5e12).all(axis=1))
    np.testing.assert_array_equal(
        device.to_host(nearest)[1:], np.rint(exact[1:]).astype(np.int64).astype(np.int32))

    value = np.float32(10.0) ** random.uniform(-37, 38, (n, 8)).astype(np.float32)
    approximate, precise = (device.xp.empty((n, 8), dtype=np.float32) for _ in range(2))
    module.selftest_rsqrt(n, device.from_host(value), approximate, precise)
    inverse = 1.0 / np.sqrt(value.astype(np.float64))
    np.testing.assert_allclose(device.to_host(approximate), inverse, rtol=3e-7)
    np.testing.assert_allclose(device.to_host(precise), inverse, rtol=1.2e-7)


@pytest.mark.warp
def test_lanes_compute_what_numpy_computes(device: Device) -> None:
    lanes_agree_with_numpy(device)


@pytest.mark.parametrize("isa", LIBRARIES)
def test_every_built_library_computes_what_numpy_computes(isa: str) -> None:
    """In a process of its own: a process keeps to one instruction set."""
    if isa == "v3" and not cpu.cpu_flags() >= cpu.V3_FLAGS:
        pytest.skip("this processor has no x86-64-v3")
    program = ("import runpy; from vfx.device import open_device; device = open_device('cpu');"
               f"assert device.isa == {isa!r};"
               f"runpy.run_path({__file__!r})['lanes_agree_with_numpy'](device)")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120,
                   env=os.environ | {"VFX_ISA": isa})


@pytest.mark.warp
def test_integers_agree_with_python(device: Device) -> None:
    random = np.random.default_rng(2)
    words = np.concatenate([
        np.array([0, 1, 2**63, 2**64 - 1], np.uint64),
        random.integers(0, 2**64, 20_000, dtype=np.uint64) >> random.integers(
            0, 64, 20_000, dtype=np.uint64)])
    n = len(words)
    uniform = device.xp.empty(n, dtype=np.float32)
    ones, zeros = (device.xp.empty(n, dtype=np.int32) for _ in range(2))
    module = device.module("device/selftest.cu")
    module.selftest_integers(n, 7, device.from_host(words), uniform, ones, zeros)
    assert device.to_host(ones).tolist() == [int(w).bit_count() for w in words]
    assert device.to_host(zeros).tolist() == [64 - int(w).bit_length() for w in words]
    drawn = device.to_host(uniform).astype(np.float64)
    assert drawn.min() >= 0.0 and drawn.max() < 1.0
    # Kolmogorov-Smirnov: the chance to fail by luck is about 1e-6.
    assert np.abs(np.sort(drawn) - np.arange(n) / n).max() < 2.7 / np.sqrt(n)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.warp
def test_vectors_agree_with_numpy(device: Device) -> None:
    a, b = np.random.default_rng(3).standard_normal((2, 999, 3)).astype(np.float32)
    product = device.xp.empty((999, 3), dtype=np.float32)
    length = device.xp.empty(999, dtype=np.float32)
    device.module("device/selftest.cu").selftest_vectors(
        999, device.from_host(a), device.from_host(b), product, length)
    np.testing.assert_allclose(device.to_host(product), np.cross(a, b), atol=2e-6)
    np.testing.assert_allclose(device.to_host(length), np.linalg.norm(a, axis=1), rtol=3e-7)


def test_library_of_other_source_is_refused(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One changed space in a header is enough."""
    for name in ("device/selftest.cu", "device/device.cuh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((source.ROOT / name).read_text())
    flat = source.flatten("device/selftest.cu", tmp_path)
    device = cpu.CpuDevice()
    device._load("device/selftest.cu", flat)
    with (tmp_path / "device/device.cuh").open("a") as header:
        header.write(" ")
    changed = source.flatten("device/selftest.cu", tmp_path)
    with pytest.raises(DeviceError, match=r"selftest.cu: .* other source; reinstall"):
        device._load("device/selftest.cu", changed)
    with pytest.raises(DeviceError, match=r"unknown.cu: .* other source; reinstall"):
        device._load("device/unknown.cu", flat)


@pytest.mark.parametrize("name", source.kernel_files())
@pytest.mark.parametrize("device_name", ["cpu", "warp"])
def test_every_kernel_file_is_built_into_the_library(name: str, device_name: str) -> None:
    kernels = open_device(device_name).module(name)
    assert dir(kernels) == sorted(source.signatures(source.flatten(name)))
    for kernel in dir(kernels):
        assert getattr(kernels, kernel).native


def test_the_build_watches_the_folders_that_hold_kernels() -> None:
    """Where the source of the build is at hand: a new kernel file must not wait for a new clone."""
    build = Path(__file__).resolve().parents[2] / "CMakeLists.txt"
    watched = re.search(r"foreach\(FOLDER ([\w ]+)\)", build.read_text(encoding="utf-8"))
    assert watched is not None and watched.group(1).split() == list(source.KERNEL_FOLDERS)


def test_instruction_set_that_is_not_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFX_ISA", "v9")
    with pytest.raises(DeviceError, match=r"no kernel library .* 'v9' .*built: .*base"):
        open_device("cpu")
    monkeypatch.setenv("VFX_ISA", "v3")
    monkeypatch.setattr(cpu, "cpu_flags", lambda: cpu.V3_FLAGS - {"avx2"})
    with pytest.raises(DeviceError, match="this processor lacks avx2"):
        open_device("cpu")
    monkeypatch.setenv("VFX_ISA", "warp")
    with pytest.raises(DeviceError, match="no instruction set; use --device warp"):
        open_device("cpu")
    monkeypatch.delenv("VFX_ISA")
    assert cpu.choose_isa() == "base"


def test_container_limit_bounds_the_memory(tmp_path: Path) -> None:
    assert memory.container_memory(tmp_path) == (sys.maxsize, 0)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("anon 1000\ninactive_file 3000\nslab 7\n")
    assert memory.container_memory(tmp_path) == (sys.maxsize, 2000)
    (tmp_path / "memory.max").write_text("9000\n")
    assert memory.container_memory(tmp_path) == (9000, 2000)


def test_unchanged_kernels_are_not_written_again(tmp_path: Path) -> None:
    """So that an install without changes compiles nothing."""
    written = hostlib.generate(tmp_path)
    for path in written:
        os.utime(path, (1, 1))
    (tmp_path / "gone.cpp").write_text("")
    assert hostlib.generate(tmp_path) == written
    assert {path.stat().st_mtime for path in written} == {1.0}
    assert set(tmp_path.iterdir()) == set(written)


def disassembly(library: Path) -> dict[str, str]:
    """The machine code of each function of a library, OpenMP bodies with their kernel."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library],
                          capture_output=True, text=True, check=True).stdout
    found: dict[str, str] = {}
    for block in text.split("\n\n"):
        match = re.match(r"\s*[0-9a-f]+ <(\w+)[.\w@]*>:", block)
        if match:
            found[match.group(1)] = found.get(match.group(1), "") + block
    return found


@pytest.mark.parametrize("kernel", [
    name for file in source.kernel_files() for name in source.signatures(source.flatten(file))
    if name in HOT_KERNELS])
def test_hot_host_loops_compute_whole_vectors(kernel: str) -> None:
    library = cpu.LIBRARIES / "kernels_v3.so"
    if not library.exists():
        pytest.skip("no x86-64-v3 library was built here")
    code = disassembly(library)[kernel]
    packed, scalar = len(PACKED.findall(code)), len(SCALAR.findall(code))
    assert packed > scalar, f"{kernel}: {packed} operations on 8 floats, {scalar} on one"
