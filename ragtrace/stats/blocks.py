"""Consecutive scores in blocks, and how many scores each is worth less for being like its neighbours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCKS = 24
"""Blocks of a baseline. A block lasts an hour or more, so that a baseline has seen a day of hours."""
_LAGS = 4  # blocks after it that a block may be like
_UNSEEN = 0.01  # variance that scores are taken to have beside the one seen, alike within a block


class Block:
    """Weighted sums of some consecutive scores.

    Attributes:
        first: time of its first score; None where no times are given.
        n: number of scores.
    """

    __slots__ = ("first", "n", "w", "w2", "w2x", "w2x2", "wx", "wx2")

    def __init__(self) -> None:
        self.first: float | None = None
        self.n = 0
        self.w = self.wx = self.wx2 = self.w2 = self.w2x = self.w2x2 = 0.0

    def add(self, x: float, weight: float, at: float | None) -> None:
        """Take one score with its weight and Unix time."""
        if not self.n:
            self.first = at
        self.n += 1
        self.w += weight
        self.wx += weight * x
        self.wx2 += weight * x * x
        self.w2 += weight * weight
        self.w2x += weight * weight * x
        self.w2x2 += weight * weight * x * x

    def is_full(self, size: int, span_s: float, at: float | None) -> bool:
        """Return whether it has so many scores, and began so long before a time."""
        if self.n < size:
            return False
        return span_s == 0.0 or (at is not None and self.first is not None and at - self.first >= span_s)

    @property
    def mean(self) -> float:
        """Mean of its scores, weighted."""
        return self.wx / self.w

    def squares(self, mean: float) -> float:
        """Return the sum of squared weighted distances of its scores from a mean."""
        return max(self.w2x2 - 2.0 * mean * self.w2x + mean * mean * self.w2, 0.0)


def design_effect(blocks: Sequence[Block]) -> float:
    """Return how many times as far the mean of scores varies, in variance, as that of independent ones; 1 or more.

    It is the variance of the blocks' sums over that of independent scores, with what a block shares with the four
    after it where that makes it larger (Bartlett's weights, Newey and West). Where few scores are bad the data
    cannot tell whether bad ones come together. So each score also has a variance of .01 that is not seen, alike
    within its block: of scores that are all equal a whole block counts as one. 1.0 with fewer than two blocks.

    Example:
        >>> def worth(scores, size):
        ...     blocks = [Block() for _ in range(0, len(scores), size)]
        ...     for i, x in enumerate(scores):
        ...         blocks[i // size].add(x, 1.0, None)
        ...     return round(design_effect(blocks), 1)
        >>> worth([1.0, 0.0] * 48, 4), worth([1.0] * 96, 4)
        (1.0, 4.0)
    """
    count = len(blocks)
    if count < 2:
        return 1.0
    mean = math.fsum(it.wx for it in blocks) / math.fsum(it.w for it in blocks)
    apart = [it.wx - mean * it.w for it in blocks]
    shared = math.fsum(
        2.0 * (1.0 - lag / (_LAGS + 1)) * math.fsum(a * b for a, b in zip(apart, apart[lag:], strict=False))
        for lag in range(1, _LAGS + 1)
    )
    between = math.fsum(it * it for it in apart) * count / (count - 1) + max(shared, 0.0)
    within = math.fsum(it.squares(mean) for it in blocks)
    unseen = math.fsum(it.w**2 for it in blocks), math.fsum(it.w2 for it in blocks)
    return max((between + _UNSEEN / count * unseen[0]) / (within + _UNSEEN / count * unseen[1]), 1.0)
