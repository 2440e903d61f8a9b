"""The second draw: which of the sampled runs the second judge scores, by the score of the first."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ragtrace.sampling.draw import uniform

_SALT = b"ragtrace:second:v1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRates:
    """Probabilities of the second draw by the first judge's score.

    Attributes:
        lows: lower bounds of the first score, rising; the first is 0.
        rates: the probability from each bound on, above 0 and at most 1.
        without: the probability of runs that the first judge gives no score.

    Example:
        >>> rates = SecondRates(lows=(0.0, 0.8), rates=(0.4, 0.1), without=0.2)
        >>> rates.of(0.79), rates.of(0.8), rates.of(None)
        (0.4, 0.1, 0.2)
    """

    lows: tuple[float, ...]
    rates: tuple[float, ...]
    without: float

    def of(self, first: float | None) -> float:
        """Return the probability for a run with this first score."""
        if first is None:
            return self.without
        return self.rates[max(bisect_right(self.lows, first) - 1, 0)]


def is_drawn_again(trace_id: str, rate: float) -> bool:
    """Return whether the second judge scores a run; every process and every attempt draws alike.

    The trace's number has a salt of its own, so that of the sampled runs a share alike is drawn.

    Example:
        >>> is_drawn_again("4bf92f3577b34da6a3ce929d0e0e4736", 1.0)
        True
    """
    return uniform(trace_id, _SALT) < rate
