"""Findings of a look at a store, between the process that looks and the scorer that exports them."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the traffic that explains a fall; `share` is of the whole change, `rank` 1 the surest part."""

    rank: int
    dimension: str
    value: str
    how: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Answer of a look about one metric and workflow; `size` and its bounds are above 0 for the worse."""

    metric: str
    workflow: str
    is_found: bool
    since: float = 0.0
    n: int = 0
    size: float = 0.0
    low: float = 0.0
    high: float = 0.0
    parts: tuple[Part, ...] = ()
    verdict: str = ""
    growth: float = 0.0

    @classmethod
    def from_line(cls, line: str) -> Finding:
        """Return the finding of one line."""
        fields = json.loads(line)
        return cls(**{**fields, "parts": tuple(Part(**it) for it in fields["parts"])})
