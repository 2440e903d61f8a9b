"""The demo's corpus: the project's own handbook, cut into passages at its second-level headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

NAME = "ragtrace-handbook"
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"[`*]")
_NOT_OF_A_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandbookPassage:
    """One section of the handbook.

    Attributes:
        id: page and heading, for example ``sampling#weights``.
        title: title of the page and heading.
        text: the section's prose on one line; fenced code belongs to the page and not to the passage.
    """

    id: str
    title: str
    text: str


@cache
def handbook() -> tuple[HandbookPassage, ...]:
    """Return every passage of the handbook, by page and place.

    Example:
        >>> "sampling#weights" in {passage.id for passage in handbook()}
        True
    """
    folder = files("ragtrace.demo") / "corpus"
    pages = sorted((page for page in folder.iterdir() if page.name.endswith(".md")), key=lambda page: page.name)
    return tuple(
        passage
        for page in pages
        for passage in passages_of(page.name.removesuffix(".md"), page.read_text(encoding="utf-8"))
    )


def passages_of(page: str, markdown: str) -> list[HandbookPassage]:
    r"""Cut one page into passages.

    Example:
        >>> passages_of("faq", "# FAQ\n\n## How `k` is set\nBy *you*.\n")[0]
        HandbookPassage(id='faq#how-k-is-set', title='FAQ: How k is set', text='By you.')
    """
    head, *sections = re.split(r"^## ", _FENCED.sub("", markdown), flags=re.MULTILINE)
    page_title = _plain(head).removeprefix("# ")
    found = []
    for section in sections:
        heading, _, body = section.partition("\n")
        slug = _NOT_OF_A_SLUG.sub("-", heading.lower()).strip("-")
        found.append(
            HandbookPassage(id=f"{page}#{slug}", title=f"{page_title}: {_plain(heading)}", text=_plain(body))
        )
    return found


def _plain(markdown: str) -> str:
    return " ".join(_MARKS.sub("", markdown).split())
