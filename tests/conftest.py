"""Shared fixtures: every test that takes `device` runs on each device present."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from vfx.device import Device, DeviceError, open_device


@pytest.fixture(params=["cpu", "guard", "cuda:0"])
def device(request: pytest.FixtureRequest) -> Device:
    """The CPU, the guarded CPU and, where there is one, the first GPU."""
    try:
        return open_device(request.param)
    except DeviceError as error:
        if os.environ.get("VFX_REQUIRE_CUDA") == "1":
            pytest.fail(f"VFX_REQUIRE_CUDA=1, but {error}")
        pytest.skip(str(error))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, not for every test, what was skipped and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    for reason, count in Counter(report.longrepr[2] for report in skipped).items():
        terminalreporter.write_line(f"{count} x {reason}")
