"""Grades in a SQLite file that processes share."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError
from ragtrace.judges.cache.grade_cache import LabelSet
from ragtrace.sqlite_file import SharedFile, used_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.judges.cache.grade_cache import CachedGrade

SCHEMA_VERSION = 1
MOST_BYTES = 268_435_456  # of rows
BUSY_S = 10.0  # how long a transaction waits for another process's
_KEYS_A_QUERY = 500  # SQLite takes 999 parameters in its older builds
_SCHEMA = """
CREATE TABLE labels (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, universe BLOB NOT NULL, passage BLOB NOT NULL, key BLOB NOT NULL,
  grade INTEGER NOT NULL, added_at REAL NOT NULL, UNIQUE (universe, passage)
);
CREATE INDEX by_key ON labels (key);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """Statistics of a file of grades.

    `version` is the youngest label's number, and `grown_at` its time (Unix seconds).
    """

    labels: int
    queries: int
    version: int
    grown_at: float | None


class GradeFile:
    """A cache of grades in a SQLite file (WAL, mode 0600).

    The file is made when it is missing. It holds hashes, grades and times; no query and no passage can be read
    from it. Many processes of one host may use it at once; on a network file system SQLite locks fail. A grade
    once kept stays as it is. When the file has grown to its bound, the queries whose labels grew longest ago go
    first, as a whole: a version of a set is never another set. Coroutine-safe and thread-safe; the work is done
    in a thread.

    Args:
        path: the file; its folder must exist.
        max_bytes: most bytes of rows, at least 65,536; a label takes about 240.
        frozen: labels with a higher number do not count in `labels`: the sets stay as they were.

    Raises:
        ConfigError: the file cannot be opened, or is another program's.
    """

    def __init__(self, path: Path | str, *, max_bytes: int = MOST_BYTES, frozen: int | None = None) -> None:
        if max_bytes < 65_536:
            raise ConfigError(f"a grade cache has at least 65536 bytes, got {max_bytes}")
        self.path = Path(path)
        self.frozen = frozen
        self._max_bytes = max_bytes
        self._file = SharedFile(self.path, prepare=_make, busy_s=BUSY_S)
        try:
            with self._lent():
                pass
        except OSError as error:
            raise ConfigError(str(error)) from error

    async def get(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Return the grades that are known, by key; raises OSError."""
        return await asyncio.to_thread(self._known, keys) if keys else {}

    async def put(self, grades: Sequence[CachedGrade]) -> None:
        """Keep grades that are new to their universe; raises OSError. Without a new grade nothing is written."""
        if grades:
            await asyncio.to_thread(self._keep, grades)

    async def labels(self, universe: str) -> LabelSet | None:
        """Return the labels of a universe, up to the number frozen. Raises OSError."""
        return await asyncio.to_thread(self._labels, universe)

    def facts(self) -> FileFacts:
        """Return statistics of the file; raises OSError. `FileFacts.version` is the number to freeze at."""
        asked = "SELECT count(*), count(DISTINCT universe), coalesce(max(seq), 0), max(added_at) FROM labels"
        with self._lent() as db:
            labels, queries, version, grown_at = db.execute(asked).fetchone()
        return FileFacts(labels=labels, queries=queries, version=version, grown_at=grown_at)

    async def aclose(self) -> None:
        """Close the file; it is opened again when it is used again."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Do the same, from any thread."""
        self._file.close()

    @contextmanager
    def _lent(self, *, is_writing: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with self._file.transaction() if is_writing else self._file.connection() as db:
                yield db
        except (sqlite3.Error, OSError) as error:
            raise OSError(f"grade cache {self.path}: {error}") from error

    def _known(self, keys: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._lent() as db:
            for first in range(0, len(keys), _KEYS_A_QUERY):
                some = [bytes.fromhex(key) for key in keys[first : first + _KEYS_A_QUERY]]
                marks = ",".join("?" * len(some))
                asked = f"SELECT key, grade FROM labels WHERE key IN ({marks}) ORDER BY seq DESC"  # noqa: S608
                found |= {key.hex(): grade for key, grade in db.execute(asked, some)}
        return found

    def _labels(self, universe: str) -> LabelSet | None:
        asked = "SELECT passage, grade, seq, added_at FROM labels WHERE universe = ? AND seq <= ? ORDER BY seq"
        most = 2**62 if self.frozen is None else self.frozen
        with self._lent() as db:
            rows = db.execute(asked, (bytes.fromhex(universe), most)).fetchall()
        if not rows:
            return None
        return LabelSet(
            grades={passage.hex(): grade for passage, grade, _, _ in rows},
            version=rows[-1][2],
            grown_at=rows[-1][3],
            frozen=self.frozen,
        )

    def _keep(self, grades: Sequence[CachedGrade]) -> None:
        rows = {(bytes.fromhex(g.universe), bytes.fromhex(g.passage)): g for g in grades}
        with self._lent() as db:
            new = [(at, g) for at, g in rows.items() if not _is_known(db, at)]
        if not new:
            return
        now = time.time()
        with self._lent(is_writing=True) as db:
            self._make_room(db)
            db.executemany(
                "INSERT OR IGNORE INTO labels (universe, passage, key, grade, added_at) VALUES (?, ?, ?, ?, ?)",
                [(*at, bytes.fromhex(g.key), g.grade, now) for at, g in new],
            )

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Forget a tenth of the queries until the rows fit. Those that grew longest ago go first."""
        while used_bytes(db) > self._max_bytes:
            (queries,) = db.execute("SELECT count(DISTINCT universe) FROM labels").fetchone()
            if not queries:
                return
            oldest = "SELECT universe FROM labels GROUP BY universe ORDER BY max(seq) LIMIT ?"
            db.execute(f"DELETE FROM labels WHERE universe IN ({oldest})", (max(1, queries // 10),))  # noqa: S608


def _make(db: sqlite3.Connection) -> None:
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found == SCHEMA_VERSION:
        return
    if found:
        raise OSError(f"it is of version {found}, not {SCHEMA_VERSION}: use another file")
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables:
        raise OSError("it holds other tables: use a file of its own")
    for statement in _SCHEMA.split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _is_known(db: sqlite3.Connection, at: tuple[bytes, bytes]) -> bool:
    asked = "SELECT 1 FROM labels WHERE universe = ? AND passage = ?"
    return db.execute(asked, at).fetchone() is not None
