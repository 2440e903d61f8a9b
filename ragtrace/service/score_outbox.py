"""Keep scores until receivers acknowledge them, and send unacknowledged ones again."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from ragtrace.capture import guarded, record_internal_error
from ragtrace.stores.outbox import COUNT, EVENT
from ragtrace.stores.owner import Owner

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from ragtrace.model import RagRecord, Score
    from ragtrace.service.storing import Storing
    from ragtrace.stores import Pending
    from ragtrace.stores.base import OutboxEntry
    from ragtrace.telemetry.setup.receipts import Receipt, Receipts

_BEAT_EVERY_S = 60.0
_MOST_MARKS = 50_000  # of events that arrived while the file cannot be written; those beyond are sent once more
_AT_ONCE = 2_000  # places of one transaction, so that no other process waits long
_PAUSE_S = 0.05
_EVENTS_MISSING_S = 60.0  # after which an event that did not arrive is sent again
_LOOK_EVERY_S, _FEW = 15.0, 20  # while the receiver refuses, a few traces try whether it does still


class ScoreOutbox:
    """The outbox of one service: scores enter it when written and leave it when delivered.

    The service has acknowledgements written within milliseconds, since a kill before that counts a score twice. The
    next service at the file takes over scores that are left when the service or its process ends. Thread-safe.

    Args:
        storing: the service's store.
        receipts: acknowledgements of the exporters.
    """

    def __init__(self, storing: Storing, receipts: Receipts) -> None:
        self._store, self._is_joined = storing.store, storing.is_joined
        self._receipts = receipts
        self._owner = Owner()
        self._arrived: SimpleQueue[Receipt] = SimpleQueue()
        self._lock = threading.Lock()  # of all that follows; held while the file is written
        self._marks: deque[tuple[int, int, int]] = deque(maxlen=_MOST_MARKS)
        self._upto, self._noted = {EVENT: 0, COUNT: 0}, {EVENT: 0, COUNT: 0}
        self._beat_at, self._look_at = time.monotonic() + _BEAT_EVERY_S, 0.0

    # -- from the score to its publication: in the scorer's thread --

    def also(
        self, scores: Sequence[Score], record: RagRecord, entry: OutboxEntry
    ) -> Callable[[sqlite3.Connection], None] | None:
        """Return a callback that writes scores in the transaction of a job's end; None where `write` does."""
        if not self._is_joined:
            return None
        # Made before the transaction: it reads the store, which feedback holds while it waits for that to end.
        write = self._store.writer(scores, record, owner=self._owner, entry=entry)

        def placed(connection: sqlite3.Connection) -> None:
            self._place(entry)
            write(connection)

        return placed

    def write(self, scores: Sequence[Score], record: RagRecord, entry: OutboxEntry) -> Callable[[], None] | None:
        """Return a callback that writes scores before the end of their job; None where `also` does."""
        if self._is_joined:
            return None

        def write() -> None:
            self._place(entry)
            self._store.emit(record, scores, owner=self._owner, entry=entry)

        return write

    def _place(self, entry: OutboxEntry) -> None:
        entry.seq = entry.seq or self._receipts.begin()  # one that is tried again keeps its place

    def published(self, entry: OutboxEntry) -> None:
        """Note that an entry was handed to the providers."""
        if entry.seq:
            self._receipts.published(entry.seq)

    # -- what is left --

    def has_leftovers(self) -> bool:
        """Return whether scores of ended processes wait to be published; False when the file fails."""
        return bool(self._has_leftovers())

    @guarded
    def _has_leftovers(self) -> bool:
        return self._store.leftovers()

    def leftovers(self, limit: int = 200, *, abandoned_s: float = 60.0) -> list[Pending]:
        """Take over scores that no living process answers for, and those written here and not published since.

        Args:
            limit: most traces.
            abandoned_s: seconds after which one of our own counts as not published: its job was another's by then.
        """
        abandoned = self._receipts.abandoned(abandoned_s)
        if not (abandoned or self.has_leftovers()):
            return []
        found = self._store.claim(self._owner, limit, seqs=abandoned, next_seq=self._receipts.begin)
        for place in abandoned:
            self._receipts.published(place)
        return found

    def unsent(self, *, older_s: float | None = None) -> list[Pending]:
        """Return scores of ours whose events did not arrive, some at a time; call it as often as you like.

        Args:
            older_s: of events handed over so long ago; default a minute, and looked for every few seconds.
        """
        if self._receipts.events != "exporter":
            return []  # nobody tells of one by one
        if older_s is not None:
            return self._store.unsent(self._owner, _AT_ONCE // 10, older_s=older_s)
        now, limit = time.monotonic(), _FEW if self._receipts.is_refused else _AT_ONCE // 10
        if now < self._look_at:
            return []
        self._look_at = now + _LOOK_EVERY_S
        found = self._store.unsent(self._owner, limit, older_s=_EVENTS_MISSING_S)
        if len(found) == limit and not self._receipts.is_refused:
            self._look_at = now
        return found

    @property
    def is_refused(self) -> bool:
        """Whether the receiver refused the last events."""
        return self._receipts.is_refused

    @guarded
    def sweep(self) -> None:
        """Write acknowledgements that could not be written, and a heartbeat once a minute; call it often."""
        self._receipts.tick()
        self.note()
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + _BEAT_EVERY_S
            self._store.beat(self._owner)

    # -- what arrived --

    def drain(self, timeout_s: float) -> bool:
        """Write acknowledgements in this thread; False when that fails until the deadline."""
        deadline = time.monotonic() + timeout_s
        while not self.note():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_S)
        return True

    def close(self, timeout_s: float) -> bool:
        """Write acknowledgements, and leave the rest to the next service at the file."""
        is_noted = self.drain(timeout_s)
        self._leave()
        return is_noted

    @guarded
    def _leave(self) -> None:
        self._store.leave(self._owner)

    def take(self, receipt: Receipt) -> None:
        """Take an acknowledgement for the next `note`. Exporters call it in their threads: it never waits."""
        self._arrived.put(receipt)

    def note(self) -> bool:
        """Write acknowledgements in short transactions; False when the file cannot be written."""
        with self._lock:
            self._sort()
            while self._marks or self._upto != self._noted:
                marks = [self._marks.popleft() for _ in range(min(len(self._marks), _AT_ONCE))]
                upto = {what: min(last, self._noted[what] + _AT_ONCE) for what, last in self._upto.items()}
                ranges = [
                    (what, self._noted[what], last) for what, last in upto.items() if last > self._noted[what]
                ]
                try:
                    self._store.exported(marks, EVENT, owner=self._owner, upto=ranges)
                except Exception as error:
                    record_internal_error("ragtrace.service.outbox", error)
                    self._marks.extendleft(reversed(marks))
                    return False
                self._noted = upto
        return True

    def _sort(self) -> None:
        with suppress(Empty):
            while True:
                receipt = self._arrived.get_nowait()
                self._marks.extend(receipt.marks)
                self._upto[EVENT] = max(self._upto[EVENT], receipt.events_upto)
                self._upto[COUNT] = max(self._upto[COUNT], receipt.counts_upto)
