"""Open new HTTP connections of the OTLP exporters in a forked child."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from requests import Session
from requests.adapters import DEFAULT_POOLSIZE, HTTPAdapter

if TYPE_CHECKING:
    from requests import Response


class OwnConnections(HTTPAdapter):
    """Keeps connections open, and opens others in a forked child.

    A child inherits the open ones. When both send, their requests mix, and one may read the reply to the other's:
    it would count as sent what never arrived.

    Example:
        >>> type(own_session().get_adapter("http://localhost")).__name__
        'OwnConnections'
    """

    def __init__(self) -> None:
        super().__init__()
        self._inherited: list[Any] = []
        self._pid = os.getpid()

    def send(self, *args: Any, **kwargs: Any) -> Response:
        """Send a request over a connection of this process."""
        if self._pid != os.getpid():
            self._begin()
            self._pid = os.getpid()
        return super().send(*args, **kwargs)

    def _begin(self) -> None:
        # Kept: closing them takes locks that a thread of the parent may have held at the fork.
        self._inherited += [self.poolmanager, self.proxy_manager]
        self.proxy_manager = {}
        self.init_poolmanager(DEFAULT_POOLSIZE, DEFAULT_POOLSIZE)


def own_session() -> Session:
    """Return a session that opens other connections in a forked child."""
    session = Session()
    for prefix in list(session.adapters):
        session.mount(prefix, OwnConnections())
    return session
