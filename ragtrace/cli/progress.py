"""A progress bar on a terminal, and silence elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.cli.lines import GZIP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress(name: str, *, done_before: int) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error while the block runs; the value is to be called once a record."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("scoring", total=_count(name), completed=done_before)
        yield lambda: bar.advance(task)


def _count(name: str) -> int | None:
    """Return the number of lines of a plain file, None where counting would cost more than it tells."""
    path = Path(name)
    if name == "-" or not path.is_file():
        return None
    with path.open("rb") as stream:
        if stream.read(2) == GZIP:
            return None
        stream.seek(0)
        return sum(1 for line in stream if line.strip())
