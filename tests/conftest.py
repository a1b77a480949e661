"""Shared fixtures: every test that takes `device` runs on each device present."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from vfx.device import Device, DeviceError, open_device


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let one device be chosen: ``pytest --device warp tests/geometry``."""
    parser.addoption("--device", help="run what takes a device on this one alone")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that takes `device` on each device; on warp, which is slow, those marked."""
    if "device" not in metafunc.fixturenames:
        return
    marked = metafunc.definition.get_closest_marker("warp") is not None
    chosen = metafunc.config.getoption("device")
    names = [chosen] if chosen else ["cpu", "guard", *["warp"] * marked, "cuda:0"]
    metafunc.parametrize("device", names, indirect=True)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Device:
    """The CPU, the guarded CPU, warps on the CPU and, where there is one, the first GPU."""
    try:
        return open_device(request.param)
    except DeviceError as error:
        if not request.param.startswith("cuda"):
            raise
        if os.environ.get("VFX_REQUIRE_CUDA") == "1":
            pytest.fail(f"VFX_REQUIRE_CUDA=1, but {error}")
        pytest.skip(str(error))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, not for every test, what was skipped and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    for reason, count in Counter(report.longrepr[2] for report in skipped).items():
        terminalreporter.write_line(f"{count} x {reason}")
