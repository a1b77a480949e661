"""The history of a simulation as a picture, ``sim/diagnostics.png``: four panels over time.

Where pieces go from solver to solver, a panel shows who has how many elements, and all panels when
something was in bonds and when a hit broke nothing.
Drawn with Pillow alone, at a multiple of its size and then reduced, so that lines are smooth.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from vfx.pipeline.quantities import si_prefix
from vfx.pipeline.work.cache import Published, publish_bytes
from vfx.pipeline.work.timeline import Impact, impacts
from vfx.sim.solver import WITHSTOOD, Event

Values = npt.NDArray[np.float64]

_OVERSAMPLING = 2
_SIZE = (1600, 1000)
_MARGIN = 36
_HEAD = 64                                   # height of the title
_PANEL_HEAD, _PANEL_FOOT, _PANEL_LEFT = 44, 54, 78
_TITLE, _HEADING, _TEXT = 26, 19, 15         # sizes of the font
_PAPER, _PANEL, _GRID, _AXIS = "#ffffff", "#f7f8fa", "#e1e4e8", "#8b939c"
_INK, _FAINT, _SPAN = "#1f2328", "#59636e", "#f3c9ae"
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#111111")   # told apart by every eye (Okabe and Ito)
_BONDS = _COLORS[1]                           # what is in bonds, wherever it is drawn
_LINE = 2.4
_LEAST_SPAN = 2.0                            # an impact is drawn at least so wide
_MARK = 5.0                                  # half the width of a mark above a panel
_MOST_DOTS = 60                              # a curve of fewer points shows each
_LOG_SPAN = 30.0                             # counts that grow more than this go on a log axis


@dataclass(frozen=True)
class Curve:
    """One line of a panel; NaN values are left out. ``dashed`` marks a derived quantity."""

    label: str
    value: Values
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One diagram: curves over time. ``is_count`` marks whole numbers, which begin at 0 or 1."""

    heading: str
    unit: str
    curves: tuple[Curve, ...]
    is_count: bool = False
    is_stacked: bool = False            # its curves are areas, each upon those before

    @property
    def value(self) -> Values:
        """All that its axis has to show."""
        values = [curve.value for curve in self.curves]
        if self.is_stacked and values:
            values = [np.sum(np.nan_to_num(values), axis=0)]
        return np.concatenate([*values, np.zeros(0)])


@dataclass(frozen=True)
class Marks:
    """What happened: impacts, and when [s] hits broke nothing."""

    impacts: tuple[Impact, ...] = ()
    withstood: tuple[float, ...] = ()


def write_diagnostics_plot(path: Path, columns: Mapping[str, Values], title: str,
                           events: Sequence[Event] = ()) -> Published:
    """Publish the plot of the columns of ``diagnostics.csv``, and of events, as PNG."""
    data = io.BytesIO()
    time = columns.get("time", np.zeros(0))
    marks = Marks(tuple(impacts(events, float(time[np.isfinite(time)].max(initial=0.0)))),
                  tuple(event.time for event in events if event.what == WITHSTOOD))
    draw_panels(time, diagnostics_panels(columns), title, marks).save(data, "PNG")
    return publish_bytes(path, data.getvalue())


def diagnostics_panels(columns: Mapping[str, Values]) -> list[Panel]:
    """Return the panels for the columns that there are."""
    def curves(names: Mapping[str, str]) -> tuple[Curve, ...]:
        return tuple(Curve(label, columns[name]) for name, label in names.items()
                     if name in columns)

    if "rigid_pieces" in columns:
        panels = [
            Panel("Energy", "J", energies(columns)),
            Panel("Elements", "", holders(columns), is_count=True, is_stacked=True),
            Panel("Pieces", "", curves({"fragments": "all", "asleep": "asleep"}), is_count=True),
            Panel("Momentum", "N s", curves({f"momentum_{axis}": axis for axis in "xyz"})),
        ]
        return [panel for panel in panels if panel.curves]
    energy = curves({"kinetic_energy": "motion", "bond_energy": "bonds", "ball_energy": "balls"})
    if "potential_energy" in columns:
        height = columns["potential_energy"]
        energy += (Curve("height (change)", height - height[:1]),)
    if len(energy) > 1:
        energy += (Curve("sum", np.sum([curve.value for curve in energy], axis=0), dashed=True),)
    momentum = curves({f"momentum_{axis}": axis for axis in "xyz"})
    # What heavy balls lose, pieces gain: only both together stay as they are.
    balls = curves({f"ball_momentum_{axis}": axis for axis in "xyz"})
    if balls:
        momentum = tuple(Curve(f"{own.label}, with balls", own.value + ball.value)
                         for own, ball in zip(momentum, balls, strict=True))
    panels = [
        Panel("Energy", "J", energy),
        Panel("Momentum", "N s", momentum),
        Panel("Bonds", "", curves({"bonds": "unbroken"}), is_count=True),
        Panel("Fragments", "", curves({"fragments": "pieces"}), is_count=True),
    ]
    return [panel for panel in panels if panel.curves]


def energies(columns: Mapping[str, Values]) -> tuple[Curve, ...]:
    """Return the energies of rigid pieces and of what is in bonds.

    Height counts from the lowest there is, so that the sum begins with all that can be lost.
    """
    height = columns["potential_energy"]
    height = height - height[np.isfinite(height)].min(initial=np.inf)
    motion = columns["kinetic_energy"]
    curves = [Curve("motion", motion), Curve("height", height)]
    if "energy_lost" in columns:
        curves.append(Curve("given up after impacts", columns["energy_lost"]))
    strain = columns.get("bond_energy", np.zeros_like(motion))
    return *curves, Curve("motion, height and strain", motion + height + strain, dashed=True)


def holders(columns: Mapping[str, Values]) -> tuple[Curve, ...]:
    """Return who has how many elements: areas that add up to all; none where nobody counted."""
    if "rigid_elements" not in columns:
        return ()
    asleep, rigid = columns["elements_asleep"], columns["rigid_elements"]
    bonds = columns.get("elements_in_bonds", np.zeros_like(rigid))
    return Curve("asleep", asleep), Curve("in bonds", bonds), Curve("rigid", rigid - asleep)


def draw_panels(time: Values, panels: Sequence[Panel], title: str,
                marks: Marks = Marks()) -> Image.Image:
    """Draw panels over ``time`` [s], two in a row, under a title; marks go through all of them."""
    canvas = _Canvas(_SIZE)
    canvas.text((_MARGIN, _MARGIN // 2 + 8), title, _TITLE, _INK, "lt")
    _explain(canvas, marks)
    columns = min(2, len(panels))
    rows = -(-len(panels) // max(columns, 1))
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        width = (_SIZE[0] - (columns + 1) * _MARGIN) / columns
        height = (_SIZE[1] - _HEAD - rows * _MARGIN // 2) / rows
        left = _MARGIN + column * (width + _MARGIN)
        top = _HEAD + row * (height + _MARGIN // 2)
        _draw_panel(canvas, (left, top, left + width, top + height - 8), time, panel, marks)
    return canvas.finish()


def linear_ticks(low: float, high: float, n_wanted: int = 5) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten apart) from ``low`` to ``high``."""
    if not high > low:
        return [low]
    rough = (high - low) / n_wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((factor * power for factor in (1.0, 2.0, 5.0, 10.0)),
               key=lambda size: abs(math.log(size / rough)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten from ``low`` to ``high``."""
    return [10.0**k for k in range(math.ceil(math.log10(low) - 1e-9),
                                   math.floor(math.log10(high) + 1e-9) + 1)]


def _explain(canvas: _Canvas, marks: Marks) -> None:
    """Say beside the title what marks mean."""
    x, y = float(_SIZE[0] - _MARGIN), _MARGIN // 2 + 22
    for text, color, there in ((f"hit that broke nothing ({len(marks.withstood)})", _FAINT,
                                marks.withstood),
                               (f"impact, in bonds ({len(marks.impacts)})", _BONDS,
                                marks.impacts)):
        if there:
            x -= canvas.text_width(text, _TEXT)
            canvas.text((x, y), text, _TEXT, _INK, "lm")
            canvas.pointer((x - 14, y + _MARK), color, _MARK)
            x -= 40


def _draw_panel(canvas: _Canvas, box: tuple[float, float, float, float], time: Values,
                panel: Panel, marks: Marks) -> None:
    left, top, right, bottom = box
    area = (left + _PANEL_LEFT, top + _PANEL_HEAD, right, bottom - _PANEL_FOOT)
    every = panel.value
    low, high, is_log = _value_range(every[np.isfinite(every)], panel.is_count)
    if panel.is_stacked:
        low, is_log = 0.0, False
    scale, prefix = (1.0, "") if is_log else si_prefix(max(abs(low), abs(high)))
    if panel.is_count:
        scale = max(scale, 1.0)
        unit = {"k": "thousands", "M": "millions", "G": "billions"}.get(prefix, "")
    else:
        unit = prefix + panel.unit
    span = time[np.isfinite(time)]
    start, end = (float(span.min()), float(span.max())) if len(span) else (0.0, 0.0)
    end = end if end > start else start + 1e-9
    time_scale, time_prefix = si_prefix(end)

    def x_of(value: Values | float) -> Values:
        share = (np.asarray(value) - start) / (end - start)
        return area[0] + share * (area[2] - area[0])

    def y_of(value: Values | float) -> Values:
        numbers = np.asarray(value, np.float64)
        if is_log:
            share = np.log(np.maximum(numbers, low) / low) / math.log(high / low)
        else:
            share = (numbers - low) / (high - low)
        return area[3] - share * (area[3] - area[1])

    # Draw the ground: fill, grid lines and what they stand for.
    canvas.rectangle(area, _PANEL)
    ticks = log_ticks(low, high) if is_log else linear_ticks(low, high)
    for tick in ticks:
        y = float(y_of(tick))
        canvas.line([(area[0], y), (area[2], y)], _AXIS if tick == 0.0 else _GRID, 1.0)
        text = _as_label(tick, 1.0, ticks) if is_log else _as_label(tick, scale, ticks)
        canvas.text((area[0] - 8, y), text, _TEXT, _FAINT, "rm")
    times = linear_ticks(start, end, 6)
    for tick in times:
        x = float(x_of(tick))
        canvas.line([(x, area[1]), (x, area[3])], _GRID, 1.0)
        canvas.text((x, area[3] + 8), _as_label(tick, time_scale, times), _TEXT, _FAINT, "mt")
    canvas.text(((area[0] + area[2]) / 2, area[3] + 30), f"time [{time_prefix}s]", _TEXT, _FAINT,
                "mt")
    heading = f"{panel.heading} [{unit}]" if unit else panel.heading
    canvas.text((left, top + 12), heading, _HEADING, _INK, "lt")
    _draw_legend(canvas, (area[2], top + 21), panel)

    # Draw what happened: behind curves, and of areas what is too short for samples.
    if panel.is_stacked:
        _draw_stack(canvas, panel, time, x_of, y_of)
    for impact in marks.impacts:
        x, end_x = float(x_of(impact.first)), float(x_of(impact.last))
        end_x = max(end_x, x + _LEAST_SPAN)
        if panel.is_stacked and len(time):
            asleep = float(np.interp(impact.first, time, panel.curves[0].value))
            canvas.rectangle((x, float(y_of(asleep + impact.elements)), end_x,
                              float(y_of(asleep))), _BONDS)
        elif not panel.is_stacked:
            canvas.rectangle((x, area[1], end_x, area[3]), _SPAN)
        canvas.pointer((x + _LEAST_SPAN / 2, area[1]), _BONDS, _MARK)
    for moment in marks.withstood:
        canvas.pointer((float(x_of(moment)), area[1]), _FAINT, _MARK)

    # Draw the curves, the first on top.
    for number, curve in reversed(list(enumerate(() if panel.is_stacked else panel.curves))):
        valid = np.isfinite(curve.value) & np.isfinite(time)
        points = list(zip(x_of(time[valid]).tolist(), y_of(curve.value[valid]).tolist(),
                          strict=True))
        canvas.curve(points, _color(number, curve), _LINE, dashed=curve.dashed)
        for point in points if len(points) <= _MOST_DOTS else ():
            canvas.dot(point, _color(number, curve), 1.5 * _LINE)
    canvas.line([(area[0], area[3]), (area[2], area[3])], _AXIS, 1.2)
    canvas.line([(area[0], area[1]), (area[0], area[3])], _AXIS, 1.2)


def _draw_stack(canvas: _Canvas, panel: Panel, time: Values, x_of: Callable[[Values], Values],
                y_of: Callable[[Values], Values]) -> None:
    """Fill areas, each upon those before."""
    valid = np.isfinite(time)
    x, below = x_of(time[valid]), np.zeros(int(valid.sum()))
    if len(x) < 2:
        return
    for number, curve in enumerate(panel.curves):
        above = below + np.nan_to_num(curve.value[valid])
        canvas.area(x, y_of(below), y_of(above), _color(number, curve))
        below = above


def _draw_legend(canvas: _Canvas, corner: tuple[float, float], panel: Panel) -> None:
    """Draw samples and labels of the curves, ending at ``corner``."""
    x, y = corner
    for number, curve in reversed(list(enumerate(panel.curves))):
        x -= canvas.text_width(curve.label, _TEXT)
        canvas.text((x, y), curve.label, _TEXT, _INK, "lm")
        canvas.curve([(x - 34, y), (x - 8, y)], _color(number, curve), 3.0, dashed=curve.dashed)
        x -= 54


def _color(number: int, curve: Curve) -> str:
    return _COLORS[-1] if curve.dashed else _COLORS[number % (len(_COLORS) - 1)]


def _value_range(value: Values, is_count: bool) -> tuple[float, float, bool]:
    """Return the ends of an axis, and whether it is logarithmic."""
    low, high = (float(value.min()), float(value.max())) if len(value) else (0.0, 1.0)
    if is_count and low > 0.0 and high > _LOG_SPAN * low and low < 1000.0:
        return low, high * 1.3, True
    if is_count:
        return 0.0, max(1.0, 1.06 * high), False
    low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        high = low + 1.0
    room = 0.06 * (high - low)
    return low - (room if low < 0.0 else 0.0), high + (room if high > 0.0 else 0.0), False


def _as_label(value: float, scale: float, ticks: Sequence[float]) -> str:
    """Return a tick with as many decimals as its neighbours need."""
    step = min((abs(b - a) for a, b in itertools.pairwise(ticks)), default=scale) / scale
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0.0 else 0
    return f"{value / scale + 0.0:,.{min(decimals, 6)}f}"


class _Canvas:
    """A picture drawn larger than it is; coordinates are those of the finished one."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        width, height = size
        self._image = Image.new("RGB", (_OVERSAMPLING * width, _OVERSAMPLING * height), _PAPER)
        self._draw = ImageDraw.Draw(self._image)

    def finish(self) -> Image.Image:
        """Return the picture at its size."""
        return self._image.resize(self._size, Image.Resampling.BOX)

    def text(self, at: tuple[float, float], text: str, size: int, color: str, anchor: str) -> None:
        """Write text; ``anchor`` as Pillow has it, e.g. "rm" for right and middle."""
        self._draw.text(self._at(at), text, fill=color, font=_font(size), anchor=anchor)

    def text_width(self, text: str, size: int) -> float:
        """Return how wide a text is."""
        return float(self._draw.textlength(text, font=_font(size))) / _OVERSAMPLING

    def rectangle(self, box: tuple[float, float, float, float], color: str) -> None:
        """Fill a rectangle."""
        self._draw.rectangle([self._at(box[:2]), self._at(box[2:])], fill=color)

    def area(self, x: Values, below: Values, above: Values, color: str) -> None:
        """Fill what is between two lines over the same places."""
        corners = [*zip(x.tolist(), below.tolist(), strict=True),
                   *reversed(list(zip(x.tolist(), above.tolist(), strict=True)))]
        self._draw.polygon([self._at(corner) for corner in corners], fill=color)

    def pointer(self, tip: tuple[float, float], color: str, size: float) -> None:
        """Draw a triangle that points down to a place."""
        x, y = tip
        self._draw.polygon([self._at(corner) for corner in (
            (x, y), (x - size, y - 2.0 * size), (x + size, y - 2.0 * size))], fill=color)

    def line(self, points: list[tuple[float, float]], color: str, width: float) -> None:
        """Draw straight lines from point to point."""
        self._draw.line([self._at(point) for point in points], fill=color,
                        width=max(1, round(width * _OVERSAMPLING)), joint="curve")

    def curve(self, points: list[tuple[float, float]], color: str, width: float, *,
              dashed: bool) -> None:
        """Draw a line through points, in dashes if asked."""
        for part in _dashes(points, on=7.0, off=5.0) if dashed else [points]:
            if len(part) > 1:
                self.line(part, color, width)

    def dot(self, point: tuple[float, float], color: str, radius: float) -> None:
        """Draw a disc."""
        x, y = self._at(point)
        size = radius * _OVERSAMPLING
        self._draw.ellipse([x - size, y - size, x + size, y + size], fill=color)

    def _at(self, point: tuple[float, float]) -> tuple[float, float]:
        return _OVERSAMPLING * point[0], _OVERSAMPLING * point[1]


def _dashes(points: list[tuple[float, float]], on: float,
            off: float) -> list[list[tuple[float, float]]]:
    """Cut a line into dashes of the length ``on`` with gaps of ``off``."""
    corner = np.array(points).reshape(-1, 2)
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corner, axis=0).T))])

    def at(distance: Values) -> list[tuple[float, float]]:
        x, y = (np.interp(distance, length, corner[:, axis]) for axis in (0, 1))
        return list(zip(x.tolist(), y.tolist(), strict=True))

    dashes = []
    for start in np.arange(0.0, length[-1], on + off):
        inside = length[(length > start) & (length < start + on)]
        dashes.append(at(np.concatenate([[start], inside, [min(start + on, length[-1])]])))
    return dashes


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size * _OVERSAMPLING)
