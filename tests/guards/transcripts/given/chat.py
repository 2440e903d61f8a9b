"""Ask each question of records.jsonl as an application does; its ids count from 1."""

import json
import threading
from itertools import count
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator

import ragtrace


class Counting(IdGenerator):
    """Count runs from 1. Their steps are written in another thread, between any two runs, and count by themselves."""

    def __init__(self) -> None:
        self.traces, self.runs, self.steps = count(1), count(1), count(1 << 32)

    def generate_trace_id(self) -> int:
        return next(self.traces) << 96

    def generate_span_id(self) -> int:
        return next(self.runs if threading.current_thread() is threading.main_thread() else self.steps)


trace.set_tracer_provider(TracerProvider(id_generator=Counting()))
for line in Path("records.jsonl").read_text(encoding="utf-8").splitlines():
    record = json.loads(line)
    named = {name: record.get(name) for name in ("workflow", "session", "user")}
    with ragtrace.query(record["query"], tags=record.get("tags", ()), **named) as run:
        run.retrieved(record.get("pool") or record["contexts"], source="help-centre")
        run.used(record["contexts"])
        run.answered(record.get("answer", ""), model="model-1")
ragtrace.shutdown()
