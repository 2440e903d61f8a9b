"""The live view: one frame of the demo as rich renderables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ragtrace.demo import wording
from ragtrace.demo.chart import RUN, chart
from ragtrace.demo.progress import WATCHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from ragtrace.demo.progress import MetricLine, Progress, WorstAnswer

WIDEST = 100
_QUIET = "dim"
_STATES = {"learning": "blue", "ok": "green", "warning": "yellow", "alarm": "bold red"}
_FIXED_LINES = 14  # of heading, table head, chart title and axis, detector, footer, and the prompt below
_WORST_HEAD = 2
_WORST_LINES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What does not change while the demo runs.

    Attributes:
        model: who answers.
        judge: who scores.
        seed: of questions, wording and incident.
        total: questions that will be asked.
        incident_at: number of the question with which the incident begins, None without one.
        endpoint: URL of the OpenMetrics endpoint, None without one.
        out: name of the file with the scored records.
    """

    model: str
    judge: str
    seed: int
    total: int
    incident_at: int | None
    endpoint: str | None
    out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What fits on a terminal: rows of metrics, of the chart, and worst answers."""

    width: int
    metrics: int
    chart: int
    worst: int

    @classmethod
    def on(cls, width: int, height: int, metrics: int) -> Room:
        """Share out the lines of a terminal: one worst answer, the metrics, the chart, two more worst answers.

        Example:
            >>> Room.on(80, 24, metrics=12)
            Room(width=80, metrics=2, chart=2, worst=1)
            >>> Room.on(120, 50, metrics=12)
            Room(width=100, metrics=12, chart=5, worst=3)
        """
        free = max(height - _FIXED_LINES, 0)
        worst = int(free >= _WORST_HEAD + _WORST_LINES + 4)
        free -= worst * (_WORST_HEAD + _WORST_LINES)
        rows = 5 if free >= 17 else 3 if free >= 8 else 2 if free >= 4 else 0
        shown = max(min(metrics, free - rows), 1)
        worst += worst * max(min(2, (free - rows - shown) // _WORST_LINES), 0)
        return cls(width=min(width, WIDEST), metrics=shown, chart=rows, worst=worst)


def frame(progress: Progress, heading: Heading, room: Room) -> RenderableType:
    """Return one frame; at most `WIDEST` columns."""
    parts: list[RenderableType] = [_title(heading), _bar(progress, room), _counts(progress), Text()]
    parts += [metrics_table(progress.metrics[: room.metrics]), Text()]
    if room.chart:
        parts += [*_trend(progress, room)]
    parts.append(_detector(progress))
    if room.worst and progress.worst:
        parts += [Text(), Text("worst answers", style=_QUIET)]
        parts += [part for worst in progress.worst[: room.worst] for part in worst_lines(worst)]
    parts += [Text(), _footer(progress, heading)]
    return Padding(Group(*parts), (0, 1), expand=False)


def _title(heading: Heading) -> Text:
    facts = f"   answers: {heading.model}   judge: {heading.judge}   seed {heading.seed}"
    return Text.assemble(("ragtrace demo", "bold"), (facts, _QUIET), no_wrap=True, overflow="ellipsis")


def _bar(progress: Progress, room: Room) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    done = ProgressBar(
        total=progress.total,
        completed=progress.asked,
        width=room.width - 34,
        complete_style="cyan",
        finished_style="cyan",
    )
    minutes, seconds = divmod(int(progress.seconds), 60)
    grid.add_row(
        done, f"question {progress.asked} of {progress.total}", Text(f"{minutes}:{seconds:02d}", style=_QUIET)
    )
    return grid


def _counts(progress: Progress) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for name, count in (("sampled", progress.sampled), ("scored", progress.scored), ("waiting", progress.pending)):
        text.append(f"{name} ", style=_QUIET).append(f"{count}   ")
    text.append("dropped ", style=_QUIET).append(f"{progress.dropped}   ", style="red" if progress.dropped else "")
    if progress.failed:
        text.append("not answered ", style=_QUIET).append(f"{progress.failed}   ", style="red")
    return text.append("incident running", style="yellow") if progress.has_incident else text


def metrics_table(lines: Sequence[MetricLine]) -> RenderableType:
    """Return the metrics with mean, interval, n, and na and errors by reason."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=_QUIET, pad_edge=False)
    table.add_column("metric", min_width=24, no_wrap=True)
    table.add_column("mean", justify="right", min_width=5, no_wrap=True)
    table.add_column("95 % interval", justify="right", min_width=14, no_wrap=True)
    table.add_column("n", justify="right", min_width=3, no_wrap=True)
    table.add_column("na", min_width=12, no_wrap=True, overflow="ellipsis")
    table.add_column("error", min_width=5, no_wrap=True, overflow="ellipsis")
    for line in lines:
        style = "bold" if line.name == WATCHED else ""
        table.add_row(
            Text(line.name, style=style),
            Text(wording.number(line.mean), style=style),
            Text(wording.bounds(line), style=_QUIET),
            str(line.n),
            _count(line, "na"),
            _count(line, "errors"),
        )
    return table


def _count(line: MetricLine, kind: str) -> Text:
    counts = line.na if kind == "na" else line.errors
    return Text(wording.reasons(counts), style=("red" if kind == "errors" else "") if counts else _QUIET)


def _trend(progress: Progress, room: Room) -> list[Text]:
    baseline = progress.detector.baseline_mean if progress.detector else None
    title = Text(f"faithfulness, mean of the last {RUN} scores", style=_QUIET)
    if baseline is not None:
        title.append(f"   ┄ baseline {baseline:.3f}")
    return [
        title,
        *chart(
            progress.points,
            total=progress.total,
            width=min(room.width - 6, 75),
            height=room.chart,
            baseline=baseline,
            incident_at=progress.incident_at if progress.has_incident else None,
        ),
    ]


def _detector(progress: Progress) -> Text:
    line = progress.detector
    alarm = progress.alarm
    if alarm is None:
        state = line.state if line else "learning"
        return Text.assemble(("detector  ", _QUIET), (wording.detector(line), _STATES[state]))
    return Text.assemble(
        ("ALARM     ", _STATES["alarm"]),
        (wording.what_fell(alarm), "bold"),
        f"\n          {wording.when(alarm)}",
        (f"\n          {wording.why(alarm)}", _QUIET),
        no_wrap=True,
        overflow="ellipsis",
    )


def worst_lines(worst: WorstAnswer) -> list[Text]:
    """Return an answer with low faithfulness: score and question, the unsupported sentence marked, and why."""
    parts = [
        Text.assemble((f"{worst.value:.2f}  ", "red"), worst.query, (f"   question {worst.question}", _QUIET)),
        Text(f"      {worst.before}", style=_QUIET),
        Text.assemble(("    ✗ ", "red"), (worst.marked, "red underline")),
        Text(f"      {worst.why}", style=_QUIET),
    ]
    parts = [part for part in parts if part.plain.strip()]
    for part in parts:
        part.no_wrap, part.overflow = True, "ellipsis"
    return parts


def _footer(progress: Progress, heading: Heading) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    if heading.endpoint:
        text.append("OpenMetrics ", style=_QUIET).append(heading.endpoint, style="cyan").append("   ")
    text.append("records ", style=_QUIET).append(heading.out, style="cyan")
    is_over = progress.asked == progress.total and not progress.pending
    return text if is_over else text.append("   Ctrl-C stops", style=_QUIET)
