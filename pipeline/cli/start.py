"""The command ``vfx``: loads the command line, and ends quietly if stopped while it loads."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

from vfx.pipeline.errors import PipelineError, lacks_memory
from vfx.pipeline.streams import open_streams


def main() -> None:
    """Run the command line; a stop before it is there ends as it does afterwards."""
    open_streams()
    # The arrays of the host need no threads of their own, which take 30 MB each and end the
    # process, or wait for ever, where that is not to be had.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # One that is ignored from outside, as SIGHUP under nohup, stays so. A KeyboardInterrupt would
    # become whatever error the module that is just loading makes of it.
    heeded = [number for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
              if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    for number in heeded:
        signal.signal(number, _leave_early)
    try:
        from vfx.pipeline.cli.commands import main as command_line
    except Exception as error:
        if not any(map(lacks_memory, _chain(error))):
            raise
        print("vfx cannot be loaded, for there is not enough memory; end other programs, or "
              "raise the limit (ulimit -v, or that of the job)", file=sys.stderr)
        sys.exit(3)

    for number in heeded:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _leave)
    try:
        command_line()
    except PipelineError as error:          # of help and usage, which no command prints
        if str(error):
            print(error, file=sys.stderr)
        sys.exit(error.exit_code)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those it came from: modules wrap what loading others raised."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _leave_early(number: int, _: object) -> None:
    """End at once: nothing is open yet."""
    print("stopped before anything was done", file=sys.stderr, flush=True)
    os._exit(128 + number)


def _leave(number: int, _: object) -> None:
    """End at once a command that has nothing to save: files are whole or not there."""
    print(f"stopped by {signal.Signals(number).name}; finished files are kept", file=sys.stderr,
          flush=True)
    os._exit(128 + number)
