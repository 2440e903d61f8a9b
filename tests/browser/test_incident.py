"""The cause of the demo's incident, found by visible links alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.browser.conftest import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.harness import Watched

MOST_CLICKS = 10


def test_the_cause_is_found_in_ten_clicks(ui: str, watch: Callable[..., Watched]) -> None:
    page = watch(ui).open()
    clicks = 0

    def click(name: str) -> str:
        nonlocal clicks
        link = page.locator("#content").get_by_role("link", name=re.compile(name)).first
        assert link.is_visible()
        link.click()
        page.wait_for_load_state()
        clicks += 1
        return page.inner_text("#content")

    headline = page.locator(".alert").inner_text()
    assert "faithfulness" in headline.lower()
    assert re.search(r"\d\d:\d\d", headline)  # since when
    assert "model" in headline  # the stage
    assert "channel:app" in headline  # the part of the traffic
    cause = click("^Investigate$")
    assert all(word in cause for word in ("faithfulness", "model", "channel:app"))
    assert "channel:app" in click("worst of these runs")
    _refuse_other_channels(page)
    page.locator("[data-row]").first.click()
    page.wait_for_load_state()
    clicks += 1
    run = page.inner_text("#content")
    assert "unsupported" in run
    assert "not supported" in run
    assert clicks <= MOST_CLICKS


def _refuse_other_channels(page: Page) -> None:
    assert 0 < page.locator("[data-row]").count() < QUESTIONS
