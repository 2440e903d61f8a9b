"""A real chain with our callback, exported over real OTLP: the record that is read is the one that was scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

import ragtrace
from ragtrace.ingest import RawSpan, read_trace
from ragtrace.model import Reading, Sign
from ragtrace.service import current
from ragtrace.testing.otlp import OtlpReceiver
from ragtrace_langchain import RagtraceHandler
from tests.e2e.chains import ANSWER, CHOSEN, make_chain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.ingest import ReadRun
    from ragtrace.model import RagRecord, Score

QUESTION = "How long does the refund of parcel 7 take?"


class Kept:
    """A sink that keeps what was scored."""

    def __init__(self) -> None:
        self.records: list[RagRecord] = []
        self.scores: list[Score] = []

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        self.records.append(record)
        self.scores.extend(scores)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", receiver.protocol)
        for signal in ("TRACES", "METRICS", "LOGS"):
            monkeypatch.delenv(f"OTEL_{signal}_EXPORTER", raising=False)
        yield receiver
        ragtrace.shutdown(10)


def received(receiver: OtlpReceiver) -> list[ReadRun]:
    spans = [
        RawSpan(span, resource.resource, scope.scope.name)
        for request in receiver.requests
        for resource in getattr(request, "resource_spans", ())
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    return read_trace(spans)


def asked(receiver: OtlpReceiver, **settings: Any) -> tuple[RagRecord, ReadRun]:
    """Ask the chain once; return the record that was scored, and the run that is read from the spans."""
    kept = Kept()
    ragtrace.configure(sample_rate=1.0, metrics=["faithfulness", "answer_similarity"], sinks=[kept], **settings)
    config = {"callbacks": [RagtraceHandler()], "metadata": {"ragtrace.session": "s1", "tags": ["vip"]}}
    assert make_chain().invoke(QUESTION, config=config).content == ANSWER
    assert current().wait_scored(30)
    assert ragtrace.flush(30)
    (run,) = received(receiver)
    return kept.records[0], run


@pytest.mark.parametrize("dialect", ["both", "genai", "openinference"])
def test_with_content_the_record_is_the_one_that_was_scored(receiver: OtlpReceiver, dialect: Any) -> None:
    record, run = asked(receiver, content="full", dialect=dialect)
    assert run.dialects == ("ragtrace",)
    assert run.decision == "random"
    assert run.lacks == {}
    assert [p.text for p in run.record.contexts] == [p.text for p in record.contexts]
    # Flattened, 50 documents are more than the 128 attributes of a span: those behind keep id and score alone.
    is_cut = dialect == "openinference"
    assert as_told(run.record, is_cut=is_cut) == as_told(record, is_cut=is_cut)


def as_told(record: RagRecord, *, is_cut: bool) -> RagRecord:
    """Leave out the facts that a span tells differently: metadata of chosen passages, and parts of a millisecond."""
    changes: dict[str, Any] = {"metadata": {}, **({"text": ""} if is_cut else {})}
    bare = [replace(p, **changes) for pool in record.pools for p in pool.passages]
    parts = iter(bare)
    pools = tuple(replace(pool, passages=tuple(next(parts) for _ in pool.passages)) for pool in record.pools)
    signs = tuple(map(Sign, sorted({sign.name for sign in record.signs})))  # a span tells their names alone
    times = {"started": round(record.started, 3), "ended": round(record.ended, 3)}
    return replace(record, pools=pools, reading=Reading(signs=signs), **times)


def test_without_content_ids_scores_and_ranks_are_left(receiver: OtlpReceiver) -> None:
    record, run = asked(receiver, content="none")
    assert {*run.lacks} == {"question", "answer", "document_text", "prompt"}
    assert [pool.ids for pool in run.record.pools] == [pool.ids for pool in record.pools]
    assert [p.score for p in run.record.pool("reranked")] == [p.score for p in record.pool("reranked")]
    assert run.record.pool("reranked")[0].id == CHOSEN[0]
    assert not run.record.is_answer_given


def test_evaluations_and_their_spans_are_no_runs(receiver: OtlpReceiver) -> None:
    _, run = asked(receiver, content="full")
    names = [span.name for span in receiver.spans]
    assert any(name.startswith("evaluation") for name in names)
    assert all("evaluation" not in step.key for step in run.finished.steps if step.key)
