"""Every alert has a page that says true things: names that exist, numbers of the configuration, links that lead."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
import yaml

from ragtrace import errors
from ragtrace.cli import COMMANDS
from ragtrace.semconv import METRICS
from ragtrace.settings import TABLE
from ragtrace_dashboards import (
    ANCHOR,
    DRIFT_ALERTS,
    Config,
    Watched,
    alerts,
    duration,
    files,
    recording_groups,
    runbook_files,
)
from ragtrace_dashboards.rule_files import links
from ragtrace_dashboards.runbook_files import INDEX, RULE_FIELDS, filled, in_words, template
from tests.command_line import parsed
from tests.dashboards.promql import asked
from tests.monitoring.promtool import tool

DIST = Path(__file__).resolve().parents[2] / "dashboards" / "ragtrace_dashboards" / "dist"
HOW_TO = DIST.parents[2] / "docs" / "how-to" / "alerts.md"
PAGES = {path.removeprefix("runbooks/").removesuffix(".md"): text for path, text in runbook_files(Config()).items()}
ALERTS = [it.name for it in alerts(Config())]
RECORDED = {rule.record for group in recording_groups(Config()) for rule in group.rules}
LABELS = {label.replace(".", "_") for it in METRICS for label in it.attributes} | {"job", "le", "ragtrace_k"}
CHAPTERS = [
    "First five minutes", "Meaning", "Usual causes", "Silence, and a new normal", "What it cannot see",
    "The rule in full",
]  # fmt: skip
OTHER = Config(
    day_window_s=90_000, days_window_s=262_800, week_window_s=608_400, fast_window_s=25_200, baseline_s=1_213_200,
    tolerance=0.031, fast_tolerance=0.061, z=3.3, week_z=2.6, fast_z=4.4, fall=0.087, family=7, block_s=3_660,
    fast_block_s=960, wander_s=2_422_800, wander_rest_s=349_200, wander_prior=0.012, wander_weight_s=612_000,
    wander_scores=570, wander_cap=0.017, fast_wander_cap=0.033, wander_sampling=3.7, min_n_eff=37, min_baseline_n_eff=207,
    few=33,
    baseline_memory_s=608_460, hour_s=4_200, day_step_s=7_800, good_share=0.77, detectable_drop=0.083,
    lag_limit_s=1_020, error_share=0.057, empty_share=0.059, canary_gap=0.13,
    budget_share=0.027, missing_rise=0.053, missing_share=0.47, for_s=420, keep_firing_s=4_500,
)  # fmt: skip
"""No number of the default configuration is left in it."""


def shapes(metric):
    """Names under which Prometheus stores one metric."""
    if metric.kind != "histogram":
        return {metric.prometheus}
    return {metric.prometheus + end for end in ("_bucket", "_count", "_sum")}


SERIES = {name for it in METRICS for name in shapes(it)} | RECORDED


def blocks(text):
    return [
        re.sub(r"^ {4}", "", it, flags=re.MULTILINE) for it in re.findall(r"```promql\n(.*?)```", text, re.DOTALL)
    ]


def prose(text):
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(text):
    """Anchors of a page as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", it.lower()).replace(" ", "-") for it in heads}


def test_each_alert_has_its_page_and_each_page_its_alert():
    shipped = resources.files("ragtrace_dashboards") / "runbooks"
    assert {it.name for it in shipped.iterdir()} == {f"{name}.md" for name in ALERTS}
    assert set(PAGES) == {"README", *ALERTS}
    assert all(f"({name}.md#{ANCHOR})" in PAGES["README"] for name in ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_the_alerts_link_leads_to_a_heading(name):
    alert = next(it for it in alerts(Config()) if it.name == name)
    address = links(alert, replace(Config(), runbook_url="https://wiki.test"))["runbook_url"]
    page, _, anchor = address.removeprefix("https://wiki.test/").partition(".md#")
    assert page == name
    assert anchor in anchors(PAGES[page])
    assert re.findall(r"^## (.+)$", prose(PAGES[page]), re.MULTILINE) == CHAPTERS
    assert PAGES[page].startswith(f"# {name}\n")


FEW = replace(Config(), metrics=(Watched(name="faithfulness"),))
"""A configuration with fewer alerts, and so with fewer pages."""


@pytest.mark.parametrize("config", [Config(), FEW], ids=["default", "few"])
def test_links_between_pages_resolve(config):
    pages = {path.removeprefix("runbooks/"): text for path, text in runbook_files(config).items()}
    assert set(pages) == {"README.md", *(f"{it.name}.md" for it in alerts(config))}
    for name, text in pages.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            page, _, anchor = target.partition("#")
            assert page in pages, (name, target)
            assert not anchor or anchor in anchors(pages[page]), (name, target)


def test_a_link_to_a_page_that_is_not_there_leaves_its_words():
    few = runbook_files(FEW)["runbooks/RagtraceQualityDrift.md"]
    assert "(RagtraceHarmDrift.md" in PAGES["RagtraceQualityDrift"]
    assert "HarmDrift" not in few
    assert "\nselection efficiency and harm have alerts\n" in few


@pytest.mark.parametrize("name", ALERTS)
def test_a_page_begins_with_what_to_do(name):
    """Its first step is one command or one click, and each step says what is seen or what it means."""
    chapter = re.split(r"^## .+$", PAGES[name], flags=re.MULTILINE)[1]
    steps = re.split(r"^\d\. ", chapter, flags=re.MULTILINE)[1:]
    assert 3 <= len(steps) <= 6
    assert re.search(r"`ragtrace \w+|^Open the board|^Ask the index", steps[0])
    assert all(len(prose(it).split()) < 90 for it in steps)


@pytest.mark.parametrize("config", [Config(), Config.demo(), FEW], ids=["default", "demo", "few"])
def test_every_expression_parses_and_asks_for_what_exists(config):
    for alert in alerts(config):
        found = blocks(runbook_files(config)[f"runbooks/{alert.name}.md"])
        assert len(found) >= 2
        for expr in found:
            ask = asked(expr)
            assert ask.selectors, expr
            for series, matchers, _around in ask.selectors:
                assert series in SERIES | {"ALERTS"}, expr
                assert set(matchers) <= LABELS | {"__name__", "alertname", "alertstate"}, expr
            assert {label for labels, _below in ask.grouped for label in labels} <= LABELS, expr


def test_the_question_for_windows_shows_each_that_fires(tmp_path):
    expr = next(it for it in blocks(PAGES["RagtraceQualityDrift"]) if "drift_limit:week" in it)
    rows = [
        {"series": f'ragtrace:drift_{kind}:{window}{{job="shop"}}', "values": value}
        for kind, value in (("drop", "0.1"), ("limit", "0.05"))
        for window in ("fast", "day", "week")
    ]
    shown = [
        {"labels": f'ragtrace:drift_drop:{name}{{job="shop",window="{window}"}}', "value": 0.1}
        for name, window in (("fast", "6h"), ("day", "1d"), ("week", "7d"))
    ]
    asked_for = [{"expr": expr, "eval_time": "0m", "exp_samples": shown}]
    (tmp_path / "test.yaml").write_text(
        yaml.safe_dump({"tests": [{"input_series": rows, "promql_expr_test": asked_for}]})
    )
    done = subprocess.run(
        [tool("promtool"), "test", "rules", "test.yaml"], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ALERTS)
def test_names_in_the_text_exist(name):
    quoted = set(re.findall(r"`([^`\n]+)`", prose(PAGES[name])))
    fields = set(Config.__dataclass_fields__)
    reasons = {it.reason for it in vars(errors).values() if isinstance(it, type) and hasattr(it, "reason")}
    for word in quoted:
        if word.startswith("ragtrace_"):
            assert word.partition("=")[0] in SERIES | LABELS, word
        elif word.startswith("judge_"):
            assert word in TABLE.keys() | reasons, word
        elif word.endswith(("_share", "_rate", "_rates", "_rules", "_s", "_drop", "_day", "_million")):
            assert word in TABLE.keys() | fields, word


def commands():
    found = {
        it
        for page in (*PAGES.values(), HOW_TO.read_text(encoding="utf-8"))
        for it in re.findall(r"`(ragtrace [a-z][^`]*)`", prose(page))
    }
    return sorted(" ".join(it.split()) for it in found)


@pytest.mark.parametrize("line", commands())
def test_every_command_exists_with_its_options(line):
    words = shlex.split(line)[1:]
    assert words[0] in COMMANDS
    if words[1:]:
        parsed(words)  # it would be taken as it stands


@pytest.mark.parametrize("name", ALERTS)
def test_numbers_are_those_of_the_configuration(name):
    """With another configuration no number of the default one is left, wherever it stands in the page."""
    alert = next(it for it in alerts(OTHER) if it.name == name)
    page = runbook_files(OTHER)[f"runbooks/{name}.md"].replace(alert.expr, "")
    page = re.sub(r"`ragtrace [^`]*`", "", page)
    times = {duration(getattr(Config(), it)) for it in vars_of("_s")}
    numbers = {f"{getattr(Config(), it):g}" for it in vars_of("") if it not in UNTOLD}
    written = set(re.findall(r"(?<![\w.`-])\d+(?:\.\d+)?[smhd]?(?![\w%])", page))
    assert written & (times | numbers) == set()
    words = {in_words(getattr(Config(), it)) for it in vars_of("_s")}
    assert [it for it in words if re.search(rf"(?<![\w.]){it}\b", page)] == []


UNTOLD = {"z", "week_z", "fast_z", "wander_sampling", "min_n_eff", "few", "family"}
"""Fields whose numbers may stand in a page for something else; the drift pages' own test looks for them."""


def vars_of(end):
    kinds = {"": (int, float), "_s": (int,)}[end]
    times = [it for it in Config.__dataclass_fields__ if it.endswith("_s")]
    if end:
        return times
    return [
        it for it in Config.__dataclass_fields__ if it not in times and isinstance(getattr(Config(), it), kinds)
    ]


@pytest.mark.parametrize("name", [it for it in DRIFT_ALERTS if it != "RagtraceQualityFall"])
def test_the_drift_pages_have_the_windows_as_configured(name):
    page = runbook_files(OTHER)[f"runbooks/{name}.md"]
    row = r"^\| (\w+ \w+) \| the (\w+ \w+) that end (\w+ \w+) ago \| ([\d.]+) \| ([\d.]+) \|$"
    assert re.findall(row, page, re.MULTILINE) == [
        ("7 hours", "337 hours", "25 hours", "0.061", "4.4"),
        ("25 hours", "337 hours", "25 hours", "0.031", "3.3"),
        ("169 hours", "337 hours", "169 hours", "0.031", "2.6"),
    ]


def test_the_rule_is_told_in_full_once():
    page = " ".join(runbook_files(OTHER)["runbooks/RagtraceQualityDrift.md"].split())
    for told in ("fewer than 37 effective scores in the window or 207", "or 3.7 S², whichever is more"):
        assert told in page
    fall = " ".join(runbook_files(OTHER)["runbooks/RagtraceQualityFall.md"].split())
    assert "The drop of 7 hours exceeds both 0.087 and the limit" in fall
    assert "with at least 37 effective scores" in fall


@pytest.mark.parametrize("field", RULE_FIELDS)
def test_measured_rates_are_stated_for_the_measured_rule_alone(field):
    claim = "1.2 % of months had a false alarm"
    assert claim in " ".join(PAGES["RagtraceQualityDrift"].split())
    other = replace(Config(), **{field: getattr(OTHER, field)})
    text = " ".join(runbook_files(other)["runbooks/RagtraceQualityDrift.md"].split())
    assert claim not in text
    assert "both are unknown" in text


def test_a_placeholder_that_nothing_fills_is_an_error():
    with pytest.raises(KeyError, match="no_such"):
        filled("{{no_such}}", {"tolerance": "0.02"})
    assert "{{fall}}" in template("RagtraceQualityFall")
    assert not [name for name, text in PAGES.items() if re.search(r"\{\{[\w.]+\}\}", text.split("## The rule")[0])]


def test_links_to_boards_follow_the_address_of_grafana():
    page = runbook_files(replace(Config(), grafana_url="https://boards.test"))["runbooks/RagtraceHarmDrift.md"]
    assert "https://boards.test/d/ragtrace-investigate?viewPanel=11" in page
    assert "://" not in PAGES["RagtraceHarmDrift"]


@pytest.mark.parametrize("part", ["grafana", "prometheus", "all", "kubernetes"])
def test_pages_come_with_every_form(part):
    assert runbook_files(Config()).items() <= files(Config(), part).items()
    assert INDEX in files(Config(), part)
