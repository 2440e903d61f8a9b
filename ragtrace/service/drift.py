"""Watch the mean of each metric for a drop, score by score."""

from __future__ import annotations

import itertools
import logging
import time
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import structs

from ragtrace import semconv
from ragtrace.capture import guarded, record_internal_error
from ragtrace.model import SeriesKey
from ragtrace.model.cluster import party_of, repeats_of
from ragtrace.stats.clusters import Clustered
from ragtrace.stats.drift import STATE_NUMBERS, EDetector
from ragtrace.telemetry.metrics.series import judge_version, key_attributes
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.util.types import AttributeValue

    from ragtrace.metrics.base import Output
    from ragtrace.model import RagRecord, Score
    from ragtrace.service.anchors.culprits import Culprits
    from ragtrace.stats.clusters import ClusterMean
    from ragtrace.stats.drift import State
    from ragtrace.stores.baselines import FrozenBaseline

_log = logging.getLogger("ragtrace")
DETECTOR = "e_detector"
MAX_SERIES = 500
_MOST_REFUSED = 10 * MAX_SERIES  # beyond it a series is refused without being counted
REFRESH_S = 10.0
GAUGES = {
    semconv.DRIFT_STATISTIC: "statistic",
    semconv.DRIFT_THRESHOLD: "threshold",
    semconv.DRIFT_STATE: "state_number",
    semconv.DRIFT_CHANGE_TIME: "changed_time",
    semconv.BASELINE_MEAN: "baseline_mean",
    semconv.BASELINE_SD: "baseline_sd",
    semconv.BASELINE_N: "baseline_n_eff",
    semconv.BASELINE_FROZEN_TIME: "frozen_at",
}
"""Gauges of drift and baseline, each with its field of `DriftState`."""


def watched(outputs: Mapping[str, Output]) -> dict[str, Output]:
    """Return the outputs in [0, 1] that are watched for a drop: with a threshold, or because they ask for it."""
    return {name: output for name, output in outputs.items() if output.can_drift}


def turned(output: Output, value: float) -> float:
    """Return a score or mean so that higher is better."""
    return value if output.direction == "up" else 1.0 - value


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftState:
    """The detector of one series at one moment; fields are None while unknown.

    Attributes:
        key: of the scores.
        state: learning, ok, warning or alarm.
        seen: scores taken, those of the baseline among them.
        statistic: the detector's value.
        threshold: where it alarms.
        baseline_mean: mean of the baseline in score units.
        baseline_sd: its standard deviation.
        baseline_n: its number of scores.
        baseline_n_eff: its effective number of scores, Kish's (sum of w)^2 / sum of w^2.
        frozen_at: Unix seconds at which it was frozen; None for one that was learnt.
        changed_at: while it alarms, the number of the last score before the estimated change.
        changed_time: the Unix time of that score.
        attributes: the point attributes, as the score counters have them.
    """

    key: SeriesKey
    state: State
    seen: int
    statistic: float | None
    threshold: float | None
    baseline_mean: float | None
    baseline_sd: float | None
    baseline_n: int
    baseline_n_eff: float | None
    frozen_at: float | None
    changed_at: int | None
    changed_time: float | None
    attributes: Mapping[str, AttributeValue]

    @property
    def state_number(self) -> int:
        """The state as its gauge shows it: 0 learning, 1 ok, 2 warning, 3 alarm."""
        return STATE_NUMBERS[self.state]


class _Watch:
    """The detector of one series, on a learnt or a frozen baseline.

    Attributes:
        begun: the number of its first score among those of all series; 0 before.
        state: of the detector as of the last score, replaced as a whole, so that any thread may read it.
    """

    def __init__(
        self, output: Output, key: SeriesKey, detector: EDetector, *, begun: int, frozen: FrozenBaseline | None
    ) -> None:
        self.output = output
        self.key = key
        self.detector = detector
        self.frozen = frozen
        self.clustered = Clustered()
        self.begin(begun, key.version)

    def begin(self, number: int, judge_version: str | None) -> None:
        """Note the first score: a baseline alone does not tell whether a judge gave its scores."""
        self.begun = number
        self.attributes = clean_attributes(
            {
                **key_attributes(self.key),
                semconv.GEN_AI_WORKFLOW_NAME: self.key.workflow,
                semconv.JUDGE_VERSION: judge_version,
                semconv.DETECTOR: DETECTOR,
            }
        )
        self.state = self._state()

    def add(self, value: float, weight: float, at: float) -> DriftState:
        x = min(max(turned(self.output, value), 0.0), 1.0)
        self.detector.add(x, weight, at)
        self.state = self._state()
        return self.state

    def _state(self) -> DriftState:
        detector, baseline = self.detector, self.detector.baseline
        return DriftState(
            key=self.key,
            state=detector.state,
            seen=detector.n,
            statistic=detector.statistic if baseline else None,
            threshold=detector.threshold,
            baseline_mean=turned(self.output, baseline.mean) if baseline else None,
            baseline_sd=baseline.sd if baseline else None,
            baseline_n=baseline.n if baseline else 0,
            baseline_n_eff=baseline.effective if baseline else None,
            frozen_at=self.frozen.frozen_at if self.frozen else None,
            changed_at=detector.changed_at,
            changed_time=detector.changed_time,
            attributes=self.attributes,
        )


class DriftMonitor:
    """An e-detector for each series of a watched metric.

    Takes scores of the random stratum in [0, 1]. A detector needs independent scores. So the turns of one session
    are one score, their mean within an hour of the first; without a session those of one user are. Of the other
    runs those of one trace or one question within an hour count once (`ragtrace.model.cluster`). What is alike
    without telling it shows in the baseline (`ragtrace.stats.blocks`). A changed judge or prompt begins a detector
    of its own, since that is a change of the measurement. An alarm ends, with a logged line, when its evidence is
    gone. A series beyond `MAX_SERIES` is not watched, and counted once as lost. Scores and baselines come from the
    scorer's thread; any thread may read `states` and `points`.

    Args:
        outputs: the outputs of the chosen metrics by name.
        baseline: scores that each series learns its baseline from, where it has no frozen one.
        tolerance: the drop that is not worth an alarm, in score units.
        count_alarms: called with attributes and 0 at a series' first score, with 1 at each new alarm.
        on_alarm: called at each new alarm with the key of the series, the time of the change and the point
            attributes, in the scorer's thread.
        frozen: reads the frozen baselines; None = there are none.
        culprits: names who caused a drop; None where no anchors are scored.
    """

    def __init__(
        self,
        outputs: Mapping[str, Output],
        *,
        baseline: int,
        tolerance: float = 0.02,
        count_alarms: Callable[[Mapping[str, AttributeValue], int], None] = lambda _attributes, _count: None,
        on_alarm: Callable[[SeriesKey, float | None, Mapping[str, AttributeValue]], None] | None = None,
        frozen: Callable[[], Sequence[FrozenBaseline]] | None = None,
        culprits: Culprits | None = None,
    ) -> None:
        self._outputs = watched(outputs)
        self._culprits = culprits
        self._learn = baseline
        self._tolerance = tolerance
        self._count_alarms = count_alarms
        self._on_alarm = on_alarm
        self._frozen = frozen
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
            if watch is None:
                continue
            taken = watch.clustered.add(result.value, score.weight, score.scored_at, party=party, repeats=repeats)
            self._add(watch, taken)

    def refresh(self) -> None:
        """Take the sessions and users whose hour is over, and frozen baselines that are new or changed.

        Call it as often as you like, it looks every 10 s.

        The detector of such a series begins anew on it: its evidence was against another normal.

        Raises:
            Exception: what reading them raises; the baselines in use stay.
        """
        now = time.monotonic()
        if now - self._read_at < REFRESH_S:
            return
        self._read_at = now
        for watch in list(self._watches.values()):
            self._add(watch, watch.clustered.closed(time.time()))
        for frozen in self._frozen() if self._frozen is not None else ():
            self._adopt(frozen)

    def name_culprits(self) -> None:
        """Name who caused the drops that alarm, and have a falling mean looked into; call it as often as you like.

        Raises:
            Exception: what reading the anchors raises.
        """
        if self._culprits is not None:
            self._culprits.look(
                (watch.key, baseline, watch.output.direction == "down", watch.state.state == "alarm")
                for watch in list(self._watches.values())
                if (baseline := watch.detector.baseline) is not None
            )

    def states(self) -> list[DriftState]:
        """Return every detector for the gauges; of versions that differ in nothing else the last begun."""
        watches = sorted(self._watches.copy().values(), key=attrgetter("begun"))
        return list({structs.replace(watch.key, version=None): watch.state for watch in watches}.values())

    def points(self, field: str) -> list[tuple[float, Mapping[str, AttributeValue]]]:
        """Return the points of a gauge: a field of every detector, where it is known, with its attributes."""
        states = self.states()
        return [(value, state.attributes) for state in states if (value := getattr(state, field)) is not None]

    def _adopt(self, frozen: FrozenBaseline) -> None:
        output = self._outputs.get(frozen.key.metric)
        if output is None:
            return
        watch = self._watches.get(frozen.key)
        if not self._has_room(frozen.key) or (watch and watch.frozen == frozen):
            return
        # Without a score it counts as begun before all others: a version of long ago must not hide today's.
        begun = watch.begun if watch is not None else 0
        new = self._new_watch(output, frozen.key, begun=begun, frozen=frozen)
        if watch is not None:
            new.clustered = watch.clustered
        self._watches[frozen.key] = new
        if watch is not None and watch.state.state == "alarm":
            _log_over(watch.state, "there is a new baseline")

    def _new_watch(
        self, output: Output, key: SeriesKey, *, begun: int = 0, frozen: FrozenBaseline | None = None
    ) -> _Watch:
        baseline = frozen.baseline if frozen else None
        detector = EDetector(
            learn=self._learn,
            tolerance=self._tolerance,
            baseline=replace(baseline, mean=turned(output, baseline.mean)) if baseline else None,
        )
        return _Watch(output, key, detector, begun=begun, frozen=frozen)

    def _watch(self, key: SeriesKey, output: Output, version: str | None) -> _Watch | None:
        watch = self._watches.get(key)
        if watch is None and self._has_room(key):
            watch = self._watches[key] = self._new_watch(output, key)
        if watch is not None and not watch.begun:
            watch.begin(next(self._numbers), version)
            self._count_alarms(watch.attributes, 0)
        return watch

    def _has_room(self, key: SeriesKey) -> bool:
        if key in self._watches or len(self._watches) < MAX_SERIES:
            return True
        if key not in self._refused and len(self._refused) < _MOST_REFUSED:
            self._refused.add(key)
            record_internal_error("ragtrace.service.drift.series", reason="too many series")
        return False

    def _add(self, watch: _Watch, taken: Sequence[ClusterMean]) -> None:
        for mean in taken:
            self._take(watch, mean)

    def _take(self, watch: _Watch, mean: ClusterMean) -> None:
        was_alarm = watch.state.state == "alarm"
        state = watch.add(mean.x, mean.weight, mean.at)
        if self._culprits is not None:
            turned_x = min(max(turned(watch.output, mean.x), 0.0), 1.0)
            self._culprits.add(watch.key, turned_x, mean.weight, mean.at)
        if (state.state == "alarm") == was_alarm:
            return
        if state.state != "alarm":
            _log_over(state, "its evidence is gone")
            return
        _log.warning(
            "drift alarm: %s of %s fell; baseline mean %.3f over %d scores, %s %.1f over threshold %.1f%s",
            state.key.metric,
            state.key.workflow,
            state.baseline_mean,
            state.baseline_n,
            DETECTOR,
            state.statistic,
            state.threshold,
            self._culprit_text(watch),
        )
        self._count_alarms(state.attributes, 1)
        if self._on_alarm is not None:
            self._on_alarm(state.key, state.changed_time, state.attributes)

    def _culprit_text(self, watch: _Watch) -> str:
        if self._culprits is None:
            return ""
        is_down = watch.output.direction == "down"
        return f"; culprit: {self._culprits.of(watch.key, watch.detector.baseline, is_down=is_down)}"


def _log_over(state: DriftState, reason: str) -> None:
    _log.warning("drift over: %s of %s, %s; %s", state.key.metric, state.key.workflow, DETECTOR, reason)
