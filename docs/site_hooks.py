"""Hooks of mkdocs: patterns in the navigation, a Markdown twin of every page, and ``llms.txt``.

A twin lies beside its page, with ``.md`` in the place of ``.html``, so that links between pages hold between twins.
``llms.txt`` has the form of llmstxt.org, one line a page with its first sentence. ``llms-full.txt`` holds the pages
of the first sections whole.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.api_page import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

OPTIONAL = ("Runbooks", "Decisions", "Handbook", "Project")
"""Sections that a reader with little room leaves out first."""
_API = re.compile(r"^::: (\S+)$", re.MULTILINE)
_MOST_CHARS = 200

_twins: dict[str, str] = {}
_sections: list[tuple[str, list[Page]]] = []


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace each pattern of the navigation by the pages that no other entry names."""
    folder = Path(config.docs_dir)
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    taken = {path for path in _paths(config.nav) if "*" not in path}
    config.nav = _expanded(config.nav, pages, taken)
    return config


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    """Keep the sections of the navigation for ``llms.txt``."""
    _sections.clear()
    alone = [item for item in nav.items if item.is_page]
    _sections.append(("Start", alone))
    _sections.extend((item.title, [*_pages_of(item)]) for item in nav.items if item.is_section)
    return nav


def on_page_markdown(markdown: str, page: Page, **_: Any) -> None:
    """Keep the page's Markdown as its twin; the reference of the code is written out."""
    _twins[page.file.src_uri] = _API.sub(lambda found: whole(found[1]), markdown)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Name the twin in the page's head."""
    name = page.file.src_uri.rpartition("/")[2]
    link = f'<link rel="alternate" type="text/markdown" href="{name}">'
    return output.replace("</head>", f"{link}\n</head>", 1)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the twins, ``llms.txt`` and ``llms-full.txt``."""
    site = Path(config.site_dir)
    for path, text in _twins.items():
        (site / path).write_text(text.strip() + "\n", encoding="utf-8")
    (site / "llms.txt").write_text(llms_text(config.site_name, config.site_description or ""), encoding="utf-8")
    whole = [_twins[page.file.src_uri] for title, pages in _sections if title not in OPTIONAL for page in pages]
    (site / "llms-full.txt").write_text("\n\n".join(text.strip() for text in whole) + "\n", encoding="utf-8")


def llms_text(name: str, description: str) -> str:
    """Return ``llms.txt``: the title, a summary, and each page with its first sentence."""
    lines = [
        f"# {name}",
        "",
        f"> {description}",
        "",
        "Each page is Markdown here; with `.html` it is the page for people.",
    ]
    for title, pages in sorted(_sections, key=lambda it: it[0] in OPTIONAL):
        if title in OPTIONAL and "## Optional" not in lines:
            lines += ["", "## Optional", ""]
        elif title not in OPTIONAL:
            lines += ["", f"## {title}", ""]
        lines += [
            f"- [{page.title}]({page.file.src_uri}): {first_sentence(_twins[page.file.src_uri]) or page.title}"
            for page in pages
        ]
    return "\n".join(lines) + "\n"


def first_sentence(markdown: str) -> str:
    r"""Return the first sentence of a page below its title, without marks.

    Example:
        >>> first_sentence("# Sinks\n\nSend *scores* to [Slack](a.md). And more.")
        'Send scores to Slack.'
    """
    text = re.sub(r"<!--.*?-->|^#+ [^\n]*$", "\n", markdown, flags=re.DOTALL | re.MULTILINE)
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    prose = next((part for part in parts if part and not part.startswith(("#", "|", "```", "!", "-", ":::"))), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose.split())).replace("*", "").replace("`", "")
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z])", plain)[0]
    return sentence if len(sentence) <= _MOST_CHARS else sentence[: sentence.rindex(" ", 0, _MOST_CHARS)] + " ..."


def _paths(nav: Any) -> Iterator[str]:
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(value, list):
            yield from _paths(value)
        else:
            yield value


def _expanded(nav: Any, pages: list[str], taken: set[str]) -> list[Any]:
    found: list[Any] = []
    for entry in nav:
        title, value = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(value, list):
            inner = _expanded(value, pages, taken)
            found += [{title: inner}] if inner else []
        elif "*" in value:
            more = [page for page in pages if fnmatch(page, value) and page not in taken]
            taken.update(more)
            found += more
        else:
            found.append(entry)
    return found


def _pages_of(item: Any) -> Iterator[Page]:
    for child in item.children or ():
        if child.is_page:
            yield child
        else:
            yield from _pages_of(child)
