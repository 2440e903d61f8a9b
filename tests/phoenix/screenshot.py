"""The picture of a run in a real Phoenix, for the docs."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import FLAGS
from tests.phoenix.runs import ask, chain, sending
from tests.phoenix.server import Phoenix, phoenix_python, wait_for

WIDTH, HEIGHT = 1600, 1000
PROJECT = "support"


def shoot(picture: Path) -> None:
    """Send a run to a Phoenix of its own, and write the picture of its page."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("phoenix-screenshot: chromium is not on this machine")
    with tempfile.TemporaryDirectory() as folder:
        phoenix = Phoenix(phoenix_python(), Path(folder), has_login=False)
        try:
            phoenix.wait_ready()
            _shoot(phoenix, program, picture)
        finally:
            phoenix.stop()


def _shoot(phoenix: Phoenix, program: str, picture: Path) -> None:
    with sending(phoenix, PROJECT, content="full", metrics=("faithfulness", "no_answer")) as kept:
        ask(chain())
    ((record, _),) = kept.seen
    assert wait_for(lambda: len(phoenix.annotations(PROJECT, record.span_id)) == 2), "two scores on the root span"
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=FLAGS) as browser,
    ):
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark", timezone_id="UTC")
        page.goto(f"{phoenix.url}/redirects/traces/{record.trace_id}")
        page.get_by_text("retrieval faq").first.click()
        page.get_by_text("document doc-0").first.wait_for()
        page.wait_for_timeout(1_000)  # its panels slide in
        page.screenshot(path=picture)
