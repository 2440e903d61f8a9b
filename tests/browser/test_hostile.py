"""Texts of anybody, in every field, are shown as texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.browser.harness import NARROW, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.browser.harness import Watched

HOSTILE = [
    "<script>window.taken = 1</script>",
    "\"'><img src=x onerror='window.taken = 1'>",
    "</title></textarea></style><svg onload=window.taken=1>",
    "javascript:window.taken=1",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "w" * 3_000,
    "\u202eevil\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\x1b[31m red \x00 null \ud83d\ude00 \u0301" * 3,
    "../../etc/passwd?a=b&c=d#e",
]


def hostile_line(n: int, text: str) -> dict[str, object]:
    """Return a scored line with a text in every field that is free."""
    claim = {"text": text, "verdict": text, "support": 0.1, "evidence": [text], "reason": text}
    faithfulness = {
        "state": "ok",
        "value": 0.1 * n,
        "passed": n % 2 == 0,
        "details": {"claims": [claim]},
        "judge": text,
    }
    return {
        "id": text,
        "trace_id": f"{n + 1:032x}",
        "started": 1_700_000_000.0 + n,
        "ended": 1_700_000_001.0 + n,
        **dict.fromkeys(
            ("workflow", "session", "user", "environment", "corpus", "model", "query", "reference"), text
        ),
        "answer": f"{text} {text}",
        "tags": [text],
        "contexts": [{"id": text, "text": text, "source": text, "metadata": {text: text}}],
        "history": [{"role": "user", "content": text}],
        "scores": {
            "faithfulness": faithfulness,
            text: {"state": "ok", "value": 0.5, "passed": True, "judge": text, "version": text},
            "diagnosis": {"state": "ok", "value": 1.0, "details": {"verdict": text, "stage": text, text: text}},
        },
    }


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[str]:
    """The address of a server over a file of hostile texts."""
    path = tmp_path / "hostile.jsonl"
    path.write_text("".join(json.dumps(hostile_line(n, text)) + "\n" for n, text in enumerate(HOSTILE)))
    with serving(path, "--trace-url", "https://traces.example/{trace_id}") as url:
        yield url


def test_hostile_texts_stay_texts(hostile: str, watch: Callable[..., Watched]) -> None:
    watched = watch(hostile, size=NARROW)
    page = watched.open("/runs?order=best")
    runs = [link.get_attribute("href") or "" for link in page.locator("[data-row]").all()]
    assert len(runs) == len(HOSTILE)
    by_text = [
        f"/runs?text={quote(text)}&workflow={quote(text)}&tag={quote(text)}"
        for text in (one[:400] for one in HOSTILE[:6])
    ]
    for path in ("/", "/investigate", "/queue", "/compare", "/calibrate", *runs, *by_text):
        watched.open(path)
        assert page.evaluate("window.taken") is None, path
        assert page.locator("main script, main img, main svg[onload], [onerror]").count() == 0, path
        watched.refuse_overflow(path[:60])
    watched.open(runs[0])
    assert page.locator("h1").inner_text()


def test_hostile_texts_are_shown_whole(hostile: str, watch: Callable[..., Watched]) -> None:
    page = watch(hostile).open("/runs?order=best")
    for text in HOSTILE[:2]:
        assert page.get_by_text(text, exact=True).count()


def test_a_hostile_rating_stays_a_text(hostile: str, watch: Callable[..., Watched]) -> None:
    watched = watch(hostile)
    page = watched.open("/runs?order=best")
    page.locator("[data-row]").first.click()
    page.get_by_label("Comment").fill(HOSTILE[0])
    page.get_by_label("Your name").fill(HOSTILE[1][:100])
    page.locator("#rate button[data-press=a]").click()
    page.get_by_role("status").wait_for()
    assert page.evaluate("window.taken") is None
    assert page.get_by_text(HOSTILE[0]).count()
