"""``ragtrace settings``: every setting, its variable, and its present value."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    Row = tuple[str, str, str, str]

HELP = "Print every setting, its variable and its present value."
WIDE = 160  # columns below which descriptions would fold into towers
_READABLE = 100


def command() -> int:
    """Print a table, or blocks where it is narrow; a key is shown as set or not, an address without its login."""
    from ragtrace.cli.io.console import Shown
    from ragtrace.settings import Settings, shown, variables

    now = shown(Settings.resolve({}))
    rows = [
        (name, variable, ("set" if now[name] else "not set") if name.endswith("_key") else _value(now[name]), doc)
        for name, variable, _, doc in variables()
    ]
    console = Shown()
    (_as_table if console.width >= WIDE else _as_blocks)(console, rows)
    return 0


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _as_table(console: Console, rows: list[Row]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("setting", "variable", "now", "what"):
        table.add_column(name, no_wrap=name in {"setting", "variable"})
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _as_blocks(console: Console, rows: list[Row]) -> None:
    width = min(console.width, _READABLE) - 4
    for name, variable, value, doc in rows:
        for line in wrap(f"{name} = {value}", width + 4, subsequent_indent="    "):
            console.print(line)
        for line in ([variable] if variable else ["(an argument of ragtrace.configure alone)"]) + wrap(doc, width):
            console.print(f"    {line}")
