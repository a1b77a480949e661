"""A render that is killed and run again gives the pixels of an undisturbed one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import OpenEXR
import pytest
from small_plate import plate_shot

#: When the process is killed, at its second frame: while rays are traced, while the mattes are half
#: written, and, those being done, while the beauty is.
TRACING = """
from vfx.pipeline.progress import Progress
update = Progress.update
def kill(self, frame, fraction, *rest, **more):
    if frame == 1002 and fraction > 0.55:
        os.kill(os.getpid(), signal.SIGKILL)
    update(self, frame, fraction, *rest, **more)
Progress.update = kill
"""
WRITING = """
from vfx.raytrace.film import exr
write = exr.write_exr
def kill(path, *rest, **more):
    write(path, *rest, **more)
    if path.name.endswith('{name}'):
        os.truncate(path, path.stat().st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
exr.write_exr = kill
"""
MOMENTS = {
    "tracing": TRACING,
    "mattes half written": WRITING.format(name="plate_crypto.1002.exr"),
    "beauty half written": WRITING.format(name="plate.1002.exr"),
}
SCRIPT = """
import os, signal, sys
{moment}
from vfx.pipeline.cli.commands import main
main()
"""


def pixels(folder: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the channels of all frames in a work folder, by file."""
    files = {}
    for path in sorted(Path(folder, "render").glob("plate*.exr")):
        with OpenEXR.File(str(path), separate_channels=True) as file:
            files[path.name] = {name: np.asarray(channel.pixels).copy()
                                for name, channel in file.channels().items()}
    return files


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_render_goes_on_to_the_same_pixels(
        tmp_path: Path, vfx, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    monkeypatch.chdir(tmp_path)
    shot = tmp_path / "plate.toml"
    shot.write_text(plate_shot("1001-1003", 20, (48, 32), 6))
    for stage in ("geometry", "sim", "align"):
        assert vfx("stage", stage, shot, "--device", "cpu", "--work", "whole").exit_code == 0
    shutil.copytree("whole", "parts")
    assert vfx("stage", "render", shot, "--device", "cpu", "--work", "whole").exit_code == 0

    killed = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(moment=MOMENTS[moment]), "stage", "render", str(shot),
         "--device", "cpu", "--work", "parts"], capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    done = pixels("parts")                       # every file under its own name opens whole
    assert "plate.1001.exr" in done and "plate.1002.exr" not in done
    assert "1002" in vfx("status", shot, "--work", "parts").output

    again = vfx("stage", "render", shot, "--device", "cpu", "--work", "parts")
    assert again.exit_code == 0, again.output
    expected, found = pixels("whole"), pixels("parts")
    assert expected.keys() == found.keys() and len(found) == 6
    for name, channels in expected.items():
        assert channels.keys() == found[name].keys()
        for channel, values in channels.items():
            assert np.array_equal(values, found[name][channel], equal_nan=True), (name, channel)
    assert not list(Path("parts/render").glob(".tmp*")), "what the killed process left is gone"
