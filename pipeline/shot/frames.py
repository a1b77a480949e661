"""Frame ranges as farms and artists write them: ``1001-1100x2,1120``.

``a-b`` is inclusive, ``xN`` takes every N-th frame from a, commas join. A colon is refused:
it means a step in some farms and an interleave in others, so nobody can be sure of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from vfx.pipeline.errors import OutsideShot, ShotError

LAST_FRAME = 9_999_999
MOST_FRAMES = 100_000
_PART = re.compile(r"(\d+)(?:-(\d+)(?:x(\d{1,9}))?)?", re.ASCII)


def parse_parts(text: str) -> list[range]:
    """Return the ranges a frame expression lists, unexpanded; raise ShotError if malformed."""
    if ":" in text:
        raise ShotError(
            f"frames '{text}': ':' means a step on some farms and an interleave on others; "
            "write a step as 'x', like 1001-1100x2")
    parts = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ShotError(
                f"frames '{text}': cannot read '{part.strip()}'; "
                "write frames like 1001, 1001-1100, 1001-1100x2 or 1001-1010,1020")
        if any(len(number.lstrip("0")) > len(str(LAST_FRAME))
               for number in match.groups("0")[:2]):
            raise ShotError(_too_high(text))
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        step = int(match[3]) if match[3] else 1
        if last < first:
            raise ShotError(f"frames '{text}': '{part.strip()}' runs backwards; "
                            f"write {last}-{first}")
        if step < 1:
            raise ShotError(f"frames '{text}': a step of 0 never ends; use at least x1")
        if last > LAST_FRAME:
            raise ShotError(_too_high(text))
        parts.append(range(first, last + 1, step))
    return parts


def select_frames(text: str, first: int, last: int) -> list[int]:
    """Return the frames of an expression, ascending, each once; all must lie in first..last."""
    parts = parse_parts(text)
    outside = [span for part in parts
               for span in (part[: bisect_left(part, first)], part[bisect_right(part, last):])
               if span]
    if outside:
        listed = ", ".join(_part(span) for span in outside)
        verb = "lies" if listed.isdecimal() else "lie"
        raise OutsideShot(f"frames '{text}': {listed} {verb} outside the shot, which has "
                          f"{_span(first, last)}; ask for those, or change frames in its [shot]")
    return sorted({frame for part in parts for frame in part})


def parse_span(text: str) -> tuple[int, int]:
    """Return the first and last frame of a shot, given as one range without a step."""
    parts = parse_parts(text)
    if len(parts) != 1 or parts[0].step != 1:
        raise ShotError(f"frames '{text}': a shot is one range without gaps, like 1001-1048; "
                        "to run some of its frames use --frames")
    if len(parts[0]) > MOST_FRAMES:
        raise ShotError(f"frames '{text}': that is {len(parts[0])} frames; a shot has at most "
                        f"{MOST_FRAMES}")
    return parts[0][0], parts[0][-1]


def format_frames(frames: Iterable[int]) -> str:
    """Return the shortest expression for frames that :func:`parse_parts` reads back."""
    spans: list[tuple[int, int]] = []
    for frame in sorted(set(frames)):
        if spans and spans[-1][1] == frame - 1:
            spans[-1] = (spans[-1][0], frame)
        else:
            spans.append((frame, frame))
    return ",".join(_span(*span) for span in spans)


def frames_text(frames: Iterable[int]) -> str:
    """Return frames with their noun: ``frame 1001``, ``frames 1001-1004``."""
    listed = format_frames(frames)
    return f"frame {listed}" if listed.isdecimal() else f"frames {listed}"


def _too_high(text: str) -> str:
    return (f"frames '{text[:60]}': the highest frame number is {LAST_FRAME}, and a shot has at "
            f"most {MOST_FRAMES} frames; write fewer")


def _part(part: range) -> str:
    step = f"x{part.step}" if part.step > 1 and len(part) > 1 else ""
    return _span(part[0], part[-1]) + step


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"
