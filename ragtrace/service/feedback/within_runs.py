"""Ratings that the application gave within a run, as labels of its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.stores.base import Label

if TYPE_CHECKING:
    from ragtrace.model import RagRecord

_ANYONE = "human"  # the source of a rating where `Run.feedback` was given none


def labels_of(record: RagRecord) -> list[Label]:
    """Return the ratings of a record as labels from the end of its run, so that a later rating replaces them.

    Example:
        >>> from ragtrace.model import Feedback, RagRecord
        >>> given = (Feedback(value=0.0), Feedback(value=1.0, source="ada"))
        >>> record = RagRecord(id="1", trace_id="a" * 32, ended=9.0, feedback=given)
        >>> [(label.value, label.rater, label.at) for label in labels_of(record)]
        [(0.0, '', 9.0), (1.0, 'ada', 9.0)]
    """
    return [
        Label(
            trace_id=record.trace_id,
            value=given.value,
            comment=given.comment,
            rater="" if given.source == _ANYONE else given.source,
            at=record.ended,
        )
        for given in record.feedback
    ]
