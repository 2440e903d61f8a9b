"""The mean of labels over runs of known strata, whatever share of each stratum was labelled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.stats.intervals import UNIT, Interval, bounds, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = 2  # labels of a stratum; one with fewer joins its neighbour


class Stratum(NamedTuple):
    """A part of all runs with the labels of some of them.

    Attributes:
        share: of all runs.
        labels: from 0 to 1, of runs drawn at random from this part.
    """

    share: float
    labels: tuple[float, ...]


def stratified_mean(strata: Sequence[Stratum]) -> Interval | None:
    """Return the mean label over all runs with its 95 % interval.

    Each stratum counts by its share of the runs, so that more labels may be drawn where people differ more (Neyman,
    1934). A stratum with fewer than two labels joins its neighbour. Four labels are added to the spread, as in the
    interval of a mean.

    Args:
        strata: in the order of the score, so that neighbours are alike.

    Returns:
        None with fewer than four labels.

    Example:
        >>> low, high = Stratum(0.25, (0.0, 0.0, 1.0, 0.0)), Stratum(0.75, (1.0, 1.0, 1.0, 0.0))
        >>> stratified_mean([low, high]).mean
        0.625
    """
    joined = _joined([it for it in strata if it.share > 0.0])
    if sum(len(it.labels) for it in joined) < 4:
        return None
    total = math.fsum(it.share for it in joined)
    parts = [_part(it.share / total, it.labels) for it in joined]
    mean, variance = (math.fsum(part[i] for part in parts) for i in (0, 1))
    n = 1.0 / math.fsum((it.share / total) ** 2 / len(it.labels) for it in joined)
    found = widened(mean, n, variance * n * n, middle=0.5, half=0.5)
    low, high = bounds(found, UNIT, _freedom(joined, [part[1] for part in parts], n))
    return Interval(mean, low, high)


def _part(share: float, labels: Sequence[float]) -> tuple[float, float]:
    """Return a stratum's part of the mean, and of its variance."""
    size = len(labels)
    own = math.fsum(labels) / size
    squares = math.fsum((label - own) ** 2 for label in labels)
    return share * own, share**2 * squares / (size - 1) / size if size > 1 else 0.0


def _freedom(strata: Sequence[Stratum], variances: Sequence[float], n: float) -> float:
    """Return the degrees of freedom of the sum of some variances (Satterthwaite, 1946)."""
    parts = [v**2 / (len(it.labels) - 1) for it, v in zip(strata, variances, strict=True) if v > 0.0]
    return min(math.fsum(variances) ** 2 / math.fsum(parts), n - 1.0) if parts else n - 1.0


def _joined(strata: Sequence[Stratum]) -> list[Stratum]:
    found: list[Stratum] = []
    for it in strata:
        if found and (len(found[-1].labels) < LEAST or len(it.labels) < LEAST):
            found[-1] = Stratum(found[-1].share + it.share, (*found[-1].labels, *it.labels))
        else:
            found.append(it)
    return found
