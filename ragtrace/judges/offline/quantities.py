"""Compares quantities: by precision, by unit, and by the words before a number."""

from __future__ import annotations

import re
from bisect import bisect_left
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.notation import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.judges.offline.notation import Unit
    from ragtrace.judges.offline.specifics import Specific

LARGEST_ERROR = 0.05  # of a number that is rounded without a word like "about"
LARGEST_CONVERTED_ERROR = 0.025  # "460 mm" for 18 inches
LARGEST_ROUGH_ERROR = 0.125
LARGEST_EXCESS = 0.25  # of what "over 1,000" stands for
MONTH_ERROR = 0.015  # 30 days for a month, 52 weeks for a year
_CALENDAR_UNITS = frozenset({"month", "year", "decade", "century"})
_BEFORE = 24  # characters before a number that may say how exact it is
_ABOUT = re.compile(  # of at most 2,000 characters: a sentence
    r"(?:\b(?:about|around|approximately|approx|roughly|circa|ca|some|close to|estimated|near)\b\.?|[~≈])\s*$",
    re.IGNORECASE,
)
_OVER = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:over|more than|above|exceed(?:s|ed|ing)?|upwards of|minimum)\s*$", re.IGNORECASE
)
_UNDER = re.compile(  # of at most 2,000 characters: a sentence
    r"\b(?:under|less than|fewer than|below|nearly|almost|not quite|"
    r"(?<!add )(?<!adds )(?<!added )up to|maximum)\s*$",
    re.IGNORECASE,
)


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


def span_of(it: Specific, claim: str, *, is_exact: bool = False, is_converted: bool = False) -> Span | None:
    """Return the values that a number may stand for, by its digits and the word before it.

    Args:
        it: the number.
        claim: the sentence that it stands in.
        is_exact: whether a whole number is meant to the unit.
        is_converted: whether it is compared with another unit, so that its last zeros are rounded.

    Example:
        >>> from ragtrace.judges.offline.specifics import measures_of
        >>> claim = "It has about 1200000 seats, 33 percent of them in 1998."
        >>> [span_of(it, claim) for it in measures_of(claim)]
        [Span(low=1150000.0, high=1250000.0), Span(low=32.5, high=33.5), Span(low=1998.0, high=1998.0)]
    """
    value = value_of(it.key)
    if value is None or not isfinite(value):  # a number of over 308 digits says no amount
        return None
    whole, _, part = it.key.partition(".")
    zeros = 0 if part.strip("0") else len(whole) - len(whole.rstrip("0"))
    step = 10.0 ** -len(part) if part.strip("0") else 10.0**zeros
    before = claim[max(0, it.start - _BEFORE) : it.start]
    if _OVER.search(before):
        return Span(value, value + min(step, LARGEST_EXCESS * value))
    if _UNDER.search(before):
        return Span(value - min(step, LARGEST_ROUGH_ERROR * value), value)
    if _ABOUT.search(before):
        error = min(step / 2.0, LARGEST_ROUGH_ERROR * value)
    elif not part.strip("0") and (is_exact or is_year(Number(value, it.unit, ""))):
        error = 0.0
    else:
        error = min((1.0 if 0 < zeros < 3 else step) / 2.0, LARGEST_ERROR * value)
        if is_converted:
            error = max(error, min(step / 2.0, LARGEST_CONVERTED_ERROR * value))
    return Span(value - error, value + error)


def without_hedge(text: str) -> str:
    """Return a text without the "about" or "over" at its end."""
    for hedge in (_ABOUT, _OVER, _UNDER):
        text = hedge.sub("", text)
    return text


def value_of(key: str) -> float | None:
    """Return a number's value; None for a version or a list like "1,2,3"."""
    return float(key) if "," not in key and key.count(".") < 2 else None


def within(numbers: list[Number], span: Span) -> Iterator[Number]:
    """Yield the sorted numbers that lie in a span."""
    slack = 1e-9 * abs(span.high)
    for i in range(bisect_left(numbers, (span.low - slack,)), len(numbers)):
        if numbers[i].value > span.high + slack:
            return
        yield numbers[i]


def in_base(value: float, name: str, unit: Unit) -> float:
    """Return a value of a unit in the base of its dimension."""
    if name == "fahrenheit":
        return (value - 32.0) / 1.8
    return value * unit.size


def values_in(number: Number, unit: str) -> list[float]:
    """Return the values of a number in a unit, one for each dimension that both are of."""
    if number.unit == unit or not unit:
        return [number.value]
    ours = {one.dimension: one.size for one in units().get(unit, ())}
    return [
        number.value * one.size / ours[one.dimension]
        for one in units().get(number.unit, ())
        if one.dimension in ours
    ]


def both_in(one: Number, other: Number, unit: str) -> list[tuple[float, float]]:
    """Return the values of two numbers of one kind in a unit."""
    if bool(one.unit) != bool(other.unit) or (not unit and one.unit != other.unit):
        return []
    return list(zip(values_in(one, unit), values_in(other, unit), strict=False))


def is_calendar(unit: str) -> bool:
    """Return whether a unit of time has no fixed length."""
    return unit in _CALENDAR_UNITS


def is_year(number: Number) -> bool:
    """Return whether a number is probably a year."""
    return not number.unit and number.value.is_integer() and 1000 <= number.value <= 2100
