"""A real service looks for falls in its store by itself, and exports and tells what it found."""

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
from ragtrace.service import current
from tests import make

LIMIT_S = 60.0
HOUR = 3_600.0
SECRET = "Who feeds the lighthouse cat"


@pytest.fixture
def exporter(tmp_path):
    fill(tmp_path / "store", time.time())
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    ragtrace.configure(
        store=str(tmp_path / "store"), metrics=("faithfulness",), sample_rate=1.0, logger_provider=provider
    )
    yield exporter
    ragtrace.shutdown(5.0)


def fill(path, now):
    """Fill a store with two days of scores: since six hours ago the runs of one model are bad."""
    draw, store = random.Random(1), make.store(path, wall=lambda: now)
    for n in range(960):
        at, model = now - 48 * HOUR + n * HOUR / 20, "mini" if n % 2 else "large"
        mean = 0.3 if model == "mini" and at > now - 6 * HOUR else 0.9
        record = make.record(n=n + 1, query=f"{SECRET} {n}?", model=model, workflow="desk", ended=at)
        score = make.score(record, "faithfulness", min(max(draw.gauss(mean, 0.05), 0.0), 1.0), at=at)
        store.emit(record, [score])
    store.close()


@pytest.mark.slow
def test_a_fall_in_the_store_ends_in_one_event_and_in_gauges(exporter, caplog):
    service = current()
    service.looker._background.postpone(0.0)  # the first look would come in a minute
    with caplog.at_level(logging.WARNING, logger="ragtrace"):
        service.begin()
        end = time.monotonic() + LIMIT_S
        while not events(exporter) and time.monotonic() < end:
            time.sleep(0.05)
    [event] = events(exporter)
    assert event.attributes[semconv.GEN_AI_WORKFLOW_NAME] == "desk"
    [part] = json.loads(event.attributes[semconv.INVESTIGATION_PARTS])
    assert (part["dimension"], part["value"], part["how"]) == ("model", "mini", "worse")
    assert "faithfulness of desk is worse by" in caplog.text
    assert SECRET not in caplog.text + str(dict(event.attributes))
    [(found, about)] = service.gauges.readers()[semconv.INVESTIGATION_FOUND]()
    assert (found, about[semconv.GEN_AI_EVALUATION_NAME]) == (1.0, "faithfulness")


def events(exporter):
    records = (it.log_record for it in exporter.get_finished_logs())
    return [it for it in records if it.event_name == semconv.EVENT_INVESTIGATION]
