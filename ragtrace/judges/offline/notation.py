"""Brings numbers, units, dates and times of a text into one notation."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.tables import table
from ragtrace.judges.offline.words import stem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ONES = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
NUMBER_WORDS = {word: value for value, word in enumerate(f"zero|{_ONES}|{_TEENS}".split("|"))}
NUMBER_WORDS |= {word: 10 * (i + 2) for i, word in enumerate(_TENS.split("|"))}
_SCALES = {
    "hundred": 100, "thousand": 1000, "lakh": 10**5, "million": 10**6, "crore": 10**7, "billion": 10**9,
    "trillion": 10**12,
}  # fmt: skip
_SHORT_MONTHS = ("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec")
_SHORT_DAYS = ("mon", "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "sun")
_SCALE = "hundred|thousand|lakh|million|crore|billion|trillion"
_BASE = rf"(?:(?:{_TENS})(?:[- ](?:{_ONES}))?|{_TEENS}|{_ONES}|zero)"
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
ORDINALS = {word: place for place, word in enumerate(_ORDINALS, 1)}
_FRACTION = r"(?:hal(?:f|ves)|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|fold)\b"


_DECADES = {"sixties": "60", "seventies": "70", "eighties": "80", "nineties": "90"}
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_SHORT = {
    "k": 1000, "m": 10**6, "b": 10**9, "mn": 10**6, "mln": 10**6, "mio": 10**6, "bn": 10**9, "mrd": 10**9,
    "tn": 10**12,
}  # fmt: skip
_AMOUNT = (
    r"\d{1,3}(?:[ '\u2019]\d{3})++(?:[.,]\d++)?(?!\d)|\d{1,2}(?:,\d{2}(?!\d))++,\d{3}(?:\.\d++)?(?!\d)|"
    r"\d++(?:[.,]\d++)*+"
)
_GROUPS = re.compile(  # groups of one mark, and another mark before the decimals
    r"\d{1,3}(?:([ '\u2019])\d{3})(?:\1\d{3})*+(?:[.,](\d++))?|\d{1,2}(?:,\d{2}(?!\d))++,\d{3}(?:\.(\d++))?|"
    r"\d{1,3}(?:,\d{3})++\.(\d++)|\d{1,3}(?:\.\d{3})++,(\d++)|\d{1,3}(?:,\d{3}){2,}+|\d{1,3}(?:\.\d{3}){2,}+"
)
_OPEN = re.compile(r"([1-9]\d{0,2})([.,])(\d{3})")  # thousands or a decimal
_DECIMAL_COMMA = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"(?<![\w.,])(?:\d++,(?:\d{1,2}|\d{4,})|\d{1,3}(?:[. ']\d{3})++,\d++|0,\d++)(?![\w,]|\.\d)(?!, ?\d)"
)
_DECIMAL_POINT = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"(?<![\w.,])(?:\d++\.(?:\d{1,2}|\d{4,})|\d{1,3}(?:[, ']\d{3})++\.\d++|0\.\d++)(?![\w.]|,\d)"
)
_MARKS = re.compile(r"[ ,.'\u2019]")
_BLANKS = str.maketrans({"\u2019": "'", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2007": " "})
_LETTERS = "ghlmptLVW"  # units of one letter, in the case in which they are written
_MARK_END = re.compile(r"^[a-z]{1,3}(?=[$€£¥])|\.$")
_MONEY = frozenset(
    [
        "dollar",
        "euro",
        "pound",
        "yen",
        "franc",
        "krone",
        "krona",
        "rupee",
        "zloty",
        "koruna",
        "forint",
        "yuan",
        "real",
        "lira",
        "rand",
        "won",
        "rouble",
        "shekel",
        "peso",
        "ringgit",
        "baht",
        "dirham",
    ]
)
_PARTS = {
    "half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10,
}  # fmt: skip
MOST_CHARS = 8_000  # of a sentence in one notation, which may be longer than as written
_TOKEN = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_ANY_DIGIT = "#"  # stands for a digit among the words of a text


class Unit(NamedTuple):
    """A unit's place in one dimension, with its size in the dimension's base."""

    dimension: str
    size: float


@cache
def units() -> dict[str, tuple[Unit, ...]]:
    """Return the dimensions of each unit. Pounds and cents have several.

    Example:
        >>> units()["kilometre"], len(units()["cent"])
        ((Unit(dimension='length', size=1000.0),), 2)
    """
    found: dict[str, tuple[Unit, ...]] = {}
    for dimension, lines in table("units.txt").items():
        for name, size, *_ in map(str.split, lines):
            found[name] = (*found.get(name, ()), Unit(dimension, float(size)))
    return found


@cache
def _unit_names() -> dict[str, str]:
    """Return the unit that each spelling means."""
    return {
        spelling.replace("_", " "): line.split()[0]
        for lines in table("units.txt").values()
        for line in lines
        for spelling in line.split()[2:]
    }


def normalise(text: str) -> str:
    """Return a text with numbers, units and dates in one notation.

    Contractions are spelled out, and names keep their case.

    Example:
        >>> normalise("Twelve boxes cost €1,000; the trail isn't 5 km.")
        '12 boxes cost 1000 euro; the trail is not 5 kilometre.'
        >>> normalise("On March 3, 2024 it fell by 20 %."), normalise("Since 2024-03-03.")
        ('On 3 March 2024 it fell by 20 percent.', 'Since 3 March 2024.')
    """
    text = text if text.isascii() else text.translate(_BLANKS)
    said = set(_TOKEN.findall(text.lower()))
    if _DIGIT.search(text):
        said.update([_beside_digits(token) for token in said if not token.isalpha() and not token.isdigit()])
        said.add(_ANY_DIGIT)
    elif not said.isdisjoint(_counting()):
        said.add(_ANY_DIGIT)
    comma = _decimal_mark(text) if _ANY_DIGIT in said and ("," in text or "." in text) else None
    for place in sorted({place for word in said & _STEPS_WITH.keys() for place in _STEPS_WITH[word]}):
        step = _STEPS[place]
        if not step.marks or any(mark in text for mark in step.marks):
            instead = (lambda it: _number(it, comma)) if step.instead is _number else step.instead
            text = step.pattern.sub(instead, text)[:MOST_CHARS]
    return text


def _beside_digits(token: str) -> str:
    """Return the letters of a word with digits, as they stand among the words of a text: "#st" for "21st"."""
    return _ANY_DIGIT + "".join(filter(str.isalpha, token))


def _decimal_mark(text: str) -> str | None:
    """Return the mark before the decimals of a text's numbers; None where they have none, or both marks."""
    has_comma, has_point = _DECIMAL_COMMA.search(text), _DECIMAL_POINT.search(text)
    return None if bool(has_comma) == bool(has_point) else "," if has_comma else "."


def readings(written: str) -> tuple[str, ...]:
    """Return the values that a number may have in the notations of different countries, the likelier one first.

    Example:
        >>> readings("1.250"), readings("1,250"), readings("1.5"), readings("1.2.3")
        (('1.25', '1250'), ('1250', '1.25'), ('1.5',), ('1.2.3',))
    """
    if (found := _OPEN.fullmatch(written)) is None:
        return (written,)
    both = (_trimmed(f"{found[1]}.{found[3]}"), f"{found[1]}{found[3]}")
    return both if found[2] == "." else both[::-1]


@cache
def _counting() -> frozenset[str]:
    return frozenset(
        (*NUMBER_WORDS, *_SCALES, *_TIMES, "dozen", "half", "quarter", "quarters", "other", "second", "past")
    )


class _Step(NamedTuple):
    """A replacement, for the texts that have one of some marks, where some are named."""

    marks: str | tuple[str, ...]
    pattern: re.Pattern[str]
    instead: str | Callable[[re.Match[str]], str]


class _Row(NamedTuple):
    """A replacement as it is written down, for the texts that have one of some words."""

    words: frozenset[str]
    marks: str | tuple[str, ...]
    pattern: str
    instead: str | Callable[[re.Match[str]], str]
    flags: re.RegexFlag


def _step(
    words: str | Iterable[str],
    pattern: str,
    instead: str | Callable[[re.Match[str]], str],
    *,
    marks: str | tuple[str, ...] = "",
    keeps_case: bool = False,
) -> _Row:
    its = words.split() if isinstance(words, str) else words
    return _Row(frozenset(its), marks, pattern, instead, re.NOFLAG if keeps_case else re.IGNORECASE)


def _dates_and_times() -> tuple[_Row, ...]:
    month = rf"(?:{'|'.join((*MONTHS, *_SHORT_MONTHS))})"
    short_month = "|".join(word.capitalize() for word in _SHORT_MONTHS)
    day = rf"(?:{'|'.join(word.capitalize() for word in reversed(_SHORT_DAYS))})"
    end = r"(?:st|nd|rd|th)?"
    return (
        _step("b c d e f g h j k l m n o p q r u v w x y z", r"\b[A-Z]\.(?:[A-Z]\.)+",
              lambda it: it[0].replace(".", ""), keeps_case=True),  # "U.S."
        _step("#", r"\b(\d{4})([-/.])(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?:T[\d:.Z+-]+)?\b",
              lambda it: _date(it[4], MONTHS[int(it[3]) - 1], it[1]), marks="-/."),
        _step("#", r"(?<![\w.])(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.((?:19|20)\d{2})\b(?!\.\d)",
              lambda it: _date(it[1], MONTHS[int(it[2]) - 1], it[3]), marks="."),
        _step("#", r"(?<![\w/.])(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?![\w/])", _slashed, marks="/"),
        _step((*MONTHS, *_SHORT_MONTHS),
              rf"\b(?P<first>\d{{1,2}}){end}\.?(?P<between> ?[-\u2013] ?| to | and | until | till | through )"
              rf"(?P<last>\d{{1,2}}){end}\.?(?: of)? (?P<month>{month})\b\.?(?:,? (?P<year>\d{{4}})\b)?", _days_to),
        _step((*MONTHS, *_SHORT_MONTHS),
              rf"\b(?P<days>\d{{1,2}}{end}(?:, \d{{1,2}}{end}){{1,6}}),? "
              rf"(?P<between>and|or|&) (?P<last>\d{{1,2}}){end}"
              rf"(?: of)? (?P<month>{month})\b", _listed_days),
        _step((*MONTHS, *_SHORT_MONTHS), rf"\b(?P<month>{month})\.? (?P<first>\d{{1,2}}){end}"
              rf"(?P<between> ?[-\u2013] ?| to | and | through )(?P<last>\d{{1,2}}){end}\b(?![:.,]\d)"
              r"(?:,? (?P<year>\d{4})\b)?", _days_to),
        _step((*MONTHS, *_SHORT_MONTHS), rf"\b({month})\.? (\d{{1,2}}){end}\b(?!:)(?:,? (\d{{4}})\b)?",
              lambda it: _date(it[2], it[1], it[3])),
        _step((*MONTHS, *_SHORT_MONTHS),
              rf"\b(\d{{1,2}})(?:{end}|\.)(?:(?: of)? |-)({month})\b\.?(?:(?:,? |-)(\d{{4}})\b)?",
              lambda it: _date(it[1], it[2], it[3])),
        _step("m am pm #m #am #pm",
              r"(?<![\w.,:])(?P<hour>\d{1,2})(?P<minutes>[:.]\d{2})?(?P<between> ?[-\u2013] ?| to )"
              r"(?P<last>\d{1,2})(?P<of_last>[:.]\d{2})? ?(?P<half>[ap])\.?m\b\.?", _times_to),
        _step("a p am pm #a #p #am #pm", r"\b(\d{1,2})(?:[:.](\d{2}))? ?([ap])\.?m\b\.?", _time),
        _step(_SHORT_MONTHS,
              rf"\b({short_month})(?:\.(?! ?[A-Z][a-z])|\b(?= ?\d{{4}}\b)|"
              rf"(?=\s?[-\u2013/]\s?(?:{short_month}|[A-Z][a-z]{{2,8}})\b)|"
              r"(?:(?<=[-\u2013/]...)|"
              r"(?<=\b(?:in|of|to|by) ...)|(?<=\band ...)|(?<=\b(?:from|late) ...)|"
              r"(?<=\b(?:since|until|early) ...))\b(?! [A-Z]))",
              lambda it: _month(it[1]), keeps_case=True),
        _step(_SHORT_DAYS,
              r"(?:\b(?=Tue|Wed|Thu|Fri)|(?<=[-\u2013/&])|(?<=[-\u2013/&,] )|(?<=\b(?:on|to|by) )|(?<=\band )|"
              rf"(?<=\bfrom )|(?<=\b(?:until|every) )|(?<!\w)(?={day}\.?(?:,? ?\d|\s?[-\u2013/&]\s?{day}\b)))"
              rf"({day})\b(?!'| [A-Z][a-z])(?:\.(?=\s*[a-z,;)]))?",
              lambda it: _weekday(it[1]), keeps_case=True),
        _step(_DECADES.keys() | {f"{tens}0s" for tens in range(1, 10)},
              rf"\b(the |early |late |mid-)(?:({'|'.join(_DECADES)})|([3-9]0)s)\b|(?<!\w)'([1-9]0)s\b",
              lambda it: f"{it[1] or ''}19{_DECADES.get((it[2] or '').lower()) or it[3] or it[4]}s"),
        _step("#", r"(?<![\w.,+/-])(?:\+\d{1,3}|\(\+?\d{1,5}\)|0\d{2,5}|\d{3}(?=[-. ]\d{3}[-. ]\d{4}\b))"
              r"(?:(?:[ /.-]|\) ?| ?\()\d{2,8}){1,6}\)?(?!\w|[.,]\d)", _phone),
        _step("call phone telephone tel dial ring fax hotline line mobile caretaker number",
              r"(?<![\w.,+/-])\d{3}[- ]\d{4}(?![\w/-]|[.,]\d)", _phone),
    )  # fmt: skip


def _ordinals() -> tuple[_Row, ...]:
    ordinal = rf"(?:\d{{1,2}}(?:st|nd|rd|th)|{'|'.join(_ORDINALS)})"
    low = "|".join(_ORDINALS[:9])
    return (
        _step("q1 q2 q3 q4", r"\bQ([1-4])\b", lambda it: f"{_ORDINALS[int(it[1]) - 1]} quarter", keeps_case=True),
        _step("centuries", rf"\b({ordinal}) (and|or|to) (?:the )?(?={ordinal}[ -]centur)", r"\1 century \2 "),
        _step(["#st", "#nd", "#rd", "#th", "century", "centuries", *_TENS.split("|")],
              rf"\b(?:(?P<digits>\d{{1,3}})(?:st|nd|rd|th)|(?P<tens>{_TENS})-(?P<ones>{low})|"
              rf"(?P<word>{'|'.join(_ORDINALS)})(?=[ -]centur))\b(?P<century>[ -]centur(?:y|ies)\b)?", _ordinal),
        _step("ii iii iv vi vii viii ix xi xii xiii xiv xv xvi xvii xviii xix xx xxi xxii xxiii",
              r"\b([A-Z][a-z]+|type|phase|stage|part|level|class|chapter|grade|title|volume|vol\.|act|scene|book) "
              r"(I{2,3}|IV|VI{1,3}|IX|X{1,2}(?:I{1,3}|IV|VI{0,3}|IX))\b",
              lambda it: f"{it[1]} {_roman(it[2])}", keeps_case=True),
    )  # fmt: skip


def _numbers() -> tuple[_Row, ...]:
    names = [name for name in _unit_names() if len(name) > 1 or not name.isalpha()]
    spelled = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    begin = "".join(sorted({re.escape(name[0]) for name in _unit_names()}))  # most numbers have no unit behind them
    length = r"hour|minute|year|month|week|day|mile"
    normal = "|".join(sorted(map(re.escape, units()), key=len, reverse=True))
    money = sorted(
        (it for it, name in _unit_names().items() if name in _currencies() and not it.isalpha()), key=len
    )
    codes = sorted(
        it for it, name in _unit_names().items() if name in _currencies() and it.isalpha() and len(it) == 3
    )
    before = (
        rf"(?:(?-i:[A-Z]{{1,3}})?(?:{'|'.join(map(re.escape, money))})|\b(?-i:{'|'.join(map(str.upper, codes))})|"
        rf"\b(?:kr|Rs|Fr)\b\.?) ?"
    )
    begins = "".join(sorted({re.escape(name[0]) for name in money if not name[0].isalpha()}))
    letters = "".join(sorted({name[0] for name in (*money, "kr", "rs", "fr") if name[0].isalpha()}))
    starts = rf"(?=[\d{begins}]|(?-i:[A-Z\u00d8])|\b[{letters}])"  # most places of a text have none
    part = "half|halves|third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
    few = rf"{_ONES}|ten|[1-9]"
    hour = rf"{_ONES}|ten|eleven|twelve|\d{{1,2}}"
    behind_share = (
        r"as|is|are|was|were|have|has|had|do|does|did|can|will|would|more|less|fewer|off|each|in|on|at|to|went|go|"
        r"goes|came|come|from|than|since|when|if|and|or|but|by|for"
    )
    whole_short = "|".join(
        sorted(
            (name for name in names if name.isalpha() and len(name) > 3 and _unit_names()[name] in _measured()),
            key=len,
            reverse=True,
        )
    )
    whole = rf"{length}|century|decade|percentage point|point|{whole_short}"
    return (
        _step("dozen", r"\bhalf (?:a )?dozen\b", "6"),
        _step([*part.split("|"), *(f"{it}s" for it in part.split("|"))],
              rf"\b(?:(?P<count>an?|{few})[ -])?(?P<part>{part})s?(?: of)? an? (?=(?:{_SCALE}|{whole})\b)",
              _part_of_unit, marks=(" of a", "half a")),
        _step("half quarter",
              rf"(?<!first )(?<!second )(?<!third )(?<!fourth )(?<!last )(?<!and )(?<!and a )\b"
              rf"(?:(?:an?|one) )?(?P<part>half|quarter)[ -]"
              rf"(?=(?:hour|minute|day|century|million|billion|{whole_short})\b)", _part_of_unit),
        _step("#", rf"(?<![\w/.,])(?:(?P<whole>\d{{1,3}})[ -])?(?P<top>[1-9])/(?P<bottom>[2-9])(?![\w/.,])"
              rf"(?(whole)| (?:of an? )?(?=(?:{whole})\b))", _mixed, marks="/"),
        _step("half", rf"\b(?:an?|one|1) (?:(?:good|full|whole) )?({length}|million|billion) and a half\b",
              r"1.5 \1"),
        _step("half", r"\bone and a half\b", "1.5"),
        _step([*_TEENS.split("|"), "twenty"],
              rf"\b(?P<hundreds>fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty)[ -]"
              rf"(?P<tens>(?:{_TENS})(?:[ -](?:{_ONES}))?|{_TEENS}|oh[ -](?:{_ONES}))\b(?![ -][a-z]+s\b)",
              _year_in_words),
        _step("#", r"(?<=\b(?:in|of|by|to) )'(\d\d)\b(?!')", lambda it: _century(it[1], 30), marks="'"),
        _step("half", rf"\b(at|by|until|till|before|after|around|about|since) half ({hour})\b(?! (?:of|an?)\b)",
              lambda it: f"{it[1]} {_in_figures(it[2])}:30"),
        _step("half quarter five ten twenty past",
              rf"\b(?:(at|by|until|till|before|after|around|about|since) )?(?:an? )?"
              rf"(half|quarter|five|ten|twenty(?:[ -]five)?)(?: minutes?)? (past|to) ({hour})\b", _part_of_hour),
        _step("#", r"\b24:00\b", "00:00", marks=":"),
        _step("morning afternoon evening night",
              r"(?<![\w.,:])(\d{1,2})(?::(\d{2}))?(?: o'clock)? "
              r"(?:in the (morning|afternoon|evening)|(at night))\b",
              _part_of_day),
        _step("#", r"(?<![\w/-])(1[5-9]|20)(\d\d)([/\u2013-])(\d\d)(?![\w/-])", _season, marks="/-\u2013"),
        _step("#", r"(?<![\w'])([3-8])' ?(\d{1,2})(?:\"|'')", r"\1 foot \2 inches", marks="'"),
        _step("foot feet ft", r"\b([3-8]) (?:foot|feet|ft) (\d{1,2})(?=[.,;:)]|$| (?:tall|high|long|wide))",
              r"\1 foot \2 inches"),
        _step("every", rf"\bevery (?:other|second) (?=(?:{length}|{'|'.join(WEEKDAYS)})s?\b)", "every 2 "),
        _step("once", r"\bonce (?=every (?:\d|two|three|four|five|six|other|ten)\b)", ""),
        _step([*part.split("|"), *(f"{it}s" for it in part.split("|"))],
              rf"(?<!first )(?<!second )(?<!last )(?<!other )(?<!latter )\b"
              rf"(?:(?P<count>an?|{few})[ -])?(?P<part>half)"
              rf"(?= (?:of|the|all|its|their|our|your|these|those)\b)|"
              rf"\b(?P<count2>an?|{few})[ -](?P<part2>{part})s?"
              rf"(?= of )|\b(?P<count3>{few})[ -](?P<part3>{part})s\b|"
              rf"\b(?P<count4>an?|one)[ -](?P<part4>third|quarter|fifth|tenth)(?= (?:{behind_share})\b|[.,;:)]|$)",
              _fraction),
        _step([*NUMBER_WORDS, *_SCALES, "dozen"],
              rf"\b(?:a dozen|dozen|{_BASE}(?: (?:{_SCALE})\b(?:(?: and)? {_BASE}\b)?)*|an? (?:{_SCALE}))\b"
              rf"(?![ -]{{1,3}}{_FRACTION}|-(?:{'|'.join(_ORDINALS[:9])}))", _in_digits),
        _step("one", r"\bone (?=(?:in|out of) (?:every )?\d)", "1 "),
        _step([*part.split("|"), "quarters", "thirds"],
              rf"\b(?P<whole>\d+) (?:(?P<length>{length})s? )?and (?P<count>an?|{few})[ -]"
              r"(?P<part>half|third|quarter)s?\b(?! of\b)",
              _mixed),
        _step("#", r"(?:\b(?P<whole>\d+) ?)?(?P<sign>[½¼¾])(?: of an? )?", _mixed, marks="\u00bd\u00bc\u00be"),
        _step("noon midday", r"\b(?:noon|midday)\b", "12:00"),
        _step("midnight", r"\bmidnight\b", "00:00"),
        _step("clock", r"\b(\d{1,2}) o'clock\b", lambda it: f"{int(it[1])}:00"),
        _step("below", r"\b(\d++(?:\.\d++)?) degrees? (?:(?:celsius|centigrade) )?below (?:0|zero|freezing)\b",
              r"-\1 degree"),
        _step(_TIMES, r"\b(once|twice|thrice)(?= (?:an?|per|every|each|daily|weekly|monthly|yearly)\b)",
              lambda it: f"{_TIMES[it[1].lower()]} times"),
        _step("one",
              r"\bone[ -](?=(?:euro|dollar|pound|hour|minute|week|month|year|kilo\w*|met(?:re|er)|mile|gram|"
              r"percent|lit(?:re|er)|gigabyte|megabyte|tablet|person)\b)", "1 "),
        _step("#", r"(?<![\w/.])24/7(?![\w/])", "24 hours a day, 7 days a week", marks="/"),
        _step("#", r"(?<=\d)(?:[,.] ?[-\u2013\u2014]{1,2}|:-)(?=\s|$|[€£.,;)])", "",
              marks="-\u2013\u2014"),  # "12,- euros"
        _step("h #h",
              r"(?:\b(at|from|until|till|by|before|after|to|and) )?(?<![\w.,])([01]?\d|2[0-3]) ?h ?([0-5]\d)\b"
              r"(?: ?m(?:in(?:utes)?)?\b)?", _hours_and_minutes),
        _step("#",
              rf"{starts}(?P<before>{before})?(?<![\w.])(?<!(?-i:[A-Z])-)"
              rf"(?P<amount>{_AMOUNT})(?:(?P<short>(?-i:[kKMB])(?![\w])| ?(?:bn|mn|mln|mio|mrd|tn)\b\.?|"
              rf"(?-i:m)(?= (?:{'|'.join(codes)}|euro|dollar|pound|kr)))|[ -]?(?P<scale>{_SCALE})s?\b)?"
              rf"(?:(?=[ -]?[{begin}])[ -]?(?P<unit>{spelled}|(?-i:[{''.join(sorted(_LETTERS))}]))(?![\w°²³]))?",
              _number),
        _step("#", rf"(?<![\w.,])(?P<first>\d+(?:\.\d+)?) (?P<large>{normal})"
              r"(?:,?(?: and)? (?P<second>\d+(?:\.\d+)?) "
              rf"(?P<small>{normal}|(?<=foot \d )in|(?<=foot \d\d )in)(?![\w°²³/-])| (?P<coins>\d\d)"
              rf"(?![\w.,:%]*\w)(?! (?:{normal})\b))", _composite),
    )  # fmt: skip


def _contractions() -> tuple[_Row, ...]:
    least = r"\b(?:at least|no (?:less|fewer) than|not (?:less|fewer) than|a minimum of)\b"
    most = r"\b(?:at most|no more than|not more than|not exceeding|a maximum of)\b"
    return (
        _step("can cannot", r"\b(?:can't|cannot|can ?not)\b", "can not"),
        _step("won", r"\bwon't\b", "will not"),
        _step("shan", r"\bshan't\b", "shall not"),
        _step("t", r"(?<=[a-z])(?: n't|n't)\b", " not"),
        _step("it that there they we you he she i",
              r"\b(it|that|there|they|we|you|he|she|i)'(?:s|re|ll|ve|d|m)\b", r"\1", marks="'"),
        _step("least less fewer minimum", least, "minimum"),
        _step("most more exceeding maximum", most, "maximum"),
    )  # fmt: skip


def _date(day: str, month: str, year: str | None) -> str:
    return f"{int(day)} {_month(month)}" + (f" {year}" if year else "")


def _slashed(found: re.Match[str]) -> str:
    """Return a date with slashes in the one notation, where only one order of day and month is possible."""
    first, second, year = int(found[1]), int(found[2]), found[3]
    if not (0 < first <= 31 and 0 < second <= 31) or (first > 12) == (second > 12):
        return f"{first}/{second}/{_century(year)}" if 0 < first <= 12 and 0 < second <= 12 else found[0]
    day, month = (first, second) if first > 12 else (second, first)
    return _date(str(day), MONTHS[month - 1], _century(year))


def _century(year: str, first: int = 70) -> str:
    """Return a year of two digits in full: from `first` on it is one of the last century."""
    return year if len(year) == 4 else f"{20 if int(year) < first else 19}{year}"


@cache
def unit_named(word: str) -> str:
    """Return the unit that a word means; "" for another word, and for a single letter."""
    return _unit_names().get(word.lower(), "") if len(word) > 1 or not word.isalpha() else ""


@cache
def unit_nouns(unit: str) -> frozenset[str]:
    """Return the first words, stemmed, of a unit that is written in several: "degree" of "degrees celsius"."""
    return frozenset(
        stem(spelling.split()[0])
        for spelling, name in _unit_names().items()
        if name == unit and " " in spelling and spelling.split()[0] not in {"us", "per"}
    )


def _month(short: str) -> str:
    return next(name for name in MONTHS if name.startswith(short[:3].lower())).capitalize()


def _weekday(short: str) -> str:
    return next(name for name in WEEKDAYS if name.startswith(short[:3].lower())).capitalize()


def _time(found: re.Match[str]) -> str:
    """Return a time in 24 hours. Hours before ten have a zero, since "6:30" may be in the evening."""
    hour = int(found[1]) % 12 + (12 if found[3].lower() == "p" else 0)
    return f"{hour:02}:{found[2] or '00'}"


def _times_to(found: re.Match[str]) -> str:
    """Return "7-10am" as two times."""
    hour, last, half = int(found["hour"]) % 12, int(found["last"]) % 12, found["half"].lower()
    if int(found["hour"]) > 12 or int(found["last"]) > 12:
        return found[0]
    first_half = half if hour <= last else "a" if half == "p" else "p"
    times = (
        f"{at + (12 if of == 'p' else 0):02}:{(minutes or ':00')[1:]}"
        for at, of, minutes in ((hour, first_half, found["minutes"]), (last, half, found["of_last"]))
    )
    return found["between"].join(times)


_DIGITS = re.compile(r"\d+")


def _listed_days(found: re.Match[str]) -> str:
    """Return "2, 3 and 4 June" as dates."""
    month = _month(found["month"])
    days = _DIGITS.findall(found["days"])
    return f"{', '.join(f'{int(day)} {month}' for day in days)} {found['between']} {int(found['last'])} {month}"


def _part_of_day(found: re.Match[str]) -> str:
    """Return "5 in the afternoon" as a time."""
    hour, minutes, part = int(found[1]), found[2] or "00", (found[3] or found[4]).lower()
    if not 0 < hour <= 12:
        return found[0]
    is_late = part in {"afternoon", "evening"} or (part == "at night" and 5 < hour < 12)
    return f"{hour % 12 + (12 if is_late else 0):02}:{minutes}"


def _season(found: re.Match[str]) -> str:
    """Return "2019/20" with both years in full; "2005-06" may be a month."""
    first, last = int(found[2]), int(found[4])
    is_month = found[3] == "-" and last <= 12
    return found[0] if is_month or last <= first else f"{found[1]}{found[2]}{found[3]}{found[1]}{found[4]}"


def _hours_and_minutes(found: re.Match[str]) -> str:
    """Return "1h30" as a length, and "at 17h30" as a time."""
    if found[1]:
        return f"{found[1]} {int(found[2])}:{found[3]}"
    return f"{60 * int(found[2]) + int(found[3])} minute"


def _part_of_hour(found: re.Match[str]) -> str:
    """Return "half past 9", "quarter to 9" and "at ten to nine" as a time. "Ten to nine" alone may be a range."""
    part, is_past, hour = found[2].lower(), found[3].lower() == "past", int(_in_figures(found[4]))
    before = f"{found[1]} " if found[1] else ""
    if (not is_past and (part == "half" or (part != "quarter" and not before))) or not 0 < hour <= 24:
        return found[0]
    minutes = {"half": 30, "quarter": 15}.get(part) or sum(
        NUMBER_WORDS[it] for it in part.replace("-", " ").split()
    )
    return before + (f"{hour}:{minutes:02}" if is_past else f"{hour - 1 or 12}:{60 - minutes:02}")


def _in_figures(word: str) -> str:
    return str(NUMBER_WORDS.get(word.lower(), word))


def _ordinal(found: re.Match[str]) -> str:
    """Return an ordinal as a word up to the twentieth, and as digits above it and before "century"."""
    if found["word"]:
        place = ORDINALS[found["word"].lower()]
    elif found["digits"]:
        place = int(found["digits"])
    else:
        place = NUMBER_WORDS[found["tens"].lower()] + ORDINALS[found["ones"].lower()]
    last = "th" if 10 < place % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    if found["century"]:
        return f"{place}{last} {found['century'][1:]}"
    return _ORDINALS[place - 1] if 0 < place <= len(_ORDINALS) else f"{place}{last}"


def _roman(numeral: str) -> int:
    """Return the value of a Roman numeral.

    Example:
        >>> _roman("XIV"), _roman("VIII")
        (14, 8)
    """
    values = [{"I": 1, "V": 5, "X": 10}[letter] for letter in numeral]
    return sum(-one if one < behind else one for one, behind in zip(values, [*values[1:], 0], strict=True))


def _in_digits(found: re.Match[str]) -> str:
    """Return a number in words as digits. "One" alone is mostly a pronoun and stays."""
    words = found[0].lower().replace("-", " ").split()
    if words == ["one"]:
        return found[0]
    total, current = 0, 0
    for word in words:
        if word in NUMBER_WORDS:
            current += NUMBER_WORDS[word]
        elif word == "dozen":
            current = max(current, 1) * 12
        elif word == "hundred":
            current = max(current, 1) * 100
        elif word in _SCALES:
            total += max(current, 1) * _SCALES[word]
            current = 0
    return str(total + current)


def _number(found: re.Match[str], comma: str | None = None) -> str:
    """Return a number with its unit; with both readings where the text leaves them open."""
    written: str = found["amount"]
    if written.isdigit() and found.lastgroup == "amount" and not found["before"]:
        return written
    unit = found["unit"] or ""
    name = _unit_names().get(unit.lower(), "")
    before = _unit_names().get(_MARK_END.sub("", (found["before"] or "").strip().lower()), "")
    scale = (found["short"] or found["scale"] or "").strip(" .").lower()
    is_money = bool(before) or name in _currencies()
    if before and name == "metre" and unit == "m":  # as in "$8.2m"
        scale, name = "m", ""
    value, is_one = _value(written, comma, is_measured=bool(name or scale) and not is_money)
    factor = _SHORT.get(scale, 1) * _SCALES.get(scale.removesuffix("s"), 1)
    if is_one and factor != 1:
        value = _trimmed(f"{float(readings(value)[0]) * factor:.6f}")
    extra = f" {name}" if before and name not in {"", before} else ""
    name = before or name
    return value + (f" {name}" if name else "") + extra


def _value(written: str, comma: str | None, *, is_measured: bool) -> tuple[str, bool]:
    """Return the value of a number as written, and whether it is one: "1.2.3" and "1,2,3" are none.

    What may be thousands or a decimal stays as it is: "1.250", and "1,250 kg".
    """
    if grouped := _GROUPS.fullmatch(written):
        part = next((group for group in grouped.groups()[1:] if group), "")
        whole = _MARKS.sub("", written[: len(written) - len(part)])
        return _trimmed(f"{whole}.{part}" if part else whole), True
    if found := _OPEN.fullmatch(written):
        mark = found[2]
        if comma is not None:
            part = found[3].rstrip("0") or "0"
            decimal = f"{found[1]}.{part}0" if len(part) == 3 else _trimmed(f"{found[1]}.{part}")  # else open again
            return (decimal if mark == comma else f"{found[1]}{found[3]}"), True
        return (f"{found[1]}{found[3]}" if mark == "," and not is_measured else written), True
    if written.count(",") == 1 and "." not in written:
        written = written.replace(",", ".")  # a decimal comma
    is_one = "," not in written and written.count(".") <= 1
    return (_trimmed(written) if is_one else written), is_one


def _composite(found: re.Match[str]) -> str:
    """Return "3 hour 20 minute" in the smaller unit, and "3 pound 50" in the larger one."""
    large = found["large"]
    if found["coins"]:
        return f"{found['first']}.{found['coins']} {large}" if large in _currencies() else found[0]
    small = "inch" if found["small"] == "in" else found["small"]
    first, second = float(found["first"]), float(found["second"])
    for of in units().get(large, ()):
        for part in units().get(small, ()):
            ratio = of.size / part.size
            if of.dimension != part.dimension or abs(ratio - round(ratio)) > 1e-6 or not 1 < second + 1 <= ratio:
                continue
            if large in _currencies():
                return f"{_trimmed(f'{first + second / ratio:.2f}')} {large}"
            return f"{_trimmed(f'{first * ratio + second:.3f}')} {small}"
    return found[0]


def _fraction(found: re.Match[str]) -> str:
    """Return "three quarters of" as a percentage, in whole numbers where it has no end."""
    count = found["count"] or found["count2"] or found["count3"] or found["count4"] or "a"
    part = found["part"] or found["part2"] or found["part3"] or found["part4"]
    share = 100.0 * _parts(count, part)
    if share >= 100.0:
        return found[0]
    return _trimmed(f"{share:.1f}" if (share * 2).is_integer() else f"{share:.0f}") + " percent"


def _parts(count: str, part: str) -> float:
    """Return what some parts of one make: .75 for "three" and "quarters"."""
    count, part = count.lower(), part.lower().removesuffix("s")
    return (1.0 if count in {"a", "an"} else float(NUMBER_WORDS.get(count, 0) or count)) / _PARTS[part]


def _part_of_unit(found: re.Match[str]) -> str:
    """Return "three quarters of a" before a unit as "0.75"."""
    share = _parts(found.groupdict().get("count") or "a", found["part"])
    return f"{_trimmed(f'{share:.3g}')} " if share < 1.0 else found[0]


def _mixed(found: re.Match[str]) -> str:
    """Return "2 and a quarter", "2 1/4" and "2¼" as "2.25"."""
    its = found.groupdict()
    if its.get("sign"):
        share = {"½": 0.5, "¼": 0.25, "¾": 0.75}[found["sign"]]
    elif its.get("top"):
        share = int(found["top"]) / int(found["bottom"])
    else:
        share = _parts(found["count"], found["part"])
    if share >= 1.0:
        return found[0]
    value = _trimmed(f"{int(found['whole'] or 0) + share:.4g}")
    if its.get("length"):
        return f"{value} {found['length']}"
    return value + (" " if found[0].endswith(" ") else "")


def _year_in_words(found: re.Match[str]) -> str:
    """Return "nineteen eighty-seven" as a year."""
    tens = found["tens"].lower().replace("-", " ").split()
    return str(100 * NUMBER_WORDS[found["hundreds"].lower()] + sum(NUMBER_WORDS.get(word, 0) for word in tens))


def _days_to(found: re.Match[str]) -> str:
    """Return "3 to 17 May 2022" as two dates."""
    first, last, month = found["first"], found["last"], found["month"]
    year = f" {found['year']}" if found["year"] else ""
    between = found["between"].strip()
    between = between if between.isalpha() else "to"
    return f"{first} {month}{year} {between} {last} {month}{year}" if int(first) < int(last) <= 31 else found[0]


def _phone(found: re.Match[str]) -> str:
    """Return a phone number as one word."""
    digits = "".join(filter(str.isdigit, found[0]))
    return f"+{digits.lstrip('0')}" if 7 <= len(digits) <= 15 else found[0]


@cache
def _measured() -> frozenset[str]:
    """Return the units of what is measured in parts: lengths, volumes, masses."""
    its = {"length", "volume", "mass", "area", "speed", "power"}
    return frozenset(name for name, found in units().items() if any(one.dimension in its for one in found))


@cache
def _currencies() -> frozenset[str]:
    return frozenset(name for name, its in units().items() if any(one.dimension in _MONEY for one in its))


def _trimmed(value: str) -> str:
    """Return a decimal without needless zeros. "3.10" stays, as it may be a version."""
    whole, _, part = value.partition(".")
    return whole if not part.strip("0") else value.rstrip("0") if len(part) > 2 else value


# Dates first, as "3 May" is no number, and numbers before bounds.
_ROWS = (*_dates_and_times(), *_ordinals(), *_numbers(), *_contractions())
_STEPS = tuple(  # of at most 8,000 characters: a sentence in one notation
    _Step(row.marks, re.compile(row.pattern, row.flags), row.instead) for row in _ROWS
)
_STEPS_WITH = {
    word: [place for place, row in enumerate(_ROWS) if word in row.words] for row in _ROWS for word in row.words
}
