"""docs/how-to/alerts.md says what is so: its tables, its numbers, its examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml

from ragtrace_dashboards.alerts import alerts
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.drift_rule.blind import POWER_Z
from ragtrace_dashboards.drift_rule.variances import WANDER_FACTOR
from ragtrace_dashboards.runbook_files import runbook_files
from tests.monitoring.drift_worlds.named_worlds import DOUBLED, VOLUMES, WORLDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "alerts.md").read_text(encoding="utf-8")
(RECORD,) = (
    it.read_text(encoding="utf-8") for it in (ROOT / "docs/decisions").glob("*-the-drift-rule-learns-the-wander.md")
)
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_every_alert_is_in_the_table_with_its_severity():
    rows = re.findall(r"^\| `(Ragtrace\w+)` \| (\w+) \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((it.name, it.severity) for it in alerts(Config()))


def test_the_smallest_drops_are_those_of_the_blind_alert():
    config = Config()
    rows = re.findall(r"^\| (\d+) \| (\.\d\d)( \(blind\))? \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for per_day, told, blind in rows:
        window, base = (int(per_day) * it / 86_400 for it in (config.week_window_s, config.baseline_s))
        variance = 0.04 * (1 / window + 1 / base) + WANDER_FACTOR * config.wander_prior**2
        drop = (config.week_z + POWER_Z) * variance**0.5 + 1 / window
        assert f"{drop:.2f}".removeprefix("0") == told
        assert (drop > config.detectable_drop) == bool(blind)


def table(page, head):
    """Return the cells of the table whose first line begins so, by the first cell."""
    lines = page[page.index(f"| {head}") :].split("\n\n")[0].splitlines()[2:]
    return {cells[0]: cells[1:] for cells in ([it.strip() for it in line.split("|")[1:-1]] for line in lines)}


def test_the_rates_are_those_of_the_decision_record():
    """The record has each world, the pages have the range; the simulation's tests hold the record true."""
    found = table(RECORD, "months with a false alarm")
    assert list(found) == list(WORLDS)
    del found[DOUBLED]
    pages = [" ".join(it.split()) for it in (PAGE, runbook_files(Config())["runbooks/RagtraceQualityDrift.md"])]
    means = [float(cells[len(VOLUMES)]) for cells in found.values()]
    for page in pages:
        assert f"{np.mean(means):.1f} % of months" in page
        assert f"{max(means):.1f} % in the worst" in page
    for column, per_day in enumerate(VOLUMES):
        shares = [float(cells[column]) for cells in found.values()]
        (told, *_delays) = table(PAGE, "scores a day | a false alarm")[f"{per_day:,}"]
        assert told == f"{np.mean(shares):.1f} % ({min(shares):.1f} to {max(shares):.1f})"


def test_the_delays_are_those_of_the_decision_record():
    found, others = table(RECORD, "drop from .92"), table(RECORD, "median days to see .92 to .85")
    known = re.findall(r"^\| to (0\.8\d*) over (\d) days \| 1 \| ([\d,]+) \| ([\d.]+|inf) ", RECORD, re.MULTILINE)
    medians = {(fall, days, per_day): median for fall, days, per_day, median in known}
    assert len(found) == 3
    for column, per_day in enumerate(VOLUMES):
        (_share, to_85, to_80) = table(PAGE, "scores a day | a false alarm")[f"{per_day:,}"]
        spread = [float(cells[column]) for name, cells in others.items() if name != DOUBLED]
        least, most = (days_in_words(it) for it in (min(spread), max(spread)))
        assert to_85 == f"{days_in_words(float(medians['0.85', '0', f'{per_day:,}']))} ({least} to {most})"
        assert to_80 == days_in_words(float(medians["0.8", "0", f"{per_day:,}"]))


def days_in_words(days):
    return "not seen" if days == float("inf") else f"{days:.2f} d"


def test_the_rule_in_words_has_the_configured_numbers():
    config = Config()
    words = " ".join(PAGE.split())

    def short(number):
        return f"{number:g}".removeprefix("0")

    for said in (
        f".{round(config.tolerance * 100):02}, or .{round(config.fast_tolerance * 100):02} within six hours",
        (
            f"{config.z:g} standard errors for the last day, {config.days_z:g} for the last three days, "
            f"{config.week_z:g} for the last week and {config.fast_z:g} for the last six hours"
        ),
        f"fewer than {config.min_n_eff} effective scores in the window or {config.min_baseline_n_eff} in the",
        (
            f"Without history the wander is {short(config.wander_prior)}. It is never taken for less than .007 or more than "
            f"{short(config.wander_cap)} ({short(config.fast_wander_cap)} within six hours) "
            f"or {config.wander_sampling**0.5:.1f} sampling errors, whichever is more"
        ),
        (
            f"{config.z:g} is {(config.z**2 + 2 * np.log(5)) ** 0.5:.1f} for five series and "
            f"{(config.z**2 + 2 * np.log(50)) ** 0.5:.1f} for fifty"
        ),
    ):
        assert said in words
    assert round((config.wander_floor * config.wander_prior**2) ** 0.5, 3) == 0.007
    windows = (config.day_window_s, config.days_window_s, config.week_window_s, config.fast_window_s)
    assert windows == (86_400, 259_200, 604_800, 21_600)
    assert (config.wander_s, config.wander_rest_s) == (28 * 86_400, 4 * 86_400)


def test_the_limits_of_missing_scores_are_the_configured_ones():
    config, words = Config(), " ".join(PAGE.split())
    assert f"more than .{round(config.missing_rise * 100):02} (`missing_rise`)" in words
    assert f"exceeds {config.missing_share:g} (`missing_share`)".replace("0.", ".") in words
    assert f"{config.min_n_eff} effective runs in the window and {config.min_baseline_n_eff} before it" in words


def test_the_example_in_python_writes_a_pack(tmp_path):
    (block,) = (text for kind, text in BLOCKS if kind == "python")
    subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True, timeout=60, env=dict(os.environ))
    rules = yaml.safe_load((tmp_path / "pack/rules/ragtrace-alerts.yaml").read_text())["groups"][0]["rules"]
    assert all(it["annotations"]["runbook_url"].startswith("https://wiki.example.org/ragtrace/") for it in rules)
    assert "citation_precision" in next(it["expr"] for it in rules if it["alert"] == "RagtraceQualityDrift")
    assert "0.7" in (tmp_path / "pack/runbooks/RagtraceLowScores.md").read_text()
