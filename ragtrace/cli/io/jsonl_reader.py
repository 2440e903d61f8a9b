"""Reads JSON lines, plain or gzip, and writes values as one line."""

from __future__ import annotations

import gzip
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from ragtrace.batch.fields import read_fields
from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError, InputError
from ragtrace.model.codec import UNPACK, record_from_json
from ragtrace.model.file_lines import WIDE, NotJson, bounded_lines, is_wide, json_of_line
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ragtrace.model import RagRecord
    from ragtrace.model.codec import ScoreJson

T = TypeVar("T")
GZIP = b"\x1f\x8b"
MOST_SHOWN = 10  # broken lines of one file that are shown one by one
_FIRST_LINES = 5  # where none of them is JSON, the file is of another kind
_NO_JSON_LINES = (
    "does not look like JSON lines: none of its first 5 lines is JSON; write one object a line: "
    f"{UNPACK}; see `ragtrace schema`; `ragtrace score` reads tables as .parquet and as .csv (of Excel: CSV UTF-8)"
)
# Valid in JSON, but editors and str.splitlines see the end of a line there, or a terminal a command.
JSON_ESCAPES = {
    code: f"\\u{code:04x}"
    for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


@dataclass(frozen=True, slots=True)
class Line:
    """One good line.

    Attributes:
        number: its place in the file, from 1.
        id: as it was given, a text or a number; else the line number.
        rest: its other fields without scores, as JSON text.
        unknown: fields that are not part of a record.
    """

    number: int
    id: str | float
    rest: str
    record: RagRecord
    unknown: tuple[str, ...] = ()

    def scored(self, scores: Mapping[str, ScoreJson]) -> str:
        """Return the output line with id, given fields and scores."""
        given = self.rest[1:-1]
        parts = [f'"id": {one_line(self.id)}', *([given] if given else []), f'"scores": {_tolerant(scores)}']
        return f"{{{', '.join(parts)}}}\n"


def open_lines(name: str) -> IO[bytes]:
    """Open a file or ``-``; its first bytes tell gzip.

    Raises:
        ConfigError: the file cannot be opened.
    """
    if not name:  # a path of its own: the folder where we are
        raise ConfigError("'' is not a file; check the path")
    try:
        raw = sys.stdin.buffer if name == "-" else Path(name).open("rb")  # noqa: SIM115 - the caller reads it
        buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("Any", raw))
        is_gzip = buffered.peek(2)[:2] == GZIP
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}; check the path") from None
    return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered)) if is_gzip else buffered


def read_lines(stream: IO[bytes], name: str, broken: Callable[[str], None]) -> Iterator[Line]:
    """Yield the good lines; call `broken` with ``file:line: reason`` for others."""
    return read_each(stream, name, broken, _line)


def read_each(
    stream: IO[bytes], name: str, broken: Callable[[str], None], read: Callable[[bytes, int], T]
) -> Iterator[T]:
    """Yield the result of `read` for each line; its InputError marks a broken line.

    Raises:
        InputError: none of the first 5 lines is JSON.
    """
    shown = "<stdin>" if name == "-" else name
    foreign, has_json = 0, False
    lines, number = bounded_lines(stream), 0
    while True:
        try:
            line = next(lines, None)
        except OSError as error:
            broken(f"{shown}:{number + 1}: the file cannot be read on from here ({error})")
            return
        if line is None:
            return
        number = line.number
        if number == 1 and is_wide(line.raw):
            broken(f"{shown}:1: {WIDE}")
            return
        try:
            made = read(line.bytes(), number)
        except InputError as error:
            broken(f"{shown}:{number}: {error}")
            has_json = has_json or not isinstance(error, NotJson)
            foreign += not has_json
            if foreign == _FIRST_LINES:
                raise InputError(f"{shown} {_NO_JSON_LINES}") from None
        else:
            has_json = True
            yield made


class BrokenLines:
    """Prints the first broken lines of a file, and counts all.

    Args:
        name: the file, or ``-``.
        is_held: print nothing before `close`.

    Attributes:
        count: broken lines so far.
        first: the first of them, "" without any.
    """

    def __init__(self, name: str, *, is_held: bool = False) -> None:
        self._name = "<stdin>" if name == "-" else name
        self._held: list[str] | None = [] if is_held else None
        self.count = 0
        self.first = ""

    def __call__(self, line: str) -> None:
        """Take one line that says file, number and reason."""
        self.count += 1
        self.first = self.first or line
        if self.count > MOST_SHOWN:
            return
        if self._held is None:
            say(line, file=sys.stderr)
        else:
            self._held.append(line)

    def close(self) -> None:
        """Print the lines that were held, and how many were not shown."""
        for line in self._held or ():
            say(line, file=sys.stderr)
        if self.count > MOST_SHOWN:
            say(f"{self._name}: {count_text(self.count - MOST_SHOWN, 'more broken line')}", file=sys.stderr)


def one_line(value: object) -> str:
    r"""Return a value as JSON text of one line in every editor.

    Raises:
        ValueError: a number is not finite, or a value has no JSON form.

    Example:
        >>> one_line("Zürich\u2028")
        '"Zürich\\u2028"'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: kept, as the escape it came as
        return json.dumps(value, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return text.translate(JSON_ESCAPES)


def as_record(row: Any) -> Any:
    """Return a row with the fields of a record, whichever tool's columns it has; what is no object stays as it is.

    Raises:
        InputError: a field has a wrong form.

    Example:
        >>> as_record({"question": "Where?", "contexts": [], "ground_truths": ["Oslo."]})["reference"]
        'Oslo.'
    """
    return read_fields(row).values if isinstance(row, dict) else row


def _line(raw: bytes, number: int) -> Line:
    given = json_of_line(raw, names_once=True)
    fields = read_fields(given)
    record = record_from_json(fields.values, fallback_id=str(number))
    rest = {name: value for name, value in given.items() if name not in {"id", "scores"}}
    try:
        text = one_line(rest)
    except ValueError as error:
        raise InputError(f"cannot be written again as JSON: {error}") from None
    identity = given.get("id")
    return Line(number, number if identity in {None, ""} else identity, text, record, fields.unread)


def _tolerant(scores: Mapping[str, ScoreJson]) -> str:
    """Return scores as JSON; details without a JSON form give way to the reason."""
    try:
        return one_line(scores)
    except ValueError as error:
        note = {"message": f"the details have no JSON form: {error}"}
    return one_line({key: {**score, "details": note} for key, score in scores.items()})
