"""The live view: one frame of the demo as rich renderables, and the same frame as an SVG picture."""

from __future__ import annotations

import io
import itertools
import re
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ragtrace.demo.console import PlainConsole
from ragtrace.demo.tally import WATCHED
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from ragtrace.demo.tally import Fall, MetricScores, Progress, WorstAnswer

WIDEST = 100
PICTURE_HEIGHT = 60
SHORT_PICTURE_HEIGHT = 42
"""Height of the frame above a diagnosis: every metric, and one worst answer."""
RUN = 20
"""Scores behind each bar of the chart."""

QUIET = "dim"
_FIXED_LINES = 13  # heading, table head, chart title and axis, search, footer, and the prompt below
_WORST_LINES = 4
_BARS = " ▁▂▃▄▅▆▇█"
_LOW_BY = 0.05  # a bar this far below the mean before the fall is red
# rich points the picture at a font on a foreign server; every viewer has a monospace font of its own.
_FOREIGN_FONT = re.compile(r"@font-face \{[^{}]*+\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoHeading:
    """Facts that do not change while the demo runs; `endpoint` is a URL, and `out` the file's name."""

    model: str
    judge: str
    seed: int
    endpoint: str | None
    out: str


def frame(progress: Progress, heading: DemoHeading, *, width: int, height: int) -> RenderableType:
    """Return one frame: on a low terminal fewer metrics, a lower chart and fewer worst answers."""
    width = min(width, WIDEST)
    free = max(height - _FIXED_LINES, 0)
    has_worst = bool(progress.worst) and free >= 10
    free -= (2 + _WORST_LINES) * has_worst
    chart_rows = 5 if free >= 17 else 3 if free >= 8 else 2 if free >= 4 else 0
    metrics = progress.metrics[: max(free - chart_rows, 1)]
    worst = 1 + min(max(free - chart_rows - len(metrics), 0) // _WORST_LINES, 2) if has_worst else 0
    parts: list[RenderableType] = [*_heading(progress, heading, width), Text(), metrics_table(metrics), Text()]
    if chart_rows:
        parts += _chart_with_title(progress, width, chart_rows)
    parts.append(_search(progress))
    if worst:
        parts += [Text(), Text("worst answers", style=QUIET)]
        parts += [line for answer in progress.worst[:worst] for line in worst_lines(answer)]
    parts += [Text(), _footer(progress, heading)]
    return Padding(Group(*parts), (0, 1), expand=False)


def save_picture(path: Path, progress: Progress, heading: DemoHeading, diagnosis: Sequence[str] = ()) -> None:
    """Write the last frame and the diagnosis as an SVG picture, at full width and with every row.

    The diagnosis ends before its examples, below which stands a command with a path of this machine.

    The picture in docs/index.md is made by ``ragtrace demo --save-svg docs/images/demo.svg``.

    Raises:
        ConfigError: the file cannot be written.
    """
    console = PlainConsole(
        record=True, width=WIDEST, height=PICTURE_HEIGHT, file=io.StringIO(), force_terminal=True
    )
    shown = [*itertools.takewhile(lambda line: not line.startswith("Examples"), diagnosis)]
    height = SHORT_PICTURE_HEIGHT if shown else PICTURE_HEIGHT
    console.print(frame(progress, heading, width=WIDEST, height=height))
    if shown:
        console.print(Padding(Text("Diagnosis, from the scores alone", style="bold"), (1, 1, 0, 1)))
    for line in shown:
        console.print(Padding(Text(line), (0, 1)))
    svg = console.export_svg(title="ragtrace demo")
    try:
        path.write_text(_FOREIGN_FONT.sub("", svg), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--save-svg {path}: {error.strerror or error}; choose another file") from None


def _heading(progress: Progress, heading: DemoHeading, width: int) -> list[RenderableType]:
    facts = f"   answers: {heading.model}   judge: {heading.judge}   seed {heading.seed}"
    bar = Table.grid(padding=(0, 2, 0, 0))
    minutes, seconds = divmod(int(progress.seconds), 60)
    bar.add_row(
        ProgressBar(
            total=progress.total,
            completed=progress.asked,
            width=width - 34,
            complete_style="cyan",
            finished_style="cyan",
        ),
        f"question {progress.asked} of {progress.total}",
        Text(f"{minutes}:{seconds:02d}", style=QUIET),
    )
    counts = _line()
    for name, count in progress.counts.items():
        style = "red" if name == "dropped" and count else ""
        counts.append(f"{name} ", style=QUIET).append(f"{count}   ", style=style)
    if progress.failed:
        counts.append("not answered ", style=QUIET).append(f"{progress.failed}   ", style="red")
    if progress.has_incident:
        counts.append("incident running", style="yellow")
    return [_line(("ragtrace demo", "bold"), (facts, QUIET)), bar, counts]


def metrics_table(metrics: Sequence[MetricScores]) -> RenderableType:
    """Return the metrics with mean, interval, n, and na and errors by reason."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET, pad_edge=False)
    table.add_column("metric", min_width=24, no_wrap=True)
    table.add_column("mean", justify="right", min_width=5, no_wrap=True)
    table.add_column("95 % interval", justify="right", min_width=14, no_wrap=True)
    table.add_column("n", justify="right", min_width=3, no_wrap=True)
    table.add_column("na", min_width=12, no_wrap=True, overflow="ellipsis")
    table.add_column("error", min_width=5, no_wrap=True, overflow="ellipsis")
    for metric in metrics:
        style = "bold" if metric.name == WATCHED else ""
        table.add_row(
            Text(metric.name, style=style),
            Text(mean_text(metric), style=style),
            Text(interval_text(metric), style=QUIET),
            str(len(metric.values)),
            Text(reasons_text(metric.na), style="" if metric.na else QUIET),
            Text(reasons_text(metric.errors), style="red" if metric.errors else QUIET),
        )
    return table


def mean_text(metric: MetricScores) -> str:
    """Return the mean, a dash for none."""
    return "-" if metric.mean is None else f"{metric.mean:.3f}"


def interval_text(metric: MetricScores) -> str:
    """Return the interval, a dash for none."""
    found = metric.interval
    return "-" if found.low is None else f"{found.low:.3f} to {found.high:.3f}"


def reasons_text(counts: Mapping[str, int]) -> str:
    """Return counts with their reasons, most frequent first, 0 for none.

    Example:
        >>> reasons_text({"abstained": 2, "no_claims": 9}), reasons_text({})
        ('9 no_claims, 2 abstained', '0')
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered) or "0"


def fall_text(fall: Fall, incident_at: int | None) -> tuple[str, str]:
    """Return two lines on the fall: its size, and when it was found."""
    found = f"found at question {fall.question}"
    if incident_at is None:
        found += ", although no incident was staged: by chance"
    elif fall.question < incident_at:
        found += ", before the incident began: by chance"
    else:
        found += f", {fall.question - incident_at + 1} into the incident; change placed at {fall.changed_at}"
    fell = f"{WATCHED} fell from {fall.before_mean:.3f} to {fall.recent_mean:.3f} (last {fall.recent_n})"
    return fell, found


def worst_lines(worst: WorstAnswer) -> list[Text]:
    """Return score and question, the unsupported sentence marked, and the judge's reason."""
    lines = [_line((f"{worst.value:.2f}  ", "red"), worst.query, (f"   question {worst.question}", QUIET))]
    if worst.before:
        lines.append(_line((f"      {worst.before}", QUIET)))
    if worst.sentence:
        lines.append(_line(("    ✗ ", "red"), (worst.sentence, "red underline")))
    if worst.reason:
        lines.append(_line((f"      {worst.reason}", QUIET)))
    return lines


def running_means(points: Sequence[tuple[int, float]], total: int, columns: int) -> list[float | None]:
    """Return the mean of the last `RUN` scores at each of `columns` equal steps through the questions.

    None before the fifth score and beyond the last question scored.

    Example:
        >>> running_means([(n, 1.0) for n in range(1, 11)], total=20, columns=4)
        [1.0, 1.0, None, None]
    """
    ordered, step = sorted(points), total / columns
    last = ordered[-1][0] if ordered else 0
    means: list[float | None] = []
    for column in range(columns):
        seen = [value for number, value in ordered if number <= (column + 1) * step][-RUN:]
        means.append(fmean(seen) if len(seen) >= RUN // 4 and column * step < last else None)
    return means


def chart(means: Sequence[float | None], *, height: int, before: float | None) -> list[Text]:
    """Return bars from 0.5 (or 0) to 1, top row first; bars below the mean before the fall are red."""
    floor = 0.0 if any(mean is not None and mean < 0.5 for mean in means) else 0.5
    levels = [0 if mean is None else max(round((mean - floor) / (1.0 - floor) * height * 8), 1) for mean in means]
    styles = [
        "red" if mean is not None and before is not None and mean < before - _LOW_BY else "cyan" for mean in means
    ]
    rows = []
    for row in reversed(range(height)):
        label = "1.0 " if row == height - 1 else f"{floor:.1f} " if row == 0 else "    "
        text = Text(label, style=QUIET)
        for level, style in zip(levels, styles, strict=True):
            text.append(_BARS[min(max(level - row * 8, 0), 8)], style=style)
        rows.append(text)
    return rows


def _chart_with_title(progress: Progress, width: int, height: int) -> list[Text]:
    columns = min(width - 6, 75)
    means = running_means(progress.points, progress.total, columns)
    title = Text(f"{WATCHED}, mean of the last {RUN} scores", style=QUIET)
    before = None if progress.fall is None else progress.fall.before_mean
    if before is not None:
        title.append(f"   {before:.3f} before the fall")
    axis = Text("    ").append("─" * columns, style=QUIET)
    if progress.has_incident and progress.incident_at is not None:
        place = min((progress.incident_at - 1) * columns // max(progress.total, 1), columns - 1)
        label = "▲ the incident begins"[: columns - place]
        rest = columns - place - len(label)
        axis = Text("    ").append("─" * place, style=QUIET).append(label, style="yellow")
        axis.append("─" * rest, style=QUIET)
    return [title, *chart(means, height=height, before=before), axis]


def _search(progress: Progress) -> Text:
    if progress.fall is None:
        return Text.assemble(("search    ", QUIET), (progress.search, "green"))
    fell, found = fall_text(progress.fall, progress.incident_at)
    return _line(("FOUND     ", "bold red"), (fell, "bold"), f"\n          {found}")


def _footer(progress: Progress, heading: DemoHeading) -> Text:
    text = _line()
    if heading.endpoint:
        text.append("OpenMetrics ", style=QUIET).append(heading.endpoint, style="cyan").append("   ")
    text.append("records ", style=QUIET).append(heading.out, style="cyan")
    is_over = progress.asked == progress.total and not progress.counts["waiting"]
    return text if is_over else text.append("   Ctrl-C stops", style=QUIET)


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")
