"""Names of files and folders as everybody can take them: people, logs, JSON, shells and farms.

A newline in a path is a second line in a batch script, and bytes that are no text cannot be
written into a manifest; so such names are refused where they come in, and nowhere else has to
think of them. All other characters are allowed, and quoted wherever they go.
"""

from __future__ import annotations

import os
import unicodedata
from typing import Any

import click

_NO_PART_OF_A_LINE = ("Cc", "Zl", "Zp")     # control characters and ends of lines


def why_not(name: str) -> str | None:
    """Return why a path, or a word for a farm, cannot be told to others; None if it can."""
    try:
        name.encode()
    except UnicodeEncodeError:
        try:
            os.fsencode(name).decode()
        except ValueError:
            return "it has bytes that are no UTF-8 text; rename it"
        return ("it has letters that the locale of this shell does not know; set "
                "LC_ALL=C.UTF-8, or rename it")
    strange = next((letter for letter in name
                    if unicodedata.category(letter) in _NO_PART_OF_A_LINE), None)
    if strange is not None:
        return (f"it has the control character {strange!a}, which no log or farm takes; "
                "rename it")
    return None


class NamedPath(click.Path):
    """A path on the command line; one that cannot be told to others is refused."""

    def convert(self, value: Any, param: click.Parameter | None,
                ctx: click.Context | None) -> Any:
        """Return the path as the type wants it; in full if it could be taken for an option."""
        name = os.fspath(value)
        try:
            here = os.getcwd()
        except OSError:
            self.fail("the current folder is gone, removed or moved by somebody; change to "
                      "another one", param, ctx)
        for what, path in (("found", name), ("the current folder is", here)):
            if (reason := why_not(path)) is not None:
                self.fail(f"{what} {path!a}, but {reason}", param, ctx)
        return super().convert(os.path.join(here, name) if name.startswith("-") else value,
                               param, ctx)
