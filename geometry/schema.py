"""Typed settings: what a shot file may say, written once, where it is used.

A settings section is a frozen dataclass whose fields are made with :func:`setting`.
The default, the unit, the allowed range and the sentence that explains a key stand
together; the shot reader validates against them and the key reference is generated
from them. This module is below all that use it and knows nothing of files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

REQUIRED = dataclasses.MISSING


@dataclass(frozen=True)
class Rule:
    """What a value must satisfy, and how a person is told of it.

    ``above`` is exclusive, ``at_least`` and ``at_most`` are inclusive; for vectors they
    hold for every component. ``choices`` lists the allowed words.
    """

    doc: str
    unit: str = ""
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()

    def complaint(self, value: Any) -> str | None:
        """Return what is wrong with ``value``, or None; its type is already right."""
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}"
        for number in _numbers(value):
            if number != number or number in (float("inf"), float("-inf")):
                return "must be a finite number"
            if self.above is not None and not number > self.above:
                return f"must be above {self.above:g}{self._unit()}"
            if self.at_least is not None and not number >= self.at_least:
                return f"must be at least {self.at_least:g}{self._unit()}"
            if self.at_most is not None and not number <= self.at_most:
                return f"must be at most {self.at_most:g}{self._unit()}"
        return None

    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers of a value, of a vector, or of lists of those."""
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def setting(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare a keyword-only field of a settings section; ``default`` may be ``REQUIRED``."""
    rule = Rule(doc, unit, above, at_least, at_most, choices)
    return dataclasses.field(default=default, kw_only=True, metadata={"rule": rule})


def section(factory: Any, doc: str) -> Any:
    """Declare a nested section (``factory`` builds its default) or a list/table of them."""
    return dataclasses.field(
        default_factory=factory, kw_only=True, metadata={"rule": Rule(doc)})


def rule_of(field: dataclasses.Field[Any]) -> Rule:
    """Return the rule a field was declared with."""
    rule: Rule = field.metadata["rule"]
    return rule
