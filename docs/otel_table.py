"""``python -m docs.otel_table``: write the settings of OpenTelemetry that `ragtrace doctor` knows into its page."""

from __future__ import annotations

import sys
from pathlib import Path

from ragtrace.cli.doctor.otel import TABLE

PAGE = Path(__file__).resolve().parent / "how-to" / "operations.md"
BEGIN, END = "<!-- table: made by docs/otel_table.py -->\n", "<!-- table: end -->\n"


def table() -> str:
    """Return the rows of doctor's table in their order."""
    lines = ["| setting | `doctor` | what follows | do |", "|---|---|---|---|"]
    address = "`http://127.0.0.1:9464/metrics`"
    lines += [f"| {row.setting} | {row.level} | {row.said.format(address=address)} | {row.todo} |" for row in TABLE]
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """Return the page's text with today's table between the two marks."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write the table into the page."""
    PAGE.write_text(with_table(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
