"""The commands of docs/how-to/kafka.md, as a reader runs them, on a real broker."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from tests.command_line import environment
from tests.e2e.howto import blocks
from tests.ingest.kafka.collector import write
from tests.kafka_broker import tansu

pytestmark = pytest.mark.slow

APPLICATION = """
import ragtrace
with ragtrace.query("Where is the lab?") as run:
    run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
    run.answered("In Rome since 1990.")
assert ragtrace.flush(30)
"""


def ran(commands, folder, **more):
    """Run a block, with the ragtrace and the Python of this interpreter."""
    names = f'ragtrace() {{ "{sys.executable}" -m ragtrace "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\n'
    done = subprocess.run(
        [shutil.which("bash") or "sh", "-ec", names + commands],
        cwd=folder,
        env=environment(PYTHONPATH=str(Path.cwd()), **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


def test_both_ways_score(tmp_path):
    units, traces = blocks("kafka", "sh")
    (tmp_path / "app.py").write_text(APPLICATION)
    with tansu() as brokers:
        said = ran(units, tmp_path, BROKERS=brokers)
        assert "1 scored, 0 pending" in said
        assert "1 worst of 1 answer by faithfulness" in said
        write(brokers, "otlp_spans", range(1, 4), records=2)
        said = ran(traces, tmp_path, BROKERS=brokers)
        assert "3 scored, 0 pending" in said
        assert "1 worst of 4 answers by faithfulness" in said
