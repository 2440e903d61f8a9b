"""Grades on the scales 1 to 5 and 0 to 3 (UMBRELA)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIVE_OF_THREE = {0: 1, 1: 3, 2: 4, 3: 5}
_FIVE_OF_THREE_STRICT = {**_FIVE_OF_THREE, 1: 2}
_FIVE = frozenset({1, 2, 3, 4, 5})
_THREE_OF_FIVE = {1: 0, 2: 0, 3: 1, 4: 2, 5: 3}
_THREE_OF_FIVE_STRICT = {**_THREE_OF_FIVE, 2: 1}
_STRICT_SCALE = "umbrela_mapped_strict"


def from_umbrela(grade: int, *, strict: bool = False) -> int:
    """Return the 1 to 5 grade of a 0 to 3 grade.

    Relevant stays relevant: 2 and above become 4 and above.

    Args:
        grade: 0 to 3.
        strict: 1 becomes 2 instead of 3, and so counts as harm.

    Raises:
        ValueError: not an integer of 0 to 3.

    Example:
        >>> [from_umbrela(grade) for grade in (0, 1, 2, 3)], from_umbrela(1, strict=True)
        ([1, 3, 4, 5], 2)
    """
    if not is_whole(grade) or grade not in _FIVE_OF_THREE:
        raise ValueError(f"an UMBRELA grade is an integer of 0 to 3, got {grade!r}")
    return (_FIVE_OF_THREE_STRICT if strict else _FIVE_OF_THREE)[grade]


def to_umbrela(grade: int, *, scale: str | None = None) -> int:
    """Return the 0 to 3 grade of a 1 to 5 grade.

    1 and 2 both become 0.

    Args:
        grade: 1 to 5.
        scale: of the grade; on ``umbrela_mapped_strict`` a 2 stands for UMBRELA's 1 and becomes it again.

    Raises:
        ValueError: not an integer of 1 to 5.

    Example:
        >>> [to_umbrela(grade) for grade in (1, 2, 3, 4, 5)], to_umbrela(2, scale="umbrela_mapped_strict")
        ([0, 0, 1, 2, 3], 1)
    """
    if not is_whole(grade) or grade not in _THREE_OF_FIVE:
        raise ValueError(f"a grade is an integer of 1 to 5, got {grade!r}")
    return (_THREE_OF_FIVE_STRICT if scale == _STRICT_SCALE else _THREE_OF_FIVE)[grade]


def gains(grades: Mapping[str, int], *, scale: str | None = None) -> dict[str, int]:
    """Return the 0 to 3 gains of nDCG, by passage id.

    Example:
        >>> gains({"a": 5, "b": 2})
        {'a': 3, 'b': 0}
    """
    return {key: to_umbrela(grade, scale=scale) for key, grade in grades.items()}


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a grade is an integer; True and 4.0 are not.

    Example:
        >>> is_whole(4), is_whole(4.0), is_whole(True)
        (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def are_grades(values: Iterable[object]) -> bool:
    """Return whether all are integers of 1 to 5; True for none.

    Example:
        >>> are_grades([1, 5]), are_grades([0]), are_grades([4.0]), are_grades([])
        (True, False, False, True)
    """
    known = list(values)
    # Two passes in C over 50 grades take 2 µs; a loop with isinstance takes 6.
    if set(map(type, known)) <= {int}:
        return _FIVE.issuperset(known)
    return False
