"""Plans the parts of files, each scored and written alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from ragtrace.batch.csv_rows import csv_head
from ragtrace.batch.fields import names_of
from ragtrace.batch.files import found_files, open_file
from ragtrace.batch.readers import reader_of, recognised
from ragtrace.batch.table import arrow
from ragtrace.errors import ConfigError, InputError
from ragtrace.model.codec import UNPACK
from ragtrace.model.file_lines import WIDE, NotAnObject, bounded_lines, is_wide, json_of_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import BufferedReader

Form = Literal["parquet", "jsonl", "csv"]
_FORMS: dict[str, Form] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
}  # fmt: skip
_MOST_SHOWN = 30
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_THREADS = 16  # footers that are read at once: on a bucket each takes tens of ms
_FIRST_LINES = 5  # where none of them is JSON, the file is of another kind, as for one file of JSON lines
_HEAD_BYTES = 4_096  # the first line of OTLP may have megabytes, and its first key says what it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a file: a row group, a range of bytes, or the whole file.

    Attributes:
        path: with its protocol.
        format: name of its reader.
        form: of the file.
        size: bytes of the file.
        group: number of its row group; None for all.
        start: first byte; the part has the lines that begin from here on.
        end: byte at which no line begins any more; None for the end of the file.
        rows: of a Parquet file with a single row group; else 0.
        commas: columns of a CSV file whose numbers have a comma before the decimals.
        failure: why the file is not scored, of a foreign one; else "".
    """

    path: str
    format: str
    form: Form
    size: int = 0
    group: int | None = None
    start: int = 0
    end: int | None = None
    rows: int = 0
    commas: tuple[str, ...] = ()
    failure: str = ""

    @property
    def name(self) -> str:
        """Name of its output, which depends on path and place alone."""
        stem = PurePosixPath(self.path).name.partition(".")[0]
        place = self.group if self.group is not None else self.start
        digest = sha256(self.path.encode()).hexdigest()[:12]
        return f"{stem[:60]}-{digest}-{place:012d}.{self.output}"

    @property
    def note(self) -> str:
        """Name of the file beside its output that holds the number of its broken rows, where it has any."""
        return f"_{self.name}.json"

    @property
    def output(self) -> Literal["parquet", "jsonl"]:
        """Form of its output: Parquet for Parquet with a record a row, else JSON lines."""
        return "parquet" if self.form == "parquet" and reader_of(self.format).records is None else "jsonl"

    @property
    def where(self) -> str:
        """The part in words, for errors."""
        if self.group is not None:
            return f"{self.path}, row group {self.group}"
        return self.path if self.end is None and not self.start else f"{self.path}, bytes from {self.start}"


def plan(path: str, *, form: str | None = None, part_bytes: int = 2**23, without: str = "") -> list[Part]:
    """Return the parts of a file, a folder or a pattern, in the order of their names.

    Every file has a part, also an empty one. A file that cannot be read, or has an unknown format, is one part that
    fails by itself.

    Args:
        path: local or with a protocol of fsspec.
        form: name of the reader; None recognises it by the columns of each file.
        part_bytes: size of a part of JSON lines.
        without: a folder that is left out.

    Raises:
        ConfigError: nothing is there, or every file has an unknown format.
    """
    if form is not None:
        reader_of(form)
    files = [one for one in found_files(path) if not without or not one.path.startswith(f"{without}/")]
    chosen = [one for one in files if _form(one.path) is not None]
    if not chosen:
        found = f"; it has {PurePosixPath(files[0].path).name}" if files else ""
        raise ConfigError(f"{path}: no file of Parquet, JSON lines or CSV there{found}; check the path")
    with ThreadPoolExecutor(_THREADS) as threads:
        planned = threads.map(lambda one: _planned(one.path, one.size, form, part_bytes), chosen)
        parts = [part for parts in planned for part in parts]
    if parts and all(part.failure for part in parts):
        raise ConfigError(f"{parts[0].path}: {parts[0].failure}")
    return parts


def _form(path: str) -> Form | None:
    suffixes = [suffix for suffix in PurePosixPath(path.lower()).suffixes if suffix not in _PACKED]
    return _FORMS.get(suffixes[-1]) if suffixes else None


def _planned(path: str, size: int, given: str | None, part_bytes: int) -> Iterable[Part]:
    form = _form(path)
    assert form is not None  # noqa: S101 - `plan` left others out
    try:
        facts = _facts(path, form, given)
        name = _format(facts.columns, path, given) if facts.columns is not None else given or "records"
    except ConfigError as error:
        failure = str(error).removeprefix(f"{path}: ")
        return [Part(path=path, format=given or "records", form=form, size=size, failure=failure)]
    except (OSError, ValueError, EOFError):
        return [Part(path=path, format=given or "records", form=form, size=size)]
    whole = Part(path=path, format=name, form=form, size=size, commas=facts.commas)
    if reader_of(name).records is not None or form == "csv":
        return [whole]
    if form == "parquet":
        grouped = [Part(path=path, format=name, form=form, size=size, group=group) for group in range(facts.groups)]
        return [replace(grouped[0], rows=facts.rows)] if facts.groups == 1 else grouped or [whole]
    if path.endswith(_PACKED) or size <= part_bytes:
        return [whole]
    starts = range(0, size, part_bytes)
    ends = [*starts[1:], None]
    return [
        Part(path=path, format=name, form=form, size=size, start=start, end=end)
        for start, end in zip(starts, ends, strict=True)
    ]


def _format(columns: list[str], path: str, given: str | None) -> str:
    if given is None or reader_of(given).reads(columns):
        return given or recognised(columns, path)
    raise ConfigError(
        f"{path}: its columns {', '.join(columns[:_MOST_SHOWN])} do not fit --format {given}; leave it out"
    )


class _Facts(NamedTuple):
    """Columns of a file, None where it is empty; row groups and rows of Parquet; decimal commas of CSV."""

    columns: list[str] | None
    groups: int = 0
    rows: int = 0
    commas: tuple[str, ...] = ()


def _facts(path: str, form: Form, given: str | None) -> _Facts:
    """Return what the head of a file says.

    Raises:
        ConfigError: two columns have one name; or it holds JSON, but no lines of objects, or several lines of which
            none is JSON.
        OSError: it cannot be read.
        ValueError: its head is broken; also pyarrow's ArrowInvalid.
    """
    if form == "csv":
        csv = csv_head(path, given)
        return _Facts(None) if csv is None else _Facts(csv.columns, commas=csv.commas)
    with open_file(path) as stream:
        if form == "parquet":
            file = arrow("pyarrow.parquet").ParquetFile(stream)
            try:
                columns = names_of(file.schema_arrow.names)
            except InputError as error:
                raise ConfigError(f"{path}: {error}") from None
            return _Facts(columns, file.num_row_groups, file.metadata.num_rows)
        head = cast("BufferedReader", stream).peek(_HEAD_BYTES)[:_HEAD_BYTES]
        if is_wide(head):
            raise ConfigError(f"{path}: {WIDE}")
        if b'"resourceSpans"' in head or b'"resource_spans"' in head:
            return _Facts(["resourceSpans"])
        first = takewhile(lambda line: line.start < _HEAD_BYTES, bounded_lines(stream))
        lines = [line.raw for line in first if not line.broken]
    try:
        return _Facts(columns_of(lines, path))
    except ConfigError:
        raise
    except ValueError:
        if len(lines) < _FIRST_LINES:
            raise
        raise ConfigError(f"{path}: none of its first lines is JSON; write one object a line: {UNPACK}") from None


def columns_of(lines: Iterable[bytes], path: str) -> list[str] | None:
    """Return the names in lines of JSON, None where there is no line.

    Raises:
        ConfigError: a line is JSON, but no object.
        ValueError: no line is JSON.

    Example:
        >>> columns_of([b'{"query": "Where?"}', b'{"answer": "Oslo."}'], "a.jsonl")
        ['query', 'answer']
    """
    broken: ValueError | None = None
    found: dict[str, None] = {}
    is_other = has_object = False
    for line in filter(bytes.strip, lines):
        try:
            row = json_of_line(line, takes_nan=True)
        except NotAnObject:
            is_other = True
        except InputError as error:
            broken = error
        else:
            found |= dict.fromkeys(name.strip() for name in row)
            has_object = True
    if is_other and not has_object:
        raise ConfigError(f"{path}: a line is no JSON object; write one object a line: {UNPACK}")
    if broken is not None and not has_object:
        raise broken
    return list(found) if has_object else None
