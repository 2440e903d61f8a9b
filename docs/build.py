"""``make docs``: gathers the pages of the repository under ``build/docs``, and builds the site from them.

Pages are plain Markdown wherever they stand, with links to files of the repository. Here links between pages become
links between their copies. A link to a file that is no page keeps its words alone.

``python -m docs.build --reference`` writes the pages of docs/reference that the code makes, and nothing else;
``--metrics`` writes the table of metrics, and ``--links`` prints the external links.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import TYPE_CHECKING

from docs.api_page import MARK

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "docs"
REFERENCE = ROOT / "docs" / "reference"
METRICS_PAGE = REFERENCE / "metrics.md"
FOLDERS = {
    "docs": "",
    "ragtrace/demo/corpus": "handbook",
    "dashboards/ragtrace_dashboards/dist/runbooks": "runbooks",
}
PAGES = {
    "README.md": "readme.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "changes/README.md": "fragments.md",
    "dashboards/README.md": "dashboards.md",
    "dashboards/stack/README.md": "stack.md",
    "integrations/langchain/README.md": "langchain.md",
    "integrations/llamaindex/README.md": "llamaindex.md",
}
FRONT_PAGES = {"ragtrace/demo/corpus": "handbook/overview.md"}
_KINDS = {".md", ".svg", ".png", ".webp"}
_FENCE = re.compile(r"(^[ ]*(`{3,}|~{3,}).*?^[ ]*\2[ ]*$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_EXTERNAL = re.compile(r"[a-z]+:|#")


def main() -> int:
    """Gather and build; return mkdocs' exit status, which a single warning makes an error."""
    if "--metrics" in sys.argv:
        METRICS_PAGE.write_text(metrics_page())
        return 0
    if "--reference" in sys.argv:
        return write_reference()
    if "--links" in sys.argv:
        print("\n".join(external_links()))
        return 0
    gather()
    # Not --quiet: it hides warnings from the count that --strict ends with.
    build = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(build, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode


def gather() -> None:
    """Write every page and picture under `OUT`."""
    shutil.rmtree(OUT, ignore_errors=True)
    places = site_paths()
    for source, place in places.items():
        target = OUT / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            target.write_text(relinked(source, places), encoding="utf-8")
        else:
            shutil.copy(ROOT / source, target)


def site_paths() -> dict[str, str]:
    """Return the path in the site of each page and picture, by its path in the repository."""
    found = dict(PAGES)
    for folder, place in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _KINDS:
                inside = path.relative_to(ROOT / folder).as_posix().replace("README.md", "index.md")
                found[path.relative_to(ROOT).as_posix()] = f"{place}/{inside}" if place else inside
    for path in sorted((ROOT / "examples").glob("*/README.md")):
        found[path.relative_to(ROOT).as_posix()] = f"examples/{path.parent.name}.md"
    return found


def relinked(source: str, places: dict[str, str]) -> str:
    """Return the text of a page with links as they are in the site.

    Args:
        source: path of the page in the repository.
        places: of `site_paths`.
    """

    def link(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if _EXTERNAL.match(target):
            return found[0]
        path, _, anchor = target.partition("#")
        place = _place(normpath(f"{dirname(source)}/{path}".lstrip("/")), places)
        if place is None:
            return words
        there = relpath(place, dirname(places[source]) or ".")
        return f"{picture}[{words}]({there}{f'#{anchor}' if anchor else ''})"

    text = outside_blocks((ROOT / source).read_text(encoding="utf-8"), lambda part: _LINK.sub(link, part))
    return re.sub(re.escape(MARK).replace(r"\{\}", r"(\S+)"), r"::: \1", text)


def outside_blocks(text: str, change: Callable[[str], str]) -> str:
    """Return a page with its fenced blocks as they are, and the text between them changed."""
    parts = _FENCE.split(text)  # text, block, its fence, text, ...
    return "".join(change(part) if n % 3 == 0 else part for n, part in enumerate(parts) if n % 3 != 2)


def links_of(text: str) -> list[str]:
    """Return the targets of the links and pictures of a page in their order."""
    found: list[str] = []

    def noted(part: str) -> str:
        found.extend(match[3] for match in _LINK.finditer(part))
        return part

    outside_blocks(text, noted)
    return found


def external_links() -> list[str]:
    """Return each link that leaves the repository, with the page that it stands on."""
    return [
        f"{source}: {target}"
        for source in site_paths()
        if source.endswith(".md")
        for target in links_of((ROOT / source).read_text(encoding="utf-8"))
        if target.startswith("http")
    ]


def metrics_page() -> str:
    """Return the reference of metrics with the table that their specs give now."""
    table = subprocess.run(
        [sys.executable, "-m", "ragtrace", "metrics", "--markdown"], check=True, capture_output=True, text=True
    ).stdout
    text = METRICS_PAGE.read_text()
    begin, end = (text.index(f"<!-- metrics table: {edge}") for edge in ("begin", "end"))
    return f"{text[: text.index(chr(10), begin)]}\n\n{table.strip()}\n\n{text[end:]}"


def write_reference() -> int:
    """Write the pages that the code makes into docs/reference."""
    from docs import reference_pages

    METRICS_PAGE.write_text(metrics_page())
    for name, made in reference_pages.pages().items():
        (REFERENCE / name).write_text(made(), encoding="utf-8")
    return 0


def _place(path: str, places: dict[str, str]) -> str | None:
    if path in FRONT_PAGES:
        return FRONT_PAGES[path]
    names = (path, f"{path}/README.md", f"{path}/index.md")
    return next((places[name] for name in names if name in places), None)


if __name__ == "__main__":
    sys.exit(main())
