"""Reads the rows of a part."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NoReturn

from ragtrace.batch.files import open_file
from ragtrace.batch.rows import with_lists
from ragtrace.batch.table import arrow
from ragtrace.errors import InputError
from ragtrace.model.codec import json_value
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from ragtrace.batch.parts import Part
    from ragtrace.batch.readers import PlacedRow

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


def read_table(part: Part) -> tuple[pa.Table, int]:
    """Return the rows of a part of a Parquet file, and the number of the first one, from 1.

    Raises:
        OSError: it cannot be read.
        ValueError: its pages are broken; pyarrow's ArrowInvalid.
    """
    with open_file(part.path) as stream:
        file = arrow("pyarrow.parquet").ParquetFile(stream, page_checksum_verification=True)
        if part.group is None:
            return file.read(), 1
        facts = file.metadata
        before = sum(facts.row_group(group).num_rows for group in range(part.group))
        return file.read_row_group(part.group), before + 1


def read_rows(part: Part, broken: Broken) -> Iterator[PlacedRow]:
    """Yield the rows of a part, each with its place in the file; broken lines are counted.

    A place is a row of Parquet or the line on which a row begins, from 1. Lines of a part in the middle of a file
    have the byte at which they begin, from 0.
    """
    if part.form == "parquet":
        table, first = read_table(part)
        for number, row in enumerate(table.to_pylist(maps_as_pydicts="lossy"), start=first):
            yield f"row {number}", row
        return
    with open_file(part.path) as stream:
        for place, read in _csv_rows(stream) if part.form == "csv" else _lines(stream, part):
            try:
                row = read()
            except InputError as error:
                broken.add(f"{part.path}, {place}: {error}")
            else:
                yield place, row


def _csv_rows(stream: IO[bytes]) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    csv.field_size_limit(_MOST_CELL)
    rows = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline=""))
    header: list[str] | None = None
    line = 1
    try:
        for cells in rows:
            if header is None and cells:
                header = cells
                _csv_row(cells, cells)
            elif header is not None and cells:
                yield f"line {line}", partial(_csv_row, header, cells)
            line = rows.line_num + 1
    except (csv.Error, InputError) as error:
        raise InputError(f"line {line}: {error}") from None


def _csv_row(header: list[str], cells: list[str]) -> dict[str, Any]:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        raise InputError("not UTF-8") from None
    if any(cells[len(header) :]):
        columns = count_text(len(header), "column")
        raise InputError(f"{len(cells)} cells under {columns}; put texts with commas in double quotes")
    row: dict[str, Any] = dict.fromkeys(header) | dict(zip(header, cells, strict=False))
    return with_lists({name: value for name, value in row.items() if value != ""})


def _lines(stream: IO[bytes], part: Part) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield the lines that begin in the part."""
    place = part.start
    if place:
        stream.seek(place - 1)
        place += len(stream.readline()) - 1
    number = 0
    while (part.end is None or place < part.end) and (line := stream.readline()):
        number += 1
        if line.strip():
            yield (f"byte {place}" if part.start else f"line {number}"), partial(_parsed, line)
        place += len(line)


def _parsed(line: bytes) -> dict[str, Any]:
    found = json_value(line, _unusual)
    if not isinstance(found, dict):
        raise InputError("a line must be a JSON object")
    return found


def _unusual(line: bytes) -> Any:
    """Return the JSON of a line that is not plain, or say where it is none."""
    try:
        return json.loads(line.decode("utf-8-sig"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start + 1} of the line)") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise InputError("nested too deeply") from None


def _refuse(constant: str) -> NoReturn:
    raise InputError(f"{constant} is not JSON; write null")
