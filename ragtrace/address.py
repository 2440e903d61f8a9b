"""Addresses of servers: checked, and shown without their secrets."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*+://")
_PLACE_END = re.compile("[?#]")


def shown_address(address: str) -> str:
    """Return an address without login and query.

    Example:
        >>> shown_address("http://ada:p/w@host:4318"), shown_address("localhost:4317")
        ('http://***@host:4318', 'localhost:4317')
    """
    found = _SCHEME.match(address)
    scheme = found[0] if found else ""
    place, *query = _PLACE_END.split(address.removeprefix(scheme), maxsplit=1)
    _, login, host = place.rpartition("@")
    if "@" in "".join(query):  # a password with a ? in it: nobody can say where it ends
        return "***"
    return f"{scheme}{'***@' if login else ''}{host}{'?***' if query else ''}"


def address_fault(address: str) -> str:
    """Return why an address takes no request of the web, without repeating it; "" where it does.

    Example:
        >>> address_fault("http://127.0.0.1:8000/v1"), address_fault("http://")
        ('', 'has no valid host and port')
    """
    if not address.startswith(("http://", "https://")):
        return "must begin with http:// or https://, for example http://127.0.0.1:8000"
    try:
        parts = urlsplit(address)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    return "" if is_whole else "has no valid host and port"
