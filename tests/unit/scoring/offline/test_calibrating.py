"""What is asked again for a calibration: the opposite length setting, and passages one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.errors import JudgeUnavailable
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.llm.scripted import ScriptedChat
from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.eval_context import MetricOptions
from ragtrace.metrics.registry import select
from ragtrace.model import Labels, MetricResult, Passage, Pool, RagRecord
from ragtrace.scoring import Scorer
from ragtrace.scoring.offline.calibrating import (
    CalibrationScorer,
    debiases_length,
    gradable,
    grades_passages,
    opposite_options,
)

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext


@dataclass(frozen=True, slots=True, kw_only=True)
class WithLength(MetricOptions):
    """Options that have the length setting, whether ours do or not."""

    length_debias: bool = True


class Lengthy:
    """A user's metric that says 1 with the paragraph about length and .5 without."""

    spec = MetricSpec(
        name="lengthy",
        summary="-",
        needs=("answer",),
        outputs=(Output(name="lengthy"),),
        calls="none",
        source="a test",
        options=("length_debias",),
    )

    async def compute(self, case: EvalContext) -> list[MetricResult]:
        is_on: Any = getattr(case.options, "length_debias", None)
        return [MetricResult(name="lengthy", state="ok", value=1.0 if is_on else 0.5)]


def record(*texts: str, **more: Any) -> RagRecord:
    passages = tuple(Passage(id=f"p{i}", text=text, rank=i + 1) for i, text in enumerate(texts))
    return RagRecord(id="1", query="Where?", answer="Oslo.", pools=(Pool(stage="used", passages=passages),), **more)


def scorer(judge: Any, *metrics: Any, options: MetricOptions | None = None) -> Scorer:
    return Scorer(metrics=metrics, judge=judge, embedder=None, options=options or MetricOptions())


async def test_only_the_records_named_are_judged_again_with_the_opposite_setting() -> None:
    base = scorer(None, Lengthy(), options=WithLength())
    session = CalibrationScorer(scorer=base, rejudged=frozenset({"1"}))
    found = await session.results(record("x"))
    assert {result.key: result.value for result in found} == {"lengthy": 1.0, "lengthy@length_debias": 0.5}
    assert found[0].version != found[1].version
    other = await session.results(replace(record("x"), id="2"))
    assert [result.key for result in other] == ["lengthy"]


def test_options_without_the_setting_have_no_opposite() -> None:
    off = opposite_options(WithLength())
    assert isinstance(off, WithLength)
    assert off.length_debias is False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Without:
        k_values: tuple[int, ...] = ()

    assert opposite_options(Without()) is None
    assert debiases_length(Lengthy.spec)
    assert not debiases_length(select(["faithfulness"])[0].spec)


def test_metrics_that_ask_for_grades() -> None:
    asks = {name: grades_passages(select([name])[0].spec) for name in ("p_at_k", "mrr", "faithfulness")}
    assert asks == {"p_at_k": True, "mrr": True, "faithfulness": False}


async def test_passages_are_graded_together_and_one_by_one() -> None:
    def grades(*given: int) -> dict[str, Any]:
        return {"grades": [{"id": i, "grade": grade} for i, grade in enumerate(given, start=1)]}

    chat = ScriptedChat([grades(4, 4), grades(4, 4), grades(5), grades(2)])
    session = CalibrationScorer(scorer=scorer(LLMJudge(chat), *select(["p_at_k"])), gated=frozenset({"1"}))
    found = {result.key: result for result in await session.results(record("a", "b"))}
    assert found["p_at_k"].value == 1.0
    assert found["batch_gate"].details["pairs"] == [(4, 5), (4, 2)]
    assert chat.calls == 4
    assert all(('"1"' in prompt.user) and ('"2"' not in prompt.user) for prompt in chat.prompts[2:])


async def test_labels_of_the_record_are_not_taken_for_the_judges() -> None:
    chat = ScriptedChat([{"grades": [{"id": 1, "grade": 1}]}])
    session = CalibrationScorer(scorer=scorer(LLMJudge(chat), *select(["p_at_k"])))
    found = await session.results(record("a", labels=Labels(grades={"p0": 5})))
    assert found[0].value == 0.0
    gold = CalibrationScorer(scorer=scorer(LLMJudge(ScriptedChat()), *select(["ra_nwg"])))
    assert (await gold.results(record("a", labels=Labels(grades={"p0": 5}))))[0].state == "ok"


@pytest.mark.parametrize(
    ("judge", "state", "reason"),
    [
        (None, "na", "unsupported_by_judge"),
        (OverlapJudge(), "na", "unsupported_by_judge"),
        (LLMJudge(ScriptedChat(always=JudgeUnavailable("gone"))), "error", "judge_unavailable"),
    ],
)
async def test_a_judge_that_gives_no_grades_gives_no_pairs(judge: Any, state: str, reason: str) -> None:
    session = CalibrationScorer(scorer=scorer(judge, *select(["p_at_k"])), gated=frozenset({"1"}))
    found = {result.key: result for result in await session.results(record("a", "b"))}["batch_gate"]
    assert (found.state, found.reason) == (state, reason)


def test_what_can_be_graded() -> None:
    twice = Pool(
        stage="retrieved",
        passages=(
            Passage(id="a", text="x", rank=1),
            Passage(id="a", text="x", rank=2),
            Passage(id="b", text=" ", rank=3),
        ),
    )
    assert [p.id for p in gradable(RagRecord(id="1", pools=(twice,)))] == ["a"]
    assert gradable(RagRecord(id="1")) == []
