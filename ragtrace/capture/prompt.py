"""Finds which passages really stand in a rendered prompt, and how much of each."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.model import Passage

SHORTEST_CUT_CHARS = 40  # a shorter common beginning ("The ", a title) says nothing of a passage
_MOST_BEGINNINGS = 16
_CHANCE_CHARS = 16


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
    return tuple(passage for _, passage in places_in(prompt, passages))


def places_in(prompt: str, passages: Sequence[Passage]) -> list[tuple[int, Passage]]:
    """Return what `found_in` does, each passage with its place among the given ones.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)]
        >>> [place for place, _ in places_in("Context: Bergen.", pool)]
        [1]
    """
    found: list[tuple[int, Passage]] = []
    missing: list[tuple[int, Passage]] = []
    near = 0
    for place, passage in enumerate(passages):
        text = passage.text
        if not text or text.isspace():
            continue
        at = place_of(text, prompt, near)
        if at >= 0:
            near = at + len(text)
            found.append((place, passage))
        else:
            missing.append((place, passage))
    if missing:
        found.extend(_in_part(_folded(prompt), missing, found))
        found.sort(key=_place)
    return found


def _place(found: tuple[int, Passage]) -> int:
    return found[0]


def _in_part(
    prompt: str, missing: Sequence[tuple[int, Passage]], whole: Sequence[tuple[int, Passage]]
) -> list[tuple[int, Passage]]:
    """Return those of the missing that stand in a folded prompt with other white space, or cut."""
    found: list[tuple[int, Passage]] = []
    cuts: list[tuple[int, Passage, str]] = []
    for place, passage in missing:
        text = _folded(passage.text)
        kept = _kept(text, prompt)
        if kept == len(text):
            found.append((place, passage))
        elif kept:
            cuts.append((place, passage, text[:kept]))
    if cuts:
        shown = "\0".join(_folded(passage.text) for _, passage in (*whole, *found))
        found.extend(_own_cuts(cuts, shown))
    return found


def _own_cuts(cuts: Sequence[tuple[int, Passage, str]], shown: str) -> Iterator[tuple[int, Passage]]:
    """Yield the cut passages whose beginning is there for themselves.

    A header that all passages have, or the end of the passage before, which overlaps with this one's beginning,
    stands in the prompt with any of them; the longest beginning is looked at first. A few characters behind it
    agree by chance.
    """
    for _, group in groupby(sorted(cuts, key=_length, reverse=True), key=_length):
        own = [cut for cut in group if cut[2][:-_CHANCE_CHARS] not in shown]
        for place, passage, beginning in own:
            yield place, replace(passage, text=passage.text[: len(beginning)], truncated=len(passage.text))
        shown = "\0".join((shown, *(beginning for _, _, beginning in own)))


def _length(cut: tuple[int, Passage, str]) -> int:
    return len(cut[2])


def _folded(text: str) -> str:
    return " ".join(text.split())


def _kept(text: str, prompt: str) -> int:
    """Return how much of a text's beginning stands in the prompt; 0 when that is too short to tell."""
    if text[:SHORTEST_CUT_CHARS] not in prompt:  # looked for first: `in` prepares itself for a long text
        return 0
    if len(text) <= SHORTEST_CUT_CHARS or text in prompt:
        return len(text)
    low, high = SHORTEST_CUT_CHARS, len(text)
    while low + 1 < high:
        middle = (low + high) // 2
        if text[:middle] in prompt:
            low = middle
        else:
            high = middle
    return low
