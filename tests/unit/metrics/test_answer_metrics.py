"""Answer relevancy, answer similarity and citations: edges beside the golden vectors."""

from __future__ import annotations

import numpy as np
import pytest

from ragtrace.errors import JudgeUnavailable
from ragtrace.judges import LLMJudge, OverlapEmbedder, OverlapJudge, ScriptedChat
from ragtrace.metrics import EvalContext, all_metrics, cosines_with_first, evaluate, select
from ragtrace.model import AnswerPart
from tests import make
from tests.unit.metrics import cases


class Given:
    """An embedder that gives what it was told to, whatever the texts."""

    name = "given"

    def __init__(self, rows) -> None:
        self.rows = rows

    async def embed(self, texts):
        if isinstance(self.rows, Exception):
            raise self.rows
        return self.rows


async def run(name, made, judge=None, embedder=None):
    return await cases.run(name, made, judge=judge, embedder=embedder)


def session(*texts):
    return LLMJudge(ScriptedChat([{"questions": [{"question": text, "noncommittal": False} for text in texts]}]))


def answered(query="Where is the lab?", answer="The lab is in Oslo.", **more):
    return make.record("The lab is in Oslo.", query=query, answer=answer, **more)


async def test_similarity_works_offline_and_tells_topics_apart() -> None:
    on_topic = (await run("answer_similarity", answered(), OverlapJudge(), OverlapEmbedder()))["answer_similarity"]
    off_topic = (
        await run("answer_similarity", answered(answer="Refunds take five days."), None, OverlapEmbedder())
    )["answer_similarity"]
    assert on_topic.value > off_topic.value
    assert on_topic.details["embedder"] == "overlap"
    assert on_topic.passed is None
    assert on_topic.embed_calls == 1
    assert on_topic.llm_calls == 0


async def test_similarity_may_be_negative() -> None:
    rows = np.array([[1.0, 0.0], [-2.0, 0.0]])
    assert (await run("answer_similarity", answered(), None, Given(rows)))["answer_similarity"].value == -1.0


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.zeros((2, 3)), "zero_embedding"),
        (np.array([[0.0], [1.0]]), "zero_embedding"),
        (np.array([[np.nan], [1.0]]), "judge_invalid_output"),
        (np.array([[np.inf], [1.0]]), "judge_invalid_output"),
        (np.zeros((1, 3)), "judge_invalid_output"),
        ([["a", "b"], ["c"]], "judge_invalid_output"),
        (JudgeUnavailable("down"), "judge_unavailable"),
        (OSError("down"), "judge_error"),
    ],
)
@pytest.mark.parametrize("name", ["answer_similarity", "answer_relevancy", "semantic_similarity"])
async def test_an_embedder_that_fails_is_an_error(name, rows, reason) -> None:
    record = answered(reference="In Oslo.")
    result = (await run(name, record, session("Where?"), Given(rows)))[name]
    assert (result.state, result.reason) == ("error", reason)


@pytest.mark.parametrize("name", ["answer_similarity", "answer_relevancy"])
async def test_what_is_missing_is_named(name) -> None:
    embedder = OverlapEmbedder()
    assert (await run(name, answered(query=" "), session("x"), embedder))[name].reason == "missing_input:query"
    assert (await run(name, answered(answer=""), session("x"), embedder))[name].reason == "no_answer"
    assert (await run(name, answered(), session("x")))[name].reason == "unsupported_by_judge"
    assert (await run(name, answered(outcome="partial"), session("x"), embedder))[name].reason == "partial_run"


async def test_relevancy_under_the_offline_judge_is_na() -> None:
    result = (await run("answer_relevancy", answered(), OverlapJudge(), OverlapEmbedder()))["answer_relevancy"]
    assert (result.state, result.reason) == ("na", "unsupported_by_judge")


async def test_relevancy_keeps_raw_and_cosines_and_cuts_at_0() -> None:
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    result = (await run("answer_relevancy", answered(), session("a?", "b?"), Given(rows)))["answer_relevancy"]
    assert result.value == 0.0
    assert result.details["raw"] == -1.0
    assert result.details["cosines"] == [-1.0, None]
    assert result.details["embedder"] == "given"
    assert (result.llm_calls, result.embed_calls) == (1, 1)


def test_cosines_survive_tiny_and_huge_vectors() -> None:
    rows = np.array([[1e-200, 1e-200], [1e200, 1e200], [1e-320, 0.0]])
    cosines = cosines_with_first(rows, 3)
    assert cosines == [pytest.approx(1.0), pytest.approx(0.5**0.5)]
    assert all(abs(value) <= 1.0 for value in cosines)


def cited(*parts, **more):
    made = tuple(AnswerPart(text=f"s{n}", citations=cites) for n, cites in enumerate(parts))
    return answered(answer_parts=made, **more)


async def test_citations_without_parts_or_citations() -> None:
    judge = OverlapJudge()
    for record, reason in (
        (cited(), "no_citations"),
        (cited(answer=" "), "no_answer"),
        (cited(is_answer_given=False, answer=""), "no_parts"),
        (cited(is_answer_expected=False), "no_answer_expected"),
    ):
        none = await run("citations", record, judge)
        assert {(result.state, result.reason) for result in none.values()} == {("na", reason)}
    uncited = await run("citations", cited((), ()), judge)
    assert uncited["citation_recall"].value == 0.0
    assert uncited["citation_precision"].reason == uncited["citation_f1"].reason == "no_citations"
    assert uncited["citation_recall"].details["cited_part_rate"] == 0.0


async def test_citations_are_read_from_the_markers_of_a_record_without_parts() -> None:
    """As of a file that `ragtrace score` reads: [1] is the first context, [7] is wrong, and one sentence of three cites."""
    judge = LLMJudge(ScriptedChat([audit_reply({"part": 1, "cites": "1", "support": "full"})]))
    made = answered(answer="The lab is in Oslo [1]. It is cold. Bring a coat [7].")
    results = await run("citations", made, judge)
    assert results["citation_precision"].value == 0.5
    assert results["citation_recall"].value == pytest.approx(1 / 3)
    assert results["citation_f1"].details["dangling_ids"] == ["7"]
    assert results["citation_f1"].details["cited_part_rate"] == pytest.approx(2 / 3)


async def test_citations_are_not_asked_about_where_no_metric_reads_them() -> None:
    chat = ScriptedChat([audit_reply()])
    await run("faithfulness", cited(("p1",), answer="The lab is in Oslo [1]."), LLMJudge(chat))
    assert '"parts"' not in str(chat.prompts[0])


def audit_reply(*rows):
    return {"attempted": True, "noncommittal": False, "claims": [], "verdicts": [], "citations": list(rows)}


async def test_dangling_citations_cost_no_call_and_score_0() -> None:
    chat = ScriptedChat()
    results = await run("citations", cited(("gone",), ("gone", "gone")), LLMJudge(chat))
    assert {result.value for result in results.values()} == {0.0}
    assert results["citation_f1"].details["dangling"] == 2
    assert results["citation_f1"].details["dangling_rate"] == 1.0
    assert chat.calls == 0


async def test_citations_need_a_judge_that_reads_them() -> None:
    for judge in (None, OverlapJudge()):
        results = await run("citations", cited(("p1",)), judge)
        assert {result.reason for result in results.values()} == {"unsupported_by_judge"}


async def test_a_run_that_broke_off_is_not_judged() -> None:
    results = await run("citations", cited(("p1",), outcome="interrupted"), OverlapJudge())
    assert {result.reason for result in results.values()} == {"partial_run"}


async def test_faithfulness_citations_and_no_answer_share_one_call() -> None:
    reply = {
        "attempted": True,
        "noncommittal": False,
        "claims": ["The lab is in Oslo."],
        "verdicts": [{"id": 1, "verdict": "supported", "sources": [1], "reason": ""}],
        "citations": [{"part": 1, "cites": "p1", "support": "full"}],
    }
    chat = ScriptedChat([reply])
    case = EvalContext(cited(("p1",)), judge=LLMJudge(chat))
    results = await evaluate(select(["faithfulness", "citations", "no_answer"]), case)
    assert chat.calls == 1
    assert {result.value for result in results} == {1.0}
    assert sum(result.llm_calls for result in results) == 1
    assert len({result.judge.prompt_hash for result in results}) == 1


READS_AN_ANSWER = [name for name, item in all_metrics().items() if "answer" in item.spec.needs]


@pytest.mark.parametrize("name", READS_AN_ANSWER)
async def test_a_run_without_a_model_has_no_answer_to_score(name) -> None:
    """A retrieval alone must not bring zeros into the means."""
    made = answered(answer="", is_answer_expected=False, reference="The lab is in Oslo.")
    results = await run(name, made, OverlapJudge(), OverlapEmbedder())
    reasons = {(result.state, result.reason) for result in results.values()}
    if name == "context_precision":  # reads the reference where there is one
        assert ("na", "no_answer_expected") not in reasons
    else:
        assert reasons <= {("na", "no_answer_expected"), ("na", "unsupported_by_judge")}
        assert not any(result.value is not None for result in results.values())
