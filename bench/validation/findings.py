"""What a validation found, beside what it should be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vfx.bench.rows import Row


@dataclass(frozen=True)
class Finding:
    """One figure and its verdict; ``value`` is its number for the rows, as is the anchor's."""

    name: str
    found: str
    expected: str
    passed: bool
    value: float | None = None
    unit: str = ""
    anchor_value: float | None = None

    def line(self) -> str:
        """Return the finding as one line."""
        verdict = "PASS" if self.passed else "FAIL"
        return f"{verdict}  {self.name}: {self.found} (expected: {self.expected})"

    def row(self, case: str) -> Row:
        """Return the finding as a measurement; without a number it is 1 for PASS, 0 for FAIL."""
        if self.value is None:
            return Row(case, self.name, float(self.passed), "1 = as expected")
        ratio = self.value / self.anchor_value if self.anchor_value else None
        return Row(case, self.name, self.value, self.unit, self.expected, self.anchor_value, ratio)


@dataclass
class Report:
    """The findings of one validation, and what its plot is drawn from."""

    case: str
    findings: list[Finding] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, found: str, expected: str, passed: bool, *,
            value: float | None = None, unit: str = "", anchor_value: float | None = None) -> None:
        """Note a finding and print it at once: runs take a minute."""
        self.findings.append(
            Finding(name, found, expected, bool(passed), value, unit, anchor_value))
        print(self.findings[-1].line(), flush=True)

    def note(self, sentence: str) -> None:
        """Print what is no verdict."""
        print(f"      {sentence}", flush=True)

    @property
    def passed(self) -> bool:
        """Whether every finding is as expected."""
        return all(finding.passed for finding in self.findings)

    def rows(self) -> list[Row]:
        """Return all findings as measurements."""
        return [finding.row(self.case) for finding in self.findings]
