"""The scale of a number: where it lies, which way is better, and from where on it passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["up", "down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Range of a metric's values, and the part of it that passes.

    Attributes:
        low: lowest value.
        high: highest value.
        direction: up = higher is better.
        threshold: of pass and fail, None = none; of a 1-5 form also as a share of its range, such as .5 for 3 of 5.
    """

    low: float = 0.0
    high: float = 1.0
    direction: Direction = "up"
    threshold: float | None = None

    @property
    def is_five_point(self) -> bool:
        """Return whether it is a 1-5 form."""
        return (self.low, self.high) == (1.0, 5.0)

    @property
    def is_unit(self) -> bool:
        """Return whether its values are exported in [0, 1], a 1-5 form as (s - 1) / 4."""
        return (self.low >= 0.0 and self.high <= 1.0) or self.is_five_point

    def exported(self, value: float) -> float:
        """Return a value as it enters sums and gauges.

        Example:
            >>> Scale(low=1.0, high=5.0).exported(4.0)
            0.75
        """
        return (value - 1.0) / 4.0 if self.is_five_point else value

    def passes(self, value: float) -> bool | None:
        """Say whether a value meets the threshold; None without one.

        Example:
            >>> Scale(threshold=0.8).passes(0.8), Scale(direction="down", threshold=0.2).passes(0.3)
            (True, False)
        """
        if self.threshold is None:
            return None
        shown = self.exported(value) if self.is_five_point and self.threshold < self.low else value
        return shown >= self.threshold if self.direction == "up" else shown <= self.threshold
