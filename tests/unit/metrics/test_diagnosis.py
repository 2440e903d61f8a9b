"""The verdict on a run: its decision table, the way of the needed passages, and the metric over a judge's words."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest
from msgspec.structs import replace

from ragtrace.judges import ConsensusPanel, LLMJudge, OverlapEmbedder, OverlapJudge, ScriptedChat
from ragtrace.metrics import DiagnosisFacts, EvalContext, Known, PassageGrades, decide, evaluate, select
from ragtrace.metrics.diagnosis.needed import followed
from ragtrace.metrics.diagnosis.table import ROWS
from ragtrace.model import FAILURES, STAGES, VERDICTS, Labels, Message, RagRecord, Reading, Sign, verdict_of
from ragtrace.model.diagnosis import WORDS
from tests import make

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ragtrace.model import MetricResult

NAMES = tuple(field.name for field in fields(DiagnosisFacts))
KNOWN = get_args(Known)
TEXTS = {
    "fee": "Cancelling a plan costs a fee of 40 euros.",
    "door": "The front door of the shop opens at nine.",
    "tea": "Tea is sold in bags of 100 grams.",
    "tax": "Value added tax is part of each price.",
}


class Asked(DiagnosisFacts):
    """Facts of which each is chosen when it is first asked for: one never asked for stands for all its values."""

    def __init__(self, chosen: dict[str, int]) -> None:
        object.__setattr__(self, "chosen", chosen)

    def __getattribute__(self, name: str) -> Any:
        if name not in NAMES:
            return super().__getattribute__(name)
        chosen: dict[str, int] = super().__getattribute__("chosen")
        return KNOWN[chosen.setdefault(name, 0)]


def combinations() -> Iterator[DiagnosisFacts]:
    """Yield facts that stand for all 4,782,969 combinations, each for those that differ in what nobody asked of it."""
    chosen: dict[str, int] = {}
    covered = 0
    while True:
        yield Asked(chosen)
        covered += len(KNOWN) ** (len(NAMES) - len(chosen))
        while chosen and next(reversed(chosen.values())) == len(KNOWN) - 1:
            chosen.popitem()
        if not chosen:
            break
        chosen[next(reversed(chosen))] += 1
    assert covered == len(KNOWN) ** len(NAMES)


def test_the_table_is_total_and_each_row_is_reached() -> None:
    met = {id(decide(facts)) for facts in combinations()}
    unmet = [row.meaning for row in ROWS if id(row) not in met]
    assert not unmet
    assert {row.verdict for row in ROWS} == {*VERDICTS}
    assert all(bool(row.because) == (row.verdict == "undetermined") for row in ROWS)
    assert {row.because for row in ROWS if row.because} <= {*WORDS["because"]}
    assert all({*row.when} <= {*NAMES, "holds"} for row in ROWS)


def test_promises_over_every_combination() -> None:
    for facts in combinations():
        verdict = decide(facts).verdict
        if verdict == "ok":
            assert facts.attempted == "yes", facts
            assert facts.supported == "yes", facts
            assert "no" not in {facts.sufficient, facts.used, facts.complete, facts.responsive}, facts
            assert facts.contradicted != "yes", facts
        if STAGES[verdict] in {"retrieval", "rerank", "prompt"}:
            assert facts.holds == "no", facts
        if verdict == "unsupported" and facts.holds == "unknown":
            assert facts.responsive != "no", facts
            assert facts.related != "no" or facts.touched == "yes", facts
        if verdict in {"rightly_refused", "wrongly_refused"}:
            assert facts.attempted == "no", facts
        if verdict in {"lost_in_rerank", "cut_from_prompt"}:
            assert facts.found != "no", "an earlier stage failed first"
        if verdict == "cut_from_prompt":
            assert facts.selected != "no", "an earlier stage failed first"


def run_of(retrieved: str, reranked: str | None = None, used: str | None = None, **given: Any) -> RagRecord:
    stages = {"retrieved": retrieved, "reranked": reranked, "used": used}
    pools = tuple(
        make.pool(*(TEXTS[name] for name in names.split()), ids=names.split(), stage=stage)  # type: ignore[arg-type]
        for stage, names in stages.items()
        if names is not None
    )
    given = {"query": "What does cancelling cost?", "answer": "It costs 40 euros.", **given}
    return make.record(pools=pools, **given)


UNREAD = Reading(signs=(Sign("evidence_unread", "prompt"),))
GOLD = PassageGrades(grades={"fee": 5}, by="labels", is_whole=True, least=4)
POOL = PassageGrades(grades={"fee": 5, "door": 2, "tea": 1, "tax": 4}, by="grades", is_whole=False, least=4)


@pytest.mark.parametrize(
    ("stages", "relevance", "place"),
    [
        (("door tea",), GOLD, "retrieval"),
        (("door fee tea", "door tea"), GOLD, "rerank"),
        (("door fee", "door"), POOL, "rerank"),
        (("fee tax", "tax"), POOL, "rerank"),
        (("fee tax", "fee"), POOL, "delivered"),
        (("door fee", "fee door", "door"), GOLD, "prompt"),
        (("door fee", None, "door"), GOLD, "prompt"),
        (("fee door tea", "door tea fee", "door tea"), GOLD, "rerank"),
        (("door tea fee", "door tea fee", "door tea"), GOLD, "prompt"),
        (("fee door tea", "door fee tea", "tea"), GOLD, "prompt"),
        (("door fee", "", None), GOLD, "rerank"),
        (("fee",), GOLD, "delivered"),
    ],
)
def test_the_stage_that_lost_a_needed_passage(
    stages: Sequence[str | None], relevance: PassageGrades, place: str
) -> None:
    (first, *_) = followed(run_of(*stages), relevance).traces  # type: ignore[arg-type]
    assert (first.id, first.place) == ("fee", place)


def test_a_good_passage_that_only_better_ones_displaced_is_no_fault() -> None:
    needed = followed(run_of("fee tax door", "fee"), POOL)
    assert [trace.place for trace in needed.traces] == ["delivered", "room"]
    assert (needed.found, needed.selected, needed.reached) == ("unknown", "yes", "yes")


def test_without_grades_nothing_is_known() -> None:
    needed = followed(run_of("fee"), None)
    assert {needed.found, needed.selected, needed.shown, needed.reached} == {"unknown"}


def test_gold_labels_without_a_needed_passage_say_that_there_is_nothing_to_find() -> None:
    nothing = PassageGrades(grades={"door": 1}, by="labels", is_whole=True, least=4)
    needed = followed(run_of("door"), nothing)
    assert (needed.found, needed.reached) == ("yes", "no")
    partly = PassageGrades(grades={"door": 1}, by="grades", is_whole=False, least=4)
    assert followed(run_of("door"), partly).found == "unknown"


BUNDLE = ("diagnosis", "faithfulness", "context_sufficiency", "no_answer")


def said(
    *verdicts: str, sufficient: object = True, attempted: bool = True, source: int = 1, **more: object
) -> dict[str, Any]:
    rows = [
        {"id": i, "verdict": word, "sources": [source] if word != "not_supported" else []}
        for i, word in enumerate(verdicts, start=1)
    ]
    return {
        "sufficient": sufficient,
        "attempted": attempted,
        "noncommittal": False,
        "claims": [f"claim {i}" for i in range(len(rows))],
        "verdicts": rows,
        "citations": [],
    } | more


def graded(**grades: int) -> dict[str, object]:
    return {"grades": [{"id": i, "grade": grade} for i, grade in enumerate(grades.values(), start=1)]}


async def diagnosed(
    record: RagRecord, *replies: object, metrics: Sequence[str] = BUNDLE, judge: Any = None
) -> tuple[MetricResult, ScriptedChat]:
    chat = ScriptedChat(replies)
    judge = judge or LLMJudge(chat, grade_cache="off", batch_size=1)
    results = await evaluate(select(metrics), EvalContext(record, judge=judge))
    (found,) = [result for result in results if result.name == "diagnosis"]
    return found, chat


REFUSED: Mapping[str, object] = {"attempted": False}


@pytest.mark.parametrize(
    ("record", "reply", "verdict"),
    [
        (run_of("fee door"), said("supported"), "ok"),
        (run_of("fee door"), said("supported", "not_supported"), "unsupported"),
        (run_of("fee door"), said("not_supported", "contradicted"), "contradicted"),
        (run_of("fee door"), said(**REFUSED), "wrongly_refused"),
        (run_of("fee door"), said(sufficient=False, **REFUSED), "rightly_refused"),
        (run_of("door tea"), said("not_supported", sufficient=False), "unknown_retrieval"),
        (run_of("fee door"), said("supported", noncommittal=True), "sufficient_but_ignored"),
        (run_of("fee door"), said(), "undetermined"),
        (run_of(""), said(sufficient=False, **REFUSED), "rightly_refused"),
        (run_of(""), said("not_supported", sufficient=True), "unknown_retrieval"),
        (run_of("fee door", answer=" "), said(**REFUSED), "wrongly_refused"),
    ],
)
async def test_verdicts_without_labels_and_grades(record: RagRecord, reply: dict[str, Any], verdict: str) -> None:
    found, chat = await diagnosed(record, reply)
    assert verdict_of(found) == verdict
    assert found.value == (None if verdict == "undetermined" else float(verdict not in FAILURES))
    assert found.details["stage"] == STAGES[verdict]  # type: ignore[index]
    assert (chat.calls, found.llm_calls) == (1, 0), "it asks for nothing of its own"


LABELS = Labels(grades={"fee": 5})


@pytest.mark.parametrize(
    ("stages", "reply", "verdict"),
    [
        (("door tea",), said("not_supported", sufficient=False), "not_retrieved"),
        (("door tea",), said(sufficient=False, **REFUSED), "not_retrieved"),
        (("door fee tea", "door tea"), said("not_supported", sufficient=False), "lost_in_rerank"),
        (("door fee", "fee door", "door"), said("not_supported", sufficient=False), "cut_from_prompt"),
        (("fee door",), said("supported", sufficient=False), "insufficient_but_answered"),
        (("fee door",), said("supported", source=2), "sufficient_but_ignored"),
        (("fee door",), said("supported"), "ok"),
        (("door tea",), said("supported"), "ok"),
    ],
)
async def test_verdicts_with_labels(stages: Sequence[str], reply: dict[str, Any], verdict: str) -> None:
    found, _ = await diagnosed(run_of(*stages, labels=LABELS), reply)
    assert verdict_of(found) == verdict


async def test_gold_labels_without_a_needed_passage_leave_the_model() -> None:
    record = run_of("door tea", labels=Labels(grades={"door": 1, "tea": 2}))
    found, _ = await diagnosed(record, said("not_supported", sufficient=False))
    assert verdict_of(found) == "insufficient_but_answered"


async def test_grades_of_the_judge_are_read_and_not_asked_for() -> None:
    record = run_of("fee door", "door")
    audit = said("not_supported", sufficient=False)
    found, chat = await diagnosed(record, audit)
    assert (verdict_of(found), chat.calls) == ("unknown_retrieval", 1)
    chat = ScriptedChat(always=graded(one=5))
    judge = LLMJudge(Answering({"audit": audit, "grades": graded}), grade_cache="off")
    found, _ = await diagnosed(record, metrics=(*BUNDLE, "mrr"), judge=judge)
    assert verdict_of(found) == "lost_in_rerank"
    assert (found.details["by"], found.details["lost_rank"]) == ("grades", 1)


class Answering(ScriptedChat):
    """Replies by the prompt's name; passages about a fee are graded 5, all others 1."""

    def __init__(self, replies: Mapping[str, Any]) -> None:
        super().__init__()
        self.by_name = replies

    async def complete(self, *, user: str, schema_name: str, **more: Any) -> Any:
        reply = self.by_name[schema_name]
        if callable(reply):
            shown = json.loads(user.split("<data-", 1)[1].split("\n")[1])["passages"]
            reply = {"grades": [{"id": int(n), "grade": 5 if "fee" in text else 1} for n, text in shown.items()]}
        self._replies = [reply]
        return await super().complete(user=user, schema_name=schema_name, **more)


async def test_content_stays_and_the_words_leave() -> None:
    record = run_of("door fee tea", "door tea", labels=LABELS)
    found, _ = await diagnosed(record, said("not_supported", sufficient=False))
    shown = found.shown_details(has_content=False)
    assert (shown["verdict"], shown["stage"], shown["by"]) == ("lost_in_rerank", "rerank", "labels")
    assert (shown["n_needed"], shown["lost_rank"], shown["sufficient"]) == (1, 2, False)
    assert "lost" not in shown
    assert found.details["lost"] == [{"id": "fee", "grade": 5, "stage": "rerank"}]


@pytest.mark.parametrize(
    ("given", "reason", "because"),
    [
        ({"outcome": "partial"}, "partial_run", "partial_run"),
        ({"is_answer_given": False, "answer": ""}, "missing_input:answer", "no_answer_given"),
        ({"is_answer_expected": False}, "no_answer_expected", "no_answer_expected"),
        ({"query": " "}, "missing_input:query", "no_query"),
        ({"pools": ()}, "no_contexts", "no_contexts"),
    ],
)
async def test_runs_that_have_no_verdict(given: dict[str, Any], reason: str, because: str) -> None:
    found, _ = await diagnosed(replace(run_of("fee"), **given), said("supported"))
    assert (found.state, found.reason, found.details["because"]) == ("na", reason, because)
    assert verdict_of(found) == "undetermined"


async def test_a_judge_that_fails_decides_nothing_and_labels_still_may() -> None:
    found, _ = await diagnosed(run_of("fee"), "no JSON", "again none")
    assert (found.state, found.reason) == ("error", "judge_invalid_output")
    assert (verdict_of(found), found.details["because"]) == ("undetermined", "judge_failed")
    found, _ = await diagnosed(run_of("door", labels=LABELS), "no JSON", "again none")
    assert verdict_of(found) == "not_retrieved"


async def test_labels_decide_where_the_judge_leaves_sufficiency_out() -> None:
    silent = said("supported")
    del silent["sufficient"]
    found, chat = await diagnosed(run_of("fee", labels=LABELS), silent, "{}")
    assert (verdict_of(found), chat.calls) == ("ok", 2)
    found, _ = await diagnosed(run_of("fee"), silent, "{}")
    assert (found.reason, found.details["because"]) == ("judge_incomplete", "judge_failed")
    assert verdict_of(found) == "undetermined", "an answer with support may still be off the question"


def asking(*questions: str, evasive: bool = False) -> dict[str, object]:
    return {"questions": [{"question": text, "noncommittal": evasive} for text in questions]}


REWORDED = asking("How high is the charge of 40 euros?", "Which amount is due?", "How much must one pay?")
OFF = asking("In which bags is tea sold?", "How heavy is a bag?", "How is tea packed?")
GERMAN = {"query": "Was ist der Preis, wenn ich meinen Vertrag kündige?", "answer": "Das sind 40 Euro Gebühr."}


class Meaning:
    """An embedder that tells questions about money from others."""

    def __init__(self, name: str = "openai:small") -> None:
        self.name = name

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        is_money = [any(word in text for word in ("cost", "charge", "amount", "pay")) for text in texts]
        return np.array([[1.0, 0.0] if it else [0.0, 1.0] for it in is_money])

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("given", "questions", "embedder", "verdict", "coverage"),
    [
        ({}, REWORDED, OverlapEmbedder(), "ok", 1.0),
        ({}, REWORDED, Meaning(), "ok", None),
        ({}, "no JSON", OverlapEmbedder(), "ok", 1.0),
        ({"answer": TEXTS["tea"]}, OFF, OverlapEmbedder(), "sufficient_but_ignored", 0.0),
        ({"answer": TEXTS["tea"]}, OFF, Meaning(), "sufficient_but_ignored", None),
        ({"answer": TEXTS["tea"]}, "no JSON", OverlapEmbedder(), "sufficient_but_ignored", 0.0),
        ({"answer": "It varies."}, asking("Why?", evasive=True), OverlapEmbedder(), "sufficient_but_ignored", None),
        ({}, OFF, Meaning("local:table@0a1b2c3d"), "ok", 1.0),
        ({}, OFF, Meaning(), "sufficient_but_ignored", None),
        (GERMAN, asking("Wie hoch fallen Kosten aus?"), OverlapEmbedder(), "ok", None),
        ({"query": "And for students?"}, REWORDED, OverlapEmbedder(), "ok", None),
        ({"query": "Can students cancel?", "session": "s"}, REWORDED, OverlapEmbedder(), "ok", None),
        ({"history": (Message(role="user", content="Tea?"),)}, REWORDED, OverlapEmbedder(), "ok", None),
    ],
)
async def test_a_question_in_other_words_is_no_fault_of_the_model(
    given: dict[str, Any], questions: object, embedder: Any, verdict: str, coverage: float | None
) -> None:
    record = run_of("fee tea", **given)
    audit = said("supported", source=2 if record.answer == TEXTS["tea"] else 1)
    judge = LLMJudge(Answering({"audit": audit, "questions": questions}))
    results = await evaluate(
        select((*BUNDLE, "answer_relevancy")), EvalContext(record, judge=judge, embedder=embedder)
    )
    (found,) = [result for result in results if result.name == "diagnosis"]
    assert verdict_of(found) == verdict
    assert found.details.get("query_coverage") == coverage


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (said(**REFUSED), "undetermined"),
        (said("not_supported"), "undetermined"),
        (said("supported"), "ok"),
        (said("supported", noncommittal=True), "sufficient_but_ignored"),
        (said(sufficient=False, **REFUSED), "rightly_refused"),
        (said("not_supported", sufficient=False), "unknown_retrieval"),
    ],
)
async def test_a_prompt_without_any_passage_is_no_fault_of_the_model(reply: dict[str, Any], verdict: str) -> None:
    found, _ = await diagnosed(replace(run_of("fee door"), reading=UNREAD), reply)
    assert verdict_of(found) == verdict
    assert found.details.get("because") == ("prompt_unmatched" if verdict == "undetermined" else None)


@pytest.mark.parametrize(
    "run",
    [
        run_of("fee door", reading=Reading(signs=(Sign("evidence_unread", "tool search"),))),
        run_of("fee door", used="fee", reading=UNREAD),
        run_of("fee door", reading=Reading(signs=(Sign("answer_guessed", "prompt"),))),
    ],
    ids=["text of a tool", "a prompt that shows a passage", "another sign"],
)
async def test_another_sign_leaves_the_verdict_on_the_model(run: RagRecord) -> None:
    found, _ = await diagnosed(run, said("not_supported"))
    assert (verdict_of(found), "because" in found.details) == ("unsupported", False)


async def test_the_offline_judge_says_what_it_can() -> None:
    judge = OverlapJudge()
    fine = run_of("fee door", answer="Cancelling a plan costs a fee of 40 euros.")
    cases = [
        (fine, "ok"),
        (run_of("fee door", answer="Whales sing in winter near Norway."), "unsupported"),
        (run_of("fee door", answer="I do not know."), "undetermined"),
        (run_of("fee door", answer="I do not know.", labels=LABELS), "wrongly_refused"),
        (run_of("door tea", answer="I do not know.", labels=LABELS), "not_retrieved"),
    ]
    for record, verdict in cases:
        found, _ = await diagnosed(record, judge=judge, metrics=("diagnosis", "faithfulness", "no_answer"))
        assert verdict_of(found) == verdict, record.answer


OFFLINE = ("diagnosis", "faithfulness", "invented_specifics", "no_answer")
DECLINES = {"query": "What does cancelling cost, and when does it open?", "answer": "I do not know."}


@pytest.mark.parametrize(
    ("stages", "given", "verdict"),
    [
        # A needed passage of two is there, the other one is not, and the model declines.
        (("fee tea",), {}, "not_retrieved"),
        (("fee door tea", "fee tea"), {}, "lost_in_rerank"),
        (("fee door tea", "fee door", "fee"), {}, "cut_from_prompt"),
        (("fee door tea",), {}, "wrongly_refused"),
        (("fee tea",), {"answer": TEXTS["fee"]}, "undetermined"),
        (("fee tea",), {"labels": None}, "undetermined"),
    ],
)
async def test_a_model_that_declines_without_a_needed_passage_has_a_reason(
    stages: Sequence[str], given: dict[str, Any], verdict: str
) -> None:
    labels = Labels(grades={"fee": 4, "door": 4, "tea": 1})
    record = run_of(*stages, **{"labels": labels, **DECLINES, **given})
    found, _ = await diagnosed(record, judge=OverlapJudge(), metrics=OFFLINE)
    assert verdict_of(found) == verdict


@pytest.mark.parametrize(
    ("answer", "given", "labelled", "unlabelled"),
    [
        # An answer from the passages to another question.
        (TEXTS["tea"], {}, "sufficient_but_ignored", "undetermined"),
        (f"{TEXTS['tea']} {TEXTS['door']}", {}, "sufficient_but_ignored", "undetermined"),
        (f"{TEXTS['tea']} {TEXTS['fee']}", {}, "ok", "ok"),
        # Where words decide nothing: a search phrase, a short question, one with turns before it.
        (TEXTS["tea"], {"query": "price of leaving"}, "ok", "ok"),
        (TEXTS["tea"], {"query": "How much?"}, "ok", "ok"),
        (TEXTS["tea"], {"history": (Message(role="user", content="Tea?"),)}, "ok", "ok"),
        # An answer that says nothing.
        ("That depends on many things.", {}, "sufficient_but_ignored", "undetermined"),
        ("Thank you for your question. It varies.", {}, "sufficient_but_ignored", "undetermined"),
        ("Great question! Let me know if you have more questions.", {}, "sufficient_but_ignored", "undetermined"),
        ("Please contact support.", {}, "sufficient_but_ignored", "undetermined"),
        ("Yes. What cancelling costs varies.", {}, "sufficient_but_ignored", "undetermined"),
        ("Please contact support at 0800 123 4567.", {}, "unsupported", "unsupported"),
        ("Students pay half.", {}, "unsupported", "unsupported"),
    ],
)
async def test_the_offline_judge_tells_an_answer_to_another_question_by_words(
    answer: str, given: dict[str, Any], labelled: str, unlabelled: str
) -> None:
    record = run_of("fee door tea", answer=answer, **given)
    for labels, verdict in ((LABELS, labelled), (None, unlabelled)):
        found, _ = await diagnosed(replace(record, labels=labels), judge=OverlapJudge(), metrics=OFFLINE)
        assert verdict_of(found) == verdict
        assert found.details.get("because") == ("sufficiency_unknown" if verdict == "undetermined" else None)


@pytest.mark.parametrize(
    ("stages", "given", "verdict"),
    [
        ("door tea", {}, "undetermined"),  # nothing on cancelling: the retriever may have missed it
        ("door tea", {"answer": f"{TEXTS['door']} Students of law pay half of the price."}, "unsupported"),
        ("fee tea", {}, "unsupported"),
        ("door tea", {"query": "price of leaving"}, "unsupported"),
        ("door tea", {"history": (Message(role="user", content="Tea?"),)}, "unsupported"),
        ("door tea", {"labels": Labels(grades={"fee": 5})}, "not_retrieved"),
        ("door tea", {"labels": Labels(grades={"door": 5})}, "unsupported"),
    ],
)
async def test_a_claim_without_support_is_the_models_only_where_the_contexts_are_about_the_question(
    stages: str, given: dict[str, Any], verdict: str
) -> None:
    record = run_of(stages, **{"answer": "Students of law pay half of the price.", **given})
    found, _ = await diagnosed(record, judge=OverlapJudge(), metrics=OFFLINE)
    assert verdict_of(found) == verdict
    assert [claim["verdict"] for claim in found.details["claims"]] == ["not_supported"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Cancelling a plan costs a fee of 90 euros.", "contradicted"),
        (f"Cancelling a plan costs a fee of 90 euros. {TEXTS['tea']}", "contradicted"),
        ("Cancelling a plan costs a fee of 100 euros.", "contradicted"),  # the tea has 100 grams
        ("Cancelling a plan costs a fee of 90 euros. Students of law pay half.", "unsupported"),
        ("Cancelling a plan costs 40 euros and 12 stamps.", "unsupported"),
    ],
)
async def test_the_offline_judge_names_a_contradiction_that_is_sure(answer: str, verdict: str) -> None:
    found, _ = await diagnosed(run_of("fee tea", answer=answer), judge=OverlapJudge(), metrics=OFFLINE)
    assert verdict_of(found) == verdict, found.details


async def test_one_sentence_without_support_is_enough_whatever_the_mean_is() -> None:
    answer = f"{TEXTS['fee']} {TEXTS['door']} Wombats sleep beside frozen rivers."
    record = run_of("fee door", answer=answer)
    results = await evaluate(select(("faithfulness", "diagnosis")), EvalContext(record, judge=OverlapJudge()))
    mean, found = results
    assert (mean.passed, verdict_of(found), found.value) == (True, "unsupported", 0.0)
    assert [claim["text"] for claim in found.details["claims"]] == ["Wombats sleep beside frozen rivers."]  # type: ignore[attr-defined]
    assert found.details["supported"] is False


@pytest.mark.parametrize(
    ("answer", "more", "verdict", "invented"),
    [
        ("It costs 40 euros.", (), "ok", []),
        ("It costs 40 euros. Pay it to Quillfeather.", ("invented_specifics",), "unsupported", ["Quillfeather"]),
        ("It costs 40 euros. Pay it to Quillfeather.", (), "ok", []),  # nobody looked for them
        ("Das kostet vierzig Euro, zahlbar an Quillfeather.", ("invented_specifics",), "ok", []),
    ],
)
async def test_a_specific_that_no_context_has_is_enough_where_somebody_looked_for_it(
    answer: str, more: tuple[str, ...], verdict: str, invented: list[str]
) -> None:
    found, chat = await diagnosed(run_of("fee", answer=answer), said("supported"), metrics=(*more, *BUNDLE))
    assert (verdict_of(found), found.details["invented"], chat.calls) == (verdict, invented, 1)
    assert found.details["n_invented"] == len(invented)
    assert found.shown_details(has_content=False).get("n_invented") == len(invented)
    assert "invented" not in found.shown_details(has_content=False)


async def test_each_member_of_a_panel_knows_the_specifics() -> None:
    members = [LLMJudge(ScriptedChat(always=said("supported"), name=name)) for name in "ab"]
    record = run_of("fee", answer="It costs 40 euros. Pay it to Quillfeather.")
    found, _ = await diagnosed(record, judge=ConsensusPanel(members), metrics=(*BUNDLE, "invented_specifics"))
    assert (verdict_of(found), found.details["agreement"]) == ("unsupported", 1.0)


async def test_an_answer_of_which_not_all_claims_were_read_is_not_ok() -> None:
    long = said(*["supported"] * 41)
    long["verdicts"] = long["verdicts"][:40]
    found, _ = await diagnosed(run_of("fee"), long)
    assert (verdict_of(found), found.details["because"]) == ("undetermined", "claims_unknown")


async def test_a_panel_gives_the_verdict_of_most_runs() -> None:
    replies = [said("supported"), said("not_supported"), said("not_supported")]
    members = [LLMJudge(ScriptedChat(always=reply, name=name)) for name, reply in zip("abc", replies, strict=True)]
    found, _ = await diagnosed(run_of("fee"), judge=ConsensusPanel(members))
    assert (verdict_of(found), found.value) == ("unsupported", 0.0)
    assert found.details["panel"] == {"verdicts": {"ok": 1, "unsupported": 2}, "repeats": 1}
    assert found.judge is not None
    assert found.judge.model.startswith("panel:")


@pytest.mark.parametrize(
    ("answer", "reply", "verdict"),
    [
        (TEXTS["fee"], said("supported", sufficient=False), "unknown_retrieval"),
        ("I do not know.", said(**REFUSED), "wrongly_refused"),
    ],
)
async def test_a_judge_that_reads_sufficiency_decides_a_tie(
    answer: str, reply: dict[str, Any], verdict: str
) -> None:
    members = [OverlapJudge(), LLMJudge(ScriptedChat(always=reply))]
    found, _ = await diagnosed(run_of("fee door", answer=answer), judge=ConsensusPanel(members))
    assert verdict_of(found) == verdict
    assert found.details["agreement"] == 0.5


async def test_a_judge_that_fails_has_no_say_in_a_panel() -> None:
    members = [
        LLMJudge(ScriptedChat(always=reply, name=name))
        for name, reply in {"a": "no JSON", "b": "no JSON", "c": said("not_supported")}.items()
    ]
    found, _ = await diagnosed(run_of("fee"), judge=ConsensusPanel(members))
    assert (verdict_of(found), found.state) == ("unsupported", "ok")


async def test_the_version_holds_every_task_that_it_reads() -> None:
    plain, _ = await diagnosed(run_of("fee"), said("supported"))
    judge = LLMJudge(ScriptedChat([said("supported")]), scale="umbrela")
    other, _ = await diagnosed(run_of("fee"), judge=judge)
    assert plain.version != other.version, "another grading may give another verdict"
    assert plain.judge is not None
