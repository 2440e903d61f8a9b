"""Every expression of every board on a real Prometheus with a backfilled month: nothing is empty, numbers are right."""

from __future__ import annotations

import math
from statistics import fmean, pvariance

import pytest

from ragtrace import semconv
from ragtrace.stats.intervals import Interval, Sums, mean_interval, wilson
from ragtrace.stats.shares import WeightSums, mean_whatever_is_missing, share_changes, weighted_shares
from ragtrace_dashboards.boards import boards
from ragtrace_dashboards.config import LOWER_IS_BETTER, Config
from ragtrace_dashboards.expressions import SERIES, Sample, interval_end, low_share_bound
from tests.dashboards import lint
from tests.dashboards.month import AN_HOUR, DAY, METRICS, Month
from tests.dashboards.promql import filled
from tests.dashboards.server import backfill, needs_prometheus, serving

pytestmark = [pytest.mark.slow, needs_prometheus]
END = 1_780_002_000 // 7_200 * 7_200
BOARDS = boards(Config())
ASKED = [(uid, where, expr) for uid, board in BOARDS.items() for where, expr in lint.expressions(board)]
QUIET = {"annotation Releases", "annotation Drift alarms"}  # a month without a release, and none in five minutes


@pytest.fixture(scope="module")
def month():
    return Month.until(END)


@pytest.fixture(scope="module")
def server(tmp_path_factory, month):
    folder = tmp_path_factory.mktemp("prometheus")
    backfill(folder, month.text())
    with serving(folder) as found:
        yield found


@pytest.mark.parametrize(("uid", "where", "expr"), ASKED, ids=[f"{uid} {where}" for uid, where, _ in ASKED])
def test_it_shows_something(server, uid, where, expr):
    # Lines of several metrics have no band.
    values = {"metric": "faithfulness" if where.endswith((" lower", " upper")) else "harm_at_k|faithfulness"}
    found = server.ask(filled(expr, **values), END)
    if where in QUIET:
        return
    assert found, expr
    assert all(it["value"][1] != "NaN" for it in found), expr


def targets(uid, number, **values):
    panel = next(it for it in BOARDS[uid]["panels"] if it["id"] == number)
    return {it["refId"]: filled(it["expr"], **values) for it in panel["targets"]}


def by_metric(result):
    return {it["metric"]["gen_ai_evaluation_name"]: float(it["value"][1]) for it in result}


def test_the_table_has_the_means_and_the_drop(server, month):
    table = {ref: by_metric(server.ask(expr, END)) for ref, expr in targets("ragtrace-overview", 11).items()}
    assert all(set(column) == set(METRICS) for column in table.values())
    for metric in METRICS:
        assert table["mean"][metric] == pytest.approx(month.mean(metric, END - DAY, END), abs=0.002)
        assert table["base"][metric] == pytest.approx(month.mean(metric, END - 15 * DAY, END - DAY), abs=0.002)
        assert table["low"][metric] < table["mean"][metric] < table["high"][metric]
        assert table["missing"][metric] == pytest.approx(0.2, abs=0.001)
        interval = Interval(*(table[ref][metric] for ref in ("mean", "low", "high")))
        n = 24 * AN_HOUR * 1.25
        bounds = mean_whatever_is_missing(interval, wilson(0.2 * n, n))
        assert table["least"][metric] == pytest.approx(bounds.low, abs=0.002)
        assert table["most"][metric] == pytest.approx(bounds.high, abs=0.002)
        assert table["n"][metric] == pytest.approx(24 * AN_HOUR, rel=0.02)
    expected = drops(month)
    for metric, z in table["z"].items():
        is_down = metric in LOWER_IS_BETTER
        drop, error = expected[metric]
        assert table["drop"][metric] == pytest.approx(-drop if is_down else drop, abs=0.002)
        assert z == pytest.approx(((-drop if is_down else drop) - 1 / table["n"][metric]) / error, abs=0.1)
    assert max(table["z"], key=table["z"].get) == "faithfulness"


def drops(month):
    """The fall of each metric in the last day, and its standard error by the documented rule, without recorded rules.

    The wander is then the largest that is believed, .015. With it a fall of .06 is 3.2 standard errors.
    """
    found = {}
    for metric in METRICS:
        hours = [month.within(metric, at - 3_600, at) for at in range(END - DAY + 3_600, END + 1, 3_600)]
        window, before = [x for xs in hours for x in xs], month.within(metric, END - 15 * DAY, END - DAY)
        mean, base, n = fmean(window), fmean(before), len(window)
        s2 = max(pvariance(before), 0.02)
        sampling = s2 * (1 / n + 1 / len(before))
        between = sum((sum(xs) - mean * len(xs)) ** 2 for xs in hours) / n**2 + s2 / len(before)
        found[metric] = base - mean, math.sqrt(max(sampling, between) + 1.5 * 0.015**2)
    return found


def test_bands_and_table_have_the_interval_of_the_command_line(server):
    sample = Sample(window="1d", where='gen_ai_evaluation_name!=""')
    names = (semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2)
    sums = [by_metric(server.ask(sample.sum(name), END)) for name in names]
    low = by_metric(server.ask(sample.low_share, END))
    table = {ref: by_metric(server.ask(expr, END)) for ref, expr in targets("ragtrace-overview", 11).items()}
    share = {side: by_metric(server.ask(low_share_bound(sample, side), END)) for side in "-+"}
    for metric in METRICS:
        found = mean_interval(Sums(*(column[metric] for column in sums)))
        assert table["low"][metric] == pytest.approx(found.low, abs=1e-4)
        assert table["high"][metric] == pytest.approx(found.high, abs=1e-4)
        n, p = table["n"][metric], low[metric]
        expected = mean_interval(Sums(n, n * p, n, n * p, n * p))
        assert (share["-"][metric], share["+"][metric]) == pytest.approx(expected[1:], abs=1e-4)


@pytest.mark.parametrize(
    ("n", "mean", "s2"), [(10, 1.0, 0.0), (10, 0.9, 0.09), (3, 0.4, 0.1), (1, 1.0, 0.0), (900, 0.95, 0.01)]
)
def test_the_band_holds_for_few_and_for_equal_scores(server, n, mean, s2):
    found = mean_interval(Sums(n, n * mean, n, n * mean, n * (s2 + mean**2)))
    for side, expected in (("-", found.low), ("+", found.high)):
        expr = interval_end(f"vector({mean})", f"vector({n})", f"vector({s2})", side)
        assert float(server.ask(expr, END)[0]["value"][1]) == pytest.approx(expected, abs=1e-4)


def test_less_harm_is_no_drop_and_more_is(server):
    """The bad side of harm is up: its z has the other sign than the same move of another metric."""
    expr = targets("ragtrace-overview", 11)["z"]
    renamed = expr.replace("|".join(LOWER_IS_BETTER), "faithfulness")
    assert renamed != expr
    assert by_metric(server.ask(expr, END))["faithfulness"] > 3
    assert by_metric(server.ask(renamed, END))["faithfulness"] < -3


def test_the_trend_falls_out_of_its_band(server):
    asked = targets("ragtrace-investigate", 11, metric="faithfulness")
    drawn = {ref: server.series(expr, END - 3 * DAY, END, 7_200)[0]["values"] for ref, expr in asked.items()}
    base = [float(value) for _, value in drawn["baseline"]]
    upper = [float(value) for _, value in drawn["upper"]]
    assert len(set(base)) == 1  # one look for the whole picture
    assert upper[0] > base[0]
    assert upper[-1] < base[-1]


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
    with serving(folder) as found:
        yield found


def by_series(result):
    names = ("gen_ai_workflow_name", "ragtrace_judge_version")
    return {tuple(it["metric"][name] for name in names): float(it["value"][1]) for it in result}


@pytest.mark.parametrize(
    ("uid", "number", "ref"),
    [("ragtrace-overview", 11, "mean"), ("ragtrace-overview", 21, "mean"), ("ragtrace-investigate", 42, "mean"),
     ("ragtrace-overview", 23, "A"), ("ragtrace-overview", 51, "mean")],
)  # fmt: skip
def test_no_mean_or_share_mixes_judges_or_workflows(two_judges, uid, number, ref):
    expr = targets(uid, number)[ref]
    found = by_series(two_judges.ask(expr, END))
    assert found == pytest.approx(
        {("support", "A"): 0.95, ("support", "B"): 0.60, ("docs", "A"): FALLEN}, abs=0.001
    )


def test_the_panel_of_the_alerts_link_shows_the_workflow_that_fell_and_its_z(two_judges):
    drawn = pairs(two_judges, targets("ragtrace-investigate", 21, metric="faithfulness", workflow="docs"))
    assert all(set(z) == {("docs", "A")} for z, _ in drawn)
    assert any(z["docs", "A"] > limit for z, limit in drawn)
    for z, limit in pairs(
        two_judges, targets("ragtrace-investigate", 21, metric="faithfulness", workflow="support")
    ):
        assert max(z.values()) < limit


def pairs(server, asked):
    """z of each window by series, and the z at which the window fires."""
    exprs = list(asked.values())
    return [
        (by_series(server.ask(z, END)), float(server.ask(limit, END)[0]["value"][1]))
        for z, limit in zip(exprs[::2], exprs[1::2], strict=True)
    ]


def test_a_band_is_drawn_where_one_line_is_left(two_judges):
    for uid, number in (("ragtrace-investigate", 11), ("ragtrace-overview", 24)):
        one, every = targets(uid, number, workflow="docs"), targets(uid, number)
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
    for it in share_changes(before, now):
        wanted = {"before": it.before, "now": it.now, "difference": it.difference, "low": it.low, "high": it.high}
        assert {ref: column[it.name] for ref, column in table.items()} == pytest.approx(wanted, abs=0.001)
    assert max(table["difference"], key=table["difference"].get) == "lost_in_rerank"
    assert table["low"]["lost_in_rerank"] > 0.17


def test_the_stack_of_verdicts_is_whole(diagnosed):
    server, (_, now) = diagnosed
    drawn = {}
    for expr in targets("ragtrace-investigate", 71).values():
        drawn |= by_verdict(server.ask(expr, END))
    assert drawn == pytest.approx({name: it.mean for name, it in weighted_shares(now).items()}, abs=0.001)
    assert sum(drawn.values()) == pytest.approx(1.0)


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
    asked = [*targets("ragtrace-scorer", 21).values(), *targets("ragtrace-scorer", 12).values()]
    with serving(tmp_path) as server:
        found = [float(it["value"][1]) for expr in asked for it in server.ask(expr, END)]
    assert found == [48, 300, 48 / 300]
