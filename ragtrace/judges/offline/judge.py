"""The offline judge, which compares words and facts.

English only; other languages are ``na unsupported_language``. On real answers of strong models it ranks unfaithful
answers about as well as published LLM judges, since those fail by adding what is not there. It reads a sentence in
the contexts' own words: 5,000 metres as 5 km, "WHO" as its name. It gives evidence against a sentence where the
contexts say nearly the same with a negation, an opposite, or another number, date or name in its place. A sentence
with a specific that the contexts neither hold nor yield is never supported. It misses a third of the contradictions
that people write, most of all those in other words, and most minimal edits of long texts (SummEdits: AUROC 0.70 on
the development part). Use an LLM judge where that matters.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from ragtrace.judges.base import Audit, Claim, Judge
from ragtrace.judges.offline.contrast import ContrastFinder, terms_of
from ragtrace.judges.offline.known import compare
from ragtrace.judges.offline.reading import (
    LONG_CLAIM_TERMS,
    REVISION,
    addresses_in,
    code_in,
    in_one_form,
    read_answer,
    read_contexts,
    terms_of_question,
)
from ragtrace.judges.offline.short import COUNTERPARTS, stance
from ragtrace.judges.offline.specifics import forget_texts
from ragtrace.judges.offline.tables import tables_version
from ragtrace.judges.offline.words import TermPlaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.base import Task
    from ragtrace.judges.offline.addresses import KnownAddresses
    from ragtrace.judges.offline.code import KnownCode
    from ragtrace.judges.offline.known import Known
    from ragtrace.judges.offline.reading import ReadClaim
    from ragtrace.judges.offline.specifics import Specific
    from ragtrace.model import RagRecord

WINDOW_SHARE = 0.5  # of the best window's coverage; the rest is coverage by the whole context
NUMBER_PENALTY = 0.10
NAME_PENALTY = 0.05
MAX_PENALISED = 2
THRESHOLD = 0.57
CLAIM_THRESHOLD = 0.30  # of one longer claim in an answer whose mean passes `THRESHOLD`
LONGER_TERMS = 5
CONDITION_TERMS = 2  # with fewer, a condition says little
CONDITION_KNOWN = 0.25  # of its terms: no more of an invented one stand in the contexts
UNSEEN_FACTOR = 0.56
AGAINST_FACTOR = 0.55
_REVISION = "overlap/4"
_SAFE = 1.0 - 1e-9  # against the rounding of sums
_MOST_SHOWN = 160  # characters of the nearest passage in a reason


_CONDITION = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b(?:if|unless|provided|providing|once|when|after|before|until|except|only|as long as|so long as|"
    r"subject to|upon|but)\b[^,;:.()]*+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _SentencePair:
    """Two neighbouring sentences of one context."""

    context: int
    terms: frozenset[str]
    text: str


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The contexts of one record, read once for all claims.

    Attributes:
        weights: inverse sentence frequency of each term: a word that stands everywhere is weak evidence.
        places: the windows of each term.
        unknown_weight: of a term that no context has.
        code: the code of the contexts, where the answer has some.
        addresses: the addresses of the contexts, where the answer has some.
        stances: of a term, the sentences that affirm or deny it, read when they are first needed.
    """

    known: Known
    windows: list[_SentencePair]
    places: TermPlaces
    weights: dict[str, float]
    unknown_weight: float
    contrast: ContrastFinder
    code: KnownCode | None
    addresses: KnownAddresses | None
    stances: dict[str, list[tuple[bool, str, frozenset[str]]]] = field(default_factory=dict)


def _read_evidence(record: RagRecord, claims: Sequence[ReadClaim]) -> _Evidence:
    contexts, known = read_contexts(record)
    windows: list[_SentencePair] = []
    sentences: list[tuple[str, frozenset[str]]] = []
    terms_in = cache(terms_of)
    seen: set[tuple[str, ...]] = set()
    for place, given in enumerate(contexts):
        terms = [terms_in(normal) for _, normal in given]
        sentences.extend((normal, its) for (_, normal), its in zip(given, terms, strict=True))
        for first in range(max(1, len(given) - 1)) if given else ():
            pair = given[first : first + 2]
            key = tuple([normal for _, normal in pair])
            if key in seen:
                continue  # the first of equal pairs is the nearest
            seen.add(key)
            window = _SentencePair(
                place, frozenset().union(*terms[first : first + 2]), " ".join([raw for raw, _ in pair])
            )
            windows.append(window)
    frequency = Counter(term for _, terms in sentences for term in terms)
    n = len(sentences) + 1.0
    weights = {term: math.log(1.0 + n / (count + 0.5)) for term, count in frequency.items()}
    unknown = math.log(1.0 + n / 0.5)
    contrast = ContrastFinder(sentences, weights, unknown, terms_of_question(record.query))
    places = TermPlaces([window.terms for window in windows])
    return _Evidence(
        known, windows, places, weights, unknown, contrast,
        code_in(record, contexts) if any(claim.exact for claim in claims) else None,
        addresses_in(record) if any(claim.addresses for claim in claims) else None,
    )  # fmt: skip


class OverlapJudge(Judge):
    """Measures word support of each sentence.

    It needs no network, no model and about 10 ms an answer. Support of a sentence = half the idf-weighted share
    of its terms in the best two-sentence window, half that in the whole context, minus .10 a number (at most
    two) and .05 a name (at most two) that the contexts lack. A sentence with an unknown specific, or a condition
    ("unless you paid by invoice") of which the contexts have at most a quarter of the words, is multiplied by .56,
    and a sentence with evidence against it, or with code or an address that the contexts lack, by .55. A
    sentence of one term ("It is free.") counts as the sentences with that term that are about the same: against it
    where they deny it. In [0, 1], higher is better supported. A claim is supported from 0.57 on; a longer one from
    0.30 on where nothing speaks against it and the mean of the answer is 0.57 or more. Weights and thresholds are
    fixed.

    Example:
        >>> import asyncio
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", query="Where?", answer="The lab is in Oslo.", pools=(pool,))
        >>> asyncio.run(OverlapJudge().audit(record)).claims[0].support
        1.0
    """

    name = "overlap"
    tasks: frozenset[Task] = frozenset({"audit"})
    thresholds: Mapping[str, float] = {"faithfulness": THRESHOLD}

    def version(self, task: Task) -> str:
        """Return 8 hex digits over weights, threshold and reading."""
        parts = (
            _REVISION, REVISION, task,
            WINDOW_SHARE, NUMBER_PENALTY, NAME_PENALTY, MAX_PENALISED, LONG_CLAIM_TERMS,
            THRESHOLD, CLAIM_THRESHOLD, LONGER_TERMS, UNSEEN_FACTOR, AGAINST_FACTOR,
            CONDITION_TERMS, CONDITION_KNOWN, tables_version(),
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    async def audit(self, record: RagRecord) -> Audit:
        """Read the answer against the delivered contexts; never fails."""
        forget_texts()
        record = in_one_form(record)
        answer = read_answer(record)
        if answer.unscorable:
            return Audit(
                attempted=answer.is_attempt, noncommittal=not answer.is_attempt, unscorable=answer.unscorable
            )
        evidence = _read_evidence(record, answer.claims)
        claims, unseen = [], []
        for claim in answer.claims:
            found = compare(claim.text, claim.normal, evidence.known)
            terms = (terms_of(found.reworded) if found.reworded != claim.normal else claim.terms) or claim.terms
            claims.append(replace(claim, normal=found.stated, terms=terms))
            unseen.append(found.lacking)
        said = frozenset().union(*(claim.terms for claim in claims))
        for places in (evidence.places, evidence.contrast.places):
            places.of(said)  # in one pass for all claims
        known = evidence.addresses
        addresses = [known.lacking(claim.addresses) if known is not None else [] for claim in claims]
        judged = [
            _judged(claim, its, lacking, evidence)
            for claim, its, lacking in zip(claims, unseen, addresses, strict=True)
        ]
        return Audit(
            attempted=answer.is_attempt,
            noncommittal=not answer.is_attempt,
            claims=_decided(judged, claims),
            truncated=answer.is_truncated,
            invented=tuple(dict.fromkeys([*(it.shown for its in unseen for it in its), *chain(*addresses)])),
        )


def _cut(text: str) -> str:
    """Return a text, or its first words with an ellipsis where it is long."""
    if len(text) <= _MOST_SHOWN:
        return text
    start = text[:_MOST_SHOWN]
    return f"{start.rpartition(' ')[0] or start}…"


def _judged(said: ReadClaim, unseen: list[Specific], addresses: list[str], evidence: _Evidence) -> Claim:
    """Return a claim with its support; ``supported`` says that nothing speaks against it."""
    if said.addresses and (said.is_empty or len(said.terms) < LONG_CLAIM_TERMS):
        return _pointing(said, unseen, addresses)
    whole, best, window = _cover(said.terms, evidence)
    against = evidence.contrast.against(said.normal) if best >= 0.3 else ""
    if len(said.terms) == 1 and (told := _told(said, evidence)) is not None:
        affirms, text = told
        if affirms and not whole:
            whole, best, window = _cover(terms_of(text), evidence)
        against = against or ("" if affirms else f"the contexts deny it: {_cut(text)}")
    numbers = [it.shown for it in unseen if it.kind not in {"name", "quote"}]
    names = [it.shown for it in unseen if it.kind == "name"]
    code = evidence.code.lacking(said.exact) if evidence.code is not None else []
    penalty = NUMBER_PENALTY * min(len(numbers), MAX_PENALISED) + NAME_PENALTY * min(len(names), MAX_PENALISED)
    raw = WINDOW_SHARE * best + (1.0 - WINDOW_SHARE) * whole - penalty
    condition = _unknown_condition(said, evidence)
    if unseen or condition:
        raw *= UNSEEN_FACTOR
    if against or code or addresses or (unseen and said.terms <= terms_of(" ".join(it.shown for it in unseen))):
        raw *= AGAINST_FACTOR
    support = min(1.0, max(0.0, raw))
    reasons = [against] if against else []
    reasons.append(f"nearest: {_cut(window.text)}" if window else "no word of it is in the contexts")
    for kind, lacking in (("numbers", numbers), ("names", names), ("code", code), ("addresses", addresses)):
        if lacking:
            reasons.append(f"{kind} not in the contexts: {', '.join(lacking[:5])}")
    if condition:
        reasons.append(f"a condition that the contexts lack: {_cut(condition)}")
    is_lacking = bool(unseen or code or addresses or condition)
    return Claim(
        text=said.quote,
        verdict="contradicted" if against else "not_supported" if is_lacking else "supported",
        support=support,
        sources=(window.context,) if window is not None else (),
        reason="; ".join(reasons),
        start=said.start,
        end=said.end,
    )


def _pointing(said: ReadClaim, unseen: list[Specific], addresses: list[str]) -> Claim:
    """Return a claim that only points to an address ("See https://nova.dev."), which the contexts hold or lack."""
    lacking = [*(it.shown for it in unseen), *addresses]
    return Claim(
        text=said.quote,
        verdict="not_supported" if lacking else "supported",
        support=0.0 if lacking else 1.0,
        reason=f"addresses not in the contexts: {', '.join(lacking[:5])}" if lacking else "",
        start=said.start,
        end=said.end,
    )


def _decided(claims: list[Claim], said: list[ReadClaim]) -> tuple[Claim, ...]:
    """Return claims of which those with too little support are ``not_supported``.

    In an answer that is supported as a whole, a sentence that joins or sums up shares few words with any window, so
    that a longer one is held against a lower bar. Without it 3 of 4 faithful answers of MTRAG have a claim that is
    called unsupported, with it 1 of 2, and as many of the unfaithful ones.
    """
    mean = math.fsum(claim.support for claim in claims) / max(1, len(claims))
    decided = []
    for claim, its in zip(claims, said, strict=True):
        is_lower = mean >= THRESHOLD and len(its.terms) >= LONGER_TERMS
        is_weak = claim.support < (CLAIM_THRESHOLD if is_lower else THRESHOLD)
        is_changed = claim.verdict == "supported" and is_weak
        decided.append(replace(claim, verdict="not_supported") if is_changed else claim)
    return tuple(decided)


def _cover(terms: frozenset[str], evidence: _Evidence) -> tuple[float, float, _SentencePair | None]:
    """Return the share of terms that the whole context and the best window cover, and that window."""
    weights = {term: evidence.weights.get(term, evidence.unknown_weight) for term in terms}
    total = math.fsum(weights.values())  # exact: a set's order changes with the process, and the sum must not
    whole = math.fsum(weight for term, weight in weights.items() if term in evidence.weights) / total
    best, nearest = 0.0, -1
    looked: set[int] = set()
    places = evidence.places.of(terms)
    rarest = sorted(places, key=lambda term: (len(places[term]), term))
    for i, first in enumerate(rarest):
        if math.fsum(weights[term] for term in rarest[i:]) / total < best * _SAFE:
            break  # what has no rarer term cannot be nearer
        for place in places[first]:
            if place in looked:
                continue
            looked.add(place)
            covered = math.fsum(weights[term] for term in terms & evidence.windows[place].terms) / total
            if covered > best or (covered == best and covered > 0.0 and place < nearest):
                best, nearest = covered, place
    return whole, best, evidence.windows[nearest] if nearest >= 0 else None


def _unknown_condition(said: ReadClaim, evidence: _Evidence) -> str:
    """Return a condition of a claim ("unless you paid by invoice") of which the contexts have hardly a word."""
    for found in _CONDITION.finditer(said.normal):
        terms = terms_of(f"x {found[0]}") - {"x"} - evidence.contrast.asked
        n_known = len(terms & evidence.weights.keys())
        if len(terms) >= CONDITION_TERMS and n_known <= CONDITION_KNOWN * len(terms):
            return found[0].strip()
    return ""


def _told(said: ReadClaim, evidence: _Evidence) -> tuple[bool, str] | None:
    """Return whether the contexts affirm a claim of one term, and the sentence that tells; None where none does.

    Of the sentences with the term those count that share most with the answer's sentence before and the question.
    """
    (term,) = said.terms
    ours = stance(term, said.normal)
    if term not in evidence.stances:
        alike = {term, *COUNTERPARTS.get(term, ())}
        evidence.stances[term] = [
            (theirs, text, terms)
            for text, terms in dict.fromkeys(evidence.contrast.sentences)
            if not alike.isdisjoint(terms) and (theirs := stance(term, text)) is not None
        ]
    told = [
        (math.fsum(evidence.weights[it] for it in terms & said.about), theirs == ours, text)
        for theirs, text, terms in evidence.stances[term]
    ]
    if not told or ours is None:
        return None
    most = max(share for share, *_ in told)
    return max(((affirms, text) for share, affirms, text in told if share == most), key=lambda it: it[0])
