"""``ragtrace settings``: every setting, its variable, and what holds here and now."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the command."""
    commands.add_parser("settings", help="print every setting, its variable and its present value")


def run(args: argparse.Namespace) -> int:
    """Print the table; a key is shown as set or not, never itself."""
    from rich.table import Table

    from ragtrace.cli.console import Shown
    from ragtrace.settings import Settings, variables

    del args
    now = Settings.resolve({})
    table = Table("setting", "variable", "now", "what", box=None, pad_edge=False)
    for name, variable, _, doc in variables():
        value = getattr(now, name)
        shown = ("set" if value else "not set") if name.endswith("_key") else str(value)
        table.add_row(name, variable, shown, doc)
    Shown().print(table)
    return 0
