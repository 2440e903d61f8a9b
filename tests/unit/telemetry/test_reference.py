"""The page of every name on the wire: none is missing or unknown, and each span's table is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragtrace import semconv
from ragtrace.capture import Recorder
from ragtrace.model import Message, Reading, Sign, Usage
from ragtrace.telemetry import EvaluationWriter, SpanWriter
from tests.unit.telemetry.runs import POOL, Taken, score
from tests.unit.telemetry.test_spans import REQUEST

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "telemetry.md").read_text()
ROWS = set(re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE))
VALUES = re.compile(
    r"SPAN_(?!CUT)|OPERATION_|KIND_|TOOL_TYPE_|SCOPE$|SCHEMA_URL$|EVENT_|.*(_UNKNOWN|_PREFIX|_SUFFIX)$"
)
METADATA = f"{semconv.RUN_METADATA_PREFIX}<name>"
SCORE = f"{semconv.SCORE_PREFIX}<metric>"
NAMES = {
    value
    for constant, value in vars(semconv).items()
    if constant.isupper() and isinstance(value, str) and not VALUES.match(constant)
} | {METADATA, SCORE, f"{SCORE}{semconv.SCORE_STATE_SUFFIX}", f"{SCORE}{semconv.SCORE_REASON_SUFFIX}"}


def test_every_name_on_the_wire_has_a_row():
    assert len(NAMES) > 150
    assert sorted(NAMES - ROWS) == []


def test_no_name_of_ours_is_unknown_to_semconv():
    assert set(re.findall(r"`(ragtrace\.[^`]+)`", PAGE)) - NAMES == {semconv.EVENT_INVESTIGATION}


@pytest.mark.parametrize("instrument", semconv.METRICS, ids=lambda instrument: instrument.name)
def test_a_metric_stands_with_its_instrument_and_unit(instrument):
    kind = {"observable_gauge": "gauge", "observable_counter": "counter (observable)"}.get(instrument.kind)
    assert f"\n| `{instrument.name}` | {kind or instrument.kind} | `{instrument.unit}` | " in PAGE


def section(title: str) -> set[str]:
    """Names of a section's tables, of the tables of every span, and of OpenInference."""
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    found = [part for part in parts if part.startswith((title, "Every span", "OpenInference"))]
    assert len(found) == 3
    return set(re.findall(r"^\| `([^`]+)` \|", "".join(found), re.MULTILINE))


def test_each_span_carries_names_of_its_own_section_alone(spans):
    writer = SpanWriter(spans.tracer, content="full")
    taken = Taken(writer)
    run = Recorder(taken, span_metadata=["tenant"]).start(query="Q?", workflow="w", session="s", user="u", k=3)
    run.set_attributes(corpus="faq", corpus_version="3", prompt="support", prompt_version="7")
    run.add_tags(["vip"])
    run.add_metadata({"tenant": "acme"})
    run.retrieved(POOL, source="faq", top_k=50)
    run.retrieved([], source="web", error=ValueError("offline"))
    run.reranked(POOL[:3], model="cross", top_n=3)
    run.tool_called("seats", arguments="{}", result="7", call_id="c-1", description="Counts.")
    usage = Usage(input_tokens=9, output_tokens=2, cache_read_tokens=1, cache_write_tokens=1, reasoning_tokens=1)
    for operation in ("chat", "text_completion", "embeddings"):
        run.generated(
            operation=operation, model="m", provider="p", response_model="m-1", response_id="r", usage=usage,
            request=REQUEST, server_address="llm.example.com", server_port=443, first_chunk_s=0.25, finish_reasons=["stop"], inputs=[Message(role="user", content="Q?")],
            outputs=[Message(role="assistant", content="A.")],
        )  # fmt: skip
    run.agent_called("researcher", description="Searches.")
    run.interrupted("Really?")
    run.finish("error")
    ((root, captured),) = taken.runs
    signed = replace(captured.record, reading=Reading(signs=(Sign("answer_guessed"),)))
    captured = replace(captured, record=signed)
    writer.write(root, captured, decision="forced", reason="error", probability=1.0)
    root.end(captured.ended_ns)
    scores = [
        score(k=3),
        score("mrr", state="na", reason="no_labels"),
        score("p", state="error", reason="judge_error"),
    ]
    EvaluationWriter(spans.tracer, None, content="full").write(
        captured.record, scores, is_root_sampled=True, decision="forced", reason="error", probability=1.0,
        started_ns=1, ended_ns=2, root=root, cost_usd=0.1,
    )  # fmt: skip
    titles = {
        "invoke_workflow": "Root span", "retrieval": "Retrieval span", "rerank": "Rerank span",
        "chat": "Model spans", "text_completion": "Model spans", "embeddings": "Model spans",
        "execute_tool": "Tool span", "invoke_agent": "Agent span", "evaluation": "Evaluation span",
    }  # fmt: skip
    for span in spans.finished:
        known = section(titles[span.attributes["gen_ai.operation.name"]])
        names = {re.sub(r"^(ragtrace\.run\.metadata)\..+", r"\1.<name>", name) for name in span.attributes}
        names = {re.sub(r"^(ragtrace\.score)\.(faithfulness|mrr|p)\b", r"\1.<metric>", name) for name in names}
        assert (span.name, names - known) == (span.name, set())
    assert {span.attributes["gen_ai.operation.name"] for span in spans.finished} == titles.keys()
    events = {name for span in spans.finished for event in span.events for name in event.attributes}
    assert events - section("Log event") == set()  # those of exceptions stand with every span
