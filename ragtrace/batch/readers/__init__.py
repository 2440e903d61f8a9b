"""Readers of datasets and exports, one file each, found by the columns of a file.

A module has ``READER``. Adding a reader is one file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from ragtrace.errors import ConfigError, nearest
from ragtrace.model.codec import UNPACK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    Row = Mapping[str, Any]
    PlacedRow = tuple[str, Row]  # place in the file, such as "line 3"

_MOST_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Names one format, and says what is read of it.

    A row of most formats is a record, whose fields `ragtrace.batch.fields` reads.

    Attributes:
        about: one sentence for a person.
        reads: says by the names of its columns whether a file has this format.
        records: of a format with several rows for each record, turns the rows of one whole file, each with its
            place such as "line 3", and tells with the place what it has to leave out; else None.
        is_read: of such a format, says of a column whether it is read.
        is_number: of such a format, says of a column of CSV whether its cells are numbers.
        order: readers are asked in this order.
    """

    about: str
    reads: Callable[[Collection[str]], bool]
    records: Callable[[Iterable[PlacedRow], Callable[[str], None]], Iterator[Row]] | None = None
    is_read: Callable[[str], bool] = bool
    is_number: Callable[[str], bool] = lambda _name: False
    order: int = 1


@cache
def readers() -> dict[str, Reader]:
    """Return every reader by its name, in the order in which they are asked.

    Example:
        >>> list(readers())[-1]
        'records'
    """
    found = {one.name: import_module(f"{__name__}.{one.name}").READER for one in iter_modules(__path__)}
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def reader_of(name: str) -> Reader:
    """Return a reader by name.

    Raises:
        ConfigError: there is none of this name.

    Example:
        >>> reader_of("ragas").reads(["user_input"])
        True
    """
    known = readers()
    if name not in known:
        raise ConfigError(f"--format {name}: unknown{nearest(name, known)}")
    return known[name]


def recognised(columns: Collection[str], where: str) -> str:
    """Return the name of the format that has these columns.

    Raises:
        ConfigError: none has them; the message lists columns and formats.

    Example:
        >>> recognised(["user_input", "response", "retrieved_contexts"], "a.parquet")
        'ragas'
    """
    name = next((name for name, reader in readers().items() if reader.reads(columns)), None)
    if name is None:
        shown = [*columns][:_MOST_SHOWN]
        more = f" and {len(columns) - len(shown)} more" if len(columns) > len(shown) else ""
        raise ConfigError(
            f"{where}: unknown format with the columns {', '.join(shown) or '(none)'}{more}; "
            f"formats: {', '.join(readers())}; name one with --format, or rename columns (see `ragtrace schema`)"
            f"{f'; write one object a line: {UNPACK}' if 'data' in columns else ''}"
        )
    return name
