"""Reads the tables of words and phrases once a process."""

from __future__ import annotations

import hashlib
from functools import cache

from ragtrace.capture.off_loop import off_loop


@cache
@off_loop
def table(name: str) -> dict[str, list[str]]:
    """Return the lines under each heading of a table.

    Blank lines and comments are left out.

    Example:
        >>> "German" in table("refusals.txt"), "the" in words("english")
        (True, True)
    """
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    from pathlib import Path  # noqa: PLC0415 -- 5 ms that the import is spared

    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            lines.append(line[4:])
        elif line and not line.startswith("#"):
            lines = found.setdefault(line.removesuffix(":"), [])
    return found


@cache
def words(heading: str) -> frozenset[str]:
    """Return the words under one heading of ``words.txt``."""
    return frozenset(" ".join(table("words.txt")[heading]).split())


@cache
def tables_version() -> str:
    """Return 8 hex digits over all tables."""
    names = ("names.txt", "refusals.txt", "turns.txt", "units.txt", "words.txt")
    return hashlib.sha256(repr([sorted(table(name).items()) for name in names]).encode()).hexdigest()[:8]
