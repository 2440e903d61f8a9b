"""Deliver items to a server from a bounded queue, with retries and a count of every loss."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ragtrace.capture import record_internal_error
from ragtrace.capture.fork import after_fork_in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

_log = logging.getLogger("ragtrace")
_HURRIED_WAIT_S = 0.5  # between attempts while `flush` or `close` waits
_WORDS = {"closed": "did not finish in time", "full": "queue full"}  # of reasons that are no words
_LEAST_PATIENCE_S = 15.0  # with single items, also then: MLflow's first trace takes it 7 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Outcome of one attempt at one batch.

    Attributes:
        is_delivered: the server has it.
        may_repeat: the same batch may succeed later.
        may_split: it was refused for its contents, so that its parts may succeed.
        refused: items of a delivered batch that the server refused.
        later: items of a delivered batch that may succeed later; each is tried again behind what waits.
        wait_s: the wait that the server asks for before the next attempt.
        complaint: a line for the log, written once; never contents, never a key.
    """

    is_delivered: bool = False
    may_repeat: bool = False
    may_split: bool = False
    refused: int = 0
    later: Sequence[Any] = ()
    wait_s: float | None = None
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class _RetryBatch(Generic[T]):
    """Items that failed `tries` times, first at `began` and last at `since` (monotonic); next after `wait_s`."""

    items: Sequence[T]
    tries: int = 0
    began: float = 0.0
    since: float = 0.0
    wait_s: float = 0.0


class Outbox(Generic[T]):
    """Takes items without waiting, and delivers them in batches from a daemon thread.

    Items beyond the capacity are lost and counted, the newest first. So is a batch that failed `attempts` times or
    was refused, and the rest when `close` runs out of time: as unreachable where the last attempt got no answer or
    one that asks for patience. `close` uses all of its time, however many attempts that takes.

    The thread starts with the first item. A forked
    child begins with an empty outbox, and the parent delivers its own items.

    Args:
        deliver: sends one batch; called in the thread; an exception counts as a refusal.
        site: begin of the names under which losses are counted: ``.full``, ``.refused``, ``.unreachable``,
            ``.closed``.
        complaint: log line of the first loss of each kind, before its reason; "" is the line of any loss.
        capacity: most items waiting.
        batch: most items of one delivery.
        attempts: tries of one batch.
        backoff_s: the first wait is between half of it and all of it; each further one twice the last.
        longest_wait_s: limit of one wait, also of one that the server asks for.
        linger_s: how long the first item of a batch waits for more; `flush` and `close` end the wait.
        interval_s: least time between two batches; only `close` ends this wait, and `flush` leaves it alone.

    Example:
        >>> seen = []
        >>> def deliver(batch):
        ...     seen.extend(batch)
        ...     return Attempt(is_delivered=True)
        >>> outbox = Outbox(deliver, site="example")
        >>> outbox.offer([1, 2])
        >>> outbox.flush(5.0), seen, outbox.close(5.0)
        (True, [1, 2], True)
    """

    def __init__(
        self,
        deliver: Callable[[Sequence[T]], Attempt],
        *,
        site: str,
        complaint: str = "",
        capacity: int = 4_096,
        batch: int = 100,
        attempts: int = 8,
        backoff_s: float = 0.5,
        longest_wait_s: float = 30.0,
        linger_s: float = 0.0,
        interval_s: float = 0.0,
    ) -> None:
        self._deliver = deliver
        self._site = site
        self._complaint = complaint
        self._capacity = capacity
        self._batch = batch
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._longest_wait_s = longest_wait_s
        self._linger_s = linger_s
        self._interval_s = interval_s
        self._is_closed = False
        self._told: set[str] = set()
        self.reset_after_fork()
        after_fork_in_child(self.reset_after_fork)

    def reset_after_fork(self) -> None:
        """Begin with an empty outbox, in a forked child."""
        self._changed = threading.Condition()
        self._waiting: deque[T] = deque()
        self._delayed: list[_RetryBatch[T]] = []
        self._lingers_until = self._held_until = 0.0
        self._under_way = 0
        self._lost: Counter[str] = Counter()
        self._lost_reported = 0
        self._is_away = False
        self._stop_at: float | None = None
        self._is_abandoned = False
        self._flushing = 0
        self._thread: threading.Thread | None = None

    @property
    def pending(self) -> int:
        """Items that are neither delivered nor lost."""
        return len(self._waiting) + self._under_way + sum(len(one.items) for one in self._delayed)

    def lost(self, noun: str) -> str:
        """Return the number of lost items by reason, such as "3 scores (refused)"; "" for none."""
        with self._changed:
            lost = +self._lost
        total = lost.total()
        if not total:
            return ""
        reasons = [
            f"{'' if len(lost) == 1 else f'{number} '}{_WORDS.get(site, site)}" for site, number in lost.items()
        ]
        return f"{total} {noun}{'' if total == 1 else 's'} ({', '.join(reasons)})"

    def offer(self, items: Iterable[T]) -> None:
        """Queue items without waiting; those beyond the capacity, or after `close`, are counted as lost."""
        refused = 0
        with self._changed:
            site = "closed" if self._is_closed else "full"
            for item in items:
                if self._is_closed or self.pending - self._under_way >= self._capacity:
                    refused += 1
                else:
                    if not self._waiting:
                        self._lingers_until = time.monotonic() + self._linger_s
                    self._waiting.append(item)
            if self._waiting and self._thread is None and not self._is_closed:
                thread = threading.Thread(target=self._run, name=self._site, daemon=True)
                with suppress(RuntimeError):  # none begins in `atexit` from Python 3.12 on: `close` delivers
                    thread.start()
                    self._thread = thread
            self._count(refused, site)
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until no delivery is due; return whether nothing was lost since the last call, in time.

        A wait before a further attempt ends at once, and further ones are short. Blocks for at most `timeout_s`.
        """
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                is_empty = self._changed.wait_for(self._is_idle, max(timeout_s, 0.0))
            finally:
                self._flushing -= 1
            return is_empty and self._report()

    def close(self, timeout_s: float) -> bool:
        """Deliver pending items and end the thread within `timeout_s`; the rest is counted as lost.

        Returns whether nothing was lost since the last report. A second call does nothing and returns True.
        """
        with self._changed:
            if self._is_closed:
                return True
            self._is_closed = True
            self._stop_at = time.monotonic() + timeout_s
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(max(timeout_s, 0.0))
        else:
            self._run()
        with self._changed:
            left = self.pending
            # A delivery that is under way may still arrive; it counts as lost, since its outcome comes too late.
            self._is_abandoned = left > 0
            self._waiting.clear()
            self._delayed.clear()
            self._count(left, "unreachable" if self._is_away else "closed")
            return self._report()

    # -- the thread --

    def _run(self) -> None:
        while taken := self._next():
            self._sent(taken.items, taken)

    def _next(self) -> _RetryBatch[T] | None:
        """Return the next batch; None when the outbox was closed and is empty, or out of time."""
        with self._changed:
            while not (self._is_out_of_time() or (self._is_closed and not self.pending)):
                if taken := self._take():
                    self._under_way = len(taken.items)
                    return taken
                times = [*map(self._due, self._delayed), *([self._waiting_due()] if self._waiting else [])]
                self._changed.wait(max(min(times) - time.monotonic(), 0.0) if times else None)
            return None

    def _take(self) -> _RetryBatch[T] | None:
        """Take the batch whose time has come."""
        now = time.monotonic()
        first = min(self._delayed, key=self._due, default=None)
        if first is not None and self._due(first) <= now:
            self._delayed.remove(first)
            return first
        if self._waiting and self._waiting_due() <= now:
            self._held_until = now + self._interval_s
            size = min(self._batch, len(self._waiting))
            return _RetryBatch([self._waiting.popleft() for _ in range(size)])
        return None

    def _waiting_due(self) -> float:
        if self._is_closed:
            return 0.0
        return max(self._held_until, 0.0 if self._is_hurried() else self._lingers_until)

    def _is_idle(self) -> bool:
        """Return whether nothing is under way, and what waits is held by the interval."""
        is_held = bool(self._waiting) and self._waiting_due() > time.monotonic()
        return not self._under_way and not self._delayed and (not self._waiting or is_held)

    def _due(self, one: _RetryBatch[T]) -> float:
        return one.since + (min(one.wait_s, _HURRIED_WAIT_S) if self._is_hurried() else one.wait_s)

    def _sent(self, batch: Sequence[T], taken: _RetryBatch[T]) -> None:
        """Deliver a batch or count it as lost."""
        attempt = self._tried(batch)
        if attempt.may_split and len(batch) > 1:
            middle = len(batch) // 2
            self._sent(batch[:middle], taken)
            self._sent(batch[middle:], taken)
            return
        with self._changed:
            if self._is_abandoned:  # `close` has counted it
                return
            if not attempt.is_delivered:
                self._count(len(batch), "unreachable" if attempt.may_repeat else "refused")
            self._count(attempt.refused, "refused")
            self._delay(attempt.later, taken)
            self._under_way -= len(batch)
            self._changed.notify_all()

    def _delay(self, items: Sequence[T], before: _RetryBatch[T]) -> None:
        """Keep items for a later batch, or count them as lost after the last try; with the lock held."""
        if not items:
            return
        now, tries = time.monotonic(), before.tries + 1
        began = before.began if before.tries else now
        all_waits_s = self._backoff_s * (2.0 ** (self._attempts - 1) - 1)
        if tries >= self._attempts and now - began >= min(all_waits_s, _LEAST_PATIENCE_S):
            self._count(len(items), "unreachable")
            return
        wait_s = min(self._backoff_s * 2.0 ** min(tries - 1, 16), self._longest_wait_s)
        self._delayed.append(_RetryBatch(items, tries, began, now, wait_s))

    def _tried(self, batch: Sequence[T]) -> Attempt:
        """Return the last attempt at a batch."""
        backoff_s = self._backoff_s
        tries = 0
        while True:
            tries += 1
            try:
                attempt = self._deliver(batch)
            except Exception as error:
                _log.debug("a delivery of %s failed", self._site, exc_info=True)
                complaint = f"{self._site}: a delivery failed inside ragtrace ({type(error).__name__})"
                attempt = Attempt(complaint=complaint)
            self._tell(attempt.complaint)
            self._is_away = attempt.may_repeat and not attempt.is_delivered
            if not self._is_away or (tries >= self._attempts and not self._is_closed):
                return attempt
            wait_s = max(random.uniform(backoff_s / 2, backoff_s), attempt.wait_s or 0.0)
            if not self._waited(min(wait_s, self._longest_wait_s)):
                return attempt
            backoff_s = min(backoff_s * 2, self._longest_wait_s)

    def _waited(self, wait_s: float) -> bool:
        """Wait before a further attempt; False when the time of `close` is over."""
        with self._changed:
            if self._is_hurried():
                left_s = wait_s if self._stop_at is None else self._stop_at - time.monotonic()
                self._changed.wait_for(lambda: False, max(min(wait_s, left_s, _HURRIED_WAIT_S), 0.0))
            else:
                self._changed.wait_for(self._is_hurried, wait_s)
            return not self._is_out_of_time()

    def _is_hurried(self) -> bool:
        return self._is_closed or self._flushing > 0

    def _is_out_of_time(self) -> bool:
        return self._is_abandoned or (self._stop_at is not None and time.monotonic() >= self._stop_at)

    # -- the account; with the lock held --

    def _count(self, number: int, site: str) -> None:
        self._lost[site] += number
        line = f"{self._complaint}: {_WORDS.get(site, site)}" if self._complaint else ""
        for _ in range(number):
            record_internal_error(f"{self._site}.{site}", line=line)

    def _report(self) -> bool:
        before, self._lost_reported = self._lost_reported, self._lost.total()
        return self._lost_reported == before

    def _tell(self, complaint: str) -> None:
        if complaint and complaint not in self._told and len(self._told) < 32:
            self._told.add(complaint)
            _log.warning("%s", complaint)
