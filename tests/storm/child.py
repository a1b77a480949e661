"""One command of the program, in a forked process that is watched.

The parent imports the whole program once and runs none of it (a process that has used OpenMP must
not fork), so a command costs a fork instead of a start of Python. The child tells of every file
that it opens for writing, moves or removes outside the folders it may write in, and can be killed
at its n-th such call, when a file reaches a number of bytes, at a system call, or by the clock.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import os
import pkgutil
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: No command of the storm's small shots may take longer [s].
LIMIT = 60.0
#: A file that makes a reader ask for more than this [bytes] brings down smaller machines.
MEMORY = 8 << 30

#: What a command may say before somebody reads it [bytes].
_PIPE = 1 << 20
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Which arguments of an audit event are paths that it changes, and which one is their folder.
_CHANGING: Mapping[str, tuple[tuple[int, int | None], ...]] = {
    "os.remove": ((0, 1),), "os.rmdir": ((0, 1),), "os.mkdir": ((0, 2),),
    "os.rename": ((0, 2), (1, 3)), "os.link": ((1, 3),), "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),), "os.chmod": ((0, 2),), "os.chown": ((0, 3),),
    "os.utime": ((0, 3),),
}
_DEVICES = ("/dev/null", "/dev/tty", "/dev/full")
#: System calls at which a kill can come, and about how many of each a small run makes.
CALLS = {"openat": 440, "close": 420, "write": 380, "mkdir": 100, "fsync": 74, "rename": 37,
         "flock": 17}


def preload() -> None:
    """Import all that commands would, so that the children need not."""
    import vfx

    skipped = ("vfx.bench", "vfx.device.cuda", "vfx.device.nvrtc", "vfx.device.report",
               "vfx.envmaps.make", "vfx.pipeline.export.openvdb_writer")
    for module in pkgutil.walk_packages(vfx.__path__, "vfx.", onerror=lambda name: None):
        if not module.name.startswith(skipped):
            importlib.import_module(module.name)
    for name in ("trimesh", "trimesh.exchange.load", "manifold3d", "PIL.Image",
                 "PIL.PngImagePlugin", "PIL.JpegImagePlugin", "OpenEXR", "scipy.spatial",
                 "scipy.interpolate", "scipy.sparse.csgraph", "imageio_ffmpeg", "pxr.Usd",
                 "pxr.UsdGeom"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    gc.freeze()


@dataclass(frozen=True)
class Kill:
    """When a child is killed.

    By ``mode``: at the ``at``-th "event" that changes a file, when a file reaches a "byte", by the
    "clock" in seconds, or at the ``at``-th of a system call of :data:`CALLS`.
    """

    mode: str
    at: float
    signal: int = signal.SIGKILL         # at an event, also one that asks


@dataclass(frozen=True)
class Outcome:
    """How a command ended; ``code`` is negative if a signal ended it."""

    words: tuple[str, ...]
    code: int
    output: str
    seconds: float
    hung: bool = False
    outside: tuple[str, ...] = ()
    events: int = 0

    @property
    def command(self) -> str:
        """The command as it would be typed."""
        import shlex

        return shlex.join(("vfx", *self.words)).encode(errors="backslashreplace").decode()


@dataclass
class Child:
    """A command that runs; :meth:`wait` returns its outcome."""

    words: tuple[str, ...]
    pid: int
    begun: float
    _output: int                         # the ends of two pipes
    _notes: int
    _tracer: subprocess.Popen[bytes] | None = None
    _kill_after: float | None = None
    _outcome: Outcome | None = field(default=None, repr=False)

    def wait(self, limit: float = LIMIT) -> Outcome:
        """Wait for the end of the command, at most ``limit`` seconds, and return how it ended."""
        if self._outcome is not None:
            return self._outcome
        handle = os.pidfd_open(self.pid)
        try:
            if self._kill_after is not None and not _ends_within(handle, self._kill_after):
                os.kill(self.pid, signal.SIGKILL)
            hung = False
            while not hung and not _ends_within(handle, limit - self._own_seconds()):
                hung = self._own_seconds() >= limit
        finally:
            os.close(handle)
        seconds = time.monotonic() - self.begun
        if hung:
            os.killpg(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if self._tracer is not None:
            self._tracer.communicate()
        self._end_orphans()
        notes = _text(self._notes).splitlines()
        self._outcome = Outcome(
            self.words, code, _text(self._output), seconds, hung,
            tuple(sorted({line.removeprefix("outside ") for line in notes
                          if line.startswith("outside ")})),
            sum(int(line.removeprefix("events ")) for line in notes
                if line.startswith("events ")))
        return self._outcome

    def _own_seconds(self) -> float:
        """Return how long the command runs, without the time it waited for a core to be free."""
        try:
            waited = int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) * 1e-9
        except (OSError, IndexError):
            waited = 0.0
        return time.monotonic() - self.begun - waited

    def _end_orphans(self) -> None:
        """Let programs that a killed command had started (ffmpeg) notice, and end.

        They may be in groups of their own, but not in another session.
        """
        for seconds in (10.0, 30.0):
            deadline = time.monotonic() + seconds
            while (alive := _of_session(self.pid)) and time.monotonic() < deadline:
                time.sleep(0.005)
            for process in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def end(self) -> None:
        """End a command that nobody waited for."""
        if self._outcome is None:
            # Whoever waited for it and failed may have seen its end.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                self.wait()


def start(
    words: Sequence[str], *, folder: Path, writable: Sequence[Path],
    environment: Mapping[str, str] | None = None, kill: Kill | None = None,
    prepare: Callable[[], None] | None = None,
    command: Callable[[], Any] | None = None,
) -> Child:
    """Start ``vfx words`` in ``folder``; ``prepare`` runs in the child before the command.

    ``command`` is a function to call in its place.
    """
    (output, output_end), (notes, notes_end) = os.pipe(), os.pipe()
    for end in (output_end, notes_end):
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, _PIPE)
    gate = os.pipe() if kill is not None and kill.mode in CALLS else None
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _live(words, folder, writable, environment or {}, kill, prepare, command,
                         output_end, notes_end, gate)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(output_end)
    os.close(notes_end)
    tracer = None
    if gate is not None and kill is not None:
        os.close(gate[0])
        tracer = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid), "-e",
             f"trace={kill.mode}", "-e", f"inject={kill.mode}:signal=KILL:when={int(kill.at)}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait_for_tracer(pid, tracer)
        os.write(gate[1], b"g")
        os.close(gate[1])
    after = kill.at if kill is not None and kill.mode == "clock" else None
    return Child(tuple(words), pid, begun, output, notes, tracer, after)


def can_trace() -> bool:
    """Whether system calls can be counted here."""
    return shutil.which("strace") is not None


def _live(words: Sequence[str], folder: Path, writable: Sequence[Path],
          environment: Mapping[str, str], kill: Kill | None, prepare: Callable[[], None] | None,
          command: Callable[[], Any] | None, output: int, notes: int,
          gate: tuple[int, int] | None) -> int:
    """Be the child: become like a process of its own, run the command, return its exit code."""
    os.setsid()
    notes = _take_descriptors(os.open("/dev/null", os.O_RDONLY), output, notes,
                              None if gate is None else gate[0])
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="strict", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.update(environment)
    sys.dont_write_bytecode = True
    tempfile.tempdir = None              # forget the parent's, and look at the environment
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if prepare is not None:
        prepare()
    if kill is not None and kill.mode == "byte":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(kill.at), int(kill.at)))
    if gate is not None:
        os.read(notes + 1, 1)
    watch = _Watch([os.path.realpath(path) for path in writable], notes, kill)
    sys.addaudithook(watch)
    code = _call(words, command)
    watch.close()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 120
    return code


def _take_descriptors(nothing: int, output: int, notes: int, gate: int | None) -> int:
    """Keep the standard streams, and behind them only the notes and the gate; return the notes'."""
    handles = [os.dup(handle) for handle in (nothing, output, output, notes)]
    handles += [] if gate is None else [os.dup(gate)]
    for target, handle in enumerate(handles):
        os.dup2(handle, target, inheritable=target < 3)
    os.closerange(len(handles), 1 << 16)
    return 3


def _call(words: Sequence[str], command: Callable[[], Any] | None) -> int:
    from vfx.pipeline.cli.start import main

    sys.argv = ["vfx", *words]
    try:
        (command or main)()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class _Watch:
    """An audit hook: notes what is changed outside, counts changes, kills at one of them."""

    def __init__(self, roots: list[str], notes: int, kill: Kill | None) -> None:
        self._roots = tuple(roots)
        self._notes = notes
        self._kill = kill if kill is not None and kill.mode == "event" else None
        self._count = 0
        self._is_open = True

    def close(self) -> None:
        self._is_open = False
        os.write(self._notes, b"events %d\n" % self._count)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_open:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING:
                self._note(path, None)
        elif event in _CHANGING:
            for place, base in _CHANGING[event]:
                self._note(arguments[place], None if base is None else arguments[base])

    def _note(self, path: Any, base: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        name = os.fsdecode(path)
        if isinstance(base, int) and base >= 0 and not os.path.isabs(name):
            name = os.path.join(os.readlink(f"/proc/self/fd/{base}"), name)
        if name in _DEVICES:
            return
        head, tail = os.path.split(os.path.abspath(name))
        real = os.path.join(os.path.realpath(head), tail)
        if not any(real == root or real.startswith(root + "/") for root in self._roots):
            os.write(self._notes, b"outside " + repr(real).encode() + b"\n")
        self._count += 1
        if self._kill is not None and self._count == int(self._kill.at):
            os.kill(os.getpid(), self._kill.signal)


def _wait_for_tracer(pid: int, tracer: subprocess.Popen[bytes]) -> None:
    while tracer.poll() is None:
        status = Path(f"/proc/{pid}/status").read_text()
        if "TracerPid:\t0\n" not in status:
            return
        time.sleep(0.002)


def _of_session(number: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        # It may end while it is looked at; a glob would not bear that.
        with contextlib.suppress(OSError, ValueError):
            text = Path("/proc", name, "stat").read_text(errors="replace")
            # The name, in brackets, may hold anything.
            state, _, _, session = text.rpartition(")")[2].split()[:4]
            if int(session) == number and state not in "ZX":
                found.append(int(name))
    return found


def _ends_within(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1e3))


def _text(handle: int) -> str:
    """Return what is in a pipe that nobody writes to any more."""
    os.set_blocking(handle, False)
    data = b""
    with contextlib.suppress(BlockingIOError):
        while block := os.read(handle, _PIPE):
            data += block
    os.close(handle)
    return data.decode("utf-8", errors="surrogateescape")
