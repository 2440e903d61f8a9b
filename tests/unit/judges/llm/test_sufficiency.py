"""Sufficiency of the contexts: one field of the audit, one repair where it is missing, never a guessed number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from ragtrace.judges import JudgeParameters, LLMJudge, OverlapJudge, ScriptedChat, make_judge
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.prompts import load
from tests.guards.judge_server import Answer, completion
from tests.unit.judges.records import audit, data_of, record, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import MetricResult
    from tests.guards.judge_server import JudgeServer

LAB = "The lab is in Oslo."
SUFFICIENT, FAITHFUL = "context_sufficiency", "faithfulness"


def reply(**more: object) -> dict[str, Any]:
    return audit(["In Oslo"], [verdict(1)], **more)


async def scored(judge: Any, metrics: Sequence[str] = (SUFFICIENT,), **given: Any) -> dict[str, MetricResult]:
    results = await evaluate(select(metrics), EvalContext(record(LAB, **given), judge=judge))
    return {result.name: result for result in results}


@pytest.mark.parametrize(("word", "value"), [(True, 1.0), (False, 0.0)])
async def test_one_audit_feeds_sufficiency_and_faithfulness(word: object, value: float) -> None:
    chat = ScriptedChat([reply(sufficient=word)])
    found = await scored(LLMJudge(chat), (FAITHFUL, SUFFICIENT))
    assert (found[SUFFICIENT].value, found[FAITHFUL].value, chat.calls) == (value, 1.0, 1)
    assert found[SUFFICIENT].llm_calls == 0, "faithfulness asked first"


async def test_the_question_is_asked_of_refusals_and_blank_answers_too() -> None:
    for answer in ("I do not know.", " "):
        chat = ScriptedChat([audit([], [], sufficient=True, attempted=False)])
        assert (await scored(LLMJudge(chat), answer=answer))[SUFFICIENT].value == 1.0


async def test_a_missing_field_costs_one_call_and_only_who_asks_for_it() -> None:
    chat = ScriptedChat([reply(), {"sufficient": False}])
    found = await scored(LLMJudge(chat), (FAITHFUL, SUFFICIENT))
    assert [call.schema_name for call in chat.prompts] == ["audit", "audit_sufficiency"]
    assert data_of(chat) == {"query": "Where is the lab?", "contexts": {"1": LAB}}
    assert (found[SUFFICIENT].value, found[SUFFICIENT].llm_calls, found[FAITHFUL].llm_calls) == (0.0, 1, 1)
    chat = ScriptedChat([reply()])
    assert (await scored(LLMJudge(chat), (FAITHFUL,)))[FAITHFUL].value == 1.0
    assert chat.calls == 1


# No word on it, or one that is none: each costs one repair, and then there is no number.
ODD: list[Any] = [None, 1, 0, 1.0, "partly", "1", [], {}, [True], "", 2]


@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_field_is_never_a_number(odd: Any) -> None:
    chat = ScriptedChat(always=reply(sufficient=odd))
    found = (await scored(LLMJudge(chat)))[SUFFICIENT]
    assert (found.state, found.value) == ("error", None)
    assert found.reason in {"judge_incomplete", "judge_invalid_output"}
    assert chat.calls == 2


@pytest.mark.parametrize(
    "second", ["", "no JSON", "{}", '{"sufficient": null}', '{"sufficient": "partly"}', "[true]"]
)
async def test_a_repair_that_brings_nothing_is_incomplete(second: str) -> None:
    chat = ScriptedChat([reply(), second])
    found = (await scored(LLMJudge(chat), (FAITHFUL, SUFFICIENT)))[SUFFICIENT]
    assert (found.state, found.reason, chat.calls) == ("error", "judge_incomplete", 2)
    assert found.llm_calls == 1


async def test_an_audit_that_used_its_repair_has_no_second_one() -> None:
    chat = ScriptedChat([audit(["In Oslo"], []), audit([], [verdict(1)])])
    found = await scored(LLMJudge(chat), (FAITHFUL, SUFFICIENT))
    assert (found[FAITHFUL].value, chat.calls) == (1.0, 2)
    assert (found[SUFFICIENT].state, found[SUFFICIENT].reason) == ("error", "judge_incomplete")


async def test_the_offline_judge_does_not_say() -> None:
    found = (await scored(OverlapJudge()))[SUFFICIENT]
    assert (found.state, found.reason) == ("na", "unsupported_by_judge")


@pytest.mark.parametrize(
    ("given", "reason"), [({"query": " "}, "missing_input:query"), ({"pools": ()}, "no_contexts")]
)
async def test_a_missing_input_is_na_without_a_call(given: dict[str, Any], reason: str) -> None:
    chat = ScriptedChat(always=reply(sufficient=True))
    made = replace(record(LAB), **given)
    (found,) = await evaluate(select([SUFFICIENT]), EvalContext(made, judge=LLMJudge(chat)))
    assert (found.state, found.reason, chat.calls) == ("na", reason, 0)


async def test_over_http_the_server_gets_the_field_in_its_schema(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: Answer(body=completion(reply(sufficient=False)))
    judge = make_judge("openai:suff", JudgeParameters(base_url=judge_server.url))
    try:
        found = await scored(judge, (FAITHFUL, SUFFICIENT, "diagnosis"))
    finally:
        await judge.aclose()
    assert (found[SUFFICIENT].value, found["diagnosis"].details["verdict"]) == (0.0, "unknown_retrieval")
    assert len(judge_server.requests) == 1
    sent = json.dumps(judge_server.requests[0].body)
    assert load("audit").schema["required"][0] == "sufficient"  # type: ignore[index]
    assert "sufficient" in sent
    assert found[SUFFICIENT].judge is not None
    assert found[SUFFICIENT].judge.prompt_hash == judge.version("audit")


def test_the_prompts_allow_inference_over_passages_and_refuse_false_premises() -> None:
    for name in ("audit", "audit_sufficiency"):
        task = load(name).task
        assert "false premise" in task
        assert "missing part" in task
        assert "jointly" in task or "together" in task
    assert load("audit").version == 2
