"""Every key of a shot file, as Markdown, from the schema itself: ``vfx reference``.

``docs/reference.md`` is made by it (``make reference``), and a test holds the two together.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from vfx.geometry.handoff.schema import Rule, rule_of
from vfx.pipeline.shot.shot_file import tables
from vfx.pipeline.shot.validate import type_name

_HEAD = """\
# Shot keys

Made from the schema by `make reference`; do not edit. Every key left out has its default.
Units are SI unless said; y is up. `vfx check` says what a file means and whether it can run.
"""


def reference() -> str:
    """Return the reference of all keys."""
    parts = [_HEAD]
    for heading, cls in tables().items():
        parts.append(f"## `{heading}`\n\n{_paragraphs(cls)}\n\n"
                     "| key | what it is | default | allowed |\n|---|---|---|---|\n"
                     + "\n".join(_rows(cls)) + "\n")
    return "\n".join(parts)


def _paragraphs(cls: type[Any]) -> str:
    """Return the docstring of a class, a line a paragraph, code marks as Markdown's."""
    text = (cls.__doc__ or "").strip().replace("``", "`")
    return "\n\n".join(_cell(" ".join(part.split())) for part in text.split("\n\n"))


def _rows(cls: type[Any]) -> list[str]:
    hints = typing.get_type_hints(cls)
    rows = []
    for field in dataclasses.fields(cls):
        rule = rule_of(field)
        kind = type_name(hints[field.name])
        unit = f" [{rule.unit}]" if rule.unit else ""
        rows.append(f"| `{field.name}` | {_cell(rule.doc)} | {_default(field)}{unit} | "
                    f"{_cell(_allowed(rule, kind))} |")
    return rows


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return "**required**"
    return f"`{_toml(field.default)}`"


def _toml(value: Any) -> str:
    """Return a value as a shot file writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        text = _number(value)
        return text if any(sign in text for sign in ".en") else f"{text}.0"
    return str(value)


def _number(value: float) -> str:
    """Return a number in its shortest form: 1e8, 0.25, 2147483647."""
    if isinstance(value, int) and value < 10**5:
        return str(value)
    short = f"{value:g}"
    text = short if float(short) == value else f"{value:.12g}"
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else text


def _allowed(rule: Rule, kind: str) -> str:
    if rule.choices:
        return ", ".join(f'`"{choice}"`' for choice in rule.choices)
    bounds = [text for bound, text in (
        (rule.above, "above {}"), (rule.at_least, "at least {}"), (rule.at_most, "at most {}"))
        if bound is not None]
    values = [bound for bound in (rule.above, rule.at_least, rule.at_most) if bound is not None]
    words = [text.format(_number(value)) for text, value in zip(bounds, values, strict=True)]
    return ", ".join([kind, *words])


def _cell(text: str) -> str:
    """Return text as Markdown shows it in a table; what stands in backticks is shown as it is."""
    parts = text.replace("|", "\\|").split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("_", r"\_") for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    print(reference(), end="")
