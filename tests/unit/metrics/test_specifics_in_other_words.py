"""Specifics that an answer takes over in another unit, precision, notation or spelling, and real inventions."""

from __future__ import annotations

import pytest

from tests.unit.judges.offline.scoring import results
from tests.unit.metrics.specifics_table import ROWS, Row

NAMES = [f"{row.kind}: {row.right}" for row in ROWS]
WRONG = [row for row in ROWS if row.wrong]


async def invented(answer: str, context: str) -> object:
    found = (await results(answer, context, metrics=("invented_specifics",)))["invented_specifics"]
    assert found.state == "ok"
    return found.details["invented"]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
async def test_a_fact_in_other_words_is_not_invented(row: Row) -> None:
    assert await invented(row.right, row.context) == []


@pytest.mark.parametrize("row", WRONG, ids=[f"{row.kind}: {row.wrong}" for row in WRONG])
async def test_a_wrong_fact_of_the_same_kind_is_invented(row: Row) -> None:
    assert await invented(row.wrong, row.context)
