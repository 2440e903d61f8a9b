"""Differences of two means with bootstrap intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.stats.intervals import RESAMPLES, Interval, bootstrap_mean_ci, drawn, percentile_bounds

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Where nothing differs, 0 is outside the interval of 2 normal pairs in .50 of cases, of 5 in .19, of 10 in .10,
# of 20 in .09, of 30 in .07, of 100 in .05.
LEAST_UNITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean of the second side minus mean of the first, with a 95 % interval.

    Attributes:
        value: in the unit of the values; above 0 where the second side is higher.
        low: lower bound; None where a side has fewer than 2 units.
        high: upper bound.
        is_paired: whether it is over pairs.
        n: pairs, or values of the first and of the second side.
        n_units: what was resampled: pairs or values, or clusters of them; of the smaller side where unpaired.
    """

    value: float
    low: float | None
    high: float | None
    is_paired: bool
    n: tuple[int, ...]
    n_units: int

    @property
    def is_significant(self) -> bool | None:
        """Whether 0 is outside the interval; None without one or below 10 units."""
        if self.low is None or self.high is None or self.n_units < LEAST_UNITS:
            return None
        return not self.low <= 0.0 <= self.high

    def to_json(self) -> dict[str, object]:
        """Return it as JSON-ready values."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "significant": self.is_significant,
            "paired": self.is_paired,
            "n": list(self.n),
            "units": self.n_units,
        }


def clustered_mean_ci(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the mean with its 95 % bootstrap interval over whole clusters.

    Without clusters, or where each value is a cluster of its own, it is `bootstrap_mean_ci` to the bit.

    Args:
        values: the scores.
        clusters: the cluster of each, for example its session.
        n_resamples: number of resamples.
        seed: of ``numpy.random.default_rng``.

    Returns:
        No values: three None. One cluster: the mean without bounds.

    Raises:
        ValueError: not one cluster a value.

    Example:
        >>> clustered_mean_ci([0.0, 0.0, 1.0, 1.0], ["a", "a", "b", "b"])
        Interval(mean=0.5, low=0.0, high=1.0)
    """
    sums, sizes = _units(values, clusters)
    if len(sums) == len(values):
        return bootstrap_mean_ci(values, n_resamples=n_resamples, seed=seed)
    mean = float(np.asarray(values, dtype=np.float64).mean())
    if len(sums) < 2:
        return Interval(mean, None, None)
    return Interval(mean, *percentile_bounds(_means(sums, sizes, np.random.default_rng(seed), n_resamples)))


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference | None:
    """Return the mean of second - first over pairs; None without pairs.

    Narrower than `unpaired_difference` where the two sides of a pair go together.

    Args:
        first: one value a pair.
        second: the other value of the same pair.
        clusters: the cluster of each pair, for example its session.
        n_resamples: number of resamples.
        seed: of ``numpy.random.default_rng``.

    Raises:
        ValueError: lists of different length.

    Example:
        >>> found = paired_difference([0.25, 0.5, 0.5] * 4, [0.5, 0.75, 1.0] * 4)
        >>> round(found.value, 3), found.is_significant
        (0.333, True)
    """
    before, after = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if before.shape != after.shape:
        raise ValueError(f"every pair has two values, got {len(before)} and {len(after)}")
    changes: list[float] = (after - before).tolist()
    found = clustered_mean_ci(changes, clusters, n_resamples=n_resamples, seed=seed)
    if found.mean is None:
        return None
    n_units = len(changes) if clusters is None else len(set(clusters))
    return Difference(
        value=found.mean, low=found.low, high=found.high, is_paired=True, n=(len(changes),), n_units=n_units
    )


def unpaired_difference(
    first: Sequence[float],
    second: Sequence[float],
    first_clusters: Sequence[Hashable] | None = None,
    second_clusters: Sequence[Hashable] | None = None,
    *,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference | None:
    """Return mean(second) - mean(first); None where a side is empty.

    Args:
        first: values of the one side.
        second: values of the other side; any number.
        first_clusters: the cluster of each value of the first side.
        second_clusters: the cluster of each value of the second side.
        n_resamples: number of resamples of each side.
        seed: of one ``numpy.random.default_rng``, which draws for the first side, then for the second.

    Example:
        >>> found = unpaired_difference([0.0, 0.5, 0.5, 1.0] * 3, [0.0, 0.5, 1.0, 1.0] * 3)
        >>> found.value, found.is_significant
        (0.125, False)
    """
    if not len(first) or not len(second):
        return None
    sides = _units(first, first_clusters), _units(second, second_clusters)
    value = float(np.mean(second)) - float(np.mean(first))
    n, n_units = (len(first), len(second)), min(len(sums) for sums, _ in sides)
    low = high = None
    if n_units >= 2:
        rng = np.random.default_rng(seed)
        before, after = (_means(sums, sizes, rng, n_resamples) for sums, sizes in sides)
        low, high = percentile_bounds(after - before)
    return Difference(value=value, low=low, high=high, is_paired=False, n=n, n_units=n_units)


def _units(values: Sequence[float], clusters: Sequence[Hashable] | None) -> tuple[Array, Array]:
    array = np.asarray(values, dtype=np.float64)
    if clusters is None:
        return array, np.ones(len(array))
    if len(clusters) != len(array):
        raise ValueError(f"every value has one cluster, got {len(array)} and {len(clusters)}")
    places: dict[Hashable, int] = {}
    codes = np.array([places.setdefault(cluster, len(places)) for cluster in clusters], dtype=np.intp)
    sums: Array = np.bincount(codes, weights=array).astype(np.float64)
    return sums, np.bincount(codes).astype(np.float64)


def _means(sums: Array, sizes: Array, rng: np.random.Generator, n_resamples: int) -> Array:
    blocks = drawn(rng, len(sums), n_resamples)
    return np.concatenate([sums[rows].sum(axis=1) / sizes[rows].sum(axis=1) for rows in blocks])
