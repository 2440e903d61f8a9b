"""Prints plain lines, with control characters escaped."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING

from ragtrace.model.printable import printable

if TYPE_CHECKING:
    import logging


def say(text: object = "", *, file: IO[str] | None = None, flush: bool = False) -> None:
    r"""Print a text with its control characters escaped.

    Example:
        >>> say("unknown metric \x1b[2J")
        unknown metric \x1b[2J
    """
    print(printable(str(text), keep="\n\t"), file=sys.stdout if file is None else file, flush=flush)


def escape_log(record: logging.LogRecord) -> bool:
    """Escape the arguments of a log line on a command's terminal."""
    if isinstance(record.args, tuple):
        record.args = tuple(map(_escaped, record.args))
    return True


def _escaped(value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    text = str(value)
    plain = printable(text, keep="\n\t")
    return value if plain == text else plain
