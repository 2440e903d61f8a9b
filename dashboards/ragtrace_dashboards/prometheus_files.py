"""Recording rules and alerts as rule files of Prometheus (2.42 or later, for ``keep_firing_for``) and Mimir."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace_dashboards.alerts import VALUE, alerts
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import baseline_rules, window_rules
from ragtrace_dashboards.expressions import METRIC, WORKFLOW
from ragtrace_dashboards.yaml_text import yaml_text

if TYPE_CHECKING:
    from ragtrace_dashboards.alerts import Alert
    from ragtrace_dashboards.config import Config

RECORDING = "rules/ragtrace-recording.yaml"
ALERTS = "rules/ragtrace-alerts.yaml"
BASELINE_GROUP, WINDOW_GROUP, ALERT_GROUP = "ragtrace-baseline", "ragtrace-windows", "ragtrace-alerts"
GROUPS = (BASELINE_GROUP, WINDOW_GROUP, ALERT_GROUP)
"""Groups of rules, in the order in which they need each other."""


def prometheus_files(config: Config) -> dict[str, str]:
    """Return the text of each rule file by its path."""
    groups = [
        _group(BASELINE_GROUP, config.baseline_interval_s, baseline_rules(config)),
        _group(WINDOW_GROUP, config.scrape_s, window_rules(config)),
    ]
    rules = [_rule(alert, config) for alert in alerts(config)]
    return {
        RECORDING: yaml_text({"groups": groups}),
        ALERTS: yaml_text({"groups": [_group(ALERT_GROUP, config.scrape_s, rules)]}),
    }


def _group(name: str, interval_s: int, rules: list[Any]) -> dict[str, Any]:
    return {"name": name, "interval": duration(interval_s), "rules": rules}


def _rule(alert: Alert, config: Config) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": alert.name, "expr": alert.expr}
    if alert.for_s:
        rule["for"] = duration(alert.for_s)
    if alert.keep_firing_s:
        rule["keep_firing_for"] = duration(alert.keep_firing_s)
    value = f'{{{{ $value | printf "{alert.printf}" }}}}'
    uid, panel = alert.dashboard
    return rule | {
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary.replace(VALUE, value),
            "description": alert.description.replace(VALUE, value) + alert.details,
            "runbook_url": alert.runbook(config),
            "dashboard_url": dashboard_url(alert, config),
            "__dashboardUid__": uid,
            "__panelId__": str(panel),
        },
    }


def dashboard_url(alert: Alert, config: Config) -> str:
    """Return the address of the alert's panel with the alert's service, metric and workflow chosen."""
    uid, panel = alert.dashboard
    variables = {"job": "job", METRIC: "metric", WORKFLOW: "workflow"}
    chosen = "".join(
        f"&var-{shown}={{{{ $labels.{name} | urlquery }}}}"
        for name, shown in variables.items()
        if name in alert.labels
    )
    return f"{config.grafana_url}/d/{uid}?viewPanel={panel}{chosen}"
