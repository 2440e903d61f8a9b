"""Finds the numbers, dates, times, names and quotes of a text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from ragtrace.judges.offline.notation import MONTHS, ORDINALS, WEEKDAYS, readings, unit_named, units
from ragtrace.judges.offline.tables import words
from ragtrace.judges.offline.words import KEPT, forget_stems, stems, windows

Kind = Literal[
    "number", "date", "time", "month", "weekday", "ordinal", "century", "decade", "phone", "name", "quote"
]

_DATE = re.compile(  # of at most 8,000 characters: a sentence in one notation
    rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)})\b(?: (\d{{4}})\b)?", re.IGNORECASE
)
_SLASHED = re.compile(r"(?<![\w/.])(\d{1,2})/(\d{1,2})/(\d{4})(?![\w/])")
_TIME = re.compile(r"\b(\d{1,2}):(\d{2})\b")
_NUMBER = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"(?<![\w.,:+])(?<![A-Z]-)(\d+(?:[.,]\d+)*)(?![\w:])(?:[ -]([a-zø]+(?:[²³]|/[a-z]+|-hour)?)(?:[ -]([a-z]+))?)?"
)
_RATE = re.compile(
    r"(?: (?:an?|per|each|every) | ?/ ?)(minute|hour|day|night|week|month|quarter|year)\b", re.IGNORECASE
)
_PHONE = re.compile(r"(?<!\w)\+(\d{7,15})(?!\d)")
YEAR = re.compile(r"1\d{3}|20\d{2}")
_RANGE = re.compile(r"(?: ?[-\u2013] ?| to | or | and |, )\d")
_CALENDAR = re.compile(  # of at most 8,000 characters: a sentence in one notation
    rf"\b(?:{'|'.join(word.capitalize() for word in (*MONTHS, *WEEKDAYS))})s?\b"
)
_ORDINAL_WORD = "|".join(f"[{word[0].upper()}{word[0]}]{word[1:]}" for word in ORDINALS)
_ORDINAL = re.compile(  # of at most 8,000 characters: a sentence in one notation
    rf"\b(?:(\d{{1,3}})(?:st|nd|rd|th)|({_ORDINAL_WORD}))"
    r"\b(?![,-])(?: (centur(?:y|ies)|[a-z]{3,}))?"
)
_ORDINAL_END = re.compile(r"(?:\dst|\dnd|\drd|th|irst|econd|hird)\b")  # found far faster
_COUNTED_SECOND = re.compile(r"(?<!\d)\d{1,3} $")
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"[^\W_]+")
_DECADE = re.compile(r"(?<!\w)(\d{3}0)s\b")
_NAME = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b[A-Z]{1,8}(?:-\d\w*)+|\b[A-Z][^\W\d_]*(?:['\u2019-][A-Z]?[^\W\d_]+)*(?:\d+\w*)?|\b[A-Z]{1,5}\d+\w*"
)
_JOINED = re.compile(r"^ (?:(?:of|the|de|da|di|van|von|der|den|la|le|al|bin|for|&) ){0,2}$")
_QUOTED = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"(?<![\w\"])\"(?=\S)([^\"\n]{1,300}?)(?<=\S)\"(?!\w)|[“„«]\s?([^“”„«»\n]{1,300}?)\s?[”“»]"
)
_TITLE = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:Mr|Mrs|Ms|Mx|Dr|Prof|Professor|Doctor|Sir)\.?$"
)
_TITLE_CHARS = 12  # "Professor." and the character before it
_LABEL = re.compile(r"^[^.!?:\n]{1,60}:(?=\s|$)")


class Specific(NamedTuple):
    """One specific with its normal form as `key`.

    Attributes:
        unit: a number's unit where it has a known one, and an ordinal's noun.
        also: the other value of a number that another country reads otherwise.
        noun: the term directly behind a number, which it may count.
        rate: the period directly behind a number with a unit: "9 euro a month".
    """

    kind: Kind
    key: str
    shown: str
    start: int
    unit: str = ""
    also: str = ""
    noun: str = ""
    rate: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The values that it may have."""
        return (self.key, self.also) if self.also else (self.key,)


def specifics_of(text: str, *, has_first: bool = False) -> list[Specific]:
    """Return the specifics of one normalised sentence in order.

    A capitalised first word counts as a name only where another capitalised word follows it, or with `has_first`.

    Example:
        >>> [(it.kind, it.key, it.unit) for it in specifics_of("On 3 March Ida Moe paid 12 euro in Oslo.")]
        [('date', '3 march', ''), ('month', 'march', ''), ('name', 'ida moe', ''), ('number', '12', 'euro'), \
('name', 'oslo', '')]
    """
    return sorted([*measures_of(text), *_names(text, has_first=has_first)], key=lambda it: it.start)


def squeezed(text: str) -> str:
    """Return letters and digits in lower case with single spaces.

    Example:
        >>> squeezed("It's  a “Great” day!")
        'it s a great day'
    """
    return " ".join([word for part in windows(text.lower()) for word in _TOKEN.findall(part)])


def quotes_of(text: str) -> list[Specific]:
    """Return the quotes of three words and more of a sentence as it was written."""
    return [
        Specific("quote", squeezed(said), said, found.start())
        for found in _QUOTED.finditer(text)
        if len((said := found[1] or found[2]).split()) >= 3
    ]


@lru_cache(maxsize=KEPT)
def measures_of(text: str) -> tuple[Specific, ...]:
    """Return dates, times, ordinals, decades, months, weekdays, and the other numbers, of a normalised text.

    Example:
        >>> [it.key for it in measures_of("The third floor opened in the 19th century, at 9:30.")]
        ['9:30', '3', '19']
    """
    has_digits = _DIGIT.search(text) is not None
    found = _dates(text) if has_digits else []
    if ":" in text:
        found += [Specific("time", f"{int(it[1])}:{it[2]}", it[0], it.start()) for it in _TIME.finditer(text)]
    taken = {at for it in found for at in range(it.start, it.start + len(it.shown))}
    if _ORDINAL_END.search(text):
        found += _ordinals(text)
    if "+" in text:
        found += [Specific("phone", it[1], it[0], it.start()) for it in _PHONE.finditer(text)]
    if "0s" in text:
        found += [Specific("decade", it[1], it[0], it.start()) for it in _DECADE.finditer(text)]
    for it in _CALENDAR.finditer(text):
        word = it[0].lower().removesuffix("s")
        kind: Kind = "weekday" if word in WEEKDAYS else "month"
        if word != "may" or it.start() > 0:
            found.append(Specific(kind, word, it[0], it.start()))
    return (*found, *_numbers(text, taken)) if has_digits else tuple(found)


def _dates(text: str) -> list[Specific]:
    spelled = (
        Specific("date", f"{int(it[1])} {it[2].lower()}", it[0], it.start(), it[3] or "")
        for it in _DATE.finditer(text)
    )
    slashed = (
        Specific("date", f"{int(it[1])}/{int(it[2])}", it[0], it.start(), it[3])
        for it in (_SLASHED.finditer(text) if "/" in text else ())
        if 0 < int(it[1]) <= 12 and 0 < int(it[2]) <= 12
    )
    return [*spelled, *slashed]


def _ordinals(text: str) -> list[Specific]:
    found = []
    for it in _ORDINAL.finditer(text):
        if _COUNTED_SECOND.search(text[max(0, it.start() - 5) : it.start()]):
            continue  # a unit of time
        place = str(int(it[1]) if it[1] else ORDINALS[it[2].lower()])
        is_century = bool(it[3]) and it[3].startswith("centur")
        noun = "" if is_century else it[3] or ""
        found.append(Specific("century" if is_century else "ordinal", place, it[0].strip(), it.start(), noun))
    return found


def _numbers(text: str, taken: set[int]) -> list[Specific]:
    """Return the numbers outside dates and times. All numbers of a range have its unit."""
    found: list[Specific] = []
    end, unit_behind = -1, ""
    for it in reversed([it for it in _NUMBER.finditer(text) if it.start() not in taken]):
        behind, second = it[2] or "", it[3] or ""
        unit = behind if behind in units() else ""
        shown = f"{it[1]} {unit}" if unit and text[it.end(1)] == " " else it[1]
        is_noun = (
            bool(behind) and not unit and words("no_nouns").isdisjoint({behind}) and behind not in words("english")
        )
        if second and not unit and behind not in words("english"):
            unit = unit_named(second)  # "30 working days"
        joined = _RANGE.match(text, it.end(1))
        if not unit and joined and joined.end() - 1 == end and not YEAR.fullmatch(it[1]):
            unit = unit_behind
        value, *also = readings(it[1])
        noun = (stems(behind) or [""])[0] if is_noun else ""
        per = _RATE.match(text, it.start() + len(shown)) if unit else None
        found.append(
            Specific("number", value, shown, it.start(), unit, "".join(also), noun, per[1].lower() if per else "")
        )
        end, unit_behind = it.start(), unit
    return found[::-1]


def forget_texts() -> None:
    """Forget what was read of earlier texts: what one record costs depends on no other."""
    measures_of.cache_clear()
    forget_stems()


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
    is_first = (
        begin >= 0
        and not _TITLE.search(before[-_TITLE_CHARS:])
        and (
            first.start() <= begin + 1
            or not before
            or before[-1] in "\"“\u2018'(:;.!?\u2013—•"
            or text[: first.start()].endswith("- ")
        )
    )
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
