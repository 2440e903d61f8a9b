"""Find the passages that stand in a rendered prompt, whole or cut."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, AnyStr, NamedTuple

from msgspec.structs import replace

from ragtrace.capture.attribution.notation import letters, unescaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.model import Passage

SHORTEST_CUT_CHARS = 40  # a shorter common beginning ("The ", a title) says nothing of a passage
_MOST_BEGINNINGS = 16
_CHANCE_CHARS = 16
_HEAD_CHARS = 120  # of a passage, to tell quickly that a prompt does not show it
_SHORTEST_HEAD_BYTES = 24  # a passage with fewer letters is a short one
_PART_BYTES = 32
_SHORTEST_WORDS_CHARS = 8  # of a short passage's words, to be known without its punctuation
_MOST_PARTS = 64
_FAR_BYTES = 256  # between the parts of a passage
_SEARCHED_BYTES = 100_000_000  # of prompts reduced to letters, in one run: about 50 ms
_WORD = re.compile(r"[^\W_]+")
# A formatter that removes line breaks makes an escape of this one: a backslash, "x1", a line break, "42".
_SPLIT_ESCAPE = re.compile(r"\\(?:[xuU][0-9a-fA-F]*)?\r?\n")
_VALUE_ENDS = re.compile(r"""[\n\r\t"'<>|\[\]{}]+|: """)


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
    """Return the passages whose text stands in the prompt, in the prompt's order.

    A passage that a formatter cut comes back with the beginning that is there as its text, and its full
    length in `truncated`. White space, punctuation and escapes may differ. A blank passage is never found.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)]
        >>> [p.id for p in found_in("Context: Bergen. Oslo. Question: where?", pool)]
        ['b', 'a']
    """
    return tuple([passage for _, passage in PassageFinder(passages).places_in(prompt)])


class PassageFinder:
    """Finds some passages in the prompts of one run.

    An exact search comes first. Only passages that it misses are compared by their letters and digits, which are
    computed once for all prompts. That search ends for good after 100 MB, so that a run of many long prompts and
    many passages takes bounded time.

    Args:
        passages: the passages to find.

    Attributes:
        is_spent: the search by letters has ended, so that a passage may stand in a prompt and not be found.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self.is_spent = False
        self._heads: dict[int, bytes] = {}
        self._room = _SEARCHED_BYTES

    def places_in(self, prompt: str) -> list[tuple[int, Passage]]:
        """Return the passages that stand in a prompt, in its order, each with its number among all passages.

        Example:
            >>> from ragtrace.model import Passage
            >>> pool = [Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)]
            >>> [number for number, _ in PassageFinder(pool).places_in("Context: Bergen.")]
            [1]
        """
        found: list[tuple[int, Passage]] = []
        ats: list[int] = []
        missing: list[int] = []
        near = 0
        is_ordered = True
        for number, passage in enumerate(self.passages):
            text = passage.text
            if not text or text.isspace():
                continue
            at = place_of(text, prompt, near)
            if at < 0:
                missing.append(number)
                continue
            if at < near:
                is_ordered = False
            near = at + len(text)
            found.append((number, passage))
            ats.append(at)
        if not missing and is_ordered:
            return found
        exact = [_Found(at, *one) for at, one in zip(ats, found, strict=True)]
        loose = self._loose(prompt, missing, exact) if missing else []
        if loose:
            exact = [*_in_letters(exact, prompt), *loose]
        return [(one.number, one.passage) for one in sorted(exact, key=_at)]

    def _loose(self, prompt: str, missing: Sequence[int], exact: Sequence[_Found]) -> list[_Found]:
        """Return those of the missing that stand in a prompt in another notation, or cut."""
        if self._room < 0:
            self.is_spent = True
            return []
        shown = _PromptText(prompt)
        self._room -= len(shown.letters) * len(missing)
        whole: list[_Found] = []
        cuts: list[_Cut] = []
        for number in missing:
            found = self._found_or_cut(number, shown)
            if not isinstance(found, _Found):
                found = self._found_joined(number, shown) or found
            if isinstance(found, _Cut):
                cuts.append(found)
            elif found is not None:
                whole.append(found)
        if cuts:
            whole.extend(_own_cuts(cuts, shown, [one.passage for one in (*exact, *whole)]))
        return whole

    def _found_or_cut(self, number: int, shown: _PromptText) -> _Found | _Cut | None:
        passage, head = self.passages[number], self._head(number)
        if len(head) < _SHORTEST_HEAD_BYTES:
            at = shown.place_of_short(passage.text)
            return _Found(at, number, passage) if at >= 0 else None
        at = shown.letters.find(head)
        if at < 0:
            return None
        text = letters(passage.text)
        kept = _kept(text, shown.letters, len(head))
        at = shown.letters.find(text[:kept], at)
        return _Found(at, number, passage) if kept == len(text) else _Cut(at, number, passage, text, kept)

    def _found_joined(self, number: int, shown: _PromptText) -> _Found | None:
        """Return a passage that stands in a prompt without its line breaks, one of which splits an escape."""
        passage = self.passages[number]
        if not _SPLIT_ESCAPE.search(passage.text):
            return None
        text = letters(passage.text.replace("\n", ""))
        at = shown.letters.find(text) if len(text) >= _SHORTEST_HEAD_BYTES else -1
        return _Found(at, number, passage) if at >= 0 else None

    def _head(self, number: int) -> bytes:
        """Return the letters of a passage's first 40 characters, and of more where these are mostly punctuation."""
        head = self._heads.get(number)
        if head is None:
            text = self.passages[number].text
            head = letters(text[:_HEAD_CHARS])
            if len(head) < _SHORTEST_HEAD_BYTES and len(text) > _HEAD_CHARS:
                head = letters(text)
            size = max(len(letters(text[:SHORTEST_CUT_CHARS])), _SHORTEST_HEAD_BYTES)
            head = self._heads[number] = head[:size]
        return head


class _Found(NamedTuple):
    """A passage and its place, in characters of the prompt or in bytes of its letters."""

    at: int
    number: int
    passage: Passage


class _Cut(NamedTuple):
    """A passage of which a prompt shows the beginning: `kept` of the bytes of its letters."""

    at: int
    number: int
    passage: Passage
    letters: bytes
    kept: int


class _PromptText:
    """A prompt, reduced step by step as far as passages need it."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self.letters = letters(prompt)

    @cached_property
    def unescaped(self) -> str:
        return unescaped(self.prompt)

    @cached_property
    def values(self) -> dict[str, int]:
        """Whole lines, quoted values, cells and items, each with its first place."""
        found: dict[str, int] = {}
        at = 0
        for value in _VALUE_ENDS.split(self.unescaped):
            found.setdefault(_folded(value).lstrip("-*>#• "), at)
            at += len(value) + 1
        return found

    def place_of_short(self, text: str) -> int:
        """Return where a short passage stands: several words in their order, or one as a whole value."""
        plain = unescaped(text)
        words = _WORD.findall(plain)
        if len(words) > 1 and sum(map(len, words)) >= _SHORTEST_WORDS_CHARS:
            if letters(text) not in self.letters:
                return -1
            pattern = r"(?<![^\W_])" + r"[\W_]{0,64}".join(words) + r"(?![^\W_])"
            found = re.search(pattern, self.unescaped)
            at = found.start() if found else -1
        else:
            at = self.values.get(_folded(plain), -1)
        return at if at < 0 else len(letters(self.unescaped[:at]))


def _at(found: _Found) -> int:
    return found.at


def _in_letters(found: Sequence[_Found], prompt: str) -> Iterator[_Found]:
    """Yield what was found exactly, with its place in the prompt's letters."""
    ordered = sorted(found, key=_at)
    ends = [0, *(one.at for one in ordered)]
    at = 0
    for one, (start, end) in zip(ordered, pairwise(ends), strict=True):
        at += len(letters(prompt[start:end]))
        yield one._replace(at=at)


def _own_cuts(cuts: Sequence[_Cut], shown: _PromptText, whole: Sequence[Passage]) -> Iterator[_Found]:
    """Yield the cut passages whose beginning is there for themselves.

    A header that all passages have, or the end of the passage before, which overlaps with this one's beginning,
    stands in the prompt with any of them; the longest beginning is looked at first. A few characters behind it
    agree by chance.
    """
    others = b"\0".join(letters(passage.text) for passage in whole)
    longer = [_with_parts(cut, shown.letters, others) for cut in cuts]
    for _, group in groupby(sorted(longer, key=_length, reverse=True), key=_length):
        own = [cut for cut in group if cut.letters[: cut.kept][:-_CHANCE_CHARS] not in others]
        for cut in own:
            yield _Found(cut.at, cut.number, _cut_passage(cut, shown.prompt))
        others = b"\0".join((others, *(cut.letters[: cut.kept] for cut in own)))


def _length(cut: _Cut) -> int:
    return cut.kept


def _with_parts(cut: _Cut, prompt: bytes, others: bytes) -> _Cut:
    """Return a cut passage with what stands elsewhere in the prompt of its rest: it was split into chunks.

    A part that stands in another passage was shown for that one.
    """
    text, kept = cut.letters, cut.kept
    end = cut.at + kept
    for _ in range(_MOST_PARTS):
        rest = text[kept:]
        head = rest[:_PART_BYTES]
        at = prompt.find(head, end)
        if len(rest) > len(head):
            part = rest[: _kept(rest, prompt, len(head))] if at >= 0 else b""
        else:
            part = rest if 0 <= at <= end + _FAR_BYTES else b""
        if not part or (len(part) > _CHANCE_CHARS and part[:-_CHANCE_CHARS] in others):
            break
        kept += len(part)
        end = at + len(part)
    return cut._replace(kept=kept)


def _cut_passage(cut: _Cut, prompt: str) -> Passage:
    """Return a cut passage with the beginning that is there as its text; the passage itself where all of it is."""
    passage, text = cut.passage, cut.passage.text
    if cut.kept == len(cut.letters):
        return passage
    if text[:SHORTEST_CUT_CHARS] in prompt:
        exact = _kept(text, prompt, SHORTEST_CUT_CHARS)
        # Letters behind the cut agree by chance; text in another notation behind it does not.
        if len(letters(text[:exact])) + _CHANCE_CHARS >= cut.kept:
            return replace(passage, text=text[:exact], truncated=len(text))
    end = bisect_left(range(len(text)), cut.kept, key=lambda size: len(letters(text[:size])))
    return replace(passage, text=text[:end], truncated=len(text))


def _folded(text: str) -> str:
    return " ".join(text.split())


def _kept(text: AnyStr, prompt: AnyStr, low: int) -> int:
    """Return how much of a text's beginning stands in the prompt, where its first `low` units do."""
    if len(text) <= low or text in prompt:
        return len(text)
    high = len(text)
    while low + 1 < high:
        middle = (low + high) // 2
        if text[:middle] in prompt:
            low = middle
        else:
            high = middle
    return low
