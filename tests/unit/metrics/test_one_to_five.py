"""The 1-to-5 forms: grades, refusal of all that is none, the length paragraph, thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.errors import ConfigError, JudgeTimeout
from ragtrace.judges import LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.metrics import EvalContext, MetricOptions, evaluate, expected, select
from tests import make
from tests.unit.judges.records import data_of
from tests.unit.metrics import cases

if TYPE_CHECKING:
    from ragtrace.model import MetricResult, RagRecord

NAMES = ("faithfulness_1to5", "answer_relevancy_1to5", "answer_coverage_1to5")
every_name = pytest.mark.parametrize("name", NAMES)
PARAGRAPH = "Length is no sign of quality"


def record(*texts: str, **more: Any) -> RagRecord:
    return make.record(*texts, **{"query": "Where?", "reference": "It is in Oslo.", **more})


def graded(grade: Any, **more: Any) -> dict[str, Any]:
    return {"attempted": True, "reason": "It says so.", "grade": grade} | more


async def run(name: str, chat: Any, made: RagRecord | None = None, **options: Any) -> list[MetricResult]:
    made = made or record("The lab is in Oslo.")
    return list((await cases.run(name, made, judge=LLMJudge(chat), **options)).values())


@every_name
@pytest.mark.parametrize(
    ("grade", "unit", "passed"), [(1, 0.0, False), (2, 0.25, False), (3, 0.5, True), (5, 1.0, True)]
)
async def test_a_grade_is_given_in_both_forms(name: str, grade: int, unit: float, *, passed: bool) -> None:
    chat = ScriptedChat([graded(grade)])
    one, other = await run(name, chat)
    assert (one.name, one.value, one.passed) == (name, float(grade), passed)
    assert (other.name, other.value, other.passed) == (f"{name}_normalised", unit, passed)
    assert (one.llm_calls, other.llm_calls, chat.calls) == (1, 0, 1)
    assert one.details["reason"] == "It says so."


@every_name
@pytest.mark.parametrize("grade", [0, 6, -1, 4.0, 3.5, "6", "four", None, True, [4], {"grade": 4}])
async def test_what_is_no_whole_number_from_1_to_5_is_a_failure_after_one_repair(name: str, grade: Any) -> None:
    chat = ScriptedChat(always=graded(grade))
    for result in await run(name, chat):
        assert (result.state, result.reason, result.value) == ("error", "judge_invalid_output", None)
    assert chat.calls == 2


@every_name
@pytest.mark.parametrize("first", ["", "junk", "{", '{"grade": 4', "[]", '{"reason": "no grade"}', "4"])
async def test_a_repair_brings_the_grade(name: str, first: str) -> None:
    results = await run(name, ScriptedChat([first, graded(4)]))
    assert [result.value for result in results] == [4.0, 0.75]
    assert results[0].llm_calls == 2


@every_name
async def test_a_failure_of_the_call_keeps_its_reason(name: str) -> None:
    results = await run(name, ScriptedChat([JudgeTimeout("late")]))
    assert {(result.state, result.reason) for result in results} == {("error", "judge_timeout")}


@every_name
async def test_the_length_paragraph_is_a_variant_of_the_prompt(name: str) -> None:
    debiased, plain = ScriptedChat([graded(4)]), ScriptedChat([graded(4)])
    with_it, without = await run(name, debiased), await run(name, plain, length_debias=False)
    assert PARAGRAPH in debiased.prompts[0].user.partition("<data-")[0]
    assert PARAGRAPH not in plain.prompts[0].user
    assert [call.schema_name for call in plain.prompts] == [f"{name}_plain"]
    for one, other in zip(with_it, without, strict=True):
        assert one.version != other.version
        assert one.judge is not None
        assert other.judge is not None
        assert one.judge.prompt_hash != other.judge.prompt_hash
    assert with_it[0].details["length_debias"] is True
    assert without[0].details["length_debias"] is False


@every_name
@pytest.mark.parametrize("length_debias", [True, False])
async def test_a_result_without_a_call_has_the_version_of_one_with_it(name: str, *, length_debias: bool) -> None:
    """Counts of na and error stand beside the mean of the same series."""
    fine = await run(name, ScriptedChat([graded(4)]), length_debias=length_debias)
    none = await run(name, ScriptedChat(), record(answer=" "), length_debias=length_debias)
    judge = LLMJudge(ScriptedChat())
    ahead = expected(select([name]), judge, None, MetricOptions(length_debias=length_debias))
    assert none[0].reason == "no_answer"
    for one, other, stand_in in zip(fine, none, ahead, strict=True):
        assert (one.version, one.judge) == (other.version, other.judge) == (stand_in.version, stand_in.judge)


@every_name
async def test_the_threshold_is_a_choice(name: str) -> None:
    for grade, passed in ((3, False), (4, True)):
        results = await run(name, ScriptedChat([graded(grade)]), threshold_1to5=4.0)
        assert [result.passed for result in results] == [passed, passed]


@pytest.mark.parametrize("threshold", [0.9, 5.1, float("nan")])
def test_a_threshold_off_the_scale_is_refused(threshold: float) -> None:
    with pytest.raises(ConfigError, match="threshold_1to5 is 1 to 5"):
        MetricOptions(threshold_1to5=threshold)


@pytest.mark.parametrize(
    ("name", "made", "reason"),
    [
        ("faithfulness_1to5", record("Oslo.", answer="\n"), "no_answer"),
        ("faithfulness_1to5", record(" "), "no_contexts"),
        ("faithfulness_1to5", record("Oslo.", outcome="error"), "partial_run"),
        ("answer_relevancy_1to5", record("Oslo.", query=" "), "missing_input:query"),
        ("answer_relevancy_1to5", record(answer=""), "no_answer"),
        ("answer_coverage_1to5", record(" ", reference=" "), "missing_input:reference"),
        ("answer_coverage_1to5", record("Oslo.", answer=""), "no_answer"),
    ],
)
async def test_a_missing_input_asks_nobody(name: str, made: RagRecord, reason: str) -> None:
    chat = ScriptedChat(always=graded(5))
    results = await run(name, chat, made)
    assert [(result.state, result.reason) for result in results] == [("na", reason)] * 2
    assert chat.calls == 0


async def test_a_refusal_is_not_faithful_but_abstained() -> None:
    results = await run("faithfulness_1to5", ScriptedChat([graded(5, attempted=False)]))
    assert {(result.state, result.reason, result.value) for result in results} == {("na", "abstained", None)}
    assert results[0].llm_calls == 1


async def test_only_faithfulness_asks_whether_it_is_an_attempt() -> None:
    without = {"reason": "", "grade": 2}
    assert (await run("faithfulness_1to5", ScriptedChat(always=without)))[0].reason == "judge_invalid_output"
    assert (await run("answer_relevancy_1to5", ScriptedChat([without])))[0].value == 2.0


async def test_coverage_reads_the_reference_and_else_the_contexts() -> None:
    chat = ScriptedChat(always=graded(4))
    given = await run("answer_coverage_1to5", chat, record("Oslo.", " ", "Bergen."))
    assert data_of(chat) == {"query": "Where?", "answer": "In Oslo.", "reference": "It is in Oslo."}
    found = await run("answer_coverage_1to5", chat, record("Oslo.", " ", "Bergen.", reference=None))
    assert data_of(chat) == {"query": "Where?", "answer": "In Oslo.", "contexts": {"1": "Oslo.", "2": "Bergen."}}
    assert (given[0].details["mode"], found[0].details["mode"]) == ("with_reference", "without_reference")


async def test_relevancy_does_not_see_the_contexts() -> None:
    chat = ScriptedChat([graded(4)])
    await run("answer_relevancy_1to5", chat)
    assert set(data_of(chat)) == {"query", "answer"}


async def test_a_judge_that_asks_no_prompts_cannot_do_it() -> None:
    results = await evaluate(select(list(NAMES)), EvalContext(record("Oslo."), judge=OverlapJudge()))
    assert {(result.state, result.reason) for result in results} == {("na", "unsupported_by_judge")}
