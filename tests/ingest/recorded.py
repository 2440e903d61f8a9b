"""The recorded fixtures as spans of traces, and the runs that are read from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.ingest import ReceiverLimits, read_trace
from ragtrace.ingest.receiving.otlp_json import read_spans

if TYPE_CHECKING:
    from ragtrace.ingest import RawSpan, ReadRun

FIXTURES = Path(__file__).with_name("fixtures")
NAMES = sorted(path.stem for path in FIXTURES.glob("*/*.jsonl"))


def traces_of(name: str) -> list[list[RawSpan]]:
    """Return the traces of one fixture, the earliest first."""
    (path,) = FIXTURES.glob(f"*/{name}.jsonl")
    found: dict[bytes, list[RawSpan]] = {}
    for line in path.read_bytes().splitlines():
        for raw in read_spans(line, ReceiverLimits(), lambda _: True).wanted:
            found.setdefault(raw.span.trace_id, []).append(raw)
    return sorted(found.values(), key=lambda spans: min(raw.span.start_time_unix_nano for raw in spans))


def runs_of(name: str) -> list[ReadRun]:
    """Return the runs of one fixture, in their order."""
    return [run for spans in traces_of(name) for run in read_trace(spans)]
