"""People's ratings: by keyboard, by mouse, without scripts, and refused."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.browser.harness import serving
from tests.command_line import environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.harness import Watched


def _kept(store: Path) -> list[tuple[str, float, str, str | None]]:
    with sqlite3.connect(store) as connection:
        rows = connection.execute(
            "SELECT name, value, version, json_extract(details, '$.comment') FROM scored WHERE source = 'human'"
            " ORDER BY scored_at"
        )
        return [(name, value, version, comment) for name, value, version, comment in rows]


def _press_until_focused(page: Page, selector: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement?.matches(selector)", selector):
            return
    raise AssertionError(f"no Tab reaches {selector}")


def test_the_keyboard_alone_leads_from_the_overview_to_a_rated_run_and_the_next(
    store: Path, watch: Callable[..., Watched]
) -> None:
    with serving(store) as url:
        page = watch(url).open()
        page.keyboard.press("g")
        page.keyboard.press("r")
        page.wait_for_url("**/runs*")  # the overview has rows as well
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/runs/**")  # loaded, so that its keys work
        first = page.url
        page.keyboard.press("a")
        page.get_by_role("status").wait_for()
        page.wait_for_load_state()  # keys work from here on
        page.keyboard.press("j")
        page.wait_for_url(lambda address: address.split("?")[0] != first.split("?")[0])
        page.keyboard.press("d")
        page.get_by_role("status").wait_for()
    assert [(name, value) for name, value, _, _ in _kept(store)] == [("faithfulness", 0.0), ("faithfulness", 1.0)]


def test_a_correction_keeps_value_comment_and_name(store: Path, watch: Callable[..., Watched]) -> None:
    with serving(store) as url:
        page = watch(url).open("/runs")
        page.locator("[data-row]").first.click()
        page.get_by_label("Comment").fill('half of it is <b>"there"</b>')
        page.get_by_label("Your name").fill("Ada Šimić")
        page.locator("body").click(position={"x": 2, "y": 300})
        page.keyboard.press("c")
        page.keyboard.type("0.75")
        page.keyboard.press("Enter")
        page.get_by_role("status").filter(has_text="Ada Šimić").wait_for()
        assert page.get_by_text('half of it is <b>"there"</b>').count() == 1
        page.get_by_role("link", name="next").click()
        assert page.get_by_label("Your name").input_value() == "Ada Šimić"
        _press_until_focused(page, "input[name=rater]")
        page.keyboard.press("Enter")  # in a field, this rates nothing
        page.wait_for_timeout(300)
    assert _kept(store) == [("faithfulness", 0.75, "human:Ada Šimić", 'half of it is <b>"there"</b>')]


def test_the_whole_answer_is_rated_without_scripts(store: Path, watch: Callable[..., Watched]) -> None:
    with serving(store) as url:
        page = watch(url, has_scripts=False).open("/runs")
        page.locator("[data-row]").first.click()
        page.get_by_role("link", name="the whole answer").click()
        page.get_by_role("button", name="Bad").click()
        page.get_by_role("status").wait_for()
    assert [(name, value) for name, value, _, _ in _kept(store)] == [("feedback", 0.0)]


def test_the_queue_leads_from_run_to_run(store: Path, watch: Callable[..., Watched]) -> None:
    with serving(store) as url:
        page = watch(url).open("/queue?metric=faithfulness")
        page.get_by_role("link", name="Start").click()
        seen = []
        for key in ("a", "d", "n", "a"):
            page.locator("#rate form").wait_for()
            page.wait_for_load_state()
            seen.append(page.url)
            page.keyboard.press(key)
            page.wait_for_url(lambda address: address not in seen)
        assert len(set(seen)) == 4
        page.get_by_role("link", name="Label", exact=True).click()
        page.get_by_text("3 of").first.wait_for()
    assert len(_kept(store)) == 3


def test_ratings_of_a_file_serve_calibrate(demo_copy: Path, watch: Callable[..., Watched]) -> None:
    with serving(demo_copy) as url:
        page = watch(url).open("/label?metric=faithfulness")
        for key in "aaaaaaaaaaaadaaaaaaaadaaaaaaaa":  # five of each class are needed
            before = page.url
            page.keyboard.press(key)
            page.wait_for_url(lambda address: address != before)  # noqa: B023 - called within the turn
        page.goto(f"{url}/calibrate?metric=faithfulness")
        shown = page.locator("pre.command").inner_text()
        auroc = page.locator("tr", has_text="AUROC").inner_text()
    words = shown.split()
    assert words[:2] == ["ragtrace", "calibrate"]
    report = demo_copy.parent / "report.json"
    command = [sys.executable, "-m", *words, "--json", str(report)]
    subprocess.run(command, check=True, capture_output=True, env=environment(), timeout=120)
    figures = json.loads(report.read_text())["figures"]
    assert f"{figures['auroc']['value']:.3f}" in auroc


def test_a_read_only_page_says_why(ui: str, watch: Callable[..., Watched]) -> None:
    page = watch(ui).open("/runs")
    page.locator("[data-row]").first.click()
    page.get_by_text("--read-only").first.wait_for()
    assert not page.locator("#rate form").count()


@pytest.mark.parametrize("token", ["", "guessed"])
def test_a_form_of_another_page_is_refused(store: Path, watch: Callable[..., Watched], token: str) -> None:
    with serving(store) as url:
        watched = watch(url)
        page = watched.open("/runs")
        run = (page.locator("[data-row]").first.get_attribute("href") or "").split("?")[0].rpartition("/")[2]
        answer = page.request.post(f"{url}/rate/{run}", form={"value": "0", "metric": "feedback", "token": token})
        assert answer.status == 403
    assert _kept(store) == []
