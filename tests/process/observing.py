"""Processes that are started and forked, runs that are captured, and what can be seen of both."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator

import ragtrace
from ragtrace.queues import Spool

ROOT = Path(__file__).parents[2]
QUIET = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}


def ask(times=1, question="Where is the lab?", answer="The lab is in Oslo.", **about):
    """Capture so many runs of one passage."""
    for _ in range(times):
        with ragtrace.query(question, **about) as run:
            run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
            run.answered(answer)


class SeededIds(IdGenerator):
    """Trace ids of a seed, so that the same runs are drawn each time, whatever scores beside them."""

    def __init__(self, seed):
        self._traces, self._spans = random.Random(seed), random.Random(seed)

    def generate_trace_id(self):
        return self._traces.getrandbits(128)

    def generate_span_id(self):
        return self._spans.getrandbits(64)


def providers(**given):
    """Return settings with providers that export nothing, but for those that are given."""
    made = {
        "tracer_provider": TracerProvider(),
        "meter_provider": MeterProvider(),
        "logger_provider": LoggerProvider(),
    }
    return made | given


def environment(**more):
    return {**os.environ, **QUIET, "PYTHONPATH": str(ROOT), **more}


def start(*args, **more):
    """Start a Python; `more` is its environment."""
    command = [sys.executable, *map(str, args)]
    return subprocess.Popen(command, env=environment(**more), cwd=ROOT, stderr=subprocess.PIPE, text=True)


def ran(*args, timeout=120, **more):
    """Run a Python to its end; `more` is its environment."""
    return subprocess.run(
        [sys.executable, *map(str, args)],
        env=environment(**more), cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def worker(path, *args, **more):
    return start("-m", "ragtrace", "worker", "--spool", path, *args, **more)


def asked_app(path, first, last):
    """Let an application ask so many questions over a spool that a worker scores."""
    assert start("-m", "tests.process.app", path, first, last).wait(120) == 0


def fork(work):
    """Begin a child that does some work, and return its number."""
    child = os.fork()
    if child == 0:
        status = 9
        try:
            status = 8 if work() is False else 0
        finally:
            os._exit(status)
    return child


def status_of(child):
    """Wait for a child's exit status; 9 = its work raised, 8 = it returned False."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked(work):
    """Return the exit status of a child that does some work."""
    return status_of(fork(work))


def accounts(path):
    """Return the counters of a spool, of which every trace is accounted for."""
    spool = Spool(path)
    try:
        found = spool.counters()
    finally:
        spool.close()
    assert found.offered == sum(found.ends.values()) + found.pending
    return found


def points(reader, name):
    data = reader.get_metrics_data()
    metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name]
    return {tuple(sorted(p.attributes.items())): p.value for m in metrics for p in m.data.data_points}
