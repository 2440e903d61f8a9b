"""Roots kept open until their scores come (``attach = hold``): each is ended exactly once, with or without."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error
from ragtrace.telemetry.evaluation import scores_on_root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.model import Score
    from ragtrace.telemetry.root import Root
    from ragtrace.telemetry.spans import SpanWriter

_IDLE_S = 30.0  # the thread ends after that long without a root, so that a replaced Hold can be collected


class Hold:
    """Postpones the end of roots, for a bounded time and number, so that scores can stand on them.

    A daemon thread of its own ends those whose time is over; it starts with the first root and rests while
    none is held. Thread-safe; no method waits.

    Args:
        writer: ends roots; its content mode decides what the details of scores may say.
        limit_ms: how long a root may wait.
        capacity: how many may wait; one more ends without scores at once.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        writer: SpanWriter,
        *,
        limit_ms: float = 5_000,
        capacity: int = 256,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._limit_s = limit_ms / 1_000
        self._capacity = capacity
        self._clock = clock
        self._changed = threading.Condition()
        self._held: dict[int, tuple[Root, int, float]] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @property
    def size(self) -> int:
        """Roots waiting."""
        return len(self._held)

    def keep(self, root: Root, ended_ns: int) -> bool:
        """Keep a root open; False when there is no room (or it has ended), and the caller ends it now."""
        with self._changed:
            if self._is_closed or root.is_ended or len(self._held) >= self._capacity:
                return False
            self._held[id(root)] = (root, ended_ns, self._clock() + self._limit_s)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="ragtrace-hold", daemon=True)
                self._thread.start()
            self._changed.notify()
        return True

    def finish(self, root: Root | None, scores: Sequence[Score]) -> bool:
        """Put the scores on a root and end it; False when it has gone without, and they go as in ``child``."""
        with self._changed:
            held = self._held.pop(id(root), None)
        if held is None:
            return False
        root, ended_ns, _ = held
        try:
            scores_on_root(
                root,
                scores,
                has_content=self._writer.content == "full",
                details_bytes=self._writer.max_span_bytes // 4,
            )
        except Exception as error:
            record_internal_error("ragtrace.telemetry.hold.finish", error)
            return False
        finally:
            self._writer.end_root(root, ended_ns)
        return True

    def sweep(self) -> None:
        """End the roots whose time is over; the own thread does it too."""
        now = self._clock()
        with self._changed:
            late = [key for key, (_, _, limit) in self._held.items() if limit <= now]
            gone = [self._held.pop(key) for key in late]
        self._end(gone)

    def release_all(self) -> None:
        """End every root without scores: at a flush."""
        with self._changed:
            gone = list(self._held.values())
            self._held.clear()
        self._end(gone)

    def close(self) -> None:
        """End every root without scores, and the thread; none is kept any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self.release_all()

    def forget(self) -> None:
        """Drop all roots without ending them, and take fresh locks: in a forked child they are the parent's."""
        self._changed = threading.Condition()
        self._held = {}
        self._thread = None

    def _end(self, gone: Sequence[tuple[Root, int, float]]) -> None:
        for root, ended_ns, _ in gone:
            self._writer.end_root(root, ended_ns)

    def _watch(self) -> None:
        changed = self._changed
        # `forget` puts a new condition in place; a thread of the old one has nothing to do any more.
        while changed is self._changed:
            with changed:
                changed.wait_for(lambda: self._held or self._is_closed, _IDLE_S)
                if not self._held:
                    self._thread = None
                    return
                first = min(limit for _, _, limit in self._held.values())
                rest = first - self._clock()
                if rest > 0:
                    changed.wait(rest)
            try:
                self.sweep()
            except Exception as error:
                record_internal_error("ragtrace.telemetry.hold.sweep", error)
