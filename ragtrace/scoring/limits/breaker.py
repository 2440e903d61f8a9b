"""The circuit breaker: stops calls of a failing judge for a while, then sends one probe."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal

BreakerState = Literal["closed", "half_open", "open"]
_GAUGE: Final[dict[BreakerState, int]] = {"closed": 0, "half_open": 1, "open": 2}
WINDOW_S = 30.0
LEAST_CALLS = 10
FAILED_SHARE = 0.5
OPEN_S, OPEN_MOST_S = 30.0, 600.0
HELD_S = 300.0  # between two probes of a judge that refuses key, account or model


@dataclass(slots=True, kw_only=True)
class Breaker:
    """Circuit breaker over 50 % failures of 10 calls in 30 s, or 10 in a row; not thread-safe.

    A judge that hangs costs a timeout a call, so that 30 s never see 10 of them. A refusal opens it at once.

    Open, nothing passes. When its time is over it is half-open and one call passes, the probe: a success closes it,
    a failure opens it for twice the time, from 30 s to 10 min. A refusal (key, money, model) holds it open for
    5 min at a time, until a probe succeeds, and `held` says why.

    Attributes:
        held: the judge's refusal, None without one.
        is_probing: whether a probe is under way.

    Example:
        >>> breaker = Breaker()
        >>> for _ in range(10):
        ...     breaker.failed(now_s=1.0)
        >>> breaker.state(now_s=2.0), breaker.wait_s(now_s=2.0)
        ('open', 29.0)
        >>> breaker.state(now_s=31.0), breaker.begin(now_s=31.0), breaker.wait_s(now_s=31.0) > 0
        ('half_open', True, True)
        >>> breaker.succeeded(now_s=32.0, is_probe=True)
        >>> breaker.state(now_s=32.0)
        'closed'
    """

    held: str | None = None
    is_probing: bool = False
    _calls: deque[tuple[float, bool]] = field(default_factory=deque)
    _open_until_s: float | None = None
    _open_s: float = OPEN_S
    _failures_in_row: int = 0

    def state(self, now_s: float) -> BreakerState:
        """Return the state."""
        if self._open_until_s is None:
            return "closed"
        return "open" if now_s < self._open_until_s else "half_open"

    def gauge(self, now_s: float) -> int:
        """Return the value of ``ragtrace.judge.breaker.state``: 0 closed, 1 half-open, 2 open or held."""
        return 2 if self.held else _GAUGE[self.state(now_s)]

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until a call may pass; 0.0 when one may now, 1.0 while a probe is under way."""
        if self._open_until_s is None:
            return 0.0
        wait_s = max(self._open_until_s - now_s, 0.0)
        return wait_s or (1.0 if self.is_probing else 0.0)

    def begin(self, now_s: float) -> bool:
        """Note that a call passes, and return whether it is the probe; ask `wait_s` first."""
        if self._open_until_s is None or now_s < self._open_until_s:
            return False
        self.is_probing = True
        return True

    def succeeded(self, now_s: float, *, is_probe: bool = False) -> None:
        """Count a reply of the judge, good or bad."""
        if is_probe:
            self._close()
        self._add(now_s, is_good=True)

    def failed(self, now_s: float, *, is_probe: bool = False) -> None:
        """Count a timeout, a broken connection or a 5xx."""
        if is_probe:
            self._open_s = min(self._open_s * 2.0, OPEN_MOST_S)
            self._open(now_s, self._open_s)
            return
        self._add(now_s, is_good=False)
        failures = sum(not is_good for _, is_good in self._calls)
        is_share = len(self._calls) >= LEAST_CALLS and failures >= FAILED_SHARE * len(self._calls)
        if self._open_until_s is None and (is_share or self._failures_in_row >= LEAST_CALLS):
            self._open(now_s, self._open_s)

    def refused(self, now_s: float, reason: str) -> None:
        """Hold the judge after a refusal."""
        self.held = reason
        self._open(now_s, HELD_S)

    def abandoned(self, *, is_probe: bool) -> None:
        """Forget a call that was cancelled here; a cancelled probe frees its place."""
        if is_probe:
            self.is_probing = False

    def _add(self, now_s: float, *, is_good: bool) -> None:
        self._failures_in_row = 0 if is_good else self._failures_in_row + 1
        self._calls.append((now_s, is_good))
        while self._calls and not now_s - WINDOW_S < self._calls[0][0] <= now_s:
            self._calls.popleft()

    def _open(self, now_s: float, for_s: float) -> None:
        self._open_until_s = now_s + for_s
        self.is_probing = False
        self._forget()

    def _close(self) -> None:
        self.held, self._open_until_s, self._open_s, self.is_probing = None, None, OPEN_S, False
        self._forget()

    def _forget(self) -> None:
        self._calls.clear()
        self._failures_in_row = 0


@dataclass(slots=True, kw_only=True)
class NoBreaker(Breaker):
    """A breaker that stays closed, for a person's run over a file, which asks for every line."""

    def _open(self, now_s: float, for_s: float) -> None:
        """Do nothing."""
