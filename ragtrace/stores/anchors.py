"""Anchors: runs kept whole, with reference scores of the judge and its latest ones.

Neither age nor size deletes them. Erasing a trace, session or user does. A new reference for the same runs is a
draft beside the old one until it is complete. It replaces the reference of its own judge and metrics alone, so each
judge and metric may have another number of repeats.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from ragtrace.model import SeriesKey
from ragtrace.stats.anchors import AnchorPair
from ragtrace.stores.payload_policy import from_payload, to_payload
from ragtrace.stores.tables import columns, has_tables
from ragtrace.text import clean

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.model import RagRecord

TABLE = "anchors"
DRAFT_KEPT_S = 86_400.0
"""Age after which a draft or a first reference is not gone on with: the judge may have changed since."""
LEAST_ADOPTED = 0.9
"""Runs with a whole reference that a draft needs, as a part of those of the reference that it replaces."""
_SCORES, _DRAFT = "anchor_scores", "anchor_draft"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS anchors (
  id INTEGER PRIMARY KEY, trace_id TEXT NOT NULL, session TEXT, user TEXT, band INTEGER NOT NULL,
  share REAL NOT NULL, looked_at REAL NOT NULL, labels TEXT NOT NULL, record BLOB NOT NULL
)
"""
_SCORES_SCHEMA = """
CREATE TABLE IF NOT EXISTS {} (
  anchor INTEGER NOT NULL, metric TEXT NOT NULL, version TEXT NOT NULL, k INTEGER NOT NULL,
  label_scale TEXT NOT NULL, universe TEXT NOT NULL, judge TEXT NOT NULL, reference TEXT NOT NULL, now REAL,
  at REAL NOT NULL,
  PRIMARY KEY (anchor, metric, version, k, label_scale, universe, judge)
) WITHOUT ROWID
"""
_REFERENCE = (
    "SELECT reference FROM {} WHERE anchor = ? AND metric = ? AND version = ? AND k = ?"
    " AND label_scale = ? AND universe = ? AND judge = ?"
)
_NEXT, _HURRY, _REPEATS, _FROZEN = "anchors_next", "anchors_hurry", "anchors_repeats", "anchors_frozen"
_BEGUN, _DRAFT_REPEATS, _SIGNATURE = "anchors_draft_begun", "anchors_draft_repeats", "anchors_draft_signature"
_FIRST = "anchors_first_signature"
_FACTS = (_NEXT, _HURRY, _REPEATS, _FROZEN, _FIRST)
_Owner = tuple[str, str]
"""Judge and metric of a reference."""
_DRAFT_FACTS = (_BEGUN, _DRAFT_REPEATS, _SIGNATURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """One kept run.

    Attributes:
        record: the run, whole.
        band: the band of scores that it was drawn from.
        share: of the traffic that lies in this band, 0 to 1.
        labels: human labels by metric and rater; empty where nobody judged the run.
        id: its place in the fixed random order, from 1; 0 before it is written.
        looked_at: Unix seconds at which it was last taken to be scored.
    """

    record: RagRecord
    band: int = 0
    share: float = 1.0
    labels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    id: int = 0
    looked_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorScore:
    """One score of an anchor by the judge.

    Attributes:
        key: of the scores, in any workflow.
        value: the score.
    """

    key: SeriesKey
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorSeries:
    """The scores of all anchors by one judge version.

    Attributes:
        key: of the scores, in any workflow.
        pairs: reference and latest score of anchors that have both.
        n_reference: anchors whose reference is whole.
        repeats: scores that a whole reference has.
        at: Unix seconds of the latest score.
        labelled: (mean human label, mean of the reference, latest score or None) of labelled anchors.
    """

    key: SeriesKey
    pairs: Sequence[AnchorPair]
    n_reference: int
    repeats: int
    at: float
    labelled: Sequence[tuple[float, float, float | None]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorFacts:
    """Number of anchors, when they were frozen (Unix seconds), and scores of a run that the last freeze wanted."""

    n: int = 0
    frozen_at: float = 0.0
    repeats: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedReference:
    """A reference that `freeze` began and did not end; the same command goes on with it.

    Attributes:
        judge: the judge's name; "" before its first score.
        n_scores: scores that it has, each anchor counted as often as it was scored.
        n_wanted: scores of a complete one.
        until: Unix seconds until which the command goes on; later it begins anew.
        is_first: the first reference of these anchors; otherwise a draft beside one in use.
    """

    judge: str
    n_scores: int
    n_wanted: int
    until: float
    is_first: bool


def write_anchors(
    connection: sqlite3.Connection, anchors: Iterable[Anchor], *, repeats: int, now: float, signature: str = ""
) -> list[Anchor]:
    """Replace all anchors inside a transaction; return them with their ids, in the order in which they are scored.

    With a signature their first reference counts as begun, until `finish_first`.

    Example:
        >>> import sqlite3
        >>> from ragtrace.model import RagRecord
        >>> connection = sqlite3.connect(":memory:", isolation_level=None)
        >>> _ = connection.execute("CREATE TABLE store_facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID")
        >>> [it.id for it in write_anchors(connection, [Anchor(record=RagRecord(id="7"))], repeats=3, now=1.0)]
        [1]
        >>> anchor_facts(connection)
        AnchorFacts(n=1, frozen_at=1.0, repeats=3)
    """
    drop_anchors(connection)
    connection.execute(_SCHEMA)
    connection.execute(_SCORES_SCHEMA.format(_SCORES))
    names = ("trace_id", "session", "user", "band", "share", "looked_at", "labels", "record")
    connection.executemany(f"INSERT INTO anchors {columns(*names)}", [_row(anchor) for anchor in anchors])
    _set(connection, {_REPEATS: repeats, _FROZEN: now})
    if signature:
        _set(connection, {_FIRST: _number(signature)})
    return read_anchors(connection)


def drop_anchors(connection: sqlite3.Connection) -> int:
    """Delete all anchors and their scores inside a transaction; return how many there were."""
    if not has_tables(connection, TABLE):
        return 0
    dropped = connection.execute("DELETE FROM anchors").rowcount
    connection.execute("DELETE FROM anchor_scores")
    _unset(connection, [name for name in _facts(connection) if name.startswith(f"{_REPEATS} ")])
    _unset(connection, _FACTS)
    _drop_draft(connection)
    return dropped


def resume_first(
    connection: sqlite3.Connection, *, repeats: int, signature: str, judge: str, now: float
) -> dict[int, int] | None:
    """Return the scores that anchors have in their unfinished first reference; None without one to go on with.

    It has the same repeats and signature, and began within a day.
    """
    facts = _facts(connection)
    is_same = facts.get(_FIRST) == _number(signature) and facts[_REPEATS] == repeats
    if not is_same or not _is_fresh(facts[_FROZEN], now):
        return None
    return _counts(connection, _SCORES).get(clean(judge) or "", {})


def finish_first(connection: sqlite3.Connection) -> None:
    """Note inside a transaction that the first reference was made."""
    _unset(connection, [_FIRST])


def unfinished_reference(connection: sqlite3.Connection, now: float) -> UnfinishedReference | None:
    """Return the reference that a command may go on with; None without one."""
    facts = _facts(connection)
    for table, begun, repeats in ((_DRAFT, _BEGUN, _DRAFT_REPEATS), (_SCORES, _FROZEN, _REPEATS)):
        is_first = table == _SCORES
        if (_FIRST if is_first else _BEGUN) not in facts or not _is_fresh(facts[begun], now):
            continue
        counts = {judge: sum(by_run.values()) for judge, by_run in _counts(connection, table).items()}
        judge = max(counts, key=lambda it: counts[it], default="")
        return UnfinishedReference(
            judge=judge,
            n_scores=counts.get(judge, 0),
            n_wanted=anchor_facts(connection).n * int(facts[repeats]),
            until=facts[begun] + DRAFT_KEPT_S,
            is_first=is_first,
        )
    return None


def begin_draft(connection: sqlite3.Connection, *, repeats: int, signature: str, now: float) -> dict[int, int]:
    """Begin a new reference beside the one in use, inside a transaction; return the scores that anchors have in it.

    A draft of the same repeats and signature that began within a day is gone on with, and any other one is deleted.
    A new draft ends an unfinished first reference.
    """
    wanted = {_DRAFT_REPEATS: float(repeats), _SIGNATURE: _number(signature)}
    facts = _facts(connection)
    is_same = all(facts.get(name) == value for name, value in wanted.items())
    if not is_same or not _is_fresh(facts.get(_BEGUN, 0.0), now):
        finish_first(connection)
        _drop_draft(connection)
        connection.execute(_SCORES_SCHEMA.format(_DRAFT))
        _set(connection, wanted | {_BEGUN: now})
    counts: dict[int, int] = {}
    for by_run in _counts(connection, _DRAFT).values():
        counts |= by_run  # all of one judge, by the signature
    return counts


def note_draft(connection: sqlite3.Connection, anchor: int, scores: Iterable[AnchorScore], now: float) -> None:
    """Write an anchor's scores into the draft inside a transaction; a draft that has gone takes none."""
    facts = _facts(connection)
    if _BEGUN in facts:
        _note(connection, _DRAFT, anchor, scores, now, repeats=int(facts[_DRAFT_REPEATS]))


def adopt_draft(connection: sqlite3.Connection, now: float) -> bool:
    """Replace reference and scores of the draft's judge and metrics, inside a transaction; those of others stay.

    The value is False, and nothing changes, where the draft has too few runs. It needs nine in ten of the runs that
    the old reference of the same judge and metrics has: a judge may refuse some texts, now and then.
    """
    facts = _facts(connection)
    if _BEGUN not in facts:
        return False
    repeats = int(facts[_DRAFT_REPEATS])
    drafted, kept = _owners(connection, _DRAFT), _owners(connection, _SCORES)
    old = _most_whole(connection, _SCORES, {owner: _repeats_of(facts, owner) for owner in drafted})
    new = _most_whole(connection, _DRAFT, dict.fromkeys(drafted, repeats))
    if not drafted or new < LEAST_ADOPTED * old:
        return False
    connection.executemany("DELETE FROM anchor_scores WHERE judge = ? AND metric = ?", drafted)
    connection.execute("INSERT INTO anchor_scores SELECT * FROM anchor_draft")
    _unset(connection, [_repeats_fact(owner) for owner in drafted])
    _set(connection, {_repeats_fact(owner): _repeats_of(facts, owner) for owner in kept - drafted})
    _set(connection, {_REPEATS: repeats, _FROZEN: now})
    _drop_draft(connection)
    return True


def read_anchors(connection: sqlite3.Connection) -> list[Anchor]:
    """Return all anchors in the order in which they are scored; none where none was ever frozen.

    Raises:
        ValueError: a record was written by a newer ragtrace.
    """
    if not has_tables(connection, TABLE):
        return []
    sql = "SELECT id, band, share, labels, looked_at, record FROM anchors ORDER BY id"
    return [_anchor(row) for row in connection.execute(sql)]


def anchor_facts(connection: sqlite3.Connection) -> AnchorFacts:
    """Return number, time and repeats of the anchors."""
    if not has_tables(connection, TABLE):
        return AnchorFacts()
    n = connection.execute("SELECT count(*) FROM anchors").fetchone()[0]
    facts = _facts(connection)
    return AnchorFacts(n=n, frozen_at=facts.get(_FROZEN, 0.0), repeats=int(facts.get(_REPEATS, 1)))


def claim_anchor(
    connection: sqlite3.Connection, now: float, *, gap_s: float, hurried_gap_s: float
) -> Anchor | None:
    """Take the anchor that was looked at longest ago, inside a transaction; None while none is due.

    Of all processes at the file together, one anchor is taken every `gap_s` seconds, or every `hurried_gap_s` while
    a hurried round lasts. A pause is not made up for.

    Raises:
        ValueError: its record was written by a newer ragtrace.
    """
    if not has_tables(connection, TABLE):
        return None
    facts = _facts(connection)
    if now < facts.get(_NEXT, 0.0) <= now + 2.0 * gap_s:  # beyond it the clock was set back
        return None
    sql = "SELECT id, band, share, labels, looked_at, record FROM anchors ORDER BY looked_at, id LIMIT 1"
    row = connection.execute(sql).fetchone()
    if row is None:
        return None
    anchor = _anchor(row)
    is_hurried = anchor.looked_at < facts.get(_HURRY, 0.0)
    _set(connection, {_NEXT: now + (hurried_gap_s if is_hurried else gap_s)})
    connection.execute("UPDATE anchors SET looked_at = ? WHERE id = ?", (now, anchor.id))
    return anchor


def return_anchor(connection: sqlite3.Connection, anchor: Anchor) -> None:
    """Give a claimed anchor back inside a transaction, so that it is the next again."""
    connection.execute("UPDATE anchors SET looked_at = ? WHERE id = ?", (anchor.looked_at, anchor.id))


def hurry_anchors(connection: sqlite3.Connection, now: float, *, every_s: float) -> bool:
    """Ask for a round at once, inside a transaction; False where one was asked for within `every_s` seconds."""
    facts = _facts(connection)
    if not has_tables(connection, TABLE) or 0.0 <= now - facts.get(_HURRY, 0.0) < every_s:
        return False
    _set(connection, {_HURRY: now, _NEXT: now})
    return True


def note_scores(connection: sqlite3.Connection, anchor: int, scores: Iterable[AnchorScore], now: float) -> None:
    """Write an anchor's scores inside a transaction: into the reference until that is whole, else as the latest."""
    _note(connection, _SCORES, anchor, scores, now)


def anchor_series(connection: sqlite3.Connection, *, since: float) -> list[AnchorSeries]:
    """Return the scores by series; a latest score from before `since` (Unix seconds) makes no pair."""
    if not has_tables(connection, TABLE):
        return []
    facts = _facts(connection)
    sql = (
        "SELECT s.metric, s.version, s.k, s.label_scale, s.universe, s.judge, s.reference, s.now, s.at,"
        " a.band, a.share, a.labels FROM anchor_scores s JOIN anchors a ON a.id = s.anchor ORDER BY s.anchor"
    )
    rows: dict[SeriesKey, list[tuple[object, ...]]] = defaultdict(list)
    for metric, version, k, scale, universe, judge, *rest in connection.execute(sql):
        key = SeriesKey(
            metric=metric,
            judge=judge or None,
            version=version or None,
            k=None if k < 0 else k,
            label_scale=scale or None,
            universe=universe or None,
        )
        rows[key].append(tuple(rest))
    return [_series(key, found, _repeats_of(facts, _owner(key)), since) for key, found in rows.items()]


def erase_anchors(connection: sqlite3.Connection, column: str, identity: str) -> int:
    """Delete the anchors of a trace, session or user, and those of the runs in ``doomed``; return how many.

    Call it inside a transaction, before the runs go.
    """
    if not has_tables(connection, TABLE):
        return 0
    doomed = "SELECT trace_id FROM runs WHERE id IN (SELECT id FROM doomed)"
    erased = connection.execute(
        f"DELETE FROM anchors WHERE {column} = ? OR trace_id IN ({doomed})",  # noqa: S608 - our own names
        (identity,),
    ).rowcount
    for table in (_SCORES, _DRAFT):
        if has_tables(connection, table):
            connection.execute(f"DELETE FROM {table} WHERE anchor NOT IN (SELECT id FROM anchors)")  # noqa: S608
    return erased


def erase_rater(connection: sqlite3.Connection, rater: str) -> int:
    """Delete a rater's labels of anchors inside a transaction; return how many."""
    if not has_tables(connection, TABLE):
        return 0
    erased = 0
    for number, text in connection.execute("SELECT id, labels FROM anchors").fetchall():
        labels = json.loads(text)
        kept = {metric: {name: x for name, x in by.items() if name != rater} for metric, by in labels.items()}
        if kept != labels:
            erased += sum(map(len, labels.values())) - sum(map(len, kept.values()))
            shown = json.dumps({metric: by for metric, by in kept.items() if by})
            connection.execute("UPDATE anchors SET labels = ? WHERE id = ?", (shown, number))
    return erased


def _note(
    connection: sqlite3.Connection,
    table: str,
    anchor: int,
    scores: Iterable[AnchorScore],
    now: float,
    *,
    repeats: int | None = None,
) -> None:
    facts = _facts(connection)
    if connection.execute("SELECT 1 FROM anchors WHERE id = ?", (anchor,)).fetchone() is None:
        return  # erased while it was scored
    for score in scores:
        key = (anchor, *_columns_of(score.key))
        found = connection.execute(_REFERENCE.format(table), key).fetchone()
        reference = json.loads(found[0]) if found else []
        is_whole = len(reference) >= (repeats or _repeats_of(facts, _owner(score.key)))
        if not is_whole:
            reference.append(score.value)
        latest = score.value if is_whole else None
        connection.execute(
            f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own names
            (*key, json.dumps(reference), latest, now),
        )


def _counts(connection: sqlite3.Connection, table: str) -> dict[str, dict[int, int]]:
    """Return the reference scores of each anchor by judge, of the metric that has most."""
    counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for judge, anchor, reference in connection.execute(f"SELECT judge, anchor, reference FROM {table}"):  # noqa: S608
        counts[judge][anchor] = max(counts[judge].get(anchor, 0), len(json.loads(reference)))
    return counts


def _is_fresh(begun: float, now: float) -> bool:
    return 0.0 <= now - begun < DRAFT_KEPT_S


def _number(signature: str) -> float:
    return float(zlib.crc32(signature.encode()))


def _most_whole(connection: sqlite3.Connection, table: str, repeats: Mapping[_Owner, int]) -> int:
    """Return the runs with a whole reference, of the series that has most; series of some owners alone count."""
    sql = f"SELECT metric, version, k, label_scale, universe, judge, reference FROM {table}"  # noqa: S608
    counts: Counter[tuple[object, ...]] = Counter()
    for metric, *rest, judge, reference in connection.execute(sql):
        wanted = repeats.get((judge, metric))
        if wanted is not None and len(json.loads(reference)) >= wanted:
            counts[metric, *rest, judge] += 1
    return max(counts.values(), default=0)


def _owners(connection: sqlite3.Connection, table: str) -> set[_Owner]:
    return set(connection.execute(f"SELECT DISTINCT judge, metric FROM {table}"))  # noqa: S608 - our own names


def _repeats_of(facts: Mapping[str, float], owner: _Owner) -> int:
    """Return the scores that a whole reference has."""
    return int(facts.get(_repeats_fact(owner), facts.get(_REPEATS, 1)))


def _repeats_fact(owner: _Owner) -> str:
    return " ".join((_REPEATS, *owner))


def _drop_draft(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE IF EXISTS anchor_draft")
    _unset(connection, _DRAFT_FACTS)


def _series(key: SeriesKey, rows: Sequence[tuple[object, ...]], repeats: int, since: float) -> AnchorSeries:
    pairs: list[AnchorPair] = []
    labelled: list[tuple[float, float, float | None]] = []
    n_reference, latest_at = 0, 0.0
    for row in rows:
        reference, now, at, band, share, labels = _typed(row)
        latest_at = max(latest_at, at)
        n_reference += len(reference) >= repeats
        fresh = now if at >= since else None
        if fresh is not None:
            pairs.append(AnchorPair(band, share, tuple(reference), fresh))
        if by_rater := labels.get(key.metric):
            labelled.append((fmean(by_rater.values()), fmean(reference), fresh))
    return AnchorSeries(
        key=key,
        pairs=pairs,
        n_reference=n_reference,
        repeats=repeats,
        at=latest_at,
        labelled=labelled,
    )


def _typed(
    row: tuple[object, ...],
) -> tuple[list[float], float | None, float, int, float, dict[str, dict[str, float]]]:
    reference, now, at, band, share, labels = row
    return (
        json.loads(str(reference)),
        None if now is None else float(str(now)),
        float(str(at)),
        int(str(band)),
        float(str(share)),
        json.loads(str(labels)),
    )


def _owner(key: SeriesKey) -> _Owner:
    return clean(key.judge) or "", key.metric


def _columns_of(key: SeriesKey) -> tuple[str | int, ...]:
    k, (judge, metric) = -1 if key.k is None else key.k, _owner(key)
    return metric, key.version or "", k, key.label_scale or "", key.universe or "", judge


def _row(anchor: Anchor) -> tuple[object, ...]:
    record = anchor.record
    return (
        clean(record.trace_id or record.id),
        clean(record.session),
        clean(record.user),
        anchor.band,
        anchor.share,
        anchor.looked_at,
        json.dumps({metric: dict(by_rater) for metric, by_rater in anchor.labels.items()}),
        to_payload(record),
    )


def _anchor(row: tuple[int, int, float, str, float, bytes]) -> Anchor:
    number, band, share, labels, looked_at, record = row
    return Anchor(
        id=number,
        record=from_payload(record),
        band=band,
        share=share,
        labels=json.loads(labels),
        looked_at=looked_at,
    )


def _facts(connection: sqlite3.Connection) -> dict[str, float]:
    found = connection.execute("SELECT name, value FROM store_facts WHERE name LIKE 'anchors_%'")
    return dict(found.fetchall())


def _set(connection: sqlite3.Connection, facts: Mapping[str, float]) -> None:
    connection.executemany("INSERT OR REPLACE INTO store_facts VALUES (?, ?)", facts.items())


def _unset(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    connection.executemany("DELETE FROM store_facts WHERE name = ?", [(name,) for name in names])
