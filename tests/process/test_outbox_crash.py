"""Kill -9 at any time beside a real receiver: no score is missing from store, events and counters, none doubled.

The store is in a file of its own; the guards kill where it is in the spool's.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections import Counter

import pytest

from ragtrace.queues import Entry, Spool, Unit, key_of, to_bytes
from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests import make
from tests.guards.processes import closed_port, until
from tests.process.observing import accounts
from tests.process.observing import worker as started

pytestmark = pytest.mark.slow

UNITS, KILLS, METRICS = 1_500, 15, ("faithfulness", "no_answer", "context_use")
REFUSED, FAILING = {3, 8}, {5, 11}  # lives whose receiver is not there, and whose receiver answers 503


def unit(number):
    text, said = "The lab is in Oslo. It was built in 1950.", f"The lab is in Oslo. It has {number} rooms."
    facts = {"query": "Where is the lab?", "answer": said, "workflow": "support"}
    record = make.record(text, n=number, stage="retrieved", **facts)
    return Unit(record=record, decision="random", probability=1.0)


def offer(spool, first, last):
    units = [unit(number) for number in range(first, last)]
    spool.put([Entry(key=key_of(it), payload=to_bytes(it), priority=1) for it in units])


def worker(spool, store, life, endpoint, *args):
    env = {
        "RAGTRACE_STORE": str(store),
        "RAGTRACE_METRICS": ",".join(METRICS),
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={life}",
        "OTEL_BLRP_SCHEDULE_DELAY": "150",
        "OTEL_METRIC_EXPORT_INTERVAL": "150",
    }
    return started(spool, *args, **env)


class Receiver(OtlpReceiver):
    """A receiver that keeps each request."""

    def __init__(self):
        self.came = []
        super().__init__()

    def take(self, request):
        self.came.append(request)
        super().take(request)


def settled(receiver):
    """Wait until the receiver has read what was sent: on a busy machine that takes longer than a kill."""
    n = -1
    while n != len(receiver.came):
        n = len(receiver.came)
        time.sleep(5.0)


def counted(receiver):
    """Return the last cumulative count of evaluations that each process delivered, in sum."""
    last = {}
    for request in list(receiver.came):
        for resource in getattr(request, "resource_metrics", ()):
            life = attributes_of(resource.resource.attributes)["service.instance.id"]
            points = [
                int(point.as_int or point.as_double)
                for scope in resource.scope_metrics
                for metric in scope.metrics
                if metric.name == "ragtrace.evaluations"
                for point in metric.sum.data_points
            ]
            last[life] = sum(points)
    return sum(last.values())


def noted(store):
    """Return how many scores the store knows to be counted; all of them in code that keeps no such account."""
    with sqlite3.connect(store, timeout=30) as connection:
        (scores,) = connection.execute("SELECT count(*) FROM scores").fetchone()
        owed = 0
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'outbox'").fetchone():
            (owed,) = connection.execute("SELECT count(*) FROM outbox WHERE owed & 2").fetchone()
    connection.close()
    return scores - owed


def ended(path):
    with sqlite3.connect(path, timeout=30) as connection:
        found = connection.execute("SELECT count(*) FROM jobs WHERE state = 'ended'").fetchone()[0]
    connection.close()
    return found


def test_fifteen_kills_lose_no_score_on_the_way_to_the_receiver(tmp_path):
    path, store = tmp_path / "spool", tmp_path / "store"
    spool = Spool(path)
    share, chance = UNITS // (KILLS + 1), random.Random(7)
    with Receiver() as receiver:
        for life in range(KILLS):
            offer(spool, life * share + 1, (life + 1) * share + 1)
            receiver.status = 503 if life in FAILING else 200
            endpoint = f"http://127.0.0.1:{closed_port()}" if life in REFUSED else receiver.endpoint
            before = ended(path)
            process = worker(path, store, life, endpoint)
            until(lambda before=before: ended(path) > before, running=process)
            time.sleep(chance.uniform(0.0, 0.6))  # the random moment
            process.send_signal(signal.SIGKILL)
            process.communicate()
            with sqlite3.connect(path, timeout=30) as connection:
                connection.execute("UPDATE jobs SET lease_until = 0 WHERE state = 'leased'")  # as two minutes later
            connection.close()
        settled(receiver)  # a request that the last victim had sent
        twice = counted(receiver) - noted(store)  # delivered, and not noted before a kill
        receiver.status = 200
        offer(spool, KILLS * share + 1, UNITS + 1)
        last = worker(path, store, KILLS, receiver.endpoint, "--once", "--deadline", "60")
        _, said = last.communicate(timeout=240)
        assert last.returncode == 0, said
        spool.close()
        assert accounts(path).pending == 0, said
        kept = make.store(store)
        rows = list(kept.rows())
        kept.close()
        keys = [attributes_of(event.attributes)["ragtrace.evaluation.key"] for event in receiver.logs]
        excess = counted(receiver) - len(rows)
    scores = Counter(":".join(row[it] for it in ("trace_id", "span_id", "metric", "version")) for row in rows)
    assert len({row["trace_id"] for row in rows}) == UNITS
    assert len(scores) == len(rows) == UNITS * len(METRICS)
    missing = set(scores) - set(keys)
    repeated = len(keys) - len(set(keys))
    print(f"{len(missing)} events missing, {repeated} repeated, counters {excess:+d}, {KILLS} kills")  # noqa: T201
    assert not missing
    assert set(keys) == set(scores)
    assert excess == twice >= 0
    assert all(row["exported"] for row in rows)
