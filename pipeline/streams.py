"""Standard input and output that cannot end a run: closed ones, readers that go away, full disks.

What a command tells of its work is less than the work: whoever listens may leave, and the run
goes on (:func:`tell`, and all of standard error). Where the output is the result itself, the
first line that cannot be written ends the command.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from contextlib import suppress
from typing import Any, TextIO

from vfx.pipeline.errors import PipelineError


class Unheard(PipelineError):  # noqa: N818 (it reads as what happened)
    """Standard output takes no more."""

    exit_code = 3

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: cannot be written ({error.strerror}); free some room, "
                         "or send it elsewhere")
        if error.errno == errno.EPIPE:
            # Its reader has all it wanted: an end without a word, as of other tools.
            self.args = ("",)
            self.exit_code = 141


def open_streams() -> None:
    """Give the process its three streams, whatever it was started with."""
    # Else the next file that is opened would become standard output.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _text(_Outlet(1, is_result=True), sys.stdout)
    sys.stderr = _text(_Outlet(2, is_result=False), sys.stderr)


def tell(text: str) -> None:
    """Print a line about work that goes on whether it is heard or not."""
    with suppress(Unheard, OSError):
        print(text, flush=True)


class _Outlet(io.FileIO):
    """A stream that drops what nobody takes; the first loss of a result is raised."""

    def __init__(self, number: int, *, is_result: bool) -> None:
        super().__init__(number, "wb", closefd=False)
        self._is_result = is_result
        self._is_lost = False

    def write(self, data: Any) -> int:
        while not self._is_lost:
            try:
                written = super().write(data)
            except OSError as error:
                self._is_lost = True
                if self._is_result:
                    raise Unheard(error) from None
                break
            if written is not None:
                return written
            select.select([], [self], [])       # one that does not block is full for now
        return memoryview(data).nbytes


def _text(outlet: _Outlet, like: TextIO | None) -> TextIO:
    """Return a text stream that shows what its encoding has not as escapes."""
    return io.TextIOWrapper(
        io.BufferedWriter(outlet), encoding=like.encoding if like else "utf-8",
        errors="backslashreplace", line_buffering=True)
