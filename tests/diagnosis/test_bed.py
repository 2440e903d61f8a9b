"""260 runs with one broken stage each: the verdict is right in at least 95 %, and never ok for a broken one.

With the offline judge that holds with labels. Without them no verdict is wrong, and most are `undetermined`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ragtrace.judges import JudgeParameters, LLMJudge, OverlapEmbedder, OverlapJudge, make_judge
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import STAGES, VERDICTS, verdict_of
from ragtrace.settings import DEFAULT_METRICS
from tests.diagnosis.bed import FAULTS, SOUND, VARIANTS, Case, Fault, Variant, captured, cases, of_variant
from tests.diagnosis.world import ErringJudge, RewordingJudge, WorldJudge
from tests.guards.judge_server import Answer, JudgeServer, completion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.judges import Judge
    from ragtrace.model import MetricResult, RagRecord, Verdict
    from ragtrace.model.diagnosis import Stage
    from tests.guards.judge_server import Request

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "diagnosis.md"
BEGIN, END = "<!-- bed: held by tests/diagnosis/test_bed.py -->\n", "<!-- bed: end -->\n"
BEGIN_OFFLINE, END_OFFLINE = (
    "<!-- offline bed: held by tests/diagnosis/test_bed.py -->\n",
    "<!-- offline bed: end -->\n",
)
OFFLINE_VARIANTS: tuple[Variant, ...] = ("labels", "neither")
CASES = cases()
REQUIRED = {case.query: case.required for case in CASES}


class Found(NamedTuple):
    """The verdict on one run of the bed."""

    case: Case
    variant: Variant
    verdict: Verdict | None


@cache
def records() -> tuple[RagRecord, ...]:
    return tuple(captured(case, number) for number, case in enumerate(CASES))


def metrics_of(variant: Variant) -> tuple[str, ...]:
    """Return the default metrics; the variant with grades adds one that asks for them."""
    return DEFAULT_METRICS if variant == "neither" else (*DEFAULT_METRICS, "mrr")


async def diagnosed(record: RagRecord, variant: Variant, judge: Judge) -> MetricResult:
    ctx = EvalContext(of_variant(record, variant), judge=judge, embedder=OverlapEmbedder())
    results = await evaluate(select(metrics_of(variant)), ctx)
    (found,) = [result for result in results if result.name == "diagnosis"]
    return found


def confusion(found: list[Found], variant: Variant) -> str:
    """Return a table: a row for each fault, the verdicts and how often each was given."""
    rows = ["| broken on purpose | runs | verdicts | right | stage named |", "|---|---|---|---|---|"]
    for fault in FAULTS:
        own = [it for it in found if (it.case.fault, it.variant) == (fault, variant)]
        counts = Counter(str(it.verdict) for it in own)
        shown = ", ".join(f"`{name}` {counts[name]}" for name in VERDICTS if counts[name])
        right = sum(it.verdict == it.case.expected(variant) for it in own)
        named = sum(it.verdict is not None and STAGES[it.verdict] == _stage(it.case) for it in own)
        rows.append(f"| {fault} | {len(own)} | {shown} | {right} | {named} |")
    return "\n".join(rows)


def _stage(case: Case) -> Stage:
    """Return the stage that is broken; labels name it."""
    return STAGES[case.expected("labels")]


def report(found: list[Found], variants: Sequence[Variant] = VARIANTS) -> str:
    return "\n\n".join(f"With {variant}:\n\n{confusion(found, variant)}" for variant in variants)


def found_by(judge: Judge, variants: Sequence[Variant]) -> list[Found]:
    import asyncio

    async def run() -> list[Found]:
        return [
            Found(case, variant, verdict_of(await diagnosed(record, variant, judge)))
            for variant in variants
            for case, record in zip(CASES, records(), strict=True)
        ]

    return asyncio.run(run())


@cache
def everything() -> list[Found]:
    return found_by(LLMJudge(WorldJudge(required=REQUIRED), grade_cache="off"), VARIANTS)


@cache
def offline() -> list[Found]:
    return found_by(OverlapJudge(), OFFLINE_VARIANTS)


def test_the_bed_is_large_and_no_two_runs_are_alike() -> None:
    assert len(CASES) >= 200
    seen = {(case.query, case.pool, case.selected, case.used, case.answer, case.fault) for case in CASES}
    assert len(seen) == len(CASES)
    assert {case.fault for case in CASES} == {*FAULTS}


def test_capture_saw_what_each_stage_returned() -> None:
    for case, record in zip(CASES, records(), strict=True):
        seen = {pool.stage: pool.ids for pool in record.pools}
        assert seen["retrieved"] == case.pool, case.fault
        assert seen.get("reranked") == case.selected, case.fault
        assert seen["used"] == case.used, case.fault
        assert record.labels is not None
        assert (record.labels.grades, record.answer) == (case.labels, case.answer)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_verdict_is_right_in_95_percent(variant: Variant) -> None:
    own = [it for it in everything() if it.variant == variant]
    right = sum(it.verdict == it.case.expected(variant) for it in own)
    assert right >= 0.95 * len(own), f"{right} of {len(own)} right\n{confusion(own, variant)}"


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in SOUND])
def test_a_broken_run_is_never_ok(fault: Fault) -> None:
    own = [it for it in everything() if it.case.fault == fault]
    assert not [it for it in own if it.verdict in {"ok", None}], report(everything())


def test_a_sound_run_is_never_called_broken() -> None:
    own = [it for it in everything() if it.case.fault in SOUND]
    assert {it.verdict for it in own} <= {"ok", "rightly_refused", "undetermined"}, report(everything())


@pytest.mark.parametrize("variant", VARIANTS)
async def test_questions_in_other_words_cost_no_verdict(variant: Variant) -> None:
    judge = LLMJudge(RewordingJudge(required=REQUIRED), grade_cache="off")
    pairs = list(zip(CASES, records(), strict=True))[:: 1 if variant == "neither" else 7]
    found = [Found(case, variant, verdict_of(await diagnosed(record, variant, judge))) for case, record in pairs]
    right = sum(it.verdict == it.case.expected(variant) for it in found)
    assert right >= 0.95 * len(found), confusion(found, variant)
    assert not [it for it in found if it.case.fault not in SOUND and it.verdict == "ok"], confusion(found, variant)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
async def test_a_judge_with_mistakes_costs_few_verdicts(variant: Variant) -> None:
    """It errs on sufficiency in 7 %, on claims in 3 %, and by one grade in 10 %."""
    judge = LLMJudge(ErringJudge(required=REQUIRED), grade_cache="off")
    found = [
        Found(case, variant, verdict_of(await diagnosed(record, variant, judge)))
        for case, record in zip(CASES, records(), strict=True)
    ]
    right = sum(it.verdict == it.case.expected(variant) for it in found) / len(found)
    broken = [it.verdict == "ok" for it in found if it.case.fault not in SOUND]
    assert right >= 0.88, confusion(found, variant)
    assert sum(broken) <= 0.02 * len(broken), confusion(found, variant)


def test_with_labels_the_offline_judge_is_right_in_95_percent() -> None:
    own = [it for it in offline() if it.variant == "labels"]
    right = sum(it.verdict == it.case.expected("labels") for it in own)
    assert right >= 0.95 * len(own), confusion(own, "labels")


def test_without_labels_no_verdict_of_the_offline_judge_is_wrong() -> None:
    own = [it for it in offline() if it.variant == "neither"]
    wrong = [it for it in own if it.verdict not in {it.case.expected("neither"), "undetermined"}]
    assert not wrong, confusion(own, "neither")
    seen = {it.case.fault for it in own if it.verdict != "undetermined"}
    assert seen == {"healthy", "model invents", "model contradicts"}, confusion(own, "neither")


def test_the_page_shows_the_table_of_the_offline_judge() -> None:
    shown = PAGE.read_text().partition(BEGIN_OFFLINE)[2].partition(END_OFFLINE)[0].strip()
    assert shown == report(offline(), OFFLINE_VARIANTS), f"page should say:\n{report(offline(), OFFLINE_VARIANTS)}"


def test_the_page_shows_the_table() -> None:
    text = PAGE.read_text()
    shown = text.partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == report(everything()).strip(), f"the page should say:\n{report(everything())}"


async def test_the_diagnosis_asks_for_nothing_of_its_own() -> None:
    """With it the default metrics take two calls, and three beside grades, as many as without it."""
    for variant, calls in (("neither", 2), ("grades", 3)):
        for case, record in list(zip(CASES, records(), strict=True))[::13]:
            model = WorldJudge(required=REQUIRED)
            found = await diagnosed(record, variant, LLMJudge(model, grade_cache="off"))  # type: ignore[arg-type]
            assert (len(model.asked), found.llm_calls) == (calls, 0), (case.fault, model.asked)


@pytest.mark.slow
async def test_the_same_verdicts_over_http(judge_server: JudgeServer) -> None:
    model = WorldJudge(required=REQUIRED)

    def answered(request: Request) -> Answer:
        name = request.body["response_format"]["json_schema"]["name"]
        return Answer(body=completion(model.reply(name, request.body["messages"][-1]["content"])))

    judge_server.always = answered
    judge = make_judge("openai:world", JudgeParameters(base_url=judge_server.url))
    local = LLMJudge(WorldJudge(required=REQUIRED), grade_cache="off")
    try:
        for variant in VARIANTS:
            for case, record in list(zip(CASES, records(), strict=True))[::17]:
                found = await diagnosed(record, variant, judge)
                same = await diagnosed(record, variant, local)
                assert verdict_of(found) == verdict_of(same) == case.expected(variant), (case.fault, variant)
    finally:
        await judge.aclose()
    assert len(judge_server.requests) >= 2 * len(VARIANTS) * len(CASES[::17])
