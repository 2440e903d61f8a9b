"""Every other alert in promtool: when it fires, when it does not, with few scores and in silence."""

from __future__ import annotations

from ragtrace import semconv
from ragtrace_dashboards.alerts import alerts
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.drift import DRIFT_ALERTS
from ragtrace_dashboards.expressions import SERIES
from tests.monitoring.promtool import COARSE, FAITHFULNESS, JUDGE, Scores, counter, firing, gauge, run, scores

SILENT, LAG, ERRORS = "RagtraceScorerSilent", "RagtraceEvaluationLag", "RagtraceJudgeErrors"
BUDGET, CANARY, EMPTY = "RagtraceBudgetSpent", "RagtraceCanaryGap", "RagtraceEmptyRetrievals"
LOW, BLIND, CHANGED = "RagtraceLowScores", "RagtraceDriftBlind", "RagtraceJudgeChanged"
QUICK, SLOW = {SILENT, LAG, ERRORS, BUDGET, CANARY, EMPTY}, {LOW, BLIND, CHANGED}


def drawn(job, *phases):
    return counter(SERIES[semconv.TRACES], {"job": job, "ragtrace_decision": "sampled"}, *phases)


def results(job, outcome, *phases):
    labels = {"job": job, "gen_ai_evaluation_name": "faithfulness", "ragtrace_outcome": outcome}
    return counter(SERIES[semconv.EVALUATIONS], labels, *phases)


def lags(job, le_share, *phases):
    """Return a histogram of lag of which a share is at most so many seconds."""
    name = SERIES[semconv.EVALUATION_LAG]
    grown = [
        counter(f"{name}_bucket", {"job": job, "le": le}, *((h, n * share) for h, n in phases))
        for le, share in le_share.items()
    ]
    return [*grown, counter(f"{name}_count", {"job": job}, *phases)]


def retrievals(job, empty, runs):
    labels = {"job": job, "gen_ai_workflow_name": "support"}
    return [
        counter(SERIES[semconv.RETRIEVAL_EMPTY], labels, (12, empty)),
        counter(f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count", labels, (12, runs)),
    ]


def silence():
    yield [drawn("dead", (4, 10), (8, 10)), results("dead", "ok", (4, 10), (8, 0))], [
        firing(SILENT, 4, 0, "dead"), firing(SILENT, 11.75, 1, "dead")]  # fmt: skip
    yield [drawn("well", (12, 10)), results("well", "ok", (12, 10))], [firing(SILENT, 11.75, 0, "well")]
    yield [drawn("idle", (12, 0)), results("idle", "ok", (12, 0))], [firing(SILENT, 11.75, 0, "idle")]
    yield [drawn("errs", (12, 10)), results("errs", "error", (12, 10))], [firing(SILENT, 11.75, 1, "errs")]
    # One that only captures is well while a worker under another name scores.
    yield [drawn("captures", (12, 10))], [firing(SILENT, 11.75, 0, "captures")]


def judge_errors():
    def case(job, ok, errors, count, hour=11.75):
        return [results(job, "ok", (12, ok)), results(job, "error", (12, errors))], [
            firing(ERRORS, hour, count, job)
        ]

    yield case("ten of a hundred fail", 90, 10, 1)
    yield case("one of a hundred fails", 99, 1, 0)
    yield case("low n: two of four in six hours", 0.3, 0.3, 0)
    yield [results("gone", "ok", (9, 100), (3, 0)), results("gone", "error", (9, 0), (3, 20))], [
        firing(ERRORS, 9, 0, "gone"), firing(ERRORS, 11, 1, "gone")]  # fmt: skip
    yield [results("silent", "ok", (3, 1), (9, 0)), results("silent", "error", (3, 9), (9, 0))], [
        firing(ERRORS, 11.75, 0, "silent")]  # fmt: skip


def lag():
    late, soon = {"60": 0.2, "3600": 1.0, "+Inf": 1.0}, {"60": 1.0, "3600": 1.0, "+Inf": 1.0}
    yield lags("late", late, (12, 60)), [firing(LAG, 11.75, 1, "late")]
    yield lags("soon", soon, (12, 60)), [firing(LAG, 11.75, 0, "soon")]
    yield lags("low n", late, (12, 6)), [firing(LAG, 11.75, 0, "low n")]
    yield lags("stopped", late, (8, 60), (4, 0)), [firing(LAG, 8, 1, "stopped"), firing(LAG, 11.75, 0, "stopped")]
    yield [gauge(SERIES[semconv.QUEUE_OLDEST], {"job": "stuck"}, (6, 10), (6, 5_000))], [
        firing(LAG, 5, 0, "stuck"), firing(LAG, 11.75, 1, "stuck")]  # fmt: skip


def budget():
    def left(job, *phases):
        return [gauge(SERIES[semconv.BUDGET_REMAINING], {"job": job, "ragtrace_unit": "USD", **JUDGE}, *phases)]

    yield left("spends", (4, 10.0), (8, 0.1)), [firing(BUDGET, 3, 0, "spends"), firing(BUDGET, 11.75, 1, "spends")]
    yield left("saves", (4, 10.0), (8, 4.0)), [firing(BUDGET, 11.75, 0, "saves")]
    yield (
        left("next day", (4, 0.0), (8, 10.0)),
        [firing(BUDGET, 3, 1, "next day"), firing(BUDGET, 11, 0, "next day")],
    )


def canaries():
    def gap(job, *phases):
        return [gauge(SERIES[semconv.CANARY_GAP], {"job": job, "ragtrace_judge_model": "small"}, *phases)]

    yield gap("obeys", (4, -0.2), (8, 0.3)), [firing(CANARY, 3, 0, "obeys"), firing(CANARY, 11.75, 1, "obeys")]
    yield gap("stands", (12, 0.02)), [firing(CANARY, 11.75, 0, "stands")]
    yield gap("ends", (6, 0.3)), [firing(CANARY, 5, 1, "ends"), firing(CANARY, 11.75, 0, "ends")]


def empties():
    yield retrievals("a fifth", 20, 100), [firing(EMPTY, 11.75, 1, "a fifth")]
    yield retrievals("all", 100, 100), [firing(EMPTY, 11.75, 1, "all")]
    yield retrievals("a few", 2, 100), [firing(EMPTY, 11.75, 0, "a few")]
    yield retrievals("chance", 0.7, 8), [firing(EMPTY, 11.75, 0, "chance")]  # 4 of 48: the lower bound is .02
    yield retrievals("low n", 4, 4), [firing(EMPTY, 11.75, 0, "low n")]
    yield retrievals("unused", 0, 0), [firing(EMPTY, 11.75, 0, "unused")]


def collected(*groups):
    series, checks = [], []
    for group in groups:
        for more_series, more_checks in group:
            series += more_series
            checks += more_checks
    return series, checks


def test_operation(tmp_path):
    series, checks = collected(silence(), judge_errors(), lag(), budget(), canaries(), empties())
    run(tmp_path, series, checks, only=QUICK)


def test_nothing_is_scraped_at_all(tmp_path):
    run(tmp_path, [drawn("", (1, 0))], [firing(SILENT, 0.75, 0, ""), firing(SILENT, 8, 1, "")], only=[SILENT])


def slow_cases():
    def of(job, *phases):
        return scores(FAITHFULNESS | {"job": job}, *phases)

    def low(job, count, *phases, hour=118):
        return of(job, *phases), [firing(LOW, hour, count, job)]

    yield low("three of ten low for days", 1, Scores(120, 200, low=0.3))
    yield low("nearly all low today", 1, Scores(96, 200), Scores(24, 200, low=0.9))
    yield low("one of ten low", 0, Scores(120, 200, low=0.1))
    yield low("low n", 0, Scores(120, 6, low=1.0))
    yield low("well again", 0, Scores(96, 200, low=0.3), Scores(24, 200, low=0.0))
    yield low("silent since", 0, Scores(60, 200, low=0.9), Scores(96, 0), hour=150)

    def blind(job, count, *phases, hour=160):
        return of(job, *phases), [firing(BLIND, hour, count, job)]

    yield blind("enough", 0, Scores(168, 200))
    yield blind("20 a day", 1, Scores(168, 20))
    yield blind("a metric that stopped", 1, Scores(84, 200), Scores(84, 0))
    yield blind("new: it learns", 0, Scores(60, 20), hour=58)
    yield blind("few of many carry the weight", 1, Scores(168, 200, w2=25.0))

    def judge(job, version, begin_h, hours):
        return scores(
            FAITHFULNESS | {"job": job, "ragtrace_judge_version": version}, Scores(hours, 200), begin_h=begin_h
        )

    yield judge("changes", "a", 0, 96) + judge("changes", "b", 96, 72), [
        firing(CHANGED, 90, 0, "changes"), firing(CHANGED, 106, 1, "changes"), firing(CHANGED, 130, 0, "changes")]  # fmt: skip
    yield (
        judge("as it was", "a", 0, 168),
        [firing(CHANGED, 4, 0, "as it was"), firing(CHANGED, 160, 0, "as it was")],
    )
    yield judge("first", "a", 96, 72), [firing(CHANGED, 106, 0, "first")]


def test_days(tmp_path):
    series, checks = collected(slow_cases())
    run(tmp_path, series, checks, only=SLOW, step_min=COARSE)


def test_no_alert_is_without_a_case():
    assert {it.name for it in alerts(Config())} == QUICK | SLOW | set(DRIFT_ALERTS)
