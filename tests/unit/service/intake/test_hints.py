"""Lines about traces without scores name the instrumentation that made them, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.ingest import read_trace
from ragtrace.service import Hints
from tests.ingest.spans import span

if TYPE_CHECKING:
    from ragtrace.ingest import RawSpan

SEARCH = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": "Where is the lab?",
    "retrieval.documents.0.document.content": "The lab is in Oslo.",
}
CALL = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Where is the lab?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "In Oslo.",
}


def hint(*spans: RawSpan) -> str:
    said: list[str] = []
    hints = Hints(said.append)
    for _ in range(2):  # each is said once
        (run,) = read_trace(spans)
        hints.lacking(run)
    (line,) = said
    return line


def test_openllmetry_without_texts_names_its_own_variable() -> None:
    given = {
        "traceloop.span.kind": "task",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": "[]",
    }
    line = hint(span(1, given))
    assert line.startswith("traces of genai and traceloop come without texts")
    assert "no metric has a value" in line
    assert line.endswith("In the application: unset TRACELOOP_TRACE_CONTENT")


@pytest.mark.parametrize(
    ("given", "said"),
    [(SEARCH, "a search without a model's call"), (CALL, "an answer and no search")],
)
def test_half_a_run_asks_for_a_span_around_both(given: dict[str, Any], said: str) -> None:
    line = hint(span(1, given))
    assert said in line
    assert "open a span around both" in line


def test_hidden_outputs_name_the_variable() -> None:
    retriever = {"openinference.span.kind": "RETRIEVER", "input.value": "Where is the lab?"}
    call = {name: value for name, value in CALL.items() if "output" not in name}
    chain = {"openinference.span.kind": "CHAIN", "input.value": "Where is the lab?"}
    line = hint(span(1, chain), span(2, retriever, under=1), span(3, call, under=1))
    assert "OPENINFERENCE_HIDE_OUTPUTS" in line


def test_a_trace_without_its_root_names_the_parent_that_is_missing() -> None:
    said: list[str] = []
    Hints(said.append).no_root([span(3, SEARCH, under=2, name="search"), span(4, CALL, under=3)])
    assert "the parent 0000000000000002 of the span 'search' did not come" in said[0]
