"""Frozen baselines, which neither age nor size deletes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.model import SeriesKey
from ragtrace.stats.baselines import Baseline
from ragtrace.stores.tables import columns, has_tables

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from ragtrace.stores.tables import Row

TABLE = "baselines"
_FIGURES = ("mean", "sd", "n", "mean_weight", "n_eff", "max_weight", "design_effect")
_COLUMNS = ("metric", "workflow", "version", "k", "label_scale", "universe", *_FIGURES, "frozen_at", "note")
_NO_K = 0  # a primary key with NULL in it holds the same series twice
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
  metric TEXT NOT NULL, workflow TEXT NOT NULL, version TEXT NOT NULL, k INTEGER NOT NULL, mean REAL NOT NULL,
  sd REAL NOT NULL, n INTEGER NOT NULL, mean_weight REAL NOT NULL, n_eff REAL, max_weight REAL, design_effect REAL,
  frozen_at REAL NOT NULL, note TEXT NOT NULL, label_scale TEXT NOT NULL, universe TEXT NOT NULL,
  PRIMARY KEY (metric, workflow, version, k, label_scale, universe)
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenBaseline:
    """The normal of one series.

    Attributes:
        key: of the scores that it describes, without the judge's name; another version is another series.
        baseline: mean in score units, also where lower is better.
        frozen_at: Unix seconds.
        note: what a person wrote: a release, a reason.
    """

    key: SeriesKey
    baseline: Baseline
    frozen_at: float
    note: str = ""


def write_baselines(connection: sqlite3.Connection, baselines: Iterable[FrozenBaseline]) -> int:
    """Write baselines inside a transaction, each over its predecessor; return their number.

    Example:
        >>> import sqlite3
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> normal = Baseline(mean=0.9, sd=0.2, n=500)
        >>> frozen = FrozenBaseline(key=SeriesKey("mrr", "rag", version="v"), baseline=normal, frozen_at=1.0)
        >>> write_baselines(connection, [frozen])
        1
        >>> read_baselines(connection) == [frozen]
        True
    """
    connection.execute(_SCHEMA)
    if "design_effect" not in _names(connection.execute(f"SELECT * FROM {TABLE} LIMIT 0")):  # noqa: S608
        connection.execute(f"ALTER TABLE {TABLE} ADD COLUMN design_effect REAL")  # a table of an older version
    rows = [_row(it) for it in baselines]
    connection.executemany(f"INSERT OR REPLACE INTO {TABLE} {columns(*_COLUMNS)}", rows)
    return len(rows)


def read_baselines(connection: sqlite3.Connection) -> list[FrozenBaseline]:
    """Return all baselines, the oldest first; none where none was ever written."""
    if not has_tables(connection, TABLE):
        return []
    cursor = connection.execute(f"SELECT * FROM {TABLE} ORDER BY frozen_at, metric, workflow, k")  # noqa: S608
    names = _names(cursor)
    return [_frozen(dict(zip(names, row, strict=True))) for row in cursor]


def _names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description]


def _row(frozen: FrozenBaseline) -> tuple[object, ...]:
    figures = (getattr(frozen.baseline, name) for name in _FIGURES)
    key = frozen.key
    series = (key.version or "", key.k or _NO_K, key.label_scale or "", key.universe or "")
    return (key.metric, key.workflow, *series, *figures, frozen.frozen_at, frozen.note)


def _frozen(row: Row) -> FrozenBaseline:
    return FrozenBaseline(
        key=SeriesKey(
            metric=row["metric"],
            workflow=row["workflow"],
            version=row["version"] or None,
            k=None if row["k"] == _NO_K else row["k"],
            label_scale=row["label_scale"] or None,
            universe=row["universe"] or None,
        ),
        baseline=Baseline(**{name: row[name] for name in _FIGURES if row.get(name) is not None}),
        frozen_at=row["frozen_at"],
        note=row["note"],
    )
