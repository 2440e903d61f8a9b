"""Difference of a judge from its own earlier scores of the same runs."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

State = Literal["learning", "ok", "warning", "alarm"]
STATE_NUMBERS: dict[State, int] = {"learning": 0, "ok": 1, "warning": 2, "alarm": 3}
ALARM_ERRORS = 4.0
"""Standard errors at which the judge counts as changed.

In simulated months with 8 looks a day, a stable judge alarms in at most 1 % of them, for one metric, from 50
runs and 3 reference scores a run on (`tests/monitoring/test_judge_worlds.py`).
"""
WARNING_ERRORS = 3.0
LEAST_CHANGE = 0.01
"""A smaller change is no alarm, however certain it is."""
LEAST_ANCHORS = 30
_SD_FLOOR = 0.05  # equal scores of a few runs prove little
_SHRUNK_TO = 4.0  # runs of the pooled variance beside those of a band
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class AnchorPair:
    """The reference and the latest score of one anchor.

    Attributes:
        band: the band of scores that the anchor was drawn from.
        share: of the traffic that lies in this band, 0 to 1; the same for all anchors of a band.
        reference: the scores of the reference, at least one.
        now: the latest score after them.
    """

    band: int
    share: float
    reference: Sequence[float]
    now: float

    @property
    def change(self) -> float:
        """Latest score minus the mean of the reference."""
        return self.now - fmean(self.reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeChange:
    """Estimated change of a mean over the traffic that the judge alone makes.

    Attributes:
        mean: new minus reference, in score units; below 0 the judge scores lower than it did.
        low: lower 95 % bound.
        high: upper 95 % bound.
        n: anchors with both scores.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def error(self) -> float:
        """Standard error, as it follows from the bounds."""
        return (self.high - self.low) / (2.0 * _Z)

    @property
    def state(self) -> State:
        """Learning below 30 anchors, ok, warning from 3 standard errors on, alarm from 4 on; either way."""
        if self.n < LEAST_ANCHORS:
            return "learning"
        size = abs(self.mean)
        if size < LEAST_CHANGE or size < WARNING_ERRORS * self.error:
            return "ok"
        return "alarm" if size >= ALARM_ERRORS * self.error else "warning"


def judge_change(pairs: Sequence[AnchorPair]) -> JudgeChange | None:
    """Return the mean change over the traffic, with a 95 % interval; None without pairs.

    Anchors are drawn from bands of scores, and a band counts with its share of the traffic (Cochran, Sampling
    Techniques, 5.3). A band's variance is shrunk to the pooled one with the weight of four anchors. It is at least
    the variance that the repeated reference scores predict for a judge that did not change, since the reference is
    as noisy as the score that is compared with it.

    Example:
        >>> kept = [AnchorPair(0, 0.8, (1.0, 0.9), 0.95), AnchorPair(1, 0.2, (0.2, 0.2), 0.2)] * 20
        >>> found = judge_change(kept)
        >>> round(found.mean, 3), found.n, found.state
        (0.0, 40, 'ok')
        >>> judge_change([]) is None
        True
    """
    if not pairs:
        return None
    bands: dict[int, list[AnchorPair]] = defaultdict(list)
    for pair in pairs:
        bands[pair.band].append(pair)
    total = math.fsum(members[0].share for members in bands.values())
    floor = max(_SD_FLOOR**2, _null_variance(pairs))
    squares = {band: _squares(members) for band, members in bands.items()}
    pooled = max(math.fsum(squares.values()) / max(len(pairs) - len(bands), 1), floor)
    mean = variance = 0.0
    for band, members in bands.items():
        share, n = members[0].share / total, len(members)
        mean += share * fmean(pair.change for pair in members)
        own = max((squares[band] + _SHRUNK_TO * pooled) / (n - 1 + _SHRUNK_TO), floor)
        variance += share**2 * own / n
    reach = _Z * math.sqrt(variance)
    return JudgeChange(mean=mean, low=max(mean - reach, -1.0), high=min(mean + reach, 1.0), n=len(pairs))


def _squares(members: Sequence[AnchorPair]) -> float:
    middle = fmean(pair.change for pair in members)
    return math.fsum((pair.change - middle) ** 2 for pair in members)


def _null_variance(pairs: Sequence[AnchorPair]) -> float:
    """Return the variance of a change that noise of the judge alone makes; 0 without repeated references."""
    repeated = [pair.reference for pair in pairs if len(pair.reference) > 1]
    if not repeated:
        return 0.0
    means = [fmean(scores) for scores in repeated]
    spread = math.fsum((x - m) ** 2 for scores, m in zip(repeated, means, strict=True) for x in scores)
    noise = spread / sum(len(scores) - 1 for scores in repeated)
    return noise * (1.0 + fmean(1.0 / len(pair.reference) for pair in pairs))
