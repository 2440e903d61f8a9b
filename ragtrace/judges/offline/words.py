"""Reads English sentences, terms, numbers and dates, and the language."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ragtrace.judges.offline.tables import table
from ragtrace.judges.offline.tables import words as word_list

_STOP = frozenset(
    (
        "a an the and or but if of to in on at by for with from as is are was were be been being it its "
        "this that these those he she they him his her their we you i me my your our us do does did not "
        "no nor so than then there here which who whom whose what when where why how can could may might "
        "must shall should will would have has had having about into over under up down out off again "
        "more most some any each other such only own same too very just also am "
    ).split()
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|\d[\d.,]*\d")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+|\n+")
_LIST_MARK = re.compile(r"^(?:[-*•#>]+|\d{1,3}[.)])\s+")
_SUFFIXES = ("ingly", "edly", "ing", "ied", "ies", "ed", "es", "ly", "s")

_SAMPLE = 4000
_FEWEST_WORDS = 3
_MOST_ENGLISH = 0.5
_LETTERS = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_LETTERS_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|[\w.-]{1,64}@[\w.-]+")

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
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}

_MONTH = rf"(?:{'|'.join(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_SHORT_MONTH = re.compile(
    r"\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?:\.(?! ?[A-Z][a-z])|\b(?= ?\d{4}\b)|"
    r"(?:(?<=[-–/]...)|(?<=\b(?:in|of|to|by) ...)|(?<=\band ...)|(?<=\b(?:from|late) ...)|(?<=\b(?:since|until|early) ...))"
    r"\b(?! [A-Z]))"
)
_DAY_NAME = r"(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)"
_SHORT_DAY = re.compile(
    rf"(?:\b(?=Tue|Wed|Thu|Fri)|(?<=[-–/&])|(?<=[-–/&,] )|(?<=\b(?:on|to|by) )|(?<=\band )|(?<=\bfrom )|"
    rf"(?<=\b(?:until|every) )|(?<!\w)(?={_DAY_NAME}\.?(?:,? ?\d|\s?[-–/&]\s?{_DAY_NAME}\b)))"
    rf"({_DAY_NAME})\b(?!'| [A-Z][a-z])(?:\.(?=\s*[a-z,;)]))?"
)
_ISO = re.compile(r"\b(\d{4})([-/.])(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?:T[\d:.Z+-]+)?\b")
_DOTTED = re.compile(r"(?<![\w.])(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.((?:19|20)\d{2})\b(?!\.\d)")
_SLASHED = re.compile(r"(?<![\w/.])(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?![\w/])")
_MONTH_DAY = re.compile(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (\d{{4}})\b)?", re.IGNORECASE)
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?:(?: of)? |-)({_MONTH})\b\.?(?:(?:,? |-)(\d{{4}})\b)?", re.IGNORECASE
)
_TIME = re.compile(r"\b(\d{1,2})(?:[:.](\d{2}))? ?([ap])\.?m\b\.?", re.IGNORECASE)
_CLOCK = re.compile(
    r"\b(?P<noon>noon|midday)\b|\b(?P<midnight>midnight)\b|\b(?P<hour>\d{1,2})(?: o'clock\b|h(?P<minutes>\d{2})\b)|"
    r"\b(?P<part>half|quarter) (?P<way>past|to) (?P<of>\d{1,2})\b",
    re.IGNORECASE,
)
_SCALE = "hundred|thousand|million|billion|trillion"
_BASE = rf"(?:(?:{_TENS})(?:[- ](?:{_ONES}))?|{_TEENS}|{_ONES}|zero)"
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
ORDINALS = {word: place for place, word in enumerate(_ORDINALS, 1)}
_FRACTION = r"(?:hal(?:f|ves)|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|fold)\b"


@cache
def _words_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"\b(?:a dozen|dozen|{_BASE}(?: (?:{_SCALE})\b(?:(?: and)? {_BASE}\b)?)*|an? (?:{_SCALE}))\b"
        rf"(?![ -]{{1,3}}{_FRACTION}|-(?:{'|'.join(_ORDINALS[:9])}))",
        re.IGNORECASE,
    )


@cache
def _ordinal_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"\b(?:(?P<digits>\d{{1,3}})(?:st|nd|rd|th)|(?P<tens>{_TENS})-(?P<ones>{'|'.join(_ORDINALS[:9])})|"
        rf"(?P<word>{'|'.join(_ORDINALS)})(?=[ -]centur))\b(?P<century>[ -]centur(?:y|ies)\b)?",
        re.IGNORECASE,
    )


_HALVES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bhalf (?:a )?dozen\b", re.IGNORECASE), "6"),
    (re.compile(rf"\bhalf an? (?=(?:{_SCALE})\b)", re.IGNORECASE), "0.5 "),
    (re.compile(r"\bhalf an? (?=(?:hour|minute|year|day|mile|kilo\w*|lit(?:re|er)|pound)\b)", re.IGNORECASE), "0.5 "),
    (re.compile(r"\b(?:a |one )?quarter of an (?=hour\b)", re.IGNORECASE), "0.25 "),
    (re.compile(r"\b(?:three|3) quarters of an (?=hour\b)", re.IGNORECASE), "0.75 "),
    (re.compile(r"\b(?:an?|one|1) (hour|minute|year|month|week|day|mile|million|billion) and a half\b", re.IGNORECASE),
     r"1.5 \1"),
    (re.compile(r"\bone and a half\b", re.IGNORECASE), "1.5"),
    (re.compile(r"\b(\d+) and a half\b"), r"\1.5"),
    (re.compile(r"\b(\d+) ?½"), r"\1.5"),
)  # fmt: skip
_OFTEN = re.compile(
    r"\b(once|twice|thrice)(?= (?:an?|per|every|each|daily|weekly|monthly|yearly)\b)", re.IGNORECASE
)
_ONE = re.compile(
    r"\bone[ -](?=(?:euro|dollar|pound|hour|minute|week|month|year|kilo\w*|met(?:re|er)|mile|lit(?:re|er)|gram|"
    r"gigabyte|megabyte|percent|tablet|person)\b)",
    re.IGNORECASE,
)
_ORDINAL = rf"(?:\d{{1,2}}(?:st|nd|rd|th)|{'|'.join(_ORDINALS)})"
_TWO_CENTURIES = re.compile(rf"\b({_ORDINAL}) (and|or|to) (?:the )?(?={_ORDINAL}[ -]centur)", re.IGNORECASE)
_DECADES = {"sixties": "60", "seventies": "70", "eighties": "80", "nineties": "90"}
_SHORT_DECADE = re.compile(
    rf"\b(the |early |late |mid-)(?:({'|'.join(_DECADES)})|([3-9]0)s)\b|(?<!\w)'([1-9]0)s\b", re.IGNORECASE
)
_ROMAN = re.compile(
    r"\b([A-Z][a-z]+|type|phase|stage|part|level|class|chapter|grade|title) "
    r"(I{2,3}|IV|VI{1,3}|IX|X{1,2}(?:I{1,3}|IV|VI{0,3}|IX))\b"
)
_QUARTER = re.compile(r"\bQ([1-4])\b")
_INITIALS = re.compile(r"\b[A-Z]\.(?:[A-Z]\.)+")
_AMOUNT = r"\d{1,3}(?:[,  \u2019']\d{3})+(?:\.\d+)?(?!\d)|\d+(?:[.,]\d+)*"


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


@cache
def _number_pattern() -> re.Pattern[str]:
    spelled = "|".join(sorted(map(re.escape, _unit_names()), key=len, reverse=True))
    return re.compile(
        rf"(?P<before>(?:US\$|[€$£¥₹]|\b(?:EUR|USD|GBP|CHF|NOK|SEK|DKK|INR|JPY)\b) ?)?(?<![\w.])(?P<amount>{_AMOUNT})"
        rf"(?:(?P<short>(?-i:[kKMB])(?![\w])| ?(?:bn|mn)\b)|[ -]?(?P<scale>{_SCALE})\b)?"
        rf"(?:[ -]?(?P<unit>{spelled})(?![\w°²³]))?",
        re.IGNORECASE,
    )


_DIGIT = re.compile(r"\d")
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_SHORT = {"k": 1000, "m": 10**6, "b": 10**9, "mn": 10**6, "bn": 10**9}
_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(?:can't|cannot|can ?not)\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"\bshan't\b", re.IGNORECASE), "shall not"),
    (re.compile(r"(?<=[a-z])(?: n't|n't)\b", re.IGNORECASE), " not"),
    (
        re.compile(r"\b(?:at least|no (?:less|fewer) than|not (?:less|fewer) than|a minimum of)\b", re.IGNORECASE),
        "minimum",
    ),
    (
        re.compile(r"\b(?:at most|no more than|not more than|not exceeding|a maximum of)\b", re.IGNORECASE),
        "maximum",
    ),
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text without list marks.

    Lines end sentences too; a blank text gives none.

    Example:
        >>> sentences("It opened in 2010. It is in Oslo.")
        ['It opened in 2010.', 'It is in Oslo.']
    """
    parts = (_LIST_MARK.sub("", part.strip().replace("**", "")) for part in _SENTENCE_END.split(text) if part)
    return [part for part in parts if part.strip()]


def stems(text: str) -> list[str]:
    """Return terms in order, without stop words and common endings.

    Example:
        >>> stems("The refunds are paid within days.")
        ['refund', 'paid', 'within', 'day']
    """
    found = []
    for written in _WORD.findall(text.lower()):
        if written in _STOP:
            continue
        word = written.replace("’", "'").removesuffix("'s")
        if len(word) <= 5:
            found.append(word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word)
            continue
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= 3:
                word = word[: -len(suffix)] + ("y" if suffix in {"ied", "ies"} else "")
                break
        found.append(word.removesuffix("e"))
    return found


def normalise(text: str) -> str:
    """Return a text with numbers, units and dates in one notation.

    Contractions are spelled out, and names keep their case.

    Example:
        >>> normalise("Twelve boxes cost €1,000; the trail isn't 5 km.")
        '12 boxes cost 1000 euro; the trail is not 5 kilometre.'
        >>> normalise("On March 3, 2024 it fell by 20 %."), normalise("Since 2024-03-03.")
        ('On 3 March 2024 it fell by 20 percent.', 'Since 3 March 2024.')
    """
    text = text.replace("\u2019", "'").replace("\u00a0", " ").replace("\u202f", " ")
    text = _INITIALS.sub(lambda found: found[0].replace(".", ""), text)
    if has_digits(text):
        text = _ISO.sub(lambda found: _date(found[4], MONTHS[int(found[3]) - 1], found[1]), text)
        text = _DOTTED.sub(lambda found: _date(found[1], MONTHS[int(found[2]) - 1], found[3]), text)
        text = _SLASHED.sub(_slashed, text)
        text = _MONTH_DAY.sub(lambda found: _date(found[2], found[1], found[3]), text)
        text = _DAY_MONTH.sub(lambda found: _date(found[1], found[2], found[3]), text)
        text = _TIME.sub(_time, text)
    text = _SHORT_MONTH.sub(lambda found: _month(found[1]), text)
    text = _SHORT_DAY.sub(lambda found: _weekday(found[1]), text)
    text = _QUARTER.sub(lambda found: f"{_ORDINALS[int(found[1]) - 1]} quarter", text)
    lowered = text.lower()
    if "centur" in lowered:
        text = _TWO_CENTURIES.sub(r"\1 century \2 ", text)
    text = _ordinal_pattern().sub(_ordinal, text)
    text = _SHORT_DECADE.sub(
        lambda found: f"{found[1] or ''}19{_DECADES.get((found[2] or '').lower()) or found[3] or found[4]}s", text
    )
    text = _ROMAN.sub(lambda found: f"{found[1]} {_roman(found[2])}", text)
    if "half" in lowered or "quarter" in lowered or "½" in text:
        for pattern, instead in _HALVES[:6]:
            text = pattern.sub(instead, text)
    text = _words_pattern().sub(_in_digits, text)
    text = _CLOCK.sub(_clock, text)
    for pattern, instead in _HALVES[6:] if "half" in lowered or "½" in text else ():
        text = pattern.sub(instead, text)
    text = _OFTEN.sub(lambda found: f"{_TIMES[found[1].lower()]} times", text)
    text = _ONE.sub("1 ", text)
    if has_digits(text):
        text = _number_pattern().sub(_number, text)
    for pattern, instead in _PHRASES:
        text = pattern.sub(instead, text)
    return text


def _date(day: str, month: str, year: str | None) -> str:
    return f"{int(day)} {_month(month)}" + (f" {year}" if year else "")


def _slashed(found: re.Match[str]) -> str:
    """Return a date with slashes in the one notation, where only one order of day and month is possible."""
    first, second, year = int(found[1]), int(found[2]), found[3]
    if not (0 < first <= 31 and 0 < second <= 31) or (first > 12) == (second > 12):
        return found[0]
    day, month = (first, second) if first > 12 else (second, first)
    century = "" if len(year) == 4 else "20" if int(year) < 70 else "19"
    return _date(str(day), MONTHS[month - 1], century + year)


def _month(short: str) -> str:
    return next(name for name in MONTHS if name.startswith(short[:3].lower())).capitalize()


def _weekday(short: str) -> str:
    return next(name for name in WEEKDAYS if name.startswith(short[:3].lower())).capitalize()


def _time(found: re.Match[str]) -> str:
    """Return a time in 24 hours. Hours before ten have a zero, since "6:30" may be in the evening."""
    hour = int(found[1]) % 12 + (12 if found[3].lower() == "p" else 0)
    return f"{hour:02}:{found[2] or '00'}"


def _clock(found: re.Match[str]) -> str:
    """Return noon, midnight, "9 o'clock" and "half past 9" as a time."""
    if found["noon"] or found["midnight"]:
        return "12:00" if found["noon"] else "00:00"
    if found["hour"]:
        return f"{int(found['hour'])}:{found['minutes'] or '00'}"
    minutes = 30 if found["part"].lower() == "half" else 15
    of = int(found["of"])
    return f"{of}:{minutes}" if found["way"].lower() == "past" else f"{of - 1 or 12}:{60 - minutes}"


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


def has_digits(text: str) -> bool:
    """Return whether a text has a digit."""
    return _DIGIT.search(text) is not None


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


def _number(found: re.Match[str]) -> str:
    value = found["amount"]
    if re.fullmatch(r"\d{1,3}(?:[,  \u2019']\d{3})+(?:\.\d+)?", value):
        value = re.sub(r"[,  \u2019']", "", value)
    elif value.count(",") == 1 and "." not in value:
        value = value.replace(",", ".")  # a decimal comma
    is_one = "," not in value and value.count(".") <= 1  # else a list without spaces, a version, or 1.234,5
    if is_one:
        value = _trimmed(value)
    factor = _SHORT.get((found["short"] or "").strip().lower(), 1) * _SCALES.get((found["scale"] or "").lower(), 1)
    if is_one and factor != 1:
        value = _trimmed(f"{float(value) * factor:.6f}")
    unit = (found["unit"] or "").lower()
    before = (found["before"] or "").strip().lower().removeprefix("us")
    currency = _unit_names().get(before or "usd", "") if found["before"] else ""
    if currency and unit == "m":  # as in "$8.2m"
        value, unit = _trimmed(f"{float(value) * 10**6:.6f}") if is_one else value, ""
    name = _unit_names().get(unit, "")
    extra = f" {name}" if currency and name not in {"", currency} else ""
    name = currency or name
    return value + (f" {name}" if name else "") + extra


def _trimmed(value: str) -> str:
    """Return a decimal without needless zeros. "3.10" stays, as it may be a version."""
    whole, _, part = value.partition(".")
    return whole if not part.strip("0") else value.rstrip("0") if len(part) > 2 else value


def is_english(text: str) -> bool | None:
    """Return whether a text is English.

    None where too little of it tells (a name, a number, a list of names).

    Example:
        >>> is_english("The lab is in Oslo."), is_english("Das Labor ist in Oslo."), is_english("Oslo, 2010")
        (True, False, None)
    """
    sample = _ADDRESS.sub(" ", text[:_SAMPLE])
    letters = len(_LETTERS.findall(sample))
    if not letters:
        return None
    if len(_LATIN.findall(sample)) < _MOST_ENGLISH * letters:
        return False
    english, foreign, shared = word_list("english"), word_list("others"), word_list("shared")
    said = _LETTERS_WORD.findall(sample.lower().replace("\u2019", "'"))
    ours = sum(1.0 - 0.5 * (word in shared) for word in said if word in english)
    others = 0 if foreign.isdisjoint(said) else sum(word.lower() in foreign for word in _uttered(sample))
    has_own = any(word in english and word not in shared for word in said)
    if ours > others or (has_own and ours == others):
        return True
    if others >= 2 or (others and sum(word.islower() for word in _LETTERS_WORD.findall(sample)) >= _FEWEST_WORDS):
        return False
    return False if _looks_foreign(sample, said, ours) else None


def _uttered(sample: str) -> list[str]:
    """Return the words that are no part of a name.

    These are the first word, small words, and words before a small one.
    """
    said = _LETTERS_WORD.findall(sample.replace("\u2019", "'"))
    if sample.isupper():
        return said
    pairs = zip(said, [*said[1:], ""], strict=True)
    return [*said[:1], *(word for word, behind in [*pairs][1:] if word.islower() or behind.islower())]


def _looks_foreign(sample: str, said: list[str], ours: float) -> bool:
    """Return whether a text has foreign letters and no English function word."""
    if ours >= 1.0 or len(said) < _FEWEST_WORDS:
        return False
    small = [word for word in _LETTERS_WORD.findall(sample) if word.islower()]
    return sum(not word.isascii() for word in small) * 4 >= max(len(said), 4)


def is_readable(answer: str, contexts: list[str]) -> bool:
    """Return whether answer and contexts are probably English.

    Of contexts in several languages the English ones must be at least half of the text with a known language.

    Example:
        >>> is_readable("It costs twelve euros.", ["Der Tisch kostet zwölf Euro und ist aus Holz."])
        False
    """
    if is_english(answer) is False:
        return False
    sizes = {True: 0, False: 0}
    for text in contexts:
        found = is_english(text)
        if found is not None:
            sizes[found] += min(len(text), _SAMPLE)
    return sizes[False] <= sizes[True]
