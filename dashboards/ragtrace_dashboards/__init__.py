"""Boards, recording rules and alerts for Grafana and Prometheus, generated from one configuration object."""

from ragtrace_dashboards.alerts import Severity, alerts
from ragtrace_dashboards.boards import board_files, boards
from ragtrace_dashboards.config import (
    DRIFT_ALERTS,
    INVESTIGATE,
    LOWER_IS_BETTER,
    OVERVIEW,
    SCORER,
    Config,
    Watched,
    duration,
)
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.drift_rule.culprit import culprit_rules
from ragtrace_dashboards.export import files, generated_files, shipped_files
from ragtrace_dashboards.expressions import (
    HELD,
    IDENTITY,
    METRIC,
    OUTCOME,
    REASON,
    SERIES,
    VERDICT,
    WORKFLOW,
    Sample,
    interval_end,
    label,
)
from ragtrace_dashboards.groups import recording_groups
from ragtrace_dashboards.missing import whatever_is_missing
from ragtrace_dashboards.receivers import ALERTMANAGER, CONTACT_POINTS, POLICIES, receiver_files
from ragtrace_dashboards.receivers.routing import ROUTES
from ragtrace_dashboards.rule_files import (
    ALERT_GROUP,
    ALERT_RULES,
    ALERTING,
    ANCHOR,
    BOARDS_PATH,
    DATASOURCES,
    GROUPS,
    PROVIDER,
    grafana_files,
    prometheus_files,
)
from ragtrace_dashboards.rules import Rule
from ragtrace_dashboards.runbook_files import runbook_files
