"""Answer ``/healthz`` and ``/readyz`` over HTTP, for orchestrators."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrace.capture import record_internal_error
from ragtrace.host import unwritable
from ragtrace.http_server import HttpServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIEnvironment

    from ragtrace.scoring.limits import Blocked

    Fact = Callable[[], str | None]

STALLED_S = 10.0  # a loop that turns once a second and has not for so long hangs
_WAIT_S = 60.0  # the longest wait of one attempt for the rates, and the longest one between two attempts
_PAIRS_S = 900.0  # eight units of 200 pairs each, on one core
_UNREAD_S = 5.0  # the spool is looked at once a second, and a locked one is waited for
HEALTH_PATH, READY_PATH = "/healthz", "/readyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """Results of health checks: the reason of each that fails, None for one that passes.

    Example:
        >>> HealthReport(reasons={"queue": None}).is_well
        True
    """

    reasons: Mapping[str, str | None]

    @property
    def is_well(self) -> bool:
        """Whether every check passes."""
        return not any(self.reasons.values())

    def to_json(self) -> dict[str, Any]:
        """Return status, checks and reasons as JSON-ready values."""
        return {
            "status": "ok" if self.is_well else "unavailable",
            "checks": {name: "failed" if reason else "ok" for name, reason in self.reasons.items()},
            "reasons": [f"{name}: {reason}" for name, reason in self.reasons.items() if reason],
        }


def run_checks(facts: Mapping[str, Fact]) -> HealthReport:
    """Run every check; one that raises fails, and is counted. Never raises.

    Example:
        >>> run_checks({"queue": lambda: "full", "judge": lambda: None}).to_json()["reasons"]
        ['queue: full']
    """
    return HealthReport(reasons={name: _asked(name, fact) for name, fact in facts.items()})


def _asked(name: str, fact: Fact) -> str | None:
    try:
        return fact()
    except Exception as error:
        record_internal_error(f"ragtrace.service.health.{name}", error)
        return f"cannot be told ({type(error).__name__})"


def health_facts(
    *,
    is_begun: Callable[[], bool],
    is_alive: Callable[[], bool],
    turned_at_s: Callable[[], float],
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Fact]:
    """Return the checks of ``/healthz``: the scorer's thread lives, and its loop turned within 10 s.

    Args:
        is_begun: whether the thread was ever started; it starts with the first run, and is well before.
        is_alive: whether it runs.
        turned_at_s: when its loop last turned, in seconds of `clock`.
        clock: monotonic seconds.
    """

    def thread() -> str | None:
        return "the scorer's thread has ended" if is_begun() and not is_alive() else None

    def loop() -> str | None:
        still_s = clock() - turned_at_s()
        is_stalled = is_begun() and is_alive() and still_s > STALLED_S
        return f"the scorer's loop has not turned for {still_s:.0f} s" if is_stalled else None

    return {"thread": thread, "loop": loop}


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


def ready_facts(
    *,
    queue: Callable[[], tuple[int, int]],
    spool: Path | None = None,
    closed: Callable[[], Blocked | None] = lambda: None,
    still_s: Callable[[], float] = lambda: 0.0,
    quiet_s: float = math.inf,
    unwritten: Callable[[], tuple[int, str]] = lambda: (0, ""),
    unread_s: Callable[[], float] = lambda: 0.0,
) -> dict[str, Fact]:
    """Return the checks of ``/readyz``: room in the queue, a writable spool and store, a judge that answers.

    A spent budget or a rate that is used up is no reason: both pass by themselves, and units wait for them.

    Args:
        queue: units waiting, and most that may wait.
        spool: the spool's file; None = units wait in memory.
        closed: why the judge's limiter lets nothing pass, None when it does.
        still_s: seconds for which units were due or under way, and neither a unit nor a call of the judge ended.
        quiet_s: how long that may last, see `longest_quiet_s`.
        unwritten: scored units that wait because their scores cannot be written, and why.
        unread_s: seconds for which every access to the spool failed, 0.0 when the last one did not.
    """

    def room() -> str | None:
        size, capacity = queue()
        return f"full ({size} of {capacity})" if size >= capacity else None

    def writable() -> str | None:
        if spool is None:
            return None
        seconds = unread_s()
        is_lasting = seconds > _UNREAD_S
        return unwritable(spool) or (f"locked or broken for {seconds:.0f} s; see the log" if is_lasting else None)

    def store() -> str | None:
        count, because = unwritten()
        return f"cannot be written ({because}), {count} scored units wait" if count else None

    def breaker() -> str | None:
        found = closed()
        is_open = found is not None and found.reason in {"breaker_open", "probing"}
        return "open: the judge failed too often" if is_open else None

    def judge() -> str | None:
        found = closed()
        return f"held: it refuses us ({found.refusal})" if found is not None and found.is_held else None

    def progress() -> str | None:
        seconds = still_s()
        is_stuck = seconds > quiet_s and closed() is None
        return f"no unit and no call has ended for {seconds:.0f} s, though there are units" if is_stuck else None

    return {
        "queue": room,
        "spool": writable,
        "store": store,
        "breaker": breaker,
        "judge": judge,
        "progress": progress,
    }


class HealthEndpoint(HttpServer):
    """Serves ``GET /healthz`` and ``GET /readyz``.

    The status is 200 when every check passes, else 503; the body has the reasons as JSON.

    Runs in daemon threads. It binds to loopback unless told otherwise; there is no authentication, and reasons
    name files (without their folders) and the judge's state, and no key and no text.

    Args:
        health: facts of ``/healthz``; each returns None when it is well, else why not.
        ready: facts of ``/readyz``.
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
        health: Mapping[str, Fact],
        ready: Mapping[str, Fact],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        replaced: Iterable[HttpServer] = (),
    ) -> None:
        self._facts = {HEALTH_PATH: dict(health), READY_PATH: dict(ready)}
        super().__init__("health", self._check, host=host, port=port, replaced=replaced)

    def _check(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        facts = self._facts.get(environ["PATH_INFO"])
        if facts is None:
            status, said = "404 Not Found", {"status": "unknown", "paths": list(self._facts)}
        else:
            verdict = run_checks(facts)
            status, said = "200 OK" if verdict.is_well else "503 Service Unavailable", verdict.to_json()
        start_response(status, [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
        return [json.dumps(said).encode() + b"\n"]
