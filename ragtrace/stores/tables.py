"""Tables of a store, and scores as their rows.

Three tables keep a score at about a hundred bytes: the facts that all scores of a run share, those that all scores
of a series share, and the rest. The view ``scored`` joins them for people and for the export.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from ragtrace.errors import StoreError
from ragtrace.model import JudgeInfo, MetricResult, RagRecord, Score, ScoreKey
from ragtrace.model.codec import record_from_json
from ragtrace.stores import outbox
from ragtrace.stores.run_facts import ENDED, facts_of, read_of
from ragtrace.text import clean, valid

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = dict[str, Any]  # values of SQLite by column
SCHEMA_VERSION = 7
_SCHEMA = """
CREATE TABLE IF NOT EXISTS store_facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT NOT NULL, span_id TEXT NOT NULL, workflow TEXT, session TEXT,
  user TEXT, environment TEXT, corpus TEXT, model TEXT, revision INTEGER NOT NULL, at REAL NOT NULL, tags TEXT,
  sources TEXT, k INTEGER, language TEXT, query_chars INTEGER, answer_chars INTEGER, cluster TEXT, kind TEXT,
  kept_for TEXT, prompt TEXT, signs TEXT, signed INTEGER, reading TEXT, ended REAL,
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
# Version 2 had no facts of runs, versions before 5 had no prompt, those before 6 nothing of what capture read, and
# those before 7 only the time at which a run came into the store.
# In version 3 the reason to keep a text stood
# beside the text, and went with it.
_ADDED = (
    "tags TEXT", "sources TEXT", "k INTEGER", "language TEXT", "query_chars INTEGER", "answer_chars INTEGER",
    "cluster TEXT", "kind TEXT", "kept_for TEXT", "prompt TEXT", "signs TEXT", "signed INTEGER", "reading TEXT",
    "ended REAL",
)  # fmt: skip
_REASONS = (
    "UPDATE runs SET kept_for = (SELECT kept_for FROM payloads WHERE run = runs.id)"
    " WHERE kept_for IS NULL AND id IN (SELECT run FROM payloads)"
)
_MIGRATIONS = {None: (), 1: _FROM_1, 2: (), 3: (), 4: (), 5: (), 6: ()}
MOST_DETAILS_BYTES = 65_536
SERIES = ("metric", "version", "name", "variant", "source", "judge", "prompt_hash", "label_scale", "universe")
_TEXTS = ("workflow", "session", "user", "environment", "corpus", "model")


def tables(connection: sqlite3.Connection) -> None:
    """Make missing tables inside a transaction, also next to a spool's.

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
    if version not in _MIGRATIONS:
        raise StoreError(
            f"the store was written by a newer ragtrace (store {version}, this one knows {SCHEMA_VERSION}):"
            " upgrade ragtrace here, or set another"
        )
    for statement in (*_SCHEMA.split(";"), *outbox.SCHEMA, *_MIGRATIONS[version]):
        connection.execute(statement)
    there = {row[1] for row in connection.execute("PRAGMA table_info(runs)")}
    for column in _ADDED:
        if column.split()[0] not in there:
            connection.execute(f"ALTER TABLE runs ADD COLUMN {column}")
    connection.execute(_REASONS)
    connection.execute(f"CREATE INDEX IF NOT EXISTS runs_ended ON runs ({ENDED})")
    connection.execute("INSERT OR REPLACE INTO store_facts VALUES ('schema', ?)", (SCHEMA_VERSION,))


def columns(*names: str) -> str:
    """Return the columns and value marks of an INSERT.

    Example:
        >>> columns("run", "at")
        '(run, at) VALUES (?, ?)'
    """
    return f"({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


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


def run_of(record: RagRecord, kind: str | None = None) -> Row:
    """Return the columns that all scores of a record share."""
    return {
        "trace_id": clean(record.trace_id or record.id),
        "span_id": clean(record.span_id),
        **{name: clean(getattr(record, name)) for name in _TEXTS},
        **facts_of(record, clean(kind)),
        **read_of(record),
        "revision": record.revision,
        "ended": record.ended or record.started,
    }


def series_of(score: Score, source: str) -> tuple[str, ...]:
    """Return the columns that all scores of a series share, as `SERIES`."""
    result, judge = score.result, score.result.judge
    values = (
        score.key.metric,
        score.key.version,
        result.name,
        result.variant,
        source,
        judge.model if judge else "",
        judge.prompt_hash if judge else "",
        (judge.label_scale or "") if judge else "",
        result.label_scope or "",
    )
    return tuple(clean(value) or "" for value in values)


def score_of(score: Score, *, revision: int, at: float, has_content: bool) -> Row:
    """Return the other columns of a score; without content only numeric details."""
    result = score.result
    return {
        "state": result.state,
        "value": result.value,
        "reason": clean(result.reason),
        "passed": None if result.passed is None else int(result.passed),
        "k": result.k,
        "stratum": score.stratum,
        "weight": score.weight,
        "llm_calls": result.llm_calls,
        "embed_calls": result.embed_calls,
        "prompt_tokens": result.input_tokens,
        "completion_tokens": result.output_tokens,
        "revision": revision,
        "scored_at": at,
        "details": _details(result.shown_details(has_content=has_content)),
    }


def score_from(row: Row) -> Score:
    """Return the score of a row of the view ``scored``.

    Raises:
        ValueError: it is none of this version's: a state or reason that a newer ragtrace wrote.
    """
    judge = None
    if row["judge"]:
        judge = JudgeInfo(model=row["judge"], prompt_hash=row["prompt_hash"] or "", label_scale=row["label_scale"])
    result = MetricResult(
        name=row["name"],
        state=row["state"],
        value=row["value"],
        reason=row["reason"],
        details=json.loads(row["details"] or "{}"),
        llm_calls=row["llm_calls"],
        embed_calls=row["embed_calls"],
        input_tokens=row["prompt_tokens"],
        output_tokens=row["completion_tokens"],
        judge=judge,
        passed=None if row["passed"] is None else bool(row["passed"]),
        k=row["k"],
        label_scope=row["universe"],
        variant=row["variant"],
        version=row["version"],
    )
    key = ScoreKey(trace_id=row["trace_id"], span_id=row["span_id"], metric=row["metric"], version=row["version"])
    return Score(key=key, result=result, stratum=row["stratum"], weight=row["weight"], scored_at=row["scored_at"])


def record_from(row: Row) -> RagRecord:
    """Return the facts of a run as a record without texts."""
    given = {name: row[name] for name in ("trace_id", "span_id", *_TEXTS) if row[name] is not None}
    return record_from_json({**given, "revision": row["revision"]}, fallback_id=row["trace_id"])


def _details(shown: Mapping[str, object]) -> str | None:
    if not shown:
        return None
    try:
        text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # a metric of a third party's
        return '{"message":"the details have no JSON form"}'
    if len(text) > MOST_DETAILS_BYTES:
        return f'{{"message":"the details were too long to keep: {len(text)} characters"}}'
    return valid(text)
