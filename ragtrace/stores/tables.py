"""The store's tables, in a file of its own or in the spool's.

Three tables keep a score at about a hundred bytes: what all scores of a run share, what all scores of a series
share, and the rest. The view ``scored`` puts them together again for people and for the export.
"""

from __future__ import annotations

import sqlite3

from ragtrace.errors import StoreError
from ragtrace.stores import outbox

SCHEMA_VERSION = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS store_facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT NOT NULL, span_id TEXT NOT NULL, workflow TEXT, session TEXT,
  user TEXT, environment TEXT, corpus TEXT, model TEXT, revision INTEGER NOT NULL, at REAL NOT NULL,
  UNIQUE (trace_id, span_id)
);
CREATE INDEX IF NOT EXISTS runs_at ON runs (at);
CREATE TABLE IF NOT EXISTS series (
  id INTEGER PRIMARY KEY, metric TEXT NOT NULL, version TEXT NOT NULL, name TEXT NOT NULL, variant TEXT NOT NULL,
  source TEXT NOT NULL, judge TEXT NOT NULL, prompt_hash TEXT NOT NULL, label_scale TEXT NOT NULL,
  universe TEXT NOT NULL,
  UNIQUE (metric, version, name, variant, source, judge, prompt_hash, label_scale, universe)
);
CREATE TABLE IF NOT EXISTS scores (
  run INTEGER NOT NULL, series INTEGER NOT NULL, state TEXT NOT NULL, value REAL, reason TEXT, passed INTEGER,
  k INTEGER, stratum TEXT NOT NULL, weight REAL, llm_calls INTEGER NOT NULL, embed_calls INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, revision INTEGER NOT NULL,
  scored_at REAL NOT NULL, details TEXT, exported INTEGER NOT NULL DEFAULT 0, writes INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (run, series)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS payloads (
  run INTEGER PRIMARY KEY, kept_for TEXT NOT NULL, probability REAL NOT NULL, at REAL NOT NULL, record BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS payloads_at ON payloads (at);
CREATE VIEW IF NOT EXISTS scored AS
  SELECT runs.trace_id, runs.span_id, series.metric, series.version, series.source, scores.state, scores.value,
    scores.reason, scores.passed, scores.k, nullif(series.universe, '') AS universe,
    nullif(series.judge, '') AS judge, nullif(series.prompt_hash, '') AS prompt_hash,
    nullif(series.label_scale, '') AS label_scale, scores.stratum, scores.weight, runs.workflow, runs.session,
    runs.user, runs.environment, runs.corpus, runs.model, scores.llm_calls, scores.embed_calls,
    scores.prompt_tokens, scores.completion_tokens, scores.revision, scores.scored_at, scores.details,
    scores.exported, series.name, series.variant, scores.run, scores.series, scores.writes
  FROM scores JOIN runs ON runs.id = scores.run JOIN series ON series.id = scores.series
"""
# Version 1 knew two states, and the scores that were not published by their index.
_FROM_1 = (
    "INSERT OR IGNORE INTO outbox SELECT run, series, writes, 3, 0, 0, 0 FROM scores WHERE exported = 0",
    "DROP INDEX IF EXISTS scores_outbox",
    "DROP TABLE IF EXISTS claims",
)


def tables(connection: sqlite3.Connection) -> None:
    """Make the store's tables where they are missing; works inside a transaction, and next to a spool's tables.

    Raises:
        StoreError: a newer ragtrace made them.

    Example:
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> tables(connection)
        >>> connection.execute("SELECT count(*) FROM scored").fetchone()
        (0,)
    """
    version = _version(connection)
    if version == SCHEMA_VERSION:
        return
    if version is not None and version != 1:
        raise StoreError(
            f"the store was written by a newer ragtrace (store {version}, this one knows {SCHEMA_VERSION}):"
            " upgrade ragtrace here, or set another"
        )
    for statement in (*_SCHEMA.split(";"), *outbox.SCHEMA, *(_FROM_1 if version else ())):
        connection.execute(statement)
    connection.execute("INSERT OR REPLACE INTO store_facts VALUES ('schema', ?)", (SCHEMA_VERSION,))


def has_tables(connection: sqlite3.Connection, *names: str) -> bool:
    """Return whether the file has all these tables."""
    sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?"
    return all(connection.execute(sql, (name,)).fetchone()[0] for name in names)


def _version(connection: sqlite3.Connection) -> int | None:
    try:
        row = connection.execute("SELECT value FROM store_facts WHERE name = 'schema'").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None
    return None if row is None else int(row[0])
