"""Differences of two means with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.stats.intervals import (
    LEAST_FREEDOM,
    UNIT,
    Estimate,
    Range,
    bounds,
    cluster_sums,
    estimate,
    has_labels,
    moments,
    root_mean_square,
    widened,
    without_ends,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ragtrace.stats.intervals import Ends, Sums

# With fewer, "no difference shown" would say more of the number of units than of the difference.
LEAST_UNITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean of the second side minus mean of the first, with a 95 % interval.

    Attributes:
        value: in the unit of the values; above 0 where the second side is higher.
        low: lower bound; None where a side has fewer than 2 units and its values no ends.
        high: upper bound.
        is_paired: whether it is over pairs.
        n: pairs, or values of the first and of the second side.
        n_units: pairs or values, or clusters of them; of the smaller side where unpaired.
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


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    ends: Ends | None = UNIT,
) -> Difference | None:
    """Return the mean of second - first over pairs; None without pairs.

    The interval is that of `ragtrace.stats.intervals.mean_interval` over the changes. Four pairs are added: two
    rise and two fall by half the range, as much as Agresti and Min (2005) add to shares. Without ends they change
    as much as the pairs do. Where the two sides of a pair go together, the interval is narrower than that of
    `unpaired_difference`. Measured over claims, 0/1 and smooth scores, .94 or more held the truth from 10 pairs on,
    and .90 where one of 22 pairs changes, and 50 are there.

    Args:
        first: one value a pair.
        second: the other value of the same pair.
        clusters: the cluster of each pair, for example its session.
        ends: lowest and highest value of a side, None where it has no such ends.

    Raises:
        ValueError: lists of different length.

    Example:
        >>> found = paired_difference([0.25, 0.5, 0.5] * 4, [0.5, 0.75, 1.0] * 4)
        >>> round(found.value, 3), found.is_significant
        (0.333, True)
    """
    if len(first) != len(second):
        raise ValueError(f"every pair has two values, got {len(first)} and {len(second)}")
    if not first:
        return None
    changes = [after - before for before, after in zip(first, second, strict=True)]
    sums = cluster_sums(changes, clusters)
    mean, n, squares = moments(sums)
    found = (
        without_ends(mean, n, squares, root_mean_square(sums))
        if ends is None or isinstance(ends, Range)
        else widened(mean, n, squares, middle=0.0, half=(ends[1] - ends[0]) / 2.0)
    )
    n_units = len(changes) if clusters is None else len(set(clusters))
    low, high = _ends_of(found, ends, n - 1.0, n_units)
    return Difference(value=mean, low=low, high=high, is_paired=True, n=(len(changes),), n_units=n_units)


def unpaired_difference(
    first: Sequence[float],
    second: Sequence[float],
    first_clusters: Sequence[Hashable] | None = None,
    second_clusters: Sequence[Hashable] | None = None,
    *,
    ends: Ends | None = UNIT,
) -> Difference | None:
    """Return mean(second) - mean(first); None where a side is empty.

    The variances of both sides' intervals add up, with the degrees of freedom of Welch (1947).

    Args:
        first: values of the one side.
        second: values of the other side; any number.
        first_clusters: the cluster of each value of the first side.
        second_clusters: the cluster of each value of the second side.
        ends: lowest and highest value of a side, None where it has no such ends.

    Example:
        >>> found = unpaired_difference([0.0, 0.5, 0.5, 1.0] * 3, [0.0, 0.5, 1.0, 1.0] * 3)
        >>> found.value, found.is_significant
        (0.125, False)
    """
    if not first or not second:
        return None
    sizes = (len(first), len(second))
    n_units = min(
        size if clusters is None else len(set(clusters))
        for size, clusters in zip(sizes, (first_clusters, second_clusters), strict=True)
    )
    a, b = cluster_sums(first, first_clusters), cluster_sums(second, second_clusters)
    return difference_of_sums(a, b, n=sizes, n_units=n_units, ends=ends)


def difference_of_sums(
    first: Sums, second: Sums, *, n: tuple[int, int], n_units: int, ends: Ends | None = UNIT
) -> Difference:
    """Return the difference of `unpaired_difference` from the sums of both sides, which may be weighted.

    Args:
        first: over the clusters of the one side; it holds some weight.
        second: of the other.
        n: values of both.
        n_units: clusters of the side that has fewer.
        ends: lowest and highest value of a side, None where it has no such ends.
    """
    a, b = estimate(first, ends), estimate(second, ends)
    both = Estimate(b.mean - a.mean, b.middle - a.middle, a.variance + b.variance, min(a.n, b.n))
    low, high = _ends_of(both, ends, _freedom(a, b), n_units)
    return Difference(value=both.mean, low=low, high=high, is_paired=False, n=n, n_units=n_units)


def _ends_of(
    found: Estimate, ends: Ends | None, freedom: float, n_units: int
) -> tuple[float, float] | tuple[None, None]:
    if n_units < 2 and not has_labels(ends):
        return None, None
    if ends is None:
        return bounds(found, None, freedom)
    width = ends[1] - ends[0]
    return bounds(found, (-width, width), freedom)


def _freedom(a: Estimate, b: Estimate) -> float:
    parts = [it.variance**2 / max(it.n - 1.0, LEAST_FREEDOM) for it in (a, b)]
    total = math.fsum(parts)
    return (a.variance + b.variance) ** 2 / total if total else math.inf
