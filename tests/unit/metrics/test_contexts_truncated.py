"""What capture, a queue, a span or a judge cut for size is no evidence against the application."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.capture import Limits, Recorder
from ragtrace.judges import LLMJudge, OverlapEmbedder, OverlapJudge, ScriptedChat
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import Labels, Message, Passage, Pool, RagRecord
from ragtrace.queues import Unit, from_bytes, to_bytes
from ragtrace.text import MAX_RECORD_CHARS
from tests import make
from tests.guards.judge_server import JudgeServer, refusal
from tests.ingest.spans import span
from tests.kept import Keeper
from tests.unit.judges.openai.asking import ONCE, chat_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.judges import Judge
    from ragtrace.model import MetricResult

CUT = "contexts_truncated"
FACT = "The refund takes nine days, and the fee is 40 euros."
ANSWER = "The refund takes nine days, and the fee is 40 euros."
FILLER = "Another page of the handbook tells of the weather in the harbour. "
OF_CONTEXTS = (
    "faithfulness",
    "invented_specifics",
    "context_sufficiency",
    "contradictions",
    "nuggets",
    "citations",
)


def results(record: RagRecord, *names: str, judge: Judge | None = None, **parts: Any) -> dict[str, MetricResult]:
    ctx = EvalContext(record, judge=judge or OverlapJudge(), **parts)
    return {found.name: found for found in asyncio.run(evaluate(select(list(names)), ctx))}


def reasons(record: RagRecord, *names: str, judge: Judge | None = None) -> dict[str, str | None]:
    return {name: found.reason for name, found in results(record, *names, judge=judge).items()}


def captured(report: Callable[[Any], None], limits: Limits | None = None) -> RagRecord:
    keeper = Keeper()
    with Recorder(keeper, limits=limits).start(query="How long does the refund take?") as run:
        report(run)
        run.answered(ANSWER)
    return keeper.only.record


def long(n_chars: int, end: str = FACT) -> str:
    return (FILLER * (n_chars // len(FILLER) + 1))[:n_chars] + " " + end


SMALL = Limits(passage_chars=400, record_chars=1_000)


def a_long_passage(run: Any) -> None:
    run.retrieved([{"id": "a", "text": long(500)}])


def many_passages(run: Any) -> None:
    run.retrieved([{"id": f"{n}", "text": long(300, f"Page {n}.")} for n in range(5)] + [{"id": "z", "text": FACT}])


def a_long_used_text(run: Any) -> None:
    run.used(long(2_000))


def a_long_prompt(run: Any) -> None:
    """The formatter puts much else before the passages, and the prompt is kept up to its limit only."""
    run.retrieved([{"id": "a", "text": FACT}, {"id": "b", "text": "The shop opens at nine."}])
    run.add_prompt("The shop opens at nine. " + long(2_000))


def a_selection(run: Any) -> None:
    run.retrieved([{"id": "a", "text": long(500)}, {"id": "b", "text": "Tea."}])
    run.reranked([{"id": "a", "text": long(500)}])


def a_joined_text(run: Any) -> None:
    run.add_text(long(900), kind="context_text")
    run.add_prompt("Context: " + long(900))


def too_many_passages(run: Any) -> None:
    run.retrieved([*({"id": f"{n}", "text": f"Page {n}."} for n in range(10_000)), {"id": "z", "text": FACT}])


def ids_beyond_the_room(run: Any) -> None:
    run.retrieved([{"id": "x" * 200 + str(n), "text": f"Page {n}."} for n in range(9_000)])


KINDS = [a_long_passage, many_passages, a_long_used_text, a_long_prompt, a_selection, a_joined_text]
LARGE_KINDS = [too_many_passages, ids_beyond_the_room]


@pytest.mark.parametrize(
    ("report", "limits"), [*((kind, SMALL) for kind in KINDS), *((kind, Limits()) for kind in LARGE_KINDS)]
)
def test_what_capture_cut_is_no_evidence(report: Callable[[Any], None], limits: Limits) -> None:
    record = captured(report, limits)
    found = reasons(record, "faithfulness", "invented_specifics", "answer_similarity", "diagnosis")
    assert found["faithfulness"] == found["invented_specifics"] == found["diagnosis"] == CUT
    assert record.lossy[CUT] >= 1


def test_the_reason_stands_for_every_metric_that_reads_the_texts_and_for_no_other() -> None:
    record = captured(a_long_passage, SMALL)
    reply = {"attempted": True, "noncommittal": False, "claims": [], "verdicts": [], "questions": []}
    found = results(record, *OF_CONTEXTS, "answer_relevancy", judge=LLMJudge(ScriptedChat(always=reply)))
    names = [name for name in found if name != "answer_relevancy"]
    assert {found[name].reason for name in names} == {CUT}
    assert all(found[name].is_missing for name in names)
    assert found["answer_relevancy"].reason != CUT
    assert sum(one.llm_calls for name, one in found.items() if name in names) == 0


def test_it_stands_whatever_the_found_part_says() -> None:
    keeper = Keeper()
    with Recorder(keeper, limits=SMALL).start(query="How long?") as run:
        run.retrieved([{"id": "a", "text": FACT + " " + long(500)}])
        run.answered(ANSWER)
    found = results(keeper.only.record, "faithfulness", "diagnosis")
    assert found["faithfulness"].reason == CUT
    verdict = found["diagnosis"]
    assert (verdict.details["verdict"], verdict.details["because"]) == ("undetermined", CUT)


def test_metrics_over_ids_stay() -> None:
    record = captured(lambda run: (a_long_passage(run), run.labels({"a": 5})), SMALL)
    found = results(record, "mrr", "p_at_k", "faithfulness")
    assert (found["mrr"].value, found["faithfulness"].reason) == (1.0, CUT)


def test_grades_of_a_cut_pool_are_none() -> None:
    """The judge would grade what is left of a candidate, and that is no fault of the retriever."""
    reply = {"grades": [{"id": 1, "grade": 1}, {"id": 2, "grade": 5}]}
    record = captured(lambda run: run.retrieved([{"id": "a", "text": long(500)}, {"id": "b", "text": FACT}]), SMALL)
    assert reasons(record, "mrr", judge=LLMJudge(ScriptedChat(always=reply))) == {"mrr": CUT}


def test_what_was_cut_but_never_shown_changes_nothing() -> None:
    def report(run: Any) -> None:
        run.retrieved([{"id": "a", "text": long(500)}, {"id": "b", "text": FACT}])
        run.reranked([{"id": "b", "text": FACT}])

    assert results(captured(report, SMALL), "faithfulness")["faithfulness"].value == 1.0


def test_a_passage_that_the_applications_own_prompt_cut_is_read_as_the_model_was_shown_it() -> None:
    def report(run: Any) -> None:
        run.retrieved([{"id": "a", "text": FACT + " " + FILLER * 3}])
        run.add_prompt("Context: " + FACT + " " + FILLER[:20] + "...")

    record = captured(report)
    assert record.contexts[0].truncated > len(record.contexts[0].text)
    assert results(record, "faithfulness")["faithfulness"].value == 1.0
    with_pool = captured(report, Limits(record_chars=150))  # the pool's whole text is left out, not the prompt's
    assert results(with_pool, "faithfulness")["faithfulness"].value == 1.0


def test_a_record_of_a_file_says_it_by_its_passages() -> None:
    line = RagRecord(
        id="1",
        query="?",
        answer=ANSWER,
        pools=(Pool(stage="used", passages=(Passage(id="a", text="The", rank=1, truncated=99),)),),
    )
    assert reasons(line, "faithfulness", "diagnosis") == {"faithfulness": CUT, "diagnosis": CUT}


def test_it_survives_a_queue() -> None:
    for record in (captured(a_long_passage, SMALL), captured(a_long_prompt, SMALL)):
        again = from_bytes(to_bytes(Unit(record=record)), key="k", age_s=0.0, now=0.0).record
        assert again == record
        assert reasons(again, "faithfulness") == {"faithfulness": CUT}


def test_all_contexts_emptied_are_not_none_retrieved() -> None:
    record = captured(a_long_passage, Limits(record_chars=10))
    found = reasons(record, "faithfulness", "context_sufficiency", "diagnosis")
    assert set(found.values()) == {CUT}


@pytest.mark.parametrize("n_chars", [100_000, 900_000])
def test_a_context_of_today_is_kept_whole(n_chars: int) -> None:
    record = captured(lambda run: run.retrieved([{"id": "a", "text": long(n_chars)}]))
    assert record.lossy == {}
    found = results(record, "faithfulness", "invented_specifics")
    assert (found["faithfulness"].value, found["invented_specifics"].value) == (1.0, 0.0)


def test_the_offline_judge_says_where_its_reading_ends() -> None:
    texts = [long(MAX_RECORD_CHARS // 2, "End."), long(MAX_RECORD_CHARS // 2), FACT]
    record = make.record(*texts, query="How long?", answer=ANSWER)
    found = results(record, "faithfulness", "invented_specifics", "no_answer", "diagnosis")
    assert found["faithfulness"].reason == found["invented_specifics"].reason == CUT
    assert found["answered"].value == 1.0
    assert (found["diagnosis"].reason, found["diagnosis"].details["because"]) == (CUT, CUT)


REFUSALS = [
    (400, "This model's maximum context length is 8192 tokens.", {"code": "context_length_exceeded"}),
    (400, "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.", {}),
    (
        400,
        "the request exceeds the available context size. try increasing it",
        {"type": "exceed_context_size_error"},
    ),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", {"type": "invalid_request_error"}),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", {}),
    (413, "Request too large", {}),
    (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 `inputs` tokens", {}),
]


@pytest.mark.parametrize(("status", "message", "error"), REFUSALS)
def test_what_a_judges_prompt_cannot_hold_is_cut_too(status: int, message: str, error: dict[str, Any]) -> None:
    with JudgeServer(lambda _: refusal(status, message, **error)) as server:
        judge = LLMJudge(chat_of(server, retry=ONCE))
        record = captured(lambda run: run.retrieved([{"id": "a", "text": FACT}]))
        names = ("faithfulness", "context_sufficiency", "answer_relevancy", "diagnosis")
        found = results(record, *names, judge=judge, embedder=OverlapEmbedder())
    assert found["faithfulness"].reason == found["context_sufficiency"].reason == CUT
    assert found["faithfulness"].is_missing
    assert (found["diagnosis"].reason, found["diagnosis"].details["because"]) == (CUT, CUT)
    assert found["answer_relevancy"].reason != CUT


def test_turns_and_questions_that_were_cut_are_no_inventions() -> None:
    """An answer may take a number out of an earlier turn, or out of a long question."""
    context = {"id": "a", "text": "The shop has a counter for refunds."}

    def of_history(run: Any) -> None:
        run.retrieved([context])
        turns = [Message(role="user", content=f"My parcel has the number 4711. {'x' * 90}")]
        run.set_history([*turns, *(Message(role="user", content=f"{FILLER * 2} {n}") for n in range(9))])

    def of_the_question(run: Any) -> None:
        run.retrieved([context])
        run.set_query(long(2_000))

    for report in (of_history, of_the_question):
        record = captured(report, Limits(text_chars=500))
        assert reasons(record, "invented_specifics") == {"invented_specifics": CUT}


def root(**given: Any) -> dict[str, Any]:
    return {"openinference.span.kind": "CHAIN", "input.value": "How long?", "output.value": ANSWER, **given}


def search(**given: Any) -> dict[str, Any]:
    return {"openinference.span.kind": "RETRIEVER", "input.value": "How long?", **given}


def documents(*texts: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for n, text in enumerate(texts):
        made[f"retrieval.documents.{n}.document.id"] = f"d{n}"
        if text is not None:
            made[f"retrieval.documents.{n}.document.content"] = text
    return made


def read(*spans: Any) -> RagRecord:
    from ragtrace.ingest import read_trace

    (run,) = read_trace(list(spans))
    return run.record


def test_a_received_document_without_the_text_that_others_have() -> None:
    record = read(span(1, root()), span(2, search(**documents("The shop opens at nine.", None)), under=1))
    assert reasons(record, "faithfulness", "diagnosis") == {"faithfulness": CUT, "diagnosis": CUT}


def test_received_values_that_a_length_limit_of_the_sdk_cut() -> None:
    """OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT cuts every value at one length, without a word."""
    prompt = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": ("Q " + long(300))[:256],
    }
    model = {"openinference.span.kind": "LLM", "output.value": ANSWER, **prompt}
    spans = (
        span(1, root()),
        span(2, search(**documents(long(300)[:256], "The shop opens at nine.")), under=1),
        span(3, model, under=1, at=(2, 3)),
    )
    assert reasons(read(*spans), "faithfulness") == {"faithfulness": CUT}


def test_received_passages_of_one_length_are_whole() -> None:
    """A splitter makes chunks of one length; the prompt that holds them is longer."""
    chunks = [(f"Chunk {n}. " + long(300))[:256] for n in range(3)]
    prompt = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "\n".join(chunks),
    }
    model = {"openinference.span.kind": "LLM", "output.value": ANSWER, **prompt}
    spans = (span(1, root()), span(2, search(**documents(*chunks)), under=1), span(3, model, under=1, at=(2, 3)))
    assert reasons(read(*spans), "faithfulness")["faithfulness"] != CUT


def test_a_received_list_of_documents_that_ends_in_the_middle() -> None:
    whole = json.dumps([{"id": "a", "score": 0.5, "content": long(300)}])
    given = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "How long?"}
    record = read(span(1, root()), span(2, {**given, "gen_ai.retrieval.documents": whole[:200]}, under=1))
    assert reasons(record, "faithfulness", "diagnosis") == {"faithfulness": CUT, "diagnosis": CUT}


def test_own_spans_that_had_no_room_for_every_text() -> None:
    full = {"id": "a", "score": 0.5, "rank": 1, "content": "The shop opens at nine."}
    bare = {"id": "b", "score": 0.4, "rank": 2, "hash": "558c378376e08651"}
    given = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": json.dumps([full, bare]),
        "ragtrace.retrieval.document.truncated": 1,
    }
    own = {"gen_ai.operation.name": "invoke_workflow", "input.value": "How long?", "output.value": ANSWER}
    spans: Sequence[Any] = (span(1, own, scope="ragtrace"), span(2, given, under=1, scope="ragtrace"))
    assert reasons(read(*spans), "faithfulness") == {"faithfulness": CUT}


def test_labels_do_not_decide_a_diagnosis_without_texts() -> None:
    record = captured(lambda run: (a_long_passage(run), run.labels({"a": 5})), SMALL)
    assert record.labels == Labels(grades={"a": 5})
    assert reasons(record, "diagnosis") == {"diagnosis": CUT}
