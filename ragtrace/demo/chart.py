"""A small line chart in braille dots: the running mean of faithfulness, with the baseline as a dotted line."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.demo.progress import Point

RUN = 20  # scores behind each point of the line
LOW_BY = 0.05  # a point this far under the baseline is drawn as low
_LEAST = RUN // 4  # scores before the line begins
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille cell, rows from the top
_GOOD = "cyan"
_LOW = "red"
_QUIET = "dim"


def running(points: Sequence[Point], total: int, columns: int) -> list[float | None]:
    """Return the mean of the last `RUN` scores at each of `columns` equal steps through the questions.

    None before the fifth score and beyond the last question scored.

    Example:
        >>> from ragtrace.demo.progress import Point
        >>> running([Point(question=n, value=1.0) for n in range(1, 11)], total=20, columns=4)
        [1.0, 1.0, None, None]
    """
    line: list[float | None] = []
    ordered = sorted(points, key=lambda point: point.question)
    last = ordered[-1].question if ordered else 0
    for column in range(columns):
        until = (column + 1) * total / columns
        seen = [point.value for point in ordered if point.question <= until][-RUN:]
        is_known = len(seen) >= _LEAST and until - total / columns < last
        line.append(fmean(seen) if is_known else None)
    return line


def chart(
    points: Sequence[Point], *, total: int, width: int, height: int, baseline: float | None, incident_at: int | None
) -> list[Text]:
    """Return the chart's lines, top first: `height` rows of `width` cells from 0.5 (or 0) to 1, and an axis.

    The axis marks the incident, unless `incident_at` is None.
    """
    line = running(points, total, width * 2)
    floor = 0.0 if any(mean is not None and mean < 0.5 for mean in line) else 0.5
    strokes = _strokes(line, height, floor)
    low = [mean is not None and baseline is not None and mean < baseline - LOW_BY for mean in line]
    at = None if baseline is None else _level(baseline, height, floor) // 4
    label = {0: "1.0 ", height - 1: f"{floor:.1f} "}
    rows = [_row(strokes, low, row, label.get(row, "    "), is_baseline=row == at) for row in range(height)]
    return [*rows, _axis(total, width, incident_at)]


def _strokes(line: Sequence[float | None], height: int, floor: float) -> list[range]:
    """Return the dot rows that each column covers: from just beyond the column before to its own level."""
    strokes: list[range] = []
    before: int | None = None
    for mean in line:
        level = None if mean is None else _level(mean, height, floor)
        if level is None:
            strokes.append(range(0))
        elif before is None or before == level:
            strokes.append(range(level, level + 1))
        else:
            strokes.append(range(before + 1, level + 1) if before < level else range(level, before))
        before = level
    return strokes


def _row(strokes: Sequence[range], low: Sequence[bool], row: int, label: str, *, is_baseline: bool) -> Text:
    text = Text(label, style=_QUIET)
    for left in range(0, len(strokes), 2):
        dots = sum(
            _DOTS[level % 4][side]
            for side, stroke in enumerate(strokes[left : left + 2])
            for level in stroke
            if level // 4 == row
        )
        if dots:
            text.append(chr(0x2800 + dots), style=_LOW if any(low[left : left + 2]) else _GOOD)
        else:
            text.append("┄" if is_baseline else " ", style=_QUIET)
    return text


def _level(value: float, height: int, floor: float) -> int:
    """Return the row of dots of a value, counted from the top: 4 to a row of cells."""
    share = (1.0 - min(max(value, floor), 1.0)) / (1.0 - floor)
    return min(int(share * height * 4), height * 4 - 1)


def _axis(total: int, width: int, incident_at: int | None) -> Text:
    text = Text("    ")
    if incident_at is None:
        return text.append("─" * width, style=_QUIET)
    place = min((incident_at - 1) * width // max(total, 1), width - 1)
    label = " the incident begins"[: width - place - 1]
    text.append("─" * place, style=_QUIET).append("▲", style="yellow").append(label, style="yellow")
    return text.append("─" * (width - place - 1 - len(label)), style=_QUIET)
