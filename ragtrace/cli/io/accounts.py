"""Ends of the traces that a process or a spool scored, and the sinks of the scores, as a person reads them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from ragtrace.errors import QueueError

if TYPE_CHECKING:
    from ragtrace.service.service import Service

Ends: TypeAlias = Mapping[tuple[str, str], int]
UNREADABLE = (QueueError, sqlite3.Error, OSError)


def ends_of(service: Service) -> Ends:
    """Return the ends of traces by state and reason; none where the spool cannot be read."""
    try:
        return service.gauges.accounts(is_fresh=True)[0]
    except UNREADABLE:
        return {}


def accounts(service: Service, before: Ends) -> str:
    """Describe the ends of the spool's traces since the start, and in all.

    Where the spool cannot be read now, the counts are those of the last look.
    """
    try:
        counts, pending = service.gauges.accounts(is_fresh=True)
        note = ""
    except UNREADABLE as error:
        counts, pending = service.gauges.accounts()
        place = "queue" if service.settings.queue else "spool"
        note = f" when last seen; the {place} cannot be read: {error}"
    new = {end: n - before.get(end, 0) for end, n in counts.items() if n > before.get(end, 0)}
    shown = f"{_shown(new)} since the start; in all {_shown(counts)}" if before else _shown(new)
    return f"{shown}, {pending} pending{note}"


def sinks_text(service: Service) -> str:
    """Return the names of the sinks that take scores beside OTLP; "" without any."""
    names = sorted(type(sink).__name__.removesuffix("Sink").lower() for sink in service.sinks)
    return f"; sinks: {', '.join(names)}" if names else ""


def _shown(counts: Ends) -> str:
    shown = [f"{n} {state}{f' ({reason})' if reason else ''}" for (state, reason), n in sorted(counts.items())]
    return ", ".join(shown) or "nothing scored"
