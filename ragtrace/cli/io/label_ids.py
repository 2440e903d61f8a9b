"""Tells where labels and passages have ids of different kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.graded import are_of
from ragtrace.model import label_id

if TYPE_CHECKING:
    from ragtrace.model import RagRecord

_LEAST_RUNS = 5  # fewer may just have found nothing


class LabelIds:
    """Notes whether any label of any run names one of its passages.

    Example:
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="retrieved", passages=(Passage(id="12#0", text="In Oslo.", rank=1),))
        >>> found = LabelIds()
        >>> for n in range(5):
        ...     found.add(RagRecord(id=str(n), query="Where?", pools=(pool,), labels=Labels(grades={"doc-12": 5})))
        >>> (found.warning() or "").partition(":")[0]
        'no label id was ever seen in a pool (5 labelled runs)'
    """

    def __init__(self) -> None:
        self._runs = 0
        self._is_seen = False

    def add(self, record: RagRecord) -> None:
        """Take one run; ignored without passages or without labels of its query."""
        labels, pooled = record.labels, (passage for pool in record.pools for passage in pool.passages)
        passages = [*pooled, *record.unranked_contexts]
        if passages and labels is not None and labels.grades and are_of(record, labels):
            self._runs += 1
            ids = (label_id(passage, labels.grades) for passage in passages)
            self._is_seen = self._is_seen or any(name in labels.grades for name in ids)

    def warning(self) -> str | None:
        """Return one line where no label of five runs or more names a passage, else None."""
        if self._is_seen or self._runs < _LEAST_RUNS:
            return None
        return (
            f"no label id was ever seen in a pool ({self._runs} labelled runs): not_retrieved may only mean that "
            "the ids differ; give passages the ids of the labels"
        )
