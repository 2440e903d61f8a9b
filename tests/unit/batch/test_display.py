"""Scored runs in a notebook: small HTML that holds no markup of anybody's texts, and text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ragtrace
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {
        "query": "Where is the lab?",
        "answer": "The lab is in Oslo. It has 40 rooms and a sauna.",
        "contexts": ["The lab is in Oslo."],
    },
    {"query": "Who runs it?", "answer": "Ada Lovelace runs it.", "contexts": ["Ada Lovelace runs it."]},
]
TAGS = {"div", "style", "b", "p", "table", "tr", "th", "td", "span"}


class Tags(HTMLParser):
    """The tags of a page, their attributes, and its text outside the style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def scored() -> pa.Table:
    return ragtrace.batch.score(pa.Table.from_pylist(ROWS), metrics="faithfulness,diagnosis")


def test_a_scored_table_shows_its_metrics_failures_and_worst_runs() -> None:
    page = ragtrace.display(scored())._repr_html_()
    text = Tags(page).text
    assert "2 rows, 2 runs" in text
    assert re.search(r"faithfulness0\.7500\.000 to 1\.0002overlaphigher", text)
    assert "unsupported150.0%" in text
    assert "10.500Where is the lab?not supported (0.00): It has 40 rooms and a sauna.unsupported" in text
    assert len(page) < 5_000


def test_one_run_has_its_claims_marked_and_its_passages() -> None:
    run = ragtrace.display(scored()).run(1)
    page = run._repr_html_()
    assert '<span class="bad">It has 40 rooms and a sauna. [✗2]</span>' in page
    assert "unsupported (model): the answer says what the contexts do not hold" in page
    assert "The lab is in Oslo." in page
    assert repr(run).splitlines()[:2] == ["Where is the lab?", ROWS[0]["answer"]]
    with pytest.raises(ConfigError, match="there is no run 7"):
        ragtrace.display(scored()).run(7)


def test_a_file_and_answers_of_a_test_are_sources_too(tmp_path: Path) -> None:
    scores = {"faithfulness": {"state": "ok", "value": 0.25, "judge": "overlap", "version": "a1"}}
    path = tmp_path / "scored.jsonl"
    path.write_text(json.dumps({**ROWS[0], "scores": scores}) + "\n", encoding="utf-8")
    assert "  0.250  1  Where is the lab?" in repr(ragtrace.display(path))
    from ragtrace.testing.evaluating import Evaluator

    found = Evaluator()(ROWS, metrics="faithfulness")
    assert "faithfulness  0.750" in repr(ragtrace.display(found.answers))
    with pytest.raises(ConfigError, match="there is no file"):
        ragtrace.display(tmp_path / "none.jsonl")


hostile = st.one_of(
    st.sampled_from(
        ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><b onclick=x>", "&lt;"]
    ),
    st.text(max_size=20),
)


@settings(max_examples=30)
@given(text=hostile)
def test_no_text_becomes_markup(text: str) -> None:
    score: dict[str, Any] = {
        "state": "ok",
        "value": 0.5,
        "judge": text or "j",
        "version": text or "v",
        "details": {"claims": [{"text": text or "c", "verdict": text or "v", "evidence": [text]}]},
    }
    row = {
        "query": text, "answer": text, "contexts": [{"id": text or "p", "text": text}], "workflow": text or "w",
        "scores": {"faithfulness": score, text.strip() or "m": score},
    }  # fmt: skip
    display = ragtrace.display([row])
    for page in (display._repr_html_(), display.run(1)._repr_html_()):
        seen = Tags(page)
        assert seen.tags <= TAGS
        assert seen.attributes <= {"class"}
