"""``ragtrace dashboards``: boards, alerts, rules and runbooks as files."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError

_UID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the command ``dashboards``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "dashboards", help="write Grafana boards, alerts and Prometheus rules", description=__doc__
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = actions.add_parser(
        "export",
        help="write them into a folder",
        description="Writes the boards (*.json), Grafana's provisioning files (grafana/), Prometheus rules "
        "(rules/) and a page for each alert (runbooks/) into a folder. Files of the same name are replaced; "
        "nothing else is touched.",
    )
    export.add_argument("dir", type=Path, metavar="DIR", help="where to; made when it is missing")
    export.add_argument(
        "--datasource-uid",
        metavar="UID",
        help="uid of your Prometheus data source in Grafana, which stays as it is",
    )
    export.add_argument("--runbook-url", metavar="URL", help="where you serve runbooks/, for links in alerts")
    export.add_argument("--grafana-url", metavar="URL", help="where Grafana stands, for links in alerts")
    export.add_argument("--demo", action="store_true", help="seconds instead of days: shows how alerts work")
    parts = export.add_mutually_exclusive_group()
    for part, text in (
        ("grafana", "boards and provisioning"),
        ("prometheus", "rules"),
        ("all", "both; the default"),
    ):
        parts.add_argument(f"--{part}", dest="part", action="store_const", const=part, help=text)
    export.set_defaults(part="all")
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the files and say which.

    Raises:
        ConfigError: an option is wrong, or a file cannot be written.
    """
    from dataclasses import replace

    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.export import files

    given: dict[str, Any] = {
        "datasource_uid": _uid(args.datasource_uid),
        "runbook_url": _url("--runbook-url", args.runbook_url),
        "grafana_url": _url("--grafana-url", args.grafana_url),
    }
    config = Config.demo() if args.demo else Config()
    config = replace(config, **{key: value for key, value in given.items() if value is not None})
    for path, text in files(config, args.part).items():
        target = args.dir / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{target}: {error.strerror or error}; choose another DIR") from None
        say(target)
    if args.runbook_url is None:
        say(f"Alerts link to {config.runbook_url}: serve DIR there, or give --runbook-url.", file=sys.stderr)
    return 0


def _uid(uid: str | None) -> str | None:
    if uid is not None and not _UID.match(uid):
        raise ConfigError("--datasource-uid: 1 to 40 letters, digits, '-' and '_', as in the data source's address")
    return uid


def _url(option: str, url: str | None) -> str | None:
    if url is None:
        return None
    if not re.match(r"(https?|file)://\S+\Z", url) or "{{" in url:
        raise ConfigError(f"{option}: an address begins with http:// or https://, not {url!r}")
    return url.rstrip("/")
