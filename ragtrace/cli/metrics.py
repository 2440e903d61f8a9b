"""``ragtrace metrics``: what can be computed, and what each needs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragtrace.metrics.base import Declaration, Output

WIDE = 150  # columns below which calls and sources would fold into towers


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("metrics", help="print the table of metrics: needs, range, direction, calls")
    parser.add_argument("--markdown", action="store_true", help="as a Markdown table, for documentation")


def run(args: argparse.Namespace) -> int:
    """Print one row an output."""
    from rich.table import Table

    from ragtrace.cli.console import Shown

    rows = [row for metric in _declarations() for row in _rows(metric)]
    head = ("metric", "exported as", "needs", "range", "direction", "threshold", "calls", "source")
    if args.markdown:
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
        for row in rows:
            print(f"| {' | '.join(row)} |")
        return 0
    console = Shown()
    shown = len(head) if console.width >= WIDE else len(head) - 2
    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(head[:shown]):
        table.add_column(name, no_wrap=i < 2)
    for row in rows:
        table.add_row(*row[:shown])
    console.print(table)
    if shown < len(head):
        console.print("calls and sources: `ragtrace metrics --markdown`, or a terminal of 150 columns")
    return 0


def _declarations() -> list[Declaration]:
    from ragtrace.metrics.registry import all_metrics

    return [metric.declaration for metric in all_metrics().values()]


def _rows(declaration: Declaration) -> list[tuple[str, ...]]:
    return [_row(declaration, output, is_first=i == 0) for i, output in enumerate(declaration.outputs)]


def _row(declaration: Declaration, output: Output, *, is_first: bool) -> tuple[str, ...]:
    return (
        declaration.name if is_first else "",
        output.name,
        ", ".join(declaration.needs) if is_first else "",
        f"{output.low:g} to {output.high:g}",
        output.direction,
        "" if output.threshold is None else f"{output.threshold:g}",
        declaration.calls if is_first else "",
        declaration.source if is_first else "",
    )
