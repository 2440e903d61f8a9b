"""Ask some questions over a spool, print the counters of missing scores, and wait for the end.

``python -m tests.process.recovery_app SPOOL JUDGE_URL QUESTIONS``; a line of JSON each time a run changes its state.
"""

from __future__ import annotations

import json
import sys
import time

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from ragtrace.service import current
from tests.process.observing import ask, points, providers

NAMES = ("due", "missing", "recovered")


def main() -> None:
    spool, url, questions = sys.argv[1:]
    reader = InMemoryMetricReader()
    ragtrace.configure(
        judge="openai:m", judge_base_url=url, judge_api_key="k", sample_rate=1.0, metrics=["faithfulness"],
        spool=spool, **providers(meter_provider=MeterProvider([reader])),
    )  # fmt: skip
    service = current()
    service.begin()
    for number in range(int(questions)):
        ask(question=f"Where is lab {number}?")
    told = ""
    while True:
        counts = {name: sum(points(reader, f"ragtrace.score.{name}.w").values()) for name in NAMES}
        counts["n"] = sum(points(reader, "ragtrace.score.n").values())
        if (line := json.dumps(counts)) != told:
            told = line
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        time.sleep(0.05)


if __name__ == "__main__":
    main()
