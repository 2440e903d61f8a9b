"""Every recording rule in its group.

No rule reads a series that another group records at the same interval, since such groups run side by side. A series
that boards, messages and rules read as it is comes oftener than every five minutes, the time for which Prometheus
remembers a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.drift_rule.baselines import baseline_rules, normal_rules
from ragtrace_dashboards.drift_rule.culprit import culprit_rules
from ragtrace_dashboards.drift_rule.wander import wander_rules
from ragtrace_dashboards.drift_rule.windows import window_rules
from ragtrace_dashboards.rules import Group
from ragtrace_dashboards.shares import share_baseline_rules, share_rules

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

FAST: Final = "ragtrace-fast"
"""The group of the shortest window; the alerts that read it are in it too."""


def recording_groups(config: Config) -> tuple[Group, ...]:
    """Return the groups of recording rules, in the order in which they need each other.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> [(it.name, it.interval_s) for it in recording_groups(Config())]
        [('ragtrace-baseline', 900), ('ragtrace-normal', 180), ('ragtrace-windows', 120), ('ragtrace-fast', 60), \
('ragtrace-wander', 1800), ('ragtrace-shares', 120), ('ragtrace-culprit', 150)]
    """
    rules = {
        ("ragtrace-baseline", config.baseline_interval_s): [*baseline_rules(config), *share_baseline_rules(config)],
        ("ragtrace-normal", config.normal_interval_s): normal_rules(config),
        ("ragtrace-windows", config.window_interval_s): window_rules(config, "day", "week"),
        (FAST, config.scrape_s): window_rules(config, "fast"),
        ("ragtrace-wander", config.wander_interval_s): wander_rules(config),
        ("ragtrace-shares", config.window_interval_s): share_rules(config),
        ("ragtrace-culprit", config.culprit_interval_s): culprit_rules(config),
    }
    return tuple(
        Group(name=name, interval_s=interval_s, rules=tuple(found)) for (name, interval_s), found in rules.items()
    )
