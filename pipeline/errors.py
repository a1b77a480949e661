"""What can go wrong, and the exit code it ends the program with.

Every message is a full sentence (or several lines of them) that says where, what was found,
what is allowed and how to put it right; the command line prints it and nothing more.

Exit codes, as render farms read them: 0 well, 1 a frame failed, 2 bad settings, 3 missing
input, device or room, 129 SIGHUP, 130 Ctrl-C, 141 nobody reads the output, 143 SIGTERM; never 33,
which OpenCue reads as out of memory.
"""

# ruff: noqa: N818 (they read as what happened)

from __future__ import annotations

import errno

_NO_MEMORY = ("failed to map segment", "cannot allocate memory", "cannot enable executable",
              "can't start new thread")


def printable(text: str) -> str:
    """Return a text with escapes for what would move the cursor or ring a bell; lines stay.

    Words of a file from a stranger go into messages.
    """
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1]
                   for letter in text)


class PipelineError(Exception):
    """An end that was foreseen; its text is meant for a person."""

    exit_code = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class ShotError(PipelineError):
    """The shot file or an argument asks for something that cannot be."""

    exit_code = 2


class OutsideShot(ShotError):
    """Frames are asked for that the shot has not."""


class MissingInput(PipelineError):
    """A file, device or upstream stage that the work needs is not there."""

    exit_code = 3


class StorageError(PipelineError):
    """The work folder cannot be written: no permission or no space."""

    exit_code = 3


class DamagedFile(PipelineError):
    """A cache file does not hold what was written into it."""

    exit_code = 3


class FrameFailed(PipelineError):
    """A frame could not be made though everything it needs is there."""

    exit_code = 1


class Stopped(PipelineError):
    """The user (SIGINT, SIGHUP) or the farm (SIGTERM) asked the run to end."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def shortage(error: BaseException) -> str | None:
    """Return what the machine or a limit lacked when something failed, and the way out, or None."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many files are open; raise the limit (ulimit -n), or end other programs"
    if not lacks_memory(error):
        return None
    # Errors are known before any of the libraries below them is loaded.
    from vfx.device.memory import main_memory
    from vfx.pipeline.quantities import as_size

    return (f"out of memory, {as_size(main_memory()[0])} is available; end other programs, raise "
            "the limit of this one (ulimit -v, or that of the job), or use a larger machine")


def lacks_memory(error: BaseException) -> bool:
    """Whether something failed for lack of memory, as far as its error tells."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    if isinstance(error, ImportError | OSError | RuntimeError):
        return any(words in str(error).lower() for words in _NO_MEMORY)
    return isinstance(error, MemoryError)
