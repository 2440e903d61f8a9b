"""The token bucket: at most a burst, and a rate from then on, whatever the calls and the clock do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

# Two processes that read one clock may store their readings in the other order, some milliseconds apart. An older
# reading than this says that the clock began anew.
ANEW_S = 60.0
# Bursts that a bucket owes at most. A burst of tokens is a minute's worth, so no level keeps a judge shut for more
# than some six minutes, whatever a file says.
MOST_DEBT = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket in one moment; a value, each step returns another one.

    Whatever is taken, less what is given back, is at most ``burst + rate_per_s * T`` for every pattern of calls,
    T being how far the clock went beyond its furthest reading. A clock that goes back a little gives no credit
    until it has caught up; one that begins anew gives none for the step.

    Attributes:
        rate_per_s: units that flow in a second.
        burst: most units it holds.
        level: units in it at `at_s`; below zero after a call that took more than it had asked for, by at most
            `MOST_DEBT` bursts.
        at_s: seconds of the clock it runs on.

    Example:
        >>> bucket = Bucket.full(rate_per_s=2.0, burst=3.0, now_s=100.0)
        >>> bucket = bucket.taken(3.0, now_s=100.0)
        >>> bucket.taken(1.0, now_s=100.2) is None, round(bucket.wait_s(1.0, now_s=100.2), 3)
        (True, 0.3)
        >>> bucket.taken(1.0, now_s=100.5).level
        0.0
    """

    rate_per_s: float
    burst: float
    level: float
    at_s: float

    @classmethod
    def full(cls, *, rate_per_s: float, burst: float, now_s: float) -> Bucket:
        """Return a bucket that was never used.

        Raises:
            ValueError: a rate or a burst that is not above zero and finite.
        """
        if not (0.0 < rate_per_s < math.inf and 0.0 < burst < math.inf):
            raise ValueError(f"a bucket needs a finite rate and burst above zero, got {rate_per_s} and {burst}")
        return cls(rate_per_s=rate_per_s, burst=burst, level=burst, at_s=now_s)

    def at(self, now_s: float) -> Bucket:
        """Return the bucket as it is at `now_s`: level and time move together, or not at all."""
        if now_s < self.at_s - ANEW_S:
            return replace(self, at_s=now_s)
        flowed = self.rate_per_s * max(now_s - self.at_s, 0.0)
        return replace(self, level=min(self.level + flowed, self.burst), at_s=max(now_s, self.at_s))

    def taken(self, amount: float, now_s: float) -> Bucket | None:
        """Return the bucket without `amount`; None when it does not hold as much, and then nothing has changed."""
        present = self.at(now_s)
        return replace(present, level=present.level - amount) if amount <= present.level else None

    def given_back(self, amount: float, now_s: float) -> Bucket:
        """Return the bucket with what a call did not use; a negative amount is what it took beyond its request."""
        present = self.at(now_s)
        return replace(present, level=min(max(present.level + amount, -MOST_DEBT * self.burst), self.burst))

    def wait_s(self, amount: float, now_s: float) -> float:
        """Return the seconds until `amount` can be taken; infinite when it is more than the bucket ever holds."""
        if amount > self.burst:
            return math.inf
        return max(amount - self.at(now_s).level, 0.0) / self.rate_per_s
