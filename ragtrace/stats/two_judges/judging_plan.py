"""The share of runs that a second judge should score, by the score of a first one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.stats.intervals import drawn
from ragtrace.stats.two_judges.two_phase import Curve, bounds, fitted_curve

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LEAST_PAIRS = 30
"""Doubly judged runs, below which no plan is made."""
BINS = 10
_WITHOUT = BINS  # the bin of runs that the first judge gave no score
_PRIOR_PAIRS = 10.0  # by so many pairs of the curve's own variance each bin is shrunk
_LEAST_SHARE = 1 / 3  # of the largest rate, so that no weight is more than three times another
_RESAMPLES = 200
_STEPS = 60  # of a bisection, to far below one call


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Runs whose first score lies from `low` up to the next bin; None: runs without such a score.

    Attributes:
        low: lower bound of the first score.
        share: of all runs.
        mean: expected score of the second judge.
        sd: expected standard deviation of the second score about the curve.
        pairs: doubly judged runs behind it.
        rate: share of these runs that the second judge should score.
    """

    low: float | None
    share: float
    mean: float
    sd: float
    pairs: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingPlan:
    """Rates by bin, with the width that they should give and that of a uniform choice.

    Attributes:
        bins: in the order of the first score.
        runs: runs a day with a first score.
        calls: runs a day for the second judge.
        width: expected width of the day's 95 % interval.
        width_range: bounds within which it lies with a chance of 90 %, as the plan knows few pairs.
        uniform_width: the same for as many runs chosen uniformly, without the first judge.
        uniform_calls: uniformly chosen runs for the same width.
        pairs: doubly judged runs behind the plan.
    """

    bins: tuple[Bin, ...]
    runs: float
    calls: float
    width: float
    width_range: tuple[float, float]
    uniform_width: float
    uniform_calls: float
    pairs: int

    def setting(self) -> dict[str, float]:
        """Return the rates as the setting ``judge_rates`` takes them, equal neighbours as one.

        Rates are rounded up, so that none becomes 0.
        """
        named = [
            (f"{one.low:g}" if one.low is not None else "none", math.ceil(one.rate * 1e3) / 1e3)
            for one in self.bins
        ]
        kept: dict[str, float] = {}
        before = None
        for name, rate in named:
            if rate != before or name == "none":
                kept[name] = min(rate, 1.0)
            before = rate
        return kept


class PastScores:
    """The past scores of both judges, from which a plan is made.

    Args:
        first: scores in [0, 1] of the first judge for all runs; NaN where it gave none.
        weights: of these runs; 1 / inclusion probability.
        pair_first: the first judge's scores of the runs that both judged.
        pair_second: the second judge's (or people's), in [0, 1].
        pair_weights: 1 / probability with which these runs were chosen.

    Raises:
        ValueError: fewer than 30 pairs.

    Example:
        >>> first = np.array([0.1, 0.3, 0.7, 0.9] * 25)
        >>> second = np.array([0.0, 0.0, 1.0, 1.0] * 24 + [1.0, 1.0, 0.0, 0.0])
        >>> past = PastScores(first, np.ones(100), first, second, np.ones(100))
        >>> plan = past.plan(runs=1000, calls=100)
        >>> round(sum(one.share * one.rate for one in plan.bins) * 1000), plan.width < plan.uniform_width
        (100, True)
    """

    def __init__(
        self, first: Array, weights: Array, pair_first: Array, pair_second: Array, pair_weights: Array
    ) -> None:
        if len(pair_first) < LEAST_PAIRS:
            raise ValueError(f"a plan needs {LEAST_PAIRS} runs that both judges scored, got {len(pair_first)}")
        self.shares = np.bincount(_bin_of(first), weights=weights, minlength=BINS + 1) / weights.sum()
        self._pairs = (pair_first, pair_second, pair_weights)
        self._weight = float(weights.mean())
        self._model = _Model.of(*self._pairs, self.shares)

    @property
    def n_pairs(self) -> int:
        """Number of doubly judged runs."""
        return len(self._pairs[0])

    def plan(self, *, runs: float, calls: float) -> JudgingPlan:
        """Return the plan of so many calls a day, at most one a run.

        The rate of a bin is in proportion to the spread of the second score in it (Neyman's allocation), but not
        below a third of the largest rate.
        """
        calls = min(calls, runs)
        rates = self.rates(runs, calls)
        model = self._model
        bins = [
            Bin(
                low=None if place == _WITHOUT else place / BINS,
                share=float(self.shares[place]),
                mean=float(model.means[place]),
                sd=float(math.sqrt(model.variances[place])),
                pairs=int(model.counts[place]),
                rate=float(rates[place]),
            )
            for place in range(BINS + 1)
        ]
        traffic = runs * self._weight
        width = model.width(self.shares, rates, runs, traffic)
        return JudgingPlan(
            bins=tuple(bins),
            runs=runs,
            calls=calls,
            width=width,
            width_range=self._range(rates, runs),
            uniform_width=model.uniform_width(calls, traffic),
            uniform_calls=_least(lambda n: model.uniform_width(n, traffic) <= width, 2.0, traffic),
            pairs=self.n_pairs,
        )

    def calls_for(self, width: float, *, runs: float) -> float | None:
        """Return the fewest calls a day for an interval of this width; None where all runs are too few."""
        traffic = runs * self._weight

        def is_enough(calls: float) -> bool:
            return self._model.width(self.shares, self.rates(runs, calls), runs, traffic) <= width

        return _least(is_enough, 2.0, runs) if is_enough(runs) else None

    def rates(self, runs: float, calls: float) -> Array:
        """Return the rate of each bin, so that so many runs are expected to be chosen."""
        spread = np.sqrt(self._model.variances)
        spread = np.maximum(spread, _LEAST_SHARE * spread.max())
        most = _least(
            lambda factor: float((self.shares * np.minimum(1.0, factor * spread)).sum()) * runs >= calls,
            0.0,
            1.0 / float(spread.min()),
        )
        rates: Array = np.minimum(1.0, most * spread)
        return rates

    def _range(self, rates: Array, runs: float) -> tuple[float, float]:
        """Return the 5 % and 95 % points of the width over bootstrap resamples of the pairs."""
        rng = np.random.default_rng(0)
        first, second, weights = self._pairs
        traffic = runs * self._weight
        widths = []
        for block in drawn(rng, self.n_pairs, _RESAMPLES):
            for rows in block:
                model = _Model.of(first[rows], second[rows], weights[rows], self.shares)
                widths.append(model.width(self.shares, rates, runs, traffic))
        low, high = np.percentile(widths, [5, 95])
        return float(low), float(high)


@dataclass(frozen=True, slots=True)
class _Model:
    """Means and variances of the second score by bin, and over all runs."""

    means: Array
    variances: Array
    counts: Array
    mean: float
    variance: float

    @classmethod
    def of(cls, first: Array, second: Array, weights: Array, shares: Array) -> _Model:
        """Learn from pairs: by a curve, and by the bins' own residuals as far as they have pairs."""
        place = _bin_of(first)
        scored = place != _WITHOUT
        curve = fitted_curve(first[scored], second[scored]) if scored.any() else Curve(0.0, 0.0)
        overall = float(np.average(second, weights=weights))
        means = _means(curve, second[~scored], overall)
        expected = np.where(scored, curve.at(np.where(scored, first, 0.0)), means[_WITHOUT])
        squares = (second - expected) ** 2
        own = expected * (1.0 - expected)
        ratio = min(float(squares.sum() / max(own.sum(), 1e-9)), 1.0)  # shares of claims spread less than 0 and 1
        counts = np.bincount(place, minlength=BINS + 1).astype(np.float64)
        sums = np.bincount(place, weights=squares, minlength=BINS + 1)
        variances = (sums + _PRIOR_PAIRS * ratio * means * (1.0 - means)) / (counts + _PRIOR_PAIRS)
        mean = float((shares * means).sum())
        between = float((shares * (means - mean) ** 2).sum())
        return cls(means, variances, counts, mean, float((shares * variances).sum()) + between)

    def width(self, shares: Array, rates: Array, runs: float, traffic: float) -> float:
        """Return the expected width of the interval under these rates, for so many runs of all traffic."""
        between = float((shares * (self.means - self.mean) ** 2).sum())
        within = float((shares * self.variances / np.maximum(rates, 1e-12)).sum())
        variance = max((between + within) / runs - self.variance / traffic, 0.0)
        low, high = bounds(self.mean, variance, max(float((shares * rates).sum()) * runs, 2.0))
        return high - low

    def uniform_width(self, n: float, traffic: float) -> float:
        """Return the expected width of the interval of a uniform choice of n runs."""
        low, high = bounds(self.mean, max(self.variance * (1.0 / n - 1.0 / traffic), 0.0), n)
        return high - low


def _means(curve: Curve, without: Array, overall: float) -> Array:
    middles = (np.arange(BINS) + 0.5) / BINS
    flat = (float(without.sum()) + 2.0 * overall) / (len(without) + 2.0)
    return np.append(curve.at(middles), flat)


def _bin_of(first: Array) -> NDArray[np.int64]:
    """Return the bin of each score; NaN has the last one."""
    is_none = np.isnan(first)
    place = np.minimum((np.where(is_none, 0.0, first) * BINS + 1e-9).astype(np.int64), BINS - 1)
    return np.where(is_none, _WITHOUT, place)


def _least(is_enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least number that is enough; `high` is taken to be."""
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def bin_place(first: float | None) -> int:
    """Return the number of a score's bin, from 0; the last is for runs without a score.

    Example:
        >>> bin_place(0.0), bin_place(0.35), bin_place(1.0), bin_place(None)
        (0, 3, 9, 10)
    """
    return int(_bin_of(np.array([math.nan if first is None else first]))[0])
