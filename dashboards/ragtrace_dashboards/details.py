"""Template lines of the drift alerts in the Prometheus form, where annotations can ask for recorded series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.drift_rule.baselines import NORMAL
from ragtrace_dashboards.drift_rule.variances import THRESHOLD, Z
from ragtrace_dashboards.expressions import HELD, VERDICT, on
from ragtrace_dashboards.shares import BEFORE, FLOW, GROWN, NOW

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

_PERCENT: Final = "{{ . | value | humanizePercentage }}"


def means_now(config: Config) -> str:
    """Return template lines that name the mean and the baseline; an empty answer leaves them out."""
    chosen = ",".join(f"{name}=%q" for name in HELD)
    values = " ".join(f"$labels.{name}" for name in HELD)
    mean = f"ragtrace:score_mean:day{{{chosen}}}"
    base = f"{NORMAL}_mean:day{{{chosen}}}"
    shown = '{{ . | value | printf "%.3f" }}'
    return (
        f" {{{{ range query (printf `{mean}` {values}) }}}}Mean of {duration(config.day_window_s)}: {shown}."
        f"{{{{ end }}}}{{{{ range query (printf `{base}` {values}) }}}} Baseline: {shown}.{{{{ end }}}}"
    )


def grown_verdict(config: Config) -> str:
    """Return template lines that name the verdict that grew most, with its share before and now.

    The window is that of the alert's first arm that fires. Nothing is said where no share surely grew.
    """
    flow = ",".join(f"{name}=%q" for name in FLOW)
    held = ",".join(f"{name}=%q" for name in HELD)
    asked, values = [], ""
    for arm in arms(config):
        fires = f"{Z}:{arm.name}{{{held}}} > scalar({THRESHOLD}:{arm.name})"
        found = f"{GROWN}:{arm.name}{{{flow}}} and {on(FLOW)} {fires}"
        named = f'label_replace({found}, "window", "{duration(arm.window_s)}", "", "")'
        asked.append(f'label_replace({named}, "arm", "{arm.name}", "", "")')
        values += "".join(f" $labels.{name}" for name in (*FLOW, *HELD))
    chosen = f"{flow},{VERDICT}=%q"
    one = f"$grown.Labels.arm {' '.join(f'$labels.{name}' for name in FLOW)} $grown.Labels.{VERDICT}"
    before, now = (
        f"{{{{ range query (printf `{name}:%s{{{chosen}}}` {one}) }}}}{_PERCENT}{{{{ end }}}}"
        for name in (BEFORE, NOW)
    )
    first = f" or {on(FLOW)} ".join(asked)
    return (
        f"{{{{ range $grown := query (printf `{first}`{values}) }}}} The verdict that grew most within "
        f"{{{{ $grown.Labels.window }}}} is {{{{ $grown.Labels.{VERDICT} }}}}, from {before} of the runs before to "
        f"{now} now.{{{{ end }}}}"
    )
