"""The span tree and its attributes, whole; limits; errors; dialects."""

from __future__ import annotations

import json

import pytest
from msgspec import structs
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanLimits
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import NonRecordingSpan, NoOpTracer, SpanContext, SpanKind, StatusCode, TraceFlags

from ragtrace.capture import Recorder
from ragtrace.model import Message, Reading, Sign, Usage
from ragtrace.telemetry import SpanWriter
from tests.unit.telemetry.runs import CHOSEN, MS, POOL, PROMPT, T0, Taken, support_run


def listed(values):
    return json.dumps(list(values), separators=(",", ":"))


def written(spans, root=None, captured=None, *, content="none", dialect="both", **facts):
    writer = SpanWriter(spans.tracer, content=content, dialect=dialect, **facts)
    root, captured = (
        support_run(writer) if captured is None else (root or writer.open_root("support", T0), captured)
    )
    writer.write(root, captured, decision="random", reason=None, probability=0.05)
    root.end(captured.ended_ns)
    return root, captured


def finish(run, spans, *, span_metadata=(), **options):
    """Write a run that a test reported by itself."""
    writer = SpanWriter(spans.tracer, **options)
    taken = Taken(writer)
    recorder = Recorder(taken, span_metadata=span_metadata)
    open_run = recorder.start(query="Q?", workflow="w", started_ns=T0)
    run(open_run)
    if not open_run.is_finished:
        open_run.finish(ended_ns=T0 + 100 * MS)
    ((root, captured),) = taken.runs
    writer.write(root, captured, decision="none", reason="not_sampled", probability=0.0)
    root.end(captured.ended_ns)
    return root, captured


@pytest.mark.parametrize("content", ["none", "full"])
def test_the_root_names_each_sign_once_and_says_none_of_its_words(spans, content):
    signs = (
        Sign("evidence_unread", "prompt", "| town | rooms |", 'evidence={"state.rows": True}'),
        Sign("answer_guessed", "output.note"),
        Sign("evidence_unread", "state.rows"),
    )
    _, captured = support_run()
    record = structs.replace(captured.record, reading=Reading(signs=signs))
    written(spans, captured=structs.replace(captured, record=record), content=content)
    assert spans.one("invoke_workflow").attributes["ragtrace.run.signs"] == ("answer_guessed", "evidence_unread")
    told = [dict(it.attributes) for span in spans.finished for it in (span, *span.events)]
    assert "| town" not in str(told)
    assert "state.rows" not in str(told)


def test_the_tree(spans):
    root, _ = written(spans)
    tree = [
        (s.name, s.kind, s.parent.span_id if s.parent else None, s.start_time, s.end_time) for s in spans.finished
    ]
    parent = int(root.span_id, 16)
    assert tree == [
        ("retrieval faq", SpanKind.CLIENT, parent, T0 + MS, T0 + 11 * MS),
        ("rerank cross", SpanKind.INTERNAL, parent, T0 + 11 * MS, T0 + 21 * MS),
        ("chat gpt-x", SpanKind.CLIENT, parent, T0 + 21 * MS, T0 + 521 * MS),
        ("invoke_workflow support", SpanKind.INTERNAL, None, T0, T0 + 530 * MS),
    ]
    assert {format(s.context.trace_id, "032x") for s in spans.finished} == {root.trace_id}
    assert spans.finished[0].instrumentation_scope.name == "ragtrace"
    assert all(s.status.status_code is StatusCode.UNSET for s in spans.finished)


def test_the_root_whole(spans):
    written(spans)
    assert dict(spans.one("invoke_workflow").attributes) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "support",
        "gen_ai.conversation.id": "s-1",
        "session.id": "s-1",
        "user.id": "u-1",
        "openinference.span.kind": "CHAIN",
        "ragtrace.run.outcome": "answered",
        "ragtrace.pool.ids": listed(p["id"] for p in POOL),
        "ragtrace.pool.scores": listed(p["score"] for p in POOL),
        "ragtrace.selected.ids": listed(("d7", "d3", "d1", "d20", "d5", "d2", "d9", "d11")),
        "ragtrace.selected.scores": listed(p["score"] for p in CHOSEN),
        "ragtrace.selected.ranks": listed((7, 3, 1, 20, 5, 2, 9, 11)),
        "ragtrace.prompt.ids": listed(("d7", "d3", "d1", "d20", "d5", "d2", "d9", "d11")),
        "ragtrace.selection.source": "explicit",
        "ragtrace.k": 8,
        "ragtrace.corpus.name": "faq",
        "ragtrace.corpus.version": "3",
        "ragtrace.sampling.decision": "random",
        "ragtrace.sampling.probability": 0.05,
    }


def test_the_children_whole(spans):
    written(spans)
    retrieval = dict(spans.one("retrieval").attributes)
    documents = json.loads(retrieval.pop("gen_ai.retrieval.documents"))
    assert [(d["id"], d["score"], d["rank"]) for d in documents] == [
        (p["id"], p["score"], rank) for rank, p in enumerate(POOL, start=1)
    ]
    assert all(set(d) == {"id", "score", "rank", "hash"} for d in documents)
    assert retrieval == {
        "gen_ai.conversation.id": "s-1",
        "gen_ai.operation.name": "retrieval",
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.data_source.id": "faq",
        "gen_ai.retrieval.top_k": 50,
        "ragtrace.retrieval.document.count": 50,
        "ragtrace.retrieval.document.captured": 50,
        "ragtrace.retrieval.document.truncated": 0,
    }
    rerank = dict(spans.one("rerank").attributes)
    chosen = json.loads(rerank.pop("ragtrace.rerank.documents"))
    assert chosen[0] == {"id": "d7", "score": 0.9, "rank": 1, "previous_rank": 7, "retrieval_score": 0.93}
    assert len(chosen) == 8
    assert rerank == {
        "gen_ai.conversation.id": "s-1",
        "gen_ai.operation.name": "rerank",
        "openinference.span.kind": "RERANKER",
        "gen_ai.request.model": "cross",
        "reranker.model_name": "cross",
        "reranker.top_k": 8,
        "ragtrace.rerank.candidate.count": 50,
        "ragtrace.rerank.top_n": 8,
    }
    assert dict(spans.one("chat").attributes) == {
        "gen_ai.conversation.id": "s-1",
        "gen_ai.operation.name": "chat",
        "openinference.span.kind": "LLM",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x-1",
        "gen_ai.response.id": "resp-1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 12,
        "llm.model_name": "gpt-x",
        "llm.provider": "openai",
        "llm.token_count.prompt": 900,
        "llm.token_count.completion": 12,
    }


def test_content_full_sends_the_pool_once_and_whole_prompts(spans):
    written(spans, content="full")
    everything = json.dumps([dict(s.attributes) for s in spans.finished])
    chosen = {p["id"] for p in CHOSEN}
    for passage in POOL:
        assert everything.count(passage["text"]) == (2 if passage["id"] in chosen else 1)
    (question,) = json.loads(spans.one("chat").attributes["gen_ai.input.messages"])
    assert question["parts"][0]["content"] == PROMPT


def test_content_full_writes_questions_and_answers(spans):
    written(spans, content="full")
    root = spans.one("invoke_workflow").attributes
    assert root["input.value"] == "How do I cancel?"
    assert root["output.value"] == "In settings."
    assert json.loads(root["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "How do I cancel?"}]}
    ]
    assert json.loads(root["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "In settings."}], "finish_reason": ""}
    ]
    chat = spans.one("chat").attributes
    assert json.loads(chat["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "In settings."}], "finish_reason": "stop"}
    ]
    retrieval = spans.one("retrieval").attributes
    assert retrieval["gen_ai.retrieval.query.text"] == retrieval["input.value"] == "How do I cancel?"


@pytest.mark.parametrize(
    ("dialect", "has", "has_not"),
    [
        ("genai", {"gen_ai.request.model", "gen_ai.input.messages"}, {"llm.model_name", "input.value"}),
        (
            "openinference",
            {"llm.model_name", "llm.input_messages.0.message.content"},
            {"gen_ai.request.model", "gen_ai.input.messages", "input.value"},
        ),
        ("both", {"llm.model_name", "gen_ai.request.model", "gen_ai.input.messages"}, {"input.value"}),
    ],
)
def test_dialects(spans, dialect, has, has_not):
    written(spans, content="full", dialect=dialect)
    chat = set(spans.one("chat").attributes)
    assert has <= chat
    assert not has_not & chat
    assert all("openinference.span.kind" in s.attributes for s in spans.finished)
    assert "gen_ai.retrieval.documents" in spans.one("retrieval").attributes
    by_field = [name for span in spans.finished for name in span.attributes if ".documents.0." in name]
    assert bool(by_field) is (dialect == "openinference")


def test_a_root_is_the_child_of_the_ambient_span_and_attaches_nothing(spans):
    with spans.tracer.start_as_current_span("request") as request:
        root, _ = written(spans)
        assert trace.get_current_span() is request
    found = spans.one("invoke_workflow")
    assert found.parent.span_id == request.get_span_context().span_id
    assert root.trace_id == format(request.get_span_context().trace_id, "032x")


def test_the_ambient_span_is_read_at_the_start_only(spans):
    writer = SpanWriter(spans.tracer)
    root, captured = support_run(writer)
    with spans.tracer.start_as_current_span("elsewhere"):
        writer.write(root, captured, decision="none", reason=None, probability=0.0)
    root.end(captured.ended_ns)
    assert spans.one("chat").parent.span_id == int(root.span_id, 16)


def test_an_unsampled_root_builds_nothing_but_has_ids(make_spans, monkeypatch):
    spans = make_spans(sampler=ParentBased(ALWAYS_OFF))
    monkeypatch.setattr("ragtrace.telemetry.spans.writer.Budget", lambda *_, **__: pytest.fail("JSON was built"))
    root, _ = written(spans)
    assert spans.finished == ()
    assert not root.is_recording
    assert len(root.trace_id) == 32
    assert int(root.trace_id, 16)


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_no_op_tracer_still_gives_every_run_an_identity(is_nested):
    writer = SpanWriter(NoOpTracer())
    outer = SpanContext(7, 8, is_remote=False, trace_flags=TraceFlags(1))
    with trace.use_span(NonRecordingSpan(outer) if is_nested else trace.INVALID_SPAN):
        roots = [writer.open_root("w", T0) for _ in range(2)]
    assert len({root.span_id for root in roots}) == 2
    assert not any(root.is_recording for root in roots)
    assert all(int(root.trace_id, 16) for root in roots)
    if is_nested:
        assert {root.trace_id for root in roots} == {format(7, "032x")}


def test_composite_retriever_is_the_parent_of_its_leaves_and_leaves_carry_the_texts(spans):
    def report(run):
        run.retrieved([{"id": "a", "text": "Text of a."}], source="one", key="1", parent_key="both")
        run.retrieved([{"id": "b", "text": "Text of b."}], source="two", key="2", parent_key="both")
        run.retrieved(
            [{"id": "b", "text": "Text of b."}, {"id": "a", "text": "Text of a."}], source="fused", key="both",
            is_fused=True,
        )  # fmt: skip

    root, _ = finish(report, spans, content="full")
    fused = spans.one("retrieval fused")
    assert [s.parent.span_id for s in spans.named("retrieval ")] == [
        int(root.span_id, 16), fused.context.span_id, fused.context.span_id,
    ]  # fmt: skip
    assert "Text of b." not in fused.attributes["gen_ai.retrieval.documents"]
    assert "Text of b." in spans.one("retrieval two").attributes["gen_ai.retrieval.documents"]


def test_a_circle_of_parents_ends_under_the_root(spans):
    def report(run):
        run.retrieved([], source="one", key="1", parent_key="2")
        run.retrieved([], source="two", key="2", parent_key="1")

    root, _ = finish(report, spans)
    parents = {s.name: s.parent.span_id for s in spans.named("retrieval ")}
    assert len(parents) == 2
    assert int(root.span_id, 16) in parents.values()


def test_a_document_without_score_gets_its_rank_as_score_and_pool_scores_are_left_out(spans):
    finish(lambda run: run.retrieved([{"id": "a", "text": "x", "score": 0.5}, {"id": "b", "text": "y"}]), spans)
    documents = json.loads(spans.one("retrieval").attributes["gen_ai.retrieval.documents"])
    assert documents[1]["score"] == 0.5
    assert documents[1]["score_kind"] == "rank"
    assert "score_kind" not in documents[0]
    root = spans.one("invoke_workflow").attributes
    assert "ragtrace.pool.scores" not in root
    assert root["ragtrace.pool.ids"] == listed(("a", "b"))


def test_a_document_without_id_has_the_hash_of_its_text(spans):
    finish(lambda run: run.retrieved(["Refunds take 5 days."]), spans)
    (document,) = json.loads(spans.one("retrieval").attributes["gen_ai.retrieval.documents"])
    assert document == {"id": "sha256:558c378376e08651", "score": 1.0, "rank": 1, "score_kind": "rank"}


def test_k_100_stays_within_30_attributes(spans):
    pool = [{"id": f"d{i}", "text": f"Text {i} " * 40, "score": 1 / i} for i in range(1, 101)]

    def report(run):
        run.set_attributes(session="s", user="u", corpus="c", corpus_version="1")
        run.retrieved(pool, source="faq", top_k=100)
        run.reranked(pool[:50], model="m", top_n=50)
        run.add_prompt("".join(p["text"] for p in pool[:50]))
        run.generated(model="m", inputs=[Message(role="user", content="?")])
        run.failed(ValueError("broken"))

    finish(report, spans, content="full")
    assert max(len(s.attributes) for s in spans.finished) <= 30
    root = spans.one("invoke_workflow").attributes
    assert len(json.loads(root["ragtrace.pool.ids"])) == 100
    assert root["input.value"] == "Q?"


@pytest.mark.parametrize("dialect", ["both", "openinference"])
def test_one_and_a_half_megabytes_of_documents_give_at_most_a_fifth_of_it(spans, dialect):
    pool = [{"id": f"d{i}", "text": f"{i} é " + "wörter " * 4_000, "score": 1 / i} for i in range(1, 51)]
    assert sum(len(p["text"]) for p in pool) > 1_400_000

    def report(run):
        run.retrieved(pool, source="faq")
        run.reranked(pool[:8], model="m")
        run.generated(
            model="m", inputs=[Message(role="user", content="x" + " ".join(p["text"].upper() for p in pool))]
        )
        run.answered("é" * 60_000)

    finish(report, spans, content="full", dialect=dialect)
    values = [v for s in spans.finished for v in s.attributes.values()]
    assert sum(len(str(v).encode()) for v in values) <= 300_000
    if dialect == "both":
        json.loads(spans.one("chat").attributes["gen_ai.input.messages"])
    assert len(json.loads(spans.one("retrieval").attributes["gen_ai.retrieval.documents"])) == 50
    assert "cut, 60000 characters" in spans.one("invoke_workflow").attributes["output.value"]


def test_a_long_prompt_has_the_room_that_documents_leave_and_short_messages_stay_whole(spans):
    prompt = "Context. " + "word " * 12_000 + "Question?"
    turns = [Message(role="user", content=f"Turn {i}.") for i in range(30)]

    def report(run):
        run.retrieved([{"id": "a", "text": "Short."}])
        for _ in range(4):
            run.generated(model="m", inputs=[*turns, Message(role="user", content=prompt)])

    finish(report, spans, content="full")
    calls = [json.loads(s.attributes["gen_ai.input.messages"]) for s in spans.named("chat")]
    texts = [[message["parts"][0]["content"] for message in call] for call in calls]
    assert texts[:3] == [[*(turn.content for turn in turns), prompt]] * 3
    assert texts[3][:-1] == texts[0][:-1]
    assert f"cut, {len(prompt)} characters" in texts[3][-1]
    assert len(texts[3][-1]) > 30_000
    assert sum(len(str(v)) for s in spans.finished for v in s.attributes.values()) <= 262_144


def test_the_sdks_own_length_limit_never_breaks_json(make_spans):
    spans = make_spans(span_limits=SpanLimits(max_attribute_length=600))
    written(spans, content="full")
    documents = json.loads(spans.one("retrieval").attributes["gen_ai.retrieval.documents"])
    assert 0 < len(documents) == spans.one("retrieval").attributes["ragtrace.retrieval.document.captured"] < 50
    json.loads(spans.one("rerank").attributes["ragtrace.rerank.documents"])
    json.loads(spans.one("chat").attributes["gen_ai.input.messages"])


def test_the_sdks_own_length_limit_leaves_whole_ids(make_spans):
    spans = make_spans(span_limits=SpanLimits(max_span_attribute_length=200))
    pool = [{"id": f"a-rather-long-id-{i}", "text": f"text {i}", "score": 0.5} for i in range(50)]
    finish(lambda run: run.retrieved(pool), spans)
    attributes = spans.one("invoke").attributes
    ids = json.loads(attributes["ragtrace.pool.ids"])
    assert ids == [p["id"] for p in pool[: len(ids)]]
    assert 5 < len(ids) < 50
    assert json.loads(attributes["ragtrace.pool.scores"])


def flattened(span, prefix):
    """The documents of one attribute for each field, by place."""
    rows = {}
    for name, value in span.attributes.items():
        if name.startswith(f"{prefix}."):
            place, field = name.removeprefix(f"{prefix}.").split(".document.")
            rows.setdefault(int(place), {})[field] = value
    return rows


def test_openinference_has_documents_by_field_up_to_the_sdks_limit(spans):
    written(spans, content="full", dialect="openinference")
    retrieval, rerank = spans.one("retrieval"), spans.one("rerank")
    rows = flattened(retrieval, "retrieval.documents")
    assert rows == {
        place: {"id": p["id"], "score": p["score"], "content": p["text"]} for place, p in enumerate(POOL[:34])
    }
    documents = json.loads(retrieval.attributes["gen_ai.retrieval.documents"])
    assert [("content" in d, "hash" in d) for d in documents] == [(False, True)] * 34 + [(True, False)] * 16
    assert flattened(rerank, "reranker.output_documents") == {
        place: {"id": p["id"], "score": p["score"], "content": p["text"]} for place, p in enumerate(CHOSEN)
    }
    given = flattened(rerank, "reranker.input_documents")
    assert given == {place: {"id": p["id"], "score": p["score"]} for place, p in enumerate(POOL[:40])}
    for span in (retrieval, rerank):
        assert len(span.attributes) <= 128
        assert span.dropped_attributes == 0


def test_openinference_without_content_has_ids_and_scores_by_field(spans):
    written(spans, dialect="openinference")
    rows = flattened(spans.one("retrieval"), "retrieval.documents")
    assert rows == {place: {"id": p["id"], "score": p["score"]} for place, p in enumerate(POOL)}
    assert flattened(spans.one("rerank"), "reranker.output_documents")[0] == {"id": "d7", "score": 0.9}


@pytest.mark.parametrize(("limit", "documents"), [(40, 5), (20, 0), (None, 50)])
def test_a_lower_limit_of_attributes_costs_documents_by_field_and_nothing_else(make_spans, limit, documents):
    limits = SpanLimits(max_span_attributes=SpanLimits.UNSET if limit is None else limit)
    spans = make_spans(span_limits=limits)
    written(spans, content="full", dialect="openinference")
    retrieval = spans.one("retrieval")
    assert len(flattened(retrieval, "retrieval.documents")) == documents
    assert retrieval.dropped_attributes == 0
    assert len(json.loads(retrieval.attributes["gen_ai.retrieval.documents"])) == 50
    assert json.loads(spans.one("rerank").attributes["ragtrace.rerank.documents"])


def test_the_sdks_length_limit_cuts_texts_by_field_and_leaves_metadata_json(make_spans):
    spans = make_spans(span_limits=SpanLimits(max_attribute_length=40))

    def report(run):
        run.retrieved([{"id": "a", "text": "x" * 60, "score": 0.5, "metadata": {"title": "y" * 60}}])

    finish(report, spans, content="full", dialect="openinference")
    retrieval = spans.one("retrieval")
    (row,) = flattened(retrieval, "retrieval.documents").values()
    assert (row["id"], row["score"]) == ("a", 0.5)
    assert row["content"] == "x" * 19 + "…[cut, 60 characters]"
    assert json.loads(row["metadata"]) == {"title": "yyyyyyy…[cut, 60 characters]"}
    assert {"retrieval.documents.0.document.content", "retrieval.documents.0.document.metadata"} <= {
        *retrieval.attributes["ragtrace.span.cut"]
    }
    assert retrieval.attributes["ragtrace.retrieval.document.truncated"] == 1


def test_a_text_by_field_is_not_sent_again_and_metadata_is_json(spans):
    def report(run):
        leaf = [{"id": "a", "text": "Text of a.", "score": 0.5, "metadata": {"page": 3}}]
        run.retrieved(leaf, source="one", key="1", parent_key="all")
        run.retrieved(leaf, source="fused", key="all", is_fused=True)

    finish(report, spans, content="full", dialect="openinference")
    one, fused = spans.one("retrieval one"), spans.one("retrieval fused")
    assert flattened(one, "retrieval.documents") == {
        0: {"id": "a", "score": 0.5, "content": "Text of a.", "metadata": '{"page":3}'}
    }
    assert flattened(fused, "retrieval.documents") == {0: {"id": "a", "score": 0.5}}
    assert json.dumps([dict(s.attributes) for s in spans.finished]).count("Text of a.") == 1


def chat_span(spans, *, dialect="both", **call):
    finish(lambda run: run.generated(**call), spans, content="full", dialect=dialect)
    return spans.one("chat")


def test_tokens_of_caches_and_of_reasoning(spans):
    usage = Usage(
        input_tokens=100, output_tokens=20, cache_read_tokens=60, cache_write_tokens=30, reasoning_tokens=12
    )
    attributes = chat_span(spans, model="m", usage=usage).attributes
    assert {name: value for name, value in attributes.items() if "usage" in name or "token_count" in name} == {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_write.input_tokens": 30,
        "gen_ai.usage.reasoning.output_tokens": 12,
        "llm.token_count.prompt": 100,
        "llm.token_count.completion": 20,
        "llm.token_count.prompt_details.cache_read": 60,
        "llm.token_count.prompt_details.cache_write": 30,
        "llm.token_count.completion_details.reasoning": 12,
    }


def test_a_call_always_has_a_provider_and_says_stream_only_if_it_streamed(spans):
    attributes = chat_span(spans, model="m").attributes
    assert attributes["gen_ai.provider.name"] == "unknown"
    assert not {"gen_ai.request.stream", "llm.provider"} & {*attributes}


@pytest.mark.parametrize(
    ("dialect", "reasons", "written_reasons"),
    [
        ("genai", (), [None, None]),
        ("genai", ("stop",), ["stop", None]),
        ("both", (), ["", ""]),
        ("both", ("stop",), ["stop", ""]),
    ],
)
def test_finish_reasons_of_outputs(spans, dialect, reasons, written_reasons):
    outputs = [Message(role="assistant", content="One."), Message(role="assistant", content="Two.")]
    span = chat_span(spans, dialect=dialect, outputs=outputs, finish_reasons=reasons)
    rows = json.loads(span.attributes["gen_ai.output.messages"])
    assert [row.get("finish_reason") for row in rows] == written_reasons


@pytest.mark.parametrize("dialect", ["genai", "openinference", "both"])
def test_tags_and_metadata_of_the_request_stand_on_the_root(spans, dialect):
    def report(run):
        run.add_tags(["vip", "beta"])
        run.add_metadata({"tenant": "acme", "seats": [7, 8], "card": "4111"})

    finish(report, spans, dialect=dialect, span_metadata=("tenant", "seats"))
    attributes = spans.one("invoke_workflow").attributes
    assert attributes["ragtrace.run.tags"] == ("vip", "beta")
    assert attributes["ragtrace.run.metadata.tenant"] == "acme"
    assert attributes["ragtrace.run.metadata.seats"] == (7, 8)
    is_openinference = dialect != "genai"
    assert attributes.get("tag.tags") == (("vip", "beta") if is_openinference else None)
    assert attributes.get("metadata") == ('{"tenant":"acme","seats":[7,8]}' if is_openinference else None)
    assert "4111" not in repr(dict(attributes))


def tool_span(spans, error=None, **options):
    def report(run):
        run.tool_called(
            "search_faq", arguments='{"q": "cancel"}', result="In settings.", call_id="call-1",
            description="Searches the FAQ.", started_ns=T0 + MS, ended_ns=T0 + 4 * MS, error=error,
        )  # fmt: skip

    finish(report, spans, **options)
    return spans.one("execute_tool")


def test_a_tool_call_is_a_span(spans):
    span = tool_span(spans, content="full")
    assert (span.name, span.kind) == ("execute_tool search_faq", SpanKind.INTERNAL)
    assert (span.start_time, span.end_time) == (T0 + MS, T0 + 4 * MS)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search_faq",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.description": "Searches the FAQ.",
        "gen_ai.tool.call.arguments": '{"q": "cancel"}',
        "gen_ai.tool.call.result": "In settings.",
        "openinference.span.kind": "TOOL",
        "tool.name": "search_faq",
        "tool.description": "Searches the FAQ.",
        "input.value": '{"q": "cancel"}',
        "output.value": "In settings.",
    }


def test_a_failed_tool_call_has_its_error_type_and_without_content_no_text(spans):
    span = tool_span(spans, error=TimeoutError("late"), content="none")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "TimeoutError"
    assert span.attributes["gen_ai.tool.call.id"] == "call-1"
    texts = {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "input.value", "output.value"}
    assert not texts & {*span.attributes}


class Hostile:
    def __str__(self):
        raise RuntimeError("no")


def test_hostile_values_arrive_clean(spans):
    def report(run):
        run.retrieved(
            [{"id": "a\ud800", "text": "lone \udfff and \x00", "metadata": {"n": 1 << 80, "o": Hostile()}}],
            source="s\ud800",
        )
        run.generated(model=Hostile(), provider="p\ud800", finish_reasons=[Hostile(), "stop"], response_id=1 << 90)
        run.answered("half \ud83d")

    finish(report, spans, content="full")
    for span in spans.finished:
        for value in span.attributes.values():
            str(value).encode("utf-8")
    (document,) = json.loads(spans.one("retrieval").attributes["gen_ai.retrieval.documents"])
    assert document["id"] == "a\ufffd"
    assert document["content"] == "lone \ufffd and \x00"
    assert spans.one("chat").attributes["gen_ai.response.id"] == str(1 << 90)


def test_errors_have_type_and_status_and_a_message_in_content_mode_alone(make_spans):
    for content, message in (("none", None), ("full", "secret text")):
        spans = make_spans()

        def report(run):
            run.retrieved(None, error=ConnectionError("secret text"))
            run.failed(ConnectionError("secret text"))

        finish(report, spans, content=content)
        for span in spans.finished:
            assert span.status.status_code is StatusCode.ERROR
            assert span.status.description == message
            assert span.attributes["error.type"] == "ConnectionError"
            (event,) = span.events
            assert (event.name, event.timestamp) == ("exception", span.end_time)
            told = {"exception.type": "ConnectionError", "exception.message": message}
            assert dict(event.attributes) == {name: value for name, value in told.items() if value}


@pytest.mark.parametrize("outcome", ["partial", "cancelled", "interrupted"])
def test_a_run_cut_short_is_no_error(spans, outcome):
    def report(run):
        run.failed(KeyError("x"))
        run.finish(outcome, ended_ns=T0 + MS)

    finish(report, spans)
    root = spans.one("invoke_workflow")
    assert root.status.status_code is StatusCode.UNSET
    assert root.attributes["ragtrace.run.outcome"] == outcome
    assert "error.type" not in root.attributes


def test_what_capture_cut_is_said(spans):
    finish(lambda run: run.answered("x" * 300_000), spans, content="full")
    assert json.loads(spans.one("invoke_workflow").attributes["ragtrace.run.lossy"]) == {"answer_chars": 300_000}


def test_selection_known_from_the_prompt(spans):
    def report(run):
        run.retrieved([{"id": "a", "text": "The first text."}, {"id": "b", "text": "The second text."}])
        run.add_prompt("Context: The second text.")

    finish(report, spans)
    root = spans.one("invoke_workflow").attributes
    assert root["ragtrace.selected.ids"] == listed(("b",))
    assert root["ragtrace.selected.ranks"] == listed((2,))
    assert root["ragtrace.selection.source"] == "prompt"


@pytest.mark.parametrize("dialect", ["genai", "both", "openinference"])
def test_every_child_names_the_conversation(spans, dialect):
    written(spans, dialect=dialect)
    names = {"openinference": ("session.id",)}.get(dialect, ("gen_ai.conversation.id",))
    children = [span for span in spans.finished if span.parent]
    assert len(children) == 3
    for span in children:
        assert {name: span.attributes.get(name) for name in names} == dict.fromkeys(names, "s-1")


def test_the_root_s_messages_are_of_the_genai_dialects_and_of_content(make_spans):
    for dialect, content, has in (
        ("both", "none", False),
        ("openinference", "full", False),
        ("genai", "full", True),
    ):
        spans = make_spans()
        written(spans, content=content, dialect=dialect)
        root = spans.one("invoke_workflow").attributes
        assert ("gen_ai.input.messages" in root, "gen_ai.output.messages" in root) == (has, has)


def test_a_cancelled_step_has_no_exception(spans):
    finish(lambda run: run.generated(model="m", error=GeneratorExit()), spans)
    assert not spans.one("chat").events


def test_a_root_ends_once(spans, caplog):
    writer = SpanWriter(spans.tracer)
    root = writer.open_root("w", T0)
    root.end(T0 + 1)
    root.end(T0 + 2)
    assert [s.end_time for s in spans.finished] == [T0 + 1]
    assert not caplog.records


def test_a_workflow_named_later_renames_the_root(spans):
    finish(lambda run: run.set_attributes(workflow="sales"), spans)
    assert spans.one("invoke_workflow").name == "invoke_workflow sales"
    assert spans.one("invoke_workflow").attributes["gen_ai.workflow.name"] == "sales"


REQUEST = {
    "temperature": 0.2, "top_p": 0.9, "top_k": 40, "max_tokens": 64, "seed": 7, "frequency_penalty": 0.1,
    "presence_penalty": 0.3, "stop": ["END"], "n": 2, "stream": True,
}  # fmt: skip


def test_parameters_and_server_of_a_call(spans):
    found = chat_span(spans, model="m", request=REQUEST, server_address="llm.example.com", server_port=443)
    told = {name: value for name, value in found.attributes.items() if ".request." in name or "server" in name}
    assert told == {
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.2,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.top_k": 40,
        "gen_ai.request.max_tokens": 64,
        "gen_ai.request.seed": 7,
        "gen_ai.request.frequency_penalty": 0.1,
        "gen_ai.request.presence_penalty": 0.3,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.choice.count": 2,
        "gen_ai.request.stream": True,
        "server.address": "llm.example.com",
        "server.port": 443,
    }


def test_openinference_has_parameters_as_json_and_one_choice_is_not_said(make_spans):
    found = chat_span(make_spans(), dialect="openinference", model="m", request=REQUEST).attributes
    assert json.loads(found["llm.invocation_parameters"])["max_tokens"] == 64
    assert not any(".request." in name for name in found)
    assert "gen_ai.request.choice.count" not in chat_span(make_spans(), request={"n": 1}).attributes


def agents(run):
    run.generated(model="m", key="c1", parent_key="a2", started_ns=T0 + 3 * MS, ended_ns=T0 + 4 * MS)
    run.tool_called("search", key="t1", parent_key="a2", started_ns=T0 + 4 * MS, ended_ns=T0 + 6 * MS)
    run.retrieved([], source="faq", parent_key="t1", started_ns=T0 + 4 * MS, ended_ns=T0 + 5 * MS)
    run.agent_called(
        "researcher", description="Searches.", key="a2", parent_key="a1", started_ns=T0 + 2 * MS,
        ended_ns=T0 + 7 * MS, error=TimeoutError("late"),
    )  # fmt: skip
    run.agent_called("", key="a1", started_ns=T0 + MS, ended_ns=T0 + 8 * MS)
    run.answered("In settings.")


def test_an_agent_is_the_parent_of_its_calls(spans):
    root, captured = finish(agents, spans, content="full")
    names = {span.context.span_id: span.name for span in spans.finished}
    assert {span.name: names.get(span.parent and span.parent.span_id) for span in spans.finished} == {
        "invoke_workflow w": None,
        "invoke_agent": "invoke_workflow w",
        "invoke_agent researcher": "invoke_agent",
        "chat m": "invoke_agent researcher",
        "execute_tool search": "invoke_agent researcher",
        "retrieval faq": "execute_tool search",
    }
    span = spans.one("invoke_agent researcher")
    assert (span.kind, span.start_time, span.end_time) == (SpanKind.INTERNAL, T0 + 2 * MS, T0 + 7 * MS)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "researcher",
        "gen_ai.agent.description": "Searches.",
        "openinference.span.kind": "AGENT",
        "agent.name": "researcher",
        "error.type": "TimeoutError",
    }
    nameless = next(span for span in spans.finished if span.name == "invoke_agent")
    assert "gen_ai.agent.name" not in nameless.attributes
    assert captured.record.answer == "In settings."
    assert len(root.linked) == 3


def test_an_agent_is_no_search_no_call_and_no_time_of_ours(spans):
    finish(lambda run: run.agent_called("a", started_ns=T0, ended_ns=T0 + MS), spans, dialect="openinference")
    assert dict(spans.one("invoke_agent").attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "a",
        "openinference.span.kind": "AGENT",
        "agent.name": "a",
    }
