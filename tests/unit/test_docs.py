"""The pages that `make docs` gathers: every link of ours leads somewhere."""

from __future__ import annotations

import re

from docs import build


def test_no_link_of_the_gathered_pages_is_dead(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "OUT", tmp_path)
    build.gather()
    pages = list(tmp_path.rglob("*.md"))
    assert len(pages) > 30
    dead = [
        f"{page.relative_to(tmp_path)}: {link}"
        for page in pages
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)\s#]+)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert dead == []
