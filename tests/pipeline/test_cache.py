"""Files are whole or not there, whatever happens while they are written."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vfx.pipeline.errors import DamagedFile, MissingInput, StorageError
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.stages.table import RENDER
from vfx.pipeline.work.cache import (
    is_intact,
    locked,
    publish,
    publish_bytes,
    read_npz,
    remove_leftovers,
    write_npz,
    write_result,
)
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import Entry, Published, State, read_manifest, update_manifest

SLOW_WRITER = """
import sys, time
from pathlib import Path
from vfx.pipeline.work.cache import publish
def write(temporary):
    with open(temporary, "wb") as file:
        file.write(b"half of the new")
        file.flush()
        Path(sys.argv[2]).touch()
        time.sleep(60)
publish(Path(sys.argv[1]), write)
"""


def test_kill_in_mid_write_leaves_the_old_file_and_a_leftover_that_goes(tmp_path: Path) -> None:
    path, mark = tmp_path / "a.npz", tmp_path / "mark"
    publish_bytes(path, b"old")
    writer = subprocess.Popen([sys.executable, "-c", SLOW_WRITER, str(path), str(mark)])
    while not mark.exists():
        assert writer.poll() is None
        time.sleep(0.01)
    assert remove_leftovers(tmp_path) == [], "the writer lives: its file is not ours to remove"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert path.read_bytes() == b"old"
    assert len(remove_leftovers(tmp_path)) == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.npz", "mark"]


def test_files_of_others_are_no_leftovers(tmp_path: Path) -> None:
    for name in (".tmp-notes", "a.tmp", ".tmp-otherhost-1-12345678-a.npz"):
        (tmp_path / name).write_text("mine")
    assert remove_leftovers(tmp_path) == []


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def write(temporary: Path) -> None:
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "a", write)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number, word", [
    (errno.ENOSPC, "space"), (errno.EACCES, "cannot be written"), (errno.EROFS, "--work")])
def test_what_a_disk_refuses_is_a_sentence(tmp_path: Path, number: int, word: str) -> None:
    def write(temporary: Path) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(StorageError, match=word):
        publish(tmp_path / "a", write)


arrays = {"position": np.arange(12.0).reshape(4, 3), "frame": np.array(7), "name": np.array(["a"])}


def test_equal_arrays_make_equal_files(tmp_path: Path) -> None:
    first = write_npz(tmp_path / "a.npz", arrays)
    time.sleep(0.01)
    assert write_npz(tmp_path / "b.npz", arrays) == first
    read = read_npz(tmp_path / "a.npz")
    assert all(np.array_equal(read[name], arrays[name]) for name in arrays)
    assert read_npz(tmp_path / "a.npz", ["frame"]).keys() == {"frame"}
    later = read_npz(tmp_path / "a.npz", ["frame"], ["of_a_later_version"])
    assert later.keys() == {"frame"}, "what a file of before lacks may be missing"
    with pytest.raises(DamagedFile):
        read_npz(tmp_path / "a.npz", ["of_a_later_version"])


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_npz(tmp_path / "a.npz", {"x": np.array([{}], object)})
    np.savez(tmp_path / "b.npz", x=np.array([{}], object))
    with pytest.raises(DamagedFile):
        read_npz(tmp_path / "b.npz")
    with pytest.raises(MissingInput):
        read_npz(tmp_path / "c.npz")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_noticed(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a.npz"
    published = write_result(path, arrays, "made from these")
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert not is_intact(path, published)
    with pytest.raises(DamagedFile):
        read_npz(path)


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    with (locked(tmp_path / "lock"), pytest.raises(MissingInput, match="busy"),
          locked(tmp_path / "lock", "busy")):
        pass
    with locked(tmp_path / "lock", "busy"):
        pass


def test_processes_that_add_to_one_manifest_lose_nothing(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from vfx.pipeline.work.manifest import Entry, Published, update_manifest
for i in range(20):
    entry = Entry("f", Published("h", i), "d")
    update_manifest(Path(sys.argv[1]), "sim", 1,
                    lambda files: files.__setitem__(f"{sys.argv[2]}.{i}", entry))
"""
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), name])
                 for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(read_manifest(tmp_path, "sim", 1).files) == 60


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', '{"files": {"a": {}}}', "\x00",
                                  '{"files": {"a": {"fingerprint": 1, "hash": "", "size": 0, '
                                  '"device": ""}}}'])
def test_a_damaged_manifest_lists_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    manifest = read_manifest(tmp_path, "sim", 1)
    assert (manifest.files, manifest.fault) == ({}, "damaged")
    entry = Entry("f", Published("h", 3), "cpu")
    update_manifest(tmp_path, "sim", 1, lambda files: files.__setitem__("a", entry))
    assert read_manifest(tmp_path, "sim", 1).files == {"a": entry}


def test_the_entry_of_a_file_that_two_wrote_is_that_of_the_last(shot_file: Path, vfx) -> None:
    """Two tasks of one frame, on devices whose bytes differ, that list their files out of turn."""
    vfx("run", shot_file)
    work = Work(load_shot(shot_file), Path("work/plate"))
    render = RENDER
    path = work.path(render, 1002)
    fingerprint = str(work.fingerprint(render, 1002))
    first, second = path.read_bytes(), path.read_bytes() + b"other"
    listed = [publish_bytes(path, data) for data in (first, second)]
    for published, device in reversed(list(zip(listed, ("a", "b"), strict=True))):
        work.record(render, path, fingerprint, published, device)
    work.refresh()
    assert work.manifest(render).files[path.name].device == "b"
    assert work.state(render, 1002) is State.DONE
