"""``python -m docs.stability_table``: write the names by stability from the tables of the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import ragtrace
from ragtrace import semconv
from ragtrace.cli.main import COMMANDS
from ragtrace.queues.spool import SCHEMA_VERSION as SPOOL_VERSION
from ragtrace.settings import TABLE
from ragtrace.stores.tables import SCHEMA_VERSION as STORE_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = Path(__file__).resolve().parent / "stability.md"
BEGIN, END = "<!-- stability: made by docs/stability_table.py -->\n", "<!-- stability: end -->\n"
_FIXED_UPSTREAM = {"error.type", "exception.message", "exception.type", "server.address", "server.port"}


def level(name: str) -> str:
    """Return the stability of a name on the wire."""
    if name in _FIXED_UPSTREAM:
        return "stable (OpenTelemetry)"
    if name.startswith("gen_ai.") or name in {"session.id", "user.id"}:
        return "development (OpenTelemetry GenAI)"
    return "ours (`ragtrace.*`)" if name.startswith("ragtrace.") else "of OpenInference"


def wire_names() -> dict[str, list[str]]:
    """Return the names of attributes, events and metrics by stability."""
    found: dict[str, set[str]] = {}
    for constant, value in vars(semconv).items():
        # Others are values, suffixes or prefixes, or no texts.
        is_name = isinstance(value, str) and re.fullmatch(r"[a-z_0-9]+(\.[a-z_0-9]+)+", value)
        if constant.isupper() and is_name:
            found.setdefault(level(value), set()).add(value)
    return {name: sorted(found[name]) for name in sorted(found)}


def tables() -> str:
    """Return the generated part of the page."""
    parts = ["### Names on the wire\n"]
    parts += [f"**{name}** ({len(names)}): {_listed(names)}.\n" for name, names in wire_names().items()]
    parts.append(f"### Python\n\n{_listed(it for it in sorted(ragtrace.__all__) if it != '__version__')}.\n")
    parts.append(f"### Commands\n\n{_listed(sorted(COMMANDS))}.\n")
    parts.append(f"### Settings\n\n{_listed(one.variable for one in TABLE.values())}.\n")
    parts.append(f"### Schemas of files\n\nStore: {STORE_VERSION}. Spool: {SPOOL_VERSION}.\n")
    return "\n".join(parts)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{it}`" for it in names)


def with_tables(text: str) -> str:
    """Return the page's text with today's lists between the two marks."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write the lists into their page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
