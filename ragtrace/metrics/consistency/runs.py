"""Several runs of one query: how they are found, and what the metrics over them have in common."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from ragtrace.metrics.base import MetricSpec
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult, RagRecord

    T = TypeVar("T")

LEAST_RUNS = 3


class QueryKey(NamedTuple):
    """Identity of a query: two records with an equal one are runs of it."""

    workflow: str
    history: tuple[tuple[str, str], ...]
    query: str


def query_key(record: RagRecord) -> QueryKey | None:
    r"""Return the key of a record's query, without regard to case and white space; None without a query.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> one, other = RagRecord(id="1", query=" Where is\nit? "), RagRecord(id="2", query="where is it?")
        >>> query_key(one) == query_key(other)
        True
    """
    query = _bare(record.query)
    if not query:
        return None
    turns = tuple((turn.role, _bare(turn.content)) for turn in record.history)
    return QueryKey(record.workflow, turns, query)


def by_query(
    items: Iterable[T],
    record_of: Callable[[T], RagRecord] = lambda item: item,  # type: ignore[assignment,return-value]
) -> dict[QueryKey, list[T]]:
    """Return records, or what holds them, by query, in the order in which they came; none without a query.

    Args:
        items: records, or anything that has one.
        record_of: gives the record of an item.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> records = [RagRecord(id=str(n), query="Where?", answer="Oslo.") for n in range(3)]
        >>> [len(runs) for runs in by_query(records).values()]
        [3]
    """
    found: dict[QueryKey, list[T]] = {}
    for item in items:
        key = query_key(record_of(item))
        if key is not None:
            found.setdefault(key, []).append(item)
    return found


def answers_of(runs: Iterable[RagRecord]) -> list[str]:
    """Return the answers that are compared: of runs that ended as ``answered``, without blank ones."""
    return [run.answer for run in runs if run.outcome == "answered" and run.answer.strip()]


class OverRuns:
    """A metric over several runs of one query; a case is one record, for which it is ``na insufficient_runs``.

    Its numbers come from the function of its module, and in `ragtrace compare`.
    """

    def __init__(self, spec: MetricSpec) -> None:
        self.spec = spec

    async def compute(self, ctx: EvalContext) -> Sequence[MetricResult]:  # noqa: ARG002 - one record is never enough
        """Return ``na insufficient_runs`` for each output."""
        return self.spec.every("insufficient_runs")


def _bare(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
