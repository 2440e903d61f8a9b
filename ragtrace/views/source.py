"""The views over one store or scored file."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote

import numpy as np

from ragtrace.errors import ConfigError
from ragtrace.model.diagnosis import VERDICTS
from ragtrace.scoring.investigation.lines import example_texts
from ragtrace.views import labels, listing
from ragtrace.views.columns import Builder
from ragtrace.views.figures import TimeBins, metric_view, scored_of_late, verdict_shares
from ragtrace.views.file_runs import FileRuns
from ragtrace.views.investigating import investigation_view
from ragtrace.views.paired import compared_files
from ragtrace.views.periods import compared_sides, run_weights, side_of
from ragtrace.views.run_view import run_view
from ragtrace.views.scored_answer import FIRST_METRICS, first_metric
from ragtrace.views.store_runs import StoreRuns
from ragtrace.views.types import Choices, NewRating, Overview, RunFilter, RunPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ragtrace.model import SeriesKey
    from ragtrace.scoring.offline.calibration import Calibration
    from ragtrace.stores.base import Label
    from ragtrace.views.columns import Snapshot
    from ragtrace.views.file_runs import Rows
    from ragtrace.views.scored_answer import ScoredAnswer
    from ragtrace.views.types import ComparisonView, InvestigationView, LabelQueue, MetricView, RunLine, RunView

T = TypeVar("T")
_LOOK_EVERY_S = 0.5
_FIRST_LOAD_S = 1.0
_CACHED = 64
_MOST_WORKFLOWS = 50
_EVERYTHING = RunFilter()


class Source(Protocol):
    """A place that runs are read from."""

    name: str
    is_store: bool

    def state(self) -> object:
        """Return a value that changes when something was written."""
        ...

    def load(self, builder: Builder, publish: Callable[[str], None]) -> None:
        """Read everything into an empty builder."""
        ...

    def update(self, builder: Builder) -> bool:
        """Read what changed; False where everything has to be read again."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Return remarks for people."""
        ...

    def answer(self, run_id: str, place: int) -> ScoredAnswer:
        """Return one whole run."""
        ...

    def label_refusal(self) -> str | None:
        """Return why no rating can be kept; None where it can."""
        ...

    def rate(self, ratings: Sequence[NewRating], places: Mapping[str, int]) -> int:
        """Keep people's ratings."""
        ...


class Views:
    """Everything that people see of the runs of a store or scored file. Thread-safe.

    Runs are held as columns of numbers, beside questions and the text that is searched. Answers and passages are
    read when they are shown. What was written since is read before an answer, at most twice a second.

    Args:
        source: the store or file.
        trace_url: address of a trace with ``{trace_id}`` in it.
        is_live: read in a thread, and answer meanwhile with the runs read so far; else all are read at once.
    """

    def __init__(self, source: Source, *, trace_url: str | None = None, is_live: bool = False) -> None:
        self._source = source
        self._trace_url = trace_url
        self._lock = threading.RLock()
        self._token = secrets.token_hex(4)
        self._count = 0
        self._looked_at = 0.0
        self._builder = Builder()
        self._state: object = None
        self._cache: dict[object, object] = {}
        self._snapshot = self._builder.snapshot(self._token)
        self._loading: threading.Thread | None = None
        self._failure: Exception | None = None
        if is_live:
            self._begin_loading().join(_FIRST_LOAD_S)  # a small source is whole before anybody asks
        else:
            self._load()

    @classmethod
    def of_store(cls, path: Path, *, trace_url: str | None = None, is_live: bool = False) -> Views:
        """Return the views of a store; nothing in it is deleted.

        Raises:
            ConfigError: the file is no store, or cannot be opened.
        """
        return cls(StoreRuns(path), trace_url=trace_url, is_live=is_live)

    @classmethod
    def of_file(
        cls,
        path: Path,
        *,
        rows: Rows | None = None,
        as_record: Callable[[Any], Any] | None = None,
        trace_url: str | None = None,
        is_live: bool = False,
    ) -> Views:
        """Return the views of a scored file; of a growing one only new lines are read.

        Args:
            path: JSON lines, plain or gzip; with `rows` any name.
            rows: reads other files, such as Parquet and folders of parts.
            as_record: gives a row the fields of a record, for rows in the columns of other tools.
            trace_url: address of a trace with ``{trace_id}`` in it.
            is_live: as for `Views`.

        Raises:
            ConfigError: there is no file.
        """
        return cls(FileRuns(path, rows=rows, as_record=as_record), trace_url=trace_url, is_live=is_live)

    @property
    def name(self) -> str:
        """Name of the store or file."""
        return self._source.name

    @property
    def is_store(self) -> bool:
        """Whether it is a store."""
        return self._source.is_store

    @property
    def label_refusal(self) -> str | None:
        """Why no rating can be kept; None where it can."""
        return self._source.label_refusal()

    @property
    def can_label(self) -> bool:
        """Whether ratings can be kept."""
        return self.label_refusal is None

    def close(self) -> None:
        """Close the file."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    # -- pages --

    def version(self) -> str:
        """Return a text that changes when the data changed; cheap."""
        return self._now().version

    def overview(self, which: RunFilter = _EVERYTHING, *, bins: int = 48) -> Overview:
        """Return the means, trends and verdicts of the chosen runs."""
        it = self._now()
        return self._kept(it, ("overview", which, bins), lambda: self._overview(it, which, bins))

    def runs(self, which: RunFilter, *, page: int = 1, size: int = 50) -> RunPage:
        """Return one page of the chosen runs, with the worst claim of each."""
        it = self._now()
        rows = self._rows(it, which)
        metric, ratings = listing.metric_of(it, which), it.ratings()
        page = max(1, min(page, -(-len(rows) // size) or 1))
        shown = rows[(page - 1) * size : page * size].tolist()
        return RunPage(
            metric=metric,
            direction=listing.direction_of(metric),
            lines=tuple(self._line(it, row, metric, ratings) for row in shown),
            count=len(rows),
            page=page,
            size=size,
        )

    def lines(self, ids: Iterable[str], metric: str | None) -> tuple[RunLine, ...]:
        """Return some runs as lines of a list, with their values of a metric, in the order given."""
        it = self._now()
        rows = [row for name in ids if (row := self._row(it, name)) is not None]
        ratings = it.ratings()
        return tuple(self._line(it, row, metric, ratings) for row in rows)

    def neighbours(self, which: RunFilter, run_id: str) -> tuple[str | None, str | None]:
        """Return the ids of the runs before and after one, in the order of a filter."""
        it = self._now()
        rows, row = self._rows(it, which), self._row(it, run_id)
        found = np.flatnonzero(rows == row) if row is not None else np.zeros(0, dtype=np.intp)
        if not len(found):
            return None, None
        place = int(found[0])
        before = it.ids[rows[place - 1]] if place else None
        after = it.ids[rows[place + 1]] if place + 1 < len(rows) else None
        return before, after

    def run(self, run_id: str) -> RunView | None:
        """Return one run whole; None where there is no such run, or it was deleted."""
        it = self._now()
        row = self._row(it, run_id)
        if row is None:
            return None
        try:
            answer = self._source.answer(run_id, int(it.place[row]))
        except LookupError:
            return None
        at = float(it.at[row])
        return run_view(
            run_id,
            answer,
            at=at if np.isfinite(at) else 0.0,
            rows=self._source.rows(run_id) if isinstance(self._source, StoreRuns) else (),
            trace_url=self._url(answer.record.trace_id),
        )

    def investigate(
        self,
        which: RunFilter = _EVERYTHING,
        *,
        metric: str | None = None,
        since: float | None = None,
        workflow: str | None = None,
    ) -> InvestigationView:
        """Return what fell among the chosen runs, since when, at which stage and where.

        Args:
            which: runs to look at; its metric is investigated where `metric` is None.
            metric: None = the one that changed for the worse most surely.
            since: begin of the window in Unix seconds; None = the most likely change.
            workflow: of this workflow alone.
        """
        it = self._now()
        which = replace(which, workflow=workflow or which.workflow)

        def make() -> InvestigationView:
            return investigation_view(
                it,
                listing.chosen(it, which),
                metric=metric or which.metric,
                since=since,
                texts_of=self._texts,
                show=f"ragtrace show {self.name}{'' if self.is_store else ' --id'}",
            )

        return self._kept(it, ("investigate", which, metric, since), make)

    def compare_periods(
        self,
        before: tuple[float, float],
        after: tuple[float, float],
        *,
        metric: str | None = None,
        workflow: str | None = None,
    ) -> ComparisonView:
        """Return the comparison of two periods, each with its begin and exclusive end in Unix seconds."""
        it = self._now()
        sides = (side_of(it, *before, workflow), side_of(it, *after, workflow))

        def make() -> ComparisonView:
            return compared_sides(*sides, ("before", "after"), metric=metric, notes=it.notes)

        return self._kept(it, ("periods", before, after, metric, workflow), make)

    def compared_with(self, before: Views, *, metric: str | None = None) -> ComparisonView:
        """Return the comparison with another source; two files are paired as by `ragtrace compare`."""
        it, old = self._now(), before.snapshot()
        source, other = self._source, before._source
        names = (before.name, self.name)

        def make() -> ComparisonView:
            if isinstance(source, FileRuns) and isinstance(other, FileRuns):
                return compared_files((names[0], old, other), (names[1], it, source), metric=metric)
            return compared_sides((old, old.is_alive), (it, it.is_alive), names, metric=metric)

        return self._kept(it, ("sources", old.version, metric), make)

    def queue(self, metric: str | None = None, *, most: int = 50) -> LabelQueue:
        """Return the runs whose labels should narrow the corrected mean most."""
        it = self._now()
        wanted = metric or first_metric(it.metrics)
        return self._kept(it, ("queue", wanted, most), lambda: labels.queue(it, wanted, most=most))

    def calibration(self, metric: str) -> Calibration | None:
        """Return the judge's calibration against people's labels of a metric; None without a label."""
        it = self._now()
        return self._kept(it, ("calibration", metric), lambda: labels.calibration_of(it, metric))

    def rate(self, ratings: Sequence[NewRating | Label]) -> int:
        """Keep people's ratings; return how many, without those of runs that are not there.

        Raises:
            ConfigError: they cannot be kept.
        """
        it = self._now()
        given = [rating if isinstance(rating, NewRating) else _rating(rating) for rating in ratings]
        rows = {rating.run_id: row for rating in given if (row := self._row(it, rating.run_id)) is not None}
        known = [rating for rating in given if rating.run_id in rows]
        with self._lock:
            try:
                count = self._source.rate(known, {run_id: int(it.place[row]) for run_id, row in rows.items()})
            except (OSError, LookupError) as error:
                raise ConfigError(f"{self.name}: the rating was not kept: {error}") from None
            self._looked_at = 0.0
        return count

    def last(self) -> float | None:
        """Return the Unix seconds of the newest run; None where no run has a time."""
        at = self._now().at
        return float(np.nanmax(at)) if np.isfinite(at).any() else None

    def choices(self) -> Choices:
        """Return the names for the form of a filter, each with its number of runs."""
        it = self._now()
        return self._kept(it, "choices", lambda: _choices(it))

    # -- the snapshot --

    def snapshot(self) -> Snapshot:
        """Return the runs as they are now."""
        return self._now()

    def forget_results(self) -> None:
        """Make the next results anew, for measurements."""
        self._cache = {}

    def _now(self) -> Snapshot:
        if self._failure is not None:
            raise self._failure
        if self._loading is not None or time.monotonic() - self._looked_at < _LOOK_EVERY_S:
            return self._snapshot
        if self._lock.acquire(blocking=False):  # another thread reads already: the present runs will do
            try:
                self._refresh()
            finally:
                self._lock.release()
        return self._snapshot

    def _refresh(self) -> None:
        self._looked_at = time.monotonic()
        state = self._source.state()
        if state == self._state:
            return
        if self._source.update(self._builder):
            self._state = state
            self._publish(self._source.notes())
        else:
            self._begin_loading()

    def _begin_loading(self) -> threading.Thread:
        loading = self._loading = threading.Thread(target=self._load_safely, name="ragtrace-views", daemon=True)
        loading.start()
        return loading

    def _load_safely(self) -> None:
        try:
            self._load()
        except Exception as error:
            self._failure = error
        finally:
            self._loading = None

    def _load(self) -> None:
        builder, state = Builder(), self._source.state()
        is_first = not len(self._snapshot)

        def publish(note: str) -> None:
            if is_first and self._loading is not None:
                self._publish((note, *self._source.notes()), builder)

        self._source.load(builder, publish)
        self._builder, self._state = builder, state
        self._publish(self._source.notes())

    def _publish(self, notes: tuple[str, ...], builder: Builder | None = None) -> None:
        self._count += 1
        self._cache = {}
        self._snapshot = (builder or self._builder).snapshot(f"{self._token}-{self._count}", notes)

    def _kept(self, it: Snapshot, key: object, make: Callable[[], T]) -> T:
        """Return a result of this snapshot, made once."""
        cache = self._cache
        full = (it.version, key)
        if full not in cache:
            if len(cache) >= _CACHED:
                with suppress(KeyError, StopIteration, RuntimeError):  # another thread was faster
                    del cache[next(iter(cache))]
            cache[full] = make()
        return cache[full]  # type: ignore[return-value]

    def _rows(self, it: Snapshot, which: RunFilter) -> Any:
        return self._kept(it, ("rows", which), lambda: listing.ordered(it, which, listing.chosen(it, which)))

    def _row(self, it: Snapshot, run_id: str) -> int | None:
        row = it.row_of.get(run_id)
        return row if row is not None and row < len(it) and it.is_alive[row] else None

    # -- parts --

    def _overview(self, it: Snapshot, which: RunFilter, bins: int) -> Overview:
        mask = listing.chosen(it, which)
        times = it.at[mask & np.isfinite(it.at)]
        at = np.where(mask, it.at, np.nan)
        grid = TimeBins.over(at, it.unit, bins)
        return Overview(
            source=self.name,
            runs=int(mask.sum()),
            first=float(times.min()) if len(times) else None,
            last=float(times.max()) if len(times) else None,
            metrics=tuple(_metrics(it, mask, grid)),
            verdicts=tuple(verdict_shares(it, mask, run_weights(it), grid)),
            workflows=_counted(it, "workflow", mask)[:_MOST_WORKFLOWS],
            notes=(*it.notes, *_remarks(it, mask, times, is_store=self.is_store)),
            signed=int((mask & it.is_signed).sum()),
        )

    def _line(self, it: Snapshot, row: int, metric: str | None, ratings: dict[int, list[float]]) -> RunLine:
        """Return one line of a list, with the standing of its run."""
        line = listing.run_line(it, row, metric, ratings)
        try:
            found = self._source.answer(it.ids[row], int(it.place[row])).standing
        except LookupError:
            return line
        return replace(
            line,
            verdict=found.verdict,
            stage=found.stage,
            word=found.word,
            claim=None if found.claim is None else str(found.claim),
        )

    def _texts(self, run_id: str) -> list[str]:
        it = self._now()
        row = self._row(it, run_id)
        if row is None:
            return []
        with suppress(LookupError):
            answer = self._source.answer(run_id, int(it.place[row]))
            return example_texts(answer.record, answer.standing.claims) if answer.has_texts else []
        return []

    def _url(self, trace_id: str) -> str | None:
        if not self._trace_url or not trace_id:
            return None
        return self._trace_url.replace("{trace_id}", quote(trace_id, safe="", errors="replace"))


def compare_sources(a: Views, b: Views, *, metric: str | None = None) -> ComparisonView:
    """Return the comparison of `b` with `a`; two files are paired as by `ragtrace compare`."""
    return b.compared_with(a, metric=metric)


def _metrics(it: Snapshot, mask: Any, grid: TimeBins | None) -> Iterable[MetricView]:
    keys: dict[str, list[SeriesKey]] = {}
    for series in it.series:
        keys.setdefault(series.key.metric, []).append(series.key)
    order = {name: i for i, name in enumerate(FIRST_METRICS)}
    ranked = sorted(it.series, key=lambda one: order.get(one.key.metric, len(order)))
    chosen = [own for series in ranked if len((own := series.only(mask)).rows)]
    late = scored_of_late(chosen, it)
    for own in chosen:
        yield metric_view(own, keys[own.key.metric], it, grid, is_late=own.key in late)


def _counted(it: Snapshot, name: str, mask: Any) -> tuple[tuple[str, int], ...]:
    counts = np.bincount(it.codes[name][mask], minlength=1)
    texts = it.names[name].texts
    found = [(text, int(n)) for text, n in zip(texts, counts, strict=False) if text and n]
    return tuple(sorted(found, key=lambda one: -one[1]))


def _choices(it: Snapshot) -> Choices:
    counts = np.bincount(it.verdict[it.is_alive & (it.verdict >= 0)], minlength=len(VERDICTS))
    metrics: Counter[str] = Counter()
    for series in it.series:
        metrics[series.key.metric] += int((series.state == 0).sum())
    return Choices(
        metrics=tuple(metrics.most_common()),
        workflows=_counted(it, "workflow", it.is_alive),
        models=_counted(it, "model", it.is_alive),
        tags=_items_of_lists(it, "tags"),
        verdicts=tuple((VERDICTS[i], int(n)) for i, n in enumerate(counts) if n),
        signs=_items_of_lists(it, "signs"),
    )


def _items_of_lists(it: Snapshot, name: str) -> tuple[tuple[str, int], ...]:
    """Return the items of a fact that is a list, each with its number of runs, the most frequent first."""
    found: Counter[str] = Counter()
    for text, n in _counted(it, name, it.is_alive):
        found.update(dict.fromkeys(json.loads(text), n))
    return tuple(found.most_common())


def _remarks(it: Snapshot, mask: Any, times: Any, *, is_store: bool) -> Iterable[str]:
    n = int(mask.sum())
    if n and not len(times):
        yield "the runs have no times, so there is no trend"
    elif n > len(times):
        yield f"runs without a time, which enter no trend: {n - len(times)}"
    without = int((~it.has_text).sum()) if n == len(it) else 0
    if without:
        why = "; by default a store keeps those of bad runs and of a few others" if is_store else ""
        yield f"runs without texts: {without:,}{why}"


def _rating(label: Label) -> NewRating:
    return NewRating(
        run_id=label.trace_id,
        value=label.value,
        metric=label.metric,
        rater=label.rater,
        comment=label.comment,
        at=label.at,
    )
