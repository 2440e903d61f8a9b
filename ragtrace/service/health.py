"""Answer ``/healthz`` and ``/readyz`` over HTTP, for orchestrators."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error
from ragtrace.host import unwritable
from ragtrace.http_server import HttpServer
from ragtrace.queues import SharedQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIEnvironment

    from ragtrace.queues import Queue
    from ragtrace.scoring import Worker
    from ragtrace.scoring.limits import Blocked, JudgeLimiter

    Check = Callable[[], str | None]

STALLED_S = 10.0  # a loop that turns once a second and has not for so long hangs
_WAIT_S = 60.0  # the longest wait of one attempt for the rates, and the longest one between two attempts
_PAIRS_S = 900.0  # eight units of 200 pairs each, on one core
_UNREAD_S = 5.0  # the spool is looked at once a second, and a locked one is waited for
HEALTH_PATH, READY_PATH = "/healthz", "/readyz"


def longest_quiet_s(timeout_s: float, *, has_pairs: bool = False) -> float:
    """Return how long a sound scorer may end neither a unit nor an attempt at the judge.

    Up to 60 s pass between two attempts. The second waits up to 60 s for the rates and lasts until its timeout.
    Half a minute is to spare. A model that scores pairs on this machine makes no attempts: it has 15 minutes.

    Args:
        timeout_s: of one attempt at the judge.
        has_pairs: whether such a model is set.

    Example:
        >>> longest_quiet_s(45.0), longest_quiet_s(45.0, has_pairs=True)
        (195.0, 900.0)
    """
    quiet_s = 2 * _WAIT_S + timeout_s + 30.0
    return max(quiet_s, _PAIRS_S) if has_pairs else quiet_s


class HealthChecks:
    """The checks of a running scorer; each returns None when it passes, else why not.

    A spent budget or a rate that is used up is no reason: both pass by themselves, and units wait for them.

    Args:
        worker: the scorer's thread; it starts with the first run, and is well before.
        queue: where units wait.
        limiter: stands before the judge, where it has limits.
        spool: the spool's file; None = units wait in memory.
        quiet_s: how long no unit and no call of the judge may end while there are units, see `longest_quiet_s`.
        clock: monotonic seconds.

    Attributes:
        health: the checks of ``/healthz``: the thread lives, and its loop turned within 10 s.
        ready: the checks of ``/readyz``: room in a queue that answers, a writable spool and store, a judge that
            answers.
    """

    def __init__(
        self,
        worker: Worker,
        queue: Queue,
        *,
        limiter: JudgeLimiter | None = None,
        spool: Path | None = None,
        quiet_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worker = worker
        self._queue = queue
        self._limiter = limiter
        self._path = spool
        self._quiet_s = quiet_s
        self._clock = clock
        self.health: dict[str, Check] = {"thread": self._thread, "loop": self._loop}
        self.ready: dict[str, Check] = {
            "queue": self._room,
            "spool": self._spool,
            "store": self._store,
            "breaker": self._breaker,
            "judge": self._judge,
            "progress": self._progress,
        }

    def _thread(self) -> str | None:
        return "the scorer's thread has ended" if self._worker.is_begun and not self._worker.is_alive else None

    def _loop(self) -> str | None:
        still_s = self._clock() - self._worker.turned_at_s
        is_stalled = self._worker.is_alive and still_s > STALLED_S
        return f"the scorer's loop has not turned for {still_s:.0f} s" if is_stalled else None

    def _room(self) -> str | None:
        for size, capacity in (part.fill for part in self._queue.stats()):
            if size >= capacity:
                return f"full ({size} of {capacity})"
        unread_s = self._unread_s() if self._path is None else 0.0  # a file has its own check
        return f"does not answer for {unread_s:.0f} s; see the log" if unread_s > _UNREAD_S else None

    def _unread_s(self) -> float:
        return self._queue.unread_s if isinstance(self._queue, SharedQueue) else 0.0

    def _spool(self) -> str | None:
        if self._path is None:
            return None
        unread_s = self._unread_s()
        is_lasting = unread_s > _UNREAD_S
        return unwritable(self._path) or (
            f"locked or broken for {unread_s:.0f} s; see the log" if is_lasting else None
        )

    def _store(self) -> str | None:
        count, because = self._worker.unwritten
        return f"cannot be written ({because}), {count} scored units wait" if count else None

    def _breaker(self) -> str | None:
        blocked = self._blocked()
        is_open = blocked is not None and blocked.reason in {"breaker_open", "probing"}
        return "open: the judge failed too often" if is_open else None

    def _judge(self) -> str | None:
        blocked = self._blocked()
        return f"held: it refuses us ({blocked.refusal})" if blocked is not None and blocked.is_held else None

    def _progress(self) -> str | None:
        if not self._worker.is_begun:
            return None
        called_at_s = self._limiter.moved_at_s if self._limiter is not None else 0.0
        still_s = self._clock() - max(self._worker.moved_at_s, called_at_s)
        is_stuck = still_s > self._quiet_s and self._blocked() is None
        return f"no unit and no call has ended for {still_s:.0f} s, though there are units" if is_stuck else None

    def _blocked(self) -> Blocked | None:
        return self._limiter.blocked() if self._limiter is not None else None


def reasons_of(checks: Mapping[str, Check]) -> dict[str, str | None]:
    """Run every check; one that raises fails, and is counted. Never raises.

    Example:
        >>> reasons_of({"queue": lambda: "full", "judge": lambda: None})
        {'queue': 'full', 'judge': None}
    """
    reasons: dict[str, str | None] = {}
    for name, check in checks.items():
        try:
            reasons[name] = check()
        except Exception as error:
            record_internal_error(f"ragtrace.service.health.{name}", error)
            reasons[name] = f"cannot be told ({type(error).__name__})"
    return reasons


class HealthEndpoint(HttpServer):
    """Serves ``GET /healthz`` and ``GET /readyz``.

    The status is 200 when every check passes, else 503; the body has the reasons as JSON.

    Runs in daemon threads. It binds to loopback unless told otherwise; there is no authentication, and reasons
    name files (without their folders) and the judge's state, and no key and no text.

    Args:
        health: checks of ``/healthz``; each returns None when it passes, else why not.
        ready: checks of ``/readyz``.
        host: address to bind to.
        port: 0 takes any free port; see `port`.
        replaced: servers that are closed soon; see `ragtrace.http_server.HttpServer`.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.

    Example:
        >>> import urllib.request
        >>> endpoint = HealthEndpoint({}, {"queue": lambda: None}, port=0)
        >>> with urllib.request.urlopen(endpoint.url + "/readyz") as reply:
        ...     json.load(reply)["status"]
        'ok'
        >>> endpoint.close()
    """

    def __init__(
        self,
        health: Mapping[str, Check],
        ready: Mapping[str, Check],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        replaced: Iterable[HttpServer] = (),
    ) -> None:
        self._checks = {HEALTH_PATH: health, READY_PATH: ready}
        super().__init__("health", self._check, host=host, port=port, replaced=replaced)

    def _check(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        checks = self._checks.get(environ["PATH_INFO"])
        said: Mapping[str, object]
        if checks is None:
            status, said = "404 Not Found", {"status": "unknown", "paths": [*self._checks]}
        else:
            reasons = reasons_of(checks)
            is_well = not any(reasons.values())
            status = "200 OK" if is_well else "503 Service Unavailable"
            said = {
                "status": "ok" if is_well else "unavailable",
                "checks": {name: "failed" if reason else "ok" for name, reason in reasons.items()},
                "reasons": [f"{name}: {reason}" for name, reason in reasons.items() if reason],
            }
        start_response(status, [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
        return [json.dumps(said).encode() + b"\n"]
