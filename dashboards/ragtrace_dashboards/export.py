"""The whole pack as files: boards, provisioning, rules and runbooks."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Literal

from ragtrace_dashboards.boards import board_files
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.kubernetes import kubernetes_files
from ragtrace_dashboards.receivers import receiver_files
from ragtrace_dashboards.rule_files import grafana_files, prometheus_files
from ragtrace_dashboards.runbook_files import runbook_files

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Part = Literal["grafana", "prometheus", "all", "kubernetes"]


def files(config: Config, part: Part = "all") -> dict[str, str]:
    """Return the text of each file by its path below the export folder, sorted by path.

    The package holds the files of the default configuration, so that these need no extra.

    Args:
        config: source of the files.
        part: ``grafana`` = boards and provisioning, ``prometheus`` = rules and Alertmanager's configuration,
            ``all`` = both, ``kubernetes`` = rules and boards as objects. Runbook pages are in each, since alerts
            link to them.

    Raises:
        MissingExtra: the configuration is not the default, and PyYAML is not installed.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> [path for path in files(Config(), "prometheus") if not path.startswith("runbooks/")]
        ['alertmanager/alertmanager.yml', 'alertmanager/ragtrace.tmpl', 'rules/ragtrace-alerts.yaml', \
'rules/ragtrace-recording.yaml']
    """
    made = shipped_files() if config == Config() else generated_files(config)
    runbooks = {path: text for path, text in made.items() if path.startswith("runbooks/")}
    if part == "kubernetes":
        return dict(sorted((kubernetes_files(made) | runbooks).items()))
    rules = {"grafana": (False,), "prometheus": (True,), "all": (False, True)}[part]
    chosen = {path: text for path, text in made.items() if path.startswith(("rules/", "alertmanager/")) in rules}
    return dict(sorted((chosen | runbooks).items()))


def generated_files(config: Config) -> dict[str, str]:
    """Return every file of a configuration by its path."""
    parts = (runbook_files, board_files, grafana_files, prometheus_files, receiver_files)
    return {path: text for part in parts for path, text in part(config).items()}


def shipped_files() -> dict[str, str]:
    """Return every file of the default configuration by its path, as the package holds them."""
    found: dict[str, str] = {}

    def read(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                read(entry, f"{prefix}{entry.name}/")
            else:
                found[prefix + entry.name] = entry.read_text(encoding="utf-8")

    read(resources.files("ragtrace_dashboards") / "dist", "")
    return found
