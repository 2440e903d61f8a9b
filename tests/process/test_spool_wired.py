"""One spool, an application that hands its units over, and the service that scores them."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from ragtrace import semconv
from ragtrace.service import current
from tests.guards.processes import until
from tests.process.observing import ROOT, ask, environment, points, providers

pytestmark = pytest.mark.slow


def configure(path, **settings):
    reader = InMemoryMetricReader()
    ragtrace.configure(
        **{"sample_rate": 1.0, "spool": str(path), **settings},
        **providers(meter_provider=MeterProvider([reader])),
    )
    return reader


@pytest.fixture
def path(tmp_path):
    yield tmp_path / "spool.sqlite"
    ragtrace.shutdown(5)


def hand_over(path, number, **settings):
    reader = configure(path, scorer="worker", **settings)
    ask(number, workflow="labs")
    assert ragtrace.flush(30)
    return reader


def test_a_unit_drawn_for_metrics_that_the_scorer_has_not_is_skipped_and_said_once(path, caplog):
    hand_over(path, 3, metrics=["faithfulness", "citations"])
    configure(path, metrics=["rouge_consistency"])
    with caplog.at_level(logging.WARNING, "ragtrace"):
        current().begin()
        assert ragtrace.flush(30)
    counts, pending = current().gauges.accounts(is_fresh=True)
    assert (counts, pending) == ({("skipped", "no_metric"): 3}, 0)
    (said,) = [record.message for record in caplog.records if "citations" in record.message]
    assert "faithfulness" in said
    assert "rouge_consistency" in said


def test_a_unit_from_elsewhere_has_its_series_at_0_before_it_is_judged(path, server):
    hand_over(path, 1, metrics=["faithfulness"])
    judge = {"judge": "openai:m", "judge_base_url": server.url, "judge_api_key": "k"}
    reader = configure(path, metrics=["faithfulness"], budget_tokens_per_day=10, **judge)
    current().begin()
    until(lambda: points(reader, semconv.SCORE_N))
    ((about, n),) = points(reader, semconv.SCORE_N).items()
    assert n == 0
    assert (semconv.GEN_AI_WORKFLOW_NAME, "labs") in about
    assert server.requests == []


def test_a_worker_has_the_series_of_what_was_captured_before_anything_of_it_is_drawn(path):
    configure(path, scorer="worker", sample_rate=0.0, metrics=["faithfulness"])
    current().begin()
    ask(workflow="labs")
    until(lambda: current().queue.publish_names([]))
    assert current().gauges.accounts() == ({("skipped", "not_sampled"): 1}, 0)
    ragtrace.shutdown(5)
    reader = configure(path, metrics=["faithfulness"])
    current().begin()
    ((about, n),) = points(reader, semconv.SCORE_N).items()
    assert n == 0
    assert (semconv.GEN_AI_WORKFLOW_NAME, "labs") in about


def ledger(reader):
    """Return what became of traces: {(spool, state): number}."""
    found = {}
    for about, n in points(reader, semconv.LEDGER).items():
        named = dict(about)
        key = (named.get(semconv.SPOOL, ""), named[semconv.STATE])
        found[key] = found.get(key, 0) + n
    return found


def total(found):
    """Return offered traces as the boards count them: spools once, whoever tells of them, and the way there never."""
    return sum(n for (_, state), n in found.items() if state != "spooled")


def test_coverage_and_ledger_count_what_went_through_the_spool_once(path):
    reader = configure(path)
    ask(5)
    assert ragtrace.flush(30)
    until(lambda: scored(reader) == 5)
    assert list(points(reader, semconv.COVERAGE_RATIO).values()) == [1.0]
    found = ledger(reader)
    assert found["", "spooled"] == 5
    assert total(found) == 5
    spool = next(spool for spool, _ in found if spool)
    assert points(reader, semconv.QUEUE_SIZE) == {(): 0, ((semconv.SPOOL, spool),): 0}
    assert current().gauges.accounts(is_fresh=True) == ({("scored", ""): 5}, 0)


def scored(reader):
    return sum(n for (spool, state), n in ledger(reader).items() if spool and state == "scored")


def test_who_only_hands_over_tells_no_coverage(path):
    reader = hand_over(path, 5)
    assert ledger(reader) == {("", "spooled"): 5, ("", "pending"): 0}
    assert points(reader, semconv.COVERAGE_RATIO) == {}


SCORER = """
import json, sys, time
from pathlib import Path
from ragtrace.service import current
from tests.process.observing import ask
from tests.process.test_spool_wired import configure, ledger, scored

reader = configure(Path(sys.argv[1]))
ask(10)
deadline = time.monotonic() + 60
while scored(reader) < 30 and time.monotonic() < deadline:
    time.sleep(0.05)
print(json.dumps([[*key, n] for key, n in ledger(reader).items()]))
"""


def test_a_shared_spool_is_told_by_each_process_under_one_name(path):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCORER, str(path)], cwd=ROOT, env=environment(),
            stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    own, shared = {}, {}
    for process in processes:
        for spool, state, n in json.loads(process.communicate(timeout=120)[0].splitlines()[-1]):
            if spool:
                shared[spool, state] = max(shared.get((spool, state), 0), n)
            else:
                own[spool, state] = own.get((spool, state), 0) + n
    assert len({spool for spool, _ in shared}) == 1
    assert total(own | shared) == 30
