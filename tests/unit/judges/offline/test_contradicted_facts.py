"""The offline judge and another number or date for the same thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.judges.offline.contradicted_facts import FACTS, OTHER_KINDS
from tests.unit.judges.offline.scoring import results

if TYPE_CHECKING:
    from tests.unit.judges.offline.minimal_pairs import Pair


async def verdict(answer: str, context: str) -> str:
    details: Any = (await results(answer, *context.split(" || ")))["faithfulness"].details
    (claim,) = details["claims"]
    return claim["verdict"]


@pytest.mark.parametrize("pair", FACTS, ids=[pair.wrong for pair in FACTS])
async def test_another_number_or_date_is_not_supported(pair: Pair) -> None:
    assert await verdict(pair.right, pair.context) == "supported"
    assert await verdict(pair.wrong, pair.context) in {"contradicted", "not_supported"}


async def test_most_of_the_other_kinds_are_not_supported_either() -> None:
    right = [pair for pair in OTHER_KINDS if await verdict(pair.right, pair.context) == "supported"]
    missed = [pair.kind for pair in OTHER_KINDS if await verdict(pair.wrong, pair.context) == "supported"]
    assert len(right) == len(OTHER_KINDS)
    assert len(missed) <= 3, missed
