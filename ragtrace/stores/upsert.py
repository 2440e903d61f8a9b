"""Upserts the scores of one trace, inside the caller's transaction."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error
from ragtrace.stores import outbox
from ragtrace.stores.base import Label, OutboxEntry, Policy
from ragtrace.stores.payload_policy import reason_to_keep, to_payload
from ragtrace.stores.retention import has_room
from ragtrace.stores.run_facts import FACTS, READ
from ragtrace.stores.tables import SERIES, columns, run_of, score_of, series_of, tables
from ragtrace.text import clean

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ragtrace.model import RagRecord, Score
    from ragtrace.stores.owner import Owner
    from ragtrace.stores.tables import Row

_AHEAD_S = 300.0  # how far another clock may be ahead of ours
_ROW_BYTES = 512  # of a score with its share of the run and the indexes, above the 110 measured
_PLAIN = Policy()
_FULL = "the file has no more room: see store_bytes"
HUMAN = "human"
RESCORE = "rescore"
JUDGE = "judge"


def write_scores(
    connection: sqlite3.Connection,
    scores: Sequence[Score],
    record: RagRecord,
    *,
    policy: Policy = _PLAIN,
    source: str = JUDGE,
    now: float | None = None,
    owner: Owner | None = None,
    entry: OutboxEntry | None = None,
    kind: str | None = None,
) -> None:
    """Write scores inside the caller's transaction.

    The function makes missing tables and makes room. It neither begins nor ends a transaction, so that the scores
    stand exactly when the rest of the transaction does, such as the end of a job in a spool.

    Args:
        connection: to the store's file.
        scores: of one trace; the same key replaces unless its revision is lower than the stored one.
        record: the trace; kept as `ragtrace.stores.payload_policy.reason_to_keep` says.
        policy: retention, size and content of the store.
        source: ``judge``, or ``rescore`` for later scores, which are not given out as pending.
        now: Unix seconds; None = the wall clock.
        owner: publishes them; None = anybody may claim them.
        entry: told the scores to publish, and how to say that they arrived.
        kind: of the question, by which scores are sliced.

    Raises:
        sqlite3.Error: the disk is full, read-only or broken.

    Example:
        >>> import sqlite3
        >>> from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
        >>> key = ScoreKey(trace_id="t", span_id="s", metric="mrr", version="v")
        >>> score = Score(key=key, result=MetricResult(name="mrr", state="ok", value=0.5, version="v"))
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> write_scores(connection, [score], RagRecord(id="1", trace_id="t", span_id="s"))
        >>> connection.execute("SELECT metric, value FROM scored").fetchall()
        [('mrr', 0.5)]
    """
    now = time.time() if now is None else now
    entry = entry or OutboxEntry()
    entry.marks.clear()  # of a transaction that was rolled back
    entry.owed.clear()
    if not scores:
        return
    tables(connection)
    rows = [
        score_of(s, revision=record.revision, at=plausible(s.scored_at, now), has_content=policy.has_content)
        for s in scores
    ]
    why = reason_to_keep(record, scores, policy) if source == JUDGE else None
    payload = to_payload(record) if why is not None else b""
    run = run_of(record, kind)
    ended = plausible(run["ended"], now)
    is_timed, run["ended"] = ended == run["ended"], ended
    need = sum(_ROW_BYTES + 4 * len(row["details"] or "") for row in rows) + 4 * len(run["reading"] or "")
    if not has_room(connection, need + len(payload), policy.file_bytes):
        record_internal_error("ragtrace.stores.full", reason=_FULL)  # the rest of the file belongs to a spool
        return
    run_id = _run(connection, run, now, is_timed=is_timed)
    for score, row in zip(scores, rows, strict=True):
        series = _series(connection, series_of(score, source))
        if source == JUDGE:
            _pending(connection, run_id, series, row, now, owner, score, entry)
        else:
            _score(connection, run_id, series, row | {"exported": 1}, is_again=False)
    if why is not None:
        connection.execute(
            "INSERT OR REPLACE INTO payloads SELECT ?1, ?2, ?3, ?4, ?5"
            " WHERE (SELECT revision FROM runs WHERE id = ?1) <= ?6",
            (run_id, why.reason, why.probability, now, payload, record.revision),
        )
        connection.execute(
            "UPDATE runs SET kept_for = ? WHERE id = ? AND revision <= ?", (why.reason, run_id, record.revision)
        )


def write_label(connection: sqlite3.Connection, label: Label, policy: Policy, now: float) -> None:
    """Write one human label; it stands under its trace, without a span."""
    tables(connection)
    if not has_room(connection, _ROW_BYTES, policy.file_bytes):
        record_internal_error("ragtrace.stores.full", reason=_FULL)
        return
    at = plausible(label.at, now)
    run = {"trace_id": clean(label.trace_id), "span_id": "", "revision": 0}
    run_id = _run(connection, {**dict.fromkeys(_RUN), **run}, at, is_label=True)
    connection.execute(
        "UPDATE runs SET at = max(at, ?), session = coalesce(?, session), user = coalesce(?, user) WHERE id = ?",
        (at, clean(label.session), clean(label.user), run_id),
    )
    metric = clean(label.metric) or "feedback"
    series = _series(connection, (metric, version_of(label.rater), metric, "", HUMAN, "", "", "", ""))
    comment = _comment(label) if policy.has_content else None
    connection.execute(
        "INSERT INTO scores (run, series, state, value, stratum, llm_calls, embed_calls, prompt_tokens,"
        " completion_tokens, revision, scored_at, details, exported)"
        " VALUES (?1, ?2, 'ok', ?3, 'random', 0, 0, 0, 0, 0, ?4, ?5, 1) ON CONFLICT DO UPDATE SET"
        " value = excluded.value, details = excluded.details, scored_at = excluded.scored_at, writes = writes + 1"
        " WHERE excluded.scored_at >= scored_at",
        (run_id, series, label.value, at, comment),
    )


def version_of(rater: str) -> str:
    """Return the version of one rater's labels.

    Example:
        >>> version_of("ada"), version_of("")
        ('human:ada', 'human')
    """
    return f"{HUMAN}:{clean(rater)}" if rater else HUMAN


def plausible(at: float, now: float) -> float:
    """Return a stored time, or now when no clock can have meant it.

    Example:
        >>> plausible(99.0, 100.0), plausible(float("nan"), 100.0), plausible(9_999.0, 100.0)
        (99.0, 100.0, 100.0)
    """
    return at if math.isfinite(at) and 0.0 < at <= now + _AHEAD_S else now


_RUN = (
    "trace_id", "span_id", "workflow", "session", "user", "environment", "corpus", "model", *FACTS, *READ,
    "revision", "ended",
)  # fmt: skip


def _run(
    connection: sqlite3.Connection, run: Row, now: float, *, is_timed: bool = True, is_label: bool = False
) -> int:
    kept = "kind = coalesce(excluded.kind, kind)"  # of a process without the codebook
    changed = [name for name in _RUN[2:] if is_timed or name != "ended"]  # a run without times keeps its arrival
    changes = ", ".join(kept if name == "kind" else f"{name} = excluded.{name}" for name in changed)
    change = "NOTHING" if is_label else f"UPDATE SET {changes} WHERE excluded.revision >= revision"
    connection.execute(
        f"INSERT INTO runs {columns(*_RUN, 'at')} ON CONFLICT (trace_id, span_id) DO {change}",
        (*(run[name] for name in _RUN), now),
    )
    key = (run["trace_id"], run["span_id"])
    row = connection.execute("SELECT id FROM runs WHERE trace_id = ? AND span_id = ?", key).fetchone()
    return int(row[0])


def _series(connection: sqlite3.Connection, series: tuple[str, ...]) -> int:
    found = f"SELECT id FROM series WHERE {' AND '.join(f'{name} = ?' for name in SERIES)}"  # noqa: S608 - our own names
    row = connection.execute(found, series).fetchone()
    if row is None:
        connection.execute(f"INSERT INTO series {columns(*SERIES)}", series)
        row = connection.execute(found, series).fetchone()
    return int(row[0])


def _pending(
    connection: sqlite3.Connection,
    run: int,
    series: int,
    row: Row,
    now: float,
    owner: Owner | None,
    score: Score,
    entry: OutboxEntry,
) -> None:
    """Write a score that is to be published, and enter it in the outbox.

    A score that another scorer has begun to publish stays as it was: that scorer lost its lease, or died.
    """
    owed = outbox.ALL if owner is None else outbox.owed(connection, run, series, row["revision"], owner, now)
    written = _score(connection, run, series, row | {"exported": 0}, is_again=owed != outbox.ALL)
    if written is None:
        return
    writes, is_new = written
    if is_new:
        owed = outbox.ALL
    elif owner is None:
        return
    entry.owed[score.key] = owed
    entry.marks[score.key] = mark = (run, series, writes)
    if owed:
        outbox.put(connection, mark, owner, entry.seq, owed=owed, now=now)


def _score(
    connection: sqlite3.Connection, run: int, series: int, row: Row, *, is_again: bool
) -> tuple[int, bool] | None:
    """Upsert one score; return its number of writes, and whether it is new.

    None where a higher revision stands. The same score again changes nothing. With `is_again` another score of the
    same revision changes nothing either.
    """
    stands = connection.execute(
        "SELECT s.series, s.revision FROM scores s JOIN series a ON a.id = s.series, series b"
        " WHERE s.run = ? AND b.id = ? AND a.metric = b.metric AND a.version = b.version AND a.id != b.id",
        (run, series),
    ).fetchall()
    if any(revision > row["revision"] for _, revision in stands):
        return None
    # One key, but a judge or universe that its version does not tell: replaced all the same.
    for table in ("scores", "outbox"):
        connection.executemany(
            f"DELETE FROM {table} WHERE run = ? AND series = ?",  # noqa: S608 - our own names
            [(run, old) for old, _ in stands],
        )
    found = connection.execute(
        "SELECT writes, revision, scored_at FROM scores WHERE run = ? AND series = ?", (run, series)
    ).fetchone()
    writes, revision, scored_at = found or (0, row["revision"], None)
    if revision > row["revision"]:
        return None
    if revision == row["revision"] and (is_again or scored_at == row["scored_at"]):
        return writes, False
    connection.execute(
        f"INSERT OR REPLACE INTO scores {columns('run', 'series', *row, 'writes')}",
        (run, series, *row.values(), writes + 1),
    )
    return writes + 1, True


def _comment(label: Label) -> str | None:
    return None if label.comment is None else clean(json.dumps({"comment": label.comment}, ensure_ascii=False))
