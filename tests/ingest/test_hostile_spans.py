"""Whatever an application can send as attributes, a trace is read without an error."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.capture import internal_errors
from ragtrace.ingest import read_trace
from tests.ingest.spans import span

DEEP = "[" * 500 + "]" * 500
DEEPER = '{"metadata":' * 900 + "{}" + "}" * 900
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=True), st.sampled_from([0, -1, 2**53, float("inf")])
)
TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.sampled_from(
        ["", "\ud800".encode("utf-8", "surrogatepass"), "[", "{", "null", "NaN", "[NaN]", "[1e999]", DEEP, DEEPER]
    ),
    st.sampled_from(
        ["retrieval", "chat", "invoke_agent", "RETRIEVER", "LLM", "CHAIN", "RERANKER", "TOOL", "9" * 5000]
    ),
)
PLAIN = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.booleans(), st.none(), st.binary(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["id", "score", "content", "text", "role", "parts", "message", "kwargs", "metadata", "documents"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


def as_json(value: Any) -> str:
    """Return JSON as a careless writer makes it: NaN, bytes shown, lone surrogates escaped."""
    return json.dumps(value, default=repr)


VALUES = st.one_of(PLAIN, PLAIN.map(as_json), st.lists(PLAIN, max_size=4).map(as_json))
KEYS = st.sampled_from(
    [
        "openinference.span.kind", "input.value", "output.value", "retrieval.documents", "metadata", "tag.tags",
        "retrieval.documents.0.document.content", "retrieval.documents.0.document.metadata",
        "retrieval.documents.1.document.score", "retrieval.documents.99999999999.document.id",
        "retrieval.documents.x.document.id", "reranker.output_documents.0.document.id", "reranker.input_documents",
        "llm.input_messages", "llm.input_messages.0.message.contents.0.message_content.text", "llm.prompts",
        "llm.output_messages.0.message.content", "llm.token_count.prompt", "session.id", "user.id", "error.type",
        "gen_ai.operation.name", "gen_ai.retrieval.documents", "gen_ai.retrieval.query.text", "gen_ai.input.messages",
        "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.prompt.0.content", "gen_ai.request.model",
        "gen_ai.usage.input_tokens", "gen_ai.response.finish_reasons", "gen_ai.evaluation.name", "gen_ai.prompt",
        "gen_ai.tool.call.result", "ragtrace.pool.ids", "ragtrace.selected.ids", "ragtrace.selected.scores",
        "ragtrace.prompt.ids", "ragtrace.run.lossy", "ragtrace.run.outcome", "ragtrace.k",
        "ragtrace.selection.source", "ragtrace.rerank.documents", "ragtrace.run.metadata.tenant", "service.name",
        "traceloop.span.kind", "traceloop.entity.input", "traceloop.entity.output", "mlflow.spanType",
        "mlflow.spanInputs", "mlflow.spanOutputs", "langfuse.observation.type", "langfuse.observation.input",
        "langfuse.observation.output",
    ]
)  # fmt: skip
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["gen_ai.choice", "gen_ai.user.message", "gen_ai.content.prompt", "exception"]),
        st.dictionaries(st.sampled_from(["content", "message", "gen_ai.prompt", "role"]), VALUES, max_size=3),
    ),
    max_size=2,
)
SPANS = st.lists(
    st.builds(
        lambda number, under, attributes, times, events, scope, is_error: span(
            number, attributes, under=under, at=times, events=events, scope=scope, is_error=is_error
        ),
        st.integers(1, 5),
        st.integers(0, 6),  # also itself, and one that never came
        st.dictionaries(KEYS, VALUES, max_size=8),
        st.tuples(st.floats(0, 18e9), st.floats(0, 18e9)),
        EVENTS,
        st.sampled_from(["", "ragtrace", "other"]),
        st.booleans(),
    ),
    max_size=6,
)


@given(SPANS)
@settings(max_examples=100)
def test_any_attributes_are_read(spans):
    before = internal_errors()
    for run in read_trace(spans, span_metadata=["tenant"], redact=lambda text: text):
        assert run.record.trace_id
        assert run.record.head_probability == 1.0
        json.dumps([step.started_ns for step in run.finished.steps])
    assert internal_errors() == before, "a dialect or the capture room swallowed an error"


def test_ten_thousand_spans_in_one_another_take_no_time():
    kind = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "Oslo."}
    spans = [span(number, kind, under=number - 1) for number in range(1, 10_001)]
    (run,) = read_trace(spans)
    assert run.record.lossy["steps"] == 10_000 - 256
