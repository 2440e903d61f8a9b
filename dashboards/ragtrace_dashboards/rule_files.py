"""Recording rules and alerts as rule files of Prometheus, and as provisioning files of Grafana.

Prometheus has to be 2.42 or later, for ``keep_firing_for``; Mimir reads the same files.
"""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

from ragtrace_dashboards.alerts import VALUE, alerts
from ragtrace_dashboards.config import DRIFT_ALERTS, PROVISIONED_UID, Config, duration
from ragtrace_dashboards.expressions import METRIC, WORKFLOW
from ragtrace_dashboards.groups import FAST, recording_groups
from ragtrace_dashboards.rules import Rule
from ragtrace_dashboards.yaml_text import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace_dashboards.alerts import Alert
    from ragtrace_dashboards.rules import Group
    from ragtrace_dashboards.yaml_text import JsonObject

RECORDING = "rules/ragtrace-recording.yaml"
ALERT_RULES = "rules/ragtrace-alerts.yaml"
ALERT_GROUP = "ragtrace-alerts"
GROUPS = (*(group.name for group in recording_groups(Config())), ALERT_GROUP)
"""Groups of rules, in the order in which they need each other."""
RUNBOOKS, ANCHOR = "runbooks", "first-five-minutes"
"""Folder of the runbook pages, and the heading to which alerts link."""
ALERTING = "grafana/alerting/ragtrace.yaml"
DATASOURCES = "grafana/datasources/ragtrace.yaml"
PROVIDER = "grafana/dashboards/ragtrace.yaml"
BOARDS_PATH = "/etc/grafana/boards/ragtrace"
_LOOK_BACK_S = 600  # an instant query is asked at the end of it; Grafana wants a range all the same


def prometheus_files(config: Config) -> dict[str, str]:
    """Return the text of each rule file by its path.

    The alerts that read the shortest window are in its group, since groups of one interval run side by side.
    """
    groups = recording_groups(config)
    fast = next(it for it in groups if it.name == FAST)
    every = alerts(config)
    drifts = [_prometheus_rule(it, config) for it in every if it.name in DRIFT_ALERTS]
    others = [_prometheus_rule(it, config) for it in every if it.name not in DRIFT_ALERTS]
    return {
        RECORDING: _rule_file(_group(it) for it in groups if it is not fast),
        ALERT_RULES: _rule_file([_group(fast, drifts), _group_text(ALERT_GROUP, config.scrape_s, others)]),
    }


def _rule_file(groups: Iterable[str]) -> str:
    return "groups:\n" + "".join(groups)


def _group(group: Group, alerts: Sequence[JsonObject] = ()) -> str:
    return _group_text(group.name, group.interval_s, [*group.rules, *alerts])


def _group_text(name: str, interval_s: int, rules: Sequence[Rule | JsonObject]) -> str:
    """Return a group as YAML, with what a recording rule says as a comment before it."""
    head = f"- name: {name}\n  interval: {duration(interval_s)}\n  rules:\n"
    return head + "".join(indent(_rule_text(rule), "  ") for rule in rules)


def _rule_text(rule: Rule | JsonObject) -> str:
    if isinstance(rule, Rule):
        return f"# {rule.says}\n" + yaml_text([{"record": rule.record, "expr": rule.expr}])
    return yaml_text([rule])


def _prometheus_rule(alert: Alert, config: Config) -> JsonObject:
    rule: JsonObject = {"alert": alert.name, "expr": alert.expr}
    if alert.for_s:
        rule["for"] = duration(alert.for_s)
    if alert.keep_firing_s:
        rule["keep_firing_for"] = duration(alert.keep_firing_s)
    value = f"{{{{ $value | {alert.shown} }}}}"
    details = {name: text.replace(VALUE, value) for name, text in alert.details.items()}
    return rule | {
        "labels": {"severity": alert.severity},
        "annotations": _annotations(alert, config, value) | details,
    }


def _annotations(alert: Alert, config: Config, value: str) -> dict[str, str]:
    uid, panel = alert.dashboard
    command = {"command": alert.command} if alert.command else {}
    run = f". Run: {alert.command}" if alert.command else ""
    return command | {
        "summary": alert.summary.replace(VALUE, value) + run,
        "description": alert.description.replace(VALUE, value),
        **links(alert, config),
        "__dashboardUid__": uid,
        "__panelId__": str(panel),
    }


def links(alert: Alert, config: Config) -> dict[str, str]:
    """Return the addresses of the alert's page and panel; without an address, the file of its page.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> links(alerts(Config())[0], Config())
        {'runbook': 'runbooks/RagtraceQualityFall.md'}
    """
    page = f"{alert.name}.md"
    found = {"runbook": f"{RUNBOOKS}/{page}"}
    if config.runbook_url:
        found = {"runbook_url": f"{config.runbook_url}/{page}#{ANCHOR}"}
    if config.grafana_url:
        found["dashboard_url"] = _dashboard_url(alert, config)
    return found


def _dashboard_url(alert: Alert, config: Config) -> str:
    """Return the address of the alert's panel with the alert's service, metric and workflow chosen.

    A drift alert opens the whole board, which leads from the trend to the answers and the stages.
    """
    uid, panel = alert.dashboard
    variables = {"job": "job", METRIC: "metric", WORKFLOW: "workflow"}
    view = [] if alert.name in DRIFT_ALERTS else [f"viewPanel={panel}"]
    chosen = [
        f"var-{shown}={{{{ $labels.{name} | urlquery }}}}"
        for name, shown in variables.items()
        if name in alert.labels
    ]
    return f"{config.grafana_url}/d/{uid}?{'&'.join([*view, *chosen])}"


def grafana_files(config: Config) -> dict[str, str]:
    """Return the text of each provisioning file of rules, data sources and boards by its path."""
    return {
        ALERTING: yaml_text(_alerting(config)),
        DATASOURCES: yaml_text(_datasources(config)),
        PROVIDER: yaml_text(_provider(config)),
    }


def _alerting(config: Config) -> JsonObject:
    group: JsonObject = {
        "orgId": 1,
        "name": "ragtrace",
        "folder": config.folder,
        "interval": duration(max(config.scrape_s, 10)),  # Grafana evaluates no oftener
        "rules": [_grafana_rule(alert, config) for alert in alerts(config)],
    }
    return {"apiVersion": 1, "groups": [group]}


def _grafana_rule(alert: Alert, config: Config) -> JsonObject:
    uid, panel = alert.dashboard
    value = f"{{{{ $values.A.Value | {alert.shown} }}}}"
    rule: JsonObject = {
        "uid": f"ragtrace-{alert.name.removeprefix('Ragtrace').lower()}",
        "title": alert.name,
        "condition": "B",
        "data": [_query(alert, config), _condition()],
        "dashboardUid": uid,
        "panelId": panel,
        "noDataState": "OK",  # every expression gives a point only when something is wrong
        "execErrState": "Error",
        "for": duration(alert.for_s) if alert.for_s else "0s",
    }
    if alert.keep_firing_s:
        rule["keepFiringFor"] = duration(alert.keep_firing_s)
    return rule | {
        "annotations": _annotations(alert, config, value),
        "labels": {"severity": alert.severity},
        "isPaused": False,
    }


def _query(alert: Alert, config: Config) -> JsonObject:
    return {
        "refId": "A",
        "relativeTimeRange": {"from": _LOOK_BACK_S, "to": 0},
        "datasourceUid": config.datasource_uid,
        "model": {
            "refId": "A",
            "datasource": {"type": "prometheus", "uid": config.datasource_uid},
            "expr": alert.expr,
            "instant": True,
            "range": False,
            "intervalMs": 1_000,
            "maxDataPoints": 43_200,
        },
    }


def _condition() -> JsonObject:
    """Return the condition: there is a number. A comparison with 0 would miss a budget of which 0 is left."""
    return {
        "refId": "B",
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": "__expr__",
        "model": {
            "refId": "B",
            "datasource": {"type": "__expr__", "uid": "__expr__"},
            "type": "math",
            "expression": "is_number($A)",
        },
    }


def _datasources(config: Config) -> JsonObject:
    """Return the data sources. Grafana does not start with two of one uid: yours is left to you."""
    prometheus: JsonObject = {
        "name": "ragtrace Prometheus",
        "type": "prometheus",
        "uid": config.datasource_uid,
        "access": "proxy",
        "url": config.prometheus_url,
        "editable": False,
        "jsonData": {
            "httpMethod": "POST",
            "timeInterval": duration(config.scrape_s),
            "exemplarTraceIdDestinations": [{"name": "trace_id", "datasourceUid": config.tempo_uid}],
        },
    }
    tempo: JsonObject = {
        "name": "ragtrace Tempo",
        "type": "tempo",
        "uid": config.tempo_uid,
        "access": "proxy",
        "url": config.tempo_url,
        "editable": False,
    }
    is_ours = config.datasource_uid == PROVISIONED_UID
    return {"apiVersion": 1, "datasources": [*([prometheus] if is_ours else []), tempo]}


def _provider(config: Config) -> JsonObject:
    provider: JsonObject = {
        "name": "ragtrace",
        "orgId": 1,
        "type": "file",
        "folder": config.folder,
        "folderUid": config.folder_uid,
        "allowUiUpdates": False,
        "disableDeletion": True,
        "options": {"path": BOARDS_PATH},
    }
    return {"apiVersion": 1, "providers": [provider]}
