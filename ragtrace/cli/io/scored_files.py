"""Reads files that ``ragtrace score`` wrote: JSON lines, Parquet, or a folder of parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragtrace.cli.io.jsonl_reader import as_record, open_lines, read_each
from ragtrace.errors import ConfigError, InputError
from ragtrace.model.file_lines import json_of_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ragtrace.views.source import Views

T = TypeVar("T")
PARQUET = (".parquet", ".pq")
_LINES = ".jsonl"


def is_in_parts(name: str) -> bool:
    """Return whether a name is a folder or an address such as ``s3://bucket/scored``."""
    return "://" in name or Path(name).is_dir()


def read_scored(name: str, broken: Callable[[str], None], read: Callable[[Any, int], T]) -> Iterator[T]:
    """Yield the result of `read` for each row; its InputError marks a broken row.

    Rows of Parquet without scores are left out. They were reported when the file was scored.

    Args:
        name: a file, ``-``, or a folder or address with parts.
        broken: is given ``file:row: reason`` for each broken row.
        read: is given a row in the form of a scored line, and its number from 1. The numbers of a folder go on
            from part to part, in the order of their names.

    Raises:
        ConfigError: a file cannot be opened, or is Parquet without scores, or the folder has no part.
        InputError: none of the first 5 lines is JSON.
        MissingExtra: fsspec or pyarrow is not installed; JSON lines of this machine need neither.
    """
    before = 0
    for path in _files(name):
        shown, number = "<stdin>" if path == "-" else path, 0
        for number, row in _rows(path, broken):
            try:
                found = read(as_record(row), before + number)
            except InputError as error:
                broken(f"{shown}:{number}: {error}")
            else:
                yield found
        before += number


def opened_views(name: str, *, trace_url: str | None = None, is_live: bool = False) -> Views:
    """Return the views of a store, or of a file or folder that `ragtrace score` wrote.

    Args:
        name: path, folder, address, or ``-``.
        trace_url: address of a trace with ``{trace_id}`` in it.
        is_live: answer while the rows are read.

    Raises:
        ConfigError: there is nothing of that name, or it cannot be opened.
    """
    from ragtrace.cli.io.answers import is_store
    from ragtrace.views.source import Views

    if is_store(name):
        return Views.of_store(Path(name), trace_url=trace_url, is_live=is_live)
    is_lines = name != "-" and not is_in_parts(name) and not name.endswith(PARQUET)

    def rows(broken: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
        return read_scored(name, broken, lambda row, number: (number, row))

    return Views.of_file(
        Path(name),
        rows=None if is_lines else rows,
        as_record=as_record if is_lines else None,
        trace_url=trace_url,
        is_live=is_live,
    )


def _files(name: str) -> list[str]:
    if not is_in_parts(name):
        return [name]
    from ragtrace.batch.files import found_files

    found = [file.path for file in found_files(name) if file.path.endswith((*PARQUET, _LINES))]
    if not found:
        raise ConfigError(f"{name}: there is no file that `ragtrace score` wrote; check the path")
    return found


def _rows(path: str, broken: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
    if path.endswith(PARQUET):
        yield from _parquet_rows(path, broken)
        return
    with _opened(path) if "://" in path else open_lines(path) as stream:
        yield from read_each(stream, path, broken, lambda raw, number: (number, json_of_line(raw)))


def _parquet_rows(path: str, broken: Callable[[str], None]) -> Iterator[tuple[int, Any]]:
    from ragtrace.batch.fields import SCORES
    from ragtrace.batch.resume import parquet_rows, scored_line

    number = 0
    with _opened(path) as stream:
        try:
            for number, row in enumerate(parquet_rows(stream, path), start=1):
                if row[SCORES] is None:
                    continue
                try:
                    line = scored_line(row)
                except InputError as error:
                    broken(f"{path}:{number}: {error}")
                else:
                    yield number, line
        except ConfigError:
            raise
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            broken(f"{path}:{number + 1}: the file cannot be read on from here ({error})")


def _opened(path: str) -> Any:
    from ragtrace.batch.files import open_file

    try:
        return open_file(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; check the path") from None
