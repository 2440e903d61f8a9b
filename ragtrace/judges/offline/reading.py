"""Reads answers as claims or refusals, and contexts as known specifics."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from msgspec import structs

from ragtrace.judges.offline.addresses import KnownAddresses
from ragtrace.judges.offline.code import exact_in, known_code
from ragtrace.judges.offline.contrast import terms_of
from ragtrace.judges.offline.known import compare, known_in
from ragtrace.judges.offline.markup import MOST_CHARS, claim_in, said_in, spelled_tables
from ragtrace.judges.offline.notation import normalise
from ragtrace.judges.offline.placed import Placed
from ragtrace.judges.offline.short import is_short_claim
from ragtrace.judges.offline.tables import table, tables_version, words
from ragtrace.judges.offline.words import LONGEST, is_readable, pieces, sentences, stems
from ragtrace.model.record import CONTEXTS_TRUNCATED, EMPTY_RESPONSE
from ragtrace.text import MAX_RECORD_CHARS, composed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.judges.offline.code import KnownCode
    from ragtrace.judges.offline.known import Known
    from ragtrace.judges.offline.markup import Said
    from ragtrace.model import Passage, RagRecord

REVISION = "9"  # raised when other attempts, claims or specifics are found
MAX_SENTENCES = 200
LONG_CLAIM_TERMS = 2  # with fewer, a part of a text may be a heading, a number of a list, or agreement
WHOLE = "whole answers"  # the heading of refusals that need no expression
_MARKS_OF_CODE = ("`", "~~~", "<")
_EDGES = " .!?\"'\u3002\uff01\u0964"


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """One claim of an answer.

    Attributes:
        start: where it begins in the answer as given.
        end: where it ends there.
        quote: what stands there, with its markup.
        text: the claim without markup, citations and addresses.
        normal: the same in one notation.
        terms: of the claim.
        exact: its code, which counts to the letter.
        addresses: its links, hosts, files, mailboxes and phone numbers, which count to the letter.
        about: the terms of the sentence before and of the question, which tell what a short claim is about.
        is_empty: it has only words of the question, and words that say nothing ("Please contact support.").
    """

    start: int
    end: int
    quote: str
    text: str
    normal: str
    terms: frozenset[str]
    exact: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    about: frozenset[str] = frozenset()
    is_empty: bool = False


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

    The answer stays as it was given, since claims quote it.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> in_one_form(RagRecord(id="1", query="Zu\u0308rich", answer="")).query == "Z\u00fcrich"
        True
    """
    texts = [record.query, *(passage.text for passage in record.contexts)]
    texts.extend(turn.content for turn in record.history)
    if all(map(str.isascii, texts)):
        return record
    pools = [structs.replace(pool, passages=_composed(pool.passages)) for pool in record.pools[-1:]]
    return structs.replace(
        record,
        query=composed(record.query),
        history=tuple(structs.replace(turn, content=composed(turn.content)) for turn in record.history),
        pools=(*record.pools[:-1], *pools),
        unranked_contexts=_composed(record.unranked_contexts),
    )


def _composed(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    return tuple(structs.replace(passage, text=composed(passage.text)) for passage in passages)


def read_answer(record: RagRecord) -> ReadAnswer:
    """Read the answer of a record.

    Questions claim nothing, nor do headings, greetings and agreement ("Yes, it does."). A word alone ("Oslo"), and
    what says nothing ("Please contact support."), count where nothing longer claims anything. Code is read where
    the answer says nothing else.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> record = RagRecord(id="1", answer="Sure! It costs **12 euros** [1]. It is new.")
        >>> [claim.quote for claim in read_answer(record).claims]
        ['It costs **12 euros** [1].', 'It is new.']
    """
    said = _said(record.answer)
    attempted = is_attempt(said.filled(said.text.text))
    if not is_readable(said.text.text, [passage.text for passage in record.contexts]):
        return ReadAnswer(attempted, unscorable="unsupported_language")
    if _is_cut(record):
        return ReadAnswer(attempted, unscorable=CONTEXTS_TRUNCATED)
    parts = said.text.sentences()
    return ReadAnswer(
        attempted,
        "",
        tuple(_counted([*_read(said, parts[:MAX_SENTENCES], record)])),
        len(parts) > MAX_SENTENCES or said.is_cut,
    )


def _read(said: Said, parts: Sequence[Placed], record: RagRecord) -> Iterator[ReadClaim]:
    """Yield the sentences that may claim something."""
    asked = terms_of_question(record.query)
    is_apart = bool(said.apart) and not any(map(_is_prose, parts))  # then a lead-in says nothing of its own
    before: frozenset[str] = frozenset()
    for part in parts:
        claim = part[:0] if part.text.rstrip().endswith("?") else claim_in(part)
        apart = said.parts_in(claim.text)
        if not claim.text or (is_apart and claim.text.rstrip().endswith(":") and not apart):
            continue
        text = said.filled(claim.text, has_addresses=False)[:LONGEST]
        normal = normalise(text)
        code = [one for one in apart if one.is_code]
        terms = terms_of(normalise(" ".join(one.shown for one in code)[:LONGEST]) if code else normal)
        addresses = tuple(one.exact for one in apart if not one.is_code)
        if not terms and not addresses:
            continue
        start, end = said.span(claim, record.answer)
        yield ReadClaim(
            start,
            end,
            record.answer[start:end],
            text,
            normal,
            terms,
            (*(one.exact for one in code), *exact_in(text)),
            addresses,
            asked | before,
            not code and says_nothing(terms, asked),
        )
        before = terms


def _counted(read: list[ReadClaim]) -> list[ReadClaim]:
    """Return the claims that count beside the others."""
    read = [claim for claim in read if claim.addresses or not claim.is_empty] or read
    if any(claim.addresses or len(claim.terms) >= LONG_CLAIM_TERMS for claim in read):
        return [
            claim
            for claim in read
            if claim.addresses or len(claim.terms) >= LONG_CLAIM_TERMS or is_short_claim(claim.text)
        ]
    return read


def says_nothing(terms: frozenset[str], asked: frozenset[str]) -> bool:
    """Return whether terms say nothing, beside those of the question in a sentence that evades.

    Example:
        >>> asked = terms_of_question("Do you support the plan?")
        >>> said = ("It depends on the plan.", "Every case is different.", "We support the plan.")
        >>> [says_nothing(terms_of(one), asked) for one in said]
        [True, True, False]
    """
    evading, empty = _evading_terms()
    if not terms or not terms <= (evading | empty | asked):
        return False
    return terms.isdisjoint(asked) or not terms.isdisjoint(evading - asked)


@cache
def _evading_terms() -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms that evade, and those that say nothing beside them."""
    evading = stems(" ".join(words("evades")))
    return frozenset(evading), frozenset(stems(" ".join((*words("says_nothing"), *words("english")))))


def terms_of_question(question: str) -> frozenset[str]:
    """Return the terms of a question; of a long one, those of as many characters as of an answer are read."""
    return frozenset().union(*(terms_of(normalise(part)) for part in dict.fromkeys(pieces(question[:MOST_CHARS]))))


def _is_cut(record: RagRecord) -> bool:
    """Tell whether contexts, question or earlier turns, on which a claim may rest, are cut or more than is read."""
    n_chars = sum(len(passage.text) for passage in record.contexts)
    is_asked = record.lossy.keys().isdisjoint(("query_chars", "history"))
    return n_chars > MAX_RECORD_CHARS or not is_asked


def _said(answer: str) -> Said:
    """Return what an answer says, with its code set apart where it says nothing else."""
    said = said_in(answer)
    if not any(map(answer.__contains__, _MARKS_OF_CODE)):
        return said
    coded = said_in(answer, has_code=True)
    has_code = any(one.is_code for one in coded.apart)
    return said if not has_code or any(map(_is_prose, coded.text.sentences())) else coded


def _is_prose(part: Placed) -> bool:
    """Return whether a sentence says something beside its code and links. A lead-in ("Run this:") does not."""
    said = claim_in(part).text
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
    has_terms = False
    for sentence in sentences(answer):
        for part in _TURN.split(claim_in(Placed.whole(sentence)).text):
            if not stems(part):
                continue
            if not _REFUSAL.search(part) and not part.rstrip().endswith(("?", "\uff1f")):
                return True  # the first part that claims something decides
            has_terms = True
    return not has_terms and not any(
        _REFUSAL.search(piece) for piece in pieces(answer)
    )  # `map` would hold the lock


def is_evasive(answer: str, question: str = "") -> bool:
    """Return whether an answer says nothing of the question, in English.

    What remains of it without courtesies, words of the question and function words are words that say nothing.

    Example:
        >>> is_evasive("Great question! It depends on many factors."), is_evasive("It depends on the plan.")
        (True, False)
        >>> is_evasive("Yes. Please contact support about the fee.", "Is there a fee?"), is_evasive("Yes.")
        (True, False)
    """
    said = said_in(answer)
    asked = terms_of_question(question)
    has_nothing = False
    for part in said.text.sentences():
        terms = terms_of(normalise(part.text))
        if says_nothing(terms, asked) and not said.parts_in(part.text):
            has_nothing = True
        elif claim_in(part).text and not part.text.rstrip().endswith("?") and (terms or said.parts_in(part.text)):
            return False
    return has_nothing


def bare(answer: str) -> str:
    """Return an answer in lower case without marks at its edges, as whole refusals are listed."""
    return answer.strip().strip(_EDGES).replace("\u2019", "'").lower()


# Refusals in all languages of the table.
_REFUSAL = re.compile(  # of at most 2,000 characters: a sentence
    "|".join(one for name, lines in table("refusals.txt").items() if name != WHOLE for one in lines), re.IGNORECASE
)
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
    """Read the code that an answer may take over, from contexts, question and turns."""
    asked = (record.query, *(turn.shown for turn in record.history))
    return known_code([*(text for context in contexts for pair in context for text in pair), *asked])


def addresses_in(record: RagRecord) -> KnownAddresses:
    """Read the addresses that an answer may take over, from question, turns, and passages with their facts."""
    texts = [record.query, *(turn.shown for turn in record.history), *(it.text for it in record.contexts)]
    names = (name for passage in record.contexts for name in _names_of(passage))
    return KnownAddresses("\n".join((*texts, *names)).lower())


def _names_of(passage: Passage) -> Iterator[str]:
    """Yield the id and the source of a passage, and the texts of its metadata."""
    yield from filter(None, (passage.id, passage.source))
    for value in passage.metadata.values():
        yield from (it for it in (value if isinstance(value, list | tuple) else (value,)) if isinstance(it, str))


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
    found = [it.shown for claim in answer.claims for it in compare(claim.text, claim.normal, known).lacking]
    said = [address for claim in answer.claims for address in claim.addresses]
    lacking = addresses_in(record).lacking(said) if said else ()
    return Specifics(answer.is_attempt, "", len(answer.claims), tuple(dict.fromkeys((*found, *lacking))))


def version() -> str:
    """Return 8 hex digits over the reading and its tables."""
    parts = (REVISION, LONG_CLAIM_TERMS, tables_version())
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
