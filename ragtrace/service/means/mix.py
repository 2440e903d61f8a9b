"""Means at the baseline's mix of questions: a hot topic moves the raw mean, and not these."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ragtrace import semconv
from ragtrace.capture import guarded, record_internal_error
from ragtrace.capture.off_loop import off_loop
from ragtrace.model.cluster import cluster_of
from ragtrace.stats.intervals import Sums
from ragtrace.stats.mix import MixAdjusted, mix_adjusted
from ragtrace.stats.question_kinds import MOST_KINDS, NEW, Codebook
from ragtrace.stores.question_mixes import QuestionMix
from ragtrace.telemetry.metrics.series import AnsweredBy, LabelValues, bounded_text, measured, score_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.util.types import AttributeValue

    from ragtrace.metrics.base import Output
    from ragtrace.model import RagRecord, Score, SeriesKey

    Points = list[tuple[float, Mapping[str, AttributeValue]]]

KIND_TAG = "kind:"
"""Beginning of a tag by which an application names the kind of a question, such as ``kind:billing``."""

LEARNT_RUNS = 500
"""First runs of a workflow, which its mix is learnt from."""
WINDOW_S = 86_400.0
_SLOT_S = 3_600.0
_REFRESH_S = 10.0
_MOST_SERIES = 200
_MOST_WORKFLOWS = 100
_OTHER = "other"
GAUGES = {semconv.ADJUSTED_MEAN: "mean", semconv.ADJUSTED_LOW: "low", semconv.ADJUSTED_HIGH: "high"}


class MixStore(Protocol):
    """Keeps the mix of each workflow; a `ragtrace.stores.sqlite.SqliteStore` does."""

    def question_mix(self, workflow: str) -> QuestionMix | None:
        """Return the mix of a workflow, None where none was kept."""

    def keep_question_mix(self, mix: QuestionMix) -> QuestionMix:
        """Keep a mix unless its workflow has one; return the one that stands."""

    def question_mix_workflows(self) -> set[str]:
        """Return the workflows whose mix is kept."""


@dataclass(slots=True)
class _Learning:
    """Runs that a workflow's mix is learnt from: question, named kind, and weight of each."""

    runs: list[tuple[str, str | None, float]] = field(default_factory=list)


@dataclass(slots=True)
class _Mix:
    """A frozen codebook and mix."""

    codebook: Codebook
    mix: Mapping[str, float]

    def kind(self, record: RagRecord) -> str:
        kind = _named_kind(record) or self.codebook.kind(record.query)
        is_rare = kind not in self.mix and kind != NEW and _OTHER in self.mix
        return _OTHER if is_rare else kind


class _Slots:
    """Sums of one series by kind, over the hours of a day; the clusters of an hour are counted once."""

    def __init__(self, attributes: Mapping[str, AttributeValue]) -> None:
        self.attributes = attributes
        self._hours: deque[tuple[float, dict[tuple[str, str], list[float]]]] = deque()

    def add(self, now: float, kind: str, cluster: str, value: float, weight: float) -> None:
        hour = now // _SLOT_S
        if not self._hours or self._hours[-1][0] < hour:
            self._hours.append((hour, {}))
        both = self._hours[-1][1].setdefault((kind, cluster), [0.0, 0.0])
        both[0] += weight
        both[1] += weight * value

    def by_kind(self, now: float) -> dict[str, Sums]:
        oldest = (now - WINDOW_S) // _SLOT_S
        while self._hours and self._hours[0][0] <= oldest:
            self._hours.popleft()
        found: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * 5)
        for _, clusters in self._hours:
            for (kind, _), (w, wx) in clusters.items():
                for place, part in enumerate((w, wx, w * w, w * wx, wx * wx)):
                    found[kind][place] += part
        return {kind: Sums(*sums) for kind, sums in found.items()}


class MixMonitor:
    """Means of the last day at the mix of questions that a workflow had when it was first seen.

    The kind of a question is the application's own (a tag ``kind:NAME``), or its cluster in a codebook. Codebook
    and mix are learnt from the first runs of a workflow, then frozen, and kept in the store where there is one.
    Until then there is no such mean. Takes scores of the random stratum in [0, 1]. Scores come from the scorer's
    thread; any thread may read `adjusted` and the gauges.

    Args:
        outputs: the outputs of the chosen metrics by name.
        store: keeps mixes over restarts; None = each process learns its own.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        outputs: Mapping[str, Output],
        *,
        store: MixStore | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._outputs = {name: output for name, output in outputs.items() if output.is_unit}
        self._store = store
        self._clock = clock
        self._labels = LabelValues()
        self._workflows: dict[str, _Learning | _Mix] = {}
        self._series: dict[SeriesKey, _Slots] = {}
        self._looked_at = float("-inf")

    @guarded
    def observe(self, scores: Sequence[Score], workflow: str, record: RagRecord) -> None:
        """Take the scores of one trace, with its workflow's name as the score counters have it."""
        taken = [score for score in scores if self._is_taken(score)]
        if not taken:
            return
        mix = self._mix(workflow, record, taken[0].weight or 0.0)
        if mix is None:
            return
        kind, cluster, now = mix.kind(record), cluster_of(record), self._clock()
        for score in taken:
            output, value, weight = self._outputs[score.result.name], score.result.value, score.weight
            if value is None or weight is None:
                continue
            slots = self._slots(measured(score.result, self._labels, workflow))
            if slots is not None:
                slots.add(now, kind, cluster, min(max(output.exported(value), 0.0), 1.0), weight)

    def adjusted(self) -> list[tuple[MixAdjusted, Mapping[str, AttributeValue]]]:
        """Return the mean of each series at its workflow's mix, with its attributes."""
        now, found = self._clock(), []
        for key, slots in list(self._series.items()):
            mix = self._workflows.get(key.workflow)
            if isinstance(mix, _Mix):
                found.append((mix_adjusted(slots.by_kind(now), mix.mix), slots.attributes))
        return found

    def kind_of(self, workflow: str, record: RagRecord) -> str | None:
        """Return the kind of a run's question; None before its workflow's mix is learnt, and for a named kind.

        A named kind is a tag already. Call it in the scorer's thread or on its loop.
        """
        found = self._workflow(workflow)
        return found.codebook.kind(record.query) if isinstance(found, _Mix) and not _named_kind(record) else None

    def readers(self) -> dict[str, Callable[[], Points]]:
        """Return a function for each gauge, which gives its points."""
        return {name: partial(self._points, part) for name, part in GAUGES.items()}

    @guarded
    def refresh(self) -> None:
        """Learn the mixes anew that were deleted from the store; it looks every 10 s at most."""
        now = self._clock()
        if self._store is None or now - self._looked_at < _REFRESH_S:
            return
        self._looked_at = now
        kept = self._store.question_mix_workflows()
        gone = [name for name, mix in self._workflows.items() if isinstance(mix, _Mix) and name not in kept]
        for workflow in gone:
            self._workflows[workflow] = _Learning()
            for key in [it for it in self._series if it.workflow == workflow]:
                del self._series[key]

    def _points(self, part: str) -> Points:
        found = [(getattr(adjusted.interval, part), attributes) for adjusted, attributes in self.adjusted()]
        return [(value, attributes) for value, attributes in found if value is not None]

    def _is_taken(self, score: Score) -> bool:
        result = score.result
        is_weighted = score.stratum == "random" and score.weight is not None
        return is_weighted and result.value is not None and result.name in self._outputs

    def _slots(self, key: SeriesKey) -> _Slots | None:
        found = self._series.get(key)
        if found is None and len(self._series) < _MOST_SERIES:
            found = self._series[key] = _Slots(score_attributes(key, AnsweredBy()))
        elif found is None:
            record_internal_error("ragtrace.service.means.mix.series", reason="too many series")
        return found

    def _workflow(self, name: str) -> _Learning | _Mix | None:
        """Return what is known of a workflow, from the store at its first run; None past the most workflows."""
        found = self._workflows.get(name)
        if found is None and len(self._workflows) < _MOST_WORKFLOWS:
            kept = off_loop(self._store.question_mix)(name) if self._store is not None else None
            found = self._workflows[name] = _Learning() if kept is None else _of(kept)
        return found

    def _mix(self, workflow: str, record: RagRecord, weight: float) -> _Mix | None:
        found = self._workflow(workflow)
        if found is None or isinstance(found, _Mix):
            return found
        found.runs.append((record.query, _named_kind(record), weight))
        if len(found.runs) >= LEARNT_RUNS:
            self._workflows[workflow] = self._learnt(workflow, found)
        return None

    def _learnt(self, workflow: str, learning: _Learning) -> _Mix:
        questions = [question for question, named, _ in learning.runs if named is None]
        codebook = Codebook.learnt(questions or [""])
        mix: defaultdict[str, float] = defaultdict(float)
        for question, named, weight in learning.runs:
            mix[named or codebook.kind(question)] += weight
        made = QuestionMix(
            workflow=workflow, frozen_at=time.time(), codebook=codebook.to_json(), mix=_of_most_kinds(mix)
        )
        return _of(made if self._store is None else self._store.keep_question_mix(made))


def _of_most_kinds(mix: Mapping[str, float]) -> dict[str, float]:
    """Return a mix with its 49 heaviest kinds, and all others as one, where it has more than 50."""
    if len(mix) <= MOST_KINDS:
        return dict(mix)
    kept = dict(sorted(mix.items(), key=lambda it: -it[1])[: MOST_KINDS - 1])
    return {**kept, _OTHER: sum(mix.values()) - sum(kept.values())}


def _of(kept: QuestionMix) -> _Mix:
    return _Mix(Codebook.from_json(kept.codebook), kept.mix)


def _named_kind(record: RagRecord) -> str | None:
    return next((bounded_text(tag) for tag in record.tags if tag.startswith(KIND_TAG)), None)
