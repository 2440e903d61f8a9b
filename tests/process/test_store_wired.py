"""The store in the spool's file: scores are written with the end of their job, and published at least once."""

from __future__ import annotations

import signal
import time

import pytest

import ragtrace
from tests import make
from tests.process.observing import ask, providers, ran

pytestmark = pytest.mark.slow


@pytest.fixture
def start(tmp_path):
    def configure(**settings):
        spans = make.Spans()
        ragtrace.configure(
            sample_rate=1.0,
            spool=str(tmp_path / "spool"),
            **providers(tracer_provider=spans.provider),
            **settings,
        )
        return spans.exporter

    yield configure
    ragtrace.shutdown(5)


def evaluations(exporter):
    return [span for span in exporter.get_finished_spans() if span.name.startswith("evaluation")]


@pytest.mark.parametrize("name", ["spool", "store"], ids=["in the spool's file", "in a file of its own"])
def test_scores_are_kept_and_published(start, tmp_path, name):
    exporter = start(store=str(tmp_path / name))
    ask(workflow="support")
    assert ragtrace.flush(20)
    assert len(evaluations(exporter)) == 1
    ragtrace.shutdown(5)
    store = make.store(tmp_path / name)
    rows = {row["metric"]: row for row in store.rows()}
    assert rows["faithfulness"]["value"] == 1.0
    assert rows["faithfulness"]["workflow"] == "support"
    assert all(row["exported"] for row in rows.values())
    assert not store.leftovers()
    store.close()


KILLED = """
import os, signal, sys
import ragtrace
from ragtrace.service import current
from tests.process.observing import ask, providers

ragtrace.configure(sample_rate=1.0, spool=sys.argv[1], store=sys.argv[1], **providers())
current().handler.publish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
ask(workflow="support")
ragtrace.flush(20)
"""


def test_what_was_written_and_not_published_is_published_by_the_next(start, tmp_path):
    path = str(tmp_path / "spool")
    assert ran("-c", KILLED, path).returncode == -signal.SIGKILL
    exporter = start(store=path)
    assert ragtrace.flush(20)  # in a process that captured nothing
    (span,) = evaluations(exporter)
    assert span.attributes["ragtrace.score.faithfulness"] == 1.0
    time.sleep(1.5)
    assert len(evaluations(exporter)) == 1
