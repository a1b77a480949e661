"""Typed settings: what a shot file may say, written once, where it is used.

A settings section is a frozen dataclass whose fields are made with :func:`setting`.
The default, the unit, the allowed range and the sentence that explains a key stand
together; the shot reader validates against them and the key reference is generated
from them. This module is below all that use it and knows nothing of files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

REQUIRED = dataclasses.MISSING


@dataclass(frozen=True)
class Rule:
    """What a value must satisfy, and how a person is told of it.

    ``above`` is exclusive, ``at_least`` and ``at_most`` are inclusive; for vectors they
    hold for every component. ``choices`` lists the allowed words, of a list of them as well.
    """

    doc: str
    unit: str = ""
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    choices: Collection[str] = ()

    def complaint(self, value: Any) -> str | None:
        """Return what is wrong with ``value``, or None; its type is already right."""
        words = value if isinstance(value, tuple) else (value,)
        if self.choices and not set(words) <= set(self.choices):
            each = "each " if isinstance(value, tuple) else ""
            return f"must {each}be one of {', '.join(filter(None, self.choices))}"
        for number in _numbers(value):
            if number != number or number in (float("inf"), float("-inf")):
                return "must be a finite number"
            if self.above is not None and not number > self.above:
                return f"must be above {self._bound(self.above)}"
            if self.at_least is not None and not number >= self.at_least:
                return f"must be at least {self._bound(self.at_least)}"
            if self.at_most is not None and not number <= self.at_most:
                return f"must be at most {self._bound(self.at_most)}"
        return None

    def _bound(self, number: float) -> str:
        """Return a bound with its unit: ``1 pixel``, ``1e6 m/s``, ``0 (in 1/s)``."""
        text = str(number) if isinstance(number, int) else f"{number:g}"
        mantissa, _, exponent = text.partition("e")
        text = f"{mantissa}e{int(exponent)}" if exponent else text
        if not self.unit:
            return text
        if self.unit[0].isdigit():
            return f"{text} (in {self.unit})"
        is_word = self.unit in ("pixels", "degrees", "stops")
        return f"{text} {self.unit[:-1] if is_word and number == 1 else self.unit}"


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
    choices: Collection[str] = (),
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
