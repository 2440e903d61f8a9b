"""Pages of `ragtrace ui` over 100,000 runs: the server's answer, and the time until Chromium has drawn it."""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.browser.conftest import FLAGS
from tests.browser.harness import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 100_000
REPEATS = 7
PATHS = {
    "overview": "/",
    "worst runs": "/runs",
    "runs with a text": "/runs?text=refund+99",
    "runs, last page": "/runs?page=1000",
    "one run": "/runs/{run}",
    "investigate": "/investigate",
    "queue": "/queue",
    "label": "/label",
    "calibrate": "/calibrate",
    "compare": "/compare",
}
BARE = "/static/icon.svg"


def lines(count: int) -> Iterator[str]:
    """Yield scored lines of about 3 kB."""
    draw = random.Random(1)
    text = "Refunds take five days to arrive at your bank account. " * 4
    for n in range(count):
        passages = [{"id": f"doc-{draw.randint(0, 5_000)}", "text": text, "score": draw.random()} for _ in range(6)]
        claims = [
            {
                "text": f"Refund {n}-{c} takes {c} days.",
                "verdict": verdict,
                "support": draw.random(),
                "sources": [c],
            }
            for c, verdict in enumerate(draw.choices(["supported", "not_supported"], [4, 1], k=3))
        ]
        value = sum(claim["verdict"] == "supported" for claim in claims) / 3
        bad = value < 0.57
        row = {
            "id": str(n), "trace_id": f"{n + 1:032x}", "workflow": draw.choice(["support", "shop"]),
            "session": f"s{n // 3}", "query": f"How long does refund {n} take?", "pool": passages,
            "contexts": passages[:3], "answer": " ".join(str(claim["text"]) for claim in claims),
            "started": 1.79e9 + n, "ended": 1.79e9 + n + 2, "tags": [draw.choice(["channel:app", "channel:web"])],
            "scores": {
                "faithfulness": _score(value, claims=claims, passed=not bad),
                "answer_relevancy": _score(draw.random(), passed=True),
                "mrr": _score(draw.random(), passed=True),
                "diagnosis": _score(1.0, verdict="unsupported" if bad else "ok", stage="model" if bad else "none"),
            },
        }  # fmt: skip
        yield json.dumps(row) + "\n"


def _score(value: float, *, passed: bool | None = None, **details: Any) -> dict[str, Any]:
    made = {"judge": "overlap", "version": "a1b2c3d4"}
    return {"state": "ok", "value": value, "passed": passed, "details": details, **made}


def main() -> int:
    """Print the first answer of each page, and the median of those that the server has made before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scored.jsonl"
        with path.open("w", encoding="utf-8") as stream:
            stream.writelines(lines(RUNS))
        print(f"{RUNS:,} scored runs, {path.stat().st_size / 1e6:.0f} MB; median of {REPEATS}")
        begun = time.perf_counter()
        with serving(path, "--read-only") as url:
            print(f"first answer after {_answer_s(url + '/') + time.perf_counter() - begun:.1f} s")
            _wait_until_read(url)
            print(f"the whole file is read after {time.perf_counter() - begun:.1f} s")
            first = {name: _answer_s(url + page.format(run=RUNS // 2)) for name, page in PATHS.items()}
            bare = median(_answer_s(url + BARE) for _ in range(REPEATS))
            print(f"{'page':<18}{'first ms':>10}{'again ms':>10}{'of a bare file':>16}{'Chromium ms':>13}")
            drawn = _drawn_ms(url)
            for name, page in PATHS.items():
                took = median(_answer_s(url + page.format(run=RUNS // 2)) for _ in range(REPEATS))
                again = f"{took * 1e3:>10.0f}{took / bare:>15.1f}x"
                print(f"{name:<18}{first[name] * 1e3:>10.0f}{again}{drawn.get(name, '-'):>13}")
    return 0


def _wait_until_read(url: str) -> None:
    """Wait until the overview counts every run: a file is read while the server answers."""
    while True:
        with urllib.request.urlopen(url) as answer:  # noqa: S310 - http on loopback
            if f"{RUNS:,} runs" in answer.read().decode():
                return
        time.sleep(0.25)


def _answer_s(url: str) -> float:
    begun = time.perf_counter()
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - http on loopback
        answer.read()
    return time.perf_counter() - begun


def _drawn_ms(url: str) -> dict[str, str]:
    """Return the time of each page from the click until scripts have run and the page is laid out."""
    program = shutil.which("chromium")
    if program is None:
        print("chromium is not on this machine: no times of a browser")
        return {}
    from playwright.sync_api import sync_playwright

    found = {}
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=FLAGS) as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        for name, path in PATHS.items():
            times = []
            for _ in range(REPEATS):
                page.goto(url + path.format(run=RUNS // 2), wait_until="load")
                times.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            found[name] = f"{median(times):.0f}"
    return found


if __name__ == "__main__":
    sys.exit(main())
