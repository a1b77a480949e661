"""Shared fixtures: every test that takes `device` runs on each device present."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from vfx.device import Device, DeviceError, Launch, open_device


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let one device be chosen: ``pytest --device warp tests/geometry``."""
    parser.addoption("--device", help="run what takes a device on this one alone")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that takes `device` on each device; on warp, which is slow, those marked."""
    marked = metafunc.definition.get_closest_marker("warp") is not None
    if "device" not in metafunc.fixturenames:
        if marked:
            raise pytest.UsageError(f"{metafunc.definition.nodeid}: marked warp, takes no device")
        return
    chosen = metafunc.config.getoption("device")
    names = [chosen] if chosen else ["cpu", "guard", *["warp"] * marked, "cuda:0"]
    metafunc.parametrize("device", names, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what asks about the other tests behind them."""
    items.sort(key=lambda item: item.get_closest_marker("after_all") is not None)


#: Names of the kernels that tests have launched on the warp device.
launched_on_warp: set[str] = set()


def note_launches(device: Device) -> Device:
    """Return the device, which from now on notes what it launches."""
    run = device.run

    def noting(launches: Sequence[Launch], *args: Any, **kwargs: Any) -> None:
        launched_on_warp.update(launch.kernel.signature.name for launch in launches)
        run(launches, *args, **kwargs)

    device.run = noting  # type: ignore[method-assign]
    return device


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Device:
    """The CPU, the guarded CPU, warps on the CPU and, where there is one, the first GPU."""
    try:
        opened = open_device(request.param)
        return note_launches(opened) if request.param == "warp" else opened
    except DeviceError as error:
        if not request.param.startswith("cuda"):
            raise
        if os.environ.get("VFX_REQUIRE_CUDA") == "1":
            pytest.fail(f"VFX_REQUIRE_CUDA=1, but {error}")
        pytest.skip(str(error))


@pytest.fixture
def kernels_run_on_warp(request: pytest.FixtureRequest) -> set[str]:
    """What all tests together launched on warp; skips where only some of them run."""
    config = request.config
    chosen = [config.getoption(option) for option in ("device", "keyword", "markexpr", "deselect")]
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or any(chosen):
        pytest.skip("only the whole suite can tell which kernels it runs")
    return launched_on_warp


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, not for every test, what was skipped and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    for reason, count in Counter(report.longrepr[2] for report in skipped).items():
        terminalreporter.write_line(f"{count} x {reason}")
