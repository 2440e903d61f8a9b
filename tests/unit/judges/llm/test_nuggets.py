"""Nuggets: calls, batches, windows, the special nugget, the one repair, and what the cache spares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.errors import JudgeIncomplete, JudgeInvalidOutput
from ragtrace.judges import AssignedNuggets, LLMJudge, Lru, NuggetSet, ScriptedChat, nugget_key, nuggets_of
from ragtrace.judges.llm.nuggets import NOTHING_KNOWN
from tests.unit.judges.records import data_of, record

if TYPE_CHECKING:
    from ragtrace.model import RagRecord


def created(*texts: str) -> dict[str, Any]:
    return {"nuggets": list(texts)}


def labels(*words: str) -> dict[str, Any]:
    return {"labels": [{"id": n, "importance": word} for n, word in enumerate(words, start=1)]}


def assignments(*words: str) -> dict[str, Any]:
    return {"assignments": [{"id": n, "support": word} for n, word in enumerate(words, start=1)]}


def numbered(count: int) -> list[str]:
    return [f"fact {n}" for n in range(1, count + 1)]


async def asked(chat: ScriptedChat, made: RagRecord | None = None, **options: Any) -> AssignedNuggets:
    given = record("Oslo.", "2010.") if made is None else made
    return await nuggets_of(range(len(given.contexts)), **options).ask(LLMJudge(chat), given)


def names(chat: ScriptedChat) -> list[str]:
    return [call.schema_name.removeprefix("nuggets_") for call in chat.prompts]


async def test_three_calls_for_ten_nuggets() -> None:
    chat = ScriptedChat([created(*numbered(10)), labels(*["vital"] * 10), assignments(*["support"] * 10)])
    found = await asked(chat)
    assert names(chat) == ["create", "label", "assign"]
    assert (len(found.nuggets), found.made, found.usage.llm_calls) == (10, 10, 3)
    assert set(data_of(chat, 0)) == {"query", "contexts"}
    assert set(data_of(chat, 1)) == {"query", "nuggets"}
    assert set(data_of(chat, 2)) == {"query", "answer", "nuggets"}


async def test_five_calls_for_twenty_and_vital_nuggets_first_in_the_order_they_were_made() -> None:
    words = ["okay", "vital"] * 5
    chat = ScriptedChat(
        [
            created(*numbered(20)),
            labels(*words),
            labels(*words),
            assignments(*["support"] * 10),
            assignments(*["not_support"] * 10),
        ]
    )
    found = await asked(chat)
    assert names(chat) == ["create", "label", "label", "assign", "assign"]
    assert [one.text for one in found.nuggets if one.is_vital] == [f"fact {n}" for n in range(2, 21, 2)]
    assert {one.support for one in found.nuggets if one.is_vital} == {"support"}
    assert list(data_of(chat, 4)["nuggets"].values()) == [f"fact {n}" for n in range(1, 20, 2)]


async def test_only_the_first_are_looked_up() -> None:
    chat = ScriptedChat([created(*numbered(3)), labels("okay", "okay", "vital"), assignments("support", "support")])
    found = await asked(chat, max_scored=2)
    assert [one.text for one in found.nuggets] == ["fact 3", "fact 1"]
    assert found.made == 3


async def test_more_than_thirty_are_cut() -> None:
    chat = ScriptedChat(
        [created(*numbered(31)), *[labels(*["vital"] * 10)] * 3, *[assignments(*["support"] * 10)] * 2]
    )
    found = await asked(chat)
    assert (found.made, found.truncated, len(found.nuggets)) == (30, True, 20)


async def test_windows_of_ten_contexts_update_the_list() -> None:
    texts = [f"Text {n}." for n in range(11)]
    chat = ScriptedChat(
        [created("a"), created("a", "b"), labels("vital", "okay"), assignments("support", "support")]
    )
    found = await asked(chat, record(*texts))
    assert names(chat) == ["create", "create", "label", "assign"]
    assert data_of(chat, 1) == {"query": "Where is the lab?", "contexts": {"1": "Text 10."}, "nuggets": ["a"]}
    assert [one.text for one in found.nuggets] == ["a", "b"]


async def test_blank_and_equal_nuggets_are_one() -> None:
    chat = ScriptedChat([created(" In  Oslo", "", "in oslo", " "), labels("vital"), assignments("support")])
    assert [one.text for one in (await asked(chat)).nuggets] == ["In Oslo"]


async def test_no_nuggets_take_one_call() -> None:
    chat = ScriptedChat([created()])
    assert (await asked(chat)).nuggets == ()
    assert chat.calls == 1


async def test_nuggets_that_the_judge_finds_neither_vital_nor_okay_are_dropped() -> None:
    chat = ScriptedChat([created("a", "b"), labels("na", "na")])
    assert (await asked(chat)).nuggets == ()
    assert chat.calls == 2


async def test_not_enough_information_alone_is_what_an_abstaining_answer_states() -> None:
    chat = ScriptedChat([created("Not enough information."), assignments("support")])
    found = await asked(chat, record("Tea.", answer="The contexts do not say."))
    assert [(one.text, one.is_vital, one.support) for one in found.nuggets] == [(NOTHING_KNOWN, True, "support")]
    assert names(chat) == ["create", "assign"]
    assert data_of(chat, 1)["nuggets"] == {"1": "There is not enough information to answer the query"}


async def test_not_enough_information_among_others_is_dropped() -> None:
    chat = ScriptedChat([created("a", "not enough information"), labels("vital"), assignments("support")])
    assert [one.text for one in (await asked(chat)).nuggets] == ["a"]


async def test_a_missing_label_is_asked_for_once() -> None:
    chat = ScriptedChat(
        [
            created("a", "b"),
            labels("vital"),
            {"labels": [{"id": 2, "importance": "okay"}]},
            assignments("support", "not_support"),
        ]
    )
    found = await asked(chat)
    assert [one.is_vital for one in found.nuggets] == [True, False]
    assert data_of(chat, 2)["nuggets"] == {"2": "b"}


@pytest.mark.parametrize(
    "wrong",
    [
        assignments("support"),
        assignments("support", "support", "support"),
        {"assignments": [{"id": 1, "support": "support"}] * 2},
        {"assignments": []},
    ],
)
async def test_there_is_one_repair_for_the_whole_evaluation(wrong: dict[str, Any]) -> None:
    chat = ScriptedChat([created("a", "b"), labels("vital"), {"labels": [{"id": 2, "importance": "okay"}]}, wrong])
    with pytest.raises(JudgeIncomplete) as caught:
        await asked(chat)
    assert caught.value.usage.llm_calls == 4


@pytest.mark.parametrize("reply", ["", "junk", {"nuggets": "a"}, {"nuggets": [1]}, {"facts": []}, []])
async def test_a_reply_of_another_form_is_repaired_once(reply: Any) -> None:
    chat = ScriptedChat([reply, created("a"), labels("vital"), assignments("support")])
    assert len((await asked(chat)).nuggets) == 1
    with pytest.raises(JudgeInvalidOutput):
        await asked(ScriptedChat([reply, reply]))


async def test_another_answer_costs_the_look_up_alone() -> None:
    chat = ScriptedChat([created("a"), labels("vital"), assignments("support"), assignments("not_support")])
    judge, task = LLMJudge(chat), nuggets_of([0, 1])
    first = await task.ask(judge, record("Oslo.", "2010."))
    again = await task.ask(judge, record("2010.", "Oslo.", query=" Where is  the lab? ", answer="No idea."))
    assert names(chat) == ["create", "label", "assign", "assign"]
    assert (first.cached, again.cached) == (False, True)
    assert (again.usage.llm_calls, again.nuggets[0].support) == (1, "not_support")


@pytest.mark.parametrize("change", [{"query": "Where?"}, {"texts": ("Oslo.",)}, {"model": "other"}])
async def test_another_query_passage_or_model_is_asked_anew(change: dict[str, Any]) -> None:
    cache = Lru[NuggetSet](1_000)

    async def ask(query: str = "Which?", texts: tuple[str, ...] = ("Oslo.", "2010."), model: str = "m") -> int:
        chat = ScriptedChat([created("a"), labels("vital"), assignments("support")], name=model)
        judge = LLMJudge(chat, nugget_cache=cache)
        await nuggets_of(range(len(texts))).ask(judge, record(*texts, query=query))
        return chat.calls

    assert await ask() == 3
    assert await ask(**change) == 3
    assert len(cache) == 2


async def test_what_failed_is_not_kept() -> None:
    cache = Lru[NuggetSet](1_000)
    judge = LLMJudge(ScriptedChat([created("a"), labels(), labels()]), nugget_cache=cache)
    with pytest.raises(JudgeIncomplete):
        await nuggets_of([0]).ask(judge, record("Oslo."))
    assert len(cache) == 0


def test_a_key_takes_any_text() -> None:
    assert len({nugget_key("\ud800", ["a\0b"], "j"), nugget_key("\ud800", ["a", "b"], "j")}) == 2
