"""Reads an answer as claims, and contexts as what claims may take over; shared by judge and metric."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.judges.offline.contrast import terms_of
from ragtrace.judges.offline.language import is_readable
from ragtrace.judges.offline.markup import claim_in, plain, spelled_tables
from ragtrace.judges.offline.notation import normalise
from ragtrace.judges.offline.refusals import is_attempt, pattern
from ragtrace.judges.offline.specifics import invented_in, known_in
from ragtrace.judges.offline.words import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace.judges.offline.specifics import Known
    from ragtrace.model import RagRecord

REVISION = "2"  # raised when other claims or specifics are found
MAX_SENTENCES = 200
MAX_CONTEXT_CHARS = 400_000
SHORTEST_CLAIM_TERMS = 2  # "1.", "Sure!", "Yes." claim nothing; counting them cost .04 AUROC on MTRAG


@dataclass(frozen=True, slots=True)
class Said:
    """One claim of an answer: as it was written, in one notation, and its terms."""

    text: str
    normal: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer as the offline judge reads it.

    Attributes:
        is_attempt: whether it tries to answer.
        unscorable: the reason of ``na`` for which its claims have no verdict; "" where they have.
        claims: its sentences that claim something; empty where it is unscorable.
        is_truncated: whether sentences beyond the first 200 were left out.
    """

    is_attempt: bool
    unscorable: str = ""
    claims: tuple[Said, ...] = ()
    is_truncated: bool = False


def read_answer(record: RagRecord) -> Reading:
    """Read the answer of a record.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> [said.text for said in read_answer(RagRecord(id="1", answer="Sure! It costs **12 euros** [1].")).claims]
        ['It costs 12 euros.']
    """
    answer = plain(record.answer)
    attempted = is_attempt(answer)
    if not is_readable(answer, [passage.text for passage in record.contexts]):
        return Reading(attempted, unscorable="unsupported_language")
    parts = sentences(answer)
    return Reading(attempted, "", tuple(_claims(parts[:MAX_SENTENCES])), len(parts) > MAX_SENTENCES)


def context_texts(record: RagRecord) -> list[str]:
    """Return the texts of the contexts, at most 400,000 characters in all."""
    room, texts = MAX_CONTEXT_CHARS, []
    for passage in record.contexts:
        texts.append(passage.text[:room])
        room -= len(texts[-1])
    return texts


def context_sentences(text: str) -> list[tuple[str, str]]:
    """Return each sentence of a context as written and in one notation, table rows with their columns' heads."""
    return [(part, normalise(part)) for part in sentences(spelled_tables(text))]


def known_of(record: RagRecord, normalised: Iterable[str]) -> Known:
    """Collect the specifics that an answer may take over: of contexts, question and earlier turns.

    Args:
        record: the run.
        normalised: the sentences of its contexts in one notation.
    """
    asked = [record.query, *(turn.content for turn in record.history)]
    return known_in([*normalised, *map(normalise, asked)], "\n".join([*context_texts(record), *asked]))


@dataclass(frozen=True, slots=True)
class Specifics:
    """The specifics of an answer that no context holds, and what else the reading says of it."""

    is_attempt: bool
    unscorable: str
    n_claims: int
    invented: tuple[str, ...]


def specifics_in(record: RagRecord) -> Specifics:
    """Read an answer and find its invented specifics."""
    reading = read_answer(record)
    if not reading.claims:
        return Specifics(reading.is_attempt, reading.unscorable, 0, ())
    known = known_of(record, (part for text in context_texts(record) for _, part in context_sentences(text)))
    found = (it.shown for said in reading.claims for it in invented_in(said.text, said.normal, known))
    return Specifics(reading.is_attempt, "", len(reading.claims), tuple(dict.fromkeys(found)))


def version() -> str:
    """Return 8 hex digits over the reading: its revision and the phrases of refusals."""
    return hashlib.sha256(repr((REVISION, SHORTEST_CLAIM_TERMS, pattern())).encode()).hexdigest()[:8]


def _claims(parts: list[str]) -> list[Said]:
    """Return the sentences that claim something; all with any term when none is long enough ("Oslo.")."""
    read = [_said(claim) for part in parts if not part.rstrip().endswith("?") and (claim := claim_in(part))]
    long = [said for said in read if len(said.terms) >= SHORTEST_CLAIM_TERMS]
    return long or [said for said in read if said.terms]


def _said(claim: str) -> Said:
    normal = normalise(claim)
    return Said(claim, normal, terms_of(normal))
