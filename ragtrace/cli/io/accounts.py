"""Ends of the traces that a process or a spool scored, and the sinks of the scores, as a person reads them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from ragtrace.errors import QueueError

if TYPE_CHECKING:
    from ragtrace.service.service import Service

Ends: TypeAlias = Mapping[tuple[str, str], int]
UNREADABLE = (QueueError, sqlite3.Error, OSError)


def ends_of(service: Service) -> Ends:
    """Return the ends of traces by state and reason.

    There are none where the spool cannot be read, and of a queue in which each process counts its own.
    """
    if service.gauges.own_ends() is not None:
        return {}
    try:
        return service.gauges.accounts(is_fresh=True)[0]
    except UNREADABLE:
        return {}


def accounts(service: Service, before: Ends) -> str:
    """Describe the ends since the start, and in all.

    Where the queue cannot be read now, the counts are those of the last look.
    """
    from ragtrace.queues.base import counters_of

    try:
        counts, pending = service.gauges.accounts(is_fresh=True)
        left = f"{pending} pending"
    except UNREADABLE as error:
        counts, pending = service.gauges.accounts()
        place = "queue" if service.settings.queue.address else "spool"
        is_known = counters_of(service.queue) is not None
        left = f"{pending} pending when last seen" if is_known else "pending unknown"
        left += f"; the {place} cannot be read: {error}"
    new = _new(service, counts, before)
    is_all = Counter(new) == Counter(counts)
    shown = _shown(new) if is_all else f"{_shown(new)} since the start; in all {_shown(counts)}"
    return f"{shown}, {left}"


def has_unscored(service: Service, before: Ends) -> bool:
    """Tell whether a unit or record could not be read, or became a dead letter, since the start."""
    new = _new(service, service.gauges.accounts()[0], before)
    return any(state in {"invalid", "dead"} for state, _ in new)


def _new(service: Service, counts: Ends, before: Ends) -> Ends:
    """Return the ends since the start: of this process where each counts its own, else of the spool."""
    own = service.gauges.own_ends()
    new = Counter(counts if own is None else own)
    new.subtract(before)
    return +new


def sinks_text(service: Service) -> str:
    """Return the names of the sinks that take scores beside OTLP; "" without any."""
    names = sorted(type(sink).__name__.removesuffix("Sink").lower() for sink in service.sinks)
    return f"; sinks: {', '.join(names)}" if names else ""


def _shown(counts: Ends) -> str:
    shown = [f"{n} {state}{f' ({reason})' if reason else ''}" for (state, reason), n in sorted(counts.items())]
    return ", ".join(shown) or "nothing scored"
