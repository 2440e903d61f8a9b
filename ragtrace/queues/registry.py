"""Opens the queue of some settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace.capture.off_loop import off_loop
from ragtrace.errors import ConfigError, QueueError
from ragtrace.plugins import load_plugin
from ragtrace.queues.base import Queue
from ragtrace.queues.memory import MemoryQueue

if TYPE_CHECKING:
    from ragtrace.queues.base import Ended

GROUP = "ragtrace.queues"


def open_queue(
    place: str | None,
    *,
    capacity: int,
    capacity_bytes: int,
    spool_bytes: int,
    is_producer: bool,
    ended: Ended,
    config: str | None = None,
) -> Queue:
    """Open the queue of one process.

    Without a place it is a `MemoryQueue`; with a path, a `ragtrace.queues.sqlite.SqliteQueue`. An address such as
    ``kafka://broker/topic`` belongs to ``PLUGIN`` of the module ``ragtrace.queues.kafka``. Other schemes are entry
    points of the group ``ragtrace.queues``. Each is called with the address and the keyword arguments of this
    function, and returns a `Queue`.

    Args:
        place: the path of a spool, or an address.
        capacity: most units in this process's memory.
        capacity_bytes: most bytes of text there.
        spool_bytes: most payload in the spool.
        is_producer: another process scores; this one leases nothing.
        ended: called with state and reason of each end in this process.
        config: options of the queue's client; a plugin gets them where they are set.

    Raises:
        ConfigError: the place cannot be opened, or nothing has the scheme, or it returns no queue.
    """
    if place is None:
        return MemoryQueue(capacity, capacity_bytes, ended=ended)
    scheme, colon, _ = place.partition("://")
    given = {
        "capacity": capacity,
        "capacity_bytes": capacity_bytes,
        "spool_bytes": spool_bytes,
        "is_producer": is_producer,
        "ended": ended,
    }
    if colon:
        queue = off_loop(_plugin(scheme))(place, **given, **({} if config is None else {"config": config}))
        if not isinstance(queue, Queue):
            raise ConfigError(f"queue: the entry point {scheme!r} returned {type(queue).__name__}, not a queue")
        return queue
    from ragtrace.queues.sqlite import SqliteQueue  # noqa: PLC0415 - sqlite3 only for those who want it

    try:
        return off_loop(SqliteQueue)(Path(place), **given)  # type: ignore[arg-type]
    except QueueError as error:
        raise ConfigError(f"spool: {error}") from error


def _plugin(scheme: str) -> Any:
    try:
        return load_plugin(GROUP, scheme)
    except ModuleNotFoundError as error:
        raise ConfigError(f"queue: {error}") from None
