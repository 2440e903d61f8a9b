"""The language model judge over scripted replies: form, completeness, one repair, and what is charged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.errors import (
    JudgeError,
    JudgeIncomplete,
    JudgeInvalidOutput,
    JudgeRefused,
    JudgeTimeout,
    JudgeTruncated,
    JudgeUnavailable,
)
from ragtrace.judges import CitationVerdict, Judge, LLMJudge, ScriptedChat, grading_batches
from ragtrace.model import JudgeUsage, Passage, Pool, RagRecord
from ragtrace.prompts import PROMPT_IDS
from tests.unit.judges.records import audit, data_of, parts, record, verdict

TWO = ("The lab is in Oslo.", "It opened in 2010.")
GOOD = audit(["The lab is in Oslo.", "It opened in 2010."], [verdict(1), verdict(2, sources=(2,))])


def tail_of(chat: ScriptedChat, call: int = -1) -> str:
    return chat.prompts[call].user.rsplit("</data-", 1)[1].split("\n", 1)[1]


async def test_audit() -> None:
    chat = ScriptedChat([GOOD])
    judge = LLMJudge(chat)
    assert isinstance(judge, Judge)
    found = await judge.audit(record(*TWO))
    assert [(claim.verdict, claim.support, claim.sources) for claim in found.claims] == [
        ("supported", 1.0, (0,)),
        ("supported", 1.0, (1,)),
    ]
    assert (found.attempted, found.noncommittal, found.truncated) == (True, False, False)
    assert found.usage == JudgeUsage(llm_calls=1, input_tokens=100, output_tokens=10)
    assert data_of(chat) == {
        "query": "Where is the lab?",
        "contexts": {"1": TWO[0], "2": TWO[1]},
        "answer": "In Oslo, since 2010.",
    }
    assert (chat.prompts[0].schema_name, chat.prompts[0].temperature) == ("audit", 0.0)


async def test_blank_contexts_are_not_numbered_and_indexes_are_restored() -> None:
    chat = ScriptedChat([audit(["a"], [verdict(1, sources=(2, 1, 2))])])
    found = await LLMJudge(chat).audit(record(" ", TWO[0], "\n", TWO[1]))
    assert data_of(chat)["contexts"] == {"1": TWO[0], "2": TWO[1]}
    assert found.claims[0].sources == (3, 1)


async def test_contradicted_and_long_reasons() -> None:
    rows = [verdict(1, "contradicted", reason="no " * 60), verdict(2, "not_supported", ())]
    found = await LLMJudge(ScriptedChat([audit(["a", "b"], rows)])).audit(record(*TWO))
    assert [claim.support for claim in found.claims] == [0.0, 0.0]
    assert len(found.claims[0].reason.split()) == 25


@pytest.mark.parametrize(
    ("rows", "owed"),
    [
        ([verdict(1)], [2]),
        ([verdict(1), verdict(1), verdict(2)], [1]),
        ([verdict(1), verdict(2), verdict(3)], [1, 2]),
        ([verdict(0), verdict(1)], [1, 2]),
        ([verdict(1), verdict(2, sources=(3,))], [2]),
        ([], [1, 2]),
    ],
)
async def test_one_repair_asks_for_what_is_missing(rows: list[dict[str, Any]], owed: list[int]) -> None:
    repair = audit([], [verdict(n, "not_supported", ()) for n in owed])
    chat = ScriptedChat([audit(["a", "b"], rows), repair])
    found = await LLMJudge(chat).audit(record(*TWO))
    expected = ["not_supported" if n in owed else "supported" for n in (1, 2)]
    assert [claim.verdict for claim in found.claims] == expected
    assert data_of(chat)["claims"] == {str(n): "ab"[n - 1] for n in owed}
    assert f"only for the ids {', '.join(map(str, owed))} of" in tail_of(chat)
    assert found.usage.llm_calls == 2
    still = ScriptedChat(always=audit(["a", "b"], rows))
    with pytest.raises(JudgeIncomplete) as caught:
        await LLMJudge(still).audit(record(*TWO))
    assert caught.value.usage == JudgeUsage(llm_calls=2, input_tokens=200, output_tokens=20)
    assert still.calls == 2


async def test_a_form_repair_leaves_none_for_completeness() -> None:
    chat = ScriptedChat(["nonsense", audit(["a", "b"], [verdict(1)]), GOOD])
    with pytest.raises(JudgeIncomplete):
        await LLMJudge(chat).audit(record(*TWO))
    assert chat.calls == 2
    assert '"required":' in tail_of(chat)  # the repair repeats the schema


async def test_more_than_forty_claims() -> None:
    claims = [f"c{i}" for i in range(41)]
    chat = ScriptedChat([audit(claims, [verdict(n) for n in range(1, 41)])])
    found = await LLMJudge(chat).audit(record(*TWO))
    assert (len(found.claims), found.truncated, chat.calls) == (40, True, 1)


async def test_blank_claims_are_dropped_with_their_verdicts() -> None:
    chat = ScriptedChat([audit(["a", " ", "c"], [verdict(1), verdict(3, "contradicted")])])
    found = await LLMJudge(chat).audit(record(*TWO))
    assert [(claim.text, claim.verdict) for claim in found.claims] == [("a", "supported"), ("c", "contradicted")]


def row(part: int, cites: str | int, support: str = "full") -> dict[str, Any]:
    return {"part": part, "cites": cites, "support": support}


async def test_citations_are_asked_once_and_never_when_dangling() -> None:
    given = record(*TWO, answer_parts=parts(("p1", "p1", "gone"), (), ("p0", "p1")))
    rows = [row(1, "2"), row(3, "1", "partial"), row(3, 2, "none")]
    chat = ScriptedChat([audit([], [], rows)])
    found = await LLMJudge(chat).audit(given)
    assert found.citations == (
        CitationVerdict(part=0, citation="p1", support="full"),
        CitationVerdict(part=2, citation="p0", support="partial"),
        CitationVerdict(part=2, citation="p1", support="none"),
    )
    assert data_of(chat)["parts"] == [
        {"part": 1, "text": "Part 0.", "cites": ["2"]},
        {"part": 3, "text": "Part 2.", "cites": ["1", "2"]},
    ]


async def test_citations_may_be_named_by_id() -> None:
    given = record(*TWO, answer_parts=parts(("p1",)))
    found = await LLMJudge(ScriptedChat([audit([], [], [row(1, "p1")])])).audit(given)
    assert found.citations[0].support == "full"


async def test_ids_that_read_like_other_numbers_are_shown_as_given() -> None:
    given = record(*TWO, ids=("2", "1"), answer_parts=parts(("2",), ("1",)))
    chat = ScriptedChat([audit([], [], [row(1, "2", "full"), row(2, "1", "none")])])
    found = await LLMJudge(chat).audit(given)
    assert data_of(chat)["cited_as"] == {"1": "2", "2": "1"}
    assert [(each.citation, each.support) for each in found.citations] == [("2", "full"), ("1", "none")]


async def test_a_citation_of_a_blank_context_supports_nothing_and_is_not_asked() -> None:
    given = record(TWO[0], " ", answer_parts=parts(("p1",)))
    chat = ScriptedChat([audit([], [])])
    found = await LLMJudge(chat).audit(given)
    assert found.citations == (CitationVerdict(part=0, citation="p1", support="none"),)
    assert "parts" not in data_of(chat)


@pytest.mark.parametrize("rows", [[row(1, "1")], [row(1, "1"), row(1, "2"), row(1, "2", "none")]])
async def test_missing_or_contradicting_citations_are_repaired(rows: list[dict[str, Any]]) -> None:
    given = record(*TWO, answer_parts=parts(("p0", "p1")))
    chat = ScriptedChat([audit([], [], rows), audit([], [], [row(1, "2", "partial")])])
    found = await LLMJudge(chat).audit(given)
    assert [each.support for each in found.citations] == ["full", "partial"]
    assert data_of(chat)["parts"] == [{"part": 1, "text": "Part 0.", "cites": ["2"]}]
    with pytest.raises(JudgeIncomplete):
        await LLMJudge(ScriptedChat(always=audit([], [], rows))).audit(given)


async def test_equal_doubles_and_unasked_citations_do_no_harm() -> None:
    given = record(*TWO, answer_parts=parts(("p0",)))
    chat = ScriptedChat([audit([], [], [row(1, "1"), row(1, "1"), row(9, "1"), row(1, "7")])])
    assert [each.support for each in (await LLMJudge(chat).audit(given)).citations] == ["full"]


def pool_record(n: int, **fields: Any) -> RagRecord:
    passages = tuple(Passage(id=f"d{i}", text=f"text {i}", rank=i + 1) for i in range(n))
    used = Pool(stage="used", passages=(Passage(id="other", text="not graded", rank=1),))
    pools = (Pool(stage="retrieved", passages=passages), used)
    return RagRecord(id="r1", query="q", pools=pools, **fields)


async def test_grades_in_shuffled_batches_lead_back_to_their_passages() -> None:
    given = pool_record(23)
    batches = grading_batches(given)
    replies = [
        {"grades": [{"id": n, "grade": 1 + int(p.id[1:]) % 5} for n, p in enumerate(batch, 1)]} for batch in batches
    ]
    chat = ScriptedChat(replies)
    found = await LLMJudge(chat).grades(given)
    assert found.grades == {f"d{i}": 1 + i % 5 for i in range(23)}
    assert (found.scale, found.usage.llm_calls) == ("direct5", 3)
    shown = [list(data_of(chat, call)["passages"].values()) for call in range(3)]
    assert [len(texts) for texts in shown] == [10, 10, 3]
    assert shown == [[passage.text for passage in batch] for batch in batches]
    order = [text for texts in shown for text in texts]
    assert order != sorted(order)


def test_the_order_of_grading_is_fixed_by_the_trace() -> None:
    def order(trace_id: str) -> list[str]:
        return [p.id for batch in grading_batches(pool_record(12, trace_id=trace_id)) for p in batch]

    assert order("a" * 32) == order("a" * 32)
    assert order("a" * 32) != order("b" * 32)
    assert sorted(order("a" * 32)) == sorted(f"d{i}" for i in range(12))


async def test_doubled_and_blank_passages_are_not_graded_twice_or_at_all() -> None:
    given = record("one", "two", "one again", " ", ids=("a", "b", "a", "c"))
    chat = ScriptedChat([{"grades": [{"id": 1, "grade": 2}, {"id": 2, "grade": 2}]}])
    assert (await LLMJudge(chat).grades(given)).grades == {"a": 2, "b": 2}
    assert (await LLMJudge(ScriptedChat()).grades(record(" "))).grades == {}


@pytest.mark.parametrize("grade", [0, 6, -1, 4.0, 4.5, "6", "4.0", "4/5", "four", "", True, None, 10**40])
async def test_a_grade_is_an_integer_1_to_5(grade: Any) -> None:
    chat = ScriptedChat(always={"grades": [{"id": 1, "grade": grade}]})
    with pytest.raises(JudgeInvalidOutput):
        await LLMJudge(chat).grades(record("x"))
    assert chat.calls == 2


async def test_a_missing_grade_is_asked_for_alone() -> None:
    given = record("one", "two", "three")
    order = grading_batches(given)[0]
    chat = ScriptedChat(
        [{"grades": [{"id": 1, "grade": 5}, {"id": 3, "grade": 1}]}, {"grades": [{"id": 2, "grade": 3}]}]
    )
    grades = (await LLMJudge(chat).grades(given)).grades
    assert grades == {order[0].id: 5, order[1].id: 3, order[2].id: 1}
    assert data_of(chat)["passages"] == {"2": order[1].text}


async def test_one_repair_for_all_batches() -> None:
    chat = ScriptedChat(
        [
            {"grades": [{"id": n, "grade": 3} for n in range(1, 10)]},
            {"grades": [{"id": 10, "grade": 3}]},
            {"grades": []},
        ]
    )
    with pytest.raises(JudgeIncomplete) as caught:
        await LLMJudge(chat).grades(pool_record(12))
    assert caught.value.usage.llm_calls == 3


async def test_a_second_batch_of_another_form_is_not_repaired() -> None:
    repaired = {"grades": [{"id": n, "grade": 3} for n in range(1, 11)]}
    chat = ScriptedChat(["junk", repaired, "junk", repaired])
    with pytest.raises(JudgeInvalidOutput):
        await LLMJudge(chat).grades(pool_record(12))
    assert chat.calls == 3


async def test_batches_of_one() -> None:
    chat = ScriptedChat(always={"grades": [{"id": 1, "grade": 4}]})
    assert len((await LLMJudge(chat, batch_size=1).grades(pool_record(5))).grades) == 5
    assert chat.calls == 5
    with pytest.raises(ValueError, match="1 to 10"):
        LLMJudge(chat, batch_size=11)


def question(text: str, *, noncommittal: bool = False) -> dict[str, Any]:
    return {"question": text, "noncommittal": noncommittal}


async def test_questions() -> None:
    chat = ScriptedChat(
        [{"questions": [question("A?"), question(" ", noncommittal=True), question("B?"), question("C?")]}]
    )
    found = await LLMJudge(chat).questions(record(*TWO), 2)
    assert [each.text for each in found.questions] == ["A?", "B?"]
    assert chat.prompts[0].temperature == 0.3
    assert data_of(chat) == {"answer": "In Oslo, since 2010."}
    assert tail_of(chat).endswith("Write 2.")


@pytest.mark.parametrize("rows", [[], [question(" ")]])
async def test_no_question_at_all(rows: list[dict[str, Any]]) -> None:
    chat = ScriptedChat(always={"questions": rows})
    with pytest.raises(JudgeIncomplete):
        await LLMJudge(chat).questions(record(*TWO), 3)
    assert chat.calls == 2


async def test_facts() -> None:
    reply = {
        "facts": ["f1", "", "f3"],
        "attributions": [{"id": 1, "sources": [2]}, {"id": 3, "sources": []}],
    }
    chat = ScriptedChat([reply])
    found = await LLMJudge(chat).facts(record(" ", *TWO, reference="The lab opened in Oslo in 2010."))
    assert [(fact.text, fact.sources) for fact in found.facts] == [("f1", (2,)), ("f3", ())]
    assert data_of(chat)["reference"] == "The lab opened in Oslo in 2010."


@pytest.mark.parametrize(
    "rows", [[], [{"id": 1, "sources": [3]}], [{"id": 1, "sources": []}, {"id": 2, "sources": []}]]
)
async def test_facts_are_repaired_once(rows: list[dict[str, Any]]) -> None:
    first = {"facts": ["f1"], "attributions": rows}
    chat = ScriptedChat([first, {"facts": [], "attributions": [{"id": 1, "sources": [1]}]}])
    found = await LLMJudge(chat).facts(record(*TWO, reference="r"))
    assert found.facts[0].sources == (0,)
    assert data_of(chat)["facts"] == {"1": "f1"}
    with pytest.raises(JudgeIncomplete):
        await LLMJudge(ScriptedChat(always=first)).facts(record(*TWO, reference="r"))


@pytest.mark.parametrize(("with_reference", "target"), [(True, "the reference"), (False, "In Oslo, since 2010.")])
async def test_relevance(*, with_reference: bool, target: str) -> None:
    chat = ScriptedChat([{"verdicts": [{"id": 2, "relevant": False}, {"id": 1, "relevant": True}]}])
    given = record(TWO[0], "", TWO[1], reference="the reference")
    found = await LLMJudge(chat).relevance(given, with_reference=with_reference)
    assert dict(found.relevant) == {0: True, 2: False}
    assert data_of(chat)["answer"] == target


async def test_relevance_repair_and_no_context() -> None:
    rows = [{"id": 1, "relevant": True}]
    chat = ScriptedChat([{"verdicts": rows}, {"verdicts": [{"id": 2, "relevant": True}]}])
    found = await LLMJudge(chat).relevance(record(*TWO), with_reference=False)
    assert dict(found.relevant) == {0: True, 1: True}
    with pytest.raises(JudgeIncomplete):
        await LLMJudge(ScriptedChat(always={"verdicts": rows})).relevance(record(*TWO), with_reference=False)
    assert (await LLMJudge(ScriptedChat()).relevance(record(" "), with_reference=False)).relevant == {}


JUNK = [
    "",
    " \n",
    "null",
    "[]",
    "3",
    "{}",
    '"supported"',
    "I cannot judge this.",
    '{"attempted": true',
    "NaN",
    "\ud800",
    '{"attempted": "\\ud800"}',
    "[" * 100_000,
    '{"a":' * 100_000,
    "9" * 10_000,
    json.dumps(GOOD | {"attempted": 1}),
    json.dumps(GOOD | {"claims": None}),
    json.dumps(GOOD | {"claims": [1]}),
    json.dumps(GOOD | {"verdicts": {}}),
    json.dumps(audit(["a"], [verdict(1, "mostly")])),
    json.dumps(audit(["a"], [verdict(1) | {"id": 1.0}])),
    json.dumps(audit(["a"], [verdict(1) | {"id": "one"}])),
    json.dumps(audit(["a"], [verdict(1) | {"id": float("nan")}])),
    json.dumps(audit(["a"], [verdict(1) | {"sources": [True]}])),
]


@pytest.mark.parametrize("text", JUNK, ids=range(len(JUNK)))
async def test_junk_is_repaired_once_and_then_an_error(text: str) -> None:
    with pytest.raises(JudgeInvalidOutput) as caught:
        await LLMJudge(ScriptedChat(always=text)).audit(record(*TWO))
    assert caught.value.usage == JudgeUsage(llm_calls=2, input_tokens=200, output_tokens=20)
    assert len(str(caught.value)) < 200
    found = await LLMJudge(ScriptedChat([text, GOOD])).audit(record(*TWO))
    assert (len(found.claims), found.usage.llm_calls) == (2, 2)


async def test_a_reply_of_100_mb_is_junk() -> None:
    await test_junk_is_repaired_once_and_then_an_error(" " * 100_000_000 + json.dumps(GOOD))


FIELDS = [
    "claims", "verdicts", "citations", "attempted", "noncommittal", "id", "grades", "grade", "facts",
    "attributions", "sources", "verdict", "reason", "part", "cites", "support",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(JSON | st.text(max_size=30), max_size=2))
async def test_whatever_a_model_replies_only_judge_errors_come_out(replies: list[Any]) -> None:
    given_record = record(*TWO, reference="r", answer_parts=parts(("p0",)))
    for task in ("audit", "grades", "facts"):
        try:
            found = await getattr(LLMJudge(ScriptedChat(list(replies))), task)(given_record)
        except JudgeError as error:
            found = error
        assert found.usage.llm_calls >= 1


@pytest.mark.parametrize(
    "error", [JudgeRefused("no"), JudgeTruncated("cut"), JudgeTimeout("slow"), JudgeUnavailable("x")]
)
async def test_an_error_of_the_model_is_raised_at_once_and_charged(error: JudgeError) -> None:
    error.usage = JudgeUsage(llm_calls=1, input_tokens=7)
    chat = ScriptedChat([error, GOOD])
    with pytest.raises(type(error)) as caught:
        await LLMJudge(chat).audit(record(*TWO))
    assert (chat.calls, caught.value.usage) == (1, JudgeUsage(llm_calls=1, input_tokens=7))
    repaired = ScriptedChat(["junk", type(error)("again")])
    with pytest.raises(type(error)) as caught:
        await LLMJudge(repaired).audit(record(*TWO))
    assert caught.value.usage == JudgeUsage(llm_calls=2, input_tokens=100, output_tokens=10)


async def test_a_model_that_breaks_its_contract() -> None:
    with pytest.raises(JudgeError, match="ZeroDivisionError") as caught:
        await LLMJudge(ScriptedChat([ZeroDivisionError()])).audit(record(*TWO))
    assert caught.value.usage.llm_calls == 1


def test_versions() -> None:
    judge = LLMJudge(ScriptedChat())
    versions = {task: judge.version(task) for task in sorted(judge.tasks)}
    assert versions["citations"] == versions["audit"]
    # Sufficiency is asked in the audit, and by a prompt of its own where the audit did not say.
    assert len(set(versions.values())) == len(PROMPT_IDS) + 1
    assert LLMJudge(ScriptedChat(name="other")).version("audit") != versions["audit"]
    assert (judge.name, LLMJudge(ScriptedChat(), "mine").name) == ("openai:scripted", "mine")


async def test_a_script_that_ran_out_is_a_server_that_is_gone() -> None:
    with pytest.raises(JudgeUnavailable, match="no reply for call 2"):
        await LLMJudge(ScriptedChat(["junk"])).audit(record(*TWO))
