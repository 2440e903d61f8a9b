"""Each page in Chromium: accessible, at every width, by keyboard, in both themes, without other hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.harness import NARROW, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.harness import Watched

PAGES = [
    "/",
    "/runs",
    "/runs/RUN",
    "/investigate",
    "/queue",
    "/label?run=RUN",
    "/calibrate",
    "/compare",
    "/runs?text=zzz",
]


def _worst(page: Page) -> str:
    return page.locator("[data-row]").first.get_attribute("href") or ""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible_and_fits_every_screen(ui: str, watch: Callable[..., Watched], path: str) -> None:
    watched = watch(ui)
    if "RUN" in path:
        run = urlsplit(_worst(watched.open("/runs"))).path.removeprefix("/runs/")
        path = path.replace("RUN", run)
    page = watched.open(path)
    assert page.locator("h1").count() == 1
    for width, height in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(300)  # charts follow the width
        watched.refuse_overflow(f"{path} at {width} px")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of two words
            watched.refuse_serious(f"{path} at {width} px, {scheme}")


def test_the_chosen_theme_stays(ui: str, watch: Callable[..., Watched]) -> None:
    page = watch(ui).open()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Theme: light").click()
    page.get_by_role("button", name="Theme: dark").wait_for()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("heading", name="Runs", level=1).wait_for()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_a_filter_stays_in_the_address(ui: str, watch: Callable[..., Watched]) -> None:
    page = watch(ui).open("/runs")
    every = page.locator("[data-row]").count()
    page.get_by_label("Verdict").select_option("unsupported")
    page.wait_for_url("**verdict=unsupported**")
    found = page.locator("[data-row]").all_inner_texts()
    assert 0 < len(found) < every
    page.reload()
    assert page.locator("[data-row]").all_inner_texts() == found
    page.locator("[data-row]").first.click()
    page.wait_for_url("**/runs/**")
    page.go_back()
    assert parse_qs(urlsplit(page.url).query)["verdict"] == ["unsupported"]
    assert page.locator("[data-row]").all_inner_texts() == found


def test_a_claim_and_its_evidence_light_up_together(ui: str, watch: Callable[..., Watched]) -> None:
    page = watch(ui).open("/runs?order=best&metric=faithfulness&low=0.6")
    page.locator("[data-row]").first.click()
    claim = page.locator("a.claim-mark").first
    claim.wait_for()
    page.wait_for_load_state()
    number = claim.get_attribute("data-claims")
    passage = page.locator(f"table.passages tr[data-claims~='{number}']").first
    for light in (claim.hover, claim.focus):
        light()
        assert "hot" in (passage.get_attribute("class") or "")
        page.locator("h1").hover()
        page.get_by_role("link", name="ragtrace").focus()
        assert "hot" not in (passage.get_attribute("class") or "")
    passage.hover()
    assert "hot" in (claim.get_attribute("class") or "")


def test_pages_work_without_scripts(ui: str, watch: Callable[..., Watched]) -> None:
    watched = watch(ui, has_scripts=False)
    page = watched.open("/runs?verdict=unsupported")
    page.locator("[data-row]").first.click()
    page.wait_for_url("**/runs/**")
    assert page.locator("a.claim-mark").count()
    for path in ("/", "/investigate", "/queue", "/calibrate", "/compare"):
        watched.open(path)
