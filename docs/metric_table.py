"""``python -m docs.metric_table``: write the table of metrics by family from their specs."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.metrics.registry import all_metrics

if TYPE_CHECKING:
    from ragtrace.metrics.base import Metric

PAGE = Path(__file__).resolve().parent / "reference" / "metrics-by-family.md"
METRICS = PAGE.parents[2] / "ragtrace" / "metrics"
BEGIN, END = "<!-- metrics: made by docs/metric_table.py -->\n", "<!-- metrics: end -->\n"


def table() -> str:
    """Return the table: family, metric, meaning, and the fields of a record that it needs."""
    rows = ["| | metric | meaning | needs |", "|---|---|---|---|"]
    found = sorted(all_metrics().values(), key=_family)
    for family, metrics in groupby(found, key=_family):
        for place, metric in enumerate(sorted(metrics, key=lambda metric: metric.spec.name)):
            spec = metric.spec
            label = family if place == 0 else ""
            rows.append(f"| {label} | `{spec.name}` | {spec.summary} | {', '.join(spec.needs)} |")
    return "\n".join(rows) + "\n"


def with_table(text: str) -> str:
    """Return the page's text with today's table between the two marks."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def _family(metric: Metric) -> str:
    (path,) = METRICS.glob(f"*/{metric.spec.name}.py")
    return path.parent.name


def main() -> int:
    """Write the table into its page."""
    PAGE.write_text(with_table(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
