"""Texts of tools are contexts without rank: judged as what the model was shown, and in no ranking."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from ragtrace.judges import LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.metrics import EvalContext, MetricOptions, evaluate, select
from ragtrace.model import AnswerPart, Labels, Passage, RagRecord, content_id
from tests import make

if TYPE_CHECKING:
    from ragtrace.judges import Judge
    from ragtrace.model import MetricResult

FEE = "The refund costs a fee of 40 euros."
DAYS = "The refund takes nine working days."
WEATHER = "The harbour has sunny weather in June."
OF_A_RANKING = (
    "p_at_k",
    "ap_at_k_retrieved",
    "mrr",
    "ndcg",
    "precision4",
    "harm",
    "ra_nwg",
    "selection_efficiency",
    "context_precision",
    "context_precision_graded",
    "proc_shadow",
)
GRADES = {"p1": 5, "p2": 2, content_id(FEE): 4}


def told(*texts: str, **facts: Any) -> tuple[Passage, ...]:
    """Return texts of a tool named `fees`."""
    return tuple(
        Passage(id=content_id(text), text=text, rank=place, source="fees", **facts)
        for place, text in enumerate(texts, start=1)
    )


def asked(*texts: str, **facts: Any) -> RagRecord:
    """Return a record with a pool of the texts, and gold labels of passages and of the tool's text."""
    made: dict[str, Any] = {"query": "What does the refund cost?", "answer": FEE, "labels": Labels(grades=GRADES)}
    return make.record(*texts, **{**made, **facts})


def results(record: RagRecord, *names: str, judge: Judge | None = None, **options: Any) -> dict[str, MetricResult]:
    ctx = EvalContext(record, judge=judge or OverlapJudge(), options=MetricOptions(**options))
    return {found.key: found for found in asyncio.run(evaluate(select(list(names)), ctx))}


def test_contexts_are_the_ranked_ones_and_behind_them_the_unranked_ones() -> None:
    record = asked(DAYS, WEATHER, unranked_contexts=told(FEE))
    assert [one.text for one in record.contexts] == [DAYS, WEATHER, FEE]
    assert [one.text for one in record.ranked_contexts] == [DAYS, WEATHER]
    assert not record.has_no_ranking
    assert asked(unranked_contexts=told(FEE)).has_no_ranking
    assert not asked().has_no_ranking


@pytest.mark.parametrize("options", [{}, {"k_values": (1, 3)}])
def test_without_a_pool_there_is_no_ranking(options: dict[str, Any]) -> None:
    found = results(asked(unranked_contexts=told(FEE)), *OF_A_RANKING, **options)
    assert {(one.state, one.reason) for one in found.values()} == {("na", "no_ranking")}
    assert not any(one.is_missing for one in found.values())


def test_without_a_pool_the_contexts_are_judged() -> None:
    record = asked(unranked_contexts=told(FEE))
    assert results(record, "faithfulness")["faithfulness"].value == 1.0
    assert results(record, "context_use")["context_use"].details["used"] == [content_id(FEE)]
    reply = {
        "sufficient": True,
        "attempted": True,
        "noncommittal": False,
        "claims": [FEE],
        "verdicts": [{"id": 1, "verdict": "supported", "sources": [1], "reason": ""}],
    }
    judge = LLMJudge(ScriptedChat([reply]))
    assert results(record, "context_sufficiency", judge=judge)["context_sufficiency"].value == 1.0


def test_nothing_shown_at_all_is_still_no_contexts() -> None:
    found = results(asked(), "faithfulness", "context_precision_graded")
    assert {one.reason for one in found.values()} == {"no_contexts"}


def test_a_ranking_is_the_same_with_and_without_texts_of_tools() -> None:
    alone = asked(DAYS, WEATHER)
    beside = replace(alone, unranked_contexts=told(FEE))
    labelled = [name for name in OF_A_RANKING if name != "context_precision"]
    assert results(beside, *labelled) == results(alone, *labelled)
    assert results(beside, *labelled, k_values=(1, 5)) == results(alone, *labelled, k_values=(1, 5))
    assert results(beside, "p_at_k")["p_at_k"].value == 0.5
    assert results(beside, "p_at_k")["p_at_k"].k == 2


def test_the_judge_s_precision_asks_about_ranked_contexts_alone() -> None:
    reply = {"verdicts": [{"id": 1, "relevant": False}, {"id": 2, "relevant": True}]}
    chats = [ScriptedChat([reply]) for _ in range(2)]
    alone, beside = asked(DAYS, WEATHER), asked(DAYS, WEATHER, unranked_contexts=told(FEE))
    found = [
        results(record, "context_precision", judge=LLMJudge(chat))["context_precision"]
        for record, chat in zip((alone, beside), chats, strict=True)
    ]
    assert found[0] == found[1]
    assert found[0].value == 0.5
    assert [len(chat.prompts) for chat in chats] == [1, 1]
    assert FEE not in chats[1].prompts[0].user.replace(beside.answer, "", 1)


def test_faithfulness_reads_both() -> None:
    answer = f"{DAYS} {FEE}"
    ranked = asked(DAYS, answer=answer)
    (without,) = results(ranked, "faithfulness").values()
    assert without.value is not None
    assert without.value < 0.6
    both = results(replace(ranked, unranked_contexts=told(FEE)), "faithfulness")["faithfulness"]
    assert both.value == 1.0
    claims: Any = both.details["claims"]
    assert [claim["sources"] for claim in claims] == [[0], [1]]  # places in `contexts`


def test_a_text_of_a_tool_can_be_cited() -> None:
    parts = (AnswerPart(text=FEE, citations=(content_id(FEE), "nowhere")),)
    record = asked(DAYS, answer_parts=parts, unranked_contexts=told(FEE))
    reply = {
        "attempted": True,
        "noncommittal": False,
        "claims": [FEE],
        "verdicts": [{"id": 1, "verdict": "supported", "sources": [2], "reason": ""}],
        "citations": [{"part": 1, "cites": 2, "support": "full"}],
    }
    found = results(record, "citations", judge=LLMJudge(ScriptedChat([reply])))
    assert found["citation_recall"].details["dangling_ids"] == ["nowhere"]
    assert found["citation_recall"].value == 0.5


def test_a_cut_text_of_a_tool_takes_no_ranking_away() -> None:
    ungraded = asked(DAYS, WEATHER, labels=None)
    cut = replace(ungraded, unranked_contexts=told(FEE, truncated=9_000), lossy={"contexts_truncated": 1})
    assert results(cut, "faithfulness")["faithfulness"].reason == "contexts_truncated"
    assert cut.truncated_contexts == 1
    assert cut.truncated_ranked_contexts == 0
    grades = {"grades": [{"id": 1, "grade": 5}, {"id": 2, "grade": 1}]}
    judges = [LLMJudge(ScriptedChat([grades])) for _ in range(2)]
    whole, beside = (
        results(record, "p_at_k", judge=judge)["p_at_k"]
        for record, judge in zip((ungraded, cut), judges, strict=True)
    )
    assert whole == beside
    assert whole.value == 0.5
    worse = replace(cut, lossy={"contexts_truncated": 2})
    assert results(worse, "p_at_k")["p_at_k"].reason == "contexts_truncated"


def test_texts_that_did_not_come_are_missing_as_those_of_passages_are() -> None:
    blank = (Passage(id=content_id(FEE), text="", rank=1, source="fees"),)
    found = results(asked(unranked_contexts=blank), "faithfulness", "nuggets")
    assert {one.reason for one in found.values()} == {"missing_input:passage_text"}
    textless = make.record("", "", unranked_contexts=told(FEE))
    assert results(textless, "p_at_k")["p_at_k"].reason == "missing_input:passage_text"


class TestDiagnosis:
    def test_a_needed_text_of_a_tool_was_delivered(self) -> None:
        labels = Labels(grades={content_id(FEE): 5, "p1": 1})
        found = results(asked(WEATHER, labels=labels, unranked_contexts=told(FEE)), "diagnosis")["diagnosis"]
        assert found.details["verdict"] == "ok"
        assert (found.details["n_needed"], found.details["n_needed_in_prompt"]) == (1, 1)
        assert found.details["n_needed_in_pool"] == 0

    def test_without_the_text_it_was_not_retrieved(self) -> None:
        labels = Labels(grades={content_id(FEE): 5, "p1": 1})
        found = results(asked(WEATHER, labels=labels), "diagnosis")["diagnosis"]
        assert found.details["verdict"] == "not_retrieved"

    def test_texts_of_tools_alone_are_enough_for_a_verdict(self) -> None:
        found = results(asked(labels=None, unranked_contexts=told(FEE)), "diagnosis")["diagnosis"]
        assert found.details["verdict"] == "ok"


@pytest.mark.parametrize(("grades", "expected"), [(GRADES, ["p1", content_id(FEE)]), ({"p1": 5, "p2": 2}, ["p1"])])
def test_labels_choose_texts_of_tools_for_nuggets_as_passages(grades: dict[str, int], expected: list[str]) -> None:
    record = asked(DAYS, WEATHER, labels=Labels(grades=grades), unranked_contexts=told(FEE))
    found = results(record, "nuggets", judge=LLMJudge(ScriptedChat(NUGGETS)))["nuggets_all"]
    assert found.details["used"] == expected


def test_with_the_judge_s_grades_of_the_pool_a_tool_s_text_counts_without_one() -> None:
    record = asked(DAYS, WEATHER, labels=None, unranked_contexts=told(FEE))
    grades = {"grades": [{"id": 1, "grade": 1}, {"id": 2, "grade": 1}]}
    judge = LLMJudge(ScriptedChat([grades, *NUGGETS]))
    found = results(record, "nuggets", judge=judge, nuggets_from_graded=True)["nuggets_all"]
    assert found.details["used"] == [content_id(FEE)]
    assert found.details["ungraded"] == 0


NUGGETS: list[dict[str, Any]] = [
    {"nuggets": ["The fee is 40 euros"]},
    {"labels": [{"id": 1, "importance": "vital"}]},
    {"assignments": [{"id": 1, "support": "support"}]},
]
