"""``ragtrace settings``: every setting, its variable, and what holds here and now."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the command."""
    commands.add_parser("settings", help="print every setting, its variable and its present value")


def run(args: argparse.Namespace) -> int:
    """Print the table; a key is shown as set or not, and of an address neither login nor query."""
    from rich.table import Table

    from ragtrace.cli.console import Shown
    from ragtrace.settings import Settings, shown, variables

    del args
    now = shown(Settings.resolve({}))
    table = Table("setting", "variable", "now", "what", box=None, pad_edge=False)
    for name, variable, _, doc in variables():
        value = ("set" if now[name] else "not set") if name.endswith("_key") else str(now[name])
        table.add_row(name, variable, value, doc)
    Shown().print(table)
    return 0
