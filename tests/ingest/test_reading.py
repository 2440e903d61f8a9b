"""Which parts of a trace are runs, and how their steps are told once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragtrace.ingest import probability_in, read_trace
from tests.ingest.spans import span

OSLO, BERGEN, ROME = "The lab is in Oslo, near the harbour.", "The archive is in Bergen.", "The office is in Rome."
ASKED, SAID = "Where is the lab?", "The lab is in Oslo."


def kind(name: str, **given: Any) -> dict[str, Any]:
    """Return attributes of OpenInference; `_` stands for a dot."""
    return {"openinference.span.kind": name, **{key.replace("__", "."): value for key, value in given.items()}}


def found(*texts: str, kind_name: str = "RETRIEVER", prefix: str = "retrieval.documents") -> dict[str, Any]:
    documents = {f"{prefix}.{n}.document.content": text for n, text in enumerate(texts)}
    ids = {f"{prefix}.{n}.document.id": text.split()[1] for n, text in enumerate(texts)}
    return kind(kind_name, input__value=ASKED) | documents | ids


def chat(prompt: str, reply: str | None = SAID, **given: Any) -> dict[str, Any]:
    told = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": prompt}
    if reply is not None:
        told |= {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": reply}
    return kind("LLM", **given) | told


PROMPT = f"Context:\n{OSLO}\n\nQuestion: {ASKED}"
CHAIN = kind("CHAIN", input__value=ASKED, output__value=SAID)


def chain(*, under: int = 0, first: int = 1, at: float = 1.0) -> list[Any]:
    return [
        span(first, CHAIN, under=under, at=(at, at + 5)),
        span(first + 1, found(OSLO, BERGEN), under=first, at=(at + 1, at + 2)),
        span(first + 2, chat(PROMPT), under=first, at=(at + 3, at + 4)),
    ]


def test_one_chain_is_one_run_with_the_times_of_its_spans():
    (run,) = read_trace(chain())
    record = run.record
    assert (record.query, record.answer, record.started, record.ended) == (ASKED, SAID, 1.0, 6.0)
    assert [(pool.stage, pool.ids) for pool in record.pools] == [
        ("retrieved", ("lab", "archive")),
        ("used", ("lab",)),
    ]
    assert (record.trace_id, record.span_id) == (bytes(range(16)).hex(), f"{1:016x}")
    assert [(step.started_ns, step.ended_ns) for step in run.finished.steps] == [(2e9, 3e9), (4e9, 5e9)]
    assert record.head_probability == 1.0


def test_two_chains_below_a_request_are_two_runs():
    request = span(90, {"http.request.method": "POST"}, at=(0, 20))
    runs = read_trace([request, *chain(under=90), *chain(under=90, first=11, at=8.0)])
    assert [run.record.span_id for run in runs] == [f"{1:016x}", f"{11:016x}"]


def test_steps_beside_each_other_are_one_run_of_the_request():
    request = span(90, {"http.request.method": "POST"}, at=(0, 20))
    search, call = span(1, found(OSLO), under=90), span(2, chat(PROMPT), under=90, at=(3, 4))
    (run,) = read_trace([call, search, request])
    assert (run.record.query, run.record.answer, run.record.span_id) == (ASKED, SAID, f"{90:016x}")
    # Also where the model stands in a chain of its own, as in `retriever.invoke(...)` and `chain.invoke(...)`.
    told = [search, span(3, kind("CHAIN", output__value=SAID), under=90, at=(3, 5)), request]
    (run,) = read_trace([*told, span(4, chat(PROMPT), under=3, at=(3, 4))])
    assert run.record.contexts[0].text == OSLO
    assert run.record.query == ASKED


@pytest.mark.parametrize(
    "evaluation",
    [
        kind("EVALUATOR", input__value=ASKED),
        {"gen_ai.evaluation.name": "faithfulness", "gen_ai.operation.name": "chat"},
        {"gen_ai.operation.name": "evaluation"},
    ],
)
def test_an_evaluation_and_what_is_below_it_is_no_run(evaluation):
    judged = [span(50, evaluation, at=(7, 9)), span(51, chat("Is it faithful?", "yes"), under=50, at=(7, 8))]
    assert read_trace(judged) == []
    below = [span(50, evaluation, under=1, at=(7, 9)), judged[1]]
    (run,) = read_trace([*chain(), *below])
    assert len(run.finished.steps) == 2


def test_what_asks_and_searches_nothing_is_no_run():
    assert read_trace([span(1, {"http.route": "/"})]) == []
    assert read_trace([span(1, kind("EMBEDDING", input__value=ASKED))]) == []
    assert read_trace([span(1, kind("CHAIN", input__value=ASKED))]) == []
    assert read_trace([span(1, chat(ASKED, None))]) == []


def test_a_second_retriever_span_without_documents_doubles_nothing():
    inner = span(4, kind("RETRIEVER", input__value=ASKED), under=2, at=(2.1, 2.9))
    (run,) = read_trace([*chain(), inner])
    assert len(run.finished.steps) == 2
    # The inner one with the same documents: the outer one's order is the pool.
    inner = span(4, found(OSLO, BERGEN), under=2, at=(2.1, 2.9))
    (run,) = read_trace([*chain(), inner])
    assert run.record.pool("retrieved") == read_trace(chain())[0].record.pool("retrieved")


def test_a_composite_that_keeps_a_part_is_a_selection_and_one_that_fuses_is_the_pool():
    whole = chain()[0]
    outer = span(2, found(BERGEN), under=1, at=(2, 5))
    leaves = [span(3, found(OSLO), under=2, at=(2, 3)), span(4, found(BERGEN), under=2, at=(3, 4))]
    (run,) = read_trace([whole, outer, *leaves])
    assert run.record.pool("retrieved")[0].text == OSLO
    assert [p.text for p in run.record.pool("reranked")] == [BERGEN]
    (run,) = read_trace([whole, span(2, found(BERGEN, OSLO), under=1, at=(2, 5)), *leaves])
    assert [pool.ids for pool in run.record.pools] == [("archive", "lab")]


def test_a_rerank_is_the_selection_with_its_own_scores():
    chosen = found(BERGEN, OSLO, kind_name="RERANKER", prefix="reranker.output_documents")
    chosen |= {"reranker.output_documents.0.document.score": 0.9, "reranker.model_name": "cross"}
    (run,) = read_trace([*chain(), span(5, chosen, under=1, at=(3, 3.5))])
    assert run.record.pool("reranked")[0].score == 0.9
    assert run.record.pool("retrieved")[0].text == OSLO


def test_a_model_call_inside_a_model_call_is_told_once():
    inner = span(5, chat(PROMPT, llm__token_count__prompt=7, llm__token_count__completion=2), under=3, at=(4, 4.5))
    (run,) = read_trace([*chain(), inner])
    assert len(run.finished.steps) == 2
    assert run.record.usage.input_tokens == 7
    again = span(6, {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}, under=5, at=(4, 4.5))
    (run,) = read_trace([*chain(), inner, again])
    assert run.record.usage.input_tokens == 7


def test_the_prompt_of_a_query_rewriter_inside_a_retriever_shows_no_passages():
    rewriter = span(5, chat(f"Rewrite: {BERGEN}", "lab address"), under=2, at=(2, 2.5))
    (run,) = read_trace([*chain(), rewriter])
    assert run.record.pool("used")[0].text == OSLO
    assert len(run.record.pool("used")) == 1


def test_a_span_that_came_twice_counts_once():
    assert len(read_trace([*chain(), *chain()])[0].finished.steps) == 2


def test_an_error_is_the_outcome_of_its_root():
    (run,) = read_trace([span(1, CHAIN, is_error=True), *chain()[1:]])
    assert run.record.outcome == "error"
    (run,) = read_trace([chain()[0], span(2, found(), under=1, is_error=True), chain()[2]])
    assert (run.record.outcome, run.record.contexts) == ("answered", ())


def test_documents_that_cannot_be_read_are_counted():
    given = kind("RETRIEVER", input__value=ASKED) | {"retrieval.documents": '[{"id": "a"}, 7, {"score": 1}]'}
    (run,) = read_trace([span(1, given)])
    assert run.record.lossy["documents_malformed"] == 2
    assert run.record.contexts[0].id == "a"
    (run,) = read_trace([span(1, given | {"retrieval.documents": "[{"})])
    assert run.record.lossy["documents_malformed"] == 1


def test_the_signs_of_a_run_of_ours_are_read_by_their_names():
    told = {
        "gen_ai.operation.name": "invoke_workflow",
        "input.value": ASKED,
        "ragtrace.run.signs": ["tool_unused", "a_newer_one", "answer_guessed", "tool_unused", 3],
    }
    (run,) = read_trace([span(1, told, scope="ragtrace")])
    assert {(sign.name, sign.text, sign.declare) for sign in run.record.signs} == {
        ("answer_guessed", "", ""), ("tool_unused", "", ""),
    }  # fmt: skip
    assert len(run.record.signs) == 2


def test_a_run_of_ours_without_signs_has_none():
    told = {"gen_ai.operation.name": "invoke_workflow", "input.value": ASKED}
    (run,) = read_trace([span(1, told, scope="ragtrace")])
    assert run.record.signs == ()


def test_redaction_reaches_every_text():
    (run,) = read_trace(chain(), redact=lambda text: text.replace("Oslo", "[city]"))
    assert "Oslo" not in repr(run)


def test_metadata_session_user_and_environment_are_those_of_the_spans():
    told = CHAIN | {"session.id": "s", "user.id": "u", "tag.tags": ["vip"], "metadata": '{"tenant": "a", "x": 1}'}
    resource = {"service.name": "shop", "deployment.environment.name": "prod"}
    spans = [span(1, told, resource=resource, trace_state="ot=th:c", name="RunnableSequence"), *chain()[1:]]
    (run,) = read_trace(spans, span_metadata=["tenant"], environment="other", revision=2)
    record = run.record
    assert (record.session, record.user, record.tags, record.metadata) == ("s", "u", ("vip",), {"tenant": "a"})
    assert (record.workflow, record.environment, record.revision) == ("shop", "prod", 2)
    assert record.head_probability == 0.25


@pytest.mark.parametrize(
    "root",
    [
        CHAIN,
        {"traceloop.span.kind": "workflow"},
        {"mlflow.spanType": "CHAIN"},
        {"langfuse.observation.type": "chain"},
    ],
)
@pytest.mark.parametrize(
    ("name", "workflow"),
    [
        ("support", "support"),
        ("RunnableSequence", "shop"),
        ("RunnableParallel<context,question>", "shop"),
        ("RetrieverQueryEngine.query", "shop"),
    ],
)
def test_the_workflow_is_the_name_of_the_root_and_a_framework_s_class_is_none(root, name, workflow):
    inner = [span(9, CHAIN, under=1, name="format_docs"), *chain()[1:]]
    (run,) = read_trace([span(1, root, name=name, resource={"service.name": "shop"}), *inner])
    assert run.record.workflow == workflow


@pytest.mark.parametrize(
    ("given", "workflow"),
    [
        ({"gen_ai.workflow.name": "support"}, "support"),
        ({"gen_ai.agent.name": "support"}, "support"),
        ({"gen_ai.workflow.name": "LangGraph"}, "shop"),
        ({}, "shop"),
    ],
)
def test_the_workflow_of_a_genai_run_is_its_workflow_or_agent(given, workflow):
    root = {"gen_ai.operation.name": "invoke_agent", **given}
    (run,) = read_trace([span(1, root, name="invoke_agent", resource={"service.name": "shop"}), *chain()[1:]])
    assert run.record.workflow == workflow


@pytest.mark.parametrize(
    ("state", "probability"),
    [
        ("", None),
        ("ot=th:0", 1.0),
        ("a=1, ot=rv:12;th:8", 0.5),
        ("ot=th:fffffffffffffff", None),
        ("ot=th:xyz", None),
    ],
)
def test_the_head_probability_stands_in_the_trace_state(state, probability):
    assert probability_in(state) == probability


def test_an_unknown_head_probability_stays_unknown():
    assert read_trace(chain(), head_probability=None)[0].record.head_probability is None
    assert read_trace(chain(), head_probability=0.0)[0].record.head_probability is None


def test_other_instrumentations_of_a_run_of_ours_tell_nothing_new():
    ours = span(70, {"gen_ai.operation.name": "invoke_workflow", "input.value": ASKED}, scope="ragtrace", under=1)
    (run,) = read_trace([*chain(), ours])
    assert (run.dialects, run.record.span_id) == (("ragtrace",), f"{70:016x}")


@pytest.mark.parametrize(
    "told",
    [
        {
            "attributes": {
                "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}]
            }
        },
        {"attributes": {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": ASKED}},
        {
            "events": [
                ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "user", "content": ASKED}])})
            ]
        },
        {"events": [("gen_ai.user.message", {"content": ASKED})]},
        {
            "events": [
                (
                    "gen_ai.client.inference.operation.details",
                    {"gen_ai.input.messages": json.dumps([{"role": "user", "content": ASKED}])},
                )
            ]
        },
    ],
)
@pytest.mark.parametrize(
    "said",
    [
        {"attributes": {"gen_ai.output.messages": json.dumps([{"role": "assistant", "content": SAID}])}},
        {"attributes": {"gen_ai.completion.0.content": SAID}},
        {"events": [("gen_ai.content.completion", {"gen_ai.completion": SAID})]},
        {"events": [("gen_ai.choice", {"message": json.dumps({"role": "assistant", "content": SAID})})]},
    ],
)
def test_genai_messages_are_read_under_their_new_and_old_names(told, said):
    given = {"gen_ai.request.model": "m", "gen_ai.usage.prompt_tokens": 3}
    attributes = given | told.get("attributes", {}) | said.get("attributes", {})
    (run,) = read_trace([span(1, attributes, events=[*told.get("events", ()), *said.get("events", ())])])
    assert (run.record.query, run.record.answer, run.record.usage.input_tokens) == (ASKED, SAID, 3)
