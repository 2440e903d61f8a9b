"""Weighted shares of verdicts, their changes, and a mean with scores missing, each with a 95 % interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.stats.intervals import Interval, wilson

if TYPE_CHECKING:
    from collections.abc import Mapping


class WeightSums(NamedTuple):
    """Sums of weights and of squared weights of some runs."""

    w: float
    w2: float


class ShareChange(NamedTuple):
    """A share before and now, and the difference with its bounds, from -1 to 1."""

    name: str
    before: float
    now: float
    difference: float
    low: float
    high: float


def weighted_shares(sums: Mapping[str, WeightSums]) -> dict[str, Interval]:
    """Return the share of each name in the total weight, with Wilson's 95 % interval.

    The size is the effective number of runs, W^2 / W2 over all names (Kish). Without weight the result is empty.

    Example:
        >>> found = weighted_shares({"ok": WeightSums(180.0, 360.0), "unsupported": WeightSums(20.0, 40.0)})
        >>> [round(value, 3) for value in found["unsupported"]]
        [0.1, 0.055, 0.174]
    """
    weight, square = (math.fsum(column) for column in zip(*sums.values(), strict=True)) if sums else (0.0, 0.0)
    if weight <= 0.0 or square <= 0.0:
        return {}
    effective_n = weight * weight / square
    return {name: wilson(each.w / weight * effective_n, effective_n) for name, each in sums.items()}


def share_changes(before: Mapping[str, WeightSums], now: Mapping[str, WeightSums]) -> list[ShareChange]:
    """Return the change of each share, the largest growth first.

    The interval of a difference is Newcombe's: it combines the distances of both shares from their Wilson bounds
    (Statistics in Medicine 17, 1998, method 10). A name that one side lacks has a share of 0 there. Empty where a
    side has no weight.

    Example:
        >>> before = {"ok": WeightSums(95.0, 95.0), "lost_in_rerank": WeightSums(5.0, 5.0)}
        >>> now = {"ok": WeightSums(70.0, 70.0), "lost_in_rerank": WeightSums(30.0, 30.0)}
        >>> first = share_changes(before, now)[0]
        >>> first.name, first.before, first.now, round(first.low, 2)
        ('lost_in_rerank', 0.05, 0.3, 0.15)
    """
    names, none = sorted({*before, *now}), WeightSums(0.0, 0.0)
    old = weighted_shares({name: before.get(name, none) for name in names})
    new = weighted_shares({name: now.get(name, none) for name in names})
    changes = [_change(name, old[name], new[name]) for name in names if name in old and name in new]
    return sorted(changes, key=lambda it: -it.difference)


def mean_whatever_is_missing(mean: Interval, missing: Interval) -> Interval:
    """Return the bounds of a mean in [0, 1] over all due runs, whatever the missing scores would have been.

    With the missing share q, the mean m of the present scores gives (1 - q) m where every missing score is 0, and
    (1 - q) m + q where every one is 1. Both ends move outwards by the sampling error of m and q, combined as in
    Zou and Donner (Statistics in Medicine 27, 2008). Bounds that are None move nothing. Without a
    mean nothing was scored: None between 0 and 1, and three None where nothing was due either.

    Args:
        mean: of the present scores, with its interval.
        missing: share of the due weight that has no score, with its interval.

    Returns:
        The mean of the present scores between the two bounds.

    Example:
        >>> [round(it, 2) for it in mean_whatever_is_missing(Interval(0.9, None, None), Interval(0.2, None, None))]
        [0.9, 0.72, 0.92]
    """
    if missing.mean is None:
        return Interval(None, None, None)
    if mean.mean is None:
        return Interval(None, 0.0, 1.0)
    m, q = mean.mean, missing.mean
    down = 0.0 if mean.low is None else (1.0 - q) * (m - mean.low)
    up = 0.0 if mean.high is None else (1.0 - q) * (mean.high - m)
    more = 0.0 if missing.high is None else missing.high - q
    low = (1.0 - q) * m - math.hypot(down, m * more)
    high = (1.0 - q) * m + q + math.hypot(up, (1.0 - m) * more)
    return Interval(m, max(low, 0.0), min(high, 1.0))


def _change(name: str, before: Interval, now: Interval) -> ShareChange:
    (p, p_low, p_high), (q, q_low, q_high) = _bounds(before), _bounds(now)
    return ShareChange(
        name=name,
        before=p,
        now=q,
        difference=q - p,
        low=q - p - math.hypot(q - q_low, p_high - p),
        high=q - p + math.hypot(q_high - q, p - p_low),
    )


def _bounds(share: Interval) -> tuple[float, float, float]:
    return share.mean or 0.0, share.low or 0.0, share.high or 0.0
