"""Human labels on the scales 0/1, 0 to 1 and 1 to 5."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from ragtrace.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Form = Literal["0/1", "0-1", "1-5"]
FORMS = "labels are 0 or 1, 0 to 1, or grades from 1 to 5"
Ratings = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class LabelForm:
    """The scale of all labels of a file.

    Attributes:
        name: ``0/1``, ``0-1`` or ``1-5``.
        low: the lowest possible label.
        high: the highest.
        high_from: labels at or above it are of the high class: .5, and 3 of 1 to 5.
    """

    name: Form
    low: float
    high: float
    high_from: float

    def turned(self, ratings: Ratings) -> Ratings:
        """Return ratings on the reversed scale.

        Example:
            >>> FORM_OF["1-5"].turned((5.0, None, 4.0))
            (1.0, None, 2.0)
        """
        return tuple(None if rating is None else self.low + self.high - rating for rating in ratings)


FORM_OF: dict[Form, LabelForm] = {
    "0/1": LabelForm("0/1", 0.0, 1.0, 0.5),
    "0-1": LabelForm("0-1", 0.0, 1.0, 0.5),
    "1-5": LabelForm("1-5", 1.0, 5.0, 3.0),
}


def ratings_in(value: object) -> Ratings:
    """Return the ratings of one record, one a rater; empty without a label.

    Args:
        value: a number, true or false, null, or a list of these in the order of the raters.

    Raises:
        InputError: something else, or a number outside every scale.

    Example:
        >>> ratings_in(True), ratings_in([4, None, 5]), ratings_in(None), ratings_in([None])
        ((1.0,), (4.0, None, 5.0), (), ())
        >>> ratings_in(7)
        Traceback (most recent call last):
        ...
        ragtrace.errors.InputError: the label 7 is out of range; labels are 0 or 1, 0 to 1, or grades from 1 to 5
    """
    listed = value if isinstance(value, list) else [value]
    ratings = tuple(_rating(item) for item in listed)
    return ratings if any(rating is not None for rating in ratings) else ()


def form_of(labels: Mapping[int, Ratings]) -> LabelForm:
    """Return the scale that all labels share, by line number.

    Raises:
        InputError: a label below 1 beside others above 1; the message begins with its line.

    Example:
        >>> form_of({1: (1.0,), 2: (0.0,)}).name, form_of({1: (1.0,), 2: (4.0,)}).name
        ('0/1', '1-5')
    """
    flat = [(rating, line) for line, ratings in labels.items() for rating in ratings if rating is not None]
    highest, above = max(flat, default=(0.0, 0))
    if highest <= 1.0:
        return FORM_OF["0/1" if all(rating in {0.0, 1.0} for rating, _ in flat) else "0-1"]
    lowest, line = min(flat)
    if lowest < 1.0:
        raise InputError(
            f"{line}: the label {lowest:g} does not fit the label {highest:g} of line {above}; on one scale {FORMS}"
        )
    return FORM_OF["1-5"]


def consensus(ratings: Iterable[float | None]) -> float:
    """Return the mean of the present ratings, of which there is at least one.

    Example:
        >>> consensus((4.0, None, 5.0))
        4.5
    """
    return fmean(rating for rating in ratings if rating is not None)


def _rating(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float):
        kind = (
            "a text" if isinstance(value, str) else "a list in a list" if isinstance(value, list) else "an object"
        )
        raise InputError(f"the label is {kind}; {FORMS}")
    if not 0 <= value <= 5:
        shown = f"{value:g}" if abs(value) < 1e9 else "of many digits"
        raise InputError(f"the label {shown} is out of range; {FORMS}")
    return float(value)
