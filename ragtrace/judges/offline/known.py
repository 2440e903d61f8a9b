"""Tells which specifics of an answer the given texts hold, or yield.

A specific is held in another notation, unit, precision or spelling too. Sums, differences, products, shares and
counts of lists are looked for only in the few sentences that share most words with the claim: in a long text full of
numbers some pair has almost any sum.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.notation import MONTHS, NUMBER_WORDS, ORDINALS, Unit, units
from ragtrace.judges.offline.specifics import measures_of, quotes_of, specifics_of, squeezed
from ragtrace.judges.offline.tables import table, words
from ragtrace.judges.offline.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ragtrace.judges.offline.specifics import Specific

NEAREST = 3  # sentences in which sums and the like are looked for, with their neighbours
MOST_NUMBERS = 14  # of these sentences
LARGEST_ERROR = 0.05  # of a number that is rounded without a word like "about"
LARGEST_CONVERTED_ERROR = 0.025  # "460 mm" for 18 inches
LARGEST_ROUGH_ERROR = 0.12
LARGEST_EXCESS = 0.25  # of what "over 1,000" stands for
MONTH_ERROR = 0.015  # 30 days for a month, 52 weeks for a year
_CALENDAR_UNITS = frozenset({"month", "year", "decade", "century"})
_GENERIC_NOUNS = frozenset("time step thing place part half few one name option way point example".split())

_ABOUT = re.compile(
    r"(?:\b(?:about|around|approximately|approx|roughly|circa|ca|some|close to|estimated|near|nearly)\b\.?|[~≈])\s*$",
    re.IGNORECASE,
)
_OVER = re.compile(r"\b(?:over|more than|above|exceed(?:s|ed|ing)?|upwards of|minimum)\s*$", re.IGNORECASE)
_UNDER = re.compile(
    r"\b(?:under|less than|fewer than|below|nearly|almost|not quite|up to|maximum)\s*$", re.IGNORECASE
)
_HOUR = re.compile(
    r"(?:\b(?:from|at|between|until|till|to|by|after|before|and)\s|[-\u2013]\s?)(\d{1,2})(?![\w:%/]|[.,]\d)"
    r"(?=\s?(?:[-\u2013.,;)]|$|(?:to|till|until|and|on|daily|every|in|at)\b))"
)
_ARTICLE = re.compile(  # in "10 euros a day" it is no length
    r"\b(?:(?:within|for|after|in|takes?|took|lasts?|lasted|is|was|have|has|about|every|under|over|another|than|of|"
    r"needs?|runs?|ran) (?:an?|another|one)|(a couple of|a pair of)) "
    r"(minute|hour|day|week|fortnight|month|year|decade|century)s?\b",
    re.IGNORECASE,
)
_RATIO = re.compile(r"\b(one|\d+) (?:in|out of|of) (?:every )?(\d+)\b", re.IGNORECASE)
_OLDER = re.compile(r"\b(?:older|younger|age)\b", re.IGNORECASE)
_AT_HOUR = re.compile(r"(?:\b(?:from|at|between|until|till|to|by|after|before|and)\s|[-\u2013]\s?)$")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_TOKEN = re.compile(r"[^\W_]+")
_ACRONYM = re.compile(r"\b[A-Z][A-Za-z]{0,5}[A-Z]s?\b")
_EXPANSION = re.compile(r"\b[A-Z][\w'-]*(?: (?:(?:of|the|and|for|on|in|de|to|&) ){0,2}[A-Z][\w'-]*){1,7}")
_LIST_LINE = re.compile(r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+\S")
_SEGMENT = re.compile(r"[;:.()!?\u2013\u2014]|\b(?:but|while|which|because)\b")
_LAST_OF_LIST = re.compile(r"(,?) (?:and|or|&|as well as) ")
_PREFIX = re.compile(r"^(?:non|pre|post|anti|mid|ex|pro|co|self|multi|intra|inter|sub)$")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FACTORS = {
    "half": 0.5, "twice": 2.0, "double": 2.0, "doubled": 2.0, "doubles": 2.0, "thrice": 3.0, "triple": 3.0,
    "tripled": 3.0, "quarter": 0.25,
}  # fmt: skip
_LOOSE = {
    "one": 1.0, "first": 1.0, "once": 1.0, "single": 1.0, "second": 2.0, "both": 2.0, "pair": 2.0, "couple": 2.0,
    "twins": 2.0, "twice": 2.0, "double": 2.0, "third": 3.0, "triple": 3.0, "trio": 3.0,
}  # fmt: skip
_FRACTION = re.compile(
    r"\b(?:(one|two|three|four|five|\d{1,2})[ -]{1,3})?(half|third|quarter|fifth|sixth|eighth|tenth)s?\b",
    re.IGNORECASE,
)
_SUM = re.compile(
    r"\b(?:together|total\w*|altogether|combined|sum|in all|overall|both|all|plus|whole|entire|jointly|as well as)\b",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(
    r"\b(?:more|less|fewer|differ\w*|than|older|younger|longer|shorter|higher|lower|cheaper|earlier|later|left|"
    r"remain\w*|sav\w+|discount|gain\w*|rise|rose|grew|growth|fell|fall|drop\w*|increas\w+|decreas\w+|reduc\w+|"
    r"between|apart|gap|margin|unused|extra|additional\w*)\b",
    re.IGNORECASE,
)
_REST = re.compile(r"\b(?:rest|remain\w*|others?|not|no|without|against|disagreed?|fail\w*)\b", re.IGNORECASE)
_EACH = re.compile(
    r"\b(?:each|per|every|apiece|times|a (?:piece|person|day|night|week|month|year)|an hour)\b", re.IGNORECASE
)
_AGED = re.compile(r"\b(?:aged|age of|at)\s$", re.IGNORECASE)
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}


class Number(NamedTuple):
    """A number of the texts, with the place of its sentence."""

    value: float
    unit: str
    shown: str
    sentence: int = 0


class Span(NamedTuple):
    """The values that a stated number may stand for."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        slack = 1e-9 * abs(self.high)
        return isinstance(value, float) and self.low - slack <= value <= self.high + slack


@dataclass(eq=False)
class Known:
    """The specifics that an answer may take over from given texts.

    Attributes:
        sentences: the texts' sentences in one notation.
        raw: the texts as written.
        answer: as written; what it lists itself it may count.
        question: which may ask for a sum.
    """

    sentences: Sequence[str]
    raw: str
    answer: str = ""
    question: str = ""
    numbers: dict[str, dict[str, None]] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    dates: dict[str, dict[str, str]] = field(default_factory=dict)
    ordinals: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    vocabulary: set[str] = field(default_factory=set)

    def wording(self, it: Specific, claim: str) -> str | None:
        """Return how the texts say a specific of a claim; None where they lack it.

        Example:
            >>> known = known_in(["The trail is 5 kilometre long."], "The trail is 5 km long.")
            >>> claim = "The trail is 5000 metre long."
            >>> [known.wording(it, claim) for it in measures_of(claim)]
            ['5 kilometre']
        """
        if it.kind == "number":
            return self._number(it, claim)
        if it.kind == "name":
            return self._name(it, claim)
        if it.kind == "quote":
            return it.shown if self._has_quote(it) else None
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
        with_units = self.numbers.get(it.key)
        if with_units is not None and (not it.unit or not with_units or it.unit in with_units or "" in with_units):
            return it.shown
        if (span := span_of(it, claim)) is None:
            return None
        return self._in_own_unit(it, span) or self._converted(it, claim) or self._hour(it, claim)

    def _in_own_unit(self, it: Specific, span: Span) -> str | None:
        """Return a number of the same unit within the precision of the stated one."""
        for value, unit, shown, _ in _within(self._values, span):
            if unit == it.unit or not unit or not it.unit:
                return shown
        return None

    def _converted(self, it: Specific, claim: str) -> str | None:
        for unit in units().get(it.unit, ()):
            exact = span_of(it, claim, is_exact=unit.dimension == "time", is_converted=True)
            if exact is None:
                return None
            low, high = (_in_base(value, it.unit, unit) for value in exact)
            slack = MONTH_ERROR * high if unit.dimension == "time" else 0.0
            for value, other, shown, _ in _within(
                self._by_dimension[unit.dimension], Span(low - slack, high + slack)
            ):
                is_other_calendar = (other in _CALENDAR_UNITS) != (it.unit in _CALENDAR_UNITS)
                if other != it.unit and (is_other_calendar or value in Span(low, high)):
                    return shown
        return None

    def _hour(self, it: Specific, claim: str) -> str | None:
        """Return the time of an hour that stands alone, as in "from 9 to 17"."""
        if it.unit or not it.key.isdigit() or int(it.key) > 24 or not _AT_HOUR.search(claim[: it.start]):
            return None
        hour = int(it.key)
        return next((found for at in (hour, hour + 12) if (found := self.keys.get(("time", f"{at}:00")))), None)

    @cached_property
    def _values(self) -> list[Number]:
        found = [
            Number(value, unit, f"{key} {unit}".strip())
            for key, with_units in self.numbers.items()
            if (value := value_of(key)) is not None
            for unit in with_units or ("",)
        ]
        for one in self.sentences:
            found += [Number(2.0 if it[1] else 1.0, it[2].lower(), it[2]) for it in _ARTICLE.finditer(one)]
        return sorted(found)

    @cached_property
    def _by_dimension(self) -> dict[str, list[Number]]:
        found: dict[str, list[Number]] = defaultdict(list)
        for value, name, shown, _ in self._values:
            for unit in units().get(name, ()):
                found[unit.dimension].append(Number(_in_base(value, name, unit), name, shown))
        for its in found.values():
            its.sort()
        return found

    # Dates and times

    def _date(self, it: Specific) -> str | None:
        for key in _readings(it):
            years = self.dates.get(key)
            if years is None:
                continue
            if not it.unit or it.unit in years:
                return years.get(it.unit) or next(iter(years.values()))
            if "" in years and it.unit in self.numbers:
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
        if minutes == "00":
            return next((str(at) for at in (int(hour), of_clock) if at in self._hours), None)
        return None

    @cached_property
    def _hours(self) -> frozenset[int]:
        """Return the hours that stand alone, as in "from 9 to 17"."""
        return frozenset(int(hour) for one in self.sentences for hour in _HOUR.findall(one) if 0 <= int(hour) <= 24)

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
        return int(it.key) <= 3 or it.key in self.numbers or int(it.key) in self._list_sizes

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
        plain = (int(key) for key in self.numbers if key.isdigit() and len(key) == 4)
        decades = (int(key) for kind, key in self.keys if kind == "decade" and int(key) % 100)
        return frozenset((*plain, *decades))

    # Names and quotes

    def _has_quote(self, it: Specific) -> bool:
        if it.key in self._joined or squeezed(folded(it.shown)) in self._folded:
            return True
        counted = [word for word in _TOKEN.findall(it.shown) if len(word) > 3 or word.isdigit()]
        is_title = bool(counted) and all(word[0].isupper() or word.isdigit() for word in counted)
        return is_title and all(self._part(word.lower()) is not None for word in counted)

    def _name(self, it: Specific, claim: str) -> str | None:
        """Return the name with the texts' words for its parts."""
        shown = it.shown
        for phrase, others in _phrases():
            if phrase in it.key and not self._has_phrase(phrase):
                for other in filter(self._has_phrase, others):
                    shown = re.sub(re.escape(phrase), _capitalised(other), shown, flags=re.IGNORECASE)
                    break
        if (whole := self._acronym(shown)) is not None:
            return whole
        unknown = {}
        is_first = True
        for word in re.split(r"[ '\u2019-]+", shown):
            is_counted = word.lower() in it.key.split() or not is_first or " " not in shown or "-" in shown
            is_first = False
            part = word.lower().removesuffix("'s")
            if (
                len(part) < 3
                or not is_counted
                or _PREFIX.match(part)
                or not (word[0].isupper() or word[0].isdigit())
            ):
                continue
            if (known := self._part(part)) is None:
                if (known := self._acronym(word) or self._closed_up(word)) is None:
                    unknown[word] = ""
                    continue
            if known != part:
                shown = shown.replace(word, _capitalised(known))
        if unknown and (expanded := self._abbreviated(it, claim)):
            return expanded
        return None if unknown else shown

    def _part(self, part: str) -> str | None:
        """Return the texts' word for one word of a name."""
        for form in (part, part.removesuffix("s"), f"{part}s"):
            if form in self.vocabulary:
                return form if form != part and not part.startswith(form) else part
        for form in folded(part), *_umlauts(part):
            if form in self._spelled:
                return self._spelled[form]
        if part in ORDINALS and str(ORDINALS[part]) in self.numbers:
            return part
        for other in _same().get(part, ()):
            if self._has_phrase(other):
                return other
        for ending in ("ian", "ean", "ese", "n", "an"):
            stem = part.removesuffix(ending)
            if stem != part and len(stem) >= (5 if len(ending) > 2 else 6) and stem in self.vocabulary:
                return stem
            if len(part) >= (5 if len(ending) > 2 else 6) and part + ending in self.vocabulary:
                return part + ending
        return None

    def _has_phrase(self, phrase: str) -> bool:
        if phrase.isupper():
            return phrase in self._acronyms
        return phrase in self.vocabulary if " " not in phrase else f" {phrase} " in f" {self._joined} "

    def _acronym(self, word: str) -> str | None:
        """Return the expansion of "WHO" where the texts have one."""
        letters = _spelled_out(word.removesuffix("s") if word[-1:] == "s" else word)
        if not letters or word.lower() in self.vocabulary:
            return None
        return self._expansions.get(letters) or next(
            (other for other in _same().get(word.lower(), ()) if self._has_phrase(other)), None
        )

    def _abbreviated(self, it: Specific, claim: str) -> str | None:
        """Return "WHO" for the name that it abbreviates, where the texts have only that."""
        runs = (run[0] for run in _EXPANSION.finditer(claim) if run.start() <= it.start < run.end())
        for letters in (letters for name in (it.shown, *runs) for letters in _initials(name)):
            if len(letters) > 2 and letters in self._acronyms:
                return self._acronyms[letters]
        return None

    def _closed_up(self, word: str) -> str | None:
        """Return "Word Press" for "WordPress"."""
        parts = _CAMEL.findall(word)
        if len(parts) < 2 or len(word) < 5:
            return None
        apart = " ".join(parts).lower()
        return apart if f" {apart} " in f" {self._joined} " else None

    @cached_property
    def _joined(self) -> str:
        return squeezed(self.raw)

    @cached_property
    def _folded(self) -> str:
        return self._joined if self._joined.isascii() else folded(self._joined)

    @cached_property
    def _spelled(self) -> dict[str, str]:
        """Return the texts' words by their letters without accents, and closed-up pairs of capitalised words."""
        found = {
            form: word for word in self.vocabulary if not word.isascii() for form in (folded(word), *_umlauts(word))
        }
        for left, right in re.findall(r"\b([A-Z][a-z]+)(?= ([A-Z][a-z]+))", self.raw):
            found.setdefault((left + right).lower(), f"{left} {right}")
        return found

    @cached_property
    def _acronyms(self) -> dict[str, str]:
        return {found.removesuffix("s").upper(): found for one in self.sentences for found in _ACRONYM.findall(one)}

    @cached_property
    def _expansions(self) -> dict[str, str]:
        """Return the capitalised words of the texts by their initials."""
        found: dict[str, str] = {}
        for one in self.sentences:
            for run in _EXPANSION.findall(one):
                its = run.split()
                for first in range(len(its)):
                    for last in range(first + 2, min(len(its), first + 9) + 1):
                        name = " ".join(its[first:last])
                        if its[first][0].isupper() and its[last - 1][0].isupper():
                            for letters in _initials(name):
                                found.setdefault(letters, name)
        return found

    # What the texts yield

    @cached_property
    def _list_sizes(self) -> frozenset[int]:
        """Return how long the lists of the texts and of the answer are."""
        return frozenset((*_sizes_of_lists(self.raw), *_sizes_of_lists(self.answer)))

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Return the sentences of each word's beginning."""
        found: dict[str, list[int]] = defaultdict(list)
        for i, one in enumerate(self.sentences):
            for begin in _beginnings(one):
                found[begin].append(i)
        return found

    def near(self, claim: str) -> list[int]:
        """Return the places of the sentences that share most words with a claim, with their neighbours."""
        if len(self.sentences) <= 2 * NEAREST:
            return list(range(len(self.sentences)))
        shared: Counter[int] = Counter()
        for begin in sorted(_beginnings(claim)):
            places = self._places.get(begin, ())
            for i in places:
                shared[i] += round(1000 * math.log1p(len(self.sentences) / len(places)))
        best = [i for i, _ in sorted(shared.items(), key=lambda it: (-it[1], it[0]))[:NEAREST]]
        return sorted({i for at in best for i in (at - 1, at, at + 1) if 0 <= i < len(self.sentences)})


class _Near:
    """The numbers near a claim, and what they yield."""

    def __init__(self, claim: str, known: Known) -> None:
        self.claim, self.known = claim, known
        self.said = f"{claim} {known.question}"
        self.places = known.near(claim)
        self.numbers: list[Number] = []
        self.times: list[Number] = []
        self.loose: list[tuple[float, str, str, str]] = []  # value, the words around it, and its own
        self.factors: list[Number] = []
        self.shares: list[Number] = []
        for place in self.places:
            self._read(place, known.sentences[place])

    def _read(self, place: int, text: str) -> None:
        for it in measures_of(text):
            value = value_of(it.key) if it.kind == "number" else None
            if value is not None and len(self.numbers) < MOST_NUMBERS:
                self.numbers.append(Number(value, it.unit, it.shown, place))
                if it.unit == "percent":
                    self.factors.append(Number(value / 100.0, "", it.shown, place))
            elif it.kind == "time":
                hours, minutes = it.key.split(":")
                self.times.append(Number(60.0 * int(hours) + int(minutes), "", it.shown, place))
            elif it.kind == "date" and it.unit and len(self.numbers) < MOST_NUMBERS:
                self.numbers.append(Number(float(it.unit), "", it.unit, place))
        said = _TOKEN.findall(text.lower())
        for i, word in enumerate(said):
            if word in _FACTORS:
                self.factors.append(Number(_FACTORS[word], "", word, place))
            if (value := _LOOSE.get(word) or NUMBER_WORDS.get(word)) is not None:
                self.loose.append(
                    (float(value), " ".join(said[max(0, i - 1) : i]), " ".join(said[i + 1 : i + 2]), word)
                )
        for found in _FRACTION.finditer(text):
            counter = found[1].lower() if found[1] else "1"
            top = float(counter) if counter.isdigit() else float(NUMBER_WORDS[counter])
            self.shares.append(Number(100.0 * top / _PARTS[found[2].lower()], "percent", found[0], place))

        for found in _RATIO.finditer(text):
            top, whole = (1.0 if word.lower() == "one" else float(word) for word in found.groups())
            if 0 < top < whole:
                self.shares.append(Number(100.0 * top / whole, "percent", found[0], place))

    def wording(self, it: Specific, others: Sequence[Specific]) -> tuple[str, tuple[Specific, ...]] | None:
        """Return the numbers that yield one of the claim, and the claim's other number that it rests on."""
        span = span_of(it, self.claim, is_exact=True)
        if span is None:
            return None
        found = self._loose(it, span) or self._pair(it, span) or self._total(it, span) or self._share(it, span)
        if found is not None:
            return found, ()
        if (found := self._counted(it)) is not None:
            return found, ()
        return self._times_other(it, span, others)

    def _loose(self, it: Specific, span: Span) -> str | None:
        """Return a number in words beside the same word, as in "number one"."""
        before = _TOKEN.findall(self.claim[: it.start].lower())[-1:]
        behind = _TOKEN.findall(self.claim[it.start + len(it.shown) :].lower())[:1]
        for value, left, right, word in self.loose:
            if value in span and not it.unit and ([left] == before or [right] == behind):
                return word
        return None

    def _pair(self, it: Specific, span: Span) -> str | None:
        """Return two numbers whose sum, difference or product it is, where a word says that it is one."""
        is_sum, is_difference = (
            bool(_SUM.search(self.said)),
            bool(_DIFFERENCE.search(self.said) or _REST.search(self.claim)),
        )
        for one, other in combinations(self.numbers, 2):
            if abs(one.sentence - other.sentence) > 1:
                continue
            both = f"{one.shown} and {other.shown}"
            years = _is_year(one) + _is_year(other)
            if years:
                is_length = it.unit == "year" or _AGED.search(self.claim[: it.start])
                if years == 2 and is_length and abs(one.value - other.value) in span:
                    return both
                continue
            are_parts = not one.unit and not other.unit and one.sentence == other.sentence
            are_ages = it.unit == "year" and are_parts and bool(_OLDER.search(self.claim))
            for left, right in _in_unit(one, other, "" if are_ages else it.unit):
                if (is_sum or are_parts) and left + right in span:
                    return both
                if is_difference and left != right and abs(left - right) in span:
                    return both
            if _EACH.search(self.known.sentences[one.sentence]) or _EACH.search(
                self.known.sentences[other.sentence]
            ):
                for factor, of in ((one, other), (other, one)):
                    if not factor.unit and factor.value >= 2.0 and _is_multiple(factor, of, it, span):
                        return both
        for factor in self.factors:
            for of in self.numbers:
                if abs(factor.sentence - of.sentence) <= 1 and _is_multiple(factor, of, it, span):
                    return f"{factor.shown} {of.shown}"
        if units().get(it.unit) and units()[it.unit][0].dimension == "time":
            for one, other in combinations(self.times, 2):
                length = Number(abs(one.value - other.value), "minute", "")
                if any(value in span for value in _values_in(length, it.unit)):
                    return f"{one.shown} {other.shown}"
        return None

    def _total(self, it: Specific, span: Span) -> str | None:
        """Return the three or more numbers of one sentence, or of neighbours, that it is the sum of."""
        for place in self.places if _SUM.search(self.said) else ():
            for last in (place, place + 1, place + 2):
                its = [one for one in self.numbers if place <= one.sentence <= last and not _is_year(one)]
                values = [value for one in its for value in _values_in(one, it.unit)]
                if len(values) > 2 and math.fsum(values) in span:
                    return " and ".join(one.shown for one in its)
        return None

    def _share(self, it: Specific, span: Span) -> str | None:
        """Return what a percentage is computed from."""
        if it.unit != "percent":
            return None
        rounded = span_of(it, self.claim) or span
        for one in self.shares:
            if one.value in rounded:
                return one.shown
        for one in self.numbers:
            if one.unit == "percent" and _REST.search(self.said) and 100.0 - one.value in span:
                return one.shown
        for one, other in combinations(self.numbers, 2):
            small, large = sorted((one, other))
            if small.unit == large.unit != "percent" and large.value > 0 and not _is_year(large):
                shares = [100.0 * small.value / large.value]
                if small.value > 0 and _DIFFERENCE.search(self.said):
                    shares += [100.0 * (large.value - small.value) / of.value for of in (small, large)]
                if abs(one.sentence - other.sentence) <= 1 and any(share in rounded for share in shares):
                    return f"{small.shown} of {large.shown}"
        return None

    def _counted(self, it: Specific) -> str | None:
        """Return "" where a number counts a list. Its own noun is not in the texts, so nothing stands for it."""
        if it.unit or not it.key.isdigit() or not 1 < int(it.key) <= 30:
            return None
        size, behind = int(it.key), self.claim[it.start + len(it.key) :]
        own = len(re.split(r",\s*(?:and |or )?|\s(?:and|or|&)\s|;\s*", _listed_behind(behind)))
        if own > 1 and size in {own, own - 1}:
            return ""
        if size in self.known._list_sizes:
            return ""
        return "" if any(size in _sizes_of_enumerations(self.known.sentences[i]) for i in self.places) else None

    def _times_other(
        self, it: Specific, span: Span, others: Sequence[Specific]
    ) -> tuple[str, tuple[Specific, ...]] | None:
        """Return what "two boxes have 24 bottles" takes from "each box has 12 bottles"."""
        for other in others:
            factor = value_of(other.key) if other.kind == "number" and not other.unit else None
            if other is it or factor is None or not 1.0 < factor <= 1000.0:
                continue
            for one in self.numbers:
                if _is_multiple(Number(factor, "", ""), one, it, span):
                    return one.shown, (other,)
        return None


def known_in(sentences: Iterable[str], raw: str, answer: str = "", question: str = "") -> Known:
    """Collect the specifics of normalised sentences and their raw text."""
    known = Known(list(sentences), raw, answer, question)
    for sentence in known.sentences:
        for it in measures_of(sentence):
            if it.kind == "number":
                known.numbers.setdefault(it.key, {})[it.unit] = None
            elif it.kind == "date":
                for key in _readings(it):
                    known.dates.setdefault(key, {})[it.unit] = it.shown
                    known.keys["month", key.split()[1]] = it.shown
                if it.unit:
                    known.numbers.setdefault(it.unit, {})[""] = None
            elif it.kind == "ordinal":
                known.ordinals[it.key].add(_singular(it.unit))
            else:
                known.keys.setdefault((it.kind, it.key), it.shown)
        known.vocabulary.update(_TOKEN.findall(sentence.lower()))
        for digits in _DIGITS.findall(sentence):
            known.numbers.setdefault(digits, {})  # as in "v1.21": no unit is known of it
    return known


def compare(text: str, normal: str, known: Known) -> tuple[list[Specific], str]:
    """Return the specifics of a sentence that the texts lack, each once, and the sentence in the texts' words.

    A quote counts from three words on.

    Args:
        text: the sentence as it was written, for its quotes.
        normal: the same in one notation.
        known: the texts.

    Example:
        >>> said = 'She called it "a very great day" in Oslo.'
        >>> compare(said, said, known_in(["It is in Oslo."], "It is in Oslo."))[0][0].shown
        'a very great day'
        >>> compare("It is 5,000 m.", "It is 5000 metre.", known_in(["It is 5 kilometre."], ""))
        ([], 'It is 5 kilometre.')
    """
    its = specifics_of(normal)
    wordings = {it: known.wording(it, normal) for it in its}
    for it in its:
        if wordings[it] is None and it.kind == "weekday" and _is_day_of_a_date(it, its):
            wordings[it] = it.shown
        if wordings[it] is None and it.kind == "name" and _abbreviates_words_before(it, normal):
            wordings[it] = ""
    lacking = [it for it in its if it.kind == "number" and wordings[it] is None]
    if lacking:
        near = _Near(normal, known)
        for it in sorted(lacking, key=lambda it: -(value_of(it.key) or 0.0)):
            found = near.wording(it, its) if wordings[it] is None else None
            if found is not None:
                wordings[it] = found[0]
                wordings.update({other: "" for other in found[1] if wordings[other] is None})
    quotes = [it for it in quotes_of(text) if known.wording(it, text) is None]
    invented = {(it.kind, it.key): it for it in (*(it for it in its if wordings[it] is None), *quotes)}
    return list(invented.values()), _reworded(normal, wordings)


def _reworded(text: str, wordings: dict[Specific, str | None]) -> str:
    """Return a sentence with the texts' words in place of its own."""
    parts, end = [], 0
    for it in sorted(wordings, key=lambda it: (it.start, -len(it.shown))):
        wording = wordings[it]
        if wording is None or wording == it.shown or it.start < end:
            continue
        between = text[end : it.start]
        if it.kind == "number":
            for hedge in (_ABOUT, _OVER, _UNDER):
                between = hedge.sub("", between)
        parts += [between, wording]
        end = it.start + len(it.shown)
    return "".join([*parts, text[end:]])


def span_of(it: Specific, claim: str, *, is_exact: bool = False, is_converted: bool = False) -> Span | None:
    """Return the values that a number may stand for, by its digits and the word before it.

    Args:
        it: the number.
        claim: the sentence that it stands in.
        is_exact: whether a whole number is meant to the unit.
        is_converted: whether it is compared with another unit, so that its last zeros are rounded.

    Example:
        >>> claim = "It has about 1200000 seats, 33 percent of them in 1998."
        >>> [span_of(it, claim) for it in measures_of(claim)]
        [Span(low=1150000.0, high=1250000.0), Span(low=32.5, high=33.5), Span(low=1998.0, high=1998.0)]
    """
    value = value_of(it.key)
    if value is None:
        return None
    whole, _, part = it.key.partition(".")
    zeros = 0 if part.strip("0") else len(whole) - len(whole.rstrip("0"))
    step = 10.0 ** -len(part) if part.strip("0") else 10.0**zeros
    before = claim[max(0, it.start - 24) : it.start]
    if _OVER.search(before):
        return Span(value, value + min(step, LARGEST_EXCESS * value))
    if _UNDER.search(before):
        return Span(value - min(step, LARGEST_ROUGH_ERROR * value), value)
    if _ABOUT.search(before):
        error = min(step / 2.0, LARGEST_ROUGH_ERROR * value)
    elif not part.strip("0") and (is_exact or _is_year(Number(value, it.unit, ""))):
        error = 0.0
    else:
        error = min((1.0 if 0 < zeros < 3 else step) / 2.0, LARGEST_ERROR * value)
        if is_converted:
            error = max(error, min(step / 2.0, LARGEST_CONVERTED_ERROR * value))
    return Span(value - error, value + error)


def _beginnings(text: str) -> set[str]:
    """Return the first letters of the longer words, which are alike in most forms of a word."""
    return {word[:5] for word in _TOKEN.findall(text.lower()) if len(word) > 3}


def value_of(key: str) -> float | None:
    """Return a number's value; None for a version or a list like "1,2,3"."""
    return float(key) if "," not in key and key.count(".") < 2 else None


def folded(text: str) -> str:
    """Return a text in lower case without accents.

    Example:
        >>> folded("São Tomé"), folded("Tromsø")
        ('sao tome', 'tromso')
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.lower().translate(_STROKES))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


_STROKES = str.maketrans(
    {"ø": "o", "ß": "ss", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})


def _umlauts(word: str) -> tuple[str, ...]:
    """Return the spelling of "Müller" as "mueller"."""
    spelled = word.lower().translate(_UMLAUTS)
    return (spelled,) if spelled != word.lower() else ()


def _singular(noun: str) -> str:
    return (stems(noun) or [""])[0]


def _within(numbers: list[Number], span: Span) -> Iterator[Number]:
    slack = 1e-9 * abs(span.high)
    for i in range(bisect_left(numbers, (span.low - slack,)), len(numbers)):
        if numbers[i].value > span.high + slack:
            return
        yield numbers[i]


def _in_base(value: float, name: str, unit: Unit) -> float:
    if name == "fahrenheit":
        return (value - 32.0) / 1.8
    return value * unit.size


def _values_in(number: Number, unit: str) -> list[float]:
    """Return the values of a number in a unit, one for each dimension that both are of."""
    if number.unit == unit or not unit:
        return [number.value]
    ours = {one.dimension: one.size for one in units().get(unit, ())}
    return [
        number.value * one.size / ours[one.dimension]
        for one in units().get(number.unit, ())
        if one.dimension in ours
    ]


def _in_unit(one: Number, other: Number, unit: str) -> list[tuple[float, float]]:
    """Return the values of two numbers of the same kind in a unit."""
    if bool(one.unit) != bool(other.unit) or (not unit and one.unit != other.unit):
        return []
    return list(zip(_values_in(one, unit), _values_in(other, unit), strict=False))


def _is_multiple(factor: Number, of: Number, it: Specific, span: Span) -> bool:
    """Return whether a number is another one some times. Years and percentages are not multiplied."""
    if of.unit == "percent" or _is_year(of):
        return False
    return any(factor.value * value in span for value in _values_in(of, it.unit))


def _is_year(number: Number) -> bool:
    return not number.unit and number.value.is_integer() and 1000 <= number.value <= 2100


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


def _capitalised(words: str) -> str:
    return words.title() if words.islower() else words


@cache
def _same() -> dict[str, tuple[str, ...]]:
    """Return for each word of a name the others that mean the same."""
    found: dict[str, tuple[str, ...]] = {}
    for lines in table("names.txt").values():
        for line in lines:
            group = [word.replace("_", " ") for word in line.split()]
            for word in group:
                found[word.lower()] = (*found.get(word.lower(), ()), *(it for it in group if it != word))
    return found


@cache
def _phrases() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((word, others) for word, others in _same().items() if " " in word)


def _initials(name: str) -> list[str]:
    """Return the initials of a name, without and with its small words.

    Example:
        >>> _initials("Department of Defense")
        ['DD', 'DOD']
    """
    its = re.findall(r"[^\W_]+", name)
    large = "".join(word[0] for word in its if word[0].isupper())
    every = "".join(word[0] for word in its).upper()
    return list(dict.fromkeys((large, every)))


def _spelled_out(word: str) -> str:
    """Return the initials that an acronym stands for: "WHO", "DOD" of "DoD", "ICCC" of "IC3"; "" for another word."""
    if not 1 < len(word) <= 7 or sum(letter.isupper() for letter in word) < 2:
        return ""
    again = re.sub(r"([A-Za-z])([2-4])", lambda it: it[1] * int(it[2]), word)
    before = re.sub(r"([2-4])([A-Za-z])", lambda it: it[2] * int(it[1]), again)
    return before.upper() if before.isalpha() else ""


def _abbreviates_words_before(it: Specific, text: str) -> bool:
    """Return whether a name in brackets has the initials of the words before it."""
    letters = _spelled_out(it.shown.removesuffix("s"))
    before = text[: it.start].rstrip()
    if len(letters) < 2 or not before.endswith("("):
        return False
    its = [word for word in re.findall(r"[^\W_]+", before)[-2 * len(letters) :]]
    small = {"of", "the", "and", "for", "in", "on", "to", "a"}
    return any(
        "".join(word[0] for word in some).upper() == letters
        for some in (its[-len(letters) :], [word for word in its if word.lower() not in small][-len(letters) :])
    )


def _sizes_of_lists(text: str) -> set[int]:
    """Return how many lines each list of a text has.

    Example:
        >>> sorted(_sizes_of_lists("You need:\\n- a form\\n- a photo\\n\\nThen:\\n1. go\\n2. wait\\n3. pay"))
        [2, 3]
    """
    sizes: set[int] = set()
    size = 0
    for line in text.splitlines():
        if _LIST_LINE.match(line):
            size += 1
        elif line.strip() and size and not line.startswith((" ", "\t")):
            sizes.add(size)
            size = 0
    sizes.add(size)
    return {size for size in sizes if size > 1}


def _sizes_of_enumerations(text: str) -> set[int]:
    """Return how many members the enumerations of a sentence have.

    Example:
        >>> _sizes_of_enumerations("We ship to Norway, Sweden, Denmark and Finland.")
        {4}
    """
    sizes = set()
    for segment in _SEGMENT.split(text):
        for last in _LAST_OF_LIST.finditer(segment):
            sizes.add(segment.count(",", 0, last.start()) + 2)
    return sizes


def _listed_behind(text: str) -> str:
    """Return the enumeration behind a number and its noun."""
    mark = re.search(r":|,|\u2013|\u2014| - |\b(?:namely|such as|are|is|including)\b", text)
    return re.split(r"[.;!?](?:\s|$)|\n", text[mark.end() :])[0] if mark else ""
