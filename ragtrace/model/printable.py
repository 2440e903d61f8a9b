"""Text that a terminal or a picture shows as it is: control characters are escaped."""

from __future__ import annotations

import re

# C0, DEL and C1, ends of lines, and marks that turn the direction of what follows; half of a surrogate pair has no
# form in UTF-8. Joiners stay: Persian and emoji are written with them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, *, keep: str = "") -> str:
    r"""Return a text with an escape for each character that could move a cursor, change colours or end a line.

    Args:
        text: of anybody's.
        keep: control characters that stay.

    Example:
        >>> print(printable("red\x1b[31m\n"), printable("two\nlines", keep="\n").count("\n"))
        red\x1b[31m\n 1
    """
    if text.isprintable():  # nearly always, and twenty times as quick
        return text
    return _UNSAFE.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def is_printable(text: str) -> bool:
    r"""Tell whether `printable` leaves a text as it is.

    Example:
        >>> is_printable("faithfulness"), is_printable("\x1b[2J")
        (True, False)
    """
    return _UNSAFE.search(text) is None


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun, which gets an ``s`` unless the count is 1.

    Example:
        >>> count_text(1, "row"), count_text(0, "row")
        ('1 row', '0 rows')
    """
    return f"{count} {noun}{'s' * (count != 1)}"


def _escape(char: str) -> str:
    return repr(char)[1:-1]
