"""Reading record files: JSON lines, plain or gzip, from a path or standard input."""

from __future__ import annotations

import gzip
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ragtrace.errors import ConfigError, InputError
from ragtrace.model.codec import record_from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ragtrace.model import RagRecord

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Line:
    """One good line: where it stood, what it said, and the record it makes."""

    number: int
    given: dict[str, Any]
    record: RagRecord


def open_lines(name: str) -> IO[bytes]:
    """Open a file or ``-``; gzip is known by its first bytes, not by its name.

    Raises:
        ConfigError: the file cannot be opened.
    """
    try:
        raw = sys.stdin.buffer if name == "-" else Path(name).open("rb")  # noqa: SIM115 - the caller reads it
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}; check the path") from None
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("Any", raw))
    if buffered.peek(2)[:2] == _GZIP:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
    return buffered


def read_lines(stream: IO[bytes], name: str, broken: Callable[[str], None]) -> Iterator[Line]:
    """Yield the good lines; tell `broken` of each other one as ``file:line: reason``. Blank lines do not count."""
    shown = "<stdin>" if name == "-" else name
    number = 0
    try:
        for number, raw in enumerate(stream, start=1):
            if not raw.strip():
                continue
            try:
                yield _line(raw, number)
            except InputError as error:
                broken(f"{shown}:{number}: {error}")
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        broken(f"{shown}:{number + 1}: the file ends in the middle ({error})")


def _line(raw: bytes, number: int) -> Line:
    try:
        given = json.loads(raw)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise InputError("nested too deeply") from None
    return Line(number, given, record_from_json(given, fallback_id=str(number)))
