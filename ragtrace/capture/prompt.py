"""Finds which passages really stand in a rendered prompt, and how much of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Passage

SHORTEST_CUT_CHARS = 40  # a shorter common beginning ("The ", a title) says nothing of a passage
_MOST_BEGINNINGS = 16


def place_of(text: str, prompt: str, near: int = 0) -> int:
    """Return where a text stands in a prompt: first behind `near`, else anywhere; -1 where it does not.

    Prompts hold passages mostly in their order, so that the next one is near the end of the last. By the text's
    beginning: `str.find` of 800 characters prepares itself for 2 us. Where the beginning is found again and again
    without the rest (one header on all passages), `str.find` bounds the time.

    Example:
        >>> place_of("Oslo.", "Context: Oslo."), place_of("Oslo.", "Oslo. Rome.", 5)
        (9, 0)
    """
    at = _found(text, prompt, near)
    return at if at >= 0 or not near else _found(text, prompt, 0)


def _found(text: str, prompt: str, start: int) -> int:
    beginning = text[:SHORTEST_CUT_CHARS]
    at = prompt.find(beginning, start)
    for _ in range(_MOST_BEGINNINGS):
        if at < 0 or prompt.startswith(text, at):
            return at
        at = prompt.find(beginning, at + 1)
    return prompt.find(text, at) if at >= 0 else -1


def found_in(prompt: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return the passages whose text stands in the prompt, in their own order.

    A passage that a formatter cut comes back with the beginning that is there as its text, and its full
    length in `truncated`. White space may differ. A blank passage is never found.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)]
        >>> [p.id for p in found_in("Context: Oslo. Question: where?", pool)]
        ['a']
    """
    found: list[Passage] = []
    folded: str | None = None
    near = 0
    for passage in passages:
        text = passage.text
        if not text or text.isspace():
            continue
        at = place_of(text, prompt, near)
        if at >= 0:
            near = at + len(text)
            found.append(passage)
            continue
        if folded is None:
            folded = _folded(prompt)
        kept = _kept(_folded(text), folded)
        if kept is not None:
            found.append(passage if kept == -1 else replace(passage, text=text[:kept], truncated=len(text)))
    return tuple(found)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _kept(text: str, prompt: str) -> int | None:
    """Return -1 when the whole text is there, the length of the beginning that is, or None."""
    if text in prompt:
        return -1
    if len(text) < SHORTEST_CUT_CHARS or text[:SHORTEST_CUT_CHARS] not in prompt:
        return None
    low, high = SHORTEST_CUT_CHARS, len(text)
    while low + 1 < high:
        middle = (low + high) // 2
        if text[:middle] in prompt:
            low = middle
        else:
            high = middle
    return low
