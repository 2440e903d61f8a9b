"""The ids of traces as people write them."""

from __future__ import annotations

import re

_TRACE_ID = re.compile(r"[0-9a-fA-F]{32}")


def as_trace_id(text: str) -> str:
    """Return a trace's id in lower case, as traces have it; what is not 32 hex digits stays as it is.

    Example:
        >>> as_trace_id("4BF92F3577B34DA6A3CE929D0E0E4736"), as_trace_id("Ticket-7")
        ('4bf92f3577b34da6a3ce929d0e0e4736', 'Ticket-7')
    """
    return text.lower() if _TRACE_ID.fullmatch(text) else text
