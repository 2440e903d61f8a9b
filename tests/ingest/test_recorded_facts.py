"""What `read_trace` finds in recordings of Traceloop, MLflow, Langfuse, and of OpenAI's client alone."""

from __future__ import annotations

import asyncio

import pytest

from ragtrace.capture import Generation
from ragtrace.ingest import read_trace
from ragtrace.judges import OverlapEmbedder, OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from tests.ingest.record.application import shop
from tests.ingest.record.recordings import RECORDINGS
from tests.ingest.recorded import FIXTURES, NAMES, runs_of
from tests.ingest.spans import span

RETURNS = shop.QUESTIONS[0]
IDS = tuple(name for name, _ in RETURNS.results)
SCORES = tuple(score for _, score in RETURNS.results)
# Lowest and newest versions, what the first question's run lacks, and the workflow's name.
SEARCHED = {
    "traceloop-langchain-0.62.4": (["document_id"], "help-centre"),
    "traceloop-llamaindex-0.40.0": ([], "help-centre"),
    "traceloop-llamaindex-0.62.4": ([], "help-centre"),
    "mlflow-langchain-3.0.0": ([], "help-centre"),
    "mlflow-langchain-3.17.2": ([], "help-centre"),
    "mlflow-llama-index-3.17.2": ([], "help-centre"),
    "langfuse-langchain-3.0.0": ([], "help-centre"),
    "langfuse-langchain-5.0.4": ([], "help-centre"),
}
WITHOUT_CONTENT = (
    "openinference-langchain-0.1.80-none",
    "genai-langchain-1.3b0-none",
    "traceloop-langchain-0.62.4-none",
)
OPENAI = [name for name in NAMES if "openai" in name]
LOGGED = "genai-openai-v2-2.0b0"  # its content goes to log events


def call_of(run):
    (step,) = (step for step in run.finished.steps if isinstance(step, Generation))
    return step


def results_of(record):
    case = EvalContext(record, judge=OverlapJudge(), embedder=OverlapEmbedder())
    metrics = select(
        ["faithfulness", "invented_specifics", "answer_similarity", "no_answer", "context_sufficiency"]
    )
    return {result.name: result for result in asyncio.run(evaluate(metrics, case))}


@pytest.mark.parametrize("name", SEARCHED)
def test_a_searched_run_has_its_question_documents_prompt_answer_model_and_tokens(name):
    lacks, workflow = SEARCHED[name]
    run = runs_of(name)[0]
    record, call = run.record, call_of(run)
    assert (record.query, record.answer, record.workflow) == (RETURNS.text, RETURNS.answer, workflow)
    assert [*run.lacks] == lacks
    assert tuple(p.text for p in record.contexts) == tuple(shop.ARTICLES[i].text for i in IDS)
    assert tuple(p.score for p in record.contexts) == SCORES
    assert "document_id" in lacks or tuple(p.id for p in record.contexts) == IDS
    assert record.contexts[0].metadata["section"] == "orders"
    assert [message.role for message in call.inputs] == ["system", "user"]
    assert call.inputs[0].content == shop.SYSTEM
    assert all(shop.ARTICLES[i].text in call.inputs[1].content for i in IDS)
    assert record.pool("used") == record.contexts, "every passage stood in the prompt"
    assert call.model == shop.MODEL
    assert record.usage is not None
    assert (record.usage.input_tokens, record.usage.output_tokens) == (144, 23)


@pytest.mark.parametrize("name", SEARCHED)
def test_an_empty_search_is_one_that_found_nothing(name):
    run = runs_of(name)[2]
    assert (run.record.query, [p.stage for p in run.record.pools][:1]) == (shop.QUESTIONS[2].text, ["retrieved"])
    assert run.record.contexts == ()
    assert "documents" not in run.lacks


def test_traceloop_before_retrievers_knows_the_question_and_the_answer():
    run = runs_of("traceloop-langchain-0.40.0")[0]
    assert (run.record.query, run.record.answer, run.record.contexts) == (RETURNS.text, RETURNS.answer, ())
    assert [*run.lacks] == ["retrieval"]
    assert RETURNS.text in call_of(run).inputs[-1].content


@pytest.mark.parametrize("name", WITHOUT_CONTENT)
def test_without_content_these_instrumentations_send_no_documents_either(name):
    run = runs_of(name)[0]
    assert {*run.lacks} == {"question", "answer", "documents", "prompt"}
    assert run.record.contexts == ()
    assert call_of(run).model.startswith(shop.MODEL)
    assert {result.reason for result in results_of(run.record).values()} == {
        "missing_input:answer",
        "missing_input:query",
    }


@pytest.mark.parametrize("name", [name for name in OPENAI if name != LOGGED])
def test_a_client_alone_gives_metrics_over_the_answer_and_none_over_contexts(name):
    runs = runs_of(name)
    assert [run.record.answer for run in runs] == [question.answer for question in shop.QUESTIONS]
    for run, question in zip(runs, shop.QUESTIONS, strict=True):
        assert [*run.lacks] == ["retrieval"]
        assert run.record.query.endswith(question.text), "the question is the prompt's last message"
        assert all(shop.ARTICLES[i].text in call_of(run).inputs[-1].content for i, _ in question.results)
        found = results_of(run.record)
        assert found["answered"].value == 1.0
        assert found["answer_similarity"].state == "ok"
        assert {found[key].reason for key in ("faithfulness", "invented_specifics", "context_sufficiency")} == {
            "no_contexts"
        }


def test_content_in_log_events_gives_no_run():
    assert runs_of(LOGGED) == []


def test_each_recording_has_its_file_and_each_file_its_recording():
    expected = {f"{one.dialect}/{one.name}.jsonl" for one in RECORDINGS}
    assert {str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*.jsonl")} == expected
    assert all(path.stat().st_size < 150_000 for path in FIXTURES.glob("*/*.jsonl"))


NODE = '{"node": {"id_": "%s", "text": "%s", "metadata": {}}, "score": %s}'
RERANKED = {  # attribute names of input and output, further attributes, and the values of both spans
    "traceloop": (
        "traceloop.entity.input",
        "traceloop.entity.output",
        [{"traceloop.span.kind": "task"}] * 2,
        [NODE % ("a", "Oslo.", 0.2), NODE % ("b", "Rome.", 0.1)],
    ),
    "mlflow": (
        "mlflow.spanInputs",
        "mlflow.spanOutputs",
        [{"mlflow.spanType": '"RETRIEVER"'}, {"mlflow.spanType": '"RERANKER"'}],
        ['{"id": "a", "page_content": "Oslo."}', '{"id": "b", "page_content": "Rome."}'],
    ),
}


@pytest.mark.parametrize("name", RERANKED)
def test_a_reranker_takes_nodes_and_returns_some_of_them(name):
    asked, output, kinds, documents = RERANKED[name]
    both, query = ", ".join(documents), '"query_bundle": {"query_str": "Where?"}'
    search = kinds[0] | {asked: f"{{{query}}}", output: f"[{both}]"}
    rerank = kinds[1] | {asked: f'{{"nodes": [{both}], {query}}}', output: f"[{documents[1]}]"}
    (run,) = read_trace(
        [
            span(1, {}, at=(1, 9)),
            span(2, search, under=1, at=(2, 3)),
            span(3, rerank, under=1, at=(4, 5)),
        ]
    )
    assert run.record.query == "Where?"
    assert [(pool.stage, pool.ids) for pool in run.record.pools] == [
        ("retrieved", ("a", "b")),
        ("reranked", ("b",)),
    ]


@pytest.mark.parametrize(
    ("root", "call"),
    [
        (
            {
                "traceloop.span.kind": "workflow",
                "traceloop.entity.input": '{"args": ["Where?"], "kwargs": {}}',
                "traceloop.entity.output": '"In Oslo."',
            },
            {
                "gen_ai.request.model": "m",
                "gen_ai.prompt.0.content": "p",
                "gen_ai.completion.0.content": "In Oslo.",
            },
        ),
        (
            {
                "mlflow.spanType": '"UNKNOWN"',
                "mlflow.spanInputs": '{"question": "Where?"}',
                "mlflow.spanOutputs": '"In Oslo."',
            },
            {"mlflow.spanType": '"LLM"', "mlflow.spanInputs": '"p"', "mlflow.spanOutputs": '"In Oslo."'},
        ),
        (
            {
                "langfuse.observation.type": "span",
                "langfuse.observation.input": '{"args": [], "kwargs": {"question": "Where?"}}',
                "langfuse.observation.output": "In Oslo.",
            },
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.input": "p",
                "langfuse.observation.output": "In Oslo.",
            },
        ),
    ],
)
def test_a_decorated_function_is_a_root(root, call):
    (run,) = read_trace([span(1, root, at=(1, 9)), span(2, call, under=1, at=(2, 3))])
    assert (run.record.query, run.record.answer) == ("Where?", "In Oslo.")
    assert call_of(run).inputs[0].content == "p"
