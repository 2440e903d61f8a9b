"""Open new HTTP connections of the OTLP exporters in a forked child."""

from __future__ import annotations

from requests import Session
from requests.adapters import DEFAULT_POOLSIZE, HTTPAdapter

from ragtrace.capture.fork import after_fork_in_child


class OwnConnections(HTTPAdapter):
    """Keeps connections open, and opens others in a forked child.

    A child inherits the open ones. When both send, their requests mix, and one may read the reply to the other's:
    it would count a batch as sent that never arrived.

    Example:
        >>> type(own_session().get_adapter("http://localhost")).__name__
        'OwnConnections'
    """

    def __init__(self) -> None:
        super().__init__()
        self._inherited: list[object] = []
        after_fork_in_child(self.reset_after_fork)

    def reset_after_fork(self) -> None:
        """Open other connections, in a forked child."""
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
