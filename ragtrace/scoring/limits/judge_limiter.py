"""The limiter before one judge server: rates, budgets, concurrency and breaker in one, for every attempt."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrace.capture import record_internal_error
from ragtrace.host import Clock
from ragtrace.scoring.limits.blocked import OF_NEED, Blocked, error_of
from ragtrace.scoring.limits.breaker import Breaker, gauge_of
from ragtrace.scoring.limits.budget import Books, Caps, Left, Refusal
from ragtrace.scoring.limits.concurrency import Concurrency
from ragtrace.scoring.limits.prices import Prices
from ragtrace.scoring.limits.semaphore import Slots
from ragtrace.scoring.limits.token_estimate import Estimate, taken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ragtrace.judges.limiter import AttemptResult, Request
    from ragtrace.scoring.limits.budget import Reservation

_log = logging.getLogger("ragtrace")
PATIENCE_S = 60.0  # a longer wait is not waited for: the unit goes back into the queue instead
BACKFILL_PATIENCE_S = 600.0  # for rates, where there is no queue to go back to
RETRY_AFTER_MOST_S = 7_200.0
BROKEN_BOOKS_S = 60.0
LEAST_SLEEP_S = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterReading:
    """The limiter in one moment, for the gauges.

    Attributes:
        budget_usd: what is left of today's US dollars; None when off, when the price is not known, or when the
            books cannot be read.
        budget_tokens: what is left of today's tokens; None when off or not readable.
        breaker: 0 closed, 1 half-open, 2 open or held.
        held: why the judge refuses us, None when it does not.
        concurrency: calls that may be under way.
        under_way: calls that are.
    """

    budget_usd: float | None
    budget_tokens: int | None
    breaker: int
    held: str | None
    concurrency: int
    under_way: int


@dataclass(slots=True, kw_only=True, eq=False)
class JudgePermit:
    """A permission for one attempt; a `ragtrace.judges.limiter.Permit`.

    Attributes:
        request: what the attempt may take.
        reservation: what was granted.
        began_s: when, by the limiter's clock.
        is_probe: whether the attempt decides about the breaker.
        end: takes the end of the attempt into account.
    """

    request: Request
    reservation: Reservation
    began_s: float
    is_probe: bool
    end: Callable[[JudgePermit, AttemptResult], None]
    _is_left: bool = False

    def release(self, result: AttemptResult) -> None:
        """Say how the attempt went; a second time says nothing."""
        if not self._is_left:
            self._is_left = True
            self.end(self, result)


class JudgeLimiter:
    """Lets attempts at one server in; a `ragtrace.judges.limiter.RateLimiter`. Coroutine-safe.

    Args:
        host: the server; processes that share the books share its rates.
        caps: rates and budgets.
        path: the file of the books, shared by the processes of this host; None keeps them in memory, where each
            process has all of the budget for itself and forgets it at its end.
        prices: what tokens cost.
        account: whose budget.
        concurrency: how many calls at once, and how that changes.
        patience_s: the longest wait for rates.
        clock: the time.
        sleep: waits.

    Attributes:
        moved_at_s: when an attempt last ended or was refused, in seconds of `time.monotonic`; for a health check.

    Example:
        >>> from ragtrace.judges.limiter import Request, AttemptResult
        >>> limiter = JudgeLimiter(host="judge", caps=Caps(usd_per_day=None))
        >>> async def call():
        ...     passed = await limiter.acquire(Request(model="m", request_bytes=900, max_output_tokens=100))
        ...     passed.release(AttemptResult(fate="answered", input_tokens=200, output_tokens=30))
        >>> asyncio.run(call())
        >>> limiter.reading().budget_tokens, limiter.blocked()
        (19999770, None)
    """

    def __init__(
        self,
        *,
        host: str,
        caps: Caps,
        path: Path | None = None,
        prices: Prices | None = None,
        account: str = "scoring",
        concurrency: Concurrency | None = None,
        patience_s: float = PATIENCE_S,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self.host = host
        self.moved_at_s = time.monotonic()
        self._clock = clock or Clock()
        self._books = Books(path, host=host, caps=caps, account=account, clock=self._clock)
        self._prices = prices or Prices()
        self._has_price: bool | None = None
        self._is_usd_capped = bool(caps.usd_per_day)
        self._estimate = Estimate()
        self._concurrency = concurrency or Concurrency()
        # Of its places too: with two locks, a finaliser under the one would wait for the other.
        self._lock = threading.RLock()
        self._slots = Slots(self._concurrency.allowed, self._lock)
        self._breaker = Breaker()
        self._patience_s = patience_s
        self._sleep = sleep
        self._shut_until_s: dict[str, float] = {}  # by `Blocked.reason`

    async def acquire(self, request: Request) -> JudgePermit:
        """Wait for a place and for the rates, as long as patience lasts, and return a permission.

        Raises:
            JudgeOverBudget: today's budget has nothing left for now, or never has as much.
            JudgeRateLimited: the server asked for more than that, or the request is beyond a minute's rate.
            JudgeUnavailable: the breaker is open, the judge refuses us, or the books cannot be written.
        """
        await self._slots.enter()
        began_s = self._clock.now()
        try:
            outcome = self._tried(request)
            while isinstance(outcome, Blocked):
                most_s = PATIENCE_S if outcome.reason == "budget_exceeded" else self._patience_s
                if not outcome.is_waited_for or self._clock.now() - began_s + outcome.wait_s > most_s:
                    break
                await self._sleep(max(outcome.wait_s, LEAST_SLEEP_S))
                outcome = self._tried(request)
        except BaseException:
            self._slots.leave()
            raise
        if isinstance(outcome, JudgePermit):
            return outcome
        self._slots.leave()
        self.moved_at_s = time.monotonic()
        raise error_of(outcome, self.host)

    def blocked(self) -> Blocked | None:
        """Return why no call passes at present, None when one may: ask before a unit is taken to the judge.

        While a judge is held or its breaker is half-open, it says None each time a probe is due.
        """
        now_s = self._clock.now()
        with self._lock:
            if wait_s := self._breaker.wait_s(now_s):
                reason = f"held_{self._breaker.held}" if self._breaker.held else "breaker_open"
                return Blocked(reason="probing" if self._breaker.is_probing else reason, wait_s=wait_s)
            waits_s = {reason: until_s - now_s for reason, until_s in self._shut_until_s.items()}
        reason = max(waits_s, key=lambda name: waits_s[name], default="")
        return Blocked(reason=reason, wait_s=waits_s[reason]) if waits_s.get(reason, 0.0) > 0.0 else None

    def reading(self) -> LimiterReading:
        """Return the limiter in this moment; from any thread."""
        now_s = self._clock.now()
        try:
            left = self._books.left()
        except (sqlite3.Error, OSError):
            left = Left(usd=None, tokens=None)
        with self._lock:
            state = self._breaker.state(now_s)
            return LimiterReading(
                budget_usd=left.usd if self._has_price is not False else None,
                budget_tokens=left.tokens,
                breaker=2 if self._breaker.held else gauge_of(state),
                held=self._breaker.held,
                concurrency=self._concurrency.allowed,
                under_way=self._slots.under_way,
            )

    def close(self) -> None:
        """Close the books; from any thread."""
        self._books.close()

    def _tried(self, request: Request) -> JudgePermit | Blocked:
        """Let an attempt in, or say why not."""
        if (closed := self.blocked()) is not None and not closed.is_of_need:
            return closed
        prompt, reply = self._estimate.most(request)
        usd = self._price(request.model, prompt, reply)
        try:
            granted = self._books.reserve(usd=usd, tokens=prompt + reply)
        except (sqlite3.Error, OSError) as error:
            _log.warning("the limits cannot be written (%s): no call of the judge is made", error)
            return self._shut_for(Blocked(reason="limits_file", wait_s=BROKEN_BOOKS_S))
        now_s = self._clock.now()
        if isinstance(granted, Refusal):
            return self._refused(granted)
        with self._lock:
            if not self._breaker.wait_s(now_s):
                for reason in OF_NEED:
                    self._shut_until_s.pop(reason, None)
                is_probe = self._breaker.begin(now_s)
                return JudgePermit(
                    request=request, reservation=granted, began_s=now_s, is_probe=is_probe, end=self._left
                )
        self._settle(granted, usd=0.0, tokens=0)  # another loop's call became the probe in between
        return Blocked(reason="probing", wait_s=1.0)

    def _refused(self, refusal: Refusal) -> Blocked:
        reason = "budget_exceeded" if refusal.limit.startswith("budget") else refusal.limit
        closed = Blocked(reason=reason, wait_s=refusal.wait_s)
        return self._shut_for(closed) if PATIENCE_S < refusal.wait_s < math.inf else closed

    def _shut_for(self, closed: Blocked) -> Blocked:
        with self._lock:
            until_s = self._clock.now() + closed.wait_s
            self._shut_until_s[closed.reason] = max(until_s, self._shut_until_s.get(closed.reason, until_s))
        return closed

    def _price(self, model: str, prompt: int, reply: int) -> float | None:
        if not self._is_usd_capped:
            return None
        usd = self._prices.price_of(model, prompt, reply)
        with self._lock:
            self._has_price = usd is not None or bool(self._has_price)
        return usd

    def _left(self, passed: JudgePermit, result: AttemptResult) -> None:
        """Take the end of an attempt into account; its slot is given back whatever else fails."""
        self.moved_at_s = time.monotonic()
        try:
            prompt, reply = taken(passed.request, result)
            usd = self._price(passed.request.model, prompt, reply)
            self._settle(passed.reservation, usd=usd, tokens=prompt + reply)
        except Exception as error:
            record_internal_error("ragtrace.scoring.limits.charge", error)
        with self._lock:
            try:
                self._estimate.learn(passed.request, result)
                self._judged(passed, result)
            except Exception as error:
                record_internal_error("ragtrace.scoring.limits.judged", error)
                self._breaker.abandoned(is_probe=passed.is_probe)
            finally:
                self._slots.leave(allowed=self._concurrency.allowed)

    def _settle(self, reservation: Reservation, *, usd: float | None, tokens: int) -> None:
        try:
            self._books.settle(reservation, usd=usd, tokens=tokens)
        except (sqlite3.Error, OSError) as error:
            # The reservation stands until it is released as abandoned.
            _log.warning("what a call of the judge result cannot be written: %s", error)

    def _judged(self, passed: JudgePermit, result: AttemptResult) -> None:
        """Tell breaker and concurrency how an attempt went."""
        now_s, began_s, is_probe = self._clock.now(), passed.began_s, passed.is_probe
        if result.fate == "answered":
            self._breaker.succeeded(now_s, is_probe=is_probe)
            self._concurrency.succeeded(began_s=began_s, now_s=now_s, under_way=self._slots.under_way)
        elif result.fate == "rate_limited":
            self._breaker.abandoned(is_probe=is_probe)
            self._concurrency.overloaded(began_s=began_s, now_s=now_s)
        elif result.fate == "refused":
            if self._breaker.held is None:
                refusal = result.message or f"{self.host} refuses the judge's calls ({result.reason})"
                _log.warning("%s; scoring waits, and the judge is asked again every 5 min", refusal)
            self._breaker.refused(now_s, result.reason)
        elif result.fate == "abandoned":
            self._breaker.abandoned(is_probe=is_probe)
        else:
            self._breaker.failed(now_s, is_probe=is_probe)
            if result.fate == "timed_out":
                self._concurrency.overloaded(began_s=began_s, now_s=now_s)
        if result.retry_after_s is not None and result.fate in {"rate_limited", "failed"}:
            self._shut_for(Blocked(reason="rate_limited", wait_s=min(result.retry_after_s, RETRY_AFTER_MOST_S)))
