"""Every expression of every board on a real Prometheus with a backfilled month: nothing is empty, numbers are right."""

from __future__ import annotations

import pytest

from ragtrace import semconv
from ragtrace.stats import (
    Sums,
    WeightSums,
    mean_interval,
    mean_whatever_is_missing,
    share_changes,
    weighted_shares,
    wilson,
)
from ragtrace_dashboards import LOWER_IS_BETTER, SERIES, Config, Sample, boards, interval_end, recording_groups
from tests.dashboards import lint
from tests.dashboards.month import AN_HOUR, DAY, Month
from tests.dashboards.promql import filled
from tests.dashboards.server import backfill, needs_prometheus, record, serving

pytestmark = [pytest.mark.slow, needs_prometheus]
END = 1_780_002_000 // 7_200 * 7_200
CONFIG = Config()
BOARDS = boards(CONFIG)
RULES = [rule for group in recording_groups(CONFIG) for rule in group.rules]
ASKED = [(uid, where, expr) for uid, board in BOARDS.items() for where, expr in lint.expressions(board)]
QUIET = {"annotation Releases"}  # a month without a release
WATCHED = [it.name for it in CONFIG.metrics]


@pytest.fixture(scope="module")
def month():
    return Month.until(END)


@pytest.fixture(scope="module")
def server(tmp_path_factory, month):
    folder = tmp_path_factory.mktemp("prometheus")
    backfill(folder, month.text())
    record(folder, RULES, END - 2 * DAY, END, 900)
    with serving(folder) as found:
        yield found


@pytest.mark.parametrize(("uid", "where", "expr"), ASKED, ids=[f"{uid} {where}" for uid, where, _ in ASKED])
def test_it_shows_something(server, uid, where, expr):
    # Lines of several metrics have no band.
    values = {
        "metric": "faithfulness"
        if where.endswith((" lower", " upper", " least", " most"))
        else "harm_at_k|faithfulness"
    }
    found = server.ask(filled(expr, **values), END)
    if where in QUIET:
        return
    assert found, expr
    assert all(it["value"][1] != "NaN" for it in found), expr


def targets(uid, number, **values):
    panel = next(it for it in lint.panels(BOARDS[uid]) if it["id"] == number)
    return {it["refId"]: filled(it["expr"], **values) for it in panel["targets"]}


def by_metric(result):
    return {it["metric"]["gen_ai_evaluation_name"]: float(it["value"][1]) for it in result}


def asked_of(server, number):
    return {ref: by_metric(server.ask(expr, END)) for ref, expr in targets("ragtrace-overview", number).items()}


def test_the_table_has_the_means_and_the_drop(server, month):
    table = asked_of(server, 11)
    assert all(set(column) == set(WATCHED) for column in table.values())
    for metric in WATCHED:
        mean, normal = month.mean(metric, END - DAY, END), month.mean(metric, END - 15 * DAY, END - DAY)
        assert table["mean"][metric] == pytest.approx(mean, abs=0.002)
        assert table["normal"][metric] == pytest.approx(normal, abs=0.002)
        assert table["lower"][metric] < table["mean"][metric] < table["upper"][metric]
        drop = mean - normal if metric in LOWER_IS_BETTER else normal - mean
        assert table["drop"][metric] == pytest.approx(drop, abs=0.003)
        assert table["near"][metric] >= table["drop"][metric] / table["limit"][metric] - 1e-9
        assert table["n"][metric] == pytest.approx(24 * AN_HOUR, rel=0.02)
    assert max(table["near"], key=table["near"].get) == "faithfulness"
    assert [metric for metric, near in table["near"].items() if near > 1] == ["faithfulness"]


def test_the_line_of_answers_names_what_fell_and_since_when(server):
    one = {number: server.ask(*targets("ragtrace-overview", number).values(), END) for number in (1, 2, 3)}
    assert [it["value"][1] for it in one[1]] == ["1"]
    (since,) = one[2]
    assert since["metric"]["gen_ai_evaluation_name"] == "faithfulness"
    assert END - DAY - 3_600 <= float(since["value"][1]) / 1_000 <= END - DAY + 6 * 3_600
    (where,) = one[3]
    assert where["metric"]["ragtrace_diagnosis_verdict"] == "lost_in_rerank"


def test_nothing_is_said_of_a_prometheus_without_rules(tmp_path, month):
    backfill(tmp_path, month.text())
    with serving(tmp_path) as server:
        for number in (1, 2, 3, 11, 28, 29):
            for expr in targets("ragtrace-overview", number).values():
                assert server.ask(expr, END) == []
    for panel in lint.panels(BOARDS["ragtrace-overview"]):
        if panel["id"] in {1, 11, 28, 29}:
            assert "rules are not loaded" in panel["fieldConfig"]["defaults"]["noValue"]


def test_the_table_of_trust_has_the_share_scored_and_the_bounds(server, month):
    table = asked_of(server, 76)
    assert 0 < len(table["scored"]) <= 7
    for metric, scored in table["scored"].items():
        assert scored == pytest.approx(0.8, abs=0.001)
        scores = month.within(metric, END - DAY, END)
        n, x, xx = len(scores), sum(scores), sum(it**2 for it in scores)
        due = 24 * AN_HOUR * 1.25
        bounds = mean_whatever_is_missing(mean_interval(Sums(n, x, n, x, xx)), wilson(0.2 * due, due))
        assert table["least"][metric] == pytest.approx(bounds.low, abs=0.003)
        assert table["most"][metric] == pytest.approx(bounds.high, abs=0.003)


def test_the_slices_have_the_drop_of_the_series_near_their_alarm(server, month):
    table = asked_of(server, 53)
    assert set(table["drop"]) == {"faithfulness"}
    fell = month.mean("faithfulness", END - 15 * DAY, END - DAY) - month.mean("faithfulness", END - DAY, END)
    assert table["drop"]["faithfulness"] == pytest.approx(fell, abs=0.003)


def test_bands_and_table_have_the_interval_of_the_command_line(server):
    sample = Sample(window="1d", where='gen_ai_evaluation_name!=""')
    names = (semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2)
    sums = [by_metric(server.ask(sample.sum(name), END)) for name in names]
    table = asked_of(server, 11)
    for metric in WATCHED:
        found = mean_interval(Sums(*(column[metric] for column in sums)))
        assert table["lower"][metric] == pytest.approx(found.low, abs=1e-4)
        assert table["upper"][metric] == pytest.approx(found.high, abs=1e-4)


@pytest.mark.parametrize(
    ("n", "mean", "s2"), [(10, 1.0, 0.0), (10, 0.9, 0.09), (3, 0.4, 0.1), (1, 1.0, 0.0), (900, 0.95, 0.01)]
)
def test_the_band_holds_for_few_and_for_equal_scores(server, n, mean, s2):
    found = mean_interval(Sums(n, n * mean, n, n * mean, n * (s2 + mean**2)))
    for side, expected in (("-", found.low), ("+", found.high)):
        expr = interval_end(f"vector({mean})", f"vector({n})", f"vector({s2})", side)
        assert float(server.ask(expr, END)[0]["value"][1]) == pytest.approx(expected, abs=1e-4)


def test_the_trend_falls_out_of_its_band(server):
    asked = targets("ragtrace-investigate", 11, metric="faithfulness")
    drawn = {ref: server.series(expr, END - DAY, END, 7_200)[0]["values"] for ref, expr in asked.items()}
    normal, upper = ([float(value) for _, value in drawn[ref]] for ref in ("normal", "upper"))
    assert upper[0] > normal[0]
    assert upper[-1] < normal[-1]


FEW = ("support", "A", 0.95), ("support", "B", 0.60), ("docs", "A", 0.92)
FALLEN = 0.50
WORTH = {
    semconv.SCORE_N: lambda _: 1.0, semconv.SCORE_W: lambda _: 1.0, semconv.SCORE_W2: lambda _: 1.0,
    semconv.SCORE_WX: lambda x: x, semconv.SCORE_W2X: lambda x: x, semconv.SCORE_W2X2: lambda x: x * x,
    semconv.SCORE_LOW_W: lambda x: 1 - x,
}  # fmt: skip


@pytest.fixture(scope="module")
def two_judges(tmp_path_factory):
    """16 days of ten scores an hour of each: two judges of one workflow, and one workflow that falls in the last day."""
    folder, lines = tmp_path_factory.mktemp("judges"), []
    for name, worth in WORTH.items():
        lines.append(f"# TYPE {SERIES[name].removesuffix('_total')} counter\n")
        for workflow, judge, mean in FEW:
            whose = (
                f'job="app",gen_ai_workflow_name="{workflow}",gen_ai_evaluation_name="faithfulness",'
                f'ragtrace_judge_model="{judge}",ragtrace_judge_version="{judge}"'
            )
            total = 0.0
            for at in range(END - 16 * DAY, END + 1, 3_600):
                total += 10 * worth(FALLEN if workflow == "docs" and at > END - DAY else mean)
                lines.append(f"{SERIES[name]}{{{whose}}} {total:.6f} {at}\n")
    backfill(folder, [*lines, "# EOF\n"])
    record(folder, RULES, END - DAY, END, 900)
    with serving(folder) as found:
        yield found


def by_series(result):
    names = ("gen_ai_workflow_name", "ragtrace_judge_version")
    return {tuple(it["metric"][name] for name in names): float(it["value"][1]) for it in result}


@pytest.mark.parametrize(("number", "ref"), [(11, "mean"), (42, "mean"), (41, "A")])
def test_no_mean_mixes_judges_or_workflows(two_judges, number, ref):
    found = by_series(two_judges.ask(targets("ragtrace-investigate", number)[ref], END))
    means = {("support", "A"): 0.95, ("support", "B"): 0.60, ("docs", "A"): FALLEN}
    assert found == pytest.approx({key: mean for key, mean in means.items() if key in found}, abs=0.001)
    assert len(found) == {11: 2, 42: 3, 41: 3}[number]  # two lines beside their normal and bands


def test_the_panel_of_the_alerts_link_shows_the_series_that_fell_and_its_limit(two_judges):
    drop, limit = (
        by_series(two_judges.ask(expr, END))
        for expr in list(targets("ragtrace-investigate", 21, metric="faithfulness").values())[2:4]
    )
    assert set(drop) == set(limit) == {("docs", "A")}
    assert drop["docs", "A"] > limit["docs", "A"]
    (calm,) = two_judges.ask(list(targets("ragtrace-investigate", 21, workflow="support").values())[2], END)
    assert float(calm["value"][1]) < 0.01


def test_a_band_is_drawn_where_one_line_is_left(two_judges):
    one, every = targets("ragtrace-investigate", 11, workflow="docs"), targets("ragtrace-investigate", 11)
    for ref in ("lower", "upper"):
        assert len(two_judges.ask(one[ref], END)) == 1
        assert two_judges.ask(every[ref], END) == []


PARTS = {"ok": (80.0, 50.0), "lost_in_rerank": (5.0, 25.0), "unsupported": (15.0, 20.0), "undetermined": (0.0, 5.0)}
"""Runs an hour before and in the last day, by verdict, with weights of 1 and 3 in turns."""


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory):
    folder, lines, sums = tmp_path_factory.mktemp("verdicts"), [], {}
    for name, each in ((semconv.DIAGNOSIS_W, 2.0), (semconv.DIAGNOSIS_W2, 5.0)):
        lines.append(f"# TYPE {SERIES[name].removesuffix('_total')} counter\n")
        for verdict, (before, now) in PARTS.items():
            sums[name, verdict] = [each * before * 14 * 24, each * now * 24]
            total = 0.0
            for at in range(END - 20 * DAY, END + 1, 3_600):
                total += each * (now if at > END - DAY else before)
                whose = f'job="app",gen_ai_workflow_name="support",ragtrace_diagnosis_verdict="{verdict}"'
                lines.append(f"{SERIES[name]}{{{whose}}} {total:.6f} {at}\n")
    backfill(folder, [*lines, "# EOF\n"])
    record(folder, RULES, END - 7_200, END, 900)
    with serving(folder) as found:
        yield (
            found,
            [
                {
                    it: WeightSums(sums[semconv.DIAGNOSIS_W, it][at], sums[semconv.DIAGNOSIS_W2, it][at])
                    for it in PARTS
                }
                for at in (0, 1)
            ],
        )


def by_verdict(result):
    return {it["metric"]["ragtrace_diagnosis_verdict"]: float(it["value"][1]) for it in result}


def test_the_table_of_verdicts_has_the_numbers_of_python(diagnosed):
    server, (before, now) = diagnosed
    table = {ref: by_verdict(server.ask(expr, END)) for ref, expr in targets("ragtrace-investigate", 72).items()}
    changes = {it.name: it for it in share_changes(before, now) if it.name != "ok"}
    assert {name for column in table.values() for name in column} == set(changes)
    for name, it in changes.items():
        wanted = {"before": it.before, "now": it.now, "change": it.difference}
        assert {ref: column[name] for ref, column in table.items()} == pytest.approx(wanted, abs=0.001)
    assert max(table["change"], key=table["change"].get) == "lost_in_rerank"


def test_the_stack_of_verdicts_has_the_share_of_each(diagnosed):
    server, (_, now) = diagnosed
    (expr,) = targets("ragtrace-investigate", 71).values()
    shares = {name: it.mean for name, it in weighted_shares(now).items() if name != "ok"}
    assert by_verdict(server.ask(expr, END)) == pytest.approx(shares, abs=0.001)


def test_the_ledger_counts_a_spool_once_whoever_tells_of_it(tmp_path):
    """Two processes that share a spool, one with a spool of its own, one that hands its traces over."""
    told = {
        ("a", "", "skipped"): 70, ("a", "", "spooled"): 20, ("a", "s1", "scored"): 29, ("a", "s1", "pending"): 1,
        ("b", "", "skipped"): 90, ("b", "", "spooled"): 10, ("b", "s1", "scored"): 30, ("b", "s1", "pending"): 0,
        ("c", "", "skipped"): 5, ("c", "", "spooled"): 7, ("c", "s2", "scored"): 7,
        ("d", "", "skipped"): 11, ("d", "", "spooled"): 12,
    }  # fmt: skip
    lines = [
        f'ragtrace_ledger{{job="rag-app",instance="{process}",ragtrace_state="{state}"'
        + (f',ragtrace_spool="{spool}"' if spool else "")
        + f"}} {n} {END}\n"
        for (process, spool, state), n in told.items()
    ]
    backfill(tmp_path, ["# TYPE ragtrace_ledger gauge\n", *lines, "# EOF\n"])
    (expr,) = targets("ragtrace-scorer", 34).values()
    with serving(tmp_path) as server:
        found = {it["metric"]["ragtrace_state"]: float(it["value"][1]) for it in server.ask(expr, END)}
    assert found == {"skipped": 176, "scored": 37, "pending": 1}


def test_the_share_of_runs_with_a_sign_is_over_all_runs_of_the_workflow(tmp_path):
    """Two processes of one workflow with a sign in a fifth of its runs, and another workflow without signs."""
    told = {
        (semconv.RUNS, "a", "support", ""): 60,
        (semconv.RUNS, "b", "support", ""): 40,
        (semconv.RUNS, "a", "docs", ""): 50,
        (semconv.RUNS_SIGNED, "a", "support", "answer_guessed"): 15,
        (semconv.RUNS_SIGNED, "b", "support", "answer_guessed"): 5,
        (semconv.RUNS_SIGNED, "b", "support", "tool_unused"): 0,
        (semconv.RUNS_SIGNED, "a", "docs", "answer_guessed"): 0,
    }
    lines = []
    for name in (semconv.RUNS, semconv.RUNS_SIGNED):
        lines.append(f"# TYPE {SERIES[name].removesuffix('_total')} counter\n")
        for (counter, process, workflow, sign), most in told.items():
            if counter != name:
                continue
            whose = f'job="rag-app",instance="{process}",gen_ai_workflow_name="{workflow}"'
            whose += f',ragtrace_sign="{sign}"' if sign else ""
            times = range(END - 7_200, END + 1, 60)
            lines += [f"{SERIES[name]}{{{whose}}} {most * n} {at}\n" for n, at in enumerate(times)]
    backfill(tmp_path, [*lines, "# EOF\n"])
    (expr,) = targets("ragtrace-scorer", 37).values()
    with serving(tmp_path) as server:
        found = {tuple(it["metric"].values()): float(it["value"][1]) for it in server.ask(expr, END)}
    assert found == {("support", "answer_guessed"): pytest.approx(0.2, abs=0.001)}


def test_what_waits_in_a_spool_is_counted_once_whoever_tells_of_it(tmp_path):
    """Three processes of one spool, two of which have units of their own to write, and two without a spool."""
    told = {
        ("a", "s1"): (30, 100),
        ("b", "s1"): (31, 100),
        ("c", "s1"): (30, 100),
        ("a", ""): (2, 50),
        ("b", ""): (3, 50),
        ("d", ""): (5, 50),
        ("e", ""): (7, 50),
    }
    lines = []
    for place, name in enumerate((semconv.QUEUE_SIZE, semconv.QUEUE_CAPACITY)):
        lines.append(f"# TYPE {SERIES[name]} gauge\n")
        for (process, spool), numbers in told.items():
            whose = f'job="rag-app",instance="{process}"' + (f',ragtrace_spool="{spool}"' if spool else "")
            lines.append(f"{SERIES[name]}{{{whose}}} {numbers[place]} {END}\n")
    backfill(tmp_path, [*lines, "# EOF\n"])
    (expr,) = targets("ragtrace-scorer", 12).values()
    with serving(tmp_path) as server:
        (found,) = server.ask(expr, END)
    assert float(found["value"][1]) == 48 / 300
