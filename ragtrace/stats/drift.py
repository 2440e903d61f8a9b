"""Baselines of scores, and the e-detector: a drop detector whose false-alarm rate is a theorem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ragtrace.semconv import SCORE_VARIANCE_FLOOR
from ragtrace.stats.blocks import BLOCKS, Block, Dependence, design_effect

State = Literal["learning", "ok", "warning", "alarm"]
STATE_NUMBERS: dict[State, int] = {"learning": 0, "ok": 1, "warning": 2, "alarm": 3}
GRID = (0.05, 0.1, 0.2, 0.35, 0.55, 0.8)
"""Shares of the highest possible bet; small ones find small drops late, large ones large drops soon."""
_LOG_PATHS = math.log(len(GRID))
_SD_FLOOR = math.sqrt(SCORE_VARIANCE_FLOOR)  # with .1, two bad answers among forty were an alarm
_WARNING_SHARE = 0.5  # of the threshold
_Z = 1.645  # one-sided 95 %
_UNEVEN = 1.5  # clusters differ in size, and bets have to bear larger ones than the mean one


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
        design_effect: how many times as far their mean varies, in variance, as that of independent scores.

    Example:
        >>> round(Baseline(mean=0.92, sd=0.2, n=400).low, 4)
        0.9036
        >>> round(Baseline(mean=0.92, sd=0.2, n=400, design_effect=4.0).low, 4)
        0.8871
    """

    mean: float
    sd: float
    n: int
    mean_weight: float = 1.0
    n_eff: float | None = None
    max_weight: float | None = None
    design_effect: float = 1.0

    @property
    def low(self) -> float:
        """The one-sided 95 % lower confidence bound of the mean, with the floored standard deviation."""
        return self.mean - _Z * max(self.sd, _SD_FLOOR) * math.sqrt(self.design_effect / self.effective)

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
        if self._blocks[-1].is_full(block_size(self._learn), self._span_s, at):
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


def block_size(learn: int) -> int:
    """Return how many scores a block has at least, for a baseline of so many scores."""
    return max(learn // BLOCKS, 1)


class EDetector:
    """Bets against "the mean is at least m0"; its winnings are the evidence of a drop.

    Each bet lambda of a grid has a path M <- max(M, 1) (1 + lambda w (m0 - x)), with w the score's weight (1 /
    inclusion probability) and lambda = share / (W (1 - m0)) for a bound W of the weights, so that no factor falls
    below .2. The statistic is log mean M, the alarm stands at log(target_arl). As max(M, 1) <= M + 1, mean M less
    the number of scores is a supermartingale while E[w (m0 - x)] <= 0, whatever the scores look like and however
    often one looks: scores until a false alarm average target_arl or more, and the chance of one within T scores is
    at most T / target_arl. (E-detectors of Shin, Ramdas and Rinaldo, bets of Waudby-Smith and Ramdas.)

    That is about independent scores. Scores of clusters that are alike, such as turns of a session that nobody
    declares, are worth fewer. So each factor is raised to the power of 1 / D. For independent clusters of at most D
    scores the expectation of their product is at most 1, however alike the scores of one are (Hölder). Where they
    come one after another, the promise holds at each look between them. D is not known but measured: the design
    effect of the baseline, over blocks of an hour or more (`ragtrace.stats.blocks`), and half as much again of what
    is above 1, since clusters differ in size. So for such scores the rate is measured, not proved: docs/how-to/
    alerts.md has it, and the worlds in which it was measured (`tests/unit/stats/e_detector_worlds.py`).

    m0 is the baseline's lower confidence bound less the tolerance: benign wander is no drop. The mean has to stay.
    A burst of one bad topic breaks the promise, so an alarm also waits until its evidence spans ``span_s``, and is
    a warning so long.

    An alarm stays until the statistic is back at 0 or below, or until `reset`; the detector then begins anew, and
    the promise holds anew from there. While the alarm lasts no path goes above the height at which it would alarm
    alone, so that after a long drop good scores end it as soon as after a short one.

    Not thread-safe; asks no clock.

    A weight above W counts as W in its own score, and raises W for the scores after it: refusing the score would
    bias the mean toward frequent strata, and the bound is chosen before each score again.

    Args:
        learn: scores of the baseline, at least 1; in 24 blocks that each last ``span_s`` or more, so that the
            baseline takes longer where scores come fast.
        tolerance: the drop that is not worth an alarm, in score units, above 0.
        target_arl: scores between false alarms on average, at least, above 1.
        span_s: seconds that evidence has to span, and a block: 3,600 are two distinct hours; 0 = alarm at once.
        baseline: a frozen baseline; nothing is learnt then.
        max_weight: W; None = the largest weight of the baseline.

    Attributes:
        statistic: log mean M; 0.0 while learning, never below log .2.
        threshold: log(target_arl); None while learning.
        m0: the mean that is tested; None while learning. At 0 or below nothing can be found.
        n: scores taken, those of the baseline among them.
        changed_at: while it alarms, the number of the last score before the estimated change.
        changed_time: when that score was taken; None where no time was given.

    Example:
        >>> detector = EDetector(baseline=Baseline(mean=0.9, sd=0.2, n=500), span_s=0.0)
        >>> [*(detector.add(0.95) for _ in range(50)), *(detector.add(0.3) for _ in range(12))][-1]
        'alarm'
        >>> detector.changed_at
        50
    """

    def __init__(
        self,
        *,
        learn: int = 500,
        tolerance: float = 0.02,
        target_arl: float = 73_000.0,
        span_s: float = 3_600.0,
        baseline: Baseline | None = None,
        max_weight: float | None = None,
    ) -> None:
        if learn < 1 or not (tolerance > 0.0 and 1.0 < target_arl < math.inf and span_s >= 0.0):
            raise ValueError(
                f"learn and tolerance are above 0, target_arl above 1 and span_s not below 0,"
                f" got {learn}, {tolerance}, {target_arl}, {span_s}"
            )
        if max_weight is not None and not 0.0 < max_weight < math.inf:
            raise ValueError(f"max_weight is above 0 and finite, got {max_weight}")
        self.tolerance = tolerance
        self.target_arl = target_arl
        self.span_s = span_s
        self.statistic = 0.0
        self.n = 0
        self.baseline: Baseline | None = None
        self.threshold: float | None = None
        self.m0: float | None = None
        self.changed_at: int | None = None
        self.changed_time: float | None = None
        self._given_weight = max_weight
        self._max_weight = 1.0
        self._learn = learn
        self._learner = Learner(learn, span_s=span_s)
        self._dependence: Dependence | None = None
        self._paths: list[_Path] = []
        self._last_at: float | None = None
        self._has_alarmed = False
        if baseline is not None:
            self._begin(baseline)

    @property
    def state(self) -> State:
        """Learning, ok, warning (half-way to the threshold, or beyond it in too short a time) or alarm."""
        if self.threshold is None:
            return "learning"
        if self._has_alarmed:
            return "alarm"
        return "warning" if self.statistic >= _WARNING_SHARE * self.threshold else "ok"

    def add(self, x: float, weight: float = 1.0, at: float | None = None) -> State:
        """Take one score in [0, 1] with its weight (above 0) and time, and return the state after it.

        Args:
            x: the score; higher is better.
            weight: 1 / inclusion probability.
            at: Unix seconds; needed unless ``span_s`` is 0.

        Raises:
            ValueError: a score outside [0, 1], a weight that is not above 0 and finite, or no time; nothing has
                changed.
        """
        if not (0.0 <= x <= 1.0 and 0.0 < weight < math.inf):
            raise ValueError(f"a score lies in [0, 1] and its weight is above 0 and finite, got {x} and {weight}")
        if self.span_s > 0.0 and (at is None or not math.isfinite(at)):
            raise ValueError(f"evidence has to span {self.span_s:g} s, so a score needs its time, got {at}")
        if self.m0 is None:
            if (learnt := self._learner.add(x, weight, at)) is not None:
                self._learner = Learner(1)
                self._begin(learnt)
        else:
            self._bet(self.m0, x, weight, at)
        self.n += 1
        self._last_at = at
        return self.state

    def reset(self) -> None:
        """Forget the evidence, any alarm and a raised bound of the weights; the baseline stays."""
        self.statistic = 0.0
        self.changed_at = self.changed_time = None
        self._has_alarmed = False
        if self.baseline is not None:
            self._begin(self.baseline)

    def _bet(self, m0: float, x: float, weight: float, at: float | None) -> None:
        gain = min(weight / self._max_weight, 1.0) * (m0 - x) / (1.0 - m0)
        self._max_weight = max(self._max_weight, weight)
        effect = 1.0
        if self.baseline is not None and self._dependence is not None:
            self._dependence.add(x, weight / self.baseline.mean_weight, at)
            effect += _UNEVEN * (self._dependence.effect - 1.0)
        for path in self._paths:
            path.bet(gain, at, since=(self.n, self._last_at), effect=effect)
            if self._has_alarmed and self.threshold is not None:
                path.log = min(path.log, self.threshold + _LOG_PATHS)
        top = max(path.log for path in self._paths)
        self.statistic = top + math.log(math.fsum(math.exp(p.log - top) for p in self._paths)) - _LOG_PATHS
        if self._has_alarmed:
            if self.statistic <= 0.0:
                self.reset()
            return
        best = max(self._paths, key=lambda path: path.log)
        is_beyond = self.threshold is not None and self.statistic >= self.threshold
        if is_beyond and best.span_s >= self.span_s:
            self._has_alarmed = True
            self.changed_at, self.changed_time = best.since

    def _begin(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self.threshold = math.log(self.target_arl)
        self.m0 = baseline.low - self.tolerance
        self._max_weight = self._given_weight or baseline.max_weight or baseline.mean_weight
        self._dependence = Dependence(
            baseline.design_effect,
            weight=baseline.n**2 / baseline.effective,
            variance=baseline.sd**2,
            size=block_size(self._learn),
            span_s=self.span_s,
        )
        self._paths = [_Path(share) for share in GRID]


class _Path:
    """Logarithm of one bet's wealth, the start of its rise, and the time span of its evidence."""

    __slots__ = ("_first", "_last", "_share", "log", "since")

    def __init__(self, share: float) -> None:
        self._share = share
        self.log = 0.0
        self.since: tuple[int, float | None] = (0, None)
        self._first = math.inf
        self._last = -math.inf

    def bet(self, gain: float, at: float | None, *, since: tuple[int, float | None], effect: float) -> None:
        if self.log <= 0.0:
            self.log, self.since = 0.0, since
            self._first, self._last = math.inf, -math.inf
        self.log += math.log1p(self._share * gain) / effect
        if gain > 0.0 and at is not None:
            self._first, self._last = min(self._first, at), max(self._last, at)

    @property
    def span_s(self) -> float:
        return max(self._last - self._first, 0.0)
