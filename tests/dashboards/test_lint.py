"""No finding on our boards; and every rule finds a board that breaks it."""

from __future__ import annotations

import copy

import pytest

from ragtrace import semconv
from ragtrace_dashboards import Config, boards
from ragtrace_dashboards.boards import OMITTED
from ragtrace_dashboards.config import PANELS
from tests.dashboards import lint
from tests.dashboards.promql import asked, filled

BOARDS = {"default": boards(Config()), "demo": boards(Config.demo())}


@pytest.mark.parametrize(("profile", "uid"), [(profile, uid) for profile, drawn in BOARDS.items() for uid in drawn])
@pytest.mark.parametrize("rule", [*lint.UPSTREAM, *lint.OWN], ids=lambda it: it.__name__)
def test_no_finding(rule, profile, uid):
    assert list(rule(BOARDS[profile][uid])) == []


def variable(board, name):
    return next(it for it in board["templating"]["list"] if it["name"] == name)


def first(board, kind="timeseries"):
    return next(it for it in board["panels"] if it["type"] == kind)


def numbered(board, number):
    return next(it for it in lint.panels(board) if it["id"] == number)


def ask(board, expr):
    first(board)["targets"][0]["expr"] = expr


LOKI = {"datasource": {"type": "loki", "uid": "${datasource}"}, "refId": "L", "expr": "{a=~'b'}[5m]"}
JOB = 'job=~"$job"'
BREAKS = {
    lint.template_datasource: lambda it: variable(it, "datasource").update(label="Source"),
    lint.template_job: lambda it: variable(it, "job").update(multi=False),
    lint.template_label_promql: lambda it: variable(it, "workflow")["query"].update(query="label_values(x{, job)"),
    lint.template_on_time_change_reload: lambda it: variable(it, "job").update(refresh=1),
    lint.panel_datasource: lambda it: first(it).update(datasource={"uid": "prometheus"}),
    lint.panel_title_description: lambda it: first(it).update(title=""),
    lint.panel_units: lambda it: first(it)["fieldConfig"]["defaults"].update(unit="smiles"),
    lint.panel_no_targets: lambda it: first(it).update(targets=[]),
    lint.target_promql: lambda it: ask(it, "sum(rate(x)"),
    lint.target_rate_interval: lambda it: ask(it, f"rate(ragtrace_score_n_total{{{JOB}}}[5m])"),
    lint.target_job: lambda it: ask(it, "increase(ragtrace_score_n_total[1h])"),
    lint.target_counter_agg: lambda it: ask(it, f"sum(ragtrace_score_n_total{{{JOB}}})"),
    lint.target_logql: lambda it: first(it)["targets"].append(LOKI),
    lint.target_logql_auto: lambda it: first(it)["targets"].append(LOKI),
    lint.uneditable: lambda it: it.update(editable=True),
    lint.stable_uid: lambda it: it.update(uid="abc123"),
    lint.schema_version: lambda it: it.update(schemaVersion=36),
    lint.unique_panel_ids: lambda it: first(it).update(id=1),
    lint.grid_without_overlap: lambda it: first(it)["gridPos"].update(y=1),
    lint.one_legend: lambda it: first(it)["options"].update(legend=lint.LEGEND | {"placement": "right"}),
    lint.fits_one_screen: lambda it: first(it)["gridPos"].update(h=30),
    lint.few_series_or_a_rule: lambda it: ask(it, f"sum by (job) (increase(ragtrace_score_n_total{{{JOB}}}[1h]))"),
    lint.telling_description: lambda it: first(it).update(description="Look."),
    lint.no_value_text: lambda it: first(it)["fieldConfig"]["defaults"].pop("noValue"),
    lint.ratios_from_0_to_1: lambda it: numbered(it, 24)["fieldConfig"]["defaults"].pop("max"),
    lint.templated_datasources: lambda it: it["annotations"]["list"][0]["datasource"].update(uid="prometheus"),
    lint.known_metrics: lambda it: ask(it, f"ragtrace_score_mean{{{JOB}}}"),
    lint.known_labels: lambda it: ask(it, f"sum by (colour) (ragtrace_queue_size{{{JOB}}})"),
    lint.nothing_is_averaged_that_differs: lambda it: ask(it, f"avg by (job) (ragtrace_baseline_mean{{{JOB}}})"),
    lint.patterns_meet_a_legend: lambda it: first(it)["fieldConfig"]["overrides"].append(
        {"matcher": {"id": "byRegexp", "options": "/^nothing /"}, "properties": []}
    ),
    lint.no_pie: lambda it: first(it).update(type="piechart"),
    lint.no_exact_bucket: lambda it: ask(it, f'rate(ragtrace_evaluation_score_bucket{{le="0.8",{JOB}}}[1h])'),
    lint.variables_exist_and_are_used: lambda it: ask(it, 'x{job=~"$job",stage="$stage"}'),
}  # fmt: skip


@pytest.mark.parametrize("rule", [*lint.UPSTREAM, *lint.OWN], ids=lambda it: it.__name__)
def test_each_rule_finds_a_break(rule):
    board = copy.deepcopy(BOARDS["default"]["ragtrace-overview"])
    BREAKS[rule](board)
    assert list(rule(board))


@pytest.mark.parametrize(("uid", "number"), PANELS.values(), ids=PANELS)
def test_every_panel_that_alerts_link_to_exists(uid, number):
    assert number in {it["id"] for it in lint.panels(BOARDS["default"][uid])}


def test_every_metric_stands_on_a_board_or_is_left_out_with_a_reason():
    shown = set()
    for board in BOARDS["default"].values():
        for _, expr in lint.expressions(board):
            shown |= {
                found.name for name, _, _ in asked(filled(expr)).selectors if (found := lint.instrument(name))
            }
    names = {it.name for it in semconv.METRICS}
    assert names - shown == set(OMITTED)
    assert all(len(reason) > 20 for reason in OMITTED.values())


@pytest.mark.parametrize(
    ("expr", "most"),
    [
        ("topk(7, a)", 7),
        ("a and topk(7, a @ end())", 7),
        ("topk by (job) (1, a)", float("inf")),
        ("sum(a) or sum(b)", 2),
        ("max by (job) (a)", float("inf")),
        ("(a > 0.5) and on () (count(a) == 1)", 1),
        ("a * 1000 unless b", float("inf")),
        ("histogram_quantile(0.9, sum by (le) (a))", 1),
    ],
)
def test_the_most_series_of_an_expression(expr, most):
    assert lint._most_series(expr) == most
