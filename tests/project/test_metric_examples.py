"""The pages of docs/concepts/metrics: an executed example for every metric, with the output that the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from ragtrace.metrics.registry import all_metrics

PAGES = Path(__file__).parents[2] / "docs" / "concepts" / "metrics"
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_a_page_shows_what_its_code_prints(page: str) -> None:
    text = (PAGES / page).read_text()
    names: dict[str, object] = {"__name__": "page"}
    for block in _BLOCK.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], page, "exec"), names)  # noqa: S102 -- the page's own example
        assert printed.getvalue() == (block["shown"] or "")


def test_every_metric_has_a_section_that_names_its_outputs() -> None:
    text = "\n".join(path.read_text() for path in PAGES.glob("*.md"))
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    for name, metric in all_metrics().items():
        missing = [output.name for output in metric.spec.outputs if output.name not in sections.get(name, "")]
        assert missing == [], name
