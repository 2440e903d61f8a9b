"""Every expression of every board on a real Prometheus with a backfilled month: nothing is empty, numbers are right."""

from __future__ import annotations

import pytest

from ragtrace_dashboards.boards import boards
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.directions import LOWER_IS_BETTER
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
    values = {"metric": "harm_at_k|faithfulness"}
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
        assert table["n"][metric] == pytest.approx(24 * AN_HOUR, rel=0.02)
    assert table["z"]["faithfulness"] > 4
    assert all(z < 3 for metric, z in table["z"].items() if metric != "faithfulness")


def test_less_harm_is_no_drop_and_more_is(server):
    """The bad side of harm is up: its z has the other sign than the same move of another metric."""
    expr = targets("ragtrace-overview", 11)["z"]
    renamed = expr.replace("|".join(LOWER_IS_BETTER), "faithfulness")
    assert renamed != expr
    assert by_metric(server.ask(expr, END))["faithfulness"] > 4
    assert by_metric(server.ask(renamed, END))["faithfulness"] < -4


def test_the_trend_falls_out_of_its_band(server):
    asked = targets("ragtrace-investigate", 11, metric="faithfulness")
    drawn = {ref: server.series(expr, END - 3 * DAY, END, 7_200)[0]["values"] for ref, expr in asked.items()}
    base = [float(value) for _, value in drawn["baseline"]]
    upper = [float(value) for _, value in drawn["upper"]]
    assert len(set(base)) == 1  # one look for the whole picture
    assert upper[0] > base[0]
    assert upper[-1] < base[-1]


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
