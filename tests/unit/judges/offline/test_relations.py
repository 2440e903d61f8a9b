"""What the offline judge reads of relations: another one is not supported, the same in other words not contradicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.judges.offline.notation import normalise
from ragtrace.judges.offline.relations import Related, crossed_pair, relate_otherwise, roles_differ
from tests.unit.judges.offline.related_pairs import RELATED
from tests.unit.judges.offline.scoring import results

if TYPE_CHECKING:
    from tests.unit.judges.offline.minimal_pairs import Pair


async def verdicts(answer: str, context: str) -> list[str]:
    details: Any = (await results(answer, context))["faithfulness"].details
    return [claim["verdict"] for claim in details["claims"]]


@pytest.mark.parametrize("pair", RELATED, ids=[pair.wrong for pair in RELATED])
async def test_another_relation_is_not_supported_and_the_same_one_not_contradicted(pair: Pair) -> None:
    assert any(verdict != "supported" for verdict in await verdicts(pair.wrong, pair.context))
    assert "contradicted" not in await verdicts(pair.right, pair.context)


@pytest.mark.parametrize(
    "answer",
    [
        "The lake borders the park.",
        "The park borders the lake.",
        "Ann, Ben and Cid run the shop.",
        "Cid, Ann and Ben run the shop.",
        "The nurse was called by the doctor in the evening.",
        "In the evening the doctor called the nurse.",
    ],
)
async def test_what_holds_both_ways_is_supported_both_ways(answer: str) -> None:
    context = (
        "The park borders the lake. Ann, Ben and Cid run the shop. The doctor called the nurse in the evening."
    )
    assert await verdicts(answer, context) == ["supported"]


def related(text: str) -> Related:
    return Related(normalise(text))


@pytest.mark.parametrize(
    ("said", "held", "differ"),
    [
        ("The nurse called the doctor.", "The doctor called the nurse.", ("doctor", "nurse")),
        ("The nurse was called by the doctor.", "The doctor called the nurse.", False),
        ("Milk flows from the tank to the vat.", "Milk flows to the tank from the vat.", ("tank", "vat")),
        ("The vat, which feeds the tank, is old.", "The tank feeds the vat.", ("tank", "vat")),
        ("The doctor met the nurse.", "The nurse met the doctor.", None),
    ],
)
def test_roles_around_a_verb(said: str, held: str, differ: object) -> None:
    ours, theirs = related(said), related(held)
    assert roles_differ(ours, theirs, (frozenset(ours.terms) & frozenset(theirs.terms)) - {""}) == differ


@pytest.mark.parametrize(
    ("said", "held", "differ"),
    [
        ("Ann is taller than Bea.", "Bea is shorter than Ann.", False),
        ("Ann is taller than Bea.", "Bea is not as short as Ann.", True),
        ("Ann is less patient than Bea.", "Bea is more patient than Ann.", False),
        ("The lamp costs more than the chair.", "The lamp is cheaper than the chair.", True),
        ("Ann is taller than Bea.", "Ann is older than Bea.", None),
        ("Ann is no taller than Bea.", "Ann is taller than Bea.", True),
    ],
)
def test_which_of_two_has_more(said: str, held: str, differ: object) -> None:
    assert relate_otherwise(related(said).compared, related(held).compared) is differ


@pytest.mark.parametrize(
    ("said", "held", "differ"),
    [
        ("Sign the form before you post it to us.", "Post it to us after you sign the form.", False),
        ("After the speech, there is a quiz.", "The quiz comes before the speech.", True),
        ("First wash the rice, then boil it in a pot.", "Boil it in a pot before you wash the rice.", True),
    ],
)
def test_what_comes_first(said: str, held: str, differ: object) -> None:
    assert relate_otherwise(related(said).ordered, related(held).ordered) is differ


def test_what_belongs_to_a_parallel_part_is_no_crossed_pair() -> None:
    parts = related("The desk in Oslo handles fees").parts[0], related("the desk in Rome handles visas").parts[0]
    assert crossed_pair(frozenset({"oslo", "visa"}), *parts) == ("oslo", "visa")
    assert crossed_pair(frozenset({"oslo", "fee"}), *parts) is None
    assert crossed_pair(frozenset({"oslo", "fee", "visa"}), *parts) is None
