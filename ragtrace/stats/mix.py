"""The mean of a window at the mix of questions of another time: post-stratification."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.stats.intervals import Interval, Sums, bounds, moments, widened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FEW = 5.0  # effective clusters of a kind; of fewer the spread is not known, and such kinds share one
_MOST_SPREAD = 0.25  # variance of scores in [0, 1]
_LEAST_COVERED = 0.5  # of the mix; below it the window has other questions, and there is no such mean


class MixAdjusted(NamedTuple):
    """A mean at another mix of kinds, in [0, 1], with its 95 % interval.

    Attributes:
        interval: mean and bounds; three None where the window covers less than half of the mix.
        covered: share of the mix whose kinds the window has.

    Example:
        >>> MixAdjusted(Interval(0.9, 0.8, 1.0), covered=1.0).covered
        1.0
    """

    interval: Interval
    covered: float


def mix_adjusted(window: Mapping[str, Sums], mix: Mapping[str, float]) -> MixAdjusted:
    """Return the mean that a window would have at another mix of kinds.

    It is the sum of P_h m_h over the kinds h, with P_h the share of a kind in the mix and m_h its mean in the
    window (post-stratification, for example Cochran 1977, section 5A.9). Kinds that the mix lacks are left out. The
    shares of kinds that the window lacks go to the others in proportion. The variance is the sum of P_h^2 v_h, and
    the interval that of all means: t with four added labels, on 1 / (sum of P_h^2 / n_h) clusters. Kinds with fewer
    than 5 effective clusters share one spread, drawn towards the largest that there can be: one or two equal scores
    do not tell theirs.

    Args:
        window: the sums of each kind's scores in [0, 1].
        mix: the share of each kind, above 0; they need not add up to 1.

    Returns:
        No bounds for an empty window or an empty mix: three None.

    Example:
        >>> calm = {"a": Sums(90.0, 81.0, 90.0, 81.0, 81.0), "b": Sums(10.0, 2.0, 10.0, 2.0, 2.0)}
        >>> busy = {"a": Sums(90.0, 81.0, 90.0, 81.0, 81.0), "b": Sums(90.0, 18.0, 90.0, 18.0, 18.0)}
        >>> mix = {"a": 0.9, "b": 0.1}
        >>> [round(mix_adjusted(it, mix).interval.mean, 3) for it in (calm, busy)]
        [0.83, 0.83]
    """
    total = math.fsum(mix.values())
    kinds = [(share, window[kind]) for kind, share in mix.items() if kind in window and window[kind].w > 0.0]
    covered = math.fsum(share for share, _ in kinds) / total if total > 0.0 else 0.0
    if covered < _LEAST_COVERED:
        return MixAdjusted(Interval(None, None, None), covered)
    return MixAdjusted(_interval(kinds), covered)


def _few_spread(few: Sequence[Sums]) -> float:
    """Return the variance of one cluster of the kinds with few, drawn towards the largest one by five clusters."""
    if not few:
        return _MOST_SPREAD
    _, n, squares = moments(Sums(*(math.fsum(column) for column in zip(*few, strict=True))))
    return (squares + _FEW * _MOST_SPREAD) / (n + _FEW)


def _interval(kinds: list[tuple[float, Sums]]) -> Interval:
    total = math.fsum(share for share, _ in kinds)
    few = _few_spread([sums for _, sums in kinds if sums.w * sums.w < _FEW * sums.w2])
    mean = variance = inverse_n = 0.0
    for share, sums in kinds:
        part = share / total
        kind_mean, n, squares = moments(sums)
        mean += part * kind_mean
        variance += part * part * (few if n < _FEW else squares / n) / n
        inverse_n += part * part / n
    n = 1.0 / inverse_n
    found = widened(mean, n, variance * n * n, middle=0.5, half=0.5)
    return Interval(mean, *bounds(found, (0.0, 1.0)))
