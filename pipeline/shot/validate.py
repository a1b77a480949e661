"""Reads a table of a shot file into a settings dataclass, and says all that is wrong with it.

The rules stand at the fields themselves (:mod:`vfx.geometry.handoff.schema`); nothing here knows a
particular key. Complaints are collected, so that one reading shows every mistake.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from vfx.geometry.handoff.schema import Rule, rule_of
from vfx.pipeline.errors import printable
from vfx.pipeline.paths import why_not

Section = TypeVar("Section")

_LONGEST_SHOWN = 60
_LONGEST_FIELD = 120
#: Mistakes that are told; of more only the number is.
MOST_TOLD = 20
#: Characters of a text in a shot file: longer than any name or path that is meant.
LONGEST_TEXT = 1000


class Complaints:
    """The mistakes found in one file; ``homes`` maps every known key to its section."""

    def __init__(self, homes: Mapping[str, str] | None = None) -> None:
        self.count = 0
        self._told: list[str] = []
        self._homes = dict(homes or {})

    @property
    def lines(self) -> list[str]:
        """A line for each of the first mistakes, and one for the number of the others."""
        more = self.count - len(self._told)
        return [*self._told, *([f"and {more:,} more like these"] if more else [])]

    def add(self, field: str, message: str) -> None:
        """Note a mistake at ``field``, a dotted path like ``sim.horizon``."""
        self.count += 1
        if len(self._told) < MOST_TOLD:
            field = cut(field, _LONGEST_FIELD)
            # A key may hold anything, the end of a line too.
            line = f"{field}: {message}" if field else message
            self._told.append(printable(line.replace("\n", "\\n")))

    def unknown(self, field: str, key: str, known: Iterable[str]) -> None:
        """Note a key that does not exist, with the one that was probably meant."""
        # To look for a word that is like it takes time.
        told = len(self._told) < MOST_TOLD
        self.add(field, f"unknown key{self._advice(key, sorted(known))}" if told else "")

    def of_whole(
        self, section: Any, where: str, found_in: Mapping[str, str] | None = None
    ) -> None:
        """Note what a section, read from ``where``, says of its keys taken together.

        It may have a method ``complaints()`` that yields (key, sentence), of the section itself
        with an empty key. ``found_in`` tells where a key stands that has moved.
        """
        if not hasattr(section, "complaints"):
            return
        for key, message in section.complaints():
            place = f"{where}.{key}" if key else where
            self.add((found_in or {}).get(place, place), message)

    def _advice(self, key: str, known: list[str]) -> str:
        if (near := nearest(key, known)) is not None:
            return f"; did you mean '{near}'?"
        if key in self._homes:
            return f"; it belongs in {self._homes[key]}"
        return f"; the keys here are {', '.join(known)}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like ``word``, or None if none is."""
    if len(word) > LONGEST_TEXT:
        return None
    folded = {candidate.lower(): candidate for candidate in known}
    match = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[match[0]] if match else None


def shown(value: Any) -> str:
    """Return a found value as a person wrote it, cut to one short line."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, dict):
        text = "a table"
    elif isinstance(value, int) and abs(value) > 10**40:
        text = "a number of more than 40 digits"
    elif isinstance(value, str):
        text = repr(value[:LONGEST_TEXT])
    else:
        text = repr(value).replace("\n", " ")
    return cut(text)


def cut(text: str, longest: int = _LONGEST_SHOWN) -> str:
    """Return a text, or the beginning of a longer one."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def read_section(
    cls: type[Section], table: Any, where: str, complaints: Complaints
) -> Section | None:
    """Return ``table`` as a ``cls``, or None after noting what is wrong with it.

    ``where`` is the section's dotted path in the file.
    """
    if not isinstance(table, dict):
        complaints.add(where, f"found {shown(table)}, but this is a section: write [{where}] "
                              "and its keys below")
        return None
    fields = _fields(cls)  # type: ignore[arg-type]
    n_before = complaints.count
    for key in table:
        if key not in fields:
            complaints.unknown(f"{where}.{key}", key, fields)
    values = {}
    for name, (wanted, rule, is_required) in fields.items():
        if name not in table:
            if is_required:
                complaints.add(f"{where}.{name}", f"missing; it is required. {rule.doc}")
            continue
        found = table[name]
        converted, problem = convert(found, wanted)
        problem = problem or rule.complaint(converted)
        if problem is not None:
            words = (*rule.choices, *_words(wanted))
            wrong = next((word for word in (found if isinstance(found, list) else [found])
                          if isinstance(word, str) and word not in words), None)
            near = nearest(wrong, words) if wrong is not None else None
            advice = f"; did you mean '{near}'?" if near else ""
            if isinstance(found, list) and wrong is not None and rule.choices:
                advice = f" ({shown(wrong)} is none){advice}"
            complaints.add(f"{where}.{name}",
                           f"found {shown(found)}, but it {problem}{advice} ({rule.doc})")
        values[name] = converted
    if complaints.count > n_before:
        return None
    return cls(**values)


@functools.cache
def _fields(cls: Any) -> dict[str, tuple[Any, Rule, bool]]:
    """Return the type and the rule of each key of a section, and whether it is required."""
    hints = typing.get_type_hints(cls)
    return {field.name: (hints[field.name], rule_of(field), field.default is dataclasses.MISSING)
            for field in dataclasses.fields(cls)}


def convert(value: Any, wanted: Any) -> tuple[Any, str | None]:
    """Return ``value`` as the annotated type ``wanted``, and what is wrong or None.

    Known types are bool, int, float, str, tuples of those of fixed length, tuples of any
    length of what is known, and one of these or a word (``float | Literal["auto"]``). A whole
    number is accepted for a float; true and false are no numbers.
    """
    if (words := _words(wanted)) != ():
        if isinstance(value, str) and value in words:
            return value, None
        converted, problem = convert(value, typing.get_args(wanted)[0])
        return converted, problem and f"must be {type_name(wanted)}"
    if typing.get_origin(wanted) is tuple:
        kinds = typing.get_args(wanted)
        problem = f"must be {type_name(wanted)}"
        if not isinstance(value, list):
            return None, problem
        if kinds[-1] is Ellipsis:
            kinds = kinds[:1] * len(value)
        if len(value) != len(kinds):
            return None, problem
        items = [convert(item, kind) for item, kind in zip(value, kinds, strict=True)]
        if any(wrong for _, wrong in items):
            return None, problem
        return tuple(item for item, _ in items), None
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value), None
        except OverflowError:
            return math.inf, None
    if wanted is str and isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return None, f"must be at most {LONGEST_TEXT:,} characters long, and has {len(value):,}"
        if (reason := why_not(value)) is not None:
            return None, f"cannot be told to others: {reason}"
    if type(value) is wanted:
        return value, None
    return None, f"must be {type_name(wanted)}"


def type_name(wanted: Any) -> str:
    """Return what a type is called, in the singular: 'a number', 'a list of 3 numbers'."""
    if (words := _words(wanted)) != ():
        quoted = (f'"{word}"' for word in words)
        return " or ".join([type_name(typing.get_args(wanted)[0]), *quoted])
    if typing.get_origin(wanted) is not tuple:
        return _NOUNS[wanted][0]
    kinds = typing.get_args(wanted)
    count = "" if kinds[-1] is Ellipsis else f"{len(kinds)} "
    return f"a list of {count}{_plural(kinds[0])}"


def _words(wanted: Any) -> tuple[str, ...]:
    """Return the words that may stand in the place of a value: of ``float | Literal["auto"]``."""
    if typing.get_origin(wanted) not in (typing.Union, types.UnionType):
        return ()
    words: tuple[str, ...] = typing.get_args(typing.get_args(wanted)[1])
    return words


def _plural(wanted: Any) -> str:
    if typing.get_origin(wanted) is not tuple:
        return _NOUNS[wanted][1]
    return "lists" + type_name(wanted).removeprefix("a list")


_NOUNS = {
    bool: ("true or false", "of true or false"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: ("a text in quotes", "texts in quotes"),
}
