"""Context precision and recall: modes, indexes and calls."""

from __future__ import annotations

from functools import partial

import pytest

from ragtrace.judges import LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.metrics import (
    CoroutineMetric,
    EvalContext,
    MetricOptions,
    all_metrics,
    context_precision,
    evaluate,
    expected,
    select,
)
from tests import make
from tests.unit.metrics import cases


async def run(name, made, judge):
    return (await cases.run(name, made, judge=judge))[name]


@pytest.mark.parametrize(
    ("reference", "mode", "shown"),
    [
        (None, "without_reference", "In Oslo."),
        (" ", "without_reference", "In Oslo."),
        ("gold", "with_reference", "gold"),
    ],
)
async def test_precision_says_what_it_was_judged_against(reference, mode, shown) -> None:
    chat = ScriptedChat([{"verdicts": [{"id": 1, "relevant": True}]}])
    result = await run("context_precision", make.record("c", reference=reference), LLMJudge(chat))
    assert result.value == 1.0
    assert result.details["mode"] == mode
    assert f'"answer":"{shown}"' in chat.prompts[0].user.replace(": ", ":")


@pytest.mark.parametrize("reference", [None, " "])
async def test_precision_that_needs_a_reference_is_na_without_one(reference) -> None:
    spec, chat = all_metrics()["context_precision"].spec, ScriptedChat()
    against_it = CoroutineMetric(spec, partial(context_precision, needs_reference=True))
    made = make.record("c", reference=reference)
    (result,) = await evaluate([against_it], EvalContext(made, judge=LLMJudge(chat)))
    assert (result.state, result.reason, chat.calls) == ("na", "missing_input:reference", 0)


async def test_precision_keeps_the_indexes_of_the_record() -> None:
    chat = ScriptedChat([{"verdicts": [{"id": 1, "relevant": False}, {"id": 2, "relevant": True}]}])
    result = await run("context_precision", make.record("", "b", "c"), LLMJudge(chat))
    assert result.value == 0.5
    assert result.details["contexts"] == [1, 2]
    assert result.details["relevant"] == [2]


async def test_recall_names_the_contexts_of_each_fact() -> None:
    reply = {"facts": ["f1", "f2"], "attributions": [{"id": 1, "sources": [1]}, {"id": 2, "sources": []}]}
    result = await run("context_recall", make.record(" ", "b", reference="r"), LLMJudge(ScriptedChat([reply])))
    assert result.value == 0.5
    assert result.details["facts"] == [{"text": "f1", "sources": [1]}, {"text": "f2", "sources": []}]
    assert result.llm_calls == 1


async def test_recall_without_contexts_is_0_without_a_call_and_without_a_judge() -> None:
    chat = ScriptedChat()
    for judge in (None, OverlapJudge(), LLMJudge(chat)):
        assert (await run("context_recall", make.record(pools=(make.pool(),), reference="r"), judge)).value == 0.0
    assert chat.calls == 0


@pytest.mark.parametrize("name", ["context_precision", "context_recall"])
async def test_the_offline_judge_cannot(name) -> None:
    result = await run(name, make.record("c", reference="r"), OverlapJudge())
    assert (result.state, result.reason) == ("na", "unsupported_by_judge")


@pytest.mark.parametrize("name", all_metrics())
async def test_the_version_that_is_announced_is_that_of_every_result(name: str) -> None:
    """A resumed file and a rescored store hold the scores that they find against it."""
    judge, (metric,) = LLMJudge(ScriptedChat([{}])), select([name])
    announced = {result.name: result for result in expected([metric], judge, None, MetricOptions())}
    for result in (await cases.run(name, make.record("In Oslo."), judge=judge)).values():
        if result.name in announced:
            ahead = announced[result.name]
            assert (result.version, result.judge) == (ahead.version, ahead.judge)
