"""The scores of one metric: which series of them is looked at."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragtrace.errors import ConfigError
from ragtrace.metrics.registry import output
from ragtrace.stats.change.slices import LEAST_CLUSTERS
from ragtrace.stats.change.step import Timeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.metrics.base import Output
    from ragtrace.model.score import Direction, SeriesKey
    from ragtrace.scoring.investigation.runs import RunScore, Source
    from ragtrace.stats.change.mean import Array, Worse

_RIVAL = 0.5  # of the largest weight: two judges of one stream have equal weights but for chance
HISTORY_S = 14 * 86_400.0
"""Seconds that a search looks back where nobody says otherwise."""
_OF_LATE_S = 86_400.0
_STRAY = 20  # so many scores of another key, or of a clock that is ahead, do not make the others old


class TooFewScores(ConfigError):
    """There are too few scores to compare; the message says of which period, and what to do."""


class NoMetric(ConfigError):
    """No metric with scores can be compared."""


class MetricSeries(NamedTuple):
    """Scores of one judge version, K and kind of labels, in the order of the runs' times.

    Attributes:
        key: of the scores.
        direction: up = higher is better.
        runs: the runs with their scores.
        scores: the same as arrays.
        n_other: scores of the metric that are of other keys.
    """

    key: SeriesKey
    direction: Direction
    runs: list[RunScore]
    scores: Timeline
    n_other: int

    @property
    def worse(self) -> Worse:
        """Sign of a change for the worse."""
        return worse_of(self.direction)

    def before(self, ended: float) -> MetricSeries:
        """Return the scores before a time."""
        own = self.scores.at < ended
        return self._replace(runs=self.runs[: int(own.sum())], scores=self.scores.only(own))

    def too_few(self, *, is_named: bool) -> TooFewScores:
        """Return the error of a series that no window of can be compared.

        Args:
            is_named: whether a person named the window.
        """
        other = f" ({self.n_other} scores of another judge version or K were left out)" if self.n_other else ""
        need = f"{LEAST_CLUSTERS:.0f} of different sessions or questions are needed in the window and before it"
        advice = "choose another --since, or wait" if is_named else "take longer periods, or wait"
        return TooFewScores(f"{self.key.metric}: {len(self.runs)} scores are too few{other}: {need}; {advice}")


def series_of(source: Source, metric: str, *, before: float, until: float) -> list[MetricSeries]:
    """Return the series of a metric that are scored of late, the heaviest first.

    Scores of two judge versions, K or kinds of labels are never joined, and a series that is scored no more is left
    out. Series of at least half the weight of the heaviest stand side by side: the judges of two-judge scoring both
    stand for all traffic.

    Args:
        source: where the scores stand.
        metric: the exported name.
        before: Unix seconds of the earliest run.
        until: Unix seconds after the last one.

    Raises:
        NoMetric: there are no scores.
    """
    by_key: defaultdict[SeriesKey, list[RunScore]] = defaultdict(list)
    scores = source.scores(metric, before, until)
    if not scores:
        raise NoMetric(f"{metric}: there is no score in this time; {_there(source)}")
    for run in scores:
        by_key[run.key].append(run)
    found = {key: _series(key, own, len(scores) - len(own)) for key, own in by_key.items()}
    late = keys_of_late({key: (it.scores.at, it.scores.weights) for key, it in found.items()})
    return [found[key] for key in late]


def keys_of_late(series: Mapping[SeriesKey, tuple[Array, Array]]) -> list[SeriesKey]:
    """Return the keys of a metric that are scored of late, the heaviest first, as `series_of` looks at them.

    Args:
        series: times and weights of the scores of each key; at least one score of each.
    """
    newest = np.sort(np.concatenate([at for at, _ in series.values()]))[-_STRAY:]
    late = float(newest[0]) - _OF_LATE_S
    weights = {key: float(weight[at >= late].sum()) for key, (at, weight) in series.items()}
    heaviest = sorted(weights, key=lambda key: -weights[key])
    return [key for key in heaviest if weights[key] >= _RIVAL * weights[heaviest[0]]]


def _series(key: SeriesKey, scores: Sequence[RunScore], n_other: int) -> MetricSeries:
    runs = sorted(scores, key=lambda run: run.at)
    places: dict[object, int] = {}
    timeline = Timeline(
        at=np.array([run.at for run in runs], dtype=np.float64),
        values=np.array([run.value for run in runs], dtype=np.float64),
        weights=np.array([run.weight for run in runs], dtype=np.float64),
        clusters=np.array([places.setdefault(run.cluster, len(places)) for run in runs], dtype=np.intp),
        ends=_ends(key.metric),
    )
    return MetricSeries(key, direction_of(key.metric), runs, timeline, n_other)


def _there(source: Source) -> str:
    """Return the metrics that a source has scores of, as advice."""
    names = source.metrics()
    return f"choose other times, or a metric that has scores: {', '.join(names)}" if names else "nothing is scored"


def is_watched(name: str) -> bool:
    """Return whether a change for the worse is looked for: of metrics with a threshold and values from 0 to 1."""
    known = known_output(name)
    return known is not None and known.can_drift


def direction_of(metric: str) -> Direction:
    """Return whether more of a metric is better; ``up`` where it is not installed."""
    known = known_output(metric)
    return known.direction if known is not None else "up"


def worse_of(direction: Direction) -> Worse:
    """Return the sign of a change for the worse."""
    return -1 if direction == "up" else 1


def known_output(name: str) -> Output | None:
    """Return the output of a name; None where its package is not installed."""
    try:
        return output(name)
    except ConfigError:
        return None


def _ends(metric: str) -> tuple[float, float] | None:
    """Return the ends of a metric's scale; None without finite ones, or where the metric is not installed."""
    known = known_output(metric)
    return (known.low, known.high) if known is not None and math.isfinite(known.high - known.low) else None
