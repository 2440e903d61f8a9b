"""The whole pack as files: what `ragtrace dashboards export` writes and what dashboards/dist holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ragtrace_dashboards.boards import board_files
from ragtrace_dashboards.grafana_files import grafana_files
from ragtrace_dashboards.prometheus_files import prometheus_files
from ragtrace_dashboards.runbook_files import runbook_files

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

Part = Literal["grafana", "prometheus", "all"]


def files(config: Config, part: Part = "all") -> dict[str, str]:
    """Return the text of each file by its path below the export folder, sorted by path.

    Args:
        config: what is generated.
        part: ``grafana`` = boards and provisioning, ``prometheus`` = rules, ``all`` = both. Runbook pages are in
            each, since alerts of both forms link to them.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> [path for path in files(Config(), "prometheus") if not path.startswith("runbooks/")]
        ['rules/ragtrace-alerts.yaml', 'rules/ragtrace-recording.yaml']
    """
    made = runbook_files(config)
    if part != "prometheus":
        made |= board_files(config) | grafana_files(config)
    if part != "grafana":
        made |= prometheus_files(config)
    return dict(sorted(made.items()))
