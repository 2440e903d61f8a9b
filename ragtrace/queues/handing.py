"""The application's side of a spool that another process scores: nothing is ever leased here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from ragtrace.queues.base import Job, Unit
    from ragtrace.queues.sqlite import SqliteQueue


class HandingQueue:
    """A `ragtrace.queues.sqlite.SqliteQueue` whose jobs go to ``ragtrace worker``; `tend` looks at its accounts.

    Example:
        >>> import pathlib, tempfile
        >>> from ragtrace.queues.sqlite import SqliteQueue
        >>> HandingQueue(SqliteQueue(pathlib.Path(tempfile.mkdtemp()) / "spool.sqlite")).lease(8)
        []
    """

    is_shared = True

    def __init__(self, queue: SqliteQueue) -> None:
        self._queue = queue

    @property
    def size(self) -> int:
        """Units waiting."""
        return self._queue.size

    @property
    def capacity(self) -> int:
        """Most units that may wait."""
        return self._queue.capacity

    @property
    def fullest(self) -> tuple[int, int]:
        """Units waiting and most that may, of the part nearest to its bound."""
        return self._queue.fullest

    @property
    def oldest_s(self) -> float:
        """Age of the oldest unit in seconds."""
        return self._queue.oldest_s

    def put(self, unit: Unit) -> list[Unit]:
        """Take a unit; return those that had to go."""
        return self._queue.put(unit)

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Wake nobody: there is nothing to do here."""

    def lease(self, limit: int) -> list[Job]:  # noqa: ARG002 - nothing, whatever the limit
        """Give out nothing."""
        return []

    def settle(
        self,
        job: Job,
        state: str,
        reason: str = "",
        also: Callable[[sqlite3.Connection], None] | None = None,
    ) -> bool:
        """End a job."""
        return self._queue.settle(job, state, reason, also)

    def retry(self, job: Job, wait_s: float, reason: str) -> bool:
        """Give a job back."""
        return self._queue.retry(job, wait_s, reason)

    def release(self, jobs: Sequence[Job], wait_s: float = 0.0) -> None:
        """Give jobs back."""
        self._queue.release(jobs, wait_s)

    def tend(self, held: Sequence[Job]) -> None:  # noqa: ARG002 - nothing is held
        """Look at the accounts, from which the pressure follows."""
        self._queue.look()

    def next_due_s(self) -> float | None:
        """Return None: nothing is due here."""
        return None
