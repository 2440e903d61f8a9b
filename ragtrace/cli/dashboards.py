"""Command ``ragtrace dashboards``, which writes boards, alerts, rules and runbooks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config, Receiver
    from ragtrace_dashboards.export import Part

_URL = re.compile(r"(https?|file)://\S+\Z")
_UID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")


command = typer.Typer(help="Write Grafana boards, alerts and Prometheus rules.", rich_markup_mode="markdown")


@command.callback()
def _group() -> None:
    pass


@command.command()
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder for the files. It is made when it is missing.")
    ],
    *,
    datasource_uid: Annotated[
        str | None,
        typer.Option(
            metavar="UID", help="Uid of your Prometheus data source in Grafana. No other one is made then."
        ),
    ] = None,
    runbook_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address where you serve runbooks/, for links in alerts.")
    ] = None,
    grafana_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of Grafana, for links in alerts.")
    ] = None,
    receivers: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS", help="Receivers of alerts: slack, pagerduty, email, by commas. Default: all."
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Look at seconds instead of days, to show how alerts work.")
    ] = False,
    grafana: Annotated[
        bool, typer.Option("--grafana", help="Write boards, provisioning and runbooks alone.")
    ] = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Write rules, Alertmanager's configuration and runbooks alone.")
    ] = False,
    kubernetes: Annotated[
        bool,
        typer.Option(
            "--kubernetes",
            help="Write rules and boards as PrometheusRule and ConfigMap objects, and runbooks, alone.",
        ),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Write what --grafana and --prometheus write, which is the default.")
    ] = False,
) -> int:
    """Write the boards (`*.json`), provisioning, rules, alert receivers and runbooks into a folder.

    Files of the same name are replaced; nothing else is touched.
    """
    from dataclasses import replace

    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.export import files

    chosen: dict[Part, bool] = {
        "grafana": grafana,
        "prometheus": prometheus,
        "kubernetes": kubernetes,
        "all": everything,
    }
    parts = [part for part, is_chosen in chosen.items() if is_chosen] or ["all"]
    if len(parts) > 1:
        raise ConfigError("dashboards: give one of --grafana, --prometheus, --kubernetes and --all")
    if kubernetes and receivers is not None:
        raise ConfigError(
            "--receivers: --kubernetes writes none; leave it out, and export again without --kubernetes"
        )
    config = Config.demo() if demo else Config()
    config = replace(
        config,
        datasource_uid=_uid(datasource_uid) or config.datasource_uid,
        runbook_url=_url("--runbook-url", runbook_url) or config.runbook_url,
        grafana_url=_url("--grafana-url", grafana_url) or config.grafana_url,
        receivers=_receivers(receivers) or config.receivers,
    )
    for path, text in files(config, parts[0]).items():
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{target}: {error.strerror or error}; choose another DIR") from None
        say(target)
    if missing := _missing_addresses(config):
        say(missing, file=sys.stderr)
    return 0


def _missing_addresses(config: Config) -> str:
    given = {
        "boards": ("--grafana-url", config.grafana_url),
        "runbooks": ("--runbook-url, where you serve DIR/runbooks", config.runbook_url),
    }
    missing = {what: option for what, (option, address) in given.items() if not address}
    return (
        f"Alerts have no links to {' and '.join(missing)}: give {' and '.join(missing.values())}."
        if missing
        else ""
    )


def _uid(uid: str | None) -> str | None:
    if uid is not None and not _UID.match(uid):
        raise ConfigError("--datasource-uid: 1 to 40 letters, digits, '-' and '_', as in the data source's address")
    return uid


def _receivers(kinds: str | None) -> tuple[Receiver, ...]:
    from ragtrace_dashboards.config import RECEIVERS

    given = [] if kinds is None else [it.strip() for it in kinds.split(",")]
    if unknown := [it for it in given if it not in RECEIVERS]:
        raise ConfigError(f"--receivers: {unknown[0]!r} is not one of {', '.join(RECEIVERS)}")
    return tuple(it for it in RECEIVERS if it in given)


def _url(option: str, url: str | None) -> str | None:
    if url is None:
        return None
    if "@" in url.split("://", 1)[-1].split("/", 1)[0]:  # not repeated: it may hold a password
        raise ConfigError(f"{option}: every alert shows the address, so it must not hold a name or password")
    if not _URL.match(url) or "{{" in url:
        raise ConfigError(f"{option}: an address begins with http:// or https://, not {url!r}")
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme == "file" or (bool(parts.hostname) and parts.port != 0)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ConfigError(f"{option}: {url!r} has no valid host and port")
    return url.rstrip("/")
