"""docs/how-to/alerts.md says what is so: its tables, its numbers, its examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ragtrace_dashboards.alerts import POWER_Z, alerts
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.runbook_files import runbook_files

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "alerts.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_every_alert_is_in_the_table_with_its_severity():
    rows = re.findall(r"^\| `(Ragtrace\w+)` \| (\w+) \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((it.name, it.severity) for it in alerts(Config()))
    assert len(rows) == 12  # the page counts them: twelve, and eleven beside the quality drift
    assert PAGE.count("Twelve alerts") == PAGE.count("other eleven alerts") == 1


def test_the_smallest_drops_are_those_of_the_blind_alert():
    config = Config()
    rows = re.findall(r"^\| (\d+) \| (\.\d\d)( \(blind\))? \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for per_day, told, blind in rows:
        scores = int(per_day) * config.days_window_s / 86_400
        drop = config.tolerance + (config.z + POWER_Z) * 0.2 / scores**0.5
        assert f"{drop:.2f}".removeprefix("0") == told
        assert (drop > config.detectable_drop) == bool(blind)


def test_measured_numbers_are_those_of_the_simulation():
    """The simulation's own text is held true by its author; three places may not tell three stories."""
    said = " ".join(
        (ROOT / "tests/monitoring/test_simulation.py").read_text(encoding="utf-8").split('"""')[1].split()
    )
    page = runbook_files(Config())["runbooks/RagtraceQualityDrift.md"]
    for share, low, high in re.findall(r"([\d.]+) % \(([\d.]+) to ([\d.]+)\)", PAGE):
        assert f"{share} %" in said
        assert f"{low} to {high}" in said
        assert f"{share} %" in page
    delays = re.findall(r"^\| [\d,]+ \| .* \| ([.\d]+) d \| ([.\d]+) d \|$", PAGE, re.MULTILINE)
    assert len(delays) == 2
    assert all(f"{it} d" in said for row in delays for it in row)


def test_the_rule_in_words_has_the_configured_numbers():
    config = Config()
    words = " ".join(PAGE.split())
    assert (
        f".{round(config.tolerance * 100):02}, or .{round(config.fast_tolerance * 100):02} within six hours"
        in words
    )
    assert f"{config.z:g} standard errors beyond it, or {config.fast_z:g} within six hours" in words
    assert (
        f"fewer than {config.min_n_eff} effective scores in the window or {config.min_baseline_n_eff} in the"
        in words
    )
    assert (config.day_window_s, config.days_window_s, config.fast_window_s) == (86_400, 259_200, 21_600)
    assert config.baseline_s + config.days_window_s <= 18 * 86_400


def test_the_example_in_python_writes_a_pack(tmp_path):
    (block,) = (text for kind, text in BLOCKS if kind == "python")
    subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True, timeout=60, env=dict(os.environ))
    rules = yaml.safe_load((tmp_path / "pack/rules/ragtrace-alerts.yaml").read_text())["groups"][0]["rules"]
    assert all(it["annotations"]["runbook_url"].startswith("https://wiki.example.org/ragtrace/") for it in rules)
    assert "citation_precision" in next(it["expr"] for it in rules if it["alert"] == "RagtraceQualityDrift")
    assert "0.7" in (tmp_path / "pack/runbooks/RagtraceLowScores.md").read_text()


def test_the_example_for_alertmanager_is_taken(tmp_path):
    amtool = shutil.which("amtool")
    if amtool is None:
        pytest.skip("amtool is not installed (Debian: apt-get install prometheus-alertmanager)")
    text = next(text for _kind, text in BLOCKS if text.startswith("route:"))
    (tmp_path / "alertmanager.yml").write_text(text)
    command = [amtool, "--config.file", str(tmp_path / "alertmanager.yml")]
    subprocess.run([amtool, "check-config", command[2]], check=True, timeout=60, capture_output=True)

    def told(**labels):
        given = [f"{name}={value}" for name, value in labels.items()]
        routes = [amtool, "config", "routes", "test", *command[1:], *given]
        return subprocess.run(routes, check=True, timeout=60, capture_output=True, text=True).stdout.strip()

    for alert in alerts(Config()):
        assert told(alertname=alert.name, severity=alert.severity) == (
            "pager" if alert.severity == "critical" else "team"
        )
    assert told(alertname="DiskFull", severity="critical") == "team"


def test_the_example_for_grafana_sends_what_is_critical_to_the_pager():
    (policies,) = (yaml.safe_load(text) for _kind, text in BLOCKS if "policies:" in text)
    (route,) = policies["policies"][0]["routes"]
    assert route["object_matchers"] == [["alertname", "=~", "Ragtrace.+"], ["severity", "=", "critical"]]
    assert all(re.fullmatch(route["object_matchers"][0][2], it.name) for it in alerts(Config()))
