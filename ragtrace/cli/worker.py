"""Command ``ragtrace worker``, which scores the units of a spool."""

from __future__ import annotations

import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.arguments import Judge, Metrics, Spool
from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError, QueueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.queues.base import Counters
    from ragtrace.service.service import Service

    Ends = Mapping[tuple[str, str], int]

SCRAPE = "scrape_configs: [{{job_name: ragtrace, static_configs: [{{targets: ['{target}']}}]}}]"
EPILOG = """\
Applications need RAGTRACE_SPOOL=FILE and RAGTRACE_SCORER=worker. The worker reads the same settings, so that one
environment serves both. Several workers may share a spool. On SIGTERM and Ctrl-C the worker finishes the units
under way within --deadline and gives the others back. A killed worker loses nothing; another one takes its units
when their leases end.

--once scores the due units. It waits for units of other workers and for retries within a minute. It ends when the
spool is empty. It also ends when nothing is under way and every unit that is left is due later, for example while
the judge is down or over its budget, or when no unit has ended for ten minutes. The units stay in the spool.

Prometheus, with --metrics-port 9464 (captured traces are counted by the applications, scores here):

```yaml
scrape_configs:
- job_name: ragtrace
  static_configs: [{targets: ["127.0.0.1:9464"]}]
```

Exit status: 0 stopped by a signal, or the spool is empty; 1 something was not scored or not sent within --deadline,
or --once left units that wait or could not read the spool; 2 usage. Where no collector is configured and none
listens at the default address, nothing counts as not sent.
"""
_REPORT_EVERY_S = 60.0
_LOOK_EVERY_S = 0.1
_WAIT_S = 60.0  # --once waits as long for a retry, as the judge's limiter does for a rate
_STILL_S = 600.0  # a judge that asks for one short wait after another must not hold --once for a day
_UNREADABLE = (QueueError, sqlite3.Error, OSError)


def command(
    *,
    spool: Spool = None,
    judge: Judge = None,
    metrics: Metrics = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, metavar="P", help="Serve OpenMetrics on this port of loopback. 0 takes a free port."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when the spool is empty, or when every unit that is left waits.")
    ] = False,
    deadline: Annotated[
        float, typer.Option(min=0, max=86_400, metavar="S", help="Seconds to finish and to export at the end.")
    ] = 30.0,
) -> int:
    """Score the answers that applications put into a spool."""
    from ragtrace.service import runtime
    from ragtrace.settings import Settings

    given = {"spool": spool, "judge": judge, "metrics": metrics or None, "metrics_port": metrics_port}
    path = Settings.resolve({**given, "scorer": "thread"}).spool
    if path is None:
        raise ConfigError("worker: there is no spool: give --spool FILE, or set RAGTRACE_SPOOL")
    is_new = not Path(path).exists()
    runtime.configure_worker(**given)
    service = runtime.current()
    if service is None:
        raise ConfigError("worker: RAGTRACE_ENABLED turns ragtrace off; unset it where the worker runs")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    _say(f"{service.settings.spool}, judge {service.settings.judge}")
    if is_new:
        _say(
            f"there was no file {path}: made an empty spool; the applications need the same path in RAGTRACE_SPOOL"
        )
    if service.endpoint is not None:
        _say(f"metrics at {service.endpoint.url}; for prometheus.yml:")
        _say(SCRAPE.format(target=f"{service.endpoint.host}:{service.endpoint.port}"))
    before = _ends(service)
    service.begin()
    is_read = True
    try:
        is_read = _watch(service, stop, is_once=once, before=before)
    except KeyboardInterrupt:  # as SIGTERM
        pass
    finally:
        is_done = runtime.shutdown(deadline)
    _say(f"stopped; {_accounts(service, before)}")
    return 0 if is_done and is_read else 1


def _watch(service: Service, stop: threading.Event, *, is_once: bool, before: Ends) -> bool:
    """Report until the end; False when ``--once`` ends before the spool is empty."""
    told_at = time.monotonic()
    backlog = _Backlog(service)
    while not stop.wait(_LOOK_EVERY_S):
        if is_once:
            try:
                if service.wait_scored(1.0):  # the shutdown tells of a failed export
                    return True
                if backlog.is_stuck():
                    _say(backlog.described())
                    return False
            except _UNREADABLE as error:
                _say(f"the spool cannot be read: {error}")
                return False
        if time.monotonic() - told_at >= _REPORT_EVERY_S:
            told_at = time.monotonic()
            _say(_accounts(service, before))
    return True


class _Backlog:
    """Tells whether any unit left in the spool can be scored soon."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._spool: Counters | None = None
        self._ended = 0
        self._moved_at = time.monotonic()

    def is_stuck(self) -> bool:
        """Return whether nothing is under way and all units are due later."""
        from ragtrace.queues.base import counters_of

        self._spool = spool = counters_of(self._service.queue, is_fresh=True)
        if spool is None:
            return False
        ended, now = sum(spool.ends.values()), time.monotonic()
        if ended != self._ended:
            self._ended, self._moved_at = ended, now
        if now - self._moved_at > _STILL_S:
            return spool.pending > 0
        return not spool.leased and spool.due_s is not None and spool.due_s > _WAIT_S

    def described(self) -> str:
        """Return the number of units left, with the reason and the time."""
        from ragtrace.scoring.limits.blocked import error_of

        n, due_s = (self._spool.pending, self._spool.due_s) if self._spool else (0, None)
        blocked = self._service.gauges.blocked()
        why = self._service.postponed_for or "they failed before"
        if blocked is not None:
            why = str(error_of(blocked, self._service.settings.judge))
        if due_s is None:
            until = f"no unit has ended for {_STILL_S / 60.0:.0f} min"
        else:
            until = f"the next is due in {f'{due_s:.0f} s' if due_s < 120.0 else f'{due_s / 60.0:.0f} min'}"
        return f"{n} unit{' waits' if n == 1 else 's wait'}: {why}; {until}"


def _ends(service: Service) -> Ends:
    try:
        return service.gauges.accounts(is_fresh=True)[0]
    except _UNREADABLE:
        return {}


def _accounts(service: Service, before: Ends) -> str:
    """Describe the ends of the spool's traces since the start, and in all.

    Where the spool cannot be read now, the counts are those of the last look.
    """
    try:
        counts, pending = service.gauges.accounts(is_fresh=True)
        note = ""
    except _UNREADABLE as error:
        counts, pending = service.gauges.accounts()
        note = f" when last seen; the spool cannot be read: {error}"
    new = {end: n - before.get(end, 0) for end, n in counts.items() if n > before.get(end, 0)}
    shown = f"{_shown(new)} since the start; in all {_shown(counts)}" if before else _shown(new)
    return f"{shown}, {pending} pending{note}"


def _shown(counts: Ends) -> str:
    shown = [f"{n} {state}{f' ({reason})' if reason else ''}" for (state, reason), n in sorted(counts.items())]
    return ", ".join(shown) or "nothing scored"


def _say(text: str) -> None:
    say(f"ragtrace worker: {text}", file=sys.stderr, flush=True)
