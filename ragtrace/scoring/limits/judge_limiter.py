"""Rates, budgets, concurrency and circuit breakers of one judge server, asked before every attempt."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ragtrace.capture import record_internal_error
from ragtrace.errors import JudgeOverBudget
from ragtrace.host import Clock
from ragtrace.model.printable import count_text
from ragtrace.scoring.limits.blocked import OF_REQUEST, Blocked, error_of
from ragtrace.scoring.limits.breaker import Breaker
from ragtrace.scoring.limits.budget import Budget, Caps, Left, Refusal
from ragtrace.scoring.limits.pace import Pace
from ragtrace.scoring.limits.prices import Prices
from ragtrace.scoring.limits.token_estimate import TokenEstimate, charged
from ragtrace.scoring.limits.trouble import BUSY_S, DOUBT_S, SILENT, SILENT_S, WAITING, Trouble

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection
    from pathlib import Path

    from ragtrace.judges.limiter import AttemptResult, JudgeRequest
    from ragtrace.scoring.limits.budget import Reservation

_log = logging.getLogger("ragtrace")
PATIENCE_S = 60.0  # before a longer wait the unit goes back into the queue
BACKFILL_PATIENCE_S = 600.0  # for rates, where there is no queue to go back to
RETRY_AFTER_MOST_S = 7_200.0
BROKEN_FILE_S = 60.0
LEAST_SLEEP_S = 0.005
FIRST_SLEEP_S = 0.05  # while the first calls of a judge are under way
DEFAULT_CALLS = 8
_LOOKS = 6  # at a judge that does not answer, before it is said to be silent


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterReading:
    """State of the limits at one moment, for the gauges.

    Attributes:
        budget_usd: US dollars left today; None when off, when the price is not known, or when the file cannot be
            read.
        budget_tokens: tokens left today; None when off or not readable.
        breaker: 0 closed, 1 half-open, 2 open or held; of several models the worst.
        held: the judge's refusal of all calls; None without one.
        under_way: calls under way or waiting for a rate.
    """

    budget_usd: float | None
    budget_tokens: int | None
    breaker: int
    held: str | None
    under_way: int


@dataclass(slots=True, kw_only=True)
class Spent:
    """Attempts that were made, and what they took.

    Attributes:
        calls: attempts, tries and probes among them.
        tokens: of prompts and replies, estimated where the server did not count.
        usd: US dollars of the calls whose price is known.
        unpriced: calls whose price is not known.
    """

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    def since(self, before: Spent) -> Spent:
        """Return what was spent after an earlier state."""
        return Spent(
            calls=self.calls - before.calls,
            tokens=self.tokens - before.tokens,
            usd=self.usd - before.usd,
            unpriced=self.unpriced - before.unpriced,
        )

    def add(self, other: Spent) -> None:
        """Add what another limiter let pass."""
        self.calls += other.calls
        self.tokens += other.tokens
        self.usd += other.usd
        self.unpriced += other.unpriced

    def __str__(self) -> str:
        dollars = f"{self.usd:.4f} US dollars"
        if self.unpriced:
            dollars = f"{dollars} and {self.unpriced} without a price" if self.usd else "their price is not known"
        return f"{count_text(self.calls, 'call')} of the judge, {self.tokens:,} tokens, {dollars}"


@dataclass(slots=True, kw_only=True, eq=False)
class JudgePermit:
    """Permission for one attempt; a `ragtrace.judges.limiter.Permit`.

    Attributes:
        request: what the attempt may take.
        reservation: tokens and dollars set aside for it.
        is_probe: whether the attempt decides about the breaker.
        began_s: when it was given, in seconds of `time.monotonic`.
        answers: of the server until then.
        look: the look at whether the server has answered at all.
    """

    request: JudgeRequest
    limiter: JudgeLimiter
    semaphore: asyncio.Semaphore
    reservation: Reservation
    is_probe: bool
    began_s: float = field(default_factory=time.monotonic)
    answers: int = 0
    look: asyncio.TimerHandle | None = None
    _is_released: bool = field(default=False)

    def release(self, result: AttemptResult) -> None:
        """Report the result of the attempt; a second call does nothing."""
        if not self._is_released:
            self._is_released = True
            if self.look is not None:
                self.look.cancel()
            self.limiter._ended(self, result)  # noqa: SLF001 -- its own permit


@dataclass(slots=True, kw_only=True, eq=False)
class Standing:
    """The state of a server by the calls so far, for all limiters before it.

    Attributes:
        kind: of the breakers.
        trouble: says why there are no scores.
        breakers: one for each model.
        lock: gauges read from other threads; a coroutine may be collected, and so released, under the lock.
    """

    kind: type[Breaker] = Breaker
    trouble: Trouble = field(default_factory=Trouble)
    breakers: dict[str, Breaker] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def breaker_of(self, request: JudgeRequest) -> Breaker:
        """Return the breaker of a request's model."""
        with self.lock:
            return self.breakers.setdefault(request.model, self.kind())


class JudgeLimiter:
    """Limits the attempts at one server; a `ragtrace.judges.limiter.RateLimiter`. Coroutine-safe.

    Args:
        host: the server; processes that share the file share its rates.
        caps: rates and budgets.
        path: the file that processes of this host share; None keeps the counts in memory, where each process has
            the whole budget for itself and forgets it at its end.
        prices: what tokens cost.
        account: whose budget.
        calls: calls under way at once, on each event loop.
        patience_s: the longest wait for rates.
        clock: the time.
        sleep: waits.
        trouble: says why there are no scores; one of its own when left out.
        breaker: stops calls of a failing or busy judge, one for each model.
        beside: another limiter of the same server, whose breakers and trouble are these too: what one hears of the
            server holds the other back. Budgets are apart.
        most_calls: attempts after which no further is made; None = no end.

    Attributes:
        spent: attempts that were made, and what they took.
        standing: what is known of the server, with limiters beside this one.
        trouble: that of `standing`.
        moved_at_s: when an attempt last ended or was refused, in seconds of `time.monotonic`; for a health check.

    Example:
        >>> from ragtrace.judges.limiter import AttemptResult, JudgeRequest
        >>> limiter = JudgeLimiter(host="judge", caps=Caps(usd_per_day=None))
        >>> async def call():
        ...     permit = await limiter.acquire(JudgeRequest(model="m", request_bytes=900, max_output_tokens=100))
        ...     permit.release(AttemptResult(fate="answered", input_tokens=200, output_tokens=30))
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
        calls: int = DEFAULT_CALLS,
        patience_s: float = PATIENCE_S,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        trouble: Trouble | None = None,
        breaker: type[Breaker] = Breaker,
        beside: JudgeLimiter | None = None,
        most_calls: int | None = None,
    ) -> None:
        self.host = host
        self.spent = Spent()
        self._most_calls = most_calls
        own = Standing(kind=breaker, trouble=trouble or Trouble())
        self.standing: Standing = beside.standing if beside is not None else own
        self.trouble = self.standing.trouble
        self._is_beside = beside is not None
        self._slowest_s = 0.0  # reply so far: a slow judge is not said to be silent again and again
        self.moved_at_s = time.monotonic()
        self._clock = clock or Clock()
        self._budget = Budget(path, host=host, caps=caps, account=account, clock=self._clock)
        self.prices = prices or Prices()
        self._is_usd_capped = bool(caps.usd_per_day)
        self._has_price: bool | None = None
        self._estimate = TokenEstimate()
        self._pace = Pace()
        self._calls = calls
        self._under_way = 0
        self._semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._patience_s = patience_s
        self._sleep = sleep
        self._blocked_until_s: dict[str, float] = {}  # by `Blocked.reason`
        self._lock = self.standing.lock

    async def acquire(self, request: JudgeRequest) -> JudgePermit:
        """Wait for a place and for the rates, as long as patience lasts, and return a permission.

        Raises:
            JudgeOverBudget: today's budget has nothing left, or never has as much.
            JudgeRateLimited: the server asked for more than that, or the request is beyond a minute's rate.
            JudgeUnavailable: the breaker is open, the judge refuses all calls, or the file cannot be written.
        """
        semaphore = self._semaphores.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._calls))
        await semaphore.acquire()
        self._under_way += 1
        try:
            return await self._admitted(request, semaphore)
        except BaseException:
            self.moved_at_s = time.monotonic()
            self._leave(semaphore)
            raise

    def blocked(self, models: Collection[str] = ()) -> Blocked | None:
        """Return the current stop of calls, None when a call may pass.

        While a judge is held, busy or half-open, it says None each time a probe is due.

        Args:
            models: whose calls; those of all models where none of these was asked yet.
        """
        now_s = self._clock.now()
        with self._lock:
            asked = [self.standing.breakers[model] for model in models if model in self.standing.breakers]
            stops = [_stop(breaker, now_s) for breaker in asked or self.standing.breakers.values()]
            waits_s = {reason: until_s - now_s for reason, until_s in self._blocked_until_s.items()}
        stop = max(filter(None, stops), key=lambda one: one.wait_s, default=None)
        if stop is not None:
            return stop
        reason = max(waits_s, key=lambda name: waits_s[name], default="")
        return Blocked(reason=reason, wait_s=waits_s[reason]) if waits_s.get(reason, 0.0) > 0.0 else None

    def reading(self) -> LimiterReading:
        """Return the state of the limits; from any thread."""
        try:
            left = self._budget.left()
        except (sqlite3.Error, OSError):
            left = Left(usd=None, tokens=None)
        with self._lock:
            breakers, now_s = list(self.standing.breakers.values()), self._clock.now()
            return LimiterReading(
                budget_usd=left.usd if self._has_price is not False else None,
                budget_tokens=left.tokens,
                breaker=max((breaker.gauge(now_s) for breaker in breakers), default=0),
                held=next((breaker.held for breaker in breakers if breaker.held), None),
                under_way=self._under_way,
            )

    def affordable(self, *, served: int, waiting: float) -> float:
        """Return the units a minute that today's budgets pay for until midnight, UTC; infinite where none binds.

        Args:
            served: units that ended so far in all processes that share the file.
            waiting: units that wait to be scored.
        """
        try:
            purses, left_s = self._budget.purses()
        except (sqlite3.Error, OSError):  # no call is made either, and what waits counts as missing
            return math.inf
        with self._lock:
            return self._pace.units_per_minute(purses, served=served, waiting=waiting, left_s=left_s)

    def close(self) -> None:
        """Close the file; from any thread."""
        self._budget.close()

    async def _admitted(self, request: JudgeRequest, semaphore: asyncio.Semaphore) -> JudgePermit:
        if self._most_calls is not None and self.spent.calls >= self._most_calls:
            raise JudgeOverBudget(f"the {self._most_calls} calls of --max-calls are made")
        began_s = self._clock.now()
        while isinstance(outcome := self._tried(request, semaphore), Blocked):
            most_s = PATIENCE_S if outcome.reason == "budget_exceeded" else self._patience_s
            if not outcome.is_waited_for or self._clock.now() - began_s + outcome.wait_s > most_s:
                error = error_of(outcome, self.host)
                if outcome.reason in OF_REQUEST and not self._is_beside:
                    self.trouble.tell(outcome.reason, str(error), _until(outcome))
                raise error
            await self._sleep(max(outcome.wait_s, LEAST_SLEEP_S))
        self.spent.calls += 1
        quiet_s = max(SILENT_S, 2 * self._slowest_s)
        outcome.answers = self.trouble.answers
        self._look_later(outcome, quiet_s, 0)
        return outcome

    def _look_later(self, permit: JudgePermit, quiet_s: float, looks: int) -> None:
        permit.look = asyncio.get_running_loop().call_later(
            quiet_s / _LOOKS, self._look, permit, quiet_s, looks + 1
        )

    def _look(self, permit: JudgePermit, quiet_s: float, looks: int) -> None:
        """Say that the server is silent where it has answered nobody since an attempt began.

        The looks are counted, and not the seconds: while this loop stands still, as at the import of openai, no
        server is silent.
        """
        if permit.answers != self.trouble.answers:
            return
        if looks < _LOOKS:
            self._look_later(permit, quiet_s, looks)
            return
        said = f"{self.host} has not answered for {quiet_s:.0f} s"
        self.trouble.tell(SILENT, said, "the judge is waited for until judge_timeout_s is over, and tried again")

    def _tried(self, request: JudgeRequest, semaphore: asyncio.Semaphore) -> JudgePermit | Blocked:
        """Return a permit, or the stop in its way."""
        breaker = self.standing.breaker_of(request)
        if (blocked := self.blocked((request.model,))) is not None and blocked.reason not in OF_REQUEST:
            return blocked
        if breaker.is_full:
            return Blocked(reason="probing", wait_s=FIRST_SLEEP_S)
        prompt, reply = self._estimate.most(request)
        usd = self._price(request.model, prompt, reply)
        try:
            granted = self._budget.reserve(usd=usd, tokens=prompt + reply)
        except (sqlite3.Error, OSError) as error:
            _log.warning("the limits cannot be written (%s): no call of the judge is made", error)
            return self._block(Blocked(reason="limits_file", wait_s=BROKEN_FILE_S))
        if isinstance(granted, Refusal):
            name = "budget_exceeded" if granted.limit.startswith("budget") else granted.limit
            blocked = Blocked(reason=name, wait_s=granted.wait_s)
            return self._block(blocked) if PATIENCE_S < granted.wait_s < math.inf else blocked
        with self._lock:
            for reason in OF_REQUEST:
                self._blocked_until_s.pop(reason, None)
            return JudgePermit(
                request=request,
                limiter=self,
                semaphore=semaphore,
                reservation=granted,
                is_probe=breaker.begin(self._clock.now()),
            )

    def _block(self, blocked: Blocked) -> Blocked:
        with self._lock:
            until_s = self._clock.now() + blocked.wait_s
            self._blocked_until_s[blocked.reason] = max(until_s, self._blocked_until_s.get(blocked.reason, until_s))
        return blocked

    def _price(self, model: str, prompt: int, reply: int) -> float | None:
        if not self._is_usd_capped and self.prices.input_usd_per_million is None:
            return None
        usd = self.prices.price_of(model, prompt, reply)
        self._has_price = usd is not None or bool(self._has_price)
        return usd

    def _leave(self, semaphore: asyncio.Semaphore) -> None:
        self._under_way -= 1
        with suppress(RuntimeError):  # its event loop is closed, so nobody waits there
            semaphore.release()

    def _ended(self, permit: JudgePermit, result: AttemptResult) -> None:
        """Charge an attempt and judge the server by it; its place is given back whatever fails."""
        self.moved_at_s = time.monotonic()
        try:
            self._charge(permit, result)
            with self._lock:
                self._estimate.learn(permit.request, result)
                self._judge(permit, result)
            self._tell(permit, result)
        except Exception as error:
            record_internal_error("ragtrace.scoring.limits", error)
            self.standing.breaker_of(permit.request).abandoned(is_probe=permit.is_probe)
        finally:
            self.standing.breaker_of(permit.request).under_way -= 1
            self._leave(permit.semaphore)

    def _charge(self, permit: JudgePermit, result: AttemptResult) -> None:
        prompt, reply = charged(permit.request, result)
        usd = self._price(permit.request.model, prompt, reply)
        self.spent.tokens += prompt + reply
        self.spent.usd += usd or 0.0
        self.spent.unpriced += usd is None
        try:
            self._budget.settle(permit.reservation, usd=usd, tokens=prompt + reply)
        except (sqlite3.Error, OSError) as error:
            # The reservation stands until it is released as abandoned.
            _log.warning("what a call of the judge took cannot be written: %s", error)

    def _tell(self, permit: JudgePermit, result: AttemptResult) -> None:
        """Note whether the server answers, and have the log say why it does not."""
        why = result.message or f"{self.host} gives no verdict ({result.reason or result.fate})"
        if result.fate == "rejected" and not result.rejections:
            return  # the same request follows in another form
        if result.fate == "refused":
            self.trouble.tell(result.reason, why, "scoring waits, and the judge is asked again every 5 min")
        elif result.fate == "rate_limited":
            self.trouble.tell(result.fate, why, after_s=BUSY_S)
        elif result.fate == "timed_out":
            self.trouble.tell(SILENT, why)
        elif result.fate in {"failed", "rejected"} or result.message:
            self.trouble.tell(result.reason or result.fate, why, after_s=DOUBT_S)
        elif result.fate in {"answered", "unfit"}:
            self._slowest_s = max(self._slowest_s, time.monotonic() - permit.began_s)
            self.trouble.is_over()

    def _judge(self, permit: JudgePermit, result: AttemptResult) -> None:
        now_s, is_probe, breaker = self._clock.now(), permit.is_probe, self.standing.breaker_of(permit.request)
        retry_after_s = result.retry_after_s
        if retry_after_s is not None:
            retry_after_s = min(retry_after_s, RETRY_AFTER_MOST_S)
        if result.fate == "answered":
            breaker.succeeded(now_s, is_probe=is_probe)
        elif result.fate == "unfit":
            breaker.passed(is_probe=is_probe)
        elif result.fate == "rejected" and result.rejections:
            breaker.rejected(now_s, permit.request.unit, result.rejections, is_probe=is_probe)
        elif result.fate == "refused":
            breaker.refused(now_s, result.reason)
        elif result.fate == "rate_limited":
            breaker.paused(now_s, retry_after_s, is_probe=is_probe)
        elif result.fate in {"abandoned", "rejected"}:
            breaker.abandoned(is_probe=is_probe)
        else:
            is_busy = result.is_busy or retry_after_s is not None
            breaker.failed(now_s, is_probe=is_probe, is_busy=is_busy, retry_after_s=retry_after_s)


def _stop(breaker: Breaker, now_s: float) -> Blocked | None:
    if not (wait_s := breaker.wait_s(now_s)):
        return None
    reason = "probing" if breaker.is_probing else f"held_{breaker.held}" if breaker.held else "breaker_open"
    return Blocked(reason="rate_limited" if breaker.pauses else reason, wait_s=wait_s)


def _until(blocked: Blocked) -> str:
    """Return what becomes of the runs whose calls a limit of our own refuses."""
    if math.isinf(blocked.wait_s):
        return "no run is scored before that"
    return "sampled runs wait without a score until 00:00 UTC" if blocked.reason == "budget_exceeded" else WAITING
