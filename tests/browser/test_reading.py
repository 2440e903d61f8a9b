"""What capture read of a run, in Chromium: accessible at every width, and its lines are copied by keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.harness import NARROW, WIDE, serving
from tests.unit.views.scored_runs import line, reading, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    from tests.browser.harness import Watched

DECLARED = 'evidence={"state.rows": True}'


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    read = reading("evidence_unread", "tool_unused")
    read["signs"][0] |= {"about": "state." + "rows" * 40, "text": "| town | rooms | " * 20, "declare": DECLARED}
    with serving(write(tmp_path_factory.mktemp("signed") / "scored.jsonl", [line(0, reading=read)])) as address:
        yield address


def pasted(page: Page) -> str:
    """Return what a person gets who pastes."""
    page.evaluate("document.body.appendChild(document.createElement('textarea')).focus()")
    page.keyboard.press("Control+V")
    return page.locator("body > textarea").input_value()


def test_it_is_accessible_and_fits_every_screen(signed: str, watch: Callable[..., Watched]) -> None:
    watched = watch(signed)
    for path in ("/runs/1", "/runs?sign=any", "/"):
        page = watched.open(path)
        for width, height in (WIDE, NARROW):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(300)  # charts follow the width
            watched.refuse_overflow(f"{path} at {width} px")
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of two words
                watched.refuse_serious(f"{path} at {width} px, {scheme}")


@pytest.mark.parametrize("is_secure", [True, False])
def test_a_line_is_copied_by_keyboard_also_where_there_is_no_clipboard(
    signed: str, watch: Callable[..., Watched], *, is_secure: bool
) -> None:
    watched = watch(signed)
    if not is_secure:
        watched.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page = watched.open("/runs/1")
    page.get_by_role("button", name="Copy").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copied").wait_for()
    assert pasted(page) == DECLARED
