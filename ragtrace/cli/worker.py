"""Command ``ragtrace worker``, which scores the units of a spool or of Kafka."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.accounts import UNREADABLE, accounts, ends_of, has_unscored, sinks_text
from ragtrace.cli.io.arguments import Judge, Metrics, MetricsPort, SampleRate, Spool, name_service, option
from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from ragtrace.cli.io.accounts import Ends
    from ragtrace.queues.base import Counters
    from ragtrace.service.service import Service

SCRAPE = "scrape_configs: [{{job_name: ragtrace, static_configs: [{{targets: ['{target}']}}]}}]"
EPILOG = """\
Applications need RAGTRACE_SPOOL=FILE and RAGTRACE_SCORER=worker. The worker reads the same settings, so that one
environment serves both. Several workers may share a spool. Applications on several hosts need
RAGTRACE_QUEUE=kafka://BROKERS/TOPIC in the place of the spool. On SIGTERM and Ctrl-C the worker finishes the units
under way within --deadline and gives the others back. A killed worker loses nothing; another one takes its units
when their leases end.

With --kafka the worker reads the topic of a Collector's kafka exporter (encoding otlp_proto, and
partition_traces_by_id), and scores a share of its traces. Workers of one group share its partitions.

--once scores the due units. On Kafka it first waits for its partitions, and for open traces to settle. It waits for
units of other workers and for retries within a minute. It ends when the spool is empty. It also ends when nothing
is under way and every unit that is left is due later, for example while the judge is down or over its budget, or
when no unit has ended for ten minutes. The units stay in the spool. Its scores reach boards over OTLP: a Prometheus
that scrapes it, or the prometheus exporter of a Collector, cannot see what so short a process did.

Prometheus, with --metrics-port 9464 (captured traces are counted by the applications, scores here):

```yaml
scrape_configs:
- job_name: ragtrace
  static_configs: [{targets: ["127.0.0.1:9464"]}]
```

Exit status: 0 stopped by a signal, or the spool is empty; 1 something was not scored or not sent within --deadline,
or --once left units that wait, met an invalid or dead unit or record, could not read the queue or found no topic; 2
usage. Where no collector is
configured and none listens at the default address, nothing counts as not sent.
"""
_REPORT_EVERY_S = 60.0
_LOOK_EVERY_S = 0.1
_WAIT_S = 60.0  # --once waits as long for a retry, as the judge's limiter does for a rate
_STILL_S = 600.0  # a judge that asks for one short wait after another must not hold --once for a day


def command(
    *,
    spool: Spool = None,
    queue: Annotated[str | None, option("queue", "ADDRESS", "--queue")] = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            "--kafka", metavar="BROKERS", help="Score the traces that a Collector writes to Kafka, HOST:PORT[,...]."
        ),
    ] = None,
    topic: Annotated[str, typer.Option(metavar="T", help="Topic of the traces.")] = "otlp_spans",
    group: Annotated[
        str | None, typer.Option(metavar="G", help="Consumer group. Default: ragtrace.T for the topic T.")
    ] = None,
    kafka_config: Annotated[Path | None, option("kafka_config", "FILE")] = None,
    settle: Annotated[
        float,
        typer.Option(min=0.1, max=300, metavar="S", help="Seconds without a span that end a trace on Kafka."),
    ] = 10.0,
    sample_rate: SampleRate = None,
    judge: Judge = None,
    metrics: Metrics = None,
    metrics_port: MetricsPort = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Wait until every unit has its end, then stop. Stop too when all that are left are due in more "
            "than a minute.",
        ),
    ] = False,
    deadline: Annotated[
        float, typer.Option(min=0, max=86_400, metavar="S", help="Seconds to finish and to export at the end.")
    ] = 30.0,
) -> int:
    """Score the answers that wait in a spool or on Kafka."""
    from ragtrace.service import runtime
    from ragtrace.settings import Settings

    if kafka is not None:
        if queue is not None or spool is not None:
            raise ConfigError("worker: --kafka takes the place of --queue and --spool; give one of them")
        queue = f"kafka-traces://{kafka}/{topic}{f'?group={group}' if group else ''}"
    given = {
        "spool": spool,
        "queue": queue,
        "kafka_config": None if kafka_config is None else str(kafka_config),
        "sample_rate": sample_rate,
        "judge": judge,
        "metrics": metrics or None,
        "metrics_port": metrics_port,
        "scorer": "thread",
    }
    name_service()
    settings = Settings.resolve(given)
    path = settings.spool.path
    if settings.units_at is None:
        raise ConfigError("worker: there is no spool: give --spool FILE or --queue ADDRESS, or set RAGTRACE_SPOOL")
    is_new = path is not None and not Path(path).exists()
    runtime.configure_worker(settings)
    service = runtime.current()
    if service is None:
        raise ConfigError("worker: RAGTRACE_ENABLED turns ragtrace off; unset it where the worker runs")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    is_kafka = (service.settings.queue.address or "").startswith("kafka-traces://")
    if is_kafka and not _read_kafka(service, settle_s=settle) and once:
        runtime.shutdown(deadline)
        return 1
    _say(f"{service.settings.units_at}, judge {service.settings.judge.name}{sinks_text(service)}")
    if is_new:
        _say(
            f"there was no file {path}: made an empty spool; the applications need the same path in RAGTRACE_SPOOL"
        )
    if service.endpoint is not None:
        _say(f"metrics at {service.endpoint.url}; for prometheus.yml:")
        _say(SCRAPE.format(target=f"{service.endpoint.host}:{service.endpoint.port}"))
    before = ends_of(service)
    service.begin()
    is_read = True
    try:
        is_read = _watch(service, stop, is_once=once, before=before)
    except KeyboardInterrupt:  # as SIGTERM
        pass
    finally:
        is_done = runtime.shutdown(deadline)
    _say(f"stopped; {accounts(service, before)}")
    is_whole = not (once and has_unscored(service, before))
    return 0 if is_done and is_read and is_whole else 1


def _read_kafka(service: Service, *, settle_s: float) -> bool:
    """Connect the service to its topic; False where that cannot be read now."""
    from ragtrace.service.intake.kafka import read_traces, why_unread

    read_traces(service, settle_s=settle_s, say=_say)
    because = why_unread(service)
    if because:
        _say(because)
    return not because


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
            except UNREADABLE as error:
                _say(f"the {'queue' if service.settings.queue.address else 'spool'} cannot be read: {error}")
                return False
        if time.monotonic() - told_at >= _REPORT_EVERY_S:
            told_at = time.monotonic()
            _say(accounts(service, before))
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
            why = str(error_of(blocked, self._service.settings.judge.name))
        if due_s is None:
            until = f"no unit has ended for {_STILL_S / 60.0:.0f} min"
        else:
            until = f"the next is due in {f'{due_s:.0f} s' if due_s < 120.0 else f'{due_s / 60.0:.0f} min'}"
        return f"{n} unit{' waits' if n == 1 else 's wait'}: {why}; {until}"


def _say(text: str) -> None:
    say(f"ragtrace worker: {text}", file=sys.stderr, flush=True)
