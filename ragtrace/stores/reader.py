"""Queries of a store: scores, labels, and the records that were kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import record_internal_error
from ragtrace.stores.agreement import AGREEMENT, Agreement
from ragtrace.stores.payload_policy import from_payload
from ragtrace.stores.run_facts import SCORES_WITH_FACTS, reading_from
from ragtrace.stores.tables import score_from

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.model import RagRecord, Score
    from ragtrace.model.reading import Reading
    from ragtrace.sqlite_file import SharedFile
    from ragtrace.stores.tables import Row

_PAGE = 1_000  # rows read at once, so that no reader keeps the journal from being taken back


class StoreReader:
    """Reads a store's file; nothing is written.

    Args:
        file: the store's.
    """

    def __init__(self, file: SharedFile) -> None:
        self._file = file

    def rows(
        self,
        *,
        since: float = 0.0,
        until: float | None = None,
        metric: str | None = None,
        workflow: str | None = None,
        trace: str | None = None,
    ) -> Iterator[Row]:
        """Yield scores and labels as rows of the view ``scored``, in order of arrival.

        Args:
            since: Unix seconds, inclusive.
            until: Unix seconds, exclusive; None = no end.
            metric: of this metric alone, by its exported name or with ``@K``.
            workflow: of this workflow alone.
            trace: of this trace alone.
        """
        # None compares with nothing, so that a human label, which has no workflow of its own, needs the trace's.
        of_trace = "" if trace is None else " AND run IN (SELECT id FROM runs WHERE trace_id = :trace)"
        sql = (
            "SELECT * FROM scored WHERE (run, series) > (:run, :series) AND scored_at >= :since"  # noqa: S608 - ours
            " AND (:until IS NULL OR scored_at < :until) AND (:metric IS NULL OR :metric IN (metric, name))"
            " AND (:workflow IS NULL OR workflow = :workflow OR trace_id IN"
            " (SELECT trace_id FROM runs WHERE workflow = :workflow AND scored.source = 'human'))"
            + of_trace
            + " ORDER BY run, series LIMIT :page"
        )
        given = {"since": since, "until": until, "metric": metric, "workflow": workflow, "trace": trace}
        last = {"run": 0, "series": 0}
        while rows := list(self._read(sql, {**given, **last, "page": _PAGE})):
            yield from rows
            last = {"run": rows[-1]["run"], "series": rows[-1]["series"]}

    def agreement(self, *, since: float = 0.0) -> list[Agreement]:
        """Return how often judge and people agree on traces that both rated, by metric and judge version."""
        return [Agreement(**row) for row in self._read(AGREEMENT, {"since": since})]

    def scores_with_facts(
        self, metric: str, *, since: float, until: float, workflow: str | None = None
    ) -> Iterator[Row]:
        """Yield scores of a metric with the facts of their runs, the newest first.

        Taken are scores of the random stratum with a value and a weight, of judges and not of people. They are read
        over a connection of its own, which only reads, so that the one that writes never waits.

        Args:
            metric: the exported name.
            since: Unix seconds at which the run ended, inclusive.
            until: Unix seconds, exclusive.
            workflow: of this workflow alone.
        """
        last: dict[str, object] = {"at": until, "id": 0, "series": 0}
        given = {"metric": metric, "since": since, "workflow": workflow, "page": _PAGE}
        while True:
            with self._file.reading() as connection:
                rows = _rows(connection.execute(SCORES_WITH_FACTS, {**given, **last}))
            if not rows:
                return
            yield from rows
            last = {name: rows[-1][name] for name in ("at", "id", "series")}

    def metric_names(self) -> list[str]:
        """Return the exported names of all metrics with scores of judges, in their order."""
        return [
            row["name"]
            for row in self._read("SELECT DISTINCT name FROM series WHERE source != 'human' ORDER BY name", ())
        ]

    def records(self, *, since: float = 0.0, workflow: str | None = None) -> Iterator[tuple[RagRecord, float]]:
        """Yield the records kept since a time, each with the probability of being kept.

        A record that cannot be read is counted as an internal error and skipped.
        """
        sql = (
            "SELECT p.run, p.record, p.probability FROM payloads p JOIN runs r ON r.id = p.run WHERE p.run > :run"
            " AND p.at >= :since AND (:workflow IS NULL OR r.workflow = :workflow) ORDER BY p.run LIMIT :page"
        )
        last = 0
        while rows := list(self._read(sql, {"run": last, "since": since, "workflow": workflow, "page": 50})):
            for row in rows:
                try:
                    record = from_payload(row["record"])
                except ValueError as error:
                    record_internal_error("ragtrace.stores.payload", error)
                    continue
                yield record, row["probability"]
            last = rows[-1]["run"]

    def record(self, trace_id: str) -> RagRecord | None:
        """Return the latest record kept of a trace, None without a readable one."""
        sql = (
            "SELECT p.record FROM payloads p JOIN runs r ON r.id = p.run WHERE r.trace_id = ?"
            " ORDER BY p.at DESC LIMIT 1"
        )
        for row in self._read(sql, (trace_id,)):
            try:
                return from_payload(row["record"])
            except ValueError as error:
                record_internal_error("ragtrace.stores.payload", error)
        return None

    def kept_for(self, trace_id: str) -> str | None:
        """Return why a trace's texts were kept, also after their end; None where none were.

        It is a reason of `ragtrace.stores.payload_policy.Kept`.
        """
        sql = "SELECT kept_for FROM runs WHERE trace_id = ? AND kept_for IS NOT NULL ORDER BY at DESC LIMIT 1"
        return next((row["kept_for"] for row in self._read(sql, (trace_id,))), None)

    def reading(self, trace_id: str) -> Reading | None:
        """Return what capture read of a trace's latest run, without words; None where that is not known."""
        sql = "SELECT reading FROM runs WHERE trace_id = ? AND span_id != '' ORDER BY at DESC LIMIT 1"
        found = next((row["reading"] for row in self._read(sql, (trace_id,))), None)
        return None if found is None else reading_from(found)

    def signed_traces(self, sign: str | None = None) -> set[str]:
        """Return the traces whose run has a sign of a name; without a name those that count as signed."""
        which = "signed = 1" if sign is None else "EXISTS (SELECT 1 FROM json_each(signs) WHERE value = :sign)"
        return {row["trace_id"] for row in self._read(f"SELECT trace_id FROM runs WHERE {which}", {"sign": sign})}  # noqa: S608 - ours

    def run_of(self, trace_id: str) -> tuple[str, str] | None:
        """Return the workflow and the span id of a trace's latest run, None where none was scored."""
        sql = "SELECT workflow, span_id FROM runs WHERE trace_id = ? AND span_id != '' ORDER BY at DESC LIMIT 1"
        return next(((row["workflow"] or "", row["span_id"]) for row in self._read(sql, (trace_id,))), None)

    def trace_ids(self, prefix: str, most: int = 4) -> list[str]:
        """Return ids of traces that begin with a text, in their order."""
        sql = "SELECT DISTINCT trace_id FROM runs WHERE substr(trace_id, 1, ?) = ? ORDER BY trace_id LIMIT ?"
        return [row["trace_id"] for row in self._read(sql, (len(prefix), prefix, most))]

    def scores_of(self, record: RagRecord) -> list[Score]:
        """Return every stored score of a record, without human labels."""
        sql = "SELECT * FROM scored WHERE trace_id = ? AND span_id = ? AND source != 'human'"
        return [score_from(row) for row in self._read(sql, (record.trace_id or record.id, record.span_id))]

    def data_version(self) -> tuple[int, int]:
        """Return a value that changes when another connection has written to the file."""
        with self._file.connection() as connection:
            return id(connection), connection.execute("PRAGMA data_version").fetchone()[0]

    def read(self, sql: str, given: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Return the rows of a query of one's own, as tuples, for readers of many rows."""
        with self._file.connection() as connection:
            return connection.execute(sql, given).fetchall()

    def _read(self, sql: str, given: Sequence[object] | Mapping[str, object]) -> list[Row]:
        with self._file.connection() as connection:
            return _rows(connection.execute(sql, given))


def _rows(cursor: sqlite3.Cursor) -> list[Row]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
