"""Metrics under a panel: what is combined, what is shared, what is counted, and what a failure does."""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.errors import JudgeError, JudgeTimeout, JudgeUnavailable
from ragtrace.judges import ConsensusPanel, LLMJudge, OverlapEmbedder, OverlapJudge, ScriptedChat
from ragtrace.metrics import (
    EvalContext,
    MetricOptions,
    MetricSpec,
    Output,
    agreed,
    combined,
    evaluate,
    expected,
    mean_abs_diff,
    select,
)
from ragtrace.model import Labels, MetricResult, RagRecord
from tests import make
from tests.unit.judges.records import audit, record, verdict
from tests.unit.metrics import cases

LATE = JudgeTimeout("late")
VERDICTS = ("supported", "contradicted")


def grade(value: Any) -> dict[str, Any]:
    return {"attempted": True, "reason": "", "grade": value}


def judge(name: str, *replies: Any, always: Any = None, **more: Any) -> LLMJudge:
    return LLMJudge(ScriptedChat(replies, always=always, name=name), **more)


async def run(names: list[str], panel: Any, made: RagRecord | None = None, **more: Any) -> dict[str, MetricResult]:
    made = made or record("The lab is in Oslo.")
    return await cases.run(names, made, judge=panel, embedder=OverlapEmbedder(), **more)


async def faithful(panel: Any, made: RagRecord | None = None) -> MetricResult:
    return (await run(["faithfulness_1to5"], panel, made))["faithfulness_1to5"]


async def test_judges_are_averaged_and_their_distance_is_told() -> None:
    members = [judge(name, always=grade(value)) for name, value in (("a", 5), ("b", 2), ("c", 4))]
    results = await run(["faithfulness_1to5"], ConsensusPanel(members))
    found = results["faithfulness_1to5"]
    assert (found.value, results["faithfulness_1to5_normalised"].value) == (11 / 3, pytest.approx(2 / 3))
    assert found.passed is True
    assert found.details["panel"] == {
        "judges": [
            {"judge": f"openai:{name}", "scores": [value], "score": value, "std": 0.0, "failures": 0, "reasons": {}}
            for name, value in (("a", 5.0), ("b", 2.0), ("c", 4.0))
        ],
        "consensus": "mean",
        "repeats": 1,
        "mean_abs_diff": 2.0,
    }
    assert found.judge is not None
    assert found.judge.model == "panel:openai:a,openai:b,openai:c"


async def test_the_median_hears_no_outlier() -> None:
    members = [judge(name, always=grade(value)) for name, value in (("a", 5), ("b", 1), ("c", 4))]
    found = await faithful(ConsensusPanel(members, consensus="median"))
    assert (found.value, found.details["panel"]["consensus"]) == (4.0, "median")


async def test_repeats_of_one_judge_have_a_spread_and_no_distance() -> None:
    panel = ConsensusPanel([judge("a", grade(5), grade(4), grade(3))], repeats=3)
    found = await faithful(panel)
    told = found.details["panel"]
    assert (found.value, told["judges"][0]["std"], told["mean_abs_diff"]) == (4.0, 1.0, None)
    assert (found.llm_calls, found.input_tokens, found.output_tokens) == (3, 300, 30)


async def test_a_failed_run_is_no_number() -> None:
    panel = ConsensusPanel([judge("a", grade(4), LATE, grade(0), grade(0)), judge("b", always=grade(2))], repeats=3)
    found = await faithful(panel)
    one, other = found.details["panel"]["judges"]
    assert (found.value, one["scores"], one["failures"]) == (3.0, [4.0], 2)
    assert one["reasons"] == {"judge_timeout": 1, "judge_invalid_output": 1}
    assert (other["scores"], other["failures"]) == ([2.0, 2.0, 2.0], 0)
    assert found.llm_calls == 7


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ([LATE, LATE], "judge_timeout"),
        ([JudgeUnavailable("a"), JudgeUnavailable("b")], "judge_unavailable"),
        ([LATE, JudgeUnavailable("b")], "judge_error"),
        ([grade(0), grade(9)], "judge_error"),
        ([ZeroDivisionError(), ZeroDivisionError()], "judge_error"),
    ],
)
async def test_when_all_fail_there_is_no_number(errors: list[Any], reason: str) -> None:
    panel = ConsensusPanel([judge(name, always=error) for name, error in zip("ab", errors, strict=True)])
    results = await run(["answer_relevancy_1to5"], panel)
    for found in results.values():
        assert (found.state, found.reason, found.value, found.passed) == ("error", reason, None, None)
        assert [one["score"] for one in found.details["panel"]["judges"]] == [None, None]


async def test_metrics_share_tasks_within_each_seat() -> None:
    reply = audit(["in Oslo"], [verdict(1)])
    chats = [ScriptedChat(always=reply, name=name) for name in "ab"]
    panel = ConsensusPanel([LLMJudge(chat) for chat in chats], repeats=2)
    results = await run(["faithfulness", "no_answer", "context_use"], panel)
    assert [chat.calls for chat in chats] == [2, 2]
    assert {result.llm_calls for result in results.values()} == {4, 0}
    assert results["faithfulness"].value == results["context_use"].value == 1.0
    assert results["faithfulness"].details["n_claims"] == 1
    assert results["answered"].details["panel"]["judges"][0]["scores"] == [1.0, 1.0]


async def test_a_metric_that_asks_only_sometimes() -> None:
    chats = [ScriptedChat(always=audit([], [], attempted=False), name=name) for name in "ab"]
    panel = ConsensusPanel([LLMJudge(chat) for chat in chats], repeats=2)
    results = await run(["no_answer"], panel)
    assert (results["answered"].value, results["answered"].llm_calls) == (0.0, 4)
    known = await run(["no_answer"], panel, record("Oslo.", answer="I don't know."))
    assert (known["answered"].value, known["answered"].llm_calls) == (0.0, 0)
    assert sum(chat.calls for chat in chats) == 4


async def test_a_metric_of_ones_own_that_does_not_say_that_it_asks() -> None:
    class Supported:
        spec = MetricSpec(
            name="supported_claims",
            summary="Claims that the contexts support.",
            needs=("answer",),
            outputs=(Output(name="supported_claims", high=100.0, threshold=None),),
            calls="1 judge call",
            source="this test",
        )

        async def compute(self, case: EvalContext) -> list[MetricResult]:
            claims = (await case.audit()).claims
            value = float(sum(claim.verdict == "supported" for claim in claims))
            return [MetricResult(name="supported_claims", state="ok", value=value)]

    chats = [ScriptedChat(always=audit(["in Oslo"], [verdict(1, word)]), name=word) for word in VERDICTS]
    panel = ConsensusPanel([LLMJudge(chat) for chat in chats], repeats=2)
    found = (await evaluate([Supported()], EvalContext(record("The lab is in Oslo."), judge=panel)))[0]
    assert (found.value, found.llm_calls, [chat.calls for chat in chats]) == (0.5, 4, [2, 2])


async def test_a_metric_over_labels_asks_no_member_and_keeps_its_judge() -> None:
    chat = ScriptedChat()
    made = record("Oslo.", "Bergen.", labels=Labels(grades={"p0": 5, "p1": 1}, label_scope="pool"))
    alone = await run(["p_at_k", "mrr"], LLMJudge(chat), made)
    assert await run(["p_at_k", "mrr"], ConsensusPanel([LLMJudge(chat)], repeats=3), made) == alone
    assert chat.calls == 0


async def test_grades_are_combined_for_each_k_and_keep_their_scale() -> None:
    rows = [[5, 1, 4], [1, 1, 4]]
    members = [
        judge(name, always={"grades": [{"id": n, "grade": value} for n, value in enumerate(row, start=1)]})
        for name, row in zip("ab", rows, strict=True)
    ]
    made = record("Oslo.", "Oslo.", "Oslo.", ids=("x", "y", "z"), trace_id="1" * 32)
    results = await run(["p_at_k"], ConsensusPanel(members), made, k_values=(3, 1))
    assert results["p_at_k"].value == 0.5
    assert [one["score"] for one in results["p_at_k"].details["panel"]["judges"]] == [2 / 3, 1 / 3]
    assert (results["p_at_k"].k, results["p_at_k@1"].k) == (3, 1)
    for found in results.values():
        assert found.judge is not None
        assert (found.judge.model, found.judge.label_scale) == ("panel:openai:a,openai:b", "direct5")


async def test_a_run_that_failed_as_a_whole_counts_for_each_k() -> None:
    fine = {"grades": [{"id": 1, "grade": 5}, {"id": 2, "grade": 5}]}
    panel = ConsensusPanel([judge("a", always=fine), judge("b", always=LATE)])
    results = await run(["p_at_k"], panel, record("Oslo.", "Oslo."), k_values=(2, 1))
    assert {key: found.value for key, found in results.items()} == {"p_at_k": 1.0, "p_at_k@1": 1.0}
    for found in results.values():
        assert found.details["panel"]["judges"][1]["failures"] == 1


async def test_a_member_that_cannot_do_it_has_no_say() -> None:
    panel = ConsensusPanel([OverlapJudge(), judge("a", always=grade(4))])
    assert (await faithful(panel)).value == 4.0
    broken = ConsensusPanel([OverlapJudge(), judge("a", always=LATE)])
    assert (await faithful(broken)).reason == "judge_timeout"
    unable = await faithful(ConsensusPanel([OverlapJudge()]))
    assert (unable.state, unable.reason) == ("na", "unsupported_by_judge")


@pytest.mark.parametrize(
    ("attempts", "state"), [([True, True, False], "ok"), ([True, False], "ok"), ([True, False, False], "na")]
)
async def test_na_stands_when_most_say_so(attempts: list[bool], state: str) -> None:
    members = [judge(str(n), always=grade(4) | {"attempted": each}) for n, each in enumerate(attempts)]
    found = await faithful(ConsensusPanel(members))
    assert (found.state, found.reason) == (state, None if state == "ok" else "abstained")
    assert sum(one["failures"] for one in found.details["panel"]["judges"]) == 0


async def test_na_beside_failures_is_a_verdict() -> None:
    panel = ConsensusPanel([judge("a", always=grade(4) | {"attempted": False}), judge("b", always=LATE)])
    found = await faithful(panel)
    assert (found.state, found.reason) == ("na", "abstained")


async def test_a_missing_input_asks_nobody() -> None:
    panel = ConsensusPanel([judge("a")], repeats=3)
    found = await faithful(panel, record("Oslo.", answer=" "))
    assert (found.state, found.reason, found.llm_calls) == ("na", "no_answer", 0)


async def test_what_asks_no_judge_is_computed_once() -> None:
    panel = ConsensusPanel([judge("a"), judge("b")], repeats=3)
    found = (await run(["answer_similarity"], panel))["answer_similarity"]
    assert (found.state, found.embed_calls, "panel" in found.details) == ("ok", 1, False)


async def test_cost_is_the_sum_also_of_embeddings() -> None:
    reply = {"questions": [{"question": "Where is the lab?", "noncommittal": False}]}
    panel = ConsensusPanel([judge("a", always=reply), judge("b", always=reply)], repeats=2)
    found = (await run(["answer_relevancy"], panel))["answer_relevancy"]
    assert (found.llm_calls, found.embed_calls) == (4, 4)


async def test_the_version_holds_members_repeats_and_rule() -> None:
    async def version(*names: str, **more: Any) -> str:
        panel = ConsensusPanel([judge(name, always=grade(4)) for name in names], **more)
        found = await faithful(panel)
        ahead = expected(select(["faithfulness_1to5"]), panel, None, MetricOptions())[0]
        assert (found.version, found.judge) == (ahead.version, ahead.judge)
        return found.version

    alone = (await faithful(judge("a", always=grade(4)))).version
    versions = [
        await version("a"),
        await version("a", "b"),
        await version("a", "b", repeats=2),
        await version("a", "b", consensus="median"),
        alone,
    ]
    assert len(set(versions)) == len(versions)
    assert await version("a", "b") == versions[1]


async def test_a_threshold_that_members_share_is_the_panels() -> None:
    assert ConsensusPanel([OverlapJudge()]).thresholds == OverlapJudge.thresholds
    assert ConsensusPanel([OverlapJudge(), judge("a")]).thresholds == {}


async def test_at_most_three_repeats_of_a_judge_at_once_and_judges_beside_each_other() -> None:
    class Counting(ScriptedChat):
        now = most = 0

        async def complete(self, **asked: Any) -> Any:
            self.now += 1
            self.most = max(self.most, self.now)
            both.update({self.name: self.now})
            seen.append(dict(both))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.now -= 1
            both.update({self.name: self.now})
            return await super().complete(**asked)

    both: dict[str, int] = {}
    seen: list[dict[str, int]] = []
    chats = [Counting(always=grade(4), name=name) for name in "ab"]
    await run(["faithfulness_1to5"], ConsensusPanel([LLMJudge(chat) for chat in chats], repeats=7))
    assert [(chat.calls, chat.most) for chat in chats] == [(7, 3), (7, 3)]
    assert {"a": 3, "b": 3} in seen


async def test_a_task_of_the_panel_itself_is_refused() -> None:
    panel = ConsensusPanel([judge("a", always=grade(4))])
    made = record("Oslo.")
    for ask in (
        panel.audit(made),
        panel.grades(made),
        panel.questions(made, 1),
        panel.facts(made),
        panel.relevance(made, with_reference=False),
    ):
        with pytest.raises(JudgeError, match="has no task"):
            await ask


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_the_arithmetic_is_that_of_the_statistics_module(grades: list[list[int]]) -> None:
    failed = MetricResult(name="x", state="error", reason="judge_invalid_output")
    runs = [
        [{"x": MetricResult(name="x", state="ok", value=float(one)) if one else failed} for one in row]
        for row in grades
    ]
    fine = [[one for one in row if one] for row in grades]
    means = [statistics.mean(row) for row in fine if row]
    for rule in ("mean", "median"):
        found = combined(runs, [str(n) for n in range(len(runs))], rule)[0]
        if not means:
            assert (found.state, found.reason) == ("error", "judge_error")
            continue
        wanted = statistics.mean(means) if rule == "mean" else statistics.median(means)
        assert found.value == pytest.approx(wanted)
        for one, row in zip(found.details["panel"]["judges"], fine, strict=True):
            spread = statistics.stdev(row) if len(row) > 1 else 0.0 if row else None
            assert one["std"] == (None if spread is None else pytest.approx(spread))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.randoms())
def test_the_order_of_judges_changes_nothing(scores: list[float], shuffler: Any) -> None:
    mixed = scores.copy()
    shuffler.shuffle(mixed)
    assert agreed(mixed) == agreed(scores)
    assert agreed(mixed, "median") == agreed(scores, "median")
    assert mean_abs_diff(mixed) == mean_abs_diff(scores)
    assert min(scores) - 1e-15 <= agreed(scores) <= max(scores) + 1e-15


def test_the_pool_is_graded_once_for_each_seat() -> None:
    pool = make.pool("Oslo 1.", "Oslo 2.", "Oslo 3.", stage="retrieved")
    made = make.record(pools=(pool, make.pool("Oslo 1.")))
    chat = ScriptedChat(always={"grades": [{"id": n, "grade": 4} for n in range(1, 4)]})
    found = asyncio.run(
        run(["p_at_k", "mrr", "selection_efficiency"], ConsensusPanel([LLMJudge(chat)], repeats=2), made)
    )
    assert chat.calls == 2
    assert found["p_at_k"].value == 1.0
