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
    question = _question(record)
    if record.session:
        named: tuple[str, ...] = ("session", record.session)
    elif question:
        named = ("question", question)
    else:
        named = ("run", record.trace_id or record.id, record.span_id)
    return digest(record.workflow, *named)


def party_of(record: RagRecord) -> str | None:
    """Return a digest of whose run it is in its workflow: its session's, else its user's; None if neither is known.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> one, same = RagRecord(id="1", user="ada", query="Where?"), RagRecord(id="2", user="ada", query="When?")
        >>> party_of(one) == party_of(same), party_of(RagRecord(id="3"))
        (True, None)
    """
    return digest_of_party(record.workflow, record.session, record.user)


def digest_of_party(workflow: str, session: str | None, user: str | None) -> str | None:
    """Return the digest of `party_of` for a run's workflow, session and user."""
    if session:
        return digest(workflow, "session", session)
    return digest(workflow, "user", user) if user else None


def repeats_of(record: RagRecord) -> list[str]:
    """Return what another run of its workflow may share with a run, as digests: its trace and its question.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> asked = RagRecord(id="1", trace_id="a" * 32, query="Where?")
        >>> len(repeats_of(asked)), len(repeats_of(RagRecord(id="2")))
        (2, 0)
    """
    named = (("trace", record.trace_id), ("question", _question(record)))
    return [digest(record.workflow, kind, value) for kind, value in named if value]


def digest(*parts: str) -> str:
    """Return a digest of 16 hex digits that tells none of the parts."""
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=_BYTES).hexdigest()


def _question(record: RagRecord) -> str:
    return " ".join(record.query.casefold().split())
