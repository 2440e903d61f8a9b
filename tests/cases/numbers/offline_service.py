"""A real service whose judge is offline, and what it shows Prometheus: ``python -m tests.cases.numbers.offline_service``.

Arguments are the chosen metrics, none = the default ones. It prints its samples as JSON: name, labels, value. A service
is configured once a process, so it runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace.demo import questions
from ragtrace.demo.handbook import handbook
from ragtrace.sinks import OTelCollector, ScrapeReader
from tests.cases.numbers.reading import ROOT, environment

WORKFLOW = "support"


class Sample(NamedTuple):
    """One sample of a scrape."""

    name: str
    labels: dict[str, str]
    value: float

    @property
    def metric(self) -> str | None:
        """The metric that it is about, if any."""
        return self.labels.get("gen_ai_evaluation_name")


class Answered(NamedTuple):
    """A question of the demo with the passages that answer it, and its reference as the answer."""

    query: str
    contexts: list[str]
    answer: str


def demo_rows() -> list[Answered]:
    """Return the demo's questions that its handbook answers."""
    texts = {passage.id: passage.text for passage in handbook()}
    rows = []
    for question in questions():
        contexts = [texts[key] for key, grade in question.grades.items() if grade >= 2 and key in texts]
        if contexts and question.reference:
            rows.append(Answered(question.query, contexts, question.reference))
    return rows


def scraped(*metrics: str) -> list[Sample]:
    """Run the service in a process and return what it shows in the end."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases.numbers.offline_service", *metrics],
        env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return [Sample(*sample) for sample in json.loads(done.stdout.splitlines()[-1])]


def _serve(metrics: list[str]) -> list[Sample]:
    reader = ScrapeReader()
    chosen = {"metrics": metrics} if metrics else {}
    ragtrace.configure(
        judge="overlap", sample_rate=1.0, tracer_provider=TracerProvider(), meter_provider=MeterProvider([reader]),
        logger_provider=LoggerProvider(), **chosen,
    )  # fmt: skip
    rows, collector = demo_rows(), OTelCollector(reader)
    for query, contexts, answer in rows:
        with ragtrace.query(query, workflow=WORKFLOW) as run:
            run.retrieved([{"id": f"p{rank}", "text": text} for rank, text in enumerate(contexts)])
            run.answered(answer)
    ends = time.monotonic() + 60.0
    while True:
        samples = [
            Sample(it.name, dict(it.labels), it.value) for family in collector.collect() for it in family.samples
        ]
        scored = sum(s.value for s in samples if s.name == "ragtrace_score_n_total" and s.metric == "faithfulness")
        if scored >= len(rows) or time.monotonic() > ends:
            return samples
        time.sleep(0.1)


if __name__ == "__main__":
    print(json.dumps(_serve(sys.argv[1:])))  # noqa: T201 - it is what the test reads
    sys.stdout.flush()
    os._exit(0)
