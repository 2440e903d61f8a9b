"""Several runs of one query, and the metrics over them."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.reading import is_blank
from ragtrace.metrics.base import CoroutineMetric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
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
    r"""Return the key of a record's query; None without a query.

    Case and white space make no difference.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> one, other = RagRecord(id="1", query=" Where is\nit? "), RagRecord(id="2", query="where is it?")
        >>> query_key(one) == query_key(other)
        True
    """
    query = bare(record.query)
    if not query:
        return None
    turns = tuple((turn.role, bare(turn.shown)) for turn in record.history)
    return QueryKey(record.workflow, turns, query)


def by_query(
    items: Iterable[T],
    record_of: Callable[[T], RagRecord] = lambda item: item,  # type: ignore[assignment,return-value]
) -> dict[QueryKey, list[T]]:
    """Return records, or items that hold one, by query; those without a query are left out.

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
    return [run.answer for run in runs if run.outcome == "answered" and not is_blank(run.answer)]


def over_runs(spec: MetricSpec) -> CoroutineMetric:
    """Return a metric over several runs of one query; one record gives ``na insufficient_runs``.

    Its numbers come from the function of its module, and in `ragtrace compare`.
    """

    async def compute(_ctx: EvalContext) -> list[MetricResult]:
        return spec.every("insufficient_runs")

    return CoroutineMetric(spec, compute)


def bare(text: str) -> str:
    """Return a text without what makes no difference between questions: case, white space and Unicode's forms."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
