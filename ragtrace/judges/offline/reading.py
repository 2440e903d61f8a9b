"""Reads answers as claims or refusals, and contexts as known specifics."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from msgspec import structs

from ragtrace.judges.offline.code import exact_in, known_code
from ragtrace.judges.offline.contrast import terms_of
from ragtrace.judges.offline.known import compare, known_in
from ragtrace.judges.offline.markup import (
    MOST_CHARS,
    claim_in,
    filled,
    holes_in,
    plain,
    set_apart,
    spelled_tables,
    tidied,
)
from ragtrace.judges.offline.notation import normalise
from ragtrace.judges.offline.short import is_short_claim
from ragtrace.judges.offline.tables import table
from ragtrace.judges.offline.words import LONGEST, is_readable, pieces, sentences, stems
from ragtrace.model.record import CONTEXTS_TRUNCATED
from ragtrace.text import MAX_RECORD_CHARS, composed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.judges.offline.code import KnownCode
    from ragtrace.judges.offline.known import Known
    from ragtrace.judges.offline.markup import Apart
    from ragtrace.model import RagRecord

REVISION = "8"  # raised when other attempts, claims or specifics are found
MAX_SENTENCES = 200
LONG_CLAIM_TERMS = 2  # with fewer, a part of a text may be a heading, a number of a list, or agreement
WHOLE = "whole answers"  # the heading of refusals that need no expression
_MARKS_OF_CODE = ("`", "~~~", "/", "www.", "@")
_EDGES = " .!?\"'\u3002\uff01\u0964"
EMPTY_RESPONSE = "Empty Response"  # LlamaIndex's text where nothing was retrieved, or the model said nothing


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """One claim as written, in one notation, and its terms.

    Attributes:
        exact: its code, links and addresses, which count to the letter.
        about: the terms of the sentence before and of the question, which tell what a short claim is about.
    """

    text: str
    normal: str
    terms: frozenset[str]
    exact: tuple[str, ...] = ()
    about: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """An answer as the offline judge reads it.

    Attributes:
        is_attempt: whether it tries to answer.
        unscorable: the reason of ``na`` for which its claims have no verdict; "" where they have. Texts that they
            may rest on, and that were cut for size, are such a reason.
        claims: its sentences that claim something; empty where it is unscorable.
        is_truncated: whether sentences beyond the first 200, or characters beyond the first 32,768, were left out.
    """

    is_attempt: bool
    unscorable: str = ""
    claims: tuple[ReadClaim, ...] = ()
    is_truncated: bool = False


def in_one_form(record: RagRecord) -> RagRecord:
    """Return a record with its texts composed: a store may hold accents apart from their letters, and ligatures.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> in_one_form(RagRecord(id="1", answer="Zu\u0308rich")).answer == "Z\u00fcrich"
        True
    """
    texts = [record.query, record.answer, *(passage.text for passage in record.contexts)]
    texts.extend(turn.content for turn in record.history)
    if all(map(str.isascii, texts)):
        return record
    pools = [
        structs.replace(pool, passages=tuple(structs.replace(p, text=composed(p.text)) for p in pool.passages))
        for pool in record.pools[-1:]
    ]
    return structs.replace(
        record,
        query=composed(record.query),
        answer=composed(record.answer),
        history=tuple(structs.replace(turn, content=composed(turn.content)) for turn in record.history),
        pools=(*record.pools[:-1], *pools),
    )


def read_answer(record: RagRecord) -> ReadAnswer:
    """Read the answer of a record.

    Questions claim nothing, nor do headings, greetings and agreement ("Yes, it does."). A word alone ("Oslo")
    counts where nothing longer claims anything. Code and links are read where the answer says nothing else.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> record = RagRecord(id="1", answer="Sure! It costs **12 euros** [1]. It is new.")
        >>> [claim.text for claim in read_answer(record).claims]
        ['It costs 12 euros.', 'It is new.']
    """
    answer, apart = _said(record.answer)
    attempted = is_attempt(filled(answer, apart))
    if not is_readable(answer, [passage.text for passage in record.contexts]):
        return ReadAnswer(attempted, unscorable="unsupported_language")
    if _is_cut(record):
        return ReadAnswer(attempted, unscorable=CONTEXTS_TRUNCATED)
    parts = sentences(answer)
    asked = terms_of_question(record.query)
    before: frozenset[str] = frozenset()
    read: list[ReadClaim] = []
    for part in parts[:MAX_SENTENCES]:
        said = "" if part.rstrip().endswith("?") else claim_in(part)
        if not said or (apart and said.rstrip().endswith(":") and not holes_in(said, apart)):
            continue
        claim = filled(said, apart)[:LONGEST]
        normal = normalise(claim)
        code = holes_in(said, apart)
        exact = (*(one.exact for one in code if one.exact), *exact_in(claim))
        terms = terms_of(normalise(" ".join(one.shown for one in code)[:LONGEST]) if code else normal)
        read.append(ReadClaim(claim, normal, terms, exact, asked | before))
        before = terms
    read = [claim for claim in read if claim.terms]
    if any(len(claim.terms) >= LONG_CLAIM_TERMS for claim in read):
        claims = [claim for claim in read if len(claim.terms) >= LONG_CLAIM_TERMS or is_short_claim(claim.text)]
    else:
        claims = read
    return ReadAnswer(
        attempted, "", tuple(claims), len(parts) > MAX_SENTENCES or len(tidied(record.answer)) > MOST_CHARS
    )


def terms_of_question(question: str) -> frozenset[str]:
    """Return the terms of a question; of a long one, those of as many characters as of an answer are read."""
    return frozenset().union(*(terms_of(normalise(part)) for part in dict.fromkeys(pieces(question[:MOST_CHARS]))))


def _is_cut(record: RagRecord) -> bool:
    """Tell whether contexts, question or earlier turns, on which a claim may rest, are cut or more than is read."""
    n_chars = sum(len(passage.text) for passage in record.contexts)
    is_asked = record.lossy.keys().isdisjoint(("query_chars", "history"))
    return n_chars > MAX_RECORD_CHARS or not is_asked


def _said(answer: str) -> tuple[str, list[Apart]]:
    """Return what an answer says, and its code and links set apart where it says nothing else."""
    text = plain(answer)
    if not any(map(answer.__contains__, _MARKS_OF_CODE)):
        return text, []
    held, apart = set_apart(answer)
    held = plain(held)
    if not apart or any(_is_prose(part) for part in sentences(held)):
        return text, []
    return held, apart


def _is_prose(part: str) -> bool:
    """Return whether a sentence says something beside its code and links. A lead-in ("Run this:") does not."""
    said = claim_in(part)
    return not said.rstrip().endswith(":") and len(terms_of(normalise(said))) >= LONG_CLAIM_TERMS


def is_blank(answer: str) -> bool:
    """Return whether an answer is empty, or the text that LlamaIndex writes for an empty one.

    Example:
        >>> is_blank(" "), is_blank("Empty Response"), is_blank("An empty response means no match.")
        (True, True, False)
    """
    return answer.strip() in {"", EMPTY_RESPONSE}


def is_attempt(answer: str) -> bool:
    """Return whether an answer tries to answer.

    A blank answer does not, and neither does an answer that only declines.

    Example:
        >>> is_attempt("I don't know."), is_attempt("I cannot help, but Paris is the capital.")
        (False, True)
        >>> is_attempt("Das weiß ich leider nicht."), is_attempt("申し訳ありませんが、わかりません。")
        (False, False)
    """
    if is_blank(answer) or bare(answer) in table("refusals.txt")[WHOLE]:
        return False
    said = filter(None, map(claim_in, sentences(answer)))
    parts = [clause for sentence in said for clause in _TURN.split(sentence) if clause.strip()]
    claiming = [part for part in parts if stems(part)]
    if not claiming:
        return not any(_REFUSAL.search(piece) for piece in pieces(answer))  # `map` would hold the lock
    return any(not _REFUSAL.search(part) and not part.rstrip().endswith(("?", "\uff1f")) for part in claiming)


def is_evasive(answer: str) -> bool:
    """Return whether an answer has only phrases that say nothing, in English.

    Example:
        >>> is_evasive("Great question! It depends on many factors."), is_evasive("It depends on the plan.")
        (True, False)
    """
    said = [bare(sentence) for sentence in sentences(plain(answer))]
    return bool(said) and all(_EVASION.fullmatch(part) for part in said)


def bare(answer: str) -> str:
    """Return an answer in lower case without marks at its edges, as whole refusals are listed."""
    return answer.strip().strip(_EDGES).replace("\u2019", "'").lower()


@cache
def refusal_pattern() -> str:
    """Return the regular expression of refusals in all languages of the table."""
    return "|".join(one for name, lines in table("refusals.txt").items() if name != WHOLE for one in lines)


_REFUSAL = re.compile(refusal_pattern(), re.IGNORECASE)  # of at most 2,000 characters: a sentence
_EVASION = re.compile("|".join(table("evasions.txt")["evasions"]))  # of at most 2,000 characters: a sentence
_TURN = re.compile("|".join(table("turns.txt")["turns"]), re.IGNORECASE)  # of at most 2,000 characters: a sentence


def read_contexts(record: RagRecord) -> tuple[list[list[tuple[str, str]]], Known]:
    """Read the contexts of a record.

    Returns:
        For each context its sentences as written and in one notation, table rows with their columns' heads; and the
        specifics that an answer may take over, which the question and earlier turns hold too.
    """
    texts = [passage.text for passage in record.contexts]
    normal = cache(normalise)  # many short lines are often the same
    contexts = [
        [(part, normal(part)) for part in sentences(spelled_tables(text) if "|" in text else text)]
        for text in texts
    ]
    asked = [record.query, *(turn.shown for turn in record.history)]
    normalised = [its for context in contexts for _, its in context]
    return contexts, known_in(
        [*normalised, *(normal(part) for one in asked for part in pieces(one))],
        "\n".join([*texts, *asked]),
        record.answer,
        record.query,
    )


def code_in(record: RagRecord, contexts: Sequence[Sequence[tuple[str, str]]]) -> KnownCode:
    """Read the code, links and addresses that an answer may take over, from contexts, question and turns."""
    asked = (record.query, *(turn.shown for turn in record.history))
    return known_code([*(text for context in contexts for pair in context for text in pair), *asked])


@dataclass(frozen=True, slots=True)
class Specifics:
    """The invented specifics of an answer, and how it was read."""

    is_attempt: bool
    unscorable: str
    n_claims: int
    invented: tuple[str, ...]


def specifics_in(record: RagRecord) -> Specifics:
    """Read an answer and find its invented specifics."""
    record = in_one_form(record)
    answer = read_answer(record)
    if not answer.claims:
        return Specifics(answer.is_attempt, answer.unscorable, 0, ())
    _, known = read_contexts(record)
    found = (it.shown for claim in answer.claims for it in compare(claim.text, claim.normal, known).lacking)
    return Specifics(answer.is_attempt, "", len(answer.claims), tuple(dict.fromkeys(found)))


def version() -> str:
    """Return 8 hex digits over the reading and its phrases."""
    return hashlib.sha256(repr((REVISION, LONG_CLAIM_TERMS, refusal_pattern())).encode()).hexdigest()[:8]
