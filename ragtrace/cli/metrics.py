"""``ragtrace metrics``: every metric, its needs, and its meaning in one sentence."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.say import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.metrics.base import MetricSpec, Output

HELP = "Print every metric: its meaning, needs, range, direction and calls."
NARROW = 110  # columns below which the table itself would
_READABLE = 120
WIDE = 150  # columns below which calls and sources would fold into towers


def command(
    *, markdown: Annotated[bool, typer.Option("--markdown", help="as a Markdown table, for documentation")] = False
) -> int:
    """Print one row an output."""
    from rich.table import Table

    from ragtrace.cli.io.console import Shown

    specs = _specs()
    rows = [row for metric in specs for row in _rows(metric)]
    head = ("metric", "exported as", "needs", "range", "direction", "threshold", "calls", "source")
    if markdown:
        _markdown(head, rows)
        say()
        _markdown(("metric", "meaning"), [(metric.name, metric.summary) for metric in specs])
        return 0
    console = Shown()
    if console.width < NARROW:
        for line in _blocks(specs, console.width):
            console.print(line)
        return 0
    shown = len(head) if console.width >= WIDE else len(head) - 2
    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(head[:shown]):
        table.add_column(name, no_wrap=i < 2)
    for row in rows:
        table.add_row(*row[:shown])
    console.print(table)
    if shown < len(head):
        console.print("calls and sources: `ragtrace metrics --markdown`, or a terminal of 150 columns")
    console.print()
    for line in _meanings(specs, console.width):
        console.print(line)
    return 0


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    say(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        say(f"| {' | '.join(row)} |")


def _blocks(specs: Sequence[MetricSpec], width: int) -> Iterator[str]:
    """Yield a block for each metric: its sentence, its needs, and a line for each number it exports."""
    for metric in specs:
        yield f"{metric.name}"
        facts = (metric.summary, f"needs {', '.join(metric.needs)}; {metric.calls}; source: {metric.source}")
        yield from (f"    {line}" for fact in facts for line in wrap(fact, width - 4))
        for output in metric.outputs:
            _, name, _, span, direction, threshold, *_ = _row(metric, output, is_first=False)
            yield f"    {name}: {span}, {direction}{f', threshold {threshold}' if threshold else ''}"


def _meanings(specs: Sequence[MetricSpec], width: int) -> Iterator[str]:
    """Yield each metric's name and, beside it, its sentence."""
    most = max(len(metric.name) for metric in specs) + 2
    for metric in specs:
        first, *rest = wrap(metric.summary, min(width, _READABLE) - most)
        yield f"{metric.name:<{most}}{first}"
        yield from (f"{'':<{most}}{line}" for line in rest)


def _specs() -> list[MetricSpec]:
    from ragtrace.metrics.registry import all_metrics

    return [metric.spec for metric in all_metrics().values()]


def _rows(spec: MetricSpec) -> list[tuple[str, ...]]:
    return [_row(spec, output, is_first=i == 0) for i, output in enumerate(spec.outputs)]


def _row(spec: MetricSpec, output: Output, *, is_first: bool) -> tuple[str, ...]:
    return (
        spec.name if is_first else "",
        output.name,
        ", ".join(spec.needs) if is_first else "",
        f"{output.low:g} to {output.high:g}",
        output.direction,
        "" if output.threshold is None else f"{output.threshold:g}",
        spec.calls if is_first else "",
        spec.source if is_first else "",
    )
