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


def is_trace_id(text: object) -> bool:
    """Return whether a value is a trace's id: 32 hex digits that are not all zero.

    Example:
        >>> is_trace_id("4bf92f3577b34da6a3ce929d0e0e4736"), is_trace_id("4bf92f35"), is_trace_id("0" * 32)
        (True, False, False)
    """
    return isinstance(text, str) and _TRACE_ID.fullmatch(text) is not None and text.strip("0") != ""
