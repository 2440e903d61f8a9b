"""A text that was made of an answer, with the place in the answer of each of its characters."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING

from ragtrace.judges.offline.words import LIST_MARK, parts_of, spans_of_pieces, windows_of
from ragtrace.text import composed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LINE_END = re.compile(  # of at most 32,768 characters: an answer
    r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"  # as of `str.splitlines`
)
_LETTER = re.compile(  # with the marks that are composed with it, of at most 8,192 characters: a window
    "[^\u0300-\u036f\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]?"
    "[\u0300-\u036f\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]++|[^\x00-\x7f]"
)
_MARKS = ("**", "__", "~~", "`", "*", "_", '"')
_CLOSING = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«", "】": "【"}
_OPENING = {opening: closing for closing, opening in _CLOSING.items()}
_MOST_CLOSED = 4  # marks that are taken in at either end of a quote
_LONGEST_TARGET = 600  # characters of the address behind a title


class Placed:
    """A text, and for each of its characters the place where it stands in the text that it was made of.

    Example:
        >>> said = Placed.whole("It costs **12** euros.").sub(re.compile(r"[*]{2}"), "")
        >>> said.text, said.places[9]
        ('It costs 12 euros.', 11)
    """

    __slots__ = ("places", "text")

    def __init__(self, text: str, places: array[int]) -> None:
        """Take a text and as many places."""
        self.text = text
        self.places = places

    @classmethod
    def whole(cls, text: str) -> Placed:
        """Return a text in which each character has its own place."""
        return cls(text, array("l", range(len(text))))

    @classmethod
    def at(cls, text: str, place: int) -> Placed:
        """Return a text that stands for what is at one place."""
        return cls(text, array("l", [place]) * len(text))

    @classmethod
    def joined(cls, parts: Iterable[Placed], by: str = "") -> Placed:
        """Return parts in one text, with a separator between them."""
        texts: list[str] = []
        places: array[int] = array("l")
        for part in parts:
            if by and texts:
                places.extend([places[-1] if places else 0] * len(by))
            texts.append(part.text)
            places.extend(part.places)
        return cls(by.join(texts), places)

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, part: slice) -> Placed:
        return Placed(self.text[part], self.places[part])

    def stripped(self, chars: str | None = None) -> Placed:
        """Return the text without some characters at its ends, blanks by default."""
        begin = len(self.text) - len(self.text.lstrip(chars))
        return self[begin : max(begin, len(self.text.rstrip(chars)))]

    def sub(
        self, pattern: re.Pattern[str], instead: str | Callable[[re.Match[str], Placed], str | Placed]
    ) -> Placed:
        """Return the text with something in place of each match; a text there stands where the match began."""
        parts: list[Placed] = []
        end = 0
        for found in pattern.finditer(self.text):
            new = instead if isinstance(instead, str) else instead(found, self)
            parts.append(self[end : found.start()])
            if new:
                place = self.places[min(found.start(), len(self.places) - 1)] if self.places else 0
                parts.append(new if isinstance(new, Placed) else Placed.at(new, place))
            end = found.end()
        return Placed.joined([*parts, self[end:]]) if end or parts else self

    def in_windows(self, change: Callable[[Placed], Placed]) -> Placed:
        """Return the text after a change that reads at most 8,192 characters at a time."""
        return Placed.joined([change(part) for part in self.windows()])

    def lines(self) -> list[Placed]:
        """Return the lines of the text without their ends."""
        found, begin = [], 0
        for end in _LINE_END.finditer(self.text):
            found.append(self[begin : end.start()])
            begin = end.end()
        return [*found, self[begin:]] if begin < len(self.text) else found

    def windows(self) -> list[Placed]:
        """Return the parts of the text that one pattern reads at a time."""
        return [self[start:end] for start, end in windows_of(self.text)]

    def sentences(self) -> list[Placed]:
        """Return the sentences as `ragtrace.judges.offline.words.sentences` does."""
        found = []
        for start, end in parts_of(self.text):
            part = self[start:end].stripped()
            mark = LIST_MARK.match(part.text)
            part = part[mark.end() if mark else 0 :]
            found += [part[begin:stop] for begin, stop in spans_of_pieces(part.text)]
        return [part for part in found if part.text.strip()]


def composed_in_place(text: str) -> Placed:
    """Return a text composed as by `ragtrace.text.composed`, with the places in the given one.

    Example:
        >>> found = composed_in_place("Zu\u0308rich")
        >>> found.text == "Z\u00fcrich", found.places[2]
        (True, 3)
    """
    placed = Placed.whole(text)
    other = composed(text)
    if other == text:
        return placed
    found = placed.in_windows(lambda part: part.sub(_LETTER, lambda it, _: composed(it[0])))
    return found if found.text == other else Placed(other, _spread(len(other), len(text)))


def _spread(n: int, of: int) -> array[int]:
    """Return so many places at even distances."""
    return array("l", [min(of - 1, i * of // n) for i in range(n)])


def quoted(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a part of a text that takes in the marks which close or open it.

    Example:
        >>> said = "It is **free**, see [the list](https://nova.dev/7)."
        >>> [said[slice(*quoted(said, *span))] for span in ((8, 12), (0, 12), (16, 29))]
        ['free', 'It is **free**', 'see [the list](https://nova.dev/7)']
    """
    for _ in range(_MOST_CLOSED):
        open_, closed = _unpaired(text[start:end])
        if open_ and text[end : end + 1] == _OPENING[open_]:
            end += 1
            if open_ == "[" and text[end : end + 1] == "(":
                close = text.find(")", end, end + _LONGEST_TARGET)
                end = close + 1 if close >= 0 else end
        elif closed and start and text[start - 1] == _CLOSING[closed]:
            start -= 1
        else:
            break
    for mark in _MARKS:
        if text[start:end].count(mark) % 2:
            if text.startswith(mark, end):
                end += len(mark)
            elif text.endswith(mark, 0, start):
                start -= len(mark)
    return start, end


def _unpaired(text: str) -> tuple[str, str]:
    """Return the last bracket that nothing closes, and the first one that nothing opens."""
    held: list[str] = []
    first = ""
    for sign in text:
        if sign in _OPENING:
            held.append(sign)
        elif sign in _CLOSING:
            if held and held[-1] == _CLOSING[sign]:
                held.pop()
            elif not first:
                first = sign
    return (held[-1] if held else "", first)
