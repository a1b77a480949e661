"""The command ``vfx``: loads the command line, and ends quietly if stopped while it loads."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line; Ctrl-C before it is there ends with 130, as it does afterwards."""
    # A KeyboardInterrupt would become whatever error the module that is just loading makes of it.
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, _leave)
    from vfx.pipeline.cli import main as command_line

    if is_heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command_line()


def _leave(*_: object) -> None:
    """End at once: nothing is open yet."""
    print("stopped before anything was done", file=sys.stderr, flush=True)
    os._exit(130)
