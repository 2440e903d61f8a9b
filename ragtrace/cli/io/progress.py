"""A progress bar on a terminal, and silence elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.cli.io.jsonl_reader import GZIP
from ragtrace.model.file_lines import bounded_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress(name: str, *, done_before: int, limit: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error; the value is called once a record.

    Args:
        name: the file whose lines are scored, or ``-``.
        done_before: lines that an earlier run scored.
        limit: most lines that will be read.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("scoring", total=total(name, limit), completed=done_before)
        yield lambda: bar.advance(task)


def total(name: str, limit: int | None = None) -> int | None:
    """Return the most lines that will be scored; None where counting is dear."""
    lines = _count(name)
    return lines if limit is None else min(limit, limit if lines is None else lines)


def _count(name: str) -> int | None:
    path = Path(name)
    if name == "-" or not path.is_file():
        return None
    with path.open("rb") as stream:
        if stream.read(2) == GZIP:
            return None
        stream.seek(0)
        return sum(1 for _ in bounded_lines(stream))
