"""One passage that is handed over without a list around it, and a prompt's text as what was used."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from ragtrace.capture import Recorder
from ragtrace.model import Passage
from tests.kept import Keeper

CANCEL = "You cancel in the settings."
REFUND = "Refunds take 5 days."


def record(report):
    keeper = Keeper()
    with Recorder(keeper).start(query="How do I cancel?") as run:
        report(run)
    return keeper.runs[0].record


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(CANCEL, id="a text"),
        pytest.param({"text": CANCEL}, id="a mapping"),
        pytest.param(MappingProxyType({"text": CANCEL}), id="a mapping that is no dict"),
        pytest.param(Passage(id="a", text=CANCEL, rank=1), id="a passage"),
    ],
)
@pytest.mark.parametrize("name", ["retrieved", "reranked", "used"])
def test_one_item_is_one_passage(item, name) -> None:
    assert [p.text for p in record(lambda run: getattr(run, name)(item)).contexts] == [CANCEL]


def test_bytes_are_one_passage() -> None:
    assert len(record(lambda run: run.retrieved(CANCEL.encode())).pool("retrieved")) == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_the_text_that_was_used_shows_passages_of_the_pool(is_first) -> None:
    def report(run):
        if is_first:
            run.used(f"Context:\n{REFUND}\n")
        run.retrieved([{"id": "a", "text": CANCEL}, {"id": "b", "text": REFUND}])
        if not is_first:
            run.used(f"Context:\n{REFUND}\n")

    assert [p.id for p in record(report).pool("used")] == ["b"]


def test_a_text_that_shows_none_of_them_is_what_was_used() -> None:
    def report(run):
        run.retrieved([CANCEL])
        run.used("Settings: cancel there.")

    assert [p.text for p in record(report).contexts] == ["Settings: cancel there."]


def test_what_was_used_may_be_said_anew() -> None:
    def report(run):
        run.retrieved([CANCEL, REFUND])
        run.used(CANCEL)
        run.used([REFUND])

    assert [p.text for p in record(report).contexts] == [REFUND]


def test_passages_without_ids_that_were_used_have_those_of_the_pool() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.retrieved([{"id": "a", "text": "Oslo."}, {"id": "b", "text": "Bergen."}])
        run.reranked(["Bergen.", "Oslo."])
        run.used(["Bergen."])
        run.answered("In Bergen.")
    chosen = keeper.only.record.pool("reranked")
    assert ([one.id for one in chosen], keeper.only.prompt_ids) == (["b", "a"], ("b",))
