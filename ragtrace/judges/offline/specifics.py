"""Finds the numbers, dates, times, names and quotes of a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragtrace.judges.offline.tables import words
from ragtrace.judges.offline.words import MONTHS, UNITS, WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["number", "date", "time", "month", "weekday", "name", "quote"]

_DATE = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)})\b(?: \d{{4}}\b)?", re.IGNORECASE)
_TIME = re.compile(r"\b(\d{1,2}):(\d{2})\b")
_NUMBER = re.compile(r"(?<![\w.,:])(\d+(?:[.,]\d+)*)(?![\w:])(?: ([a-z]+))?")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_CALENDAR = re.compile(rf"\b(?:{'|'.join(word.capitalize() for word in (*MONTHS, *WEEKDAYS))})s?\b")
_NAME = re.compile(r"\b[A-Z][^\W\d_]*(?:['\u2019-][A-Z]?[^\W\d_]+)*(?:\d+\w*)?|\b[A-Z]{1,5}\d+\w*")
_JOINED = re.compile(r"^ (?:(?:of|the|de|da|di|van|von|der|den|la|le|al|bin|for|&) ){0,2}$")
_QUOTED = re.compile(r"(?<![\w\"])\"(?=\S)([^\"\n]{1,300}?)(?<=\S)\"(?!\w)|[“„«]\s?([^“”„«»\n]{1,300}?)\s?[”“»]")
_LABEL = re.compile(r"^[^.!?:\n]{1,60}:(?=\s)")


class Specific(NamedTuple):
    """One specific with its normal form as `key`.

    `unit` is a number's unit where it has a known one.
    """

    kind: Kind
    key: str
    shown: str
    start: int
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """The specifics that an answer may take over from given texts."""

    numbers: dict[str, frozenset[str]]
    keys: frozenset[tuple[str, str]]
    vocabulary: frozenset[str]
    joined: str

    def holds(self, found: Specific) -> bool:
        """Return whether a specific stands in the texts, in any notation."""
        if found.kind == "number":
            units = self.numbers.get(found.key)
            return units is not None and (not found.unit or not units or found.unit in units or "" in units)
        if found.kind == "name":
            parts = (part for part in re.split(r"[ '\u2019-]+", found.key) if len(part) > 2)
            return all({part, part.removesuffix("s"), f"{part}s"} & self.vocabulary for part in parts)
        if found.kind == "quote":
            return found.key in self.joined
        return (found.kind, found.key) in self.keys


def specifics_of(text: str, *, has_first: bool = False) -> list[Specific]:
    """Return the specifics of one normalised sentence in order.

    A capitalised first word counts as a name only where another capitalised word follows it, or with `has_first`.

    Example:
        >>> [(it.kind, it.key, it.unit) for it in specifics_of("On 3 March Ida Moe paid 12 euro in Oslo.")]
        [('date', '3 march', ''), ('month', 'march', ''), ('name', 'ida moe', ''), ('number', '12', 'euro'), \
('name', 'oslo', '')]
    """
    return sorted([*_measures(text), *_names(text, has_first=has_first)], key=lambda it: it.start)


def squeezed(text: str) -> str:
    """Return letters and digits in lower case with single spaces.

    Example:
        >>> squeezed("It's  a “Great” day!")
        'it s a great day'
    """
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def invented_in(text: str, normal: str, known: Known) -> list[Specific]:
    """Return a sentence's specifics that the given texts lack, each once.

    A quote counts from three words on.

    Args:
        text: the sentence as it was written, for its quotes.
        normal: the same in one notation.
        known: the texts.

    Example:
        >>> said = 'She called it "a very great day" in Oslo.'
        >>> [it.shown for it in invented_in(said, said, known_in(["It is in Oslo."], "It is in Oslo."))]
        ['a very great day']
    """
    quotes = [
        Specific("quote", squeezed(said), said, found.start())
        for found in _QUOTED.finditer(text)
        if len((said := found[1] or found[2]).split()) >= 3
    ]
    invented = {(it.kind, it.key): it for it in (*specifics_of(normal), *quotes) if not known.holds(it)}
    return list(invented.values())


def known_in(sentences: Iterable[str], raw: str) -> Known:
    """Collect the specifics of normalised sentences and their raw text."""
    numbers: dict[str, set[str]] = {}
    keys: set[tuple[str, str]] = set()
    vocabulary: set[str] = set()
    for sentence in sentences:
        for it in _measures(sentence):
            keys.add((it.kind, it.key))
            if it.kind == "number":
                numbers.setdefault(it.key, set()).add(it.unit)
        vocabulary.update(re.findall(r"[^\W_]+", sentence.lower()))
        for digits in _DIGITS.findall(sentence):
            numbers.setdefault(digits, set())  # as in "v1.21": no unit is known of it
    return Known(
        {k: frozenset(v) for k, v in numbers.items()}, frozenset(keys), frozenset(vocabulary), squeezed(raw)
    )


def _measures(text: str) -> list[Specific]:
    """Return dates, times, months, weekdays, and the other numbers."""
    found: list[Specific] = []
    taken: set[int] = set()
    for it in _DATE.finditer(text):
        found.append(Specific("date", f"{int(it[1])} {it[2].lower()}", it[0], it.start()))
        taken.update(range(*it.span(1)))
    for it in _TIME.finditer(text):
        found.append(Specific("time", f"{int(it[1])}:{it[2]}", it[0], it.start()))
        taken.update(range(*it.span()))
    for it in _CALENDAR.finditer(text):
        word = it[0].lower().removesuffix("s")
        kind: Kind = "weekday" if word in WEEKDAYS else "month"
        if word != "may" or it.start() > 0:
            found.append(Specific(kind, word, it[0], it.start()))
    for it in _NUMBER.finditer(text):
        if it.start() not in taken:
            unit = it[2] if it[2] in UNITS else ""
            found.append(Specific("number", it[1], f"{it[1]} {unit}".strip(), it.start(), unit))
    return found


def _names(text: str, *, has_first: bool) -> list[Specific]:
    """Return runs of capitalised words. A label, and a sentence's first word alone, are no names."""
    label = _LABEL.match(text)
    begin = label.end() if label else 0
    runs: list[list[re.Match[str]]] = []
    for it in _NAME.finditer(text, begin):
        word = it[0].removesuffix("'s").removesuffix("\u2019s")
        if (
            word in words("not_names")
            or word.lower().removesuffix("s") in MONTHS
            or word.lower().removesuffix("s") in WEEKDAYS
        ):
            continue
        if runs and _JOINED.match(text[runs[-1][-1].end() : it.start()]):
            runs[-1].append(it)
        else:
            runs.append([it])
    return [name for run in runs if (name := _name(text, run, -1 if has_first else begin)) is not None]


def _name(text: str, run: list[re.Match[str]], begin: int) -> Specific | None:
    first = run[0]
    before = text[: first.start()].rstrip(" ")
    is_first = begin >= 0 and (first.start() <= begin + 1 or not before or before[-1] in "\"“\u2018'(:;.!?\u2013—•")
    if is_first and len(run) == 1 and not _is_code(first[0]):
        return None
    shown = text[first.start() : run[-1].end()].removesuffix("'s").removesuffix("\u2019s")
    if len(shown) < 3 and not _is_code(shown):
        return None
    # A first word may be an ordinary one ("Visit Oslo"): only the others are looked up.
    counted = text[run[1].start() : run[-1].end()] if is_first and len(run) > 1 else shown
    return Specific("name", counted.removesuffix("'s").lower(), shown, first.start())


def _is_code(word: str) -> bool:
    """Return whether a word is spelled like a code: "NASA", "X2", "iPhone"."""
    return len(word) > 1 and (sum(letter.isupper() for letter in word) > 1 or any(map(str.isdigit, word)))
