"""The report in Chromium, from a file: no request, no message, and it works without scripts."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.command_line import environment

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.browser.conftest import Demo


@pytest.mark.parametrize(
    ("width", "scheme", "has_scripts"), [(1280, "light", True), (360, "dark", True), (1280, "dark", False)]
)
def test_the_report_opens_without_a_network(
    demo: Demo, chromium: Browser, tmp_path: Path, width: int, scheme: str, *, has_scripts: bool
) -> None:
    path = tmp_path / "report.html"
    command = [
        sys.executable,
        "-m",
        "ragtrace",
        "report",
        str(demo.file),
        "-o",
        str(path),
        "--compare",
        str(demo.file),
    ]
    subprocess.run(command, check=True, capture_output=True, env=environment(), timeout=100)
    context = chromium.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        java_script_enabled=has_scripts,  # type: ignore[arg-type]
    )
    page = context.new_page()
    messages: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    if has_scripts:
        page.wait_for_selector(".chart canvas")
        page.locator("table.runs a[data-row]").first.click()
        page.wait_for_selector("details.whole[open] .answer")
    else:
        page.locator("details.whole > summary").first.click()
    assert page.locator("details.whole[open] .answer").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert messages == []
    assert {url.partition("#")[0] for url in asked} == {path.as_uri()}
    context.close()
