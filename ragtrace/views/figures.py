"""Means, trends, distributions and drift of one series of scores."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import ConfigError
from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.metrics.registry import output, select
from ragtrace.model.diagnosis import MEANINGS, STAGES, VERDICTS
from ragtrace.scoring.investigation.comparison import HISTORY_S, is_watched, keys_of_late, worse_of
from ragtrace.scoring.offline.scored_row import ends_of, label_of
from ragtrace.stats.change.mean import mean_change, sums_of
from ragtrace.stats.change.step import Timeline, surest_step
from ragtrace.stats.intervals import UNIT, Interval, Sums, mean_interval
from ragtrace.stats.shares import WeightSums, weighted_shares
from ragtrace.views.columns import STATES, UNITS
from ragtrace.views.types import Drift, Histogram, MetricView, Trend, VerdictShare

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from ragtrace.metrics.base import Output
    from ragtrace.model import SeriesKey
    from ragtrace.stats.intervals import Ends
    from ragtrace.views.columns import Codes, Floats, Mask, Series, Snapshot

_HISTOGRAM_BINS = 20
_NO_INTERVAL = Interval(None, None, None)


@lru_cache(1_024)
def output_of(metric: str) -> Output | None:
    """Return the output of a metric's key, with or without ``@K``; None where it is not installed."""
    try:
        return output(metric.partition("@")[0].partition("(")[0])
    except ConfigError:
        return None


def threshold_of(metric: str, judge: str | None) -> float | None:
    """Return the threshold by which a judge's scores of a metric pass: the offline judge's own, else the metric's.

    Example:
        >>> threshold_of("faithfulness", "openai:m"), threshold_of("faithfulness", "overlap") < 0.8
        (0.8, True)
    """
    known = output_of(metric)
    own = OverlapJudge.thresholds.get(metric) if judge == OverlapJudge.name else None
    return own if own is not None or known is None else known.threshold


def is_own_threshold(metric: str, judge: str | None) -> bool:
    """Tell whether a judge passes a metric by another threshold than the metric's."""
    known = output_of(metric)
    return known is not None and threshold_of(metric, judge) != known.threshold


@lru_cache(1_024)
def summary_of(metric: str) -> str:
    """Return what a metric measures, in one sentence; empty where it is not installed."""
    try:
        return select([metric.partition("@")[0]])[0].spec.summary
    except ConfigError:
        return ""


def mean_of(series: Series, units: Codes) -> Interval:
    """Return the weighted mean of counted scores with its interval.

    Args:
        series: counted scores, see `Series.counted`.
        units: the cluster of each run.
    """
    if not len(series.value):
        return _NO_INTERVAL
    ends = ends_of_values(series.key.metric, series.value)
    return within(mean_interval(sums_of(series.value, series.weight, units[series.rows]), ends), series.value)


def within(found: Interval, values: Floats) -> Interval:
    """Return an interval without negative values where no score is negative, as `clustered_interval` does."""
    is_cut = found.low is not None and found.low < 0.0 <= float(values.min())
    return found._replace(low=0.0) if is_cut else found


def ends_of_values(metric: str, values: Floats) -> Ends | None:
    """Return the ends of a metric's scale, as `ends_of`, from an array."""
    ends = _declared_ends(metric)
    is_within = ends is not None and (not len(values) or ends[0] <= values.min() <= values.max() <= ends[1])
    return ends if is_within else None


@lru_cache(1_024)
def _declared_ends(metric: str) -> Ends | None:
    return ends_of(metric, ())


@dataclass(frozen=True, eq=False)
class TimeBins:
    """Equal bins of time over the chosen runs, and the clusters within each.

    Attributes:
        start: Unix seconds of the first bin.
        width_s: seconds of each.
        n: number of bins.
        bin: of each run, -1 outside.
        units: number of the cluster of each run.
    """

    start: float
    width_s: float
    n: int
    bin: NDArray[np.int64]
    units: Codes

    @classmethod
    def over(cls, at: Floats, units: Codes, n: int) -> TimeBins | None:
        """Return the bins of runs at some times, None where no run has a time."""
        known = np.isfinite(at)
        if not known.any():
            return None
        start, end = float(at[known].min()), float(at[known].max())
        width = (end - start) / n or 1.0
        places = np.full(len(at), -1, dtype=np.int64)
        places[known] = np.minimum((at[known] - start) / width, n - 1).astype(np.int64)
        return cls(start, width, n, places, units)

    @cached_property
    def starts(self) -> tuple[float, ...]:
        """Unix seconds at which each bin begins."""
        return tuple(self.start + i * self.width_s for i in range(self.n))

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of (bin, cluster) of each run, and the bin of each such number."""
        key = self.bin * (int(self.units.max(initial=0)) + 1) + self.units
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        return group, self.bin[first]

    def sums(self, rows: Codes, values: Floats, weights: Floats) -> NDArray[np.float64]:
        """Return the five sums of `Sums` for each bin, as columns."""
        group, bin_of = self._groups
        own = self.bin[rows] >= 0
        groups = group[rows[own]]
        w = np.bincount(groups, weights=weights[own], minlength=len(bin_of))
        wx = np.bincount(groups, weights=weights[own] * values[own], minlength=len(bin_of))
        seen = (w > 0.0) & (bin_of >= 0)
        w, wx, bins = w[seen], wx[seen], bin_of[seen]
        parts = (w, wx, w * w, w * wx, wx * wx)
        return np.stack([np.bincount(bins, weights=part, minlength=self.n) for part in parts])

    def trend(self, rows: Codes, values: Floats, weights: Floats, ends: Ends | None) -> Trend:
        """Return the mean of some scores by bin."""
        sums = self.sums(rows, values, weights)
        counts = np.bincount(self.bin[rows] + 1, minlength=self.n + 1)[1:]
        means = [within(mean_interval(Sums(*map(float, column)), ends), values) for column in sums.T]
        return Trend(
            starts=self.starts,
            width_s=self.width_s,
            means=tuple(it.mean for it in means),
            lows=tuple(it.low for it in means),
            highs=tuple(it.high for it in means),
            counts=tuple(map(int, counts)),
        )


def scored_of_late(series: Iterable[Series], snapshot: Snapshot) -> set[SeriesKey]:
    """Return the keys whose scores are looked at for a change: not those of a judge that scores no more."""
    by_metric: defaultdict[str, dict[SeriesKey, tuple[Floats, Floats]]] = defaultdict(dict)
    for it in series:
        counted = it.counted()
        at = snapshot.at[counted.rows]
        if (timed := np.isfinite(at)).any():
            by_metric[it.key.metric][it.key] = (at[timed], counted.weight[timed])
    return {key for own in by_metric.values() for key in keys_of_late(own)}


def metric_view(
    series: Series, keys: Collection[SeriesKey], snapshot: Snapshot, bins: TimeBins | None, *, is_late: bool
) -> MetricView:
    """Return everything that an overview shows of one series over the chosen runs.

    Args:
        series: scores of the chosen runs.
        keys: all series of the metric, which its label must tell apart.
        snapshot: the runs.
        bins: of the trend; None without times.
        is_late: whether it is one of `scored_of_late`.
    """
    counted, key, known = series.counted(), series.key, output_of(series.key.metric)
    values = counted.value
    valued = (series.state == 0) & (series.passed >= 0)
    return MetricView(
        key=key,
        label=label_of(key, keys),
        summary=summary_of(key.metric),
        low=None if known is None or not math.isfinite(known.low) else known.low,
        high=None if known is None or not math.isfinite(known.high) else known.high,
        direction=None if known is None else known.direction,
        threshold=threshold_of(key.metric, key.judge),
        is_own_threshold=is_own_threshold(key.metric, key.judge),
        mean=mean_of(counted, snapshot.unit),
        n=len(values),
        forced=int(((series.state == 0) & series.forced).sum()),
        missed=_missed(counted) if valued.any() else None,
        na=_reasons(series, snapshot, {"na", "skipped"}),
        errors=_reasons(series, snapshot, {"error"}),
        units=_units(counted, snapshot),
        trend=bins.trend(counted.rows, values, counted.weight, ends_of_values(key.metric, values))
        if bins and len(values)
        else None,
        histogram=_histogram(values, known) if len(values) else None,
        drift=_drift(counted, snapshot) if is_late else Drift(state="unwatched"),
    )


def _missed(counted: Series) -> float | None:
    own = counted.passed >= 0
    weight = float(counted.weight[own].sum())
    return float(counted.weight[counted.passed == 0].sum()) / weight if weight else None


def _reasons(series: Series, snapshot: Snapshot, states: set[str]) -> Mapping[str, int]:
    own = np.isin(series.state, [i for i, state in enumerate(STATES) if state in states])
    codes = np.bincount(series.reason[own]) if own.any() else np.zeros(0, dtype=np.int64)
    counts = Counter({snapshot.reasons[i] or "": int(n) for i, n in enumerate(codes) if n})
    return dict(counts.most_common())


def _units(counted: Series, snapshot: Snapshot) -> str:
    """Return the kinds of clusters that hold several of the scores; ``runs`` where each counts alone."""
    counts = np.bincount(snapshot.unit[counted.rows], minlength=len(snapshot.unit_kinds))
    kinds = set(snapshot.unit_kinds[np.flatnonzero(counts > 1)].tolist())
    return ", ".join(name for i, name in enumerate(UNITS) if i in kinds) or "runs"


def _histogram(values: Floats, known: Output | None) -> Histogram:
    low, high = float(values.min()), float(values.max())
    if known is not None and math.isfinite(known.high - known.low):
        low, high = min(low, known.low), max(high, known.high)
    counts, edges = np.histogram(values, bins=_HISTOGRAM_BINS, range=(low, high) if high > low else (low, low + 1))
    return Histogram(edges=tuple(map(float, edges)), counts=tuple(map(int, counts)))


def _drift(counted: Series, snapshot: Snapshot) -> Drift:
    """Return whether the mean changed for the worse, by the rule of `ragtrace investigate`."""
    at = snapshot.at[counted.rows]
    timed = np.isfinite(at)
    known = output_of(counted.key.metric)
    if known is None or not is_watched(counted.key.metric) or not timed.any():
        return Drift(state="unwatched")
    recent = np.flatnonzero(timed & (at >= at[timed].max() - HISTORY_S))
    order = recent[np.argsort(at[recent], kind="stable")]
    rows = counted.rows[order]
    _, clusters = np.unique(snapshot.unit[rows], return_inverse=True)
    scores = Timeline(
        at=at[order],
        values=counted.value[order],
        weights=counted.weight[order],
        clusters=clusters,
        ends=(known.low, known.high),
    )
    worse = worse_of(known.direction)
    step = surest_step(scores, {it: mask[rows] for it, mask in snapshot.parts.items()}, worse=worse)
    if step is None:
        return Drift(state="too_few")
    if not step.is_shown:
        return Drift(state="steady")
    change = mean_change(scores.split(step.since), worse=worse)
    return Drift(
        state="fell" if known.direction == "up" else "rose",
        since=step.since,
        before=change.before.mean,
        after=change.window.mean,
    )


def verdict_shares(snapshot: Snapshot, chosen: Mask, weights: Floats, bins: TimeBins | None) -> list[VerdictShare]:
    """Return the share of each verdict among the chosen runs, the most frequent failure first.

    Args:
        snapshot: the runs.
        chosen: those to count.
        weights: of each run; 0 leaves it out.
        bins: of the trend; None without times.
    """
    rows = np.flatnonzero(chosen & (snapshot.verdict >= 0) & (weights > 0.0)).astype(np.int32)
    codes, own, units = snapshot.verdict[rows], weights[rows], snapshot.unit[rows]
    # Squared weights are those of the clusters, each divided among its runs: a cluster counts as one run.
    squares = own * np.bincount(units, weights=own)[units] if len(rows) else own
    found = np.unique(codes).tolist()
    sums = {
        VERDICTS[code]: WeightSums(float(own[codes == code].sum()), float(squares[codes == code].sum()))
        for code in found
    }
    shares = weighted_shares({str(name): it for name, it in sums.items()})
    views = []
    for code in found:
        verdict, is_it = VERDICTS[code], codes == code
        views.append(
            VerdictShare(
                verdict=verdict,
                stage=STAGES[verdict],
                meaning=MEANINGS[verdict],
                n=int(is_it.sum()),
                share=shares[verdict],
                trend=bins.trend(rows, is_it.astype(np.float64), own, UNIT) if bins else None,
            )
        )
    return sorted(views, key=lambda it: (it.stage == "none", it.verdict == "undetermined", -(it.share.mean or 0.0)))
