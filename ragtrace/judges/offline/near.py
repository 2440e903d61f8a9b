"""Finds what the numbers near a claim yield: sums, differences, products, shares, and counts of lists."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.notation import MONTHS, NUMBER_WORDS, WEEKDAYS, units
from ragtrace.judges.offline.quantities import Number, both_in, is_year, span_of, value_of, values_in
from ragtrace.judges.offline.specifics import measures_of
from ragtrace.judges.offline.words import LONGEST, stems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.judges.offline.quantities import Span
    from ragtrace.judges.offline.specifics import Specific

MOST_NUMBERS = 14  # of the sentences near a claim, and times, factors and shares each
LONGEST_LIST = 30
_AROUND = 120  # characters around a number that are read for it
_RATIO = re.compile(
    r"\b(one|\d+) (?:in|out of|of) (?:every )?(\d+)\b", re.IGNORECASE
)  # of at most 2,000 characters: a sentence
_DAY = 1440.0  # minutes
_OLDEST = 120.0
ENDLESS = (100 / 3, 200 / 3, 100 / 6, 500 / 6)  # shares that have no end as percentages
_OLDER = re.compile(r"\b(?:older|younger|age)\b", re.IGNORECASE)  # of at most 2,000 characters: a sentence
_TOKEN = re.compile(r"[^\W_]+")
_LIST_LINE = re.compile(r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+\S")
_SEGMENT = re.compile(
    r"[;:.()!?\u2013\u2014]|\b(?:but|while|which|because)\b"
)  # of at most 2,000 characters: a sentence
_MEMBER_END = re.compile(r",\s*+(?:and |or )?|\s(?:and|or|&)\s|;\s*+")  # of at most 2,000 characters: a sentence
_LIST_BEGIN = re.compile(  # of at most 2,000 characters: a sentence
    r":|,|\u2013|\u2014| - |\b(?:namely|such as|are|is|including)\b"
)
_LIST_END = re.compile(r"[.;!?](?:\s|$)|\n")
_COLON_LIST = re.compile(r": ([^:;.!?]{1,600}+)(?:[;.!?]|$)")  # of at most 2,000 characters: a sentence
_PERIOD = re.compile(  # of at most 2,000 characters: a sentence
    r"(?:\b(?:an?|per|each|every|1)\s|/ ?)(minute|hour|day|night|week|month|quarter|year)s?\b|"
    r"\b(hourly|daily|nightly|weekly|monthly|quarterly|yearly|annual)(?:ly)?\b",
    re.IGNORECASE,
)
_BY_NAME = {
    "hourly": "hour", "daily": "day", "nightly": "day", "night": "day", "weekly": "week", "monthly": "month",
    "quarterly": "quarter", "yearly": "year", "annual": "year",
}  # fmt: skip
_IN_A_PERIOD = {  # how many of the first are in the second
    ("minute", "hour"): (60.0,), ("hour", "day"): (24.0,), ("hour", "week"): (168.0,), ("day", "week"): (7.0, 5.0),
    ("day", "month"): (30.0, 31.0), ("day", "year"): (365.0,), ("week", "month"): (4.0,), ("week", "year"): (52.0,),
    ("month", "quarter"): (3.0,), ("month", "year"): (12.0,), ("quarter", "year"): (4.0,),
}  # fmt: skip
_MONTH_OF_YEAR = re.compile(rf"(?<!\d )\b({'|'.join(MONTHS)}) (\d{{4}})\b", re.IGNORECASE)
_SINGLE = re.compile(r"\b(?:an?|one|another) (hour|day|week|fortnight|month|year|decade|century)\b", re.IGNORECASE)
_MONTH_END = re.compile(r"\b(?:last day|end) of ([a-z]+)\b", re.IGNORECASE)
_FEASTS = {
    "christmas day": (12, 25), "christmas eve": (12, 24), "boxing day": (12, 26), "new year's day": (1, 1),
    "new year's eve": (12, 31), "halloween": (10, 31), "valentine's day": (2, 14),
}  # fmt: skip
_BACK = re.compile(r"\b(?:later|earlier|before|after|ago|previously|prior|since|old|first)\b", re.IGNORECASE)
_CLOSED = re.compile(r"\b(?:closed|shut|closes|except|not|never|no|but)\b", re.IGNORECASE)
_NEXT_DAY = re.compile(
    r"\b(?:next|following|previous) (?:day|morning|evening)\b|\bday (?:after|before)\b|\b(?:eve|overnight)\b",
    re.IGNORECASE,
)
_YEARLY = re.compile(r"\b(?:birthday|anniversary|every year|each year|annual(?:ly)?|yearly)\b", re.IGNORECASE)
_OPEN_HOURS = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:from|between) (\d{1,2}) ?(?:to|until|till|and|[-\u2013]) ?(\d{1,2})(?![\w:.,]*\d)", re.IGNORECASE
)
_LEAD = re.compile(r"^ ?(?:points?|goals?|runs?|votes?|seats?|ahead|clear|in front)\b")
_AVERAGE = re.compile(r"\b(?:average|mean|typically)\b", re.IGNORECASE)
_CHANGE = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:off|discount\w*|reduc\w+|cheaper|less|rebate|increas\w+|surcharge|more|plus|on top|rais\w+|ris\w+|"
    r"rose|extra|added)\b",
    re.IGNORECASE,
)
_CALENDAR = {"month": MONTHS, "day": WEEKDAYS}
_OFTEN = re.compile(r"\b(?:every|each|per|daily|weekly|monthly|yearly|annual\w*)\b", re.IGNORECASE)
_RANGE = re.compile(r"(?<![\w.,:/-])(\d{1,4}) ?(?:to|[-\u2013]) ?(\d{1,4})(?![\w:/-]|[.,]\d)")
_LIST_MARK = re.compile(r"\s?(?:[,.;:)](?!\d)|$|(?:and|or)\b)")
_COUNT = re.compile(r"\b(\d{1,2})\b(?![.,:]\d)")
_ONE = re.compile(r"\b(?:an?|one|1|single) ([a-z]+)", re.IGNORECASE)
_LAST_OF_LIST = re.compile(r"(,?) (?:and|or|&|as well as) ")
_FACTORS = {
    "half": 0.5, "twice": 2.0, "double": 2.0, "doubled": 2.0, "doubles": 2.0, "thrice": 3.0, "triple": 3.0,
    "tripled": 3.0, "quarter": 0.25,
}  # fmt: skip
_LOOSE = {
    "one": 1.0, "first": 1.0, "once": 1.0, "single": 1.0, "second": 2.0, "both": 2.0, "pair": 2.0, "couple": 2.0,
    "twins": 2.0, "twice": 2.0, "double": 2.0, "third": 3.0, "triple": 3.0, "trio": 3.0,
}  # fmt: skip
_FRACTION = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:(one|two|three|four|five|\d{1,2})[ -]{1,3})?(half|third|quarter|fifth|sixth|eighth|tenth)s?\b",
    re.IGNORECASE,
)
_SUM = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:together|total\w*|altogether|combined|sums?|in all|overall|both|all|plus|whole|entire|jointly|"
    r"include\w*|including|inclusive|count(?:ed|ing)|add(?:s|ed|ing)? up|com(?:es?|ing) to|came to|"
    r"between (?:them|us)|amount(?:s|ed|ing)? to|with)\b",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:more|less|fewer|differ\w*|than|older|younger|longer|shorter|higher|lower|cheaper|earlier|later|left|"
    r"remain\w*|sav\w+|discount|gain\w*|rise|rose|grew|growth|fell|fall|drop\w*|increas\w+|decreas\w+|reduc\w+|"
    r"between|apart|gap|margin|unused|missing|absent|extra|additional\w*|under|over|above|below|beyond|short|still|"
    r"other|others|cut|up|down|spare|gone|lost|majority|another|room|junior|senior|shrank|shrunk|climbed|went)\b",
    re.IGNORECASE,
)
_REST = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:rest|remain\w*|others?|not|no|without|against|disagreed?|fail\w*)\b", re.IGNORECASE
)
_EACH = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:each|per|every|apiece|times|a (?:piece|person|day|night|week|month|year)|an hour|"
    r"\d+ (?:[^\W\d_]+ ){1,2}(?:of|at|à|for) \d+)"
    r"\b",
    re.IGNORECASE,
)
_AGED = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:aged|age of|at|turn(?:s|ed|ing)?|lived to(?: be)?)(?: (?:about|around|just|only|the age of))?\s$",
    re.IGNORECASE,
)
_WAS = re.compile(
    r"\b(?:is|was|were|be|being)(?: (?:about|around|just|only|already|still|barely))?\s$", re.IGNORECASE
)
_OF_AGE = re.compile(r"\s?(?:[.,;:!?)]|$|(?:years?|when|at|then|that|in|on|by|and|before|while)\b)")
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}


class Near:
    """The numbers near a claim, and what they yield."""

    def __init__(
        self, claim: str, question: str, sentences: Sequence[tuple[int, str]], list_sizes: frozenset[int]
    ) -> None:
        """Read the numbers of some sentences.

        Args:
            claim: in one notation.
            question: which may ask for a sum.
            sentences: those near the claim with their places.
            list_sizes: how long the lists of the texts and of the answer are.
        """
        self.claim, self.list_sizes = claim, list_sizes
        self.sentences = {place: text[:LONGEST] for place, text in sentences}
        self.numbers: list[Number] = []
        self._periods: dict[Number, str] = {}
        self._nouns: dict[tuple[int, str], str] = {}  # behind the numbers of each sentence, as they are shown
        self.times: list[Number] = []
        self.loose: list[tuple[Number, str, str]] = []  # with the words before and behind it
        self.factors: list[Number] = []
        self.shares: list[Number] = []
        self.dates: list[tuple[int, dt.date, bool]] = []
        self.single: list[Number] = []  # lengths of one, as "a decade later"
        self.months: list[tuple[int, int]] = []  # of months with a year, counted from year 0
        self.named: list[tuple[int, str, int]] = []  # months and weekdays, with their places in year or week
        for place, text in self.sentences.items():
            self._read_measures(place, text)
            self._read_words(place, text)
            self._read_shares(place, text)
        for its in (self.numbers, self.times, self.loose, self.factors, self.shares, self.dates, self.named):
            del its[MOST_NUMBERS:]
        said = f"{claim[:LONGEST]} {question[:LONGEST]}"
        self._n_named = Counter((place, kind) for place, kind, _ in set(self.named))
        self._is_sum = bool(_SUM.search(said))
        self._is_mean = _AVERAGE.search(said) is not None
        self._is_rest = bool(_REST.search(claim[:LONGEST]))
        self._is_difference = bool(_DIFFERENCE.search(said)) or self._is_rest
        self._are_ages = bool(_OLDER.search(claim[:LONGEST]))
        self._each = {place for place, text in self.sentences.items() if _EACH.search(text)}

    def _read_measures(self, place: int, text: str) -> None:
        its = measures_of(text)
        said = {it.unit for it in its if it.kind == "number" and it.unit}
        is_length = any(unit.dimension in {"time", "share"} for name in said for unit in units()[name])
        only = said.pop() if len(said) == 1 and not is_length else ""  # "500 euros, then 300"
        for it in its:
            value = value_of(it.key) if it.kind == "number" else None
            if value is not None:
                unit = it.unit or (only if self._is_elliptic(it, text) else "")
                self.numbers.append(Number(value, unit, it.shown, place))
                if it.noun:
                    self._nouns.setdefault((place, it.shown), it.noun)
                if it.unit == "percent":
                    self.factors += [
                        Number(share / 100.0, "", it.shown, place)
                        for share in (value, *(share for share in ENDLESS if round(share) == value))
                    ]
            elif it.kind == "date":
                if it.unit:
                    self.numbers.append(Number(float(it.unit), "", it.unit, place))
                if (date := _day_of(it)) is not None:
                    self.dates.append((place, date, bool(it.unit)))
            elif it.kind in {"month", "weekday"}:
                names = MONTHS if it.kind == "month" else WEEKDAYS
                self.named.append((place, "month" if it.kind == "month" else "day", names.index(it.key)))
            elif it.kind == "time":
                hours, minutes = it.key.split(":")
                self.times.append(Number(60.0 * int(hours) + int(minutes), "", it.shown, place))
        self.single += [Number(1.0, it[1].lower(), it[0], place) for it in _SINGLE.finditer(text)]
        lowered = text.lower()
        self.dates += [(place, dt.date(2001, *day), False) for name, day in _FEASTS.items() if name in lowered]
        for found in _MONTH_OF_YEAR.finditer(text):
            self.months.append((place, 12 * int(found[2]) + MONTHS.index(found[1].lower())))
        for found in _OPEN_HOURS.finditer(text):
            self.times += [Number(60.0 * int(hour), "", hour, place) for hour in found.groups()]

    def _is_elliptic(self, it: Specific, text: str) -> bool:
        """Return whether a number may have the unit of another one: nothing that it counts is behind it."""
        is_last = _LIST_MARK.match(text, it.start + len(it.shown)) is not None
        return is_last and not it.noun and not (len(it.key) == 4 and is_year(Number(float(it.key), "", "")))

    def _read_words(self, place: int, text: str) -> None:
        said = _TOKEN.findall(text.lower())
        for word, before, behind in zip(said, ["", *said], [*said[1:], ""], strict=False):
            if word in _FACTORS:
                self.factors.append(Number(_FACTORS[word], "", word, place))
            value = _LOOSE.get(word) or NUMBER_WORDS.get(word)
            if value is not None:
                self.loose.append((Number(float(value), "", word, place), before, behind))

    def _read_shares(self, place: int, text: str) -> None:
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
        for look in (
            self._loose,
            self._pair,
            self._year_after,
            self._often,
            self._rate,
            self._between_times,
            self._between_dates,
            self._total,
            self._share,
        ):
            if (found := look(it, span)) is not None:
                return found, ()
        return ("", ()) if self._counts_a_list(it) else self._times_other(it, span, others)

    def _before(self, it: Specific) -> str:
        return self.claim[max(0, it.start - _AROUND) : it.start]

    def _behind(self, it: Specific) -> str:
        start = it.start + len(it.shown)
        return self.claim[start : start + 4 * _AROUND]

    def _loose(self, it: Specific, span: Span) -> str | None:
        """Return a number in words beside the same word, as in "number one"."""
        if it.unit:
            return None
        if it.key == "1" and it.noun == "time":
            return next((found[0] for text in self.sentences.values() if (found := _OFTEN.search(text))), None)
        before = _TOKEN.findall(self._before(it).lower())[-1:]
        behind = _TOKEN.findall(self._behind(it).lower())[:1]
        for number, left, right in self.loose:
            if number.value in span and ([left] == before or [right] == behind):
                return number.shown
        return None

    def _pair(self, it: Specific, span: Span) -> str | None:
        """Return two numbers whose sum, difference or product it is, where a word says that it is one."""
        for one, other in combinations(self.numbers, 2):
            if abs(one.sentence - other.sentence) > 1:
                continue
            if is_year(one) or is_year(other):
                is_fitting = self._is_span_of_years(one, other, it, span)
            else:
                is_fitting = any(
                    look(one, other, it, span)
                    for look in (self._is_sum_or_difference, self._is_product, self._is_quotient, self._is_area)
                )
            if is_fitting:
                return f"{one.shown} and {other.shown}"
        for factor in self.factors:
            for of in self.numbers:
                if abs(factor.sentence - of.sentence) <= 1 and any(
                    _is_multiple(one, of, it, span) for one in self._changes_by(factor)
                ):
                    return f"{factor.shown} {of.shown}"
        return None

    def _changes_by(self, factor: Number) -> tuple[Number, ...]:
        """Return a factor, what it was before it "doubled", and what "20 % off" and "20 % more" leave."""
        if factor.shown in _FACTORS and factor.value > 1.0:
            return (factor, factor._replace(value=1.0 / factor.value))
        if factor.shown.endswith("percent") and self._is_rest:
            return (factor, factor._replace(value=1.0 - factor.value))
        if not factor.shown.endswith("percent") or not _CHANGE.search(self.sentences[factor.sentence]):
            return (factor,)
        return (factor, *(factor._replace(value=1.0 + sign * factor.value) for sign in (-1, 1)))

    def _rate(self, it: Specific, span: Span) -> str | None:
        """Return the same amount in another period: 30 a month are 360 a year."""
        period = _period(self.claim, it.start + len(it.shown))
        for one in self.numbers if period else ():
            other = self._period_of(one)
            if one.unit != it.unit or not other or other == period:
                continue
            up, down = (_IN_A_PERIOD.get(pair, ()) for pair in ((other, period), (period, other)))
            if any(one.value * ratio in span for ratio in up) or any(one.value / ratio in span for ratio in down):
                return one.shown
        return None

    def _period_of(self, one: Number) -> str:
        if one not in self._periods:
            text = self.sentences[one.sentence]
            self._periods[one] = _period(text, text.find(one.shown) + len(one.shown))
        return self._periods[one]

    def _is_span_of_years(self, one: Number, other: Number, it: Specific, span: Span) -> bool:
        before = self._before(it)
        is_age = not it.unit and (
            _AGED.search(before) is not None
            or (_WAS.search(before) is not None and _OF_AGE.match(self._behind(it)) is not None)
        )
        if not (is_age or it.unit == "year") or not (is_year(one) and is_year(other)):
            return False
        years = abs(one.value - other.value)
        return years in span or (is_age and years - 1.0 in span)  # before the birthday

    def _is_sum_or_difference(self, one: Number, other: Number, it: Specific, span: Span) -> bool:
        is_plain = not one.unit and not other.unit and one.sentence == other.sentence
        # "14 women and 9 men" are 23 members, and no 23 women.
        noun = (_TOKEN.findall(self._behind(it).lower()) or [""])[0]
        are_parts = is_plain and noun not in _TOKEN.findall(self.sentences[one.sentence].lower())
        unit = "" if is_plain and it.unit == "year" and self._are_ages else it.unit
        return any(
            ((self._is_sum or are_parts) and left + right in span)
            or ((self._is_difference or self._is_lead(it)) and left != right and abs(left - right) in span)
            or (_AVERAGE.search(self.claim) is not None and (left + right) / 2.0 in span)
            for left, right in both_in(one, other, unit)
        )

    def _is_lead(self, it: Specific) -> bool:
        """Return whether a number tells by how much somebody won."""
        return self._before(it).endswith("by ") or _LEAD.match(self._behind(it)) is not None

    def _is_product(self, one: Number, other: Number, it: Specific, span: Span) -> bool:
        if self._each.isdisjoint({one.sentence, other.sentence}):
            return False
        return any(
            not factor.unit and factor.value >= 2.0 and _is_multiple(factor, of, it, span)
            for factor, of in ((one, other), (other, one))
        )

    def _is_area(self, one: Number, other: Number, it: Specific, span: Span) -> bool:
        """Return whether a number is the area of two lengths in one sentence."""
        sizes = [unit.size for unit in units().get(it.unit, ()) if unit.dimension == "area"]
        sides = [
            [number.value * unit.size for unit in units().get(number.unit, ()) if unit.dimension == "length"]
            for number in (one, other)
        ]
        return one.sentence == other.sentence and any(
            a * b / size in span for size in sizes for a in sides[0] for b in sides[1]
        )

    def _is_quotient(self, one: Number, other: Number, it: Specific, span: Span) -> bool:
        rate = it.rate or _period(self.claim, it.start)
        if rate and any(
            part.unit == rate
            and part.value > 0.0
            and any(value / part.value in span for value in values_in(of, it.unit))
            for part, of in ((one, other), (other, one))
            if of.unit != rate
        ):
            return True
        is_each = _EACH.search(self.claim) or _AVERAGE.search(self.claim)
        counted = {self._nouns.get((part.sentence, part.shown), "") for part in (one, other)} - {""}
        if not is_each and counted.isdisjoint(_of_one(self.claim)):
            return False
        return any(
            not part.unit and part.value >= 2.0 and not is_year(of)
            and any(value / part.value in span for value in values_in(of, it.unit))
            for part, of in ((one, other), (other, one))
        )  # fmt: skip

    def _between_times(self, it: Specific, span: Span) -> str | None:
        """Return two times that are so far apart."""
        if not any(unit.dimension == "time" for unit in units().get(it.unit, ())):
            return None
        for one, other in combinations(self.times, 2):
            apart = other.value - one.value
            lengths = {abs(apart), apart % _DAY}  # the later one may be of the next day
            if any(
                value in span for length in lengths for value in values_in(Number(length, "minute", ""), it.unit)
            ):
                return f"{one.shown} {other.shown}"
        return None

    def _between_dates(self, it: Specific, span: Span) -> str | None:
        """Return two dates, or two months or weekdays, that are so far apart. Both ends may count."""
        if not any(unit.dimension == "time" for unit in units().get(it.unit, ())):
            return None
        for (place, one, has_year), (other_place, other, _) in combinations(self.dates, 2):
            if abs(place - other_place) > 1:
                continue
            days = abs((other - one).days) if has_year else (other - one).days % 365
            lengths = [Number(float(days + more), "day", "") for more in (-1, 0, 1)[it.unit in {"day", "hour"} :]]
            months = abs(12 * (other.year - one.year) + other.month - one.month)
            if one.day == other.day and it.unit in {"month", "year"}:
                lengths.append(Number(float(months), "month", ""))
            if any(value in span for length in lengths for value in values_in(length, it.unit)):
                return f"{one.day} {other.day}"
        for (place, month), (other_place, later) in combinations(self.months, 2):
            length = Number(float(abs(later - month)), "month", "")
            if abs(place - other_place) <= 1 and any(value in span for value in values_in(length, it.unit)):
                return f"{abs(later - month)} months"
        for (place, kind, one_at), (other_place, other_kind, other_at) in combinations(self.named, 2):
            apart = (other_at - one_at) % len(_CALENDAR[kind])
            if (
                place == other_place
                and kind == other_kind == it.unit
                and apart
                and self._n_named[place, kind] == 2
                and {apart, apart + 1} & {int(value) for value in (span.low, span.high)}
            ):
                return _CALENDAR[kind][one_at].capitalize()
        return self._days_a_week(it, span)

    def _days_a_week(self, it: Specific, span: Span) -> str | None:
        """Return the weekdays that a sentence lists, or those that are left: "closed on Sundays"."""
        if it.unit != "day" or _period(self.claim, it.start) != "week":
            return None
        for (place, kind), n in self._n_named.items():
            is_denied = _CLOSED.search(self.sentences[place]) is not None
            if kind == "day" and (is_denied or n != 2) and float(7 - n if is_denied else n) in span:
                return "day"
        return None

    def shifted(self, it: Specific) -> str | None:
        """Return the time, date, month or weekday, and the length, that one of the claim is apart from it."""
        look = {"time": self._time_after, "date": self._date_after, "month": self._named_after,
                "weekday": self._named_after}.get(it.kind)  # fmt: skip
        return look(it) if look is not None else None

    def _lengths(self, *names: str) -> list[Number]:
        """Return the lengths of time in some units."""
        return [one for one in (*self.numbers, *self.single) if one.unit in names]

    def _year_after(self, it: Specific, span: Span) -> str | None:
        """Return the year and the length, or the age, that a year is apart from it."""
        if it.unit or not is_year(Number(span.low, "", "")) or span.low != span.high:
            return None
        lengths = [(one, values_in(one, "year")[0]) for one in self._lengths("month", "year", "decade", "century")]
        lengths += [(one, one.value) for one in self.numbers if not one.unit and self._is_age(one)]
        for one in self.numbers:
            for length, years in lengths if is_year(one) else ():
                apart = span.low - one.value
                if not length.unit or _BACK.search(self.sentences[length.sentence]):
                    apart = abs(apart)  # else a length begins at a year
                if abs(one.sentence - length.sentence) <= 1 and apart in {
                    round(years, 6),
                    years + (not length.unit),
                }:
                    return f"{one.shown} and {length.shown}"
        return None

    def _is_age(self, one: Number) -> bool:
        text = self.sentences[one.sentence]
        start = max(0, text.find(one.shown))
        is_told = _WAS.search(text[:start]) and _OF_AGE.match(text, start + len(one.shown))
        return one.value < _OLDEST and bool(is_told or _AGED.search(text[:start]))

    def _time_after(self, it: Specific) -> str | None:
        hour, _, minutes = it.key.partition(":")
        at = 60.0 * int(hour) + int(minutes)
        is_open = it.shown[0] != "0" and int(hour) < 12  # "6:30" may be in the evening
        for one in self.times:
            for length in self._lengths("hour", "minute"):
                for sign in (1.0, -1.0):
                    apart = one.value + sign * values_in(length, "minute")[0] - at
                    if abs(one.sentence - length.sentence) <= 1 and (
                        apart % _DAY == 0.0 or (is_open and apart % (_DAY / 2.0) == 0.0)
                    ):
                        return f"{one.shown} and {length.shown}"
        return None

    def _date_after(self, it: Specific) -> str | None:
        day = _day_of(it)
        if day is None:
            return None
        is_last = (day + dt.timedelta(1)).day == 1
        if is_last and any(found[1].lower() == MONTHS[day.month - 1] for found in _MONTH_END.finditer(self._text)):
            return it.shown
        years = {one.value for one in self.numbers}
        for place, one, has_year in self.dates:
            if (has_year and not it.unit) or (it.unit and not has_year and float(it.unit) in years):
                ours = _in_year(day, one.year)
            elif has_year == bool(it.unit):
                ours = day
            else:
                continue
            if ours == one and not has_year:
                return it.shown
            is_same_day = (one.month, one.day) == (ours.month, ours.day)
            if is_same_day and it.unit in {n.shown for n in self.numbers} and _YEARLY.search(self.sentences[place]):
                return one.strftime("%d %B")
            apart = (ours - one).days
            lengths = [n for n in self._lengths("day", "week", "fortnight") if abs(n.sentence - place) <= 1]
            days = {values_in(n, "day")[0] for n in lengths} | ({1.0} if _NEXT_DAY.search(self._text) else set())
            if abs(apart) in days or abs(apart) + 1 in days:
                return one.strftime("%d %B")
            months = 12 * (ours.year - one.year) + ours.month - one.month
            is_full = abs(ours.day - one.day) <= 1
            if not is_full and (ours + dt.timedelta(1)).day == one.day:  # the last day before
                is_full, months = True, months + 1
            lengths = [n for n in self._lengths("month", "year") if abs(n.sentence - place) <= 1]
            if is_full and any(abs(months) == round(values_in(n, "month")[0]) for n in lengths):
                return one.strftime("%d %B")
        return None

    def _named_after(self, it: Specific) -> str | None:
        """Return the month or weekday that one is some months or days apart from."""
        kind = "month" if it.kind == "month" else "day"
        names = _CALENDAR[kind]
        at, n = names.index(it.key), len(names)
        apart = {round(one.value) % n for one in self._lengths(kind) if one.value < 100.0}
        apart |= {1} if kind == "day" and _NEXT_DAY.search(self._text) else set()
        later = apart | ({1} if kind == "day" and self._is_past_midnight else set())
        for _, other_kind, other in self.named:
            if other_kind == kind and ((at - other) % n in later or (other - at) % n in apart):
                return names[other].capitalize()
        return None

    @cached_property
    def _is_past_midnight(self) -> bool:
        """Return whether a length from a time of the texts ends on the next day."""
        lengths = [values_in(one, "minute")[0] for one in self._lengths("hour", "minute")]
        return any(one.value + length >= _DAY for one in self.times for length in lengths)

    @cached_property
    def _text(self) -> str:
        return " ".join([self.claim, *self.sentences.values()])

    @cached_property
    def _said_often(self) -> dict[int, list[_Often]]:
        return {place: _frequencies(text) for place, text in self.sentences.items()}

    @cached_property
    def _claimed_often(self) -> list[_Often]:
        return _frequencies(self.claim[:LONGEST])

    def _often(self, it: Specific, span: Span) -> str | None:
        """Return how often something is, in other words: "twice a year", "every six months"."""
        end = it.start + len(it.shown)
        own = next((often for often in self._claimed_often if often.start <= it.start < often.end), None)
        period = "" if own else _period(self.claim, end)
        days = _DAYS.get(period, 0.0)
        for place, text in self.sentences.items():
            if period == "day" and float(sum(one.sentence == place for one in self.times)) in span:
                return "day"
            for often in self._said_often[place]:
                if own is not None and abs(own.a_day / often.a_day - 1.0) <= _LARGEST_PERIOD_ERROR:
                    return text[often.start : often.end]
                amounts = [
                    1.0,
                    *(
                        one.value
                        for one in self.numbers
                        if one.sentence == place
                        and one.unit == it.unit
                        and not often.start <= text.find(one.shown) < often.end
                    ),
                ]
                if days and any(amount * often.a_day * days in span for amount in amounts):
                    return text[often.start : often.end]
        return None

    def _total(self, it: Specific, span: Span) -> str | None:
        """Return the three or more numbers of one sentence, or of neighbours, that it is the sum of."""
        noun = (stems(self._behind(it)) or [""])[0]
        for place in self.sentences:
            nouns = {its for (at, _), its in self._nouns.items() if at == place}
            # "12 men and 8 women" are 20 people; "14 won, 6 drawn and 10 lost matches" are 30 matches
            are_parts = noun not in nouns or len(nouns) == 1
            for last in (place, place + 1, place + 2):
                its = [one for one in self.numbers if place <= one.sentence <= last and not is_year(one)]
                values = [value for one in its for value in values_in(one, it.unit)]
                is_told = self._is_sum or self._is_mean or (are_parts and last == place)
                if (
                    is_told
                    and len(values) > 2
                    and (math.fsum(values) in span or (self._is_mean and math.fsum(values) / len(values) in span))
                ):
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
            if one.unit == "percent" and self._is_rest and 100.0 - one.value in span:
                return one.shown
        for one, other in combinations(self.numbers, 2):
            small, large = sorted((one, other))
            if small.unit == large.unit != "percent" and large.value > 0 and not is_year(large):
                shares = [100.0 * small.value / large.value]
                if small.value > 0 and self._is_difference:
                    shares += [100.0 * (large.value - small.value) / of.value for of in (small, large)]
                if abs(one.sentence - other.sentence) <= 1 and any(share in rounded for share in shares):
                    return f"{small.shown} of {large.shown}"
        return None

    def _counts_a_list(self, it: Specific) -> bool:
        """Return whether a number counts a list: the one behind it, one of lines, or one in a near sentence."""
        if it.unit or not it.key.isdigit() or not 1 < int(it.key) <= LONGEST_LIST:
            return False
        size = int(it.key)
        own = len(_MEMBER_END.split(_listed_behind(self._behind(it))))
        if (own > 1 and size in {own, own - 1}) or size in self.list_sizes:
            return True
        if any(
            float(last) - float(first) + 1.0 == size
            for text in self.sentences.values()
            for first, last in _RANGE.findall(text)
        ):
            return True
        noun = (stems(self._behind(it)) or [""])[0]
        return any(noun not in _enumerations(text).get(size, {noun}) for text in self.sentences.values())

    def _times_other(
        self, it: Specific, span: Span, others: Sequence[Specific]
    ) -> tuple[str, tuple[Specific, ...]] | None:
        """Return what "two boxes have 24 bottles" takes from "each box has 12 bottles"."""
        for other in others:
            factor = value_of(other.key) if other.kind == "number" else None
            if other is it or factor is None or not 1.0 < factor <= 1000.0:
                continue
            for one in self.numbers:
                is_rate = not other.unit or self._period_of(one) == other.unit
                if is_rate and _is_multiple(Number(factor, "", ""), one, it, span):
                    return one.shown, (other,)
        return None


def _is_multiple(factor: Number, of: Number, it: Specific, span: Span) -> bool:
    """Return whether a number is another one some times. Years and percentages are not multiplied."""
    if of.unit == "percent" or is_year(of):
        return False
    return any(factor.value * value in span for value in values_in(of, it.unit))


def sizes_of_lists(text: str) -> set[int]:
    r"""Return how many lines each list of a text has.

    Example:
        >>> sorted(sizes_of_lists("You need:\n- a form\n- a photo\n\nThen:\n1. go\n2. wait\n3. pay"))
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


def _enumerations(text: str) -> dict[int, set[str]]:
    """Return how many members the enumerations of a sentence have, each with its members' own nouns.

    "A pool, a sauna and a bar" are three rooms, and no three pools.

    Example:
        >>> {size: sorted(nouns) for size, nouns in _enumerations("We ship to Norway, Sweden and Finland.").items()}
        {3: ['finland', 'norway', 'sweden']}
    """
    found: dict[int, set[str]] = {}
    for segment in _SEGMENT.split(text):
        for last in _LAST_OF_LIST.finditer(segment):
            members = segment[: last.start()].split(",")
            nouns = found.setdefault(len(members) + 1, set())
            nouns.update(stem for member in members for stem in stems(member)[-1:])
            nouns.update(stems(segment[last.end() :]))
            counts = [_COUNT.search(member) for member in (*members, segment[last.end() :])]
            if len(members) > 1 and any(counts):
                size = sum(int(count[1]) if count else 1 for count in counts)
                found.setdefault(size, set()).update(nouns)
    for listed in _COLON_LIST.finditer(text):
        members = [member for member in _MEMBER_END.split(listed[1]) if member.strip()]
        if len(members) > 1:
            found.setdefault(len(members), set()).update(stem for member in members for stem in stems(member)[-1:])
    return found


def _of_one(text: str) -> set[str]:
    """Return the nouns, stemmed, of which a text tells what one has: "an egg costs"."""
    return {term for found in _ONE.findall(text) for term in stems(found)[:1]}


def _period(text: str, start: int) -> str:
    """Return the period of a rate: the first one behind it, else one before it."""
    found = _PERIOD.search(text, start, start + 40) or _PERIOD.search(text)
    if found is None:
        return ""
    name = (found[1] or found[2]).lower()
    return _BY_NAME.get(name, name)


class _Often(NamedTuple):
    """How often something is, and where it is said."""

    a_day: float
    start: int
    end: int


_UNITS_OF_TIME = "minute|hour|day|week|fortnight|month|quarter|year|decade"
_OFTEN_SAID = re.compile(  # of at most 2,000 characters: a sentence
    rf"\b(?P<times>\d+|once|twice) (?:times? )?(?:an?|per|each|every|in an?) (?P<of>{_UNITS_OF_TIME})\b|"
    rf"\b(?:every|each) (?:(?P<every>\d+(?:\.\d+)?) )?(?P<unit>{_UNITS_OF_TIME})s?\b|"
    r"\b(?P<word>hourly|daily|nightly|weekly|fortnightly|monthly|quarterly|yearly|annual(?:ly)?|biennial(?:ly)?|"
    r"biannual(?:ly)?)\b",
    re.IGNORECASE,
)
_DAYS = {
    "minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "week": 7.0, "fortnight": 14.0, "month": 365.25 / 12,
    "quarter": 365.25 / 4, "year": 365.25, "decade": 3652.5, "hourly": 1 / 24, "daily": 1.0, "nightly": 1.0,
    "weekly": 7.0, "fortnightly": 14.0, "monthly": 365.25 / 12, "quarterly": 365.25 / 4, "yearly": 365.25,
    "annual": 365.25, "biennial": 730.5, "biannual": 365.25 / 2,
}  # fmt: skip
_LARGEST_PERIOD_ERROR = 0.1  # "twice a month" is every 2 weeks


def _frequencies(text: str) -> list[_Often]:
    """Return how often things are, as a text says it.

    Example:
        >>> [round(it.a_day * 365.25) for it in _frequencies("Quarterly, not every 6 month or 2 times a week.")]
        [4, 2, 104]
    """
    found = []
    for it in _OFTEN_SAID.finditer(text):
        word = (it["word"] or it["of"] or it["unit"]).lower()
        days = _DAYS[word if word in _DAYS else word.removesuffix("ly")]
        times = {"once": 1.0, "twice": 2.0}.get((it["times"] or "1").lower()) or float(it["times"] or 1)
        if times and float(it["every"] or 1):
            found.append(_Often(times / (days * float(it["every"] or 1)), it.start(), it.end()))
    return found


def _in_year(day: dt.date, year: int) -> dt.date:
    """Return a day in another year; the 29th of February may be the 28th."""
    return day.replace(year=year, day=min(day.day, 28)) if day.month == 2 else day.replace(year=year)


def _day_of(it: Specific) -> dt.date | None:
    """Return a date; one without a year is in a year of its own."""
    if "/" in it.key:
        return None
    day, month = it.key.split()
    try:
        return dt.date(int(it.unit) if it.unit else 2001, MONTHS.index(month) + 1, int(day))
    except ValueError:
        return None  # the 31st of April


def _listed_behind(text: str) -> str:
    """Return the enumeration behind a number and its noun."""
    mark = _LIST_BEGIN.search(text)
    return _LIST_END.split(text[mark.end() :])[0] if mark else ""
