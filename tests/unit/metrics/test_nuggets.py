"""The nugget metric: which contexts count, the reasons without a number, and the identities of its six outputs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.errors import ConfigError
from ragtrace.judges import AssignedNugget, LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.metrics import MetricOptions, nugget_scores
from ragtrace.model import Labels, MetricResult, RagRecord
from tests import make
from tests.unit.metrics import cases

SCRIPT = [
    {"nuggets": ["in Oslo", "since 2010"]},
    {"labels": [{"id": 1, "importance": "vital"}, {"id": 2, "importance": "okay"}]},
    {"assignments": [{"id": 1, "support": "support"}, {"id": 2, "support": "partial_support"}]},
]
NAMES = ("nuggets_all", "nuggets_vital", "nuggets_weighted")


async def run(made: RagRecord, chat: ScriptedChat, judge: Any = None, **options: Any) -> dict[str, MetricResult]:
    return await cases.run("nuggets", made, judge=judge or LLMJudge(chat), **options)


def shown(chat: ScriptedChat, name: str = "nuggets_create") -> str:
    return next(call.user for call in chat.prompts if call.schema_name == name)


async def test_six_numbers_and_what_stands_behind_them() -> None:
    results = await run(make.record("Oslo.", " "), ScriptedChat(SCRIPT))
    assert [results[name].value for name in NAMES] == [0.75, 1.0, 1.25 / 1.5]
    assert [results[f"{name}_strict"].value for name in NAMES] == [0.5, 1.0, 1.0 / 1.5]
    assert sum(result.llm_calls for result in results.values()) == 3
    details = results["nuggets_all"].details
    assert (details["grades"], details["contexts"], details["vital"]) == ("none", 1, 1)
    assert details["list"][1] == {"text": "since 2010", "vital": False, "support": "partial_support"}
    assert "list" not in results["nuggets_vital"].details


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (make.record("x", query=" "), "missing_input:query"),
        (make.record("x", answer=""), "no_answer"),
        (make.record(" "), "no_contexts"),
        (make.record("x", outcome="partial"), "partial_run"),
        (make.record("x", labels=Labels(grades={"p1": 2})), "no_contexts"),
    ],
)
async def test_without_input_nothing_is_asked(made: RagRecord, reason: str) -> None:
    chat = ScriptedChat()
    results = await run(made, chat)
    assert {(result.state, result.reason) for result in results.values()} == {("na", reason)}
    assert (len(results), chat.calls) == (6, 0)


async def test_no_nuggets_and_no_vital_ones() -> None:
    none = await run(make.record("x"), ScriptedChat([{"nuggets": []}]))
    assert {(result.state, result.reason) for result in none.values()} == {("na", "no_claims")}
    okay = {"labels": [{"id": 1, "importance": "okay"}]}
    some = await run(
        make.record("x"),
        ScriptedChat([{"nuggets": ["a"]}, okay, {"assignments": [{"id": 1, "support": "support"}]}]),
    )
    assert {name: some[name].value for name in NAMES} == dict(zip(NAMES, (1.0, None, 1.0), strict=True))
    assert some["nuggets_vital_strict"].reason == "no_claims"


@pytest.mark.parametrize(
    ("scale", "grades", "used"),
    [
        ("direct5", {"p1": 3, "p2": 2, "p3": 5}, ["p1", "p3"]),
        ("direct5", {"p1": 3}, ["p1"]),
        ("umbrela_mapped", {"p1": 1, "p2": 3, "p3": 4}, ["p2", "p3"]),
        ("umbrela_mapped_strict", {"p1": 1, "p2": 2, "p3": 4}, ["p2", "p3"]),
    ],
)
async def test_contexts_that_are_related_by_the_records_labels(
    scale: Any, grades: dict[str, int], used: list[str]
) -> None:
    chat = ScriptedChat(SCRIPT)
    results = await run(make.record("One.", "Two.", "Three.", labels=Labels(grades=grades, scale=scale)), chat)
    texts = {"p1": "One.", "p2": "Two.", "p3": "Three."}
    assert [key for key, text in texts.items() if text in shown(chat)] == used
    result = results["nuggets_all"]
    assert (result.details["grades"], result.details["used"]) == ("labels", used)
    assert result.details["ungraded"] == 3 - len(grades)
    assert result.judge is not None
    assert result.judge.label_scale == scale


async def test_labels_of_other_passages_are_none() -> None:
    results = await run(make.record("x", labels=Labels(grades={"else": 1})), ScriptedChat(SCRIPT))
    assert results["nuggets_all"].details["grades"] == "none"
    assert results["nuggets_all"].state == "ok"


async def test_grades_that_are_none() -> None:
    results = await run(make.record("x", labels=Labels(grades={"p1": 9})), ScriptedChat())
    assert {(result.state, result.reason) for result in results.values()} == {("error", "invalid_grade")}


async def test_the_judges_grades_when_asked_for() -> None:
    grades = {"grades": [{"id": 1, "grade": 0}, {"id": 2, "grade": 0}]}
    chat = ScriptedChat([grades])
    judge = LLMJudge(chat, scale="umbrela")
    results = await run(make.record("x", "y"), chat, judge, nuggets_from_graded=True)
    assert results["nuggets_all"].reason == "no_contexts"
    assert results["nuggets_all"].judge is not None
    assert results["nuggets_all"].judge.label_scale == "umbrela_mapped"
    assert [call.schema_name for call in chat.prompts] == ["umbrela"]
    good = ScriptedChat([{"grades": [{"id": 1, "grade": 4}]}, *SCRIPT])
    found = await run(make.record("x"), good, nuggets_from_graded=True)
    assert found["nuggets_all"].details["grades"] == "judge"
    assert found["nuggets_all"].llm_calls == 4
    assert (
        found["nuggets_all"].version != (await run(make.record("x"), ScriptedChat(SCRIPT)))["nuggets_all"].version
    )


async def test_a_judge_without_prompts_cannot() -> None:
    results = await run(make.record("x"), ScriptedChat(), OverlapJudge())
    assert {(result.state, result.reason) for result in results.values()} == {("na", "unsupported_by_judge")}


async def test_a_failure_is_no_number_and_tells_what_it_took() -> None:
    results = await run(
        make.record("x"), ScriptedChat([SCRIPT[0], SCRIPT[1], {"assignments": []}, {"assignments": []}])
    )
    assert {(result.state, result.reason) for result in results.values()} == {("error", "judge_incomplete")}
    assert results["nuggets_all"].llm_calls == 4


def test_as_many_as_thirty() -> None:
    for number in (0, 31):
        with pytest.raises(ConfigError, match="max_nuggets is 1 to 30"):
            MetricOptions(max_nuggets=number)


NUGGETS = st.lists(
    st.builds(
        AssignedNugget,
        text=st.just("a"),
        is_vital=st.booleans(),
        support=st.sampled_from(["support", "partial_support", "not_support"]),
    ),
    min_size=1,
    max_size=20,
)


@given(NUGGETS)
def test_the_outputs_hang_together(nuggets: list[AssignedNugget]) -> None:
    lax, strict = nugget_scores(nuggets), nugget_scores(nuggets, strict=True)
    for one, other in zip(lax, strict, strict=True):
        if one is None or other is None:
            assert one is other
        else:
            assert 0.0 <= other <= one <= 1.0
    everything, vital, weighted = lax
    if vital is not None and everything is not None and weighted is not None:
        # An okay nugget counts half: the weighted mean lies between the other two.
        assert min(everything, vital) - 1e-12 <= weighted <= max(everything, vital) + 1e-12
    else:
        assert weighted == everything
