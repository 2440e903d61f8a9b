"""The calibration report as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.scoring.offline.calibration_lines import findings, head, rows

if TYPE_CHECKING:
    from rich.console import Console

    from ragtrace.scoring.offline.calibration import Calibration
    from ragtrace.stats.figure import Figure


def show(report: Calibration, console: Console, *, label: str) -> None:
    """Print the head, the table and the findings."""
    from rich.table import Table

    for line in head(report, label):
        console.print(line)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("figure", no_wrap=True)
    for name in ("value", "95 % interval", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("note")
    for name, figure, note in rows(report):
        table.add_row(name, *_cells(figure), f"not given: {figure.reason}" if figure.reason else note)
    console.print()
    console.print(table)
    console.print()
    for line in findings(report):
        console.print(f"- {line}")


def _cells(figure: Figure) -> tuple[str, str, str]:
    bounds = "" if figure.low is None or figure.high is None else f"{figure.low:.3f} to {figure.high:.3f}"
    return "-" if figure.value is None else f"{figure.value:.3f}", bounds, str(figure.n)
