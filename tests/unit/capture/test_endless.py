"""Lists without an end: 10,000 passages are looked at, and the record says that there were more."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.capture import Recorder
from ragtrace.model import Message
from tests.kept import Keeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ragtrace.capture import Run

MOST = 10_000


def endless() -> Iterator[Any]:
    return ({"id": f"d{n}", "text": f"Passage {n}."} for n in itertools.count())


REPORTS: dict[str, Callable[[Run, Any], None]] = {
    "retrieved": lambda run, items: run.retrieved(items),
    "reranked": lambda run, items: run.reranked(items, candidates=()),
    "candidates": lambda run, items: run.reranked((), candidates=items),
    "selected": lambda run, items: run.selected(items, selection_source="explicit"),
    "add_selected": lambda run, items: run.add_selected(items),
    "restored": lambda run, items: run.set_candidates(items),
    "used": lambda run, items: run.used(items),
}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize(("make", "more"), [(endless, 1), (lambda: list(itertools.islice(endless(), MOST + 7)), 7)])
def test_10000_passages_are_looked_at(report: str, make: Callable[[], Any], more: int) -> None:
    keeper = Keeper()
    items = make()
    with Recorder(keeper).start(query="q") as run:
        REPORTS[report](run, items)
    (kept,) = keeper.runs
    assert kept.record.lossy["passages"] == more
    # A reranker's candidates are no contexts.
    assert kept.record.lossy.get("contexts_truncated") == (None if report == "candidates" else more)
    if report != "candidates":
        assert [len(pool.passages) for pool in kept.record.pools] == [MOST]
        assert kept.record.contexts[-1].id == f"d{MOST - 1}"


def test_an_iterator_of_a_few_is_read_to_its_end_and_no_further() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="q") as run:
        run.retrieved(itertools.islice(endless(), 3))
        run.retrieved(itertools.islice(endless(), MOST))
    assert keeper.runs[0].record.lossy == {}


def test_other_endless_lists_do_not_hang() -> None:
    keeper = Keeper()
    said = Message(role="user", content="Hi.")
    with Recorder(keeper).start(query="q", tags=map(str, itertools.count())) as run:
        run.set_history(itertools.repeat(said))
        run.generated(
            inputs=itertools.repeat(said), outputs=itertools.repeat(said), finish_reasons=itertools.repeat("x")
        )
        run.answered("a", parts=itertools.repeat({"text": "a", "citations": ["d1"]}))
    with Recorder(keeper).start(query="q") as run:
        run.answered("a", parts=[{"text": "a", "citations": map(str, itertools.count())}])
    record = keeper.runs[0].record
    assert (len(record.history), len(record.tags)) == (256, 64)
    assert record.answer_parts
