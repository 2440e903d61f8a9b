"""Watches the mean of each metric for a drop, in process, score by score."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from ragtrace.stats.baseline import STATE_NUMBERS
from ragtrace.stats.drift import Cusum
from ragtrace.stats.e_detector import EDetector
from ragtrace.telemetry.readings import DriftReading
from ragtrace.telemetry.series import judge_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ragtrace.metrics.base import Output
    from ragtrace.model import Score
    from ragtrace.stats.baseline import Baseline, State
    from ragtrace.stores.baselines import FrozenBaseline

_log = logging.getLogger("ragtrace")
Detector = Literal["cusum", "e_detector"]
Series = tuple[str, str, str, int | None]
"""Metric, workflow, version and K."""
DETECTORS: tuple[Detector, ...] = ("cusum", "e_detector")
MAX_SERIES = 500
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
        detector: ``cusum`` or ``e_detector``.
        state: learning, ok, warning or alarm.
        seen: scores taken, those of the baseline among them.
        statistic: the detector's value, 0.0 while it learns.
        threshold: where it alarms; None while it learns.
        baseline_mean: mean of the baseline in score units; None while it learns.
        baseline_sd: its standard deviation.
        baseline_n: its number of scores.
        frozen_at: Unix seconds at which it was frozen; None for one that was learnt.
        changed_at: after an alarm, the number of the last score before the estimated change.
        changed_time: the Unix time of that score.
    """

    metric: str
    workflow: str
    judge_version: str | None
    k: int | None
    detector: Detector
    state: State
    seen: int
    statistic: float
    threshold: float | None
    baseline_mean: float | None
    baseline_sd: float | None
    baseline_n: int
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
        self.workflow, self.k = series[1], series[3]
        self.judge_version: str | None = series[2]
        self.frozen = frozen
        self.begun = begun
        baseline = None if frozen is None else _turned_baseline(output, frozen.baseline)
        self._cusum = Cusum(learn=learn, baseline=baseline)
        self._e_detector = EDetector(learn=learn, tolerance=tolerance, baseline=baseline)
        self._quiet_at: float | None = None

    def add(self, value: float, weight: float, at: float) -> list[Detector]:
        """Take one score; return the detectors that it made alarm."""
        before = (self._cusum.alarms, self._e_detector.alarms)
        x = min(max(turned(self.output, value), 0.0), 1.0)
        self._cusum.add(x, weight)
        self._e_detector.add(x, weight, at)
        if self._cusum.statistic == 0.0:
            self._quiet_at = at
        after = (self._cusum.alarms, self._e_detector.alarms)
        return [name for name, a, b in zip(DETECTORS, before, after, strict=True) if b > a]

    def state(self, detector: Detector) -> DriftState:
        found = self._cusum if detector == "cusum" else self._e_detector
        baseline = found.baseline
        changed_time = self._quiet_at if detector == "cusum" else self._e_detector.changed_time
        return DriftState(
            metric=self.output.name,
            workflow=self.workflow,
            judge_version=self.judge_version,
            k=self.k,
            detector=detector,
            state=found.state,
            seen=found.n,
            statistic=found.statistic,
            threshold=found.threshold,
            baseline_mean=turned(self.output, baseline.mean) if baseline else None,
            baseline_sd=baseline.sd if baseline else None,
            baseline_n=baseline.n if baseline else 0,
            frozen_at=self.frozen.frozen_at if self.frozen else None,
            changed_at=found.changed_at,
            changed_time=changed_time if found.changed_at is not None else None,
        )


class DriftMonitor:
    """An e-detector and a CUSUM for each metric with a threshold, workflow, judge version and K.

    Takes scores of the random stratum in [0, 1]; a changed judge or prompt begins detectors of its own, since that
    is a change of the measurement. The e-detector's alarm is one; the CUSUM's is counted, logged and exported as a
    warning. Thread-safe.

    Args:
        outputs: the outputs of the chosen metrics by name.
        baseline: scores that each series learns its baseline from, where it has no frozen one.
        tolerance: the drop that is not worth an alarm, in score units.
        alarmed: called once for each new alarm, of either detector.
        frozen: reads the frozen baselines; None = there are none.
    """

    def __init__(
        self,
        outputs: Mapping[str, Output],
        *,
        baseline: int,
        tolerance: float = 0.02,
        alarmed: Callable[[DriftReading], None] | None = None,
        frozen: Callable[[], Sequence[FrozenBaseline]] | None = None,
    ) -> None:
        self._outputs = watched(outputs)
        self._made = partial(_Watch, learn=baseline, tolerance=tolerance)
        self._alarmed = alarmed
        self._frozen = frozen
        self._read_at = float("-inf")
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._watches: dict[Series, _Watch] = {}

    def observe(self, scores: Sequence[Score], workflow: str) -> None:
        """Take the scores of one trace."""
        for score in scores:
            result = score.result
            output = self._outputs.get(result.name)
            if output is None or result.value is None or score.weight is None or score.stratum != "random":
                continue
            watch = self._watch((result.name, workflow, result.version, result.k), output)
            if watch is not None:
                watch.judge_version = judge_version(result)
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
        """Return every detector for the gauges; of several versions of one metric and K the last begun."""
        with self._lock:
            latest = {
                (watch.output.name, watch.workflow, watch.k): watch
                for watch in sorted(self._watches.values(), key=lambda watch: watch.begun)
            }
            states = [watch.state(detector) for watch in latest.values() for detector in DETECTORS]
        return [_reading(state) for state in states]

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()
        self._watches = {}
        self._read_at = float("-inf")

    def _adopt(self, frozen: FrozenBaseline) -> None:
        output = self._outputs.get(frozen.metric)
        if output is None:
            return
        with self._lock:
            watch = self._watches.get(frozen.series)
            if (watch is None and len(self._watches) >= MAX_SERIES) or (watch and watch.frozen == frozen):
                return
            # Without a score it counts as begun before all others: a version of long ago must not hide today's.
            begun = watch.begun if watch is not None else 0
            self._watches[frozen.series] = self._made(output, frozen.series, begun=begun, frozen=frozen)

    def _watch(self, series: Series, output: Output) -> _Watch | None:
        with self._lock:
            watch = self._watches.get(series)
            if watch is None and len(self._watches) < MAX_SERIES:
                begun = next(self._numbers)
                watch = self._watches[series] = self._made(output, series, begun=begun)
            elif watch is not None and watch.begun == 0:
                watch.begun = next(self._numbers)
            return watch

    def _add(self, watch: _Watch, value: float, weight: float, at: float) -> None:
        with self._lock:
            states = [watch.state(name) for name in watch.add(value, weight, at)]
        for state in states:
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


def _turned_baseline(output: Output, baseline: Baseline) -> Baseline:
    return replace(baseline, mean=turned(output, baseline.mean))


def _reading(state: DriftState) -> DriftReading:
    return DriftReading(
        metric=state.metric,
        workflow=state.workflow,
        judge_version=state.judge_version,
        k=state.k,
        detector=state.detector,
        state=min(STATE_NUMBERS[state.state], _MOST[state.detector]),
        statistic=state.statistic if state.threshold is not None else None,
        threshold=state.threshold,
        change_time=state.changed_time,
        baseline_mean=state.baseline_mean,
        baseline_sd=state.baseline_sd,
        baseline_n=float(state.baseline_n) if state.baseline_mean is not None else None,
        frozen_time=state.frozen_at,
    )
