"""Reads the rows of a part."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, NoReturn

from ragtrace.batch.files import open_file
from ragtrace.batch.rows import with_lists
from ragtrace.batch.table import arrow
from ragtrace.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ragtrace.batch.parts import Part

MOST_SHOWN = 10
_MOST_CELL = 2**27


@dataclass(slots=True)
class Broken:
    """Broken lines of a part: how many, and where the first ones are."""

    count: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, where: str) -> None:
        """Count one."""
        self.count += 1
        if len(self.shown) < MOST_SHOWN:
            self.shown.append(where)


def read_table(part: Part) -> pa.Table:
    """Return the rows of a part of a Parquet file.

    Raises:
        OSError: it cannot be read.
        ValueError: its pages are broken; pyarrow's ArrowInvalid.
    """
    with open_file(part.path) as stream:
        file = arrow("pyarrow.parquet").ParquetFile(stream, page_checksum_verification=True)
        return file.read() if part.group is None else file.read_row_group(part.group)


def read_rows(part: Part, broken: Broken) -> Iterator[dict[str, Any]]:
    """Yield the rows of a part; lines that are not a JSON object are counted as broken."""
    if part.form == "parquet":
        yield from read_table(part).to_pylist(maps_as_pydicts="lossy")
        return
    with open_file(part.path) as stream:
        if part.form == "csv":
            yield from _csv_rows(stream)
            return
        for place, line in _lines(stream, part):
            try:
                yield _parsed(line)
            except InputError as error:
                broken.add(f"{part.path}, byte {place}: {error}")


def _csv_rows(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(_MOST_CELL)
    rows = csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""))
    for row in rows:
        yield with_lists({name: value for name, value in row.items() if name is not None and value != ""})


def _lines(stream: IO[bytes], part: Part) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in the part, each with its first byte."""
    place = part.start
    if place:
        stream.seek(place - 1)
        place += len(stream.readline()) - 1
    while (part.end is None or place < part.end) and (line := stream.readline()):
        if line.strip():
            yield place, line
        place += len(line)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode("utf-8-sig"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start + 1} of the line)") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise InputError("nested too deeply") from None
    if not isinstance(found, dict):
        raise InputError("a line must be a JSON object")
    return found


def _refuse(constant: str) -> NoReturn:
    raise InputError(f"{constant} is not JSON; write null")
