"""Krippendorff's alpha against the vectors of the package krippendorff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from ragtrace.stats import Level, krippendorff_alpha
from tests.golden.running import same

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def krippendorff(record: dict[str, Any]) -> None:
    ratings, expected = record["inputs"]["coders_by_units"], record["expected"]
    has_value = expected is not None and "na" not in expected
    levels = [level for level in get_args(Level) if not has_value or level in expected]
    assert levels
    for level in levels:
        found = krippendorff_alpha(ratings, level, n_resamples=0)
        same(found.value, expected[level] if has_value else None, level)


RUNNERS: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
    "krippendorff_alpha": krippendorff,
    "krippendorff": krippendorff,
}
