"""Opens the store of a command, and reads moments in time."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError, StoreError
from ragtrace.sqlite_file import is_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.stores.sqlite import SqliteStore

_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_NO_LIMIT = 2**62
MOMENT = "an age (7d, 12h, 30m) or a date (2026-11-21, 2026-11-21T08:00)"


def moment(text: str, now: float) -> float:
    """Return the Unix seconds of an age or a date (UTC by default).

    Raises:
        ConfigError: the text is neither an age nor a date.

    Example:
        >>> moment("7d", 1_000_000.0), moment("1970-01-02", 0.0)
        (395200.0, 86400.0)
    """
    age = _AGE.fullmatch(text.strip())
    if age:
        return now - float(age[1]) * _UNITS_S[age[2]]
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f"{text!r} is not a moment: write {MOMENT}") from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def store_path(given: str | None, command: str, *, is_new: bool = False) -> Path:
    """Return the store's path, by default the setting.

    Args:
        given: the path on the command line.
        command: its name, for the error.
        is_new: there may be no file yet.

    Raises:
        ConfigError: there is none, or no file there.
    """
    from ragtrace.settings import Settings

    name = given or Settings.resolve({}).store.path
    if not name:
        raise ConfigError(f"{command}: there is no store: give --store PATH, or set RAGTRACE_STORE")
    if not (is_new or Path(name).is_file()):
        raise ConfigError(f"{name}: there is no file; check the path")
    return Path(name)


@contextmanager
def opened_store(path: Path, *, is_new: bool = False) -> Iterator[SqliteStore]:
    """Open a store with the current settings, without a size limit; `is_new` makes the file where there is none.

    The limit may be set for the service alone. A command never deletes to make room.

    Raises:
        ConfigError: the file is not a store, cannot be opened, or fails while it is used: the disk is full,
            read-only or broken, or another process holds the file.
    """
    from ragtrace.service.storing import policy_of
    from ragtrace.settings import Settings
    from ragtrace.stores.sqlite import SqliteStore

    if path.is_file() and not is_sqlite(path):
        raise ConfigError(f"{path} is not an SQLite file; check the path")
    try:
        policy = replace(policy_of(Settings.resolve({})), file_bytes=_NO_LIMIT)
        store = SqliteStore(path, policy, is_made=is_new and not path.is_file())
    except StoreError as error:
        raise ConfigError(str(error)) from None
    try:
        with closing(store):
            yield store
    except (sqlite3.Error, StoreError) as error:
        raise ConfigError(f"{path}: {error}; finished work stays, and the same command goes on") from None
