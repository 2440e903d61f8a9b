"""Clusters of runs whose scores are not independent: a conversation, or one question asked again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.model.record import RagRecord

_BYTES = 8


def cluster_of(record: RagRecord) -> str:
    """Return the cluster of a run in its workflow, 16 hex digits: its session, else its question, else itself.

    Turns of one session share topic and user, and a repeated question has the same answer, so that statistics count
    a cluster once. Case and blanks of a question do not matter. The digest tells neither session nor question.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> one, same = RagRecord(id="1", query="Where is it?"), RagRecord(id="2", query="where  is it?")
        >>> cluster_of(one) == cluster_of(same)
        True
        >>> cluster_of(RagRecord(id="3")) == cluster_of(RagRecord(id="4"))
        False
    """
    question = " ".join(record.query.casefold().split())
    if record.session:
        named: tuple[str, ...] = ("session", record.session)
    elif question:
        named = ("question", question)
    else:
        named = ("run", record.trace_id or record.id, record.span_id)
    text = "\0".join((record.workflow, *named))
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_BYTES).hexdigest()
