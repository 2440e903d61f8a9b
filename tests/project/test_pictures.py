"""Every picture of README and docs comes from one target of the Makefile."""

from __future__ import annotations

import re
from collections import Counter

from docs.pictures import IMAGES, ROOT, TARGETS
from tests.conftest import ROOT as CHECKOUT


def test_every_picture_is_made_by_one_target() -> None:
    made = Counter(name for names in TARGETS.values() for name in names)
    there = {path.name for path in IMAGES.iterdir()}
    assert there
    assert made == Counter(there)


def test_every_target_stands_in_the_makefile() -> None:
    rules = set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    assert set(TARGETS) <= rules


def test_every_picture_that_a_page_shows_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "dashboards").glob("*.md")]
    shown = [
        (page, match)
        for page in pages
        for match in re.findall(r"\((?:\.\./)*(?:docs/)?images/([^)#]+)\)", page.read_text())
    ]
    assert shown
    assert not [f"{page}: {name}" for page, name in shown if not (IMAGES / name).is_file()]
