"""Scored runs as columns of numbers, so that a page over 100,000 of them is a few array operations."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from ragtrace.metrics.consistency.runs import bare
from ragtrace.model.diagnosis import VERDICTS
from ragtrace.scoring.investigation.runs import slices_of
from ragtrace.stats.change.step import LEAST_OF_ALL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from ragtrace.model import SeriesKey
    from ragtrace.stats.change.slices import Slice

    Floats = NDArray[np.float64]
    Codes = NDArray[np.int32]
    Mask = NDArray[np.bool_]

UNITS = ("runs", "sessions", "users", "questions")
STATES = ("ok", "na", "error", "skipped")
NAMED = (
    "workflow", "model", "session", "user", "environment", "corpus", "prompt", "tags", "sources", "kind",
    "language", "signs",
)  # fmt: skip
"""Facts of a run that many runs share; `tags`, `sources` and `signs` are JSON lists of names."""
SLICED = ("workflow", "environment", "corpus", "model", "prompt", "language", "kind", "tags", "sources", "k")
"""Facts by whose values a part of the traffic is told."""
NUMBERS = ("k", "query_chars", "answer_chars", "signed")
MOST_SEARCHED_CHARS = 4_000
"""Characters of question and answer that the text filter looks at."""
_KEPT_FOR = "kept_for"
_NO_VERDICT = -1
_DEAD = -1
_VERDICT_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}
_STATE_CODES = {state: code for code, state in enumerate(STATES)}


class RunFacts(NamedTuple):
    """Texts of one run in a list, and those that find it.

    Attributes:
        id: names the run in its source.
        at: Unix seconds; NaN where unknown.
        unit: equal for runs that are not independent, see `ragtrace.stats.intervals`.
        unit_kind: of `UNITS`.
        place: where the whole run stands: an offset in a file, or an id in a store.
        query: the question, None where no text was kept.
        searched: lower-case text that the text filter looks at.
        verdict: of ``diagnosis``.
        named: values of `NAMED`, None where there is none.
        numbers: values of `NUMBERS`, -1 where there is none.
        kept_for: why a store kept its texts, as `ragtrace.stores.payload_policy.Kept`; it outlives them.
    """

    id: str
    at: float
    unit: object
    unit_kind: str
    place: int
    query: str | None
    searched: str
    verdict: str | None
    named: tuple[str | None, ...]
    numbers: tuple[int, ...]
    kept_for: str | None = None


class ScoreFacts(NamedTuple):
    """One score of a run without its details; `weight` 0 = unknown, and outside every mean."""

    key: SeriesKey
    state: str
    value: float | None
    reason: str | None
    passed: bool | None
    weight: float = 1.0
    is_forced: bool = False
    at: float = 0.0


class LabelKey(NamedTuple):
    """One person's label of one metric of a run."""

    row: int
    metric: str
    rater: str


class LabelFacts(NamedTuple):
    """A label's value from 0 (bad) to 1 (good), when it was given, and whether a person gave it."""

    value: float
    at: float
    is_by_person: bool


class Names:
    """Texts by number; None is 0."""

    def __init__(self) -> None:
        self.texts: list[str | None] = [None]
        self._codes: dict[object, int] = {None: 0}

    def code(self, key: object) -> int:
        """Return the number of a text or other key, a new one for a new key."""
        found = self._codes.get(key)
        if found is None:
            found = self._codes[key] = len(self.texts)
            self.texts.append(key if isinstance(key, str) else None)
        return found

    def find(self, text: str) -> int | None:
        """Return the number of a text; None where no run has it."""
        return self._codes.get(text)


@dataclass(frozen=True, slots=True)
class Series:
    """Scores of one series, in the order of arrival.

    Attributes:
        rows: number of the run of each score.
        state: place in `STATES`.
        reason: number of the reason in `Snapshot.reasons`.
        passed: 1 or 0; -1 without a threshold.
    """

    key: SeriesKey
    rows: Codes
    value: Floats
    weight: Floats
    state: NDArray[np.int8]
    reason: NDArray[np.int16]
    passed: NDArray[np.int8]
    forced: Mask
    at: Floats

    def only(self, chosen: Mask) -> Series:
        """Return the scores of the chosen runs."""
        return self._where(chosen[self.rows])

    def counted(self) -> Series:
        """Return the scores that enter a mean: valued, of the random stratum, of known weight."""
        return self._where((self.state == 0) & ~self.forced & (self.weight > 0.0))

    def _where(self, own: Mask) -> Series:
        return Series(
            key=self.key,
            rows=self.rows[own],
            value=self.value[own],
            weight=self.weight[own],
            state=self.state[own],
            reason=self.reason[own],
            passed=self.passed[own],
            forced=self.forced[own],
            at=self.at[own],
        )


class Latest(NamedTuple):
    """The latest score of a metric by run, of any series; a run without one has state -1."""

    value: Floats
    state: NDArray[np.int8]
    passed: NDArray[np.int8]
    reason: NDArray[np.int16]


class Builder:
    """Gathers runs and scores; `snapshot` freezes what is there. Not thread-safe."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.labels: dict[LabelKey, LabelFacts] = {}
        self._units, self._reasons = Names(), Names()
        self._named = {name: Names() for name in (*NAMED, _KEPT_FOR)}
        self._series: dict[SeriesKey, int] = {}
        self._ids: list[str] = []
        self._queries: list[str | None] = []
        self._searched: list[str] = []
        self._at, self._place = array("d"), array("q")
        self._unit, self._verdict, self._is_alive = array("i"), array("b"), array("b")
        self._codes = {name: array("i") for name in (*self._named, *NUMBERS)}
        self._unit_kinds = array("b", [0])
        self._of, self._row, self._value, self._weight = array("i"), array("i"), array("d"), array("d")
        self._state, self._passed, self._forced = array("b"), array("b"), array("b")
        self._reason, self._scored_at = array("h"), array("d")

    def __len__(self) -> int:
        return len(self._ids)

    def n_alive_scores(self) -> int:
        """Return the number of scores, without replaced ones."""
        return int((np.frombuffer(self._state, dtype=np.int8) != _DEAD).sum()) if self._state else 0

    def put(self, facts: RunFacts) -> int:
        """Add a run, or replace the facts of the run of this id; return its number."""
        row = self.rows.get(facts.id)
        if row is None:
            row = self.rows[facts.id] = len(self._ids)
            self._ids.append(facts.id)
            self._queries.append(None)
            self._searched.append("")
            self._at.append(0.0)
            for column in (self._place, self._unit, self._verdict, self._is_alive, *self._codes.values()):
                column.append(0)
        self._queries[row] = facts.query
        self._searched[row] = facts.searched
        self._at[row], self._place[row], self._is_alive[row] = facts.at, facts.place, 1
        self._unit[row] = code = self._units.code(hash(facts.unit))
        if code == len(self._unit_kinds):
            self._unit_kinds.append(UNITS.index(facts.unit_kind))
        self._verdict[row] = _VERDICT_CODES.get(facts.verdict, _NO_VERDICT)  # type: ignore[call-overload]
        for name, text in zip(NAMED, facts.named, strict=True):
            self._codes[name][row] = self._named[name].code(text)
        self._codes[_KEPT_FOR][row] = self._named[_KEPT_FOR].code(facts.kept_for)
        for name, number in zip(NUMBERS, facts.numbers, strict=True):
            self._codes[name][row] = max(-1, min(number, 2**31 - 1))
        return row

    def score(self, row: int, scores: Iterable[ScoreFacts]) -> None:
        """Add scores of a run."""
        given = list(scores)
        series = self._series
        self._of.extend([series.setdefault(it.key, len(series)) for it in given])
        self._row.extend([row] * len(given))
        self._value.extend([np.nan if it.value is None else it.value for it in given])
        self._weight.extend([it.weight for it in given])
        self._state.extend([_STATE_CODES.get(it.state, 2) for it in given])
        self._passed.extend([-1 if it.passed is None else it.passed for it in given])
        self._forced.extend([it.is_forced for it in given])
        self._reason.extend([min(self._reasons.code(it.reason), 2**15 - 1) for it in given])
        self._scored_at.extend([it.at for it in given])

    def clear(self, rows: Collection[int]) -> None:
        """Take the scores and labels of some runs out; later ones may be added."""
        if not rows:
            return
        gone = np.isin(np.frombuffer(self._row, dtype=np.int32), list(rows))
        for i in np.flatnonzero(gone).tolist():
            self._state[i] = _DEAD
        for key in [it for it in self.labels if it.row in rows]:
            del self.labels[key]

    def strip(self, rows: Iterable[int]) -> None:
        """Take the texts of some runs out."""
        for row in rows:
            self._queries[row], self._searched[row] = None, self._ids[row].casefold()

    def drop(self, rows: Collection[int]) -> None:
        """Take some runs out with their scores and labels."""
        self.clear(rows)
        for row in rows:
            self._is_alive[row] = 0

    def snapshot(self, version: str, notes: tuple[str, ...] = ()) -> Snapshot:
        """Return an immutable copy of everything."""
        return Snapshot(
            version=version,
            notes=notes,
            ids=self._ids.copy(),
            row_of=self.rows,
            queries=self._queries.copy(),
            searched=self._searched.copy(),
            at=np.array(self._at, dtype=np.float64),
            place=np.array(self._place, dtype=np.int64),
            unit=np.array(self._unit, dtype=np.int32),
            verdict=np.array(self._verdict, dtype=np.int8),
            is_alive=np.array(self._is_alive, dtype=np.bool_),
            codes={name: np.array(column, dtype=np.int32) for name, column in self._codes.items()},
            names=self._named,
            reasons=self._reasons.texts,
            unit_kinds=np.array(self._unit_kinds, dtype=np.int8),
            series_keys=list(self._series),
            labels=dict(self.labels),
            scores=self._scores(),
        )

    def _scores(self) -> dict[str, NDArray[np.generic]]:
        return {
            "of": np.array(self._of, dtype=np.int32),
            "rows": np.array(self._row, dtype=np.int32),
            "value": np.array(self._value, dtype=np.float64),
            "weight": np.array(self._weight, dtype=np.float64),
            "state": np.array(self._state, dtype=np.int8),
            "reason": np.array(self._reason, dtype=np.int16),
            "passed": np.array(self._passed, dtype=np.int8),
            "forced": np.array(self._forced, dtype=np.bool_),
            "at": np.array(self._scored_at, dtype=np.float64),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """Runs and scores at one moment; immutable, and so safe to read from any thread.

    Attributes:
        at: Unix seconds of each run, NaN where unknown.
        unit: number of the cluster of each run; `unit_kinds` has the place in `UNITS` of each cluster.
        verdict: place in `VERDICTS`, -1 without one.
        is_alive: False for a run that was deleted since.
        codes: numbers of the texts of `NAMED` and of ``kept_for``, and the values of `NUMBERS`.
        names: the texts of `NAMED` and of ``kept_for`` by their numbers.
        labels: people's labels, and those of other judges.
    """

    version: str
    notes: tuple[str, ...]
    ids: list[str]
    row_of: Mapping[str, int]
    queries: list[str | None]
    searched: list[str]
    at: Floats
    place: NDArray[np.int64]
    unit: Codes
    verdict: NDArray[np.int8]
    is_alive: Mask
    codes: Mapping[str, Codes]
    names: Mapping[str, Names]
    reasons: list[str | None]
    unit_kinds: NDArray[np.int8]
    series_keys: list[SeriesKey]
    labels: Mapping[LabelKey, LabelFacts]
    scores: Mapping[str, NDArray[np.generic]]
    _latest: dict[str, Latest] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def parts(self) -> dict[Slice, Mask]:
        """The larger parts of the traffic, each with the runs that are in it."""
        kinds = np.zeros(len(self), dtype=np.int64)
        for name in SLICED:
            codes = self.codes[name].astype(np.int64)
            _, kinds = np.unique(kinds * (int(codes.max(initial=0)) + 2) + codes + 1, return_inverse=True)
        _, first, counts = np.unique(kinds, return_index=True, return_counts=True)
        kinds_of: defaultdict[Slice, list[int]] = defaultdict(list)
        for kind, row in enumerate(first.tolist()):
            for it in self.slices(row):
                kinds_of[it].append(kind)
        large = {it: own for it, own in kinds_of.items() if counts[own].sum() >= LEAST_OF_ALL * len(self)}
        return {it: np.isin(kinds, own) for it, own in large.items()}

    def slices(self, row: int) -> tuple[Slice, ...]:
        """Return the parts of the traffic that a run is in."""
        named = {name: self.text(name, row) for name in SLICED if name != "k"}
        k = int(self.codes["k"][row])
        return slices_of({**named, "k": None if k < 0 else k})

    @cached_property
    def series(self) -> list[Series]:
        """The scores by their keys."""
        of = np.where(self.scores["state"] == _DEAD, -1, self.scores["of"])
        order = np.argsort(of, kind="stable")
        bounds = np.searchsorted(of[order], np.arange(len(self.series_keys) + 1))
        found = []
        for i, key in enumerate(self.series_keys):
            own = order[bounds[i] : bounds[i + 1]]
            names = ("rows", "value", "weight", "state", "reason", "passed", "forced", "at")
            found.append(Series(key, *(self.scores[name][own] for name in names)))  # type: ignore[arg-type]
        return [it for it in found if len(it.rows)]

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics, those with values first."""
        valued = {it.key.metric for it in self.series if (it.state == 0).any()}
        return tuple(dict.fromkeys([*(name for name in self._keys if name in valued), *self._keys]))

    @property
    def _keys(self) -> list[str]:
        return [it.key.metric for it in self.series]

    def latest(self, metric: str) -> Latest:
        """Return the latest score of a metric by run."""
        found = self._latest.get(metric)
        if found is None:
            found = self._latest[metric] = self._latest_of(metric)
        return found

    def _latest_of(self, metric: str) -> Latest:
        n = len(self)
        value = np.full(n, np.nan)
        state, passed = np.full(n, -1, dtype=np.int8), np.full(n, -1, dtype=np.int8)
        reason = np.zeros(n, dtype=np.int16)
        own = [it for it in self.series if it.key.metric == metric]
        if own:
            rows, values, states, reasons, marks, times = (
                np.concatenate([getattr(it, name) for it in own])
                for name in ("rows", "value", "state", "reason", "passed", "at")
            )
            if len(own) > 1:
                order = np.argsort(times, kind="stable")
                rows, values, states = rows[order], values[order], states[order]
                reasons, marks = reasons[order], marks[order]
            value[rows], state[rows], reason[rows], passed[rows] = values, states, reasons, marks
        return Latest(value, state, passed, reason)

    @cached_property
    def has_times(self) -> bool:
        """Whether any run has a time."""
        return bool(np.isfinite(self.at).any())

    @cached_property
    def draws(self) -> NDArray[np.uint64]:
        """A number for each run that looks drawn at random, and is the same in every process."""
        sums = np.fromiter((crc32(run_id.encode("utf-8", "replace")) for run_id in self.ids), np.uint64, len(self))
        mixed = (sums + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing, as ids often count up
        return (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)

    @cached_property
    def questions(self) -> list[str]:
        """The question of each run, without differences of case and white space; empty where no text was kept."""
        return [bare(query) if query else "" for query in self.queries]

    @cached_property
    def has_text(self) -> Mask:
        """Mask of the runs whose texts are there to be read."""
        return np.fromiter((query is not None for query in self.queries), np.bool_, len(self))

    def lists(self, name: str, item: str) -> Mask:
        """Return the mask of the runs whose list of a fact, such as `tags`, holds an item."""
        holding = [i for i, text in enumerate(self.names[name].texts) if text and item in json.loads(text)]
        found: Mask = np.isin(self.codes[name], holding)
        return found

    @property
    def is_signed(self) -> Mask:
        """Mask of the runs that count as signed, as `ragtrace.model.reading.Reading.is_signed` says."""
        found: Mask = self.codes["signed"] == 1
        return found

    @property
    def was_kept(self) -> Mask:
        """Mask of the runs whose texts a store kept, be they there or not."""
        return self.codes[_KEPT_FOR] > 0

    def kept_for(self, row: int) -> str | None:
        """Return why a store kept the texts of a run; None where it kept none."""
        return self.text(_KEPT_FOR, row)

    def text(self, name: str, row: int) -> str | None:
        """Return a fact of a run by its name in `names`."""
        return self.names[name].texts[int(self.codes[name][row])]

    def verdict_of(self, row: int) -> str | None:
        """Return the verdict of a run; None without one."""
        code = int(self.verdict[row])
        return VERDICTS[code] if code >= 0 else None

    def ratings(self, metric: str | None = None) -> dict[int, list[float]]:
        """Return people's labels by run, of one metric or of all."""
        found: dict[int, list[float]] = {}
        for key, label in self.labels.items():
            if label.is_by_person and metric in {None, key.metric}:
                found.setdefault(key.row, []).append(label.value)
        return found
