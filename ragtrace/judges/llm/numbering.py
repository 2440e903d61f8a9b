"""Numbers of passages in a prompt."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.model import Passage, RagRecord


class Numbered:
    """The contexts of a record that are not blank, numbered from 1.

    Example:
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> texts = enumerate(("Oslo.", " ", "Bergen."), start=1)
        >>> passages = tuple(Passage(id=f"p{i}", text=text, rank=i) for i, text in texts)
        >>> contexts = Numbered(RagRecord(id="1", pools=(Pool(stage="used", passages=passages),)))
        >>> contexts.shown(), contexts.indexes([2])
        ({'1': 'Oslo.', '2': 'Bergen.'}, (2,))
    """

    def __init__(self, record: RagRecord) -> None:
        self.kept = [(i, passage) for i, passage in enumerate(record.contexts) if passage.text.strip()]

    def __len__(self) -> int:
        return len(self.kept)

    def shown(self) -> dict[str, str]:
        """Return the contexts as the judge sees them: text by number."""
        return numbered(passage.text for _, passage in self.kept)

    def indexes(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return 0-based context indexes for a judge's numbers, each once."""
        return tuple(self.kept[n - 1][0] for n in dict.fromkeys(numbers))

    def numbers(self) -> dict[str, int]:
        """Return the number of each passage id. A repeated id has the number of its first context."""
        numbers: dict[str, int] = {}
        for number, (_, passage) in enumerate(self.kept, start=1):
            numbers.setdefault(passage.id, number)
        return numbers


def numbered(texts: Iterable[str], first: int = 1) -> dict[str, str]:
    """Return texts by their number as a judge sees it."""
    return {str(number): text for number, text in enumerate(texts, start=first)}


def grading_batches(
    record: RagRecord, size: int = 10, passages: Iterable[Passage] | None = None
) -> list[list[Passage]]:
    """Return passages in the order of grading, in batches.

    They are the candidate pool, the record's first, where none are given. Blank passages are left out, an id that
    repeats is asked once.
    The order is shuffled by the trace id (the record's id where there is none), which keeps a judge that
    prefers early passages from favouring the retriever's order. Within a batch passages are numbered from 1.

    Example:
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> passages = tuple(Passage(id=f"p{i}", text="x", rank=i) for i in range(1, 13))
        >>> record = RagRecord(id="1", pools=(Pool(stage="retrieved", passages=passages),))
        >>> [len(batch) for batch in grading_batches(record)]
        [10, 2]
    """
    if passages is None:
        passages = record.pools[0].passages if record.pools else ()
    distinct: dict[str, Passage] = {}
    for passage in passages:
        if passage.text.strip():
            distinct.setdefault(passage.id, passage)
    order = list(distinct.values())
    # As bytes: an id may hold a lone surrogate, which a text as seed does not allow.
    random.Random((record.trace_id or record.id).encode("utf-8", "surrogatepass")).shuffle(order)
    return [order[i : i + size] for i in range(0, len(order), size)]
