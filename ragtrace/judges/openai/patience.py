"""How often an attempt is repeated, and how long one waits in between."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Full jitter: the wait after attempt n is uniform in [0, min(backoff_s * 2^(n - 1), backoff_max_s)].

    Attributes:
        attempts: tries in all.
        backoff_s: bound of the first wait.
        backoff_max_s: bound of every wait.
        retry_after_max_s: a server that asks for a longer wait is given up; the limiter remembers its wish.
        random_of: uniform in two bounds.

    Example:
        >>> patience = RetryPolicy(attempts=3, random_of=lambda low, high: high)
        >>> [patience.wait_s(attempt) for attempt in (1, 2, 3)]
        [1.0, 2.0, None]
        >>> patience.wait_s(1, retry_after_s=30.0), patience.wait_s(1, retry_after_s=61.0)
        (30.0, None)
    """

    attempts: int = 3
    backoff_s: float = 1.0
    backoff_max_s: float = 60.0
    retry_after_max_s: float = 60.0
    random_of: Callable[[float, float], float] = random.uniform

    def wait_s(self, attempt: int, retry_after_s: float | None = None) -> float | None:
        """Return the seconds to wait after an attempt, counted from 1; None when it was the last.

        Args:
            attempt: which one failed.
            retry_after_s: what the server asks for; never waited for less.
        """
        if attempt >= self.attempts:
            return None
        # 2^30 is beyond every bound; more would overflow a float after a thousand attempts.
        jitter_s = self.random_of(0.0, min(self.backoff_s * 2 ** min(attempt - 1, 30), self.backoff_max_s))
        wait_s = max(jitter_s, retry_after_s or 0.0)
        return wait_s if wait_s <= self.retry_after_max_s else None
