"""Reads the rows of a part."""

from __future__ import annotations

import csv
import io
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NoReturn

from ragtrace.batch.files import open_file
from ragtrace.batch.rows import with_lists
from ragtrace.batch.table import arrow
from ragtrace.errors import InputError
from ragtrace.model.file_lines import MOST_LINE, MOST_REQUEST, FileLine, bounded_lines, json_of_line
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from ragtrace.batch.parts import Part
    from ragtrace.batch.readers import PlacedRow

MOST_SHOWN = 10
ROWS = 32  # of Parquet that are unpacked at once
_MOST_GROUP = 2**30
_LINE_BYTES = 64  # that a line takes beside its text


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
        InputError: a row group unfolds to more than 1 GiB.
    """
    with open_file(part.path) as stream:
        file = arrow("pyarrow.parquet").ParquetFile(stream, page_checksum_verification=True)
        groups = range(file.num_row_groups) if part.group is None else [part.group]
        size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        batches, unpacked = [], 0
        given = file.iter_batches(batch_size=ROWS, row_groups=groups)
        while max(size, unpacked) <= _MOST_GROUP and (batch := next(given, None)) is not None:
            batches.append(batch)
            unpacked += batch.nbytes  # a text that many rows share is stored once
        if max(size, unpacked) > _MOST_GROUP:
            raise InputError(
                f"more than {_MOST_GROUP >> 30} GiB unpacked; "
                "pq.write_table(table, FILE, row_group_size=500) makes smaller row groups"
            )
        before = sum(file.metadata.row_group(group).num_rows for group in range(groups[0] if groups else 0))
        return arrow().Table.from_batches(batches, file.schema_arrow), before + 1


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
    csv.field_size_limit(MOST_LINE)
    lines = _CsvLines(stream)
    rows = csv.reader(lines)
    header: list[str] | None = None
    while True:
        lines.begin()
        why = ""
        try:
            cells = next(rows, None)
        except (csv.Error, InputError) as error:
            cells, why = [], str(error)
        where = f"line {lines.first}"
        if lines.is_open:
            why = 'a text in double quotes has no end; write "" for a double quote in it'
        if why and header is None:
            raise InputError(f"{where}: {why}")
        if why:
            rows = csv.reader(lines)
            lines.go_back()
            yield where, partial(_refused, why)
        elif cells is None:
            return
        elif header is None and cells:
            header = cells
            _csv_row(cells, cells)
        elif header is not None and cells:
            yield where, partial(_csv_row, header, cells)


class _CsvLines:
    """Lines of a CSV file, of which a row may take several; those of a row without end are given once more.

    Attributes:
        first: number of the row's first line.
        is_open: the file has ended inside the row.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines = _text_lines(stream)
        self._again: deque[tuple[int, str]] = deque()
        self._taken: list[tuple[int, str]] = []
        self._size = 0
        self.first, self.is_open = 1, False

    def begin(self) -> None:
        """Begin a row."""
        self._taken, self._size, self.is_open = [], 0, False

    def go_back(self) -> None:
        """Give the lines of the row once more, but for its first one."""
        self._again.extendleft(reversed(self._taken[1:]))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = self._again.popleft() if self._again else next(self._lines, (0, ""))
        if not number:
            self.is_open = bool(self._taken)
            raise StopIteration
        if not self._taken:
            self.first = number
        self._taken.append((number, line))
        self._size += len(line) + _LINE_BYTES
        if isinstance(line, _BrokenText):
            raise InputError(line)
        if self._size > MOST_LINE:
            raise InputError(
                f"a row of more than {MOST_LINE // 2**20} MiB; a text in double quotes may have no end"
            )
        return line


class _BrokenText(str):
    """Why a line cannot be read, in its place."""

    __slots__ = ()


def _text_lines(stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    for line in bounded_lines(stream, has_blank=True):
        if line.broken:
            yield line.number, _BrokenText(line.broken)
            continue
        text = line.raw.decode("utf-8-sig" if line.number == 1 else "utf-8", errors="surrogateescape")
        if "\r" in text[:-2]:  # the end of a line on old Macs
            yield from ((line.number, one) for one in io.StringIO(text, newline=""))
        else:
            yield line.number, text


def _refused(why: str) -> NoReturn:
    raise InputError(why)


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
    is_large = part.format == "otlp"
    place = max(part.start - 1, 0)  # the line before it ends there or later
    if place:
        stream.seek(place)
    for line in bounded_lines(stream, start=place, end=part.end, most=MOST_REQUEST if is_large else MOST_LINE):
        if line.start >= part.start:
            where = f"byte {line.start}" if part.start else f"line {line.number}"
            yield where, partial(_parsed, line, is_large=is_large)


def _parsed(line: FileLine, *, is_large: bool) -> dict[str, Any]:
    return json_of_line(line.bytes(), is_large=is_large)
