"""Reads the rows of a part: the values of each by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from ragtrace.batch.csv_rows import csv_rows
from ragtrace.batch.files import open_file
from ragtrace.batch.table import arrow, rows_of
from ragtrace.errors import InputError
from ragtrace.model.file_lines import MOST_LINE, MOST_REQUEST, FileLine, bounded_lines, json_of_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from ragtrace.batch.parts import Part
    from ragtrace.batch.readers import PlacedRow

MOST_SHOWN = 10
ROWS = 32  # of Parquet that are unpacked at once
_MOST_GROUP = 2**30


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
        for number, row in enumerate(rows_of(table), start=first):
            if isinstance(row, InputError):
                broken.add(f"{part.path}, row {number}: {row}")
            else:
                yield f"row {number}", row
        return
    with open_file(part.path) as stream:
        for place, read in csv_rows(stream, part) if part.form == "csv" else _lines(stream, part):
            try:
                row = read()
            except InputError as error:
                broken.add(f"{part.path}, {place}: {error}")
            else:
                yield place, row


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
    return json_of_line(line.bytes(), is_large=is_large, names_once=True)
