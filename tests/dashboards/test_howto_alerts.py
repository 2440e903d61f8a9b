"""docs/how-to/alerts.md says what is so: its tables, its numbers, its examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml

from ragtrace_dashboards import Config, alerts, runbook_files
from ragtrace_dashboards.drift_rule.blind import POWER_Z
from ragtrace_dashboards.drift_rule.windows import WANDER_FACTOR
from tests.monitoring.drift_worlds.named_worlds import VOLUMES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "alerts.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_every_alert_is_in_the_table_with_its_severity():
    rows = re.findall(r"^\| `(Ragtrace\w+)` \| (\w+) \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((it.name, it.severity) for it in alerts(Config()))


def test_the_smallest_drops_are_those_of_the_blind_alert():
    config = Config()
    rows = re.findall(r"^\| (\d+) \| (0\.\d\d)( \(blind\))? \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for per_day, told, blind in rows:
        window, base = (int(per_day) * it / 86_400 for it in (config.week_window_s, config.baseline_s))
        variance = 0.04 * (1 / window + 1 / base) + WANDER_FACTOR * config.wander_prior**2
        drop = (config.week_z + POWER_Z) * variance**0.5 + 1 / window
        assert f"{drop:.2f}" == told
        assert (drop > config.detectable_drop) == bool(blind)


def test_the_runbook_has_the_rates_of_the_page():
    """The simulation's tests hold the page true."""
    page, runbook = (
        " ".join(it.split()) for it in (PAGE, runbook_files(Config())["runbooks/RagtraceQualityDrift.md"])
    )
    (mean, most) = re.search(
        r"over worlds and volumes ([\d.]+) % of months have one, and ([\d.]+) %", page
    ).groups()
    assert f"{mean} % of months had a false alarm, and {most} % in the worst" in runbook
    rows = re.findall(r"^\| ([\d,]+) \| [\d.]+ % \(.*?\) \| ([^|(]+?) \(.*?\) \| ([^|]+?) \|", PAGE, re.MULTILINE)
    assert len(rows) == len(VOLUMES)
    for row in rows:
        assert f"| {' | '.join(row)} |" in runbook


def test_the_rule_in_words_has_the_configured_numbers():
    config = Config()
    words = " ".join(PAGE.split())

    for said in (
        f"{config.tolerance:g}, or {config.fast_tolerance:g} within six hours",
        (
            f"times {config.fast_z:g} for the last six hours, {config.z:g} for the last day and {config.week_z:g} for "
            "the last week"
        ),
        f"fewer than {config.min_n_eff} effective scores in the window or {config.min_baseline_n_eff} in the",
        (
            f"never taken for less than {config.wander_prior:g}, or the sampling error of {config.wander_scores} scores "
            f"where that is less, as for a metric near 0. Nor is it taken for more than {config.wander_cap:g} "
            f"({config.fast_wander_cap:g} within six hours) or {config.wander_sampling**0.5:.1f} sampling errors"
        ),
        f"its mean is at least {config.fall:g} below normal",
        (
            f"{config.z:g} is {(config.z**2 + 2 * np.log(5)) ** 0.5:.1f} for five series and "
            f"{(config.z**2 + 2 * np.log(50)) ** 0.5:.1f} for fifty"
        ),
    ):
        assert said in words
    windows = (config.fast_window_s, config.day_window_s, config.week_window_s)
    assert windows == (21_600, 86_400, 604_800)
    assert config.baseline_ends_s == {"day": 86_400, "week": 7 * 86_400}
    assert (config.wander_s, config.wander_rest_s) == (28 * 86_400, 4 * 86_400)


def test_the_limits_of_missing_scores_are_the_configured_ones():
    config, words = Config(), " ".join(PAGE.split())
    assert f"more than .{round(config.missing_rise * 100):02} (`missing_rise`)" in words
    assert f"exceeds {config.missing_share:g} (`missing_share`)".replace("0.", ".") in words
    assert f"{config.few} effective runs in the window and {config.min_baseline_n_eff} before it" in words


def test_the_example_in_python_writes_a_pack(tmp_path):
    (block,) = (text for kind, text in BLOCKS if kind == "python")
    subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True, timeout=60, env=dict(os.environ))
    groups = yaml.safe_load((tmp_path / "pack/rules/ragtrace-alerts.yaml").read_text())["groups"]
    rules = [it for group in groups for it in group["rules"] if "alert" in it]
    assert all(it["annotations"]["runbook_url"].startswith("https://wiki.example.org/ragtrace/") for it in rules)
    assert "citation_precision" in next(it["expr"] for it in rules if it["alert"] == "RagtraceQualityDrift")
    assert "0.7" in (tmp_path / "pack/runbooks/RagtraceLowScores.md").read_text()
