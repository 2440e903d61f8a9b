"""Command ``ragtrace feedback``, which keeps human labels in a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragtrace.cli.io.arguments import Store
from ragtrace.cli.io.jsonl_reader import BrokenLines, open_lines, read_each
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import opened_store, store_path
from ragtrace.errors import InputError
from ragtrace.model.file_lines import json_of_line

if TYPE_CHECKING:
    from ragtrace.stores import Label

EPILOG = """\
A line is {"trace_id": ..., "value": 0 to 1, true or false} and, where there is one, "comment", "metric" (default
feedback: the answer as a whole), "rater", "at" (Unix seconds), and the trace's "session" and "user", by which
`ragtrace forget` finds it. A trace_id has all its 32 hex digits. A line of the same trace, metric and rater as an
earlier one replaces it. Traces need not be scored yet. Comments are kept with content=full alone.

Exit status: 0 fine, 1 broken lines (the rest is kept), 2 usage or a failure.
"""
_BATCH = 500
_TEXTS = ("comment", "metric", "rater", "session", "user")


def command(
    file: Annotated[str, typer.Argument(help="JSON lines, plain or gzip; - reads standard input.")],
    *,
    store: Store = None,
) -> int:
    """Keep human labels of traces in the store."""
    path = store_path(store, "feedback")
    broken = BrokenLines(file)
    kept = 0
    batch: list[Label] = []
    with opened_store(path) as opened, open_lines(file) as stream:
        for label in read_each(stream, file, broken, lambda raw, _: label_of(raw)):
            batch.append(label)
            if len(batch) >= _BATCH:
                kept += opened.rate(batch)
                batch = []
        kept += opened.rate(batch)
    broken.close()
    say(f"{kept} labels kept, {broken.count} broken lines", file=sys.stderr)
    return 1 if broken.count else 0


def label_of(raw: bytes) -> Label:
    """Return the label of one line.

    Raises:
        InputError: it is not a label.

    Example:
        >>> label_of(b'{"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "value": true}').value
        1.0
    """
    from ragtrace.stores import Label

    given = json_of_line(raw)
    texts: dict[str, Any] = {name: given[name] for name in _TEXTS if given.get(name) is not None}
    numbers: dict[str, Any] = {name: given[name] for name in ("value", "at") if given.get(name) is not None}
    if not isinstance(given.get("trace_id"), str) or not all(isinstance(text, str) for text in texts.values()):
        raise InputError(f"trace_id, {', '.join(_TEXTS)} must be texts, and trace_id must be there")
    if "value" not in numbers or not all(isinstance(number, int | float) for number in numbers.values()):
        raise InputError("value must be a number from 0 to 1, true or false")
    try:
        numbers = {name: float(number) for name, number in numbers.items()}
        return Label(trace_id=given["trace_id"], **texts, **numbers)
    except (ValueError, OverflowError) as error:
        raise InputError(str(error)) from None
