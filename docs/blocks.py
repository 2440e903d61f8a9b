"""Code blocks of Markdown pages, and the comments before them that say how they are run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block.

    Attributes:
        page: path in the repository.
        line: number of its first line.
        kind: first word behind the fence, in small letters; empty without one.
        title: name of the file that a reader saves it as; None without ``title="..."``.
        notes: comments between the text before and the block, without their marks.
    """

    page: str
    line: int
    kind: str
    text: str
    title: str | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def place(self) -> str:
        """Return ``page:line``."""
        return f"{self.page}:{self.line}"

    def note(self, name: str) -> str | None:
        """Return the rest of the comment that begins with ``name:``; None without it."""
        found = (note.partition(":") for note in self.notes)
        return next((rest.strip() for head, _, rest in found if head.strip() == name), None)


def blocks_of(page: Path, text: str | None = None) -> list[Block]:
    """Return the fenced blocks of a page in their order, those in lists too."""
    found: list[Block] = []
    notes: tuple[str, ...] = ()
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8") if text is None else text):
        if token.type == "html_block":
            notes += tuple(_COMMENT.findall(token.content))
        elif token.type == "fence" and token.map is not None:
            title = _TITLE.search(token.info)
            found.append(
                Block(
                    page=_name(page),
                    line=token.map[0] + 1,
                    kind=token.info.split()[0].lower() if token.info.strip() else "",
                    text=token.content,
                    title=title[1] if title else None,
                    notes=notes,
                )
            )
            notes = ()
        elif not token.hidden and token.type not in {"list_item_open", "bullet_list_open", "ordered_list_open"}:
            notes = ()
    return found


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
