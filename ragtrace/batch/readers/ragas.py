"""Datasets of ragas, also of its earlier versions, and conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.batch.readers import Reader

if TYPE_CHECKING:
    from collections.abc import Collection

_TODAY, _EARLIER = {"user_input"}, {"question", "contexts"}


def _reads(columns: Collection[str]) -> bool:
    return _TODAY.issubset(columns) or _EARLIER.issubset(columns)


READER = Reader(about="Datasets of ragas: user_input, response, retrieved_contexts, reference.", reads=_reads)
