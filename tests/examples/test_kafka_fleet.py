"""The fleet on a real broker: every answer is scored once, by several workers."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from tests.examples.model_server import model_server
from tests.examples.running import EXAMPLES, rows, run, with_model
from tests.kafka_broker import tansu

pytestmark = pytest.mark.slow
FLEET = EXAMPLES / "kafka_fleet" / "fleet.py"


def test_every_answer_is_scored_once(tmp_path):
    with tansu() as brokers, model_server(lambda _: "A day ticket costs 9 euros.") as model:
        said = run(tmp_path, FLEET, "--brokers", brokers)
        queue = f"kafka://{brokers}/others"
        run(
            tmp_path, FLEET.with_name("app.py"), "eu", "--rounds", "1", *with_model(model.url), RAGTRACE_QUEUE=queue
        )
    assert len(model.requests) == 4
    assert said.count("20 answers, all at the broker: True") == 3
    assert "in all 60 scored, 0 pending" in said
    assert "It must wear a muzzle." in said
    stores = [tmp_path / f"worker-{number}.sqlite" for number in re.findall(r"worker (\d) ragtrace", said)]
    traces = [one for store in stores if store.exists() for one in rows(store, "SELECT trace_id FROM runs")]
    assert len(traces) == len(set(traces)) == 60
