"""Routes of alerts to receivers, the same for Alertmanager and Grafana."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.config import duration
from ragtrace_dashboards.expressions import WORKFLOW

if TYPE_CHECKING:
    from ragtrace_dashboards.alerts import Severity
    from ragtrace_dashboards.config import Config, Receiver

OURS: Final = "Ragtrace.+"
"""Pattern of the names of ragtrace's alerts."""

_WISHED: Final[dict[Severity, tuple[Receiver, ...]]] = {
    "critical": ("pagerduty", "slack"),
    "warning": ("slack",),
    "info": ("email",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Grouping and repetition of the alerts of one severity.

    Attributes:
        severity: label of the alerts.
        group_by: labels that the alerts of one message share. One cause moves several metrics.
        group_wait_s: wait for further alerts before the first message.
        repeat_interval: time after which a message about the same alerts comes again. Alertmanager forgets after
            five days what it sent, unless `--data.retention` says otherwise, so it is no longer.
    """

    severity: Severity
    group_by: tuple[str, ...]
    group_wait_s: int
    repeat_interval: str

    @property
    def name(self) -> str:
        """Name of its receiver."""
        return f"ragtrace-{self.severity}"


ROUTES: Final = (
    Route(severity="critical", group_by=("job", WORKFLOW), group_wait_s=60, repeat_interval="12h"),
    Route(severity="warning", group_by=("job", WORKFLOW), group_wait_s=300, repeat_interval="1d"),
    Route(severity="info", group_by=("job", "alertname"), group_wait_s=300, repeat_interval="5d"),
)
GROUP_INTERVAL_S: Final = 300
DEFAULT: Final = ROUTES[1].name


def wait(config: Config, seconds: int) -> str:
    """Return how long a message waits: no longer than its alerts did, so that the demo's come in time.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> wait(Config(), 60), wait(Config(), 300), wait(Config.demo(), 300)
        ('1m', '5m', '2s')
    """
    return duration(max(1, min(seconds, config.for_s)))


def chosen(config: Config, severity: Severity) -> tuple[Receiver, ...]:
    """Return the receivers of a severity. Where the configuration has none of the usual ones, all it has.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> {severity: chosen(Config(), severity) for severity in ("critical", "warning", "info")}
        {'critical': ('pagerduty', 'slack'), 'warning': ('slack',), 'info': ('email',)}
        >>> chosen(Config(receivers=("slack",)), "info")
        ('slack',)
    """
    return tuple(it for it in _WISHED[severity] if it in config.receivers) or config.receivers
