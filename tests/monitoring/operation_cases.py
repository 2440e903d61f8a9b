"""Cases of the scorer, its judge, its budget and the search, in twelve hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards import SERIES, label
from tests.monitoring.cases import Case
from tests.monitoring.promtool import JUDGE, counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.monitoring.cases import Kind

    Phase = tuple[float, float]
    Series = dict[str, str]

SILENT, LAG, ERRORS = "RagtraceScorerSilent", "RagtraceEvaluationLag", "RagtraceJudgeErrors"
BUDGET, CANARY, EMPTY = "RagtraceBudgetSpent", "RagtraceCanaryGap", "RagtraceEmptyRetrievals"
LAST = 11.75
"""The last evaluation of twelve hours, every quarter of one."""


def operation_cases() -> list[Case]:
    return [*_silence(), *_judge_errors(), *_lag(), *_budget(), *_canaries(), *_empties()]


def drawn(job: str, *phases: Phase) -> Series:
    return counter(SERIES[semconv.TRACES], {"job": job, label(semconv.DECISION): "sampled"}, *phases)


def _labels(job: str, outcome: str, judge: str = "") -> dict[str, str]:
    by = {label(semconv.JUDGE_MODEL): judge} if judge else {}
    return {"job": job, "gen_ai_evaluation_name": "faithfulness", label(semconv.OUTCOME): outcome, **by}


def _results(job: str, outcome: str, *phases: Phase, begin_h: float = 0.0, judge: str = "") -> Series:
    return counter(SERIES[semconv.EVALUATIONS], _labels(job, outcome, judge), *phases, begin_h=begin_h)


def _begun(job: str, hour: float) -> Series:
    """Return a counter that begins with a first evaluation and stays so."""
    return gauge(SERIES[semconv.EVALUATIONS], _labels(job, "na"), (LAST + 0.25 - hour, 1.0), begin_h=hour)


def _silence() -> Iterator[Case]:
    yield Case(
        "dead", [drawn("dead", (12, 10)), _results("dead", "ok", (4, 10), (8, 0))],
        {SILENT: [(4, 0), (LAST, 1)]}, kind="silence",
    )  # fmt: skip
    yield Case("well", [drawn("well", (12, 10)), _results("well", "ok", (12, 10))], {SILENT: [(LAST, 0)]})
    yield Case("idle", [drawn("idle", (12, 0)), _results("idle", "ok", (12, 0))], {SILENT: [(LAST, 0)]})
    idle = [drawn("idle since", (4, 10), (8, 0)), _results("idle since", "ok", (4, 10), (8, 0))]
    yield Case("idle since", idle, {SILENT: [(LAST, 0)]})
    yield Case(
        "only errors",
        [drawn("only errors", (12, 10)), _results("only errors", "error", (12, 10))],
        {SILENT: [(LAST, 1)]},
    )
    # One run at night that failed or was cancelled: its outputs are na, at times in a counter that it begins.
    night = (9, 0), (0.25, 4), (2.75, 0)
    for job, result in (
        ("a failed run", _results("a failed run", "na", *night)),
        ("an error", _results("an error", "error", *night)),
        ("the first failed run", _begun("the first failed run", 9.25)),
    ):
        evening = _results(job, "ok", (2, 4), (10, 0))
        yield Case(job, [drawn(job, *night), result, evening], {SILENT: [(9.75, 0), (LAST, 0)]})
    lost = _results("one run is lost", "ok", (2, 4), (10, 0))
    yield Case("one run is lost", [drawn("one run is lost", *night), lost], {SILENT: [(9, 0), (LAST, 1)]})
    # A counter of scores that begins with 0 is none.
    nas = [_results("all is na", "na", (12, 2)), _results("all is na", "ok", (4, 0), begin_h=8)]
    yield Case("all is na", [drawn("all is na", (12, 2)), *nas], {SILENT: [(4, 0), (LAST, 1)]})
    # One that only captures is well while a worker under another name scores.
    yield Case("captures", [drawn("captures", (12, 10))], {SILENT: [(LAST, 0)]})


def _judge_errors() -> Iterator[Case]:
    def case(job: str, ok: float, errors: float, count: int, kind: Kind = "") -> Case:
        series = [_results(job, "ok", (12, ok)), _results(job, "error", (12, errors))]
        return Case(job, series, {ERRORS: [(LAST, count)]}, kind=kind)

    yield case("ten of a hundred fail", 90, 10, 1)
    yield case("one of a hundred fails", 99, 1, 0)
    job = "the second of two judges fails"  # 4 % of all evaluations
    two = [_results(job, "ok", (12, 288), judge="overlap"), _results(job, "error", (12, 12), judge="openai:m")]
    yield Case(job, two, {ERRORS: [(LAST, 1)]})
    job = "both of two judges fail"
    two = [_results(job, "error", (12, n), judge=judge) for judge, n in (("overlap", 288), ("openai:m", 12))]
    yield Case(job, two, {ERRORS: [(LAST, 2)]})
    yield case("two of four in six hours fail", 0.3, 0.3, 0, kind="low n")
    yield Case(
        "an hour sees it", [_results("an hour sees it", "ok", (9, 100), (3, 0)), _results("an hour sees it", "error", (9, 0), (3, 20))],
        {ERRORS: [(9, 0), (11, 1)]},
    )  # fmt: skip
    yield Case(
        "nothing is judged", [_results("nothing is judged", "ok", (3, 1), (9, 0)), _results("nothing is judged", "error", (3, 9), (9, 0))],
        {ERRORS: [(3, 1), (LAST, 0)]}, kind="silence",
    )  # fmt: skip


def _lag() -> Iterator[Case]:
    late, soon = {"60": 0.2, "3600": 1.0, "+Inf": 1.0}, {"60": 1.0, "3600": 1.0, "+Inf": 1.0}

    def case(
        job: str, le_share: dict[str, float], expected: list[tuple[float, int]], *phases: Phase, kind: Kind = ""
    ) -> Case:
        """Return a histogram of lag of which a share is at most so many seconds."""
        name = SERIES[semconv.EVALUATION_LAG]
        grown = [
            counter(f"{name}_bucket", {"job": job, "le": le}, *((h, n * share) for h, n in phases))
            for le, share in le_share.items()
        ]
        return Case(job, [*grown, counter(f"{name}_count", {"job": job}, *phases)], {LAG: expected}, kind=kind)

    yield case("late", late, [(LAST, 1)], (12, 60))
    yield case("soon", soon, [(LAST, 0)], (12, 60))
    yield case("six late ones", late, [(LAST, 0)], (12, 6), kind="low n")
    yield case("late, then nothing", late, [(8, 1), (LAST, 0)], (8, 60), (4, 0), kind="silence")
    oldest = gauge(SERIES[semconv.QUEUE_OLDEST], {"job": "stuck"}, (6, 10), (6, 5_000))
    yield Case("stuck", [oldest], {LAG: [(5, 0), (LAST, 1)]})


def _budget() -> Iterator[Case]:
    def case(job: str, expected: list[tuple[float, int]], *phases: Phase, kind: Kind = "") -> Case:
        labels = {"job": job, label(semconv.UNIT): "USD", **JUDGE}
        return Case(job, [gauge(SERIES[semconv.BUDGET_REMAINING], labels, *phases)], {BUDGET: expected}, kind=kind)

    yield case("spends", [(3, 0), (LAST, 1)], (4, 10.0), (8, 0.1))
    yield case("saves", [(LAST, 0)], (4, 10.0), (8, 4.0))
    falling = [(1.0, 10.0 * (1 - (hour + 1) / 24)) for hour in range(12)]
    yield case("lasts the day", [(3, 0), (8, 0), (LAST, 0)], *falling)
    yield case("the next day", [(3, 1), (11, 0)], (4, 0.0), (8, 10.0))
    yield case("spent, then gone", [(5, 1), (LAST, 0)], (3, 10.0), (3, 0.0), kind="silence")


def _canaries() -> Iterator[Case]:
    def case(job: str, expected: list[tuple[float, int]], *phases: Phase, kind: Kind = "") -> Case:
        labels = {"job": job, label(semconv.JUDGE_MODEL): "small"}
        return Case(job, [gauge(SERIES[semconv.CANARY_GAP], labels, *phases)], {CANARY: expected}, kind=kind)

    yield case("obeys", [(3, 0), (LAST, 1)], (4, -0.2), (8, 0.3))
    yield case("stands", [(LAST, 0)], (12, 0.02))
    yield case("obeyed, then gone", [(5, 1), (LAST, 0)], (6, 0.3), kind="silence")


def _empties() -> Iterator[Case]:
    def case(job: str, count: int, empty: float, runs: float, kind: Kind = "") -> Case:
        labels = {"job": job, "gen_ai_workflow_name": "support"}
        series = [
            counter(SERIES[semconv.RETRIEVAL_EMPTY], labels, (12, empty)),
            counter(f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count", labels, (12, runs)),
        ]
        return Case(job, series, {EMPTY: [(LAST, count)]}, kind=kind)

    yield case("a fifth", 1, 20, 100)
    yield case("all", 1, 100, 100)
    yield case("a few", 0, 2, 100)
    yield case("chance", 0, 0.7, 8)  # 4 of 48: the lower bound is .02
    yield case("24 runs", 0, 4, 4, kind="low n")
    yield case("unused", 0, 0, 0, kind="silence")
