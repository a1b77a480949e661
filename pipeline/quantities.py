"""Quantities as a person reads them: sizes, counts, times, and SI prefixes for any unit."""

from __future__ import annotations

import math

_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}


def si_prefix(value: float) -> tuple[float, str]:
    """Return the power of a thousand that brings ``value`` near 1, and its prefix."""
    if value == 0.0 or not math.isfinite(value):
        return 1.0, ""
    exponent = 3 * math.floor(math.log10(abs(value)) / 3.0 + 1e-9)
    exponent = min(max(exponent, min(_PREFIXES)), max(_PREFIXES))
    return 10.0**exponent, _PREFIXES[exponent]


def as_size(n_bytes: float) -> str:
    """Return a number of bytes as a person reads it."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n_bytes < 1000.0:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000.0
    return f"{1000.0 * n_bytes:.3g} TB"


def as_count(number: float) -> str:
    """Return a count: 5.4 M, 812 k, 99."""
    if number < 1000:
        return f"{number:.0f}"
    scale, prefix = si_prefix(number)
    value = number / scale
    return f"{value:.1f} {prefix}" if value < 100.0 else f"{value:.0f} {prefix}"


def as_pace(speed: float) -> str:
    """Return the speed of a shot, 1 for real time, in words."""
    if abs(speed - 1.0) < 5e-3:
        return "at real time"
    return (f"{1.0 / speed:.3g} times slower than real time" if speed < 1.0
            else f"{speed:.3g} times faster than real time")


def as_time(seconds: float) -> str:
    """Return a time in s, ms, us or ns: 0.121 ms. Logs may hold ASCII only."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds == 0.0 or seconds >= 0.1 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def as_duration(seconds: float) -> str:
    """Return how long a person has to wait: 40 minutes, 5 hours, 3.2 days."""
    for scale, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2.0 * scale:
            return f"{seconds / scale:.2g} {unit}" if seconds < 100.0 * scale else (
                f"{seconds / scale:,.0f} {unit}")
    return f"{seconds:.2g} s"


def as_clock(seconds: float) -> str:
    """Return a time as hours, minutes and seconds: 0:03:12."""
    whole = round(min(seconds, 3.6e9))
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
