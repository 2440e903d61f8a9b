"""Texts of anybody never become elements, attributes, scripts or addresses of a page."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.ui.pages import Page, read_page
from tests.ui.scored import client_of, scored_line, write_lines

PIECES = (
    *('"', "'", "<", ">", "&", "`", "=", "/", "\\", "{{", "}}", "{%", "#}", "]]>", "<!--", "-->", "</script>"),
    *("<img src=x onerror=alert(1)>", "<x-evil data-evil='1'>", '" autofocus onfocus="alert(1)', "' data-evil='1"),
    *("javascript:alert(1)", "data:text/html,<x-evil>", "//evil.example", "&lt;x-evil&gt;", "</td></tr></table>"),
    *("\x00", "\x1b[2J", "\u202e", "\u2066", "\u2028", "\ufeff", "\ud800", "\r\n", "\t", "é", "漢", "🙂"),
)
HOSTILE = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)
CONTROLS = dict.fromkeys(
    [*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)


def line(text: str, number: int, *, value: float | None = 0.2) -> dict[str, Any]:
    """Return a scored line with this text in every field that takes one."""
    found = scored_line(number, value=value, verdict="unsupported", claim=text, reason=text)
    passage = {"id": text, "text": text, "score": 0.5, "source": text}
    long = {"id": text + "2", "text": text + " long" * 80, "source": text}
    found |= {
        "id": text,
        "query": text,
        "answer": f"{text} {text}",
        "reference": text,
        "workflow": text,
        "session": text,
        "corpus": text,
        "model": text,
        "tags": [text, "channel:" + text],
        "history": [{"role": "user", "content": text}],
        "trace_id": text,
        "pool": [passage, long],
        "contexts": [passage],
    }
    for score in found["scores"].values():
        score |= {"judge": text, "version": text}
    found["scores"][text] = {**found["scores"]["faithfulness"], "k": 5, "universe": text, "label_scale": text}
    found["scores"]["mrr"] = {"state": "error", "reason": text, "judge": text, "version": text}
    found["scores"]["diagnosis"]["details"] = {"verdict": "unsupported", "stage": text, text: text}
    return found


def pages_of(text: str) -> list[Page]:
    """Return the pages of a file with this text in all fields, followed from link to link."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [line(text, n, value=0.2 if n > 20 else 1.0) for n in range(40)]
        path = write_lines(Path(folder) / "scored.jsonl", lines)
        client = client_of(path, trace_url="https://traces.example/{trace_id}")
        sent = text.encode("utf-8", "replace").decode(
            "utf-8"
        )  # an address has no form for half of a surrogate pair
        query = {"workflow": sent, "text": sent, "tag": sent, "model": sent, "session": sent, "metric": sent}
        answers = [
            client.get("/"),
            client.get("/", params=query),
            client.get("/runs"),
            client.get("/runs", params={"workflow": sent}),
            client.get("/runs", params=query),
            client.get("/runs/1"),
            client.get("/runs/30", params={"verdict": "unsupported"}),
            client.get("/queue"),
            client.get("/queue", params=query),
            client.get("/calibrate"),
            client.get("/compare"),
            client.get("/investigate"),
            client.get("/investigate", params={"workflow": sent, "metric": sent}),
            client.get(f"/runs/{quote(sent, safe='')}"),
        ]
    assert all(answer.status_code in {200, 400, 404} for answer in answers)
    return [read_page(answer.text) for answer in answers]


@cache
def harmless_shapes() -> frozenset[tuple[str, str]]:
    """Return the elements and attributes of these pages for harmless texts of the same fields."""
    return frozenset().union(*(page.shapes() for page in pages_of("harmless")))


@pytest.mark.slow
@given(text=HOSTILE)
@example("</title></script><x-evil data-evil='1'>\"' onfocus=alert(1)")
@example("javascript:alert(1)")
@example("\ud800\x00\u202e")
@settings(max_examples=25)
def test_no_text_adds_an_element_an_attribute_or_an_address(text: str) -> None:
    for page in pages_of(text):
        assert page.shapes() <= harmless_shapes()
        assert all(address.startswith(("/", "#", "https://traces.example/")) for address in page.values("href"))
        assert not any(address.startswith("//") for address in page.values("href"))
        assert page.text == page.text.translate(CONTROLS)
        for _, attributes in page.elements:
            if "data-trend" in attributes:
                json.loads(attributes["data-trend"])


def test_hostile_texts_stay_readable() -> None:
    pages = pages_of("<b>bold</b> & \x1b[2J")
    assert all(page.shapes() <= harmless_shapes() for page in pages)
    assert r"<b>bold</b> & \x1b[2J" in pages[5].text
