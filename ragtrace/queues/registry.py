"""Opens the queue of some settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError, QueueError
from ragtrace.plugins import load_plugin
from ragtrace.queues.base import Queue
from ragtrace.queues.memory import MemoryQueue

if TYPE_CHECKING:
    from ragtrace.queues.base import Ended

GROUP = "ragtrace.queues"


def open_queue(
    spool: str | None,
    *,
    capacity: int,
    capacity_bytes: int,
    spool_bytes: int,
    is_producer: bool,
    ended: Ended,
) -> Queue:
    """Open the queue of one process.

    Without a spool it is a `MemoryQueue`; with a path, a `ragtrace.queues.sqlite.SqliteQueue`. An address with a
    scheme, such as ``kafka://broker/topic``, belongs to the entry point of that name in the group
    ``ragtrace.queues``: it is called with the address and the keyword arguments of this function, and returns a
    `Queue`.

    Args:
        spool: a path or an address.
        capacity: most units in this process's memory.
        capacity_bytes: most bytes of text there.
        spool_bytes: most payload in the spool.
        is_producer: another process scores; this one leases nothing.
        ended: called with state and reason of each end in this process.

    Raises:
        ConfigError: the spool cannot be opened, or no entry point has the scheme, or it returns no queue.
    """
    if spool is None:
        return MemoryQueue(capacity, capacity_bytes, ended=ended)
    scheme, colon, _ = spool.partition("://")
    given = {
        "capacity": capacity,
        "capacity_bytes": capacity_bytes,
        "spool_bytes": spool_bytes,
        "is_producer": is_producer,
        "ended": ended,
    }
    if colon:
        queue = load_plugin(GROUP, scheme)(spool, **given)
        if not isinstance(queue, Queue):
            raise ConfigError(f"spool: the entry point {scheme!r} returned {type(queue).__name__}, not a queue")
        return queue
    from ragtrace.queues.sqlite import SqliteQueue  # noqa: PLC0415 - sqlite3 only for those who want it

    try:
        return SqliteQueue(Path(spool), **given)  # type: ignore[arg-type]
    except QueueError as error:
        raise ConfigError(f"spool: {error}") from error
