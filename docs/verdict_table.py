"""``python -m docs.verdict_table``: write the decision table of the diagnosis into its page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.metrics.diagnosis.table import ROWS

if TYPE_CHECKING:
    from ragtrace.metrics.diagnosis.table import DecisionRow

PAGE = Path(__file__).resolve().parent / "concepts" / "diagnosis.md"
BEGIN, END = "<!-- table: made by docs/verdict_table.py -->\n", "<!-- table: end -->\n"


def table() -> str:
    """Return the rows of the decision table in their order."""
    lines = ["| | if | then | in words |", "|---|---|---|---|"]
    lines += [f"| {place} | {_when(row)} | {_verdict(row)} | {row.meaning} |" for place, row in enumerate(ROWS, 1)]
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """Return the page's text with today's table between the two marks."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def _when(row: DecisionRow) -> str:
    parts = [f"{name} {' or '.join(allowed)}" for name, allowed in row.when.items()]
    return ", ".join(parts) or "else"


def _verdict(row: DecisionRow) -> str:
    return f"`{row.verdict}`" + (f" ({row.because})" if row.because else "")


def main() -> int:
    """Write the table into the page."""
    PAGE.write_text(with_table(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
