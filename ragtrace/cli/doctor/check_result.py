"""Result of one check of ``ragtrace doctor``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]
_ORDER: tuple[Level, ...] = ("ok", "warn", "fail")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line: ``fail`` for a setup that cannot work, ``warn`` for one that works and needs a look.

    `said` never holds a key. `todo` is the remedy, "" without one.

    Example:
        >>> print(CheckResult("spool", "fail", "the disk is full", "free some space"))
        fail  spool         the disk is full: free some space
    """

    check: str
    level: Level
    said: str
    todo: str = ""

    def __str__(self) -> str:
        line = f"{self.level:<5} {self.check:<13} {self.said}{f': {self.todo}' if self.todo else ''}"
        return "".join(char if char.isprintable() else " " for char in line)

    def to_json(self) -> dict[str, str]:
        """Return it as JSON-ready values."""
        return asdict(self)


def worst(findings: list[CheckResult]) -> Level:
    """Return the worst level; ``ok`` of none.

    Example:
        >>> worst([CheckResult("a", "ok", ""), CheckResult("b", "warn", "")])
        'warn'
    """
    return max((finding.level for finding in findings), key=_ORDER.index, default="ok")
