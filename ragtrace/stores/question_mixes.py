"""Frozen mixes of questions by workflow, which neither age nor size deletes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.stores.tables import has_tables

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

_TABLE = "question_mixes"
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {_TABLE} (
  workflow TEXT PRIMARY KEY, frozen_at REAL NOT NULL, codebook TEXT NOT NULL, mix TEXT NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionMix:
    """The kinds of a workflow's questions, and how many of each there were.

    Attributes:
        workflow: whose questions.
        frozen_at: Unix seconds.
        codebook: JSON of `ragtrace.stats.question_kinds.Codebook`: numbers, no text.
        mix: weight of each kind's runs.
    """

    workflow: str
    frozen_at: float
    codebook: str
    mix: Mapping[str, float]


def write_mix(connection: sqlite3.Connection, mix: QuestionMix) -> QuestionMix:
    """Write a mix inside a transaction unless its workflow has one; return the one that stands.

    Example:
        >>> import sqlite3
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> first = QuestionMix(workflow="rag", frozen_at=1.0, codebook="{}", mix={"0": 2.0})
        >>> write_mix(connection, first) == first
        True
        >>> write_mix(connection, QuestionMix(workflow="rag", frozen_at=2.0, codebook="{}", mix={})) == first
        True
    """
    connection.execute(_SCHEMA)
    connection.execute(
        "INSERT OR IGNORE INTO question_mixes VALUES (?, ?, ?, ?)",
        (mix.workflow, mix.frozen_at, mix.codebook, json.dumps(dict(mix.mix))),
    )
    found = read_mix(connection, mix.workflow)
    assert found is not None  # noqa: S101 - it was written in this transaction
    return found


def read_mix(connection: sqlite3.Connection, workflow: str) -> QuestionMix | None:
    """Return the mix of a workflow, None where none was frozen."""
    if not has_tables(connection, _TABLE):
        return None
    row = connection.execute(
        "SELECT workflow, frozen_at, codebook, mix FROM question_mixes WHERE workflow = ?", (workflow,)
    ).fetchone()
    if row is None:
        return None
    return QuestionMix(workflow=row[0], frozen_at=row[1], codebook=row[2], mix=json.loads(row[3]))


def mix_workflows(connection: sqlite3.Connection) -> set[str]:
    """Return the workflows that have a mix."""
    if not has_tables(connection, _TABLE):
        return set()
    return {name for (name,) in connection.execute("SELECT workflow FROM question_mixes")}


def delete_mixes(connection: sqlite3.Connection, workflow: str | None) -> int:
    """Delete the mix of a workflow, or all with None, inside a transaction; return how many."""
    if not has_tables(connection, _TABLE):
        return 0
    sql = "DELETE FROM question_mixes WHERE ?1 IS NULL OR workflow = ?1"
    return connection.execute(sql, (workflow,)).rowcount
