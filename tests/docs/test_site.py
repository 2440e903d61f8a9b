"""The pages' links lead somewhere, and the built site has a Markdown twin and a line in llms.txt for each page."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from posixpath import dirname, normpath
from typing import TYPE_CHECKING

import pytest

from docs import build, reference_pages
from docs.build import ROOT
from ragtrace.queues import spool
from ragtrace.stores import tables
from tests.docs import code_blocks

if TYPE_CHECKING:
    from pathlib import Path

OUTSIDE = re.compile(r"[a-z]+:")
HEADING = re.compile(r"^#{1,6} (.+?)\s*#*$", re.MULTILINE)

WRITTEN = [
    page
    for page in code_blocks.pages()
    if "corpus" not in page.parts and "dist" not in page.parts and page.stem != "template"
]
"""Pages but those of the demo's corpus, whose form its search knows, and those that the boards' package writes."""


@lru_cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as a code host makes them."""
    prose: list[str] = []
    build.outside_blocks(page.read_text(encoding="utf-8"), lambda part: prose.append(part) or part)  # type: ignore[func-returns-value]
    found: list[str] = []
    counted: Counter[str] = Counter()
    for heading in HEADING.findall("\n".join(prose)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", html.unescape(heading))
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.append(f"{anchor}-{counted[anchor]}" if counted[anchor] else anchor)
        counted[anchor] += 1
    return frozenset(found)


def dead(page: Path, target: str) -> str | None:
    """Return what is wrong with a link; None where it leads somewhere."""
    if OUTSIDE.match(target):
        is_known = target.startswith(("https:", "mailto:", "http://127.0.0.1", "http://localhost"))
        return None if is_known else "not https"
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.exists():
        return "no such file"
    if anchor and there.suffix == ".md" and anchor not in anchors(there):
        return f"no heading for it in {there.name}"
    return None


@pytest.mark.parametrize("page", code_blocks.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    targets = build.links_of(page.read_text(encoding="utf-8"))
    assert {target: wrong for target in targets if (wrong := dead(page, target))} == {}


def test_a_dead_link_is_found() -> None:
    page = ROOT / "README.md"
    assert [dead(page, it) for it in ("docs/none.md", "CONTRIBUTING.md#none", "http://example.org")] == [
        "no such file",
        "no heading for it in CONTRIBUTING.md",
        "not https",
    ]
    assert build.links_of("[a\nb](one.md) ![c](two.png)\n```text\n[d](three.md)\n```\n") == ["one.md", "two.png"]


def test_links_of_the_site_are_those_of_the_repository() -> None:
    places = build.site_paths()
    for source, place in places.items():
        if source.endswith(".md"):
            for target in build.links_of(build.relinked(source, places)):
                if not OUTSIDE.match(target) and not target.startswith("#"):
                    there = normpath(f"{dirname(place)}/{target.partition('#')[0]}".lstrip("/"))
                    assert there in places.values(), f"{source}: {target}"


SLOW = {"api.md"}  # griffe reads every docstring


@pytest.mark.parametrize(
    "name", [pytest.param(it, marks=pytest.mark.slow if it in SLOW else ()) for it in reference_pages.pages()]
)
def test_the_reference_is_that_of_the_code(name: str) -> None:
    made = reference_pages.pages()[name]()
    assert (build.REFERENCE / name).read_text(encoding="utf-8") == made, "run `python -m docs.build --reference`"


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_begins_with_its_title_and_a_paragraph(page: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    title, first, *_ = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    assert re.match(r"# \S", title)
    assert not first.startswith(("#", "|", "```", "!", "- ")), "a first paragraph that says what the reader gets"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("material", reason="make docs installs mkdocs")
    folder = tmp_path_factory.mktemp("site")
    build.gather()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_each_page_of_the_site_has_a_twin_and_a_line_in_llms_txt(site: Path) -> None:
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")} - {"404.html"}
    assert len(pages) > 80
    twins = {page.removesuffix(".html") + ".md" for page in pages}
    assert {twin for twin in twins if not (site / twin).is_file()} == set()
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", text, re.MULTILINE)
    assert sorted(listed) == sorted(twins)
    assert re.match(r"# ragtrace\n\n> \S.*\n\n", text)
    assert (
        '<link rel="alternate" type="text/markdown" href="alerts.md">' in (site / "how-to/alerts.html").read_text()
    )


@pytest.mark.slow
def test_links_between_twins_lead_to_twins(site: Path) -> None:
    for twin in site.rglob("*.md"):
        for target in build.links_of(twin.read_text(encoding="utf-8")):
            if not OUTSIDE.match(target) and not target.startswith("#"):
                assert (twin.parent / target.partition("#")[0]).is_file(), f"{twin.relative_to(site)}: {target}"
    assert "### ragtrace.query" in (site / "reference/api.md").read_text()
    assert "# Tutorial" in (site / "llms-full.txt").read_text()


@pytest.mark.parametrize(("file", "version"), [("store", tables.SCHEMA_VERSION), ("spool", spool.SCHEMA_VERSION)])
def test_the_page_on_upgrades_names_the_schemas(file: str, version: int) -> None:
    assert f"\n| {file} | {version} | " in (ROOT / "docs/how-to/upgrade.md").read_text(encoding="utf-8")
