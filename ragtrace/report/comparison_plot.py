"""Picture of a comparison of scored files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import ConfigError
from ragtrace.metrics.registry import output
from ragtrace.report.saving import save, styled
from ragtrace.scoring.offline.scored_row import ANSWERED

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ragtrace.scoring.offline.comparison import Compared, Comparison
    from ragtrace.stats.intervals import Interval

# Told apart by the colour-blind too, and by their letters.
COLOURS = ("#1f6f8b", "#d1672b", "#5b8c3a", "#8a4f9e", "#b08a00", "#6b6b6b")
INK, GRID = "#222222", "#e4e4e4"
MOST_COLUMNS = 4
MOST_POINTS = 400  # of one box; more of them are a blot
_PANEL_WIDTH, _PANEL_HEIGHT = 3.1, 2.9
_TITLE_CHARS = 34


def draw(found: Comparison, path: Path) -> None:
    """Draw the comparison into a file, without metrics that have no value.

    A box is the middle half, its line the median, its whiskers reach 1.5 boxes; dots are the values. A diamond is
    the mean, the bar through it its 95 % interval.

    Raises:
        OSError: the file cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 -- 0.4 s, for those who draw alone

    lines = [
        line
        for line in found.lines
        if not line.is_over_runs and line.key.metric != ANSWERED and any(side.values for side in line.sides)
    ]
    panels = len(lines) + 1
    columns = min(MOST_COLUMNS, panels)
    rows = math.ceil(panels / columns)
    with styled(font_size=9.0, title_size=10.0):
        width = max(6.2, _PANEL_WIDTH * columns * (1.0 + 0.12 * max(0, len(found.arms) - 3)))
        figure = Figure(figsize=(width, _PANEL_HEIGHT * rows + 0.9), dpi=130, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        for panel, line in zip(axes, lines, strict=False):
            _boxes(panel, line)
        _answered(axes[len(lines)], found)
        for panel in axes[panels:]:
            panel.set_visible(False)
        _legend(figure, found)
        save(figure, path)


def _boxes(panel: Axes, line: Compared) -> None:
    """One box a file, with its values, mean and interval."""
    title = line.label if len(line.label) <= _TITLE_CHARS else f"{line.label[: _TITLE_CHARS - 1]}…"
    panel.set_title(f"{title}\n(lower is better)" if line.direction == "down" else title)
    for place, side in enumerate(line.sides):
        if not side.values:
            continue
        values, colour = np.array(side.values), _colour(place)
        panel.boxplot(
            values,
            positions=[place],
            widths=0.52,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": f"{colour}38", "edgecolor": colour},
            medianprops={"color": colour, "linewidth": 2.4, "solid_capstyle": "butt"},
            whiskerprops={"color": colour},
            capprops={"color": colour},
        )
        _dots(panel, place, values, colour)
        _mean(panel, place, side.mean, colour)
    _files(panel, [f"n={len(side.values)}" for side in line.sides])
    panel.set_ylim(*_limits(line))


def _dots(panel: Axes, place: int, values: np.ndarray, colour: str) -> None:
    rng = np.random.default_rng(0)
    shown = values if len(values) <= MOST_POINTS else rng.choice(values, MOST_POINTS, replace=False)
    across = place + rng.uniform(-0.2, 0.2, len(shown))
    panel.plot(across, shown, "o", color=colour, ms=2.6, alpha=0.35, mew=0, zorder=2)


def _mean(panel: Axes, place: int, mean: Interval, colour: str) -> None:
    beside = place + 0.36
    if mean.low is not None and mean.high is not None:
        panel.plot([beside, beside], [mean.low, mean.high], color=INK, lw=1.6, zorder=4)
    if mean.mean is not None:
        panel.plot([beside], [mean.mean], "D", color=colour, mec=INK, mew=0.9, ms=5.5, zorder=5)


def _answered(panel: Axes, found: Comparison) -> None:
    """Bars of the percentage of questions answered, with intervals."""
    panel.set_title("Questions answered")
    known = [share for share in found.answered if share.mean is not None]
    panel.set_ylim(0.0, 100.0)
    _files(panel, [""] * len(found.arms))
    if not known:
        panel.text(0.5, 0.5, "no score of no_answer", transform=panel.transAxes, ha="center", color=INK)
        panel.set_yticks([])
        return
    panel.set_ylim(0.0, 118.0)
    panel.set_yticks(range(0, 101, 20), [f"{tick} %" for tick in range(0, 101, 20)])
    for place, share in enumerate(found.answered):
        if share.mean is None:
            panel.text(place, 3.0, "not\nscored", ha="center", va="bottom", fontsize=8, color=INK)
            continue
        mean, low, high = (100.0 * (share.mean if bound is None else bound) for bound in share)
        panel.bar([place], [mean], width=0.6, color=f"{_colour(place)}55", edgecolor=_colour(place))
        panel.plot([place, place], [low, high], color=INK, lw=1.6)
        panel.text(place, max(mean, high) + 2.0, f"{mean:.1f} %", ha="center", va="bottom")


def _files(panel: Axes, notes: list[str]) -> None:
    panel.set_xticks(range(len(notes)), [f"{_letter(i)}\n{note}".strip() for i, note in enumerate(notes)])
    panel.tick_params(axis="x", length=0)
    panel.set_xlim(-0.6, len(notes) - 0.4)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color=GRID, lw=0.8)
    panel.set_axisbelow(True)


def _limits(line: Compared) -> tuple[float, float]:
    values = [value for side in line.sides for value in side.values]
    low, high = min(values), max(values)
    first, last = _declared(line)
    first = max(first, 0.0) if low >= 0.0 else first  # a similarity of -1 to 1 is hardly ever below 0
    if math.isfinite(first) and math.isfinite(last) and first <= low and high <= last:
        low, high = first, last
    elif high == low:
        low, high = low - 0.5, high + 0.5
    margin = 0.04 * (high - low)
    return low - margin, high + margin


def _declared(line: Compared) -> tuple[float, float]:
    try:
        found = output(line.key.metric)
    except ConfigError:  # a metric that is not installed here
        return 0.0, 1.0
    return found.low, found.high


def _legend(figure: Figure, found: Comparison) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415 -- as above
    from matplotlib.patches import Patch  # noqa: PLC0415

    handles: list[Artist] = [
        Patch(facecolor=f"{_colour(i)}55", edgecolor=_colour(i), label=f"{_letter(i)}  {arm['name']}")
        for i, arm in enumerate(found.arms)
    ]
    handles += [
        Line2D([], [], color=INK, lw=2.4, label="median"),
        Line2D([], [], color=INK, marker="D", mfc="white", ms=5.5, lw=1.6, label="mean, 95 % interval"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(4, len(handles)), frameon=False)


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]
