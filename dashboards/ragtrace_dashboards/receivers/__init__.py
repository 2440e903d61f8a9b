"""Receivers of alerts: Slack, PagerDuty and e-mail, for Alertmanager and for Grafana.

Both send the messages of `ragtrace.tmpl`. Secrets are read from files on the machine that sends.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.receivers.alertmanager import alertmanager_config
from ragtrace_dashboards.receivers.grafana import contact_points, notification_policies
from ragtrace_dashboards.yaml_text import yaml_text

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

TEMPLATE: Final = "alertmanager/ragtrace.tmpl"
ALERTMANAGER: Final = "alertmanager/alertmanager.yml"
CONTACT_POINTS: Final = "grafana/receivers/ragtrace-contact-points.yaml"
POLICIES: Final = "grafana/receivers/ragtrace-policies.yaml"

_ALERTMANAGER_HEAD = """\
# Alertmanager 0.25 or later. Change the addresses, and write each secret into the file that a *_file line names.
# An Alertmanager with a configuration of its own takes routes, inhibit_rules, receivers and templates from here.
"""
_CONTACT_POINTS_HEAD = """\
# Grafana 12 or later. Change the addresses, and write each secret into the file that $__file{} names: Grafana does
# not start without that file. E-mail leaves by the [smtp] settings of Grafana.
"""
_POLICIES_HEAD = """\
# Provisioned policies REPLACE all notification policies of the organisation. With policies of your own, add these
# routes to them instead.
"""


def receiver_files(config: Config) -> dict[str, str]:
    """Return the text of each file by its path."""
    template = (resources.files(__name__) / "ragtrace.tmpl").read_text(encoding="utf-8")
    return {
        TEMPLATE: template,
        ALERTMANAGER: _ALERTMANAGER_HEAD + yaml_text(alertmanager_config(config)),
        CONTACT_POINTS: _CONTACT_POINTS_HEAD + yaml_text(contact_points(config, template)),
        POLICIES: _POLICIES_HEAD + yaml_text(notification_policies(config)),
    }
