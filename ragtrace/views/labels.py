"""People's labels of one metric: the corrected mean, the calibration, and the runs to label next."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.model.printable import count_text
from ragtrace.scoring.offline.calibration import Rated, calibrate
from ragtrace.scoring.offline.human_labels import FORM_OF
from ragtrace.stats.intervals import Interval
from ragtrace.stats.stratified import Stratum, stratified_mean
from ragtrace.stores.base import GOOD
from ragtrace.stores.payload_policy import KEPT_AS_BAD
from ragtrace.views.figures import mean_of, output_of, threshold_of
from ragtrace.views.types import LabelQueue, QueueItem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ragtrace.metrics.base import Output
    from ragtrace.scoring.offline.calibration import Calibration
    from ragtrace.views.columns import Floats, Series, Snapshot

BINS = 5
LEAST_LABELS = 10
"""Labels below which no corrected mean is given."""
_PRIOR = 4.0  # by so many labels of the whole scale's spread each bin's own is shrunk
_LEAST_SPREAD = 0.1  # of the scale; no bin is held to be free of error


@dataclass(frozen=True, slots=True)
class Judged:
    """The scores of a metric by run, with the labels that people gave.

    Attributes:
        rows: runs with a score, one row each.
        goodness: the score from 0 (bad) to 1 (good).
        labels: mean label of each, NaN without one.
    """

    rows: NDArray[np.int64]
    goodness: Floats
    labels: Floats
    output: Output

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        """Mask of the runs with a label."""
        return ~np.isnan(self.labels)

    def on_scale(self, good: float) -> float:
        """Return a goodness on the metric's own scale."""
        low, high = self.output.low, self.output.high
        return low + (high - low) * (good if self.output.direction == "up" else 1.0 - good)


def judged(snapshot: Snapshot, metric: str) -> Judged | None:
    """Return the latest scores with their labels; None where the metric has no ends, or is not installed."""
    output = output_of(metric)
    if output is None or not math.isfinite(output.high - output.low) or output.high <= output.low:
        return None
    values = snapshot.latest(metric).value
    rows = np.flatnonzero(np.isfinite(values) & snapshot.is_alive)
    share = np.clip((values[rows] - output.low) / (output.high - output.low), 0.0, 1.0)
    labels = np.full(len(snapshot), np.nan)
    for row, ratings in snapshot.ratings(metric).items():
        labels[row] = fmean(ratings)
    goodness = share if output.direction == "up" else 1.0 - share
    judges = [it.key.judge for it in snapshot.series if it.key.metric == metric]
    own = threshold_of(metric, judges[-1] if judges else None)
    return Judged(rows, goodness, labels[rows], replace(output, threshold=own))


def strata(found: Judged) -> tuple[NDArray[np.intp], list[Stratum]]:
    """Return the bin of each score, and the labels by bin.

    Bins hold equal numbers of scores, as far as scores differ. Within a bin the queue's choice is random, so that
    its labels stand for it, whatever the share of runs that was labelled.
    """
    edges = np.unique(np.quantile(found.goodness, np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
    place = np.searchsorted(edges, found.goodness, side="right")
    bins = []
    for i in range(len(edges) + 1):
        own = place == i
        labels = found.labels[own & found.is_labelled]
        bins.append(Stratum(share=float(own.mean()), labels=tuple(labels.tolist())))
    return place, bins


def corrected(found: Judged) -> Interval | None:
    """Return the mean of people's labels over all runs, on the metric's scale; None below 10 labels."""
    if found.is_labelled.sum() < LEAST_LABELS:
        return None
    good = stratified_mean(strata(found)[1])
    if good is None or good.mean is None or good.low is None or good.high is None:
        return None
    ends = sorted((found.on_scale(good.low), found.on_scale(good.high)))
    return Interval(found.on_scale(good.mean), ends[0], ends[1])


def spreads(found: Judged, place: NDArray[np.intp], bins: Sequence[Stratum]) -> list[float]:
    """Return the expected spread of a label in each bin, from its labels and, where few, from its scores.

    A label of 0 or 1 whose chance is the judge's score has the spread sqrt(p (1 - p)). Four labels of that spread
    are added to those that people gave.
    """
    spread = []
    for i, it in enumerate(bins):
        own = found.goodness[place == i]
        expected = float(own.mean()) if len(own) else 0.5
        prior = expected * (1.0 - expected)
        mean = (sum(it.labels) + _PRIOR * expected) / (len(it.labels) + _PRIOR)
        squares = sum((label - mean) ** 2 for label in it.labels)
        variance = (squares + _PRIOR * prior) / (len(it.labels) + _PRIOR)
        spread.append(max(math.sqrt(variance), _LEAST_SPREAD))
    return spread


def queue(snapshot: Snapshot, metric: str, *, most: int) -> LabelQueue:
    """Return the runs whose labels should narrow the corrected mean most, and how far the labels have come.

    The corrected mean is stratified by score, see `ragtrace.stats.stratified`. One more label in a bin takes
    ``share^2 spread^2 (1 / n - 1 / (n + 1))`` off its variance. The queue takes the bin with the most to gain again
    and again, and in it the run of the lowest `Snapshot.draws`, a random choice that stays. Runs that nobody can
    read are left out.
    """
    found = judged(snapshot, metric)
    series = [it for it in snapshot.series if it.key.metric == metric]
    raw = _raw(series, snapshot)
    if found is None or not len(found.rows):
        return LabelQueue(metric=metric, items=(), labelled=0, total=0, raw=raw)
    place, bins = strata(found)
    items = list(_items(snapshot, found, place, bins, most))
    is_left_out = ~found.is_labelled & ~snapshot.has_text[found.rows]
    was_kept = snapshot.was_kept[found.rows]
    return LabelQueue(
        metric=metric,
        items=tuple(items),
        labelled=int(found.is_labelled.sum()),
        total=len(found.rows),
        raw=raw,
        corrected=corrected(found),
        agreement=_agreement(found),
        kept_as_bad=_kept_as_bad(snapshot, found),
        unkept=int((is_left_out & ~was_kept).sum()),
        deleted=int((is_left_out & was_kept).sum()),
    )


def _kept_as_bad(snapshot: Snapshot, found: Judged) -> dict[str, int]:
    reasons = Counter(snapshot.kept_for(int(row)) for row in found.rows[found.is_labelled])
    return {reason: reasons[reason] for reason in KEPT_AS_BAD if reasons[reason]}


def _raw(series: Sequence[Series], snapshot: Snapshot) -> Interval:
    """Return the mean of the series with the most scores."""
    counted = [it.counted() for it in series]
    largest = max(counted, key=lambda it: len(it.value), default=None)
    return Interval(None, None, None) if largest is None else mean_of(largest, snapshot.unit)


def _agreement(found: Judged) -> float | None:
    own = found.is_labelled
    if not own.any():
        return None
    threshold = found.output.threshold
    passes = [
        (good >= GOOD) if threshold is None else found.output.passes(found.on_scale(good))
        for good in found.goodness[own].tolist()
    ]
    return fmean(
        (label >= GOOD) == passed for label, passed in zip(found.labels[own].tolist(), passes, strict=True)
    )


def _items(
    snapshot: Snapshot, found: Judged, place: NDArray[np.intp], bins: Sequence[Stratum], most: int
) -> Iterator[QueueItem]:
    spread = spreads(found, place, bins)
    waiting = [_waiting(snapshot, found, place == i, most) for i in range(len(bins))]
    counts = [len(it.labels) for it in bins]
    best = 0.0
    for _ in range(most):
        gains = [
            (it.share * sd) ** 2 / ((n + 1.0) * (n + 2.0)) if rows else 0.0
            for it, sd, n, rows in zip(bins, spread, counts, waiting, strict=True)
        ]
        chosen = max(range(len(bins)), key=gains.__getitem__)
        if not waiting[chosen]:
            return
        best = best or gains[chosen]
        at = waiting[chosen].pop(0)
        row = int(found.rows[at])
        yield QueueItem(
            id=snapshot.ids[row],
            query=snapshot.queries[row],
            value=found.on_scale(float(found.goodness[at])),
            gain=gains[chosen] / best,
            why=_why(
                len(bins[chosen].labels), spread[chosen], bins[chosen].share, found.goodness[place == chosen], found
            ),
        )
        counts[chosen] += 1


def _waiting(snapshot: Snapshot, found: Judged, own: NDArray[np.bool_], most: int) -> list[int]:
    free = np.flatnonzero(own & ~found.is_labelled & snapshot.has_text[found.rows])
    draws = snapshot.draws[found.rows[free]]
    least = np.argpartition(draws, most)[:most] if len(free) > most else np.arange(len(free))
    ranked: list[int] = free[least[np.argsort(draws[least])]].tolist()
    return ranked


def _why(labels: int, spread: float, share: float, scores: Floats, found: Judged) -> str:
    ends = sorted((found.on_scale(float(scores.min())), found.on_scale(float(scores.max()))))
    where = f"scores of {ends[0]:.2f} to {ends[1]:.2f}, {share:.0%} of the runs"
    if not labels:
        return f"no label yet among {where}"
    if spread > 0.35:
        return f"{count_text(labels, 'label')}, and the next may well differ, among {where}"
    return f"{count_text(labels, 'label')} so far among {where}"


def calibration_of(snapshot: Snapshot, metric: str) -> Calibration | None:
    """Return the calibration of the latest scores against the labels of that metric; None without a label.

    The labelled runs are taken for a random choice of all, as `ragtrace calibrate` does. Labels of the queue are
    not, for which `LabelQueue.corrected` allows.
    """
    found = judged(snapshot, metric)
    if found is None or not found.is_labelled.any():
        return None
    is_down = found.output.direction == "down"
    form = FORM_OF["0/1" if set(found.labels[found.is_labelled].tolist()) <= {0.0, 1.0} else "0-1"]
    latest = snapshot.latest(metric)
    keys = {int(row): it.key for it in snapshot.series if it.key.metric == metric for row in it.rows}
    rows = [
        Rated(
            ratings=() if np.isnan(label) else form.turned((label,)) if is_down else (label,),
            value=float(latest.value[row]),
            answer_chars=max(int(snapshot.codes["answer_chars"][row]), 0),
            key=keys[row],
            kept_for=snapshot.kept_for(row),
        )
        for row, label in zip(found.rows.tolist(), found.labels.tolist(), strict=True)
    ]
    return calibrate(rows, output=found.output, form=form, threshold=found.output.threshold)
