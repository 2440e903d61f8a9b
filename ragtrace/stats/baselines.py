"""Baselines: mean, spread and weight of normal scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragtrace.stats.blocks import BLOCKS, Block, design_effect

LEARNT_SCORES = 500
"""Scores of a baseline that nobody froze."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Mean, spread and weight of normal scores.

    Attributes:
        mean: of the scores, weighted.
        sd: their standard deviation, weighted, not floored.
        n: number of scores.
        mean_weight: of one score.
        n_eff: how many equally weighted scores they are worth; None = as many as there are.
        max_weight: the largest; None = the mean one.
        design_effect: how many times as far their mean varies, in variance, as that of independent scores.

    Example:
        >>> Baseline(mean=0.92, sd=0.2, n=400).effective, Baseline(mean=0.92, sd=0.2, n=400, n_eff=90.5).effective
        (400.0, 90.5)
    """

    mean: float
    sd: float
    n: int
    mean_weight: float = 1.0
    n_eff: float | None = None
    max_weight: float | None = None
    design_effect: float = 1.0

    @property
    def effective(self) -> float:
        """The effective number of scores, Kish's (sum of w)^2 / sum of w^2."""
        return self.n_eff or float(self.n)


class Learner:
    """Gathers scores until there are enough for a baseline. Not thread-safe.

    Enough are a number of scores in 24 blocks of consecutive ones, or in as many as there are scores. Their design
    effect is that of the blocks.

    Args:
        learn: how many, at least 1.
        span_s: seconds that a block lasts, at least; 0 = no times are needed.

    Example:
        >>> learner = Learner(2)
        >>> learner.add(0.8, 1.0), learner.add(1.0, 1.0).mean
        (None, 0.9)
    """

    def __init__(self, learn: int, *, span_s: float = 0.0) -> None:
        self._learn = learn
        self._span_s = span_s
        self._blocks = [Block()]
        self._n = 0
        self._max_weight = 0.0

    def add(self, x: float, weight: float, at: float | None = None) -> Baseline | None:
        """Take one score; return the baseline once there are enough, else None."""
        if self._blocks[-1].is_full(max(self._learn // BLOCKS, 1), self._span_s, at):
            self._blocks.append(Block())
        self._blocks[-1].add(x, weight, at)
        self._n += 1
        self._max_weight = max(self._max_weight, weight)
        if self._n < self._learn or len(self._blocks) < min(BLOCKS, self._learn):
            return None
        blocks, n = self._blocks, self._n
        w, wx, w2 = (math.fsum(getattr(it, name) for it in blocks) for name in ("w", "wx", "w2"))
        mean = wx / w
        variance = math.fsum(it.wx2 - 2.0 * mean * it.wx + mean * mean * it.w for it in blocks) / w
        return Baseline(
            mean,
            math.sqrt(max(variance, 0.0)),
            n,
            mean_weight=w / n,
            n_eff=w**2 / w2,
            max_weight=self._max_weight,
            design_effect=design_effect(blocks),
        )
