"""Reads the rows of a CSV file, as pandas, Excel and databases write them."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ragtrace.batch.fields import is_missing, kinds, names_of, nested
from ragtrace.batch.files import open_file
from ragtrace.batch.readers import reader_of, readers
from ragtrace.errors import ConfigError, InputError
from ragtrace.model.file_lines import MOST_LINE, bounded_lines
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ragtrace.batch.parts import Part

_LINE_BYTES = 64  # that a line takes beside its text
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SEP = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # the first line by which Excel is told the delimiter
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
_NOT_UTF_8 = "not UTF-8; of Excel save the file as CSV UTF-8"
_TWO_QUOTES = 'write "" for a double quote in it'
_EXPONENT = r"(?:[eE][+-]?\d+)?"
# How a number is written: with a point before its decimals and commas between thousands, or the other way round.
_POINT = re.compile(rf"[+-]?(?:\d*\.?\d+|\d+\.|[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d+)?){_EXPONENT}")
_COMMA = re.compile(rf"[+-]?(?:\d*,?\d+|\d+,|[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d+)?){_EXPONENT}")
_MOST_DIGITS = 400
_STEP = 2**16
_NUMBERS = {"number", "whole number"}
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


class CsvHead(NamedTuple):
    """Names of the columns of a CSV file, and those with numbers that have a comma before the decimals."""

    columns: list[str]
    commas: tuple[str, ...] = ()


def csv_head(path: str, form: str | None = None) -> CsvHead | None:
    """Return the head of a CSV file, None of an empty one.

    Where columns of the format hold numbers, all their cells are looked at: 1,234 says one thing beside 0,5, and
    another beside 1,234.5.

    Args:
        path: of the file.
        form: name of its reader; None recognises it.

    Raises:
        ConfigError: the header cannot be read, two columns have one name, or a column of numbers has no reading,
            or two. The message has the line and what to do.
        OSError: it cannot be read.
    """
    with open_file(path) as stream:
        lines = _CsvLines(stream)
        try:
            delimiter = lines.delimiter()
            rows = _cells(lines, delimiter)
            where, header = next(rows, ("", None))
            if header is None:
                return None
            columns = _names(header)
        except (csv.Error, InputError) as error:
            raise ConfigError(f"{path}: line {lines.first}: {error}") from None
        name = form or next((name for name, reader in readers().items() if reader.reads(columns)), None)
        found = {column: _Numbers(column) for column in columns if name and is_number(name, column)}
        for where, cells in rows if found else ():
            for column, cell in zip(columns, cells if isinstance(cells, list) else (), strict=False):
                if column in found:
                    found[column].add(where, cell)
    try:
        return CsvHead(columns, tuple(name for name, one in found.items() if one.has_comma(delimiter)))
    except InputError as error:
        raise ConfigError(f"{path}: {error}") from None


def is_number(form: str, column: str) -> bool:
    """Say whether a column of a format holds numbers.

    Example:
        >>> is_number("records", "k"), is_number("phoenix", "k")
        (True, False)
    """
    reader = reader_of(form)
    return kinds().get(column) in _NUMBERS if reader.records is None else reader.is_number(column)


@dataclass(slots=True)
class _Numbers:
    """First cells of a column of numbers: with one reading, by the sign before the decimals, and with two."""

    column: str
    point: str = ""
    comma: str = ""
    both: str = ""

    def add(self, where: str, cell: str) -> None:
        by_point, by_comma = _number(cell, has_comma=False), _number(cell, has_comma=True)
        said = f"{cell.strip()[:40]} ({where})"
        if by_point is None:
            self.comma = self.comma or (said if by_comma is not None else "")
        elif by_comma is None:
            self.point = self.point or said
        elif by_point != by_comma:
            self.both = self.both or said

    def has_comma(self, delimiter: str) -> bool:
        if self.point and self.comma:
            why = f"has {self.point} with a point before the decimals, and {self.comma} with a comma"
        elif self.both and not (self.point or self.comma) and ("," in self.both.split()[0] or delimiter != ","):
            why = f"has {self.both}, which may be a number with decimals or one of thousands"
        else:
            return bool(self.comma)
        raise InputError(f"the column {self.column!r} {why}; write a point before decimals, and no other signs")


def csv_rows(stream: IO[bytes], part: Part) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    lines = _CsvLines(stream)
    delimiter = lines.delimiter()
    rows = _cells(lines, delimiter)
    _, header = next(rows, ("", []))
    columns = _names(header or [])
    types: dict[str, Callable[[str], Any]] = {
        name: partial(_number_or_text, has_comma=name in part.commas)
        for name in columns
        if is_number(part.format, name)
    }
    if reader_of(part.format).records is None:
        types |= {name: _truth for name in columns if kinds().get(name) == "truth"}
        types |= {name: partial(nested, name) for name in columns if kinds().get(name) == "nested"}
    for where, cells in rows:
        yield where, partial(_csv_row, columns, cells, types, delimiter)


def _cells(lines: _CsvLines, delimiter: str) -> Iterator[tuple[str, list[str] | str]]:
    """Yield the cells of each row that has some, or why it has none."""
    reader = partial(csv.reader, lines, delimiter=delimiter, skipinitialspace=lines.has_blanks, strict=True)
    rows = reader()
    while True:
        lines.begin()
        why = ""
        try:
            cells = next(rows, None)
        except csv.Error as error:
            cells, why = [], f"{error}; {_TWO_QUOTES}"
        except InputError as error:
            cells, why = [], str(error)
        if lines.is_open:
            why = f"a text in double quotes has no end; {_TWO_QUOTES}"
        if why:
            rows = reader()
            lines.go_back()
            yield f"line {lines.first}", why
        elif cells is None:
            return
        elif cells:
            yield f"line {lines.first}", cells


def _names(header: list[str] | str) -> list[str]:
    """Return the names of columns.

    Raises:
        InputError: the header cannot be read, or two have one name.
    """
    if isinstance(header, str):
        raise InputError(header)
    if "\0" in "".join(header):
        raise InputError("this is UTF-16 or UTF-32 without a mark; write it as UTF-8")
    _refuse_other_bytes(header)
    return names_of(header)


class _CsvLines:
    """Lines of a CSV file, of which a row may take several; those of a row without end are given once more.

    Attributes:
        first: number of the row's first line.
        is_open: the file has ended inside the row.
        has_blanks: a name of the header stands behind a blank, as the cells below it do.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines = _text_lines(_utf_8(stream))
        self._again: deque[tuple[int, str]] = deque()
        self._taken: list[tuple[int, str]] = []
        self._size = 0
        self.first, self.is_open, self.has_blanks = 1, False, False

    def delimiter(self) -> str:
        """Return the delimiter that Excel's first line names, else that by which the header has known columns."""
        csv.field_size_limit(MOST_LINE)
        given: dict[str, list[str]] = {}
        for number, line in self._lines:
            if (told := _SEP.fullmatch(line)) is not None:
                return told[1]
            if not line.isspace():
                self._again.append((number, line))
                given = {sign: next(csv.reader([line], delimiter=sign), []) for sign in _DELIMITERS}
                break
        names = {sign: [name.strip() for name in cells] for sign, cells in given.items()}
        known = [sign for sign in names if any(one.reads(names[sign]) for one in readers().values())]
        found = max(known or names or _DELIMITERS, key=lambda sign: len(names.get(sign, ())))
        self.has_blanks = any(cell.startswith(" ") for cell in given.get(found, ()))
        return found

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


def _utf_8(stream: IO[bytes]) -> IO[bytes]:
    """Return a file in UTF-8, of one that says by its first bytes that it is in UTF-16 or UTF-32."""
    head = stream.peek(4)[:4]  # type: ignore[attr-defined] # `open_file` gives a BufferedReader
    encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    return stream if encoding is None else io.BufferedReader(_Recoded(stream, encoding))


class _Recoded(io.RawIOBase):
    """Bytes in UTF-8 of a file in another form of Unicode; one that ends early or is broken is an EOFError."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            raw = self._stream.read(_STEP)
            try:
                self._left = self._decoder.decode(raw, final=not raw).encode()
            except UnicodeError as error:
                raise EOFError(str(error)) from None
            if not raw:
                break
        taken = min(len(buffer), len(self._left))
        buffer[:taken], self._left = self._left[:taken], self._left[taken:]
        return taken


def _csv_row(
    header: list[str], cells: list[str] | str, types: Mapping[str, Callable[[str], Any]], delimiter: str
) -> dict[str, Any]:
    if isinstance(cells, str):
        raise InputError(cells)
    _refuse_other_bytes(cells)
    if any(cells[len(header) :]):
        signs = _DELIMITERS.get(delimiter, repr(delimiter))
        columns = count_text(len(header), "column")
        raise InputError(f"{len(cells)} cells under {columns}; put texts with {signs} in double quotes")
    row = {name: cell for name, cell in zip(header, cells, strict=False) if cell != ""}
    return {name: types[name](cell) if name in types else cell for name, cell in row.items()}


def _refuse_other_bytes(cells: list[str]) -> None:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        raise InputError(_NOT_UTF_8) from None


def _number(cell: str, *, has_comma: bool) -> int | float | None:
    """Return the number of a cell with a comma or a point before its decimals, None where it has none."""
    text = cell.strip()
    if len(text) > _MOST_DIGITS or not (_COMMA if has_comma else _POINT).fullmatch(text):
        return None
    text = text.replace(".", "").replace(",", ".") if has_comma else text.replace(",", "")
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def _number_or_text(cell: str, *, has_comma: bool) -> int | float | str | None:
    if is_missing(cell):
        return None
    found = _number(cell, has_comma=has_comma)
    return cell if found is None else found


def _truth(cell: str) -> bool | str:
    return _TRUTHS.get(cell.strip().lower(), cell)
