"""Runs of a store, read once and then followed while scorers write."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ragtrace.errors import ConfigError, StoreError
from ragtrace.model import SeriesKey
from ragtrace.model.diagnosis import DIAGNOSIS
from ragtrace.settings import Settings
from ragtrace.stores.base import FOREIGN, Label, Policy
from ragtrace.stores.run_facts import ENDED
from ragtrace.stores.sqlite import SqliteStore
from ragtrace.stores.upsert import HUMAN
from ragtrace.views.columns import (
    MOST_SEARCHED_CHARS,
    NAMED,
    NUMBERS,
    LabelFacts,
    LabelKey,
    RunFacts,
    ScoreFacts,
)
from ragtrace.views.scored_answer import ScoredAnswer, stored_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from ragtrace.stores.tables import Row
    from ragtrace.views.columns import Builder
    from ragtrace.views.types import NewRating

_RUNS = 2_000  # read at once, so that no reader keeps the journal from being taken back
_AT_ONCE = 400  # traces of one statement
_RECENT = 2_000  # last runs that are looked at for late scores
_LATE_S = 5.0  # by which a clock of another process may be behind
_CHECK_EVERY_S = 60.0
_NO_LIMIT = 2**62
_COLUMNS = f"id, trace_id, span_id, at, {ENDED}, cluster, kept_for, {', '.join((*NAMED, *NUMBERS))}"
_SCORES = (
    "SELECT s.run, s.series, s.state, s.value, s.reason, s.passed, s.k, s.stratum, s.weight, s.scored_at,"  # noqa: S608
    f" CASE WHEN a.name = '{DIAGNOSIS}' THEN s.details END FROM scores s JOIN series a ON a.id = s.series"
    " WHERE s.run"
)
# json_extract leaves Python's lock to the pages that are served meanwhile.
_TEXTS = (
    "SELECT run, CASE WHEN json_valid(t) THEN json_extract(t, '$.query') END,"
    " CASE WHEN json_valid(t) THEN substr(json_extract(t, '$.answer'), 1, :most) END"
    " FROM (SELECT run, CAST(record AS TEXT) AS t FROM payloads WHERE run"
)


class StoreRuns:
    """Runs of a store's file, one for each trace. It deletes nothing.

    Args:
        path: the file; it must exist.

    Raises:
        ConfigError: it is no store, or cannot be opened.
    """

    is_store = True

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._store = self._opened(path)
        self._watcher = self._opened(path)  # sees the writes of other connections, ours among them
        self._row_of_run: dict[int, int] = {}
        self._with_texts: set[int] = set()
        self._last_run = 0
        self._last_at = self._last_scored = 0.0
        self._checked_at = 0.0

    def _opened(self, path: Path) -> SqliteStore:
        has_content = Settings.resolve({}).content == "full"
        try:
            return SqliteStore(path, Policy(has_content=has_content, file_bytes=_NO_LIMIT), is_made=False)
        except StoreError as error:
            raise ConfigError(str(error)) from None

    def close(self) -> None:
        """Close the file."""
        self._store.close()
        self._watcher.close()

    def state(self) -> object:
        """Return a value that changes with each write of another connection."""
        return self._watcher.data_version()

    def load(self, builder: Builder, publish: Callable[[str], None]) -> None:
        """Read everything into an empty builder; `publish` is told how far it is."""
        self._row_of_run, self._with_texts, self._last_run = {}, set(), 0
        self._last_at = self._last_scored = 0.0
        (total,) = self._one("SELECT count(*) FROM runs")
        while self._next(builder):
            publish(f"reading: {len(self._row_of_run):,} of {total:,} runs")
        self._checked_at = time.monotonic()

    def update(self, builder: Builder) -> bool:
        """Read what changed; False where everything has to be read again.

        New runs, labels, late scores of the last 2,000 runs, and texts that were deleted are found at once. Other
        changes of old runs, such as those of `ragtrace rescore`, are found by their number, once a minute.
        """
        self._drop_deleted(builder)
        self._reread(builder, self._touched())
        while self._next(builder):
            pass
        self._strip_deleted(builder)
        if time.monotonic() - self._checked_at < _CHECK_EVERY_S:
            return True
        self._checked_at = time.monotonic()
        (count,) = self._one("SELECT count(*) FROM scores")
        return bool(count == self._count_read(builder))

    def notes(self) -> tuple[str, ...]:
        """Return no remarks."""
        return ()

    def answer(self, run_id: str, place: int) -> ScoredAnswer:  # noqa: ARG002 - a file needs its place
        """Return one whole run.

        Raises:
            LookupError: the run was deleted.
        """
        return stored_answer(self._store, run_id)

    def rows(self, run_id: str) -> list[Row]:
        """Return the scores and labels of a trace as they are stored."""
        return list(self._store.rows(trace=run_id))

    def label_refusal(self) -> str | None:
        """Return None: a store that was opened can be written."""
        return None

    def rate(self, ratings: Sequence[NewRating], places: Mapping[str, int]) -> int:  # noqa: ARG002 - as above
        """Write people's ratings to the store; return how many.

        Raises:
            ConfigError: a run is no trace, or the store cannot be written.
        """
        try:
            return self._store.rate(_label(it) for it in ratings)
        except (OSError, sqlite3.Error, StoreError, ValueError) as error:
            raise ConfigError(f"{self.name}: the rating was not kept: {error}") from None

    # -- reading --

    def _one(self, sql: str) -> tuple[Any, ...]:
        (found,) = self._watcher.read(sql, {})
        return found

    def _next(self, builder: Builder) -> bool:
        """Read the next runs; False where there are none."""
        sql = f"SELECT {_COLUMNS} FROM runs WHERE id > :last ORDER BY id LIMIT :most"  # noqa: S608 - our names
        runs = self._watcher.read(sql, {"last": self._last_run, "most": _RUNS})
        if not runs:
            return False
        first, last = self._last_run, runs[-1][0]
        self._put(builder, runs, " > :first AND {run} <= :last", {"first": first, "last": last})
        self._last_run = last
        return True

    def _touched(self) -> list[str]:
        """Return the traces known before that have new labels or late scores."""
        sql = (
            "SELECT trace_id FROM runs WHERE at >= :at AND id <= :last UNION SELECT trace_id FROM scores s"
            " JOIN runs r ON r.id = s.run WHERE s.run > :recent AND s.run <= :last AND s.scored_at >= :scored"
        )
        given = {
            "at": self._last_at - _LATE_S,
            "last": self._last_run,
            "recent": self._last_run - _RECENT,
            "scored": self._last_scored - _LATE_S,
        }
        return [row[0] for row in self._watcher.read(sql, given)]

    def _reread(self, builder: Builder, traces: Sequence[str]) -> None:
        for first in range(0, len(traces), _AT_ONCE):
            chosen = traces[first : first + _AT_ONCE]
            builder.clear({builder.rows[trace] for trace in chosen if trace in builder.rows})
            given = {f"t{i}": trace for i, trace in enumerate(chosen)}
            marks = ", ".join(f":{name}" for name in given)
            sql = f"SELECT {_COLUMNS} FROM runs WHERE id <= :last AND trace_id IN ({marks}) ORDER BY id"  # noqa: S608
            runs = self._watcher.read(sql, {**given, "last": self._last_run})
            ids = ", ".join(str(int(run[0])) for run in runs)
            self._put(builder, runs, f" IN ({ids})", {})

    def _put(self, builder: Builder, runs: Sequence[tuple[Any, ...]], which: str, given: Mapping[str, Any]) -> None:
        texts = {
            run: (query, answer)
            for run, query, answer in self._watcher.read(
                f"{_TEXTS}{which.format(run='run')})", {**given, "most": MOST_SEARCHED_CHARS}
            )
        }
        scores = self._watcher.read(_SCORES + which.format(run="s.run"), given)
        series = {row[0]: row[1:] for row in self._watcher.read(_SERIES, {})}
        by_run: dict[int, list[tuple[Any, ...]]] = {}
        for score in scores:
            by_run.setdefault(score[0], []).append(score)
        self._with_texts.difference_update(run[0] for run in runs)
        self._with_texts.update(texts)
        for run in runs:
            self._put_run(builder, run, by_run.get(run[0], []), texts.get(run[0]), series)

    def _put_run(
        self,
        builder: Builder,
        run: tuple[Any, ...],
        scores: Sequence[tuple[Any, ...]],
        texts: tuple[str | None, str | None] | None,
        series: Mapping[int, tuple[Any, ...]],
    ) -> None:
        known = builder.rows.get(run[1])
        if known is None or run[2]:  # a run with a span id is one of the application, the others hold labels
            known = builder.put(_facts(run, texts, _verdict(scores)))
        self._row_of_run[run[0]] = known
        self._last_at = max(self._last_at, run[3])
        judged = []
        for score in scores:
            own = series[score[1]]
            if own[2] == HUMAN:
                rater = own[1].partition(":")[2]
                label = LabelFacts(score[3], score[9], not rater.startswith(FOREIGN))
                builder.labels[LabelKey(known, own[0], rater)] = label
            else:
                judged.append(_score(score, own))
                self._last_scored = max(self._last_scored, score[9])
        builder.score(known, judged)

    def _drop_deleted(self, builder: Builder) -> None:
        (count,) = self._one(f"SELECT count(*) FROM runs WHERE id <= {self._last_run:d}")  # noqa: S608 - a number
        if count == len(self._row_of_run):
            return
        there = {row[0] for row in self._watcher.read("SELECT id FROM runs", {})}
        gone = [run for run in self._row_of_run if run not in there]
        rows = {self._row_of_run.pop(run) for run in gone}
        left = {row for run, row in self._row_of_run.items() if row in rows}
        builder.drop(rows - left)
        self._reread(builder, [trace for trace, row in builder.rows.items() if row in left])

    def _strip_deleted(self, builder: Builder) -> None:
        (count,) = self._one("SELECT count(*) FROM payloads")
        if count != len(self._with_texts):
            gone = self._with_texts - {row[0] for row in self._watcher.read("SELECT run FROM payloads", {})}
            builder.strip(self._row_of_run[run] for run in gone if run in self._row_of_run)
            self._with_texts -= gone

    def _count_read(self, builder: Builder) -> int:
        return builder.n_alive_scores() + len(builder.labels)


_SERIES = "SELECT id, metric, version, source, name, judge, label_scale, universe FROM series"


def _facts(run: tuple[Any, ...], texts: tuple[str | None, str | None] | None, verdict: str | None) -> RunFacts:
    trace, _, _, at, cluster, kept_for = run[1:7]
    named = dict(zip(NAMED, run[7 : 7 + len(NAMED)], strict=True))
    numbers = run[7 + len(NAMED) :]
    query, answer = texts or (None, None)
    shown = f"{query or ''}\n{answer or ''}"[:MOST_SEARCHED_CHARS]
    return RunFacts(
        id=trace,
        at=at if isinstance(at, float | int) and math.isfinite(at) else math.nan,
        unit=cluster or named["session"] or trace,
        unit_kind="sessions" if named["session"] else "questions" if cluster else "runs",
        place=run[0],
        query=query if answer is None else query or "",
        searched=f"{trace}\n{shown}".casefold() if texts else trace,
        verdict=verdict,
        named=tuple(named[name] or None for name in NAMED),
        numbers=tuple(-1 if number is None else int(number) for number in numbers),
        kept_for=kept_for,
    )


def _verdict(scores: Collection[tuple[Any, ...]]) -> str | None:
    found = [(score[9], score[10]) for score in scores if score[10]]
    with suppress(ValueError):
        verdict = json.loads(max(found)[1]).get("verdict") if found else None
        return verdict if isinstance(verdict, str) else None
    return None


def _score(score: tuple[Any, ...], series: tuple[Any, ...]) -> ScoreFacts:
    _, _, state, value, reason, passed, k, stratum, weight, scored_at, _ = score
    metric, version, _, _, judge, label_scale, universe = series
    return ScoreFacts(
        key=SeriesKey(
            metric=metric,
            judge=judge or None,
            version=version or None,
            k=k,
            label_scale=label_scale or None,
            universe=universe or None,
        ),
        state=state,
        value=value,
        reason=reason,
        passed=None if passed is None else bool(passed),
        weight=weight or 0.0,
        is_forced=stratum != "random",
        at=scored_at,
    )


def _label(rating: NewRating) -> Label:
    return Label(
        trace_id=rating.run_id,
        value=rating.value,
        comment=rating.comment,
        metric=rating.metric,
        rater=rating.rater,
        at=rating.at,
    )
