"""Recording rules and their groups, each rule with one line that says what it records."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One recording rule.

    Attributes:
        record: name of the series.
        expr: its expression.
        says: what the series says, in one line; it stands as a comment in the rule file.
    """

    record: str
    expr: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Recording rules that are evaluated one after the other, at one interval.

    Attributes:
        name: in the rule file.
        interval_s: seconds between two evaluations.
        rules: in the order in which they need each other.
    """

    name: str
    interval_s: int
    rules: tuple[Rule, ...]
