"""Grafana's contact points, message templates and notification policies as provisioning files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.expressions import WORKFLOW
from ragtrace_dashboards.receivers.routing import DEFAULT, GROUP_INTERVAL_S, OURS, ROUTES, chosen, wait

if TYPE_CHECKING:
    from ragtrace_dashboards.alerts import Severity
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.receivers.routing import Route
    from ragtrace_dashboards.yaml_text import JsonObject

_SECRETS: Final = "/etc/grafana/secrets"


def contact_points(config: Config, template: str) -> JsonObject:
    """Return the contact points and the message templates.

    Grafana expands ``$`` in the settings of a contact point, so these hold none but ``$__file{}``. It leaves
    templates as they are.
    """
    return {
        "apiVersion": 1,
        "templates": [{"orgId": 1, "name": "ragtrace", "template": template}],
        "contactPoints": [
            {"orgId": 1, "name": it.name, "receivers": _integrations(config, it.severity)} for it in ROUTES
        ],
    }


def notification_policies(config: Config) -> JsonObject:
    """Return the policies. A file of policies replaces those of the whole organisation."""
    return {
        "apiVersion": 1,
        "policies": [
            {
                "orgId": 1,
                "receiver": DEFAULT,
                "group_by": ["grafana_folder", "alertname"],
                "routes": [_policy(it, config) for it in ROUTES],
            }
        ],
    }


def _policy(route: Route, config: Config) -> JsonObject:
    return {
        "receiver": route.name,
        "object_matchers": [["alertname", "=~", OURS], ["severity", "=", route.severity]],
        "group_by": list(route.group_by),
        "group_wait": wait(config, route.group_wait_s),
        "group_interval": wait(config, GROUP_INTERVAL_S),
        "repeat_interval": route.repeat_interval,
    }


def _integrations(config: Config, severity: Severity) -> list[JsonObject]:
    settings: dict[str, JsonObject] = {
        "slack": _slack(),
        "pagerduty": _pagerduty(config, severity),
        "email": _email(),
    }
    return [
        {"uid": f"ragtrace-{severity}-{kind}", "type": kind, "settings": settings[kind]}
        for kind in chosen(config, severity)
    ]


def _slack() -> JsonObject:
    return {
        "url": f"$__file{{{_SECRETS}/slack_url}}",
        "title": '{{ template "ragtrace.slack.title" . }}',
        "text": '{{ template "ragtrace.slack.text" . }}',
    }


def _pagerduty(config: Config, severity: Severity) -> JsonObject:
    board = {"client_url": '{{ template "ragtrace.board" . }}'} if config.grafana_url else {}
    return board | {
        "integrationKey": f"$__file{{{_SECRETS}/pagerduty_key}}",
        "severity": severity,
        "class": '{{ index .CommonLabels "alertname" }}',
        "component": f'{{{{ index .CommonLabels "{WORKFLOW}" }}}}',
        "group": '{{ index .CommonLabels "job" }}',
        "summary": '{{ template "ragtrace.title" . }}',
        "client": "ragtrace",
        "details": {
            "firing": '{{ template "ragtrace.text.firing" . }}',
            "resolved": '{{ template "ragtrace.text.over" . }}',
        },
    }


def _email() -> JsonObject:
    return {
        "addresses": "rag-alerts@example.org",
        "singleEmail": True,
        "subject": '{{ template "ragtrace.title" . }}',
        "message": '{{ template "ragtrace.text" . }}',
    }
