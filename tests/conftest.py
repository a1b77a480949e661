"""Shared fixtures: every test that takes `device` runs on each device present."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from vfx.device import Device, DeviceError, Launch, open_device, source


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let one device be chosen: ``pytest --device warp tests/geometry``."""
    parser.addoption("--device", help="run what takes a device on this one alone")


def pytest_configure(config: pytest.Config) -> None:
    """Give every process of a parallel run cores of its own, or its threads would wait in turns."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and hasattr(os, "sched_setaffinity"):
        cores, n_workers = sorted(os.sched_getaffinity(0)), int(
            os.environ["PYTEST_XDIST_WORKER_COUNT"])
        os.sched_setaffinity(0, cores[int(worker.removeprefix("gw"))::n_workers] or cores)


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


def pytest_testnodedown(node: Any) -> None:
    """Take over what a process of a parallel run has launched."""
    launched_on_warp.update(getattr(node, "workeroutput", {}).get("launched_on_warp", ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a whole run of the tests that leaves a kernel unlaunched on the warp device."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["launched_on_warp"] = sorted(launched_on_warp)
        return
    chosen = [config.getoption(option) for option in
              ("device", "keyword", "markexpr", "deselect", "collectonly")]
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not any(chosen)
    if is_whole and exitstatus == pytest.ExitCode.OK and (missing := never_launched(
            launched_on_warp)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        config.stash[_MISSING] = missing


_MISSING = pytest.StashKey[list[str]]()


def never_launched(launched: set[str]) -> list[str]:
    """Return the kernels that are not among those launched, with their files."""
    known = {name: file for file in source.kernel_files()
             for name in source.signatures(source.flatten(file))}
    return [f"{name} ({known[name]})" for name in sorted(set(known) - launched)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once, not for every test, what was skipped and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    for reason, count in Counter(report.longrepr[2] for report in skipped).items():
        terminalreporter.write_line(f"{count} x {reason}")
    if missing := terminalreporter.config.stash.get(_MISSING, []):
        terminalreporter.write_line(
            "FAILED: no test launches these on warp; mark a small one of each with "
            "@pytest.mark.warp: " + ", ".join(missing), red=True)
