"""Watches the mean of each metric for a drop, in process, score by score."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.stats.drift import STATE_NUMBERS, Cusum
from ragtrace.telemetry.readings import DriftReading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ragtrace.metrics.base import Output
    from ragtrace.model import Score
    from ragtrace.stats.drift import State

_log = logging.getLogger("ragtrace")
DETECTOR = "cusum"
MAX_DETECTORS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftState:
    """One detector in one moment.

    Attributes:
        metric: the metric watched.
        workflow: the workflow watched.
        state: learning, ok, warning or alarm.
        seen: scores taken, those of the baseline among them.
        statistic: the detector's value, 0.0 while it learns.
        threshold: where it alarms; None while it learns.
        baseline_mean: mean of the baseline in score units; None while it learns.
        baseline_sd: its standard deviation.
        baseline_n: its number of scores.
        changed_at: after an alarm, the number of the last score before the estimated change.
        changed_time: the Unix time of that score.
    """

    metric: str
    workflow: str
    state: State
    seen: int
    statistic: float
    threshold: float | None
    baseline_mean: float | None
    baseline_sd: float | None
    baseline_n: int
    changed_at: int | None
    changed_time: float | None


class _Watch:
    """One detector with what it watches; "lower is better" is turned round for it."""

    def __init__(self, output: Output, workflow: str, learn: int) -> None:
        self.output = output
        self.workflow = workflow
        self.cusum = Cusum(learn=learn)
        self.quiet_at = 0.0

    def add(self, value: float, weight: float, at: float) -> bool:
        """Take one score; return whether it raised a new alarm."""
        before = self.cusum.alarms
        self.cusum.add(self._turned(value), weight)
        if self.cusum.statistic == 0.0:
            self.quiet_at = at
        return self.cusum.alarms > before

    def _turned(self, value: float) -> float:
        return value if self.output.direction == "up" else 1.0 - value

    def state(self) -> DriftState:
        cusum, baseline = self.cusum, self.cusum.baseline
        return DriftState(
            metric=self.output.name,
            workflow=self.workflow,
            state=cusum.state,
            seen=cusum.n,
            statistic=cusum.statistic,
            threshold=cusum.threshold,
            baseline_mean=self._turned(baseline.mean) if baseline else None,
            baseline_sd=baseline.sd if baseline else None,
            baseline_n=baseline.n if baseline else 0,
            changed_at=cusum.changed_at,
            changed_time=self.quiet_at if cusum.changed_at is not None else None,
        )


class DriftMonitor:
    """One CUSUM for each metric with a threshold, workflow, judge version and K.

    Takes scores of the random stratum in [0, 1]; a changed judge or prompt begins a detector of its own, since
    that is a change of the measurement. Thread-safe.

    Args:
        outputs: the outputs of the chosen metrics by name.
        baseline: scores that each detector learns from.
        alarmed: called once for each new alarm.
    """

    def __init__(
        self,
        outputs: Mapping[str, Output],
        *,
        baseline: int,
        alarmed: Callable[[DriftReading], None] | None = None,
    ) -> None:
        self._outputs = {n: o for n, o in outputs.items() if o.threshold is not None and 0 <= o.low < o.high <= 1}
        self._baseline = baseline
        self._alarmed = alarmed
        self._lock = threading.Lock()
        self._watches: dict[tuple[str, str, str, int | None], _Watch] = {}

    def observe(self, scores: Sequence[Score], workflow: str) -> None:
        """Take the scores of one trace."""
        for score in scores:
            result = score.result
            output = self._outputs.get(result.name)
            if output is None or result.value is None or score.weight is None or score.stratum != "random":
                continue
            watch = self._watch((result.name, workflow, result.version, result.k), output)
            if watch is not None:
                self._add(watch, result.value, score.weight, score.scored_at)

    def state(self, metric: str) -> DriftState | None:
        """Return the state of a metric's detector, the one furthest along when there are several."""
        with self._lock:
            states = [watch.state() for watch in self._watches.values() if watch.output.name == metric]
        return max(states, key=lambda state: (STATE_NUMBERS[state.state], state.seen), default=None)

    def readings(self) -> Iterable[DriftReading]:
        """Return every detector for the gauges; of several versions of one metric the last begun."""
        with self._lock:
            latest = {(key[0], key[1]): watch.state() for key, watch in self._watches.items()}
        return [_reading(state) for state in latest.values()]

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._lock = threading.Lock()
        self._watches = {}

    def _watch(self, key: tuple[str, str, str, int | None], output: Output) -> _Watch | None:
        with self._lock:
            watch = self._watches.get(key)
            if watch is None and len(self._watches) < MAX_DETECTORS:
                watch = self._watches[key] = _Watch(output, key[1], self._baseline)
            return watch

    def _add(self, watch: _Watch, value: float, weight: float, at: float) -> None:
        with self._lock:
            is_new = watch.add(value, weight, at)
            state = watch.state()
        if not is_new:
            return
        _log.warning(
            "drift: %s of %s fell; baseline mean %.3f over %d scores, statistic %.1f over threshold %.1f",
            state.metric,
            state.workflow,
            state.baseline_mean,
            state.baseline_n,
            state.statistic,
            state.threshold,
        )
        if self._alarmed is not None:
            self._alarmed(_reading(state))


def _reading(state: DriftState) -> DriftReading:
    return DriftReading(
        metric=state.metric,
        workflow=state.workflow,
        detector=DETECTOR,
        state=STATE_NUMBERS[state.state],
        statistic=state.statistic if state.threshold is not None else None,
        threshold=state.threshold,
        change_time=state.changed_time,
        baseline_mean=state.baseline_mean,
        baseline_sd=state.baseline_sd,
        baseline_n=float(state.baseline_n) if state.baseline_mean is not None else None,
    )
