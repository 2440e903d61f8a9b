"""Baselines of the watched series of a running scorer: frozen, or learnt from their first scores."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import structs

from ragtrace import semconv
from ragtrace.capture import guarded, record_internal_error
from ragtrace.model import SeriesKey
from ragtrace.model.cluster import party_of, repeats_of
from ragtrace.stats.baselines import LEARNT_SCORES, Learner
from ragtrace.stats.clusters import HOUR_S, Clustered
from ragtrace.telemetry.metrics.series import judge_version, key_attributes
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.util.types import AttributeValue

    from ragtrace.metrics.base import Output
    from ragtrace.model import RagRecord, Score
    from ragtrace.service.anchors.falls import Falls
    from ragtrace.stats.baselines import Baseline
    from ragtrace.stats.clusters import ClusterMean
    from ragtrace.stores.baselines import FrozenBaseline

MAX_SERIES = 500
_MOST_REFUSED = 10 * MAX_SERIES  # beyond it a series is refused without being counted
REFRESH_S = 10.0
GAUGES = {
    semconv.BASELINE_MEAN: "mean",
    semconv.BASELINE_SD: "sd",
    semconv.BASELINE_N: "n_eff",
    semconv.BASELINE_FROZEN_TIME: "frozen_at",
}
"""Gauges of the baselines, each with its field of `BaselineState`."""


def watched(outputs: Mapping[str, Output]) -> dict[str, Output]:
    """Return the outputs in [0, 1] that are watched for a drop: with a threshold, or because they ask for it."""
    return {name: output for name, output in outputs.items() if output.can_drift}


def turned(output: Output, value: float) -> float:
    """Return a score or mean so that higher is better."""
    return value if output.direction == "up" else 1.0 - value


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineState:
    """The baseline of one series at one moment; fields are None while unknown.

    Attributes:
        key: of the scores.
        mean: in score units.
        sd: standard deviation.
        n_eff: effective number of scores, Kish's (sum of w)^2 / sum of w^2.
        frozen_at: Unix seconds at which it was frozen; None for one that was learnt.
        attributes: the point attributes, as the score counters have them.
    """

    key: SeriesKey
    mean: float | None
    sd: float | None
    n_eff: float | None
    frozen_at: float | None
    attributes: Mapping[str, AttributeValue]


class _Watch:
    """The baseline of one series, turned so that higher is better.

    Attributes:
        begun: the number of its first score among those of all series; 0 before.
        baseline: frozen or learnt; None while it is learnt.
        state: what gauges show, replaced as a whole, so that any thread may read it.
    """

    def __init__(self, output: Output, key: SeriesKey, *, frozen: FrozenBaseline | None = None) -> None:
        self.output = output
        self.key = key
        self.clustered = Clustered()
        self.learner = Learner(LEARNT_SCORES, span_s=HOUR_S)
        self.frozen = frozen
        self.baseline: Baseline | None = None
        self.begin(0, key.version)
        if frozen is not None:
            self.adopt(frozen)

    def begin(self, number: int, judge_version: str | None) -> None:
        """Note the first score: a baseline alone does not tell whether a judge gave its scores."""
        self.begun = number
        self._attributes = clean_attributes(
            {
                **key_attributes(self.key),
                semconv.GEN_AI_WORKFLOW_NAME: self.key.workflow,
                semconv.JUDGE_VERSION: judge_version,
            }
        )
        self._tell()

    def adopt(self, frozen: FrozenBaseline) -> None:
        self.frozen = frozen
        self.baseline = replace(frozen.baseline, mean=turned(self.output, frozen.baseline.mean))
        self._tell()

    def learn(self, x: float, weight: float, at: float) -> None:
        """Take one score, turned, while there is no baseline."""
        if self.baseline is None and (learnt := self.learner.add(x, weight, at)) is not None:
            self.baseline = learnt
            self.learner = Learner(1)
            self._tell()

    def _tell(self) -> None:
        baseline = self.baseline
        self.state = BaselineState(
            key=self.key,
            mean=turned(self.output, baseline.mean) if baseline else None,
            sd=baseline.sd if baseline else None,
            n_eff=baseline.effective if baseline else None,
            frozen_at=self.frozen.frozen_at if self.frozen else None,
            attributes=self._attributes,
        )


class BaselineMonitor:
    """The baseline of each series of a watched metric.

    Takes scores of the random stratum in [0, 1]. A baseline needs independent scores. So the turns of one session
    are one score, their mean within an hour of the first; without a session those of one user are. Of the other
    runs those of one trace or one question within an hour count once (`ragtrace.model.cluster`). A changed judge or
    prompt begins a series of its own, since that is a change of the measurement. A series beyond `MAX_SERIES` is
    not watched, and counted once as lost. Scores and frozen baselines come from the scorer's thread; any thread may
    read `states` and `points`.

    Args:
        outputs: the outputs of the chosen metrics by name.
        frozen: reads the frozen baselines; None = there are none.
        falls: looks for means that seem to fall; None where no anchors are scored.
    """

    def __init__(
        self,
        outputs: Mapping[str, Output],
        *,
        frozen: Callable[[], Sequence[FrozenBaseline]] | None = None,
        falls: Falls | None = None,
    ) -> None:
        self._outputs = watched(outputs)
        self._frozen = frozen
        self._falls = falls
        self._numbers = itertools.count(1)
        self._watches: dict[SeriesKey, _Watch] = {}
        self._refused: set[SeriesKey] = set()
        self._read_at = float("-inf")

    @guarded
    def observe(self, scores: Sequence[Score], workflow: str, record: RagRecord | None = None) -> None:
        """Take the scores of one trace, with its workflow's name as the score counters have it.

        Args:
            scores: of one trace.
            workflow: of the trace.
            record: tells session, user, trace and question; None = nothing is told.
        """
        party = party_of(record) if record is not None else None
        repeats = repeats_of(record) if record is not None else []
        for score in scores:
            result = score.result
            output = self._outputs.get(result.name)
            if output is None or result.value is None or score.weight is None or score.stratum != "random":
                continue
            key = structs.replace(SeriesKey.of(result), workflow=workflow, judge=None)
            watch = self._watch(key, output, judge_version(result))
            if watch is None or (watch.baseline is not None and self._falls is None):
                continue
            taken = watch.clustered.add(result.value, score.weight, score.scored_at, party=party, repeats=repeats)
            self._take(watch, taken)

    def refresh(self) -> None:
        """Take the sessions and users whose hour is over, and frozen baselines that are new or changed.

        Call it as often as you like, it looks every 10 s.

        Raises:
            Exception: what reading them raises; the baselines in use stay.
        """
        now = time.monotonic()
        if now - self._read_at < REFRESH_S:
            return
        self._read_at = now
        for watch in list(self._watches.values()):
            self._take(watch, watch.clustered.closed(time.time()))
        for frozen in self._frozen() if self._frozen is not None else ():
            self._adopt(frozen)

    def look_for_falls(self) -> None:
        """Have the anchors scored at once where a mean seems to fall; call it as often as you like.

        Raises:
            Exception: what reading the anchors raises.
        """
        if self._falls is not None:
            self._falls.look(
                (watch.key, watch.baseline) for watch in list(self._watches.values()) if watch.baseline is not None
            )

    def states(self) -> list[BaselineState]:
        """Return every baseline for the gauges; of versions that differ in nothing else the last begun."""
        watches = sorted(self._watches.copy().values(), key=attrgetter("begun"))
        return list({structs.replace(watch.key, version=None): watch.state for watch in watches}.values())

    def points(self, field: str) -> list[tuple[float, Mapping[str, AttributeValue]]]:
        """Return the points of a gauge: a field of every baseline, where it is known, with its attributes."""
        states = self.states()
        return [(value, state.attributes) for state in states if (value := getattr(state, field)) is not None]

    def _adopt(self, frozen: FrozenBaseline) -> None:
        output = self._outputs.get(frozen.key.metric)
        if output is None:
            return
        watch = self._watches.get(frozen.key)
        if watch is None and self._has_room(frozen.key):
            # Without a score it counts as begun before all others: a version of long ago must not hide today's.
            self._watches[frozen.key] = _Watch(output, frozen.key, frozen=frozen)
        elif watch is not None and watch.frozen != frozen:
            watch.adopt(frozen)

    def _watch(self, key: SeriesKey, output: Output, version: str | None) -> _Watch | None:
        watch = self._watches.get(key)
        if watch is None and self._has_room(key):
            watch = self._watches[key] = _Watch(output, key)
        if watch is not None and not watch.begun:
            watch.begin(next(self._numbers), version)
        return watch

    def _has_room(self, key: SeriesKey) -> bool:
        if len(self._watches) < MAX_SERIES:
            return True
        if key not in self._refused and len(self._refused) < _MOST_REFUSED:
            self._refused.add(key)
            record_internal_error("ragtrace.service.baseline_monitor.series", reason="too many series")
        return False

    def _take(self, watch: _Watch, taken: Sequence[ClusterMean]) -> None:
        for mean in taken:
            x = min(max(turned(watch.output, mean.x), 0.0), 1.0)
            watch.learn(x, mean.weight, mean.at)
            if self._falls is not None:
                self._falls.add(watch.key, x, mean.weight, mean.at)
