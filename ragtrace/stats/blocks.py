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
_KNOWN = 0.04  # variance of a baseline's scores from which on it knows how alike they are


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


class Dependence:
    """Goes on learning a design effect while a baseline showed too few bad scores to know it. Not thread-safe.

    A later block counts with its squared distance from the nearer of its two neighbours: a bad session stands out
    from both, and a fall of the mean from one. Of independent scores that is as much as their variance (0.9 of it
    where they are normal). What is learnt is used for the scores after it.

    Args:
        effect: of the baseline.
        weight: the baseline's sum of squared weights.
        variance: of the baseline's scores.
        size: scores of a block, at least.
        span_s: seconds of a block, at least.

    Attributes:
        effect: the design effect as far as it is known, 1 or more.
    """

    def __init__(self, effect: float, *, weight: float, variance: float, size: int, span_s: float) -> None:
        self.effect = effect
        self._size = size
        self._span_s = span_s
        self._known = weight * (variance + _UNSEEN / BLOCKS)
        self._between = effect * self._known
        self._enough = weight * _KNOWN
        self._block = Block()
        self._before: list[Block] = []  # at most two

    def add(self, x: float, weight: float, at: float | None) -> None:
        """Take a score, with its weight in weights of the baseline's mean score."""
        if self._known >= self._enough:
            return
        if self._block.is_full(self._size, self._span_s, at):
            self._close(self._block)
        self._block.add(x, weight, at)

    def _close(self, block: Block) -> None:
        if len(self._before) > 1:
            earlier, middle = self._before
            apart = min(abs(middle.mean - earlier.mean), abs(middle.mean - block.mean))
            between = (middle.w * apart) ** 2
            self._between += between
            self._known += middle.squares(middle.mean) + between * middle.w2 / middle.w**2
            self.effect = max(self._between / self._known, 1.0)
        self._before, self._block = [*self._before[-1:], block], Block()
