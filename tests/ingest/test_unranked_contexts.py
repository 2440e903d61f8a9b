"""The contexts without rank of our own spans: named on the root, read back with the texts of the tools' spans."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from ragtrace import semconv
from ragtrace.capture import FinishedRun, Recorder
from ragtrace.ingest import RawSpan, ReadRun, read_trace
from ragtrace.model import Passage, content_id
from ragtrace.model.passage import IdKey
from ragtrace.telemetry import SpanWriter
from tests import make
from tests.unit.telemetry.runs import T0, Taken

FEE = "The refund costs a fee of 40 euros."
RATE = "One euro is 11 crowns."
FOUND = {"id": "d1", "text": "The refund takes nine working days.", "score": 0.5}
NAMES = {"fees": FEE, "rates": RATE}


def captured(writer: SpanWriter, *, has_search: bool, ids: tuple[str, ...]) -> tuple[Any, FinishedRun]:
    """Return a run with two tools, whose record has the ids as its contexts without rank."""
    taken = Taken(writer)
    run = Recorder(taken).start(query="What does it cost?", workflow="support", started_ns=T0)
    if has_search:
        run.retrieved([FOUND], source="faq")
    for name, text in NAMES.items():
        run.tool_called(name, result=text)
    run.answered(FEE)
    run.finish(ended_ns=T0 + 1_000)
    ((root, finished),) = taken.runs
    texts = {content_id(text): text for text in NAMES.values()}
    sources = {content_id(text): name for name, text in NAMES.items()}
    unranked = tuple(
        Passage(id=name, text=texts.get(name, "not the whole result"), rank=place, source=sources.get(name, "fees"))
        for place, name in enumerate(ids, start=1)
    )
    pools = finished.record.pools if has_search else ()
    return root, replace(finished, record=replace(finished.record, pools=pools, unranked_contexts=unranked))


def sent(
    *,
    has_search: bool = True,
    ids: tuple[str, ...] = (content_id(FEE), content_id(RATE)),
    content: Literal["none", "full"] = "full",
    dialect: Any = "both",
    prompt_ids: tuple[str, ...] | None = None,
    key: IdKey | None = None,
) -> tuple[FinishedRun, make.Spans, ReadRun]:
    """Write a run as spans, and read them as a receiver does."""
    spans = make.Spans()
    writer = SpanWriter(spans.tracer, content=content, dialect=dialect)
    root, finished = captured(writer, has_search=has_search, ids=ids)
    finished = replace(finished, prompt_ids=prompt_ids)
    writer.write(root, finished, decision="random", reason=None, probability=1.0)
    root.end(finished.ended_ns)
    raw = [
        RawSpan(span, resource.resource, scope.scope.name)
        for resource in encode_spans(spans.finished).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    (run,) = read_trace(raw, id_key=key)
    return finished, spans, run


@pytest.mark.parametrize("dialect", ["both", "genai", "openinference"])
@pytest.mark.parametrize("has_search", [True, False])
def test_they_come_back_with_their_texts_and_their_tools(dialect: Any, *, has_search: bool) -> None:
    finished, spans, run = sent(dialect=dialect, has_search=has_search)
    assert run.record.unranked_contexts == finished.record.unranked_contexts
    assert [one.text for one in run.record.unranked_contexts] == [FEE, RATE]
    assert [pool.ids for pool in run.record.pools] == [pool.ids for pool in finished.record.pools]
    root = dict(spans.one("invoke_workflow").attributes or {})
    assert json.loads(str(root[semconv.CONTEXTS_UNRANKED_IDS])) == [content_id(FEE), content_id(RATE)]
    assert root.get(semconv.K) == (1 if has_search else None)
    shown = [
        str(value) for span in spans.finished for name, value in (span.attributes or {}).items() if "doc" in name
    ]
    assert not [value for value in shown if FEE in value or content_id(FEE) in value]


def test_ids_of_the_prompt_make_no_ranking_of_them() -> None:
    ids = ("d1", content_id(FEE), content_id(RATE))
    _, _, run = sent(prompt_ids=ids)
    assert [(pool.stage, pool.ids) for pool in run.record.pools] == [("retrieved", ("d1",)), ("used", ("d1",))]
    _, _, alone = sent(prompt_ids=ids[1:], has_search=False)
    assert alone.record.pools == ()
    assert alone.record.has_no_ranking


def test_without_content_the_ids_are_left_and_the_texts_are_missing() -> None:
    _, _, run = sent(content="none")
    assert [(one.id, one.text) for one in run.record.unranked_contexts] == [
        (content_id(FEE), ""),
        (content_id(RATE), ""),
    ]
    assert "document_text" in run.lacks
    assert run.record.truncated_contexts == 0


def test_a_text_that_no_span_has_whole_is_lost() -> None:
    _, _, run = sent(ids=(content_id(FEE), content_id("not the whole result")))
    assert [one.text for one in run.record.unranked_contexts] == [FEE, ""]
    assert run.record.truncated_contexts == 1
    assert run.record.truncated_ranked_contexts == 0


def test_a_tool_that_the_root_does_not_name_is_no_context() -> None:
    _, _, run = sent(ids=(content_id(RATE),))
    assert [one.text for one in run.record.contexts] == [FOUND["text"], RATE]
    _, spans, none = sent(ids=())
    assert none.record.unranked_contexts == ()
    assert semconv.CONTEXTS_UNRANKED_IDS not in (spans.one("invoke_workflow").attributes or {})


def test_a_keyed_id_is_known_by_whoever_has_the_key() -> None:
    key = IdKey(b"ours")
    ids = (content_id(FEE, key),)
    assert [one.text for one in sent(ids=ids, key=key)[2].record.unranked_contexts] == [FEE]
    assert [one.text for one in sent(ids=ids)[2].record.unranked_contexts] == [""]
