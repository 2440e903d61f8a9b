"""Ask each question of records.jsonl as an application does; its trace ids count from 1."""

import json
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator

import ragtrace


class Counting(IdGenerator):
    def __init__(self) -> None:
        self.traces = self.spans = 0

    def generate_trace_id(self) -> int:
        self.traces += 1
        return self.traces << 96

    def generate_span_id(self) -> int:
        self.spans += 1
        return self.spans


trace.set_tracer_provider(TracerProvider(id_generator=Counting()))
for line in Path("records.jsonl").read_text(encoding="utf-8").splitlines():
    record = json.loads(line)
    named = {name: record.get(name) for name in ("workflow", "session", "user")}
    with ragtrace.query(record["query"], tags=record.get("tags", ()), **named) as run:
        run.retrieved(record.get("pool") or record["contexts"], source="help-centre")
        run.used(record["contexts"])
        run.answered(record.get("answer", ""), model="model-1")
ragtrace.shutdown()
