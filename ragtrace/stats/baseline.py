"""Baselines of drift detectors, and how they are learnt."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragtrace.semconv import SCORE_VARIANCE_FLOOR

if TYPE_CHECKING:
    from collections.abc import Iterator

State = Literal["learning", "ok", "warning", "alarm"]
STATE_NUMBERS: dict[State, int] = {"learning": 0, "ok": 1, "warning": 2, "alarm": 3}
SD_FLOOR = math.sqrt(SCORE_VARIANCE_FLOOR)  # with .1, two bad answers among forty were an alarm
WARNING_SHARE = 0.5  # of the threshold
_Z = 1.645  # one-sided 95 %


class Series(NamedTuple):
    """Identity of scores that share a baseline: their workflow, and all that forbids averaging.

    Attributes:
        metric: the exported name.
        workflow: whose scores.
        version: of the judge and its prompt; "" where nothing tells.
        k: the cut-off of an @K metric.
        label_scale: the scale of the labels behind it; the version does not tell it.
        universe: which passages were labelled; the version does not tell it.

    Example:
        >>> Series("mrr", "rag", "v") == Series("mrr", "rag", "v", universe="pool")
        False
    """

    metric: str
    workflow: str
    version: str
    k: int | None = None
    label_scale: str | None = None
    universe: str | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """Mean, spread and weight of normal scores.

    Attributes:
        mean: of the scores, weighted.
        sd: their standard deviation, weighted, not floored.
        n: number of scores.
        mean_weight: of one score; later weights are measured against it.
        n_eff: how many equally weighted scores they are worth; None = as many as there are.
        max_weight: the largest; None = the mean one.

    Example:
        >>> round(Baseline(mean=0.92, sd=0.2, n=400).low, 4)
        0.9036
    """

    mean: float
    sd: float
    n: int
    mean_weight: float = 1.0
    n_eff: float | None = None
    max_weight: float | None = None

    @property
    def low(self) -> float:
        """The one-sided 95 % lower confidence bound of the mean, with the floored standard deviation."""
        return self.mean - _Z * max(self.sd, SD_FLOOR) / math.sqrt(self.effective)

    @property
    def effective(self) -> float:
        """The effective number of scores, Kish's (sum of w)^2 / sum of w^2."""
        return self.n_eff or float(self.n)


def state_of(statistic: float, threshold: float | None, *, has_alarmed: bool) -> State:
    """Return a detector's state; without a threshold it learns.

    Example:
        >>> state_of(3.0, 5.0, has_alarmed=False), state_of(0.0, None, has_alarmed=False)
        ('warning', 'learning')
    """
    if threshold is None:
        return "learning"
    if has_alarmed:
        return "alarm"
    return "warning" if statistic >= WARNING_SHARE * threshold else "ok"


class Learner:
    """Gathers scores until there are enough for a baseline. Not thread-safe.

    Args:
        learn: how many, at least 1.

    Example:
        >>> learner = Learner(2)
        >>> learner.add(0.8, 1.0), learner.add(1.0, 1.0).mean
        (None, 0.9)
    """

    def __init__(self, learn: int) -> None:
        self._learn = learn
        self._scores = array("d")
        self._weights = array("d")

    def add(self, x: float, weight: float) -> Baseline | None:
        """Take one score; return the baseline once there are enough, else None."""
        self._scores.append(x)
        self._weights.append(weight)
        if len(self._scores) < self._learn:
            return None
        n, total = len(self._scores), math.fsum(self._weights)
        mean = math.fsum(w * x for x, w in self.pairs()) / total
        sd = math.sqrt(math.fsum(w * (x - mean) ** 2 for x, w in self.pairs()) / total)
        return Baseline(
            mean,
            sd,
            n,
            mean_weight=total / n,
            n_eff=total**2 / math.fsum(w * w for w in self._weights),
            max_weight=max(self._weights),
        )

    def pairs(self) -> Iterator[tuple[float, float]]:
        """Return what was gathered, as (score, weight)."""
        return zip(self._scores, self._weights, strict=True)
