"""Watches the mean of each metric for a drop, in process, score by score."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from ragtrace.capture import record_internal_error
from ragtrace.stats.baseline import STATE_NUMBERS, Series
from ragtrace.stats.drift import Cusum
from ragtrace.stats.e_detector import EDetector
from ragtrace.telemetry.readings import DriftReading
from ragtrace.telemetry.series import judge_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ragtrace.metrics.base import Output
    from ragtrace.model import MetricResult, Score
    from ragtrace.stats.baseline import Baseline, State
    from ragtrace.stores.baselines import FrozenBaseline

_log = logging.getLogger("ragtrace")
Detector = Literal["cusum", "e_detector"]
DETECTORS: tuple[Detector, ...] = ("cusum", "e_detector")
MAX_SERIES = 500
_MOST_REFUSED = 10 * MAX_SERIES  # beyond it a series is refused without being counted
REFRESH_S = 10.0
# One batch of bad luck crosses the CUSUM at 1,000 scores a day and more: it never pages (MONITORING.md 4, item 2).
_MOST = {"cusum": STATE_NUMBERS["warning"], "e_detector": STATE_NUMBERS["alarm"]}


def watched(outputs: Mapping[str, Output]) -> dict[str, Output]:
    """Return the outputs that can be watched for a drop: those in [0, 1] that have a threshold."""
    return {n: o for n, o in outputs.items() if o.threshold is not None and 0 <= o.low < o.high <= 1}


def turned(output: Output, value: float) -> float:
    """Return a score or mean so that higher is better."""
    return value if output.direction == "up" else 1.0 - value


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftState:
    """One detector in one moment.

    Attributes:
        metric: the metric watched.
        workflow: the workflow watched.
        judge_version: whose scores; None where nothing is judged.
        k: the cut-off of an @K metric.
        label_scale: the scale of the labels behind it; None where there are none.
        universe: which passages were labelled; None where there are none.
        detector: ``cusum`` or ``e_detector``.
        state: learning, ok, warning or alarm.
        seen: scores taken, those of the baseline among them.
        statistic: the detector's value, 0.0 while it learns.
        threshold: where it alarms; None while it learns.
        baseline_mean: mean of the baseline in score units; None while it learns.
        baseline_sd: its standard deviation.
        baseline_n: its number of scores.
        baseline_n_eff: its effective number of scores; None while it learns.
        frozen_at: Unix seconds at which it was frozen; None for one that was learnt.
        changed_at: while it alarms, the number of the last score before the estimated change.
        changed_time: the Unix time of that score.
    """

    metric: str
    workflow: str
    judge_version: str | None
    k: int | None
    label_scale: str | None
    universe: str | None
    detector: Detector
    state: State
    seen: int
    statistic: float
    threshold: float | None
    baseline_mean: float | None
    baseline_sd: float | None
    baseline_n: int
    baseline_n_eff: float | None
    frozen_at: float | None
    changed_at: int | None
    changed_time: float | None


class _Watch:
    """Both detectors of one series; they learn the same baseline, or are given the frozen one."""

    def __init__(
        self,
        output: Output,
        series: Series,
        *,
        learn: int,
        tolerance: float,
        begun: int,
        frozen: FrozenBaseline | None = None,
    ) -> None:
        self.output = output
        # Of a baseline alone nothing tells whether a judge gave its scores; the first score does.
        self.series = series
        self.judge_version: str | None = series.version
        self.frozen = frozen
        self.begun = begun
        baseline = None if frozen is None else _turned_baseline(output, frozen.baseline)
        self._cusum = Cusum(learn=learn, baseline=baseline)
        self._e_detector = EDetector(learn=learn, tolerance=tolerance, baseline=baseline)
        self._quiet_at: float | None = None

    def add(self, value: float, weight: float, at: float) -> list[Detector]:
        """Take one score; return the detectors whose alarm it began or ended."""
        before = self.alarmed()
        x = min(max(turned(self.output, value), 0.0), 1.0)
        self._cusum.add(x, weight)
        self._e_detector.add(x, weight, at)
        if self._cusum.statistic == 0.0:  # never while it alarms: an alarm ends there
            self._quiet_at = at
        after = self.alarmed()
        return [name for name in DETECTORS if (name in before) != (name in after)]

    def alarmed(self) -> list[Detector]:
        """Return the detectors that alarm."""
        states = (self._cusum.state, self._e_detector.state)
        return [name for name, state in zip(DETECTORS, states, strict=True) if state == "alarm"]

    def state(self, detector: Detector) -> DriftState:
        found = self._cusum if detector == "cusum" else self._e_detector
        baseline = found.baseline
        changed_time = self._quiet_at if detector == "cusum" else self._e_detector.changed_time
        return DriftState(
            metric=self.output.name,
            workflow=self.series.workflow,
            judge_version=self.judge_version,
            k=self.series.k,
            label_scale=self.series.label_scale,
            universe=self.series.universe,
            detector=detector,
            state=found.state,
            seen=found.n,
            statistic=found.statistic,
            threshold=found.threshold,
            baseline_mean=turned(self.output, baseline.mean) if baseline else None,
            baseline_sd=baseline.sd if baseline else None,
            baseline_n=baseline.n if baseline else 0,
            baseline_n_eff=baseline.effective if baseline else None,
            frozen_at=self.frozen.frozen_at if self.frozen else None,
            changed_at=found.changed_at,
            changed_time=changed_time if found.changed_at is not None else None,
        )


class DriftMonitor:
    """An e-detector and a CUSUM for each series of a metric with a threshold.

    Takes scores of the random stratum in [0, 1]; a changed judge or prompt begins detectors of its own, since that
    is a change of the measurement. The e-detector's alarm is one; the CUSUM's is counted, logged and exported as a
    warning. An alarm ends, with a logged line, when its evidence is gone. A series beyond `MAX_SERIES` is not
    watched, and counted once as lost. Thread-safe.

    Args:
        outputs: the outputs of the chosen metrics by name.
        baseline: scores that each series learns its baseline from, where it has no frozen one.
        tolerance: the drop that is not worth an alarm, in score units.
        begun: called once for each detector when its series has a first score.
        alarmed: called once for each new alarm, of either detector.
        frozen: reads the frozen baselines; None = there are none.
    """

    def __init__(
        self,
        outputs: Mapping[str, Output],
        *,
        baseline: int,
        tolerance: float = 0.02,
        begun: Callable[[DriftReading], None] | None = None,
        alarmed: Callable[[DriftReading], None] | None = None,
        frozen: Callable[[], Sequence[FrozenBaseline]] | None = None,
    ) -> None:
        self._outputs = watched(outputs)
        self._made = partial(_Watch, learn=baseline, tolerance=tolerance)
        self._begun = begun
        self._alarmed = alarmed
        self._frozen = frozen
        self._read_at = float("-inf")
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._watches: dict[Series, _Watch] = {}
        self._refused: set[Series] = set()

    def observe(self, scores: Sequence[Score], workflow: str) -> None:
        """Take the scores of one trace, with its workflow's name as the scores' counters have it."""
        for score in scores:
            result = score.result
            output = self._outputs.get(result.name)
            if output is None or result.value is None or score.weight is None or score.stratum != "random":
                continue
            watch = self._watch(_series(result, workflow), output, judge_version(result))
            if watch is not None:
                self._add(watch, result.value, score.weight, score.scored_at)

    def refresh(self) -> None:
        """Take frozen baselines that are new or changed; call it as often as you like, it reads every 10 s.

        The detectors of such a series begin anew on it: their evidence was against another normal.

        Raises:
            Exception: what reading them raises; the baselines in use stay.
        """
        now = time.monotonic()
        if self._frozen is None or now - self._read_at < REFRESH_S:
            return
        self._read_at = now
        for frozen in self._frozen():
            self._adopt(frozen)

    def state(self, metric: str, detector: Detector = "cusum") -> DriftState | None:
        """Return the state of a metric's detector, the one furthest along when there are several."""
        with self._lock:
            states = [watch.state(detector) for watch in self._watches.values() if watch.output.name == metric]
        return max(states, key=lambda state: (STATE_NUMBERS[state.state], state.seen), default=None)

    def readings(self) -> Iterable[DriftReading]:
        """Return every detector for the gauges; of versions that differ in nothing else the last begun."""
        with self._lock:
            latest = {
                watch.series._replace(version=""): watch
                for watch in sorted(self._watches.values(), key=lambda watch: watch.begun)
            }
            states = [watch.state(detector) for watch in latest.values() for detector in DETECTORS]
        return [_reading(state) for state in states]

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()
        self._watches = {}
        self._refused = set()
        self._read_at = float("-inf")

    def _adopt(self, frozen: FrozenBaseline) -> None:
        output = self._outputs.get(frozen.metric)
        if output is None:
            return
        with self._lock:
            watch = self._watches.get(frozen.series)
            if not self._has_room(frozen.series) or (watch and watch.frozen == frozen):
                return
            over = [watch.state(name) for name in watch.alarmed()] if watch else []
            # Without a score it counts as begun before all others: a version of long ago must not hide today's.
            begun = watch.begun if watch is not None else 0
            self._watches[frozen.series] = self._made(output, frozen.series, begun=begun, frozen=frozen)
        for state in over:
            _log_over(state, "there is a new baseline")

    def _watch(self, series: Series, output: Output, version: str | None) -> _Watch | None:
        with self._lock:
            watch = self._watches.get(series)
            if watch is None and self._has_room(series):
                watch = self._watches[series] = self._made(output, series, begun=0)
            if watch is None or watch.begun:
                return watch
            watch.begun, watch.judge_version = next(self._numbers), version
            states = [watch.state(detector) for detector in DETECTORS]
        if self._begun is not None:
            for state in states:
                self._begun(_reading(state))
        return watch

    def _has_room(self, series: Series) -> bool:
        if series in self._watches or len(self._watches) < MAX_SERIES:
            return True
        if series not in self._refused and len(self._refused) < _MOST_REFUSED:
            self._refused.add(series)
            record_internal_error("ragtrace.service.drift.series")
        return False

    def _add(self, watch: _Watch, value: float, weight: float, at: float) -> None:
        with self._lock:
            states = [watch.state(name) for name in watch.add(value, weight, at)]
        for state in states:
            if state.state != "alarm":
                _log_over(state, "its evidence is gone")
                continue
            _log.warning(
                "drift %s: %s of %s fell; baseline mean %.3f over %d scores, %s %.1f over threshold %.1f",
                "alarm" if _MOST[state.detector] == STATE_NUMBERS["alarm"] else "warning",
                state.metric,
                state.workflow,
                state.baseline_mean,
                state.baseline_n,
                state.detector,
                state.statistic,
                state.threshold,
            )
            if self._alarmed is not None:
                self._alarmed(_reading(state))


def _series(result: MetricResult, workflow: str) -> Series:
    scale = result.judge.label_scale if result.judge else None
    return Series(result.name, workflow, result.version, result.k, scale or None, result.universe or None)


def _log_over(state: DriftState, reason: str) -> None:
    _log.warning("drift over: %s of %s, %s; %s", state.metric, state.workflow, state.detector, reason)


def _turned_baseline(output: Output, baseline: Baseline) -> Baseline:
    return replace(baseline, mean=turned(output, baseline.mean))


def _reading(state: DriftState) -> DriftReading:
    return DriftReading(
        metric=state.metric,
        workflow=state.workflow,
        judge_version=state.judge_version,
        k=state.k,
        label_scale=state.label_scale,
        universe=state.universe,
        detector=state.detector,
        state=min(STATE_NUMBERS[state.state], _MOST[state.detector]),
        statistic=state.statistic if state.threshold is not None else None,
        threshold=state.threshold,
        changed_time=state.changed_time,
        baseline_mean=state.baseline_mean,
        baseline_sd=state.baseline_sd,
        baseline_n_eff=state.baseline_n_eff,
        frozen_at=state.frozen_at,
    )
