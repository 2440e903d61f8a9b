"""A real service whose detector alarms searches its store in the background, and says what it found once."""

from __future__ import annotations

import json
import logging
import random
import time

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

import ragtrace
from ragtrace import semconv
from ragtrace.queues import Unit
from ragtrace.service import current
from tests import make

LIMIT_S = 30.0
HOUR = 3_600.0
SECRET = "Who feeds the lighthouse cat"


@pytest.fixture
def exporter(tmp_path):
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    ragtrace.configure(
        store=str(tmp_path / "store"), metrics=("faithfulness",), sample_rate=1.0, drift_baseline=100,
        logger_provider=provider,
    )  # fmt: skip
    yield exporter
    ragtrace.shutdown(5.0)


def passed(path, now):
    """Fill a store with two days of scores: since six hours ago the runs with the tag beta are bad."""
    wall, draw = [now], random.Random(1)
    store = make.store(path, wall=lambda: wall[0])
    scored = []
    for n in range(960):
        wall[0] = now - 48 * HOUR + n * HOUR / 20
        tags = ("beta",) if n % 2 else ()
        mean = 0.3 if tags and wall[0] > now - 6 * HOUR else 0.9
        record = make.record(n=n + 1, query=f"{SECRET} {n}?", tags=tags)
        score = make.score(record, "faithfulness", min(max(draw.gauss(mean, 0.05), 0.0), 1.0), at=wall[0])
        store.emit(record, [score])
        scored.append((record, score))
    store.close()
    return scored


@pytest.mark.slow
def test_an_alarm_ends_in_one_block_of_the_log_and_one_event(tmp_path, exporter, caplog):
    service = current()
    scored = passed(tmp_path / "store", time.time())
    service.begin()
    with caplog.at_level(logging.WARNING, logger="ragtrace"):
        for record, score in scored:
            unit = Unit(record=record, decision="random", probability=1.0)
            service._worker.call_soon(lambda unit=unit, score=score: service.handler.publish(unit, [score], 0))
        end = time.monotonic() + LIMIT_S
        while not events(exporter) and time.monotonic() < end:
            time.sleep(0.05)
    [event] = events(exporter)
    assert event.attributes[semconv.GEN_AI_EVALUATION_NAME] == "faithfulness"
    [part] = json.loads(event.attributes[semconv.INVESTIGATION_SLICES])
    assert (part["dimension"], part["value"]) == ("tag", "beta")
    [block] = [it.getMessage() for it in caplog.records if "investigation" in it.getMessage()]
    assert "tag beta" in block
    assert SECRET not in block + str(dict(event.attributes))


def events(exporter):
    records = (it.log_record for it in exporter.get_finished_logs())
    return [it for it in records if it.event_name == semconv.EVENT_INVESTIGATION]
