"""The application's side of a spool that another process scores: nothing is ever leased here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.queues.sqlite import SqliteQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.queues.base import Job


class ProducerQueue(SqliteQueue):
    """A `ragtrace.queues.sqlite.SqliteQueue` whose jobs go to ``ragtrace worker``; `tend` looks at its accounts.

    Example:
        >>> import pathlib, tempfile
        >>> ProducerQueue(pathlib.Path(tempfile.mkdtemp()) / "spool.sqlite").lease(8)
        []
    """

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Wake nobody: there is nothing to do here."""

    def lease(self, limit: int) -> list[Job]:  # noqa: ARG002 - nothing, whatever the limit
        """Give out nothing."""
        return []

    def tend(self, held: Sequence[Job]) -> None:  # noqa: ARG002 - nothing is held
        """Look at the accounts, from which the pressure follows."""
        self.look()

    def next_due_s(self) -> float | None:
        """Return None: nothing is due here."""
        return None
