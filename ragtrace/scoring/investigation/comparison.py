"""The scores of one metric in two periods: which of them are compared."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragtrace.errors import ConfigError
from ragtrace.metrics.registry import output
from ragtrace.stats.change.mean import TwoPeriods, mean_change
from ragtrace.stats.change.slices import LEAST_CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.metrics.base import Output
    from ragtrace.model.score import Direction, SeriesKey
    from ragtrace.scoring.investigation.runs import RunScore, Source
    from ragtrace.stats.change.mean import Change, Worse

_RIVAL = 0.5  # of the largest weight: two judges of one stream have equal weights but for chance


class TooFewScores(ConfigError):
    """There are too few scores to compare; the message says of which period, and what to do.

    Attributes:
        is_before: whether it is the earlier period that has too few.
    """

    def __init__(self, message: str, *, is_before: bool = False) -> None:
        super().__init__(message)
        self.is_before = is_before


class NoMetric(ConfigError):
    """No metric with scores can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The two periods that are compared: ``[before, since)`` and ``[since, until)``.

    Attributes:
        before: Unix seconds.
        since: Unix seconds.
        until: Unix seconds.
        looks: number by which p-values are multiplied where `since` was chosen by the scores themselves.
    """

    before: float
    since: float
    until: float
    looks: int = 1


class MetricChange(NamedTuple):
    """Scores of one series, in the order of time, with the change of their mean.

    `others` are the series of the metric that were compared too, and changed less surely.
    """

    key: SeriesKey
    direction: Direction
    runs: list[RunScore]
    scores: TwoPeriods
    change: Change
    others: tuple[SeriesKey, ...] = ()

    @property
    def worse(self) -> Worse:
        """Sign of a change for the worse."""
        return worse_of(self.direction)

    @property
    def p(self) -> float:
        """The p-value of the change, multiplied by the number of series that were compared."""
        return self.change.p * (1 + len(self.others))


def compared(
    source: Source, period: Period, metric: str, *, is_wanted: Callable[[SeriesKey], bool] = lambda _key: True
) -> MetricChange:
    """Return the scores of a metric in two periods, of one judge version, K and kind of labels.

    Series of at least half the weight of the heaviest are compared one by one: the judges of two-judge scoring both
    stand for all traffic. The one that changed most surely is taken.

    Args:
        source: where the scores stand.
        period: what is compared.
        metric: the exported name.
        is_wanted: says which series to look at, where there are such.

    Raises:
        TooFewScores: a period has fewer than 20 independent scores.
        NoMetric: there are no scores to compare.
    """
    before = source.scores(metric, period.before, period.since)
    window = source.scores(metric, period.since, period.until)
    if not before and not window:
        raise NoMetric(f"{metric}: there is no score in these periods; {there(source)}")
    weights: defaultdict[SeriesKey, float] = defaultdict(float)
    for run in window or before:
        weights[run.key] += run.weight
    wanted = [key for key in weights if is_wanted(key)] or list(weights)
    wanted.sort(key=lambda it: -weights[it])
    found: list[MetricChange] = []
    problem: TooFewScores | None = None
    for key in (it for it in wanted if weights[it] >= _RIVAL * weights[wanted[0]]):
        try:
            found.append(_change_of(key, [*before, *window], period))
        except TooFewScores as error:
            problem = problem or error
    if problem is not None and not found:
        raise problem
    best = min(found, key=lambda it: it.change.p)
    return best._replace(others=tuple(it.key for it in found if it is not best))


def _change_of(key: SeriesKey, scores: Sequence[RunScore], period: Period) -> MetricChange:
    runs = sorted((run for run in scores if run.key == key), key=lambda run: run.at)
    two = _two_periods(runs, period, _ends(key.metric))
    direction = direction_of(key.metric)
    change = mean_change(two, worse=worse_of(direction))
    _check_enough(key.metric, change, n_other=len(scores) - len(runs))
    return MetricChange(key, direction, runs, two, change)


def there(source: Source) -> str:
    """Return the metrics that a source has scores of, as advice."""
    names = source.metrics()
    return f"choose other times, or a metric that has scores: {', '.join(names)}" if names else "nothing is scored"


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


def _check_enough(metric: str, change: Change, *, n_other: int) -> None:
    sides = {"before": change.before, "in the window": change.window}
    when, few = min(sides.items(), key=lambda side: side[1].n_eff)
    if few.n_eff >= LEAST_CLUSTERS:
        return
    other = f" ({n_other} scores of another judge version or K were left out)" if n_other else ""
    advice = "begin at the likeliest change (--since change)" if few is change.before else "take longer periods"
    raise TooFewScores(
        f"{metric}: {few.n} scores of {few.n_eff:.0f} sessions or questions {when}{other}; {LEAST_CLUSTERS:.0f} are"
        f" needed: {advice}, or wait",
        is_before=few is change.before,
    )


def _ends(metric: str) -> tuple[float, float] | None:
    """Return the ends of a metric's scale; None without finite ones, or where the metric is not installed."""
    known = known_output(metric)
    return (known.low, known.high) if known is not None and math.isfinite(known.high - known.low) else None


def _two_periods(runs: Sequence[RunScore], period: Period, ends: tuple[float, float] | None) -> TwoPeriods:
    places: dict[object, int] = {}
    return TwoPeriods(
        values=np.array([run.value for run in runs], dtype=np.float64),
        weights=np.array([run.weight for run in runs], dtype=np.float64),
        clusters=np.array([places.setdefault(run.cluster, len(places)) for run in runs], dtype=np.intp),
        is_window=np.array([run.at >= period.since for run in runs], dtype=np.bool_),
        ends=ends,
    )
