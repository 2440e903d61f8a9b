"""Builders of what tests are about: passages, pools, records, results, scores, stores and spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragtrace.model import MetricResult, Passage, Pool, RagRecord, Score, ScoreKey
from ragtrace.stores import Policy, SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from ragtrace.model import Stage


def passages(*texts: str, ids: Iterable[str] | None = None) -> tuple[Passage, ...]:
    """Return passages in the order of their ranks; without `ids` they are p1, p2 and so on."""
    names = [f"p{n}" for n in range(1, len(texts) + 1)] if ids is None else ids
    return tuple(
        Passage(id=name, text=text, rank=rank)
        for rank, (name, text) in enumerate(zip(names, texts, strict=True), start=1)
    )


def pool(*texts: str, ids: Iterable[str] | None = None, stage: Stage = "used") -> Pool:
    """Return the passages of one stage."""
    return Pool(stage=stage, passages=passages(*texts, ids=ids))


def record(
    *texts: str, n: int = 1, ids: Iterable[str] | None = None, stage: Stage = "used", **facts: Any
) -> RagRecord:
    """Return record number `n`, with a pool of the texts if there are any; `facts` are its other fields."""
    made = {"id": str(n), "trace_id": f"{n:032x}", "span_id": f"{n:016x}"}
    made |= {"query": f"Where is {n}?", "answer": "In Oslo."}  # equal questions are one cluster
    pools = (pool(*texts, ids=ids, stage=stage),) if texts else ()
    return RagRecord(**{**made, "pools": pools, **facts})


def result(name: str = "faithfulness", value: float | None = 0.5, **facts: Any) -> MetricResult:
    """Return a result of a metric; with another `state` than ok it has no value."""
    made = {"state": "ok", "version": "v", **facts}
    return MetricResult(name=name, value=value if made["state"] == "ok" else None, **made)


def score(
    record: RagRecord | None = None,
    metric: str = "faithfulness",
    value: float | None = 0.5,
    *,
    at: float = 0.0,
    **facts: Any,
) -> Score:
    """Return a score of a record; `stratum` and `weight` are the score's facts, all others its result's."""
    drawn = {fact: facts.pop(fact) for fact in ("stratum", "weight") if fact in facts}
    return scores(record, result(metric, value, **facts), at=at, **drawn)[0]


def scores(record: RagRecord | None, *results: MetricResult, at: float = 0.0, **drawn: Any) -> list[Score]:
    """Return the scores of a record that have these results."""
    ids = (record.trace_id, record.span_id) if record else (f"{1:032x}", f"{1:016x}")
    return [
        Score(
            key=ScoreKey(trace_id=ids[0], span_id=ids[1], metric=it.key, version=it.version),
            result=it,
            scored_at=at,
            **drawn,
        )
        for it in results
    ]


def store(
    path: Path,
    policy: Policy | None = None,
    *,
    wall: Callable[[], float] | None = None,
    uptime: Callable[[], float] | None = None,
    is_made: bool = True,
    **given: Any,
) -> SqliteStore:
    """Return an open store; without `policy` the fields of one may be given."""
    return SqliteStore(path, policy or Policy(**given), wall=wall, uptime=uptime, is_made=is_made)


class Spans:
    """A tracer provider and what it exported."""

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("ragtrace", "1")

    @property
    def finished(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, prefix: str) -> list[ReadableSpan]:
        return [span for span in self.finished if span.name.startswith(prefix)]

    def one(self, prefix: str) -> ReadableSpan:
        (span,) = self.named(prefix)
        return span
