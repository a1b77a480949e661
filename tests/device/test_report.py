"""Laws of the CUDA report: what ptxas says is read, and occupancy follows from the limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfx.device import report
from vfx.device.report import ARCHITECTURES, Usage, occupancy, parse_ptxas, problems, table

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'heavy' for 'sm_75'
ptxas info    : Function properties for heavy
    48 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 4096 bytes smem, 396 bytes cmem[0]
ptxas info    : Compile time = 26.848 ms
ptxas info    : Compiling entry function 'light' for 'sm_75'
ptxas info    : Function properties for light
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for __internal_trig_reduction_slowpathf
    32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 22 registers, used 0 barriers, 384 bytes cmem[0]
"""


def test_ptxas_is_read_kernel_by_kernel() -> None:
    assert parse_ptxas(PTXAS) == [
        Usage("heavy", "sm_75", registers=255, spill_stores=24, spill_loads=40, stack=48,
              shared=4096),
        Usage("light", "sm_75", registers=22, stack=32)]


def test_spills_are_problems_of_hot_kernels() -> None:
    usages = parse_ptxas(PTXAS)
    (sentence,) = problems("sim/a.cu", usages, hot=[])
    assert "sim/a.cu: heavy spills 24 bytes of stores and 40 of loads on sm_75" in sentence
    assert problems("sim/a.cu", usages, hot=["heavy"])
    assert not problems("sim/a.cu", usages, hot=["light"])


def test_table_has_a_row_for_each_kernel() -> None:
    text = table("sim/a.cu", parse_ptxas(PTXAS))
    assert "| heavy  | 255, 25%" in text and "| light  | 22, 100%" in text
    assert "missing" in text, "an architecture without figures is not passed over"


@pytest.mark.parametrize(("architecture", "registers", "shared", "expected"), [
    ("sm_80", 32, 0, 1.0),            # 1,024 registers a warp: 64 warps
    ("sm_80", 33, 0, 48 / 64),        # 1,280 a warp: 51 warps, 48 of them in whole fours
    ("sm_80", 80, 0, 24 / 64),        # 2,560 a warp: 25 warps, 24 in whole fours
    ("sm_90", 255, 0, 8 / 64),        # 8,192 a warp
    ("sm_75", 64, 0, 1.0),            # 32 warps are all that sm_75 has
    ("sm_86", 40, 0, 1.0),            # 51 warps fit, 48 are allowed
    ("sm_80", 16, 40 * 1024, 16 / 64),   # 41 KB a block: 4 blocks of 164 KB
    ("sm_75", 16, 32 * 1024, 8 / 32),    # nothing is reserved on sm_75: 2 blocks of 64 KB
    ("sm_89", 16, 99 * 1024, 4 / 48),
])
def test_occupancy_is_what_fits(
        architecture: str, registers: int, shared: int, expected: float) -> None:
    assert occupancy(ARCHITECTURES[architecture], registers, shared) == pytest.approx(expected)


@given(st.sampled_from(sorted(ARCHITECTURES)), st.integers(1, 254), st.integers(0, 98 * 1024))
def test_more_use_never_raises_occupancy(architecture: str, registers: int, shared: int) -> None:
    limits = ARCHITECTURES[architecture]
    now = occupancy(limits, registers, min(shared, limits.shared - 1024))
    assert 0 < now <= 1
    assert occupancy(limits, registers + 1, shared) <= occupancy(limits, registers, shared)
    assert occupancy(limits, registers, shared + 1024) <= occupancy(limits, registers, shared)


def test_missing_compiler_is_said(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(report.shutil, "which", lambda _: None)
    assert report.main([]) == 3
    assert "nvcc is not here" in capsys.readouterr().err


def test_missing_nvrtc_is_said(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(report.shutil, "which", lambda _: "/bin/false")
    monkeypatch.setattr("vfx.device.nvrtc.library_files", lambda: iter(["/no/libnvrtc.so.13"]))
    assert report.main([]) == 3
    assert "pip install nvidia-cuda-nvrtc" in capsys.readouterr().err
