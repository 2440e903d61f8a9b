"""Finds labels whose ids name no passage of any run."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

from ragtrace.metrics.graded import are_of
from ragtrace.model.diagnosis import DIAGNOSIS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.model import RagRecord
    from ragtrace.stores.sqlite import SqliteStore

_MOST_CHARS = 60
_MOST_VERDICTS = 50_000
_MOST_TRACES = 20  # whose records are read for an example


class LabelIds:
    """Compares the ids of labels with those of the passages, over many runs.

    One id in common shows that both are of one kind; nothing is said then.

    Example:
        >>> from ragtrace.model import Labels, Passage, Pool, RagRecord
        >>> pool = Pool(stage="retrieved", passages=(Passage(id="12#0", text="In Oslo.", rank=1),))
        >>> found = LabelIds()
        >>> found.add(RagRecord(id="1", query="Where?", pools=(pool,), labels=Labels(grades={"doc-12": 5})))
        >>> (found.warning() or "").partition(", so")[0]
        "the labels' ids match no passage id of any pool (a label: 'doc-12', a passage: '12#0')"
    """

    def __init__(self) -> None:
        self.is_matched = False
        self._is_labelled = False
        self._example: tuple[str, str] | None = None

    def add(self, record: RagRecord) -> None:
        """Take one run; ignored without passages or without labels of its query."""
        labels = record.labels
        if self.is_matched or labels is None or not labels.grades or not are_of(record, labels):
            return
        passages = [passage.id for pool in record.pools for passage in pool.passages]
        if passages:
            self.is_matched = any(passage in labels.grades for passage in passages)
            self._is_labelled = True
            self._example = self._example or (next(iter(labels.grades)), passages[0])

    def add_stored(self, store: SqliteStore, *, since: float, until: float, workflow: str | None = None) -> None:
        """Take the stored verdicts of a time; the records that were kept give the ids.

        A verdict counts the needed passages that labels name, and those of them in pool and prompt.
        """
        rows = store.rows(metric=DIAGNOSIS, since=since, until=until, workflow=workflow)
        traces = []
        for row in islice(rows, _MOST_VERDICTS):
            details = json.loads(row["details"] or "{}")
            if details.get("by") != "labels" or not details.get("n_needed"):
                continue
            if details.get("n_needed_in_pool") or details.get("n_needed_in_prompt"):
                self.is_matched = True
                return
            traces.append(row["trace_id"])
        self._is_labelled = self._is_labelled or bool(traces)
        for record in self._kept(store, traces):
            self.add(record)

    def warning(self) -> str | None:
        """Return one line where labels were seen, and no id of them names a passage; else None."""
        if self.is_matched or not self._is_labelled:
            return None
        if self._example is None:
            return (
                "no passage that the labels call needed stood in any pool, so the labels' ids may be of another "
                "kind than the passages'; compare them (a store keeps ids with content=full alone)"
            )
        label, passage = (one[:_MOST_CHARS] for one in self._example)
        return (
            f"the labels' ids match no passage id of any pool (a label: {label!r}, a passage: {passage!r}), so "
            "not_retrieved may only mean that they differ; give passages the ids of the labels: "
            f'{{"id": {json.dumps(label)}, "text": ...}}'
        )

    @staticmethod
    def _kept(store: SqliteStore, traces: list[str]) -> Iterator[RagRecord]:
        for trace in traces[:_MOST_TRACES]:
            record = store.record(trace)
            if record is not None:
                yield record
