"""Alertmanager's configuration: routes, inhibit rules and receivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.expressions import METRIC, WORKFLOW
from ragtrace_dashboards.receivers.routing import DEFAULT, GROUP_INTERVAL_S, OURS, ROUTES, chosen, wait

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.receivers.routing import Route
    from ragtrace_dashboards.yaml_text import Json, JsonObject

_SECRETS: Final = "/etc/alertmanager/secrets"
_BOARD: Final = '{{ template "ragtrace.board" . }}'
_RUNBOOK: Final = '{{ template "ragtrace.runbook" . }}'
"""Links of the group's first alert; left out where the pack has no address."""

_DRIFT: Final = "Ragtrace.+Drift|RagtraceQualityFall"
_QUALITY: Final = f"{_DRIFT}|RagtraceLowScores|RagtraceScoresMissing|RagtraceDriftBlind"
"""Alerts over scores, which say nothing new while nothing is scored."""


def alertmanager_config(config: Config) -> JsonObject:
    """Return the configuration. Its paths are relative to the file's folder, but those of secrets."""
    return {
        "templates": ["ragtrace.tmpl"],
        "route": {
            "receiver": DEFAULT,
            "group_by": ["alertname", "job"],
            "group_interval": wait(config, GROUP_INTERVAL_S),
            "routes": [_route(it, config) for it in ROUTES],
        },
        "inhibit_rules": _inhibit_rules(),
        "receivers": [_receiver(it, config) for it in ROUTES],
    }


def _route(route: Route, config: Config) -> JsonObject:
    return {
        "matchers": [f'alertname=~"{OURS}"', f'severity="{route.severity}"'],
        "receiver": route.name,
        "group_by": list(route.group_by),
        "group_wait": wait(config, route.group_wait_s),
        "repeat_interval": route.repeat_interval,
    }


def _inhibit_rules() -> list[JsonObject]:
    """Return which alert makes which other ones superfluous."""
    silent = 'alertname="RagtraceScorerSilent"'
    return [
        _inhibit([silent], f'alertname=~"{_QUALITY}"', "job"),
        # Prometheus scraped nothing of ragtrace: the alert has no job.
        _inhibit([silent, 'job=""'], f'alertname=~"{_QUALITY}"'),
        # It pages for what the other one warns of.
        _inhibit(['alertname="RagtraceQualityFall"'], 'alertname="RagtraceQualityDrift"', "job", WORKFLOW, METRIC),
        _inhibit([f'alertname=~"{_DRIFT}"'], 'alertname="RagtraceLowScores"', "job", WORKFLOW, METRIC),
        # An evaluation that fails is a missing score.
        _inhibit(['alertname="RagtraceJudgeErrors"'], 'alertname="RagtraceScoresMissing"', "job", METRIC),
        # What waits for tomorrow's budget comes late.
        _inhibit(['alertname="RagtraceBudgetSpent"'], 'alertname="RagtraceEvaluationLag"', "job"),
    ]


def _inhibit(sources: list[str], target: str, *equal: str) -> JsonObject:
    rule: JsonObject = {"source_matchers": sources, "target_matchers": [target]}
    return rule | {"equal": list(equal)} if equal else rule


def _receiver(route: Route, config: Config) -> JsonObject:
    return {"name": route.name} | {
        f"{kind}_configs": [_SETTINGS[kind](config)] for kind in chosen(config, route.severity)
    }


def _slack(config: Config) -> JsonObject:
    board: JsonObject = {"title_link": _BOARD} if config.grafana_url else {}
    return board | {
        "send_resolved": True,
        "api_url_file": f"{_SECRETS}/slack_url",
        "color": '{{ template "ragtrace.slack.color" . }}',
        "title": '{{ template "ragtrace.slack.title" . }}',
        "fallback": '{{ template "ragtrace.slack.title" . }}',
        "text": '{{ template "ragtrace.slack.text" . }}',
    }


def _pagerduty(config: Config) -> JsonObject:
    links: list[Json] = []
    if config.grafana_url:
        links.append({"href": _BOARD, "text": "Board"})
    if config.runbook_url:
        links.append({"href": _RUNBOOK, "text": "What to do"})
    board: JsonObject = {"client_url": _BOARD} if config.grafana_url else {}
    every: JsonObject = {"links": links} if links else {}
    return (
        board
        | {
            "send_resolved": True,
            "routing_key_file": f"{_SECRETS}/pagerduty_key",
            "client": "ragtrace",
            "severity": '{{ index .CommonLabels "severity" }}',
            "class": '{{ index .CommonLabels "alertname" }}',
            "component": f'{{{{ index .CommonLabels "{WORKFLOW}" }}}}',
            "group": '{{ index .CommonLabels "job" }}',
            "description": '{{ template "ragtrace.title" . }}',
            "details": {
                "firing": '{{ template "ragtrace.text.firing" . }}',
                "resolved": '{{ template "ragtrace.text.over" . }}',
            },
        }
        | every
    )


def _email(_: Config) -> JsonObject:
    return {
        "send_resolved": True,
        "to": "rag-alerts@example.org",
        "from": "alertmanager@example.org",
        "smarthost": "smtp.example.org:587",
        "auth_username": "alertmanager@example.org",
        "auth_password_file": f"{_SECRETS}/smtp_password",
        "headers": {"Subject": '{{ template "ragtrace.title" . }}'},
        "html": '{{ template "ragtrace.html" . }}',
        "text": '{{ template "ragtrace.text" . }}',
    }


_SETTINGS: Final = {"slack": _slack, "pagerduty": _pagerduty, "email": _email}
