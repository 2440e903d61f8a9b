"""The circuit breaker: stops calls of a failing or busy judge for a while, then sends one probe."""

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
LEAST_UNITS = 5  # of rejections in a row: what one record has in it may be rejected, and is no fault of the judge
FIRST_CALLS = 5  # at once of a judge that has answered nothing yet: each may be one too many for it
PAUSES_S = (2.0, 4.0, 8.0, 16.0, 30.0)  # of a busy judge, one after the other


@dataclass(slots=True, kw_only=True)
class Breaker:
    """Circuit breaker of one model; not thread-safe.

    It opens over 50 % failures of 10 calls in 30 s, or 10 in a row: a judge that hangs costs a timeout a call, so
    that 30 s never see 10 of them. It opens over 10 rejections in a row (400, 404) of 5 records at least, with no
    reply between. A refusal opens it at once.

    Open, nothing passes. When its time is over it is half-open and one call passes, the probe: a success closes it,
    a failure opens it for twice the time, from 30 s to 10 min. A refusal (key, money, model) holds it open for
    5 min at a time, until a probe succeeds, and `held` says why.

    Before its first answer few calls are under way at once, whatever the concurrency.

    A busy judge (429, 503) pauses all calls in the same way: for the time it asks for, else for 2, 4, 8, 16 and
    30 s, and one call passes then. A judge that is busy again behind its own time gets these pauses too.

    Attributes:
        held: the judge's refusal, None without one.
        is_probing: whether a probe is under way.
        pauses: so far of a judge that is busy; 0 where it is not.
        has_answered: whether it ever did.
        under_way: calls that passed and have not ended.

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
        >>> breaker.paused(now_s=40.0)
        >>> breaker.state(now_s=40.0), breaker.wait_s(now_s=40.0)
        ('closed', 2.0)
    """

    held: str | None = None
    is_probing: bool = False
    pauses: int = 0
    has_answered: bool = False
    under_way: int = 0
    _calls: deque[tuple[float, bool]] = field(default_factory=deque)
    _open_until_s: float | None = None
    _open_s: float = OPEN_S
    _failures_in_row: int = 0
    _rejections: dict[str, int] = field(default_factory=dict)  # in a row, by unit

    def state(self, now_s: float) -> BreakerState:
        """Return the state; a pause opens nothing."""
        if self._open_until_s is None or self.pauses:
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

    @property
    def is_full(self) -> bool:
        """True while as many calls are under way as a judge without an answer gets."""
        return not self.has_answered and self.under_way >= FIRST_CALLS

    def begin(self, now_s: float) -> bool:
        """Note that a call passes, and return whether it is the probe; ask `wait_s` and `is_full` first."""
        self.under_way += 1
        if self._open_until_s is None or now_s < self._open_until_s:
            return False
        self.is_probing = True
        return True

    def succeeded(self, now_s: float, *, is_probe: bool = False) -> None:
        """Count a reply of the judge, good or bad."""
        self.has_answered = True
        if is_probe:
            self._close()
        self._rejections.clear()
        self._add(now_s, is_good=True)

    def passed(self, *, is_probe: bool = False) -> None:
        """Note an answer that tells nothing of the judge but that it is there."""
        self.has_answered = True
        if is_probe:
            self._close()

    def failed(
        self, now_s: float, *, is_probe: bool = False, is_busy: bool = False, retry_after_s: float | None = None
    ) -> None:
        """Count a timeout, a broken connection or a 5xx; a busy one (503) pauses too.

        Args:
            now_s: the time.
            is_probe: whether the call was the probe.
            is_busy: whether all calls should pause.
            retry_after_s: the pause that the judge asks for.
        """
        if is_probe and not self.pauses:
            self._reopen(now_s, retry_after_s)
            return
        self._add(now_s, is_good=False)
        failures = sum(not is_good for _, is_good in self._calls)
        is_share = len(self._calls) >= LEAST_CALLS and failures >= FAILED_SHARE * len(self._calls)
        if self._is_passing and (is_share or self._failures_in_row >= LEAST_CALLS):
            self._open(now_s, max(self._open_s, retry_after_s or 0.0))
        if self._is_passing and (is_busy or is_probe):
            self.paused(now_s, retry_after_s, is_probe=is_probe)

    def paused(self, now_s: float, retry_after_s: float | None = None, *, is_probe: bool = False) -> None:
        """Pause after a busy answer.

        Args:
            now_s: the time.
            retry_after_s: the pause that the judge asks for.
            is_probe: whether the call was the probe. Others were sent before the pause, and lengthen it only by
                what they were told.
        """
        if self._open_until_s is not None and not is_probe:
            self._open_until_s = max(self._open_until_s, now_s + (retry_after_s or 0.0))
            return
        if self.held:
            self._hold(now_s, max(HELD_S, retry_after_s or 0.0))
            return
        step = self.pauses + (retry_after_s is None)  # at first the judge's own time is kept as it is
        own_s = PAUSES_S[min(step, len(PAUSES_S)) - 1] if step else 0.0
        self.pauses += 1
        self._hold(now_s, max(retry_after_s or 0.0, own_s))

    def rejected(self, now_s: float, unit: str, rejections: int = 1, *, is_probe: bool = False) -> None:
        """Count what the judge rejected without a reason.

        Args:
            now_s: the time.
            unit: whose requests they were.
            rejections: how many.
            is_probe: whether the last was the probe.
        """
        if is_probe and not self.pauses:
            self._reopen(now_s)
            return
        if is_probe:
            self._close()
        self._rejections[unit] = self._rejections.get(unit, 0) + rejections
        is_many = len(self._rejections) >= LEAST_UNITS and sum(self._rejections.values()) >= LEAST_CALLS
        if is_many and self._open_until_s is None:
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

    @property
    def _is_passing(self) -> bool:
        return self._open_until_s is None or self.pauses > 0

    def _reopen(self, now_s: float, retry_after_s: float | None = None) -> None:
        self._open_s = min(self._open_s * 2.0, OPEN_MOST_S)
        self._open(now_s, max(self._open_s, retry_after_s or 0.0))

    def _open(self, now_s: float, for_s: float) -> None:
        self.pauses = 0
        self._hold(now_s, for_s)
        self._forget()

    def _hold(self, now_s: float, for_s: float) -> None:
        self._open_until_s = now_s + for_s
        self.is_probing = False

    def _close(self) -> None:
        self.held, self._open_until_s, self._open_s, self.is_probing = None, None, OPEN_S, False
        self.pauses = 0
        self._forget()

    def _forget(self) -> None:
        self._calls.clear()
        self._rejections.clear()
        self._failures_in_row = 0


@dataclass(slots=True, kw_only=True)
class NoBreaker(Breaker):
    """A breaker that only pauses, for a person's run over a file, which asks for every line."""

    def refused(self, now_s: float, reason: str) -> None:  # noqa: ARG002 -- the base's arguments
        """Do nothing but free the place of a probe."""
        self._close()

    def _open(self, now_s: float, for_s: float) -> None:
        """Do nothing."""
