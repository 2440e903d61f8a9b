"""Tells which specifics of an answer the given texts hold, or yield.

A specific is held in another notation, unit, precision or spelling too. Sums, differences, products, shares and
counts of lists are looked for only in the few sentences that share most words with the claim: in a long text full
of numbers some pair has almost any sum.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.names import KnownNames, abbreviates_words_before
from ragtrace.judges.offline.near import ENDLESS, Near, sizes_of_lists
from ragtrace.judges.offline.notation import MONTHS, unit_named, unit_nouns, units
from ragtrace.judges.offline.quantities import (
    MONTH_ERROR,
    Number,
    Span,
    in_base,
    is_calendar,
    span_of,
    value_of,
    within,
    without_hedge,
)
from ragtrace.judges.offline.specifics import YEAR, Specific, measures_of, quotes_of, specifics_of
from ragtrace.judges.offline.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_BARE = 20  # of one number
_SHORTEST_UNIT = 4
MOST_DERIVED = 20  # numbers of one sentence that are looked for as sums and the like
NEAREST = 3  # sentences in which these are looked for, with their neighbours
_GENERIC_NOUNS = frozenset(
    {"time", "step", "thing", "place", "part", "half", "few", "one", "name", "option", "way", "point", "example"}
)
_HOUR = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"(?:\b(?:from|at|between|until|till|to|by|after|before|and)\s|[-\u2013]\s?)(\d{1,2})(?![\w:%/]|[.,]\d)"
    r"(?=\s?(?:[-\u2013.,;)]|$|(?:to|till|until|and|on|daily|every|in|at)\b))"
)
_ARTICLE = re.compile(  # of at most 8,000 characters
    # In "10 euros a day" it is no length
    r"\b(?:(?:within|for|after|in|takes?|took|lasts?|lasted|is|was|have|has|about|every|under|over|another|than|of|by|"
    r"almost|nearly|roughly|approximately|"
    r"needs?|runs?|ran) (?:an?|another|one)|(a couple of|a pair of)) "
    r"(minute|hour|day|week|fortnight|month|year|decade|century)s?\b|"
    r"\ban? (minute|hour|day|week|fortnight|month|year|decade|century) "
    r"(?:later|earlier|ago|before|after|long|old)\b",
    re.IGNORECASE,
)
_TOO_SHORT = 7  # digits: with fewer, two phone numbers end alike by chance
_DECLARED = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:in|of) ([^\W\d_]{2,})\b|\(([^\W\d_]{1,12}|[€$£¥₹%°²³/\w]{1,6})\)|([€$£¥₹%])"
)
_LABELLED = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:page|room|chapter|section|paragraph|article|figure|table|step|line|version|number|no\.?|"
    r"level|floor|gate|platform|bus|route|exit|item|question|appendix|annex|p\.) $",
    re.IGNORECASE,
)
_AGE = re.compile(r"\b(?:aged?|old|older|younger)\b", re.IGNORECASE)
_UNIT_WORD = re.compile(r"[^\W\d_]+|[€$£¥₹%]")  # of at most 8,000 characters: a sentence in one notation
_CLOCK = re.compile(r"([01]?\d|2[0-3])\.([0-5]\d)")
_SHIFTED = frozenset({"time", "date", "month", "weekday"})  # kinds that a length may be apart from a known one
_IN = re.compile(r" (?:in|out of|of) (?:every )?")
_AT_HOUR = re.compile(r"(?:\b(?:from|at|between|until|till|to|by|after|before|and)\s|[-\u2013]\s?)$")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")  # of at most 8,000 characters: a sentence in one notation
_DIGIT = re.compile(r"\d")
_GROUP = re.compile(r"(?<=\d )\d++|(?<!\d)\d++(?= \d)")  # of at most 8,000 characters: a sentence in one notation
_TOKEN = re.compile(r"[^\W_]+")


class Bare(NamedTuple):
    """A number without a unit of its own, and the units that its sentence names for it."""

    shown: str
    units: dict[str, str]  # as they are named there
    noun: str
    is_hour: bool


@dataclass(eq=False)
class Known:
    """The specifics that an answer may take over from given texts.

    Attributes:
        sentences: the texts' sentences in one notation.
        raw: the texts as written.
        answer: as written; what it lists itself it may count.
        question: which may ask for a sum.
        numbers: as they are shown, by their units; "" for one without.
        rates: the periods of each number and its unit; "" where it has none.
        bare: the numbers without a unit, each time that one stands somewhere.
        digits: all that stand somewhere.
        loose: digits of no date, time or number, as in "v1.21": what they count is unknown.
        declared: units that are named once for all: "prices in euros", "length (cm)".
        keys: times, months, weekdays, decades and centuries, as they are shown.
        dates: the years of each day of a month, as they are shown; "" for a date without one.
        ordinals: with the nouns that they count.
    """

    sentences: Sequence[str]
    raw: str
    answer: str = ""
    question: str = ""
    numbers: dict[str, dict[str, str]] = field(default_factory=dict)
    rates: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    bare: dict[str, list[Bare]] = field(default_factory=dict)
    digits: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    dates: dict[str, dict[str, str]] = field(default_factory=dict)
    ordinals: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    names: KnownNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = KnownNames(self.sentences, self.raw, self.digits)

    def wording(self, it: Specific, claim: str) -> str | None:
        """Return how the texts say a specific of a claim; None where they lack it.

        Args:
            it: of the claim.
            claim: in one notation.

        Example:
            >>> known = known_in(["The trail is 5 kilometre long."], "The trail is 5 km long.")
            >>> claim = "The trail is 5000 metre long."
            >>> [known.wording(it, claim) for it in measures_of(claim)]
            ['5 kilometre']
        """
        if it.kind == "number":
            return self._number(it, claim)
        if it.kind == "phone":
            return self._phone(it)
        if it.kind == "name":
            return self.names.wording(it, claim)
        if it.kind == "quote":
            return it.shown if self.names.has_quote(it) else None
        if it.kind == "date":
            return self._date(it)
        if it.kind == "time":
            return self._time(it)
        if it.kind == "ordinal":
            return it.shown if self._has_ordinal(it) else None
        if it.kind in {"century", "decade"}:
            return self._span(it)
        return it.shown if (it.kind, it.key) in self.keys else None

    # Numbers

    def _number(self, it: Specific, claim: str) -> str | None:
        for key in it.keys:
            if (exact := self._exactly(key, it)) is not None:
                return exact
        for key in it.keys:
            one = it._replace(key=key)
            if not self._is_rate(key, it) or (span := span_of(one, claim)) is None:
                continue
            found = self._in_own_unit(one, span) or self._converted(one, claim) or self._hour(one, claim)
            if found is not None:
                return found
        return None

    def _exactly(self, key: str, it: Specific) -> str | None:
        """Return the same number of the same unit, or of the same thing."""
        with_units = self.numbers.get(key, {})
        if it.unit:
            if it.unit in with_units:
                return with_units[it.unit] if self._is_rate(key, it) else None
            its = (one for one in self.bare.get(key, ()) if self._may_count(one, it))
            return next((f"{one.shown} {one.units.get(it.unit) or it.unit}" for one in its), None)
        bare = [one for one in self.bare.get(key, ()) if not it.noun or not one.is_hour]
        if bare:
            return bare[0].shown
        if not it.noun or YEAR.fullmatch(key):
            return next(iter(with_units.values()), it.shown if key in self.digits else None)
        if key in self.loose:
            return it.shown
        alike = (
            unit
            for unit in with_units
            if (len(unit) >= 3 and it.noun.startswith(unit[:_SHORTEST_UNIT])) or it.noun in unit_nouns(unit)
        )
        return next((with_units[unit] for unit in alike), None)

    def _is_rate(self, key: str, it: Specific) -> bool:
        """Return whether a number may be of the stated period. "9 euro a month" are not 9 a week."""
        rates = self.rates.get((key, it.unit), set())
        return not it.rate or not rates or "" in rates or it.rate in rates

    def _may_count(self, one: Bare, it: Specific) -> bool:
        if one.is_hour:
            return False
        if one.noun:
            return one.noun == it.noun or one.noun in unit_nouns(it.unit)
        return it.unit in one.units or it.unit in self.declared

    def _in_own_unit(self, it: Specific, span: Span) -> str | None:
        """Return a number of the same unit within the precision of the stated one."""
        fitting = (one for one in within(self._values, span) if one.unit == it.unit or not (it.unit or it.noun))
        return next((one.shown for one in fitting), None)

    def _converted(self, it: Specific, claim: str) -> str | None:
        for unit in units().get(it.unit, ()):
            exact = span_of(it, claim, is_exact=unit.dimension == "time", is_converted=True)
            if exact is None:
                return None
            low, high = (in_base(value, it.unit, unit) for value in exact)
            slack = MONTH_ERROR * high if unit.dimension == "time" else 0.0
            for value, other, shown, _ in within(
                self._by_dimension[unit.dimension], Span(low - slack, high + slack)
            ):
                is_other_calendar = is_calendar(other) != is_calendar(it.unit)
                if other != it.unit and (is_other_calendar or value in Span(low, high)):
                    return shown
        return None

    def _hour(self, it: Specific, claim: str) -> str | None:
        """Return the time of an hour that stands alone, as in "from 9 to 17"."""
        before = claim[max(0, it.start - 10) : it.start]
        if not it.unit and (clock := _CLOCK.fullmatch(it.key)):  # "17.30"
            return self.keys.get(("time", f"{int(clock[1])}:{clock[2]}"))
        if it.unit or not it.key.isdigit() or int(it.key) > 24 or not _AT_HOUR.search(before):
            return None
        hour = int(it.key)
        return next((found for at in (hour, hour + 12) if (found := self.keys.get(("time", f"{at}:00")))), None)

    @cached_property
    def _values(self) -> list[Number]:
        found = [
            Number(value, unit, shown)
            for key, with_units in self.numbers.items()
            if (value := value_of(key)) is not None
            for unit, shown in with_units.items()
        ]
        for key, its in self.bare.items():
            if (value := value_of(key)) is not None:
                found += [
                    Number(value, unit, one.shown) for one in its for unit in ("", *one.units, *self.declared)
                ]
        found += [
            Number(100.0 * one.value, "percent", one.shown)
            for one in found
            if not one.unit and 0.0 < one.value < 1.0
        ]
        found += [
            Number(share, "percent", one.shown)
            for one in found
            if one.unit == "percent"
            for share in ENDLESS
            if one.value == round(share)
        ]
        for one in dict.fromkeys(self.sentences):
            found += [
                Number(2.0 if it[1] else 1.0, (it[2] or it[3]).lower(), it[2] or it[3])
                for it in _ARTICLE.finditer(one)
            ]
        return sorted(dict.fromkeys(found))

    @cached_property
    def _by_dimension(self) -> dict[str, list[Number]]:
        found: dict[str, list[Number]] = defaultdict(list)
        for value, name, shown, _ in self._values:
            for unit in units().get(name, ()):
                found[unit.dimension].append(Number(in_base(value, name, unit), name, shown))
        for its in found.values():
            its.sort()
        return found

    # Dates and times

    def _phone(self, it: Specific) -> str | None:
        """Return the same phone number, with or without the numbers of country and area."""
        for kind, key in self.keys:
            if (
                kind == "phone"
                and min(len(key), len(it.key)) >= _TOO_SHORT
                and (key.endswith(it.key) or it.key.endswith(key))
            ):
                return self.keys[kind, key]
        return None

    def _date(self, it: Specific) -> str | None:
        for key in _readings(it):
            years = self.dates.get(key)
            if years is None:
                continue
            if not it.unit or it.unit in years:
                return years.get(it.unit) or next(iter(years.values()))
            if "" in years and (it.unit in self.numbers or it.unit in self.bare):
                return it.shown
        return None

    def _time(self, it: Specific) -> str | None:
        hour, _, minutes = it.key.partition(":")
        keys = [it.key]
        if it.shown[0] != "0" and int(hour) < 10:
            keys.append(f"{int(hour) + 12}:{minutes}")  # "6:30" may be in the evening
        for key in keys:
            if found := self.keys.get(("time", key)):
                return found
        of_clock = int(hour) - 12
        if 0 < of_clock < 10 and self.keys.get(("time", f"{of_clock}:{minutes}"), "0")[0] != "0":
            return self.keys["time", f"{of_clock}:{minutes}"]
        for at in (int(hour), of_clock):
            if any(not one.noun for one in self.bare.get(f"{at}.{minutes}", ())):
                return f"{at}.{minutes}"
        if minutes == "00":
            return next((str(at) for at in (int(hour), of_clock) if at in self._hours), None)
        return None

    @cached_property
    def _hours(self) -> frozenset[int]:
        """Return the hours that stand alone, as in "from 9 to 17"."""
        return frozenset(
            int(hour) for one in {*self.sentences} for hour in _HOUR.findall(one) if 0 <= int(hour) <= 24
        )

    def _has_ordinal(self, it: Specific) -> bool:
        """Return whether an ordinal is known, or nothing speaks against it.

        Answers count their own points ("the third reason"), so a low one is only unknown where the texts have
        another one of its noun.
        """
        if it.key in self.ordinals:
            return True
        noun = _singular(it.unit)
        if noun and noun not in _GENERIC_NOUNS and any(noun in nouns for nouns in self.ordinals.values()):
            return False
        return int(it.key) <= 3 or it.key in self.digits or int(it.key) in self._list_sizes

    def _span(self, it: Specific) -> str | None:
        """Return how the texts say a century or decade: itself, a year in it, or a century for its hundreds."""
        if (it.kind, it.key) in self.keys:
            return it.shown
        is_century = it.kind == "century"
        first = 100 * (int(it.key) - 1) if is_century else int(it.key)
        is_hundred = first % 100 == 0
        other = ("decade", str(first)) if is_century else ("century", str(first // 100 + 1))
        if is_hundred and other in self.keys:
            return self.keys[other]
        its = sorted(
            year
            for year in self._years
            if first + is_century <= year < first + is_century + (100 if is_hundred else 10)
        )
        return (str(its[0]) if len(its) == 1 else it.shown) if its else None

    @cached_property
    def _years(self) -> frozenset[int]:
        plain = (int(key) for key in (*self.numbers, *self.bare) if key.isdigit() and len(key) == 4)
        decades = (int(key) for kind, key in self.keys if kind == "decade" and int(key) % 100)
        return frozenset((*plain, *decades))

    # What the texts yield

    @cached_property
    def _list_sizes(self) -> frozenset[int]:
        """Return how long the lists of the texts and of the answer are."""
        return frozenset(sizes_of_lists(self.raw) | sizes_of_lists(self.answer))

    @cached_property
    def _places(self) -> tuple[dict[str, list[int]], Counter[str]]:
        """Return the sentences of each beginning of a word, of equal ones the first few; and how many others."""
        found: dict[str, list[int]] = defaultdict(list)
        others: Counter[str] = Counter()
        seen: Counter[str] = Counter()
        for i, one in enumerate(self.sentences):
            seen[one] += 1
            if seen[one] > NEAREST:
                others.update(_beginnings(one))
                continue
            for begin in _beginnings(one):
                found[begin].append(i)
        return found, others

    def near(self, claim: str) -> Near:
        """Return the sentences that share most words with a claim, and their neighbours."""
        near = [(place, self.sentences[place]) for place in self._places_near(claim)]
        return Near(claim, self.question, near, self._list_sizes)

    def _places_near(self, claim: str) -> list[int]:
        if len(self.sentences) <= 2 * NEAREST:
            return list(range(len(self.sentences)))
        shared: Counter[int] = Counter()
        held, others = self._places
        for begin in sorted(_beginnings(claim) & held.keys()):
            weight = round(1000 * math.log1p(len(self.sentences) / (len(held[begin]) + others[begin])))
            for i in held[begin]:
                shared[i] += weight
        best = [i for i, _ in sorted(shared.items(), key=lambda it: (-it[1], it[0]))[:NEAREST]]
        return sorted({i for at in best for i in (at - 1, at, at + 1) if 0 <= i < len(self.sentences)})


def known_in(sentences: Iterable[str], raw: str, answer: str = "", question: str = "") -> Known:
    """Collect the specifics of normalised sentences and their raw text."""
    known = Known(list(sentences), raw, answer, question)
    for sentence in dict.fromkeys(known.sentences):
        measures = measures_of(sentence)
        for it in measures:
            if it.kind == "date":
                for key in _readings(it):
                    known.dates.setdefault(key, {})[it.unit] = it.shown
                    known.keys["month", key.split()[1]] = it.shown
                if it.unit:
                    known.numbers.setdefault(it.unit, {})[""] = it.unit
            elif it.kind == "ordinal":
                known.ordinals[it.key].add(_singular(it.unit))
            elif it.kind != "number":
                known.keys.setdefault((it.kind, it.key), it.shown)
        if _DIGIT.search(sentence):
            _add_numbers(known, sentence, measures)
        known.names.vocabulary.update(_TOKEN.findall(sentence.lower()))
    return known


def _add_numbers(known: Known, sentence: str, measures: Sequence[Specific]) -> None:
    """Add the numbers of a sentence. One without a unit may have that of another number, or one that is named."""
    taken = {at for it in measures for at in range(it.start, it.start + len(it.shown))}
    for digits in _DIGITS.finditer(sentence):
        known.digits.add(digits[0])
        if digits.start() not in taken:
            known.loose.add(digits[0])
    for found in _DECLARED.finditer(sentence):
        if unit := unit_named(found[1] or found[2] or found[3]):
            known.declared.add(unit)
    numbers = [it for it in measures if it.kind == "number"]
    bare = [it for it in numbers if not it.unit]
    for it in numbers:
        for key in it.keys if it.unit else ():
            known.numbers.setdefault(key, {})[it.unit] = it.shown
            known.rates[key, it.unit].add(it.rate)
    if not bare:
        return
    hours = {found.start(1) for found in _HOUR.finditer(sentence)}
    held = dict.fromkeys((it.unit for it in numbers if it.unit), "") | _named_in(sentence)
    for it in bare:
        is_label = _LABELLED.search(sentence, max(0, it.start - 12), it.start) is not None
        one = Bare(it.shown, {} if is_label else held, it.noun, it.start in hours)
        for key in it.keys:
            its = known.bare.setdefault(key, [])
            if one not in its and len(its) < MOST_BARE:
                its.append(one)


def _named_in(sentence: str) -> dict[str, str]:
    """Return the units that a sentence names, as it names them."""
    found = {unit: word for word in set(_UNIT_WORD.findall(sentence)) if (unit := unit_named(word))}
    return found | ({"year": "year"} if _AGE.search(sentence) else {})


class Compared(NamedTuple):
    """A sentence beside the texts.

    Attributes:
        lacking: its specifics that the texts lack, each once.
        reworded: the sentence in the texts' words.
        stated: the same without the numbers that the texts only yield.
    """

    lacking: list[Specific]
    reworded: str
    stated: str


def compare(text: str, normal: str, known: Known) -> Compared:
    """Return the specifics of a sentence that the texts lack, and the sentence in the texts' words.

    A quote counts from three words on.

    Args:
        text: the sentence as it was written, for its quotes.
        normal: the same in one notation.
        known: the texts.

    Example:
        >>> said = 'She called it "a very great day" in Oslo.'
        >>> compare(said, said, known_in(["It is in Oslo."], "It is in Oslo.")).lacking[0].shown
        'a very great day'
        >>> compare("It is 5,000 m.", "It is 5000 metre.", known_in(["It is 5 kilometre."], "")).reworded
        'It is 5 kilometre.'
    """
    its = specifics_of(normal)
    wordings = {it: known.wording(it, normal) for it in its}
    dates = [it for it in its if it.kind == "date"][:MOST_DERIVED]
    for it in its:
        if wordings[it] is None and it.kind == "weekday" and _is_day_of_a_date(it, dates):
            wordings[it] = it.shown
        if wordings[it] is None and it.kind == "name" and abbreviates_words_before(it, normal):
            wordings[it] = ""
    grouped = {found.start() for found in _GROUP.finditer(normal)}  # of a phone number: no sums
    lacking = [it for it in its if it.kind == "number" and wordings[it] is None and it.start not in grouped]
    derived = set()
    if lacking:
        near = known.near(normal)
        for one, other, share in _ratios(normal, lacking):
            if wording := known.wording(share, normal) or (near.wording(share, its) or ("",))[0]:
                wordings[one], wordings[other] = wording, ""
                derived |= {one, other}
        for it in sorted(lacking, key=lambda it: -(value_of(it.key) or 0.0))[:MOST_DERIVED]:
            if wordings[it] is not None:
                continue
            found = near.wording(it, its) or next(
                filter(None, (near.wording(one, its) for one in _elliptic(it, its))), None
            )
            if found is not None:
                wordings[it] = found[0]
                derived.add(it)
                wordings.update({other: "" for other in found[1] if wordings[other] is None})
    hours = {it: _as_time(it, normal) for it in lacking if wordings[it] is None}
    others = [it for it in its if wordings[it] is None and (it.kind in _SHIFTED or hours.get(it))][:MOST_DERIVED]
    if others:
        near = known.near(normal)
        for it in others:
            if wordings[it] is None and (told := near.shifted(hours.get(it) or it)) is not None:
                wordings[it] = told
                derived.add(it)
                end = it.start + len(it.shown)
                wordings.update({part: "" for part in others if it.start < part.start < end})
    quotes = [it for it in quotes_of(text) if known.wording(it, text) is None]
    invented = {(it.kind, it.key): it for it in (*(it for it in its if wordings[it] is None), *quotes)}
    plain = {it: "" if it in derived else wording for it, wording in wordings.items()}
    return Compared(list(invented.values()), _reworded(normal, wordings), _reworded(normal, plain))


def _as_time(it: Specific, claim: str) -> Specific | None:
    """Return an hour that stands alone as a time, as in "at 7"."""
    is_hour = not it.unit and not it.noun and it.key.isdigit() and 0 < int(it.key) <= 24
    if not is_hour or not _AT_HOUR.search(claim[max(0, it.start - 10) : it.start]):
        return None
    return it._replace(kind="time", key=f"{int(it.key) % 24}:00")


def _elliptic(it: Specific, its: Sequence[Specific]) -> Iterator[Specific]:
    """Yield a number with the unit of another one, as in "eight hours on low, four on high"."""
    if not it.unit and not it.noun:
        yield from (
            it._replace(unit=unit)
            for unit in dict.fromkeys(one.unit for one in its if one.kind == "number" and one.unit)
        )


def _ratios(text: str, its: Sequence[Specific]) -> Iterator[tuple[Specific, Specific, Specific]]:
    """Yield two numbers of "2 in 5", and the percentage that they make."""
    for one, other in pairwise(its):
        between = text[one.start + len(one.shown) : other.start]
        top, whole = value_of(one.key), value_of(other.key)
        if _IN.fullmatch(between) and top and whole and 0.0 < top < whole:
            share = f"{100.0 * top / whole:.4f}".rstrip("0").rstrip(".")
            yield (
                one,
                other,
                Specific("number", share, text[one.start : other.start + len(other.shown)], one.start, "percent"),
            )


def _reworded(text: str, wordings: dict[Specific, str | None]) -> str:
    """Return a sentence with the texts' words in place of its own."""
    parts, end = [], 0
    for it in sorted(wordings, key=lambda it: (it.start, -len(it.shown))):
        wording = wordings[it]
        if wording is None or wording == it.shown or it.start < end:
            continue
        between = text[end : it.start]
        parts += [without_hedge(between) if it.kind == "number" else between, wording]
        end = it.start + len(it.shown)
    return "".join([*parts, text[end:]])


def _beginnings(text: str) -> set[str]:
    """Return the first letters of the longer words, which are alike in most forms of a word."""
    return {word[:5] for word in _TOKEN.findall(text.lower()) if len(word) > 3}


def _singular(noun: str) -> str:
    return (stems(noun) or [""])[0]


def _readings(it: Specific) -> tuple[str, ...]:
    """Return the days that a date may mean: "3/2" is two."""
    if "/" not in it.key:
        return (it.key,)
    first, second = map(int, it.key.split("/"))
    return (f"{first} {MONTHS[second - 1]}", f"{second} {MONTHS[first - 1]}")


def _is_day_of_a_date(it: Specific, its: list[Specific]) -> bool:
    """Return whether a weekday is that of a full date in the same sentence."""
    for date in its:
        if date.kind != "date" or not date.unit or "/" in date.key:
            continue
        day, month = date.key.split()
        try:
            found = dt.date(int(date.unit), MONTHS.index(month) + 1, int(day))
        except ValueError:
            continue  # the 31st of April
        if found.strftime("%A").lower() == it.key:
            return True
    return False
