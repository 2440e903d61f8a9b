"""The share of each verdict before a change and in the window."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.model.diagnosis import VERDICTS
from ragtrace.stats.shares import WeightSums, share_changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.scoring.investigation.runs import RunScore
    from ragtrace.stats.change.mean import Mask, TwoPeriods

NO_VERDICT = "no verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictShare:
    """The share of one verdict in the weight of all runs of each period.

    Attributes:
        verdict: one of `VERDICTS`, or `NO_VERDICT`.
        n_before: runs with it before.
        n_window: runs with it in the window.
        before: its share before, 0 to 1.
        window: its share in the window.
        difference: `window` minus `before`.
        low: lower bound of the 95 % interval of `difference`.
        high: upper bound.
    """

    verdict: str
    n_before: int
    n_window: int
    before: float
    window: float
    difference: float
    low: float
    high: float

    @property
    def is_changed(self) -> bool:
        """Whether the interval of the difference leaves 0 out."""
        return self.low > 0.0 or self.high < 0.0


def verdict_shares(runs: Sequence[RunScore], scores: TwoPeriods) -> tuple[VerdictShare, ...]:
    """Return the share of each verdict that occurs, the earliest stage first; empty without a verdict.

    Args:
        runs: the compared runs.
        scores: their weights, clusters and periods, in the same order. A cluster counts as one run.
    """
    names = [run.verdict or NO_VERDICT for run in runs]
    if not any(run.verdict for run in runs):
        return ()
    before, window = (_counted(names, scores, side) for side in (~scores.is_window, scores.is_window))
    changes = {it.name: it for it in share_changes(before.sums, window.sums)}
    return tuple(
        VerdictShare(
            verdict=name,
            n_before=before.runs[name],
            n_window=window.runs[name],
            before=change.before,
            window=change.now,
            difference=change.difference,
            low=change.low,
            high=change.high,
        )
        for name in (*VERDICTS, NO_VERDICT)
        if (change := changes.get(name)) is not None
    )


@dataclass(frozen=True, slots=True)
class _VerdictCounts:
    """Runs and their weights by verdict."""

    runs: Counter[str]
    sums: dict[str, WeightSums]


def _counted(names: Sequence[str], scores: TwoPeriods, side: Mask) -> _VerdictCounts:
    """Count the verdicts of one period.

    Squared weights are those of the clusters, each divided among its runs, so that the effective number is that of
    clusters.
    """
    weights, clusters, own = scores.weights[side], scores.clusters[side], np.array(names)[side]
    squares = weights * np.bincount(clusters, weights=weights)[clusters]
    found = Counter(own.tolist())
    sums = {
        name: WeightSums(float(weights[own == name].sum()), float(squares[own == name].sum())) for name in found
    }
    return _VerdictCounts(found, sums)
