"""The offline judge: are the words of each sentence of the answer in the contexts?

English only. On real answers of strong models it ranks unfaithful answers about as well as published LLM judges
(JUDGES.md), since those fail by adding what is not there. It is AT CHANCE on minimal factual edits (a swapped
name that stands elsewhere in the context), and cannot see a contradiction: use an LLM judge where that matters.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from ragtrace.errors import JudgeUnsupported
from ragtrace.judges.base import Audit, Claim
from ragtrace.judges.words import names_in, numbers_in, sentences, stems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.judges.base import Facts, Grades, Questions, Relevance, Task
    from ragtrace.model import RagRecord

WINDOW_SHARE = 0.5  # of the best window's coverage; the rest is coverage by the whole context
NUMBER_PENALTY = 0.10
NAME_PENALTY = 0.05
MAX_PENALISED = 2
SHORTEST_CLAIM_TERMS = 2  # "1.", "Sure!", "Yes." claim nothing; counting them cost .04 AUROC on MTRAG
THRESHOLD = 0.57
MAX_SENTENCES = 200
MAX_CONTEXT_CHARS = 400_000
_REVISION = "overlap/1"

_NOT = r"(?: not|n?['’]t|not)"
_REFUSAL = re.compile(
    r"(?:\b(?:i|we) (?:(?:do|can|could|did|am|was|are|were)" + _NOT + r"|am unable|was unable|are unable|"
    r"were unable|have no)(?: (?:know|have|find|answer|help|provide|able|sure|to|assist|see))?|"
    r"\bunable to (?:find|answer|provide|help|determine)|"
    r"\b(?:contexts?|documents?|passages?|texts?|sources?|articles?|information|it|they) (?:does|do|did)"
    + _NOT
    + r" (?:say|mention|provide|specify|contain|include|state|address|discuss|cover|give|indicate|explain|"
    r"tell|have)|"
    r"\b(?:no|not enough|insufficient) (?:relevant )?"
    r"(?:information|results?|answers?|mention|details?|context|data|evidence)\b|"
    r"\b(?:is|are|was|were)" + _NOT + r" (?:mentioned|provided|specified|available|stated|included|given|listed|"
    r"enough|sufficient|clear)\b|\bsorry\b)",
    re.IGNORECASE,
)
_TURN = re.compile(r"[,;:]?\s+(?:but|however|although|though|still|yet)\b[,]?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Window:
    """Two neighbouring sentences of one context: where they stand, their terms and text."""

    context: int
    terms: frozenset[str]
    text: str


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The contexts of one record, read once for all sentences of its answer."""

    windows: tuple[_Window, ...]
    frequency: Mapping[str, int]
    n_sentences: int
    numbers: frozenset[str]
    lowered: str

    def weight(self, term: str) -> float:
        """Inverse sentence frequency: a word that stands everywhere is weak evidence."""
        return math.log(1.0 + (self.n_sentences + 1.0) / (self.frequency.get(term, 0) + 0.5))


class OverlapJudge:
    """Measures word support, sentence by sentence; needs no network, no model and about 3 ms an answer.

    Support of a sentence = half the idf-weighted share of its terms in the best two-sentence window, half that in
    the whole context, minus .10 a number (at most two) and .05 a name (at most two) that the contexts lack; in
    [0, 1], higher is better supported. Weights and the one threshold are fixed (JUDGES.md, Build 1).

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
        """Return 8 hex digits over the weights, the threshold and the reading of words."""
        parts = (
            _REVISION, task, WINDOW_SHARE, NUMBER_PENALTY, NAME_PENALTY, MAX_PENALISED, SHORTEST_CLAIM_TERMS,
            THRESHOLD, _REFUSAL.pattern,
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    async def audit(self, record: RagRecord) -> Audit:
        """Read the answer against the delivered contexts; never fails."""
        attempted = is_attempt(record.answer)
        evidence = _read(record)
        parts = sentences(record.answer)
        claims = [_judged(text, terms, evidence) for text, terms in _claims(parts[:MAX_SENTENCES])]
        return Audit(
            attempted=attempted,
            noncommittal=not attempted,
            claims=tuple(claims),
            truncated=len(parts) > MAX_SENTENCES,
        )

    async def grades(self, record: RagRecord) -> Grades:
        """Raise: words in common are no grade of relevance."""
        _cannot("grade passages")

    async def questions(self, record: RagRecord, n: int) -> Questions:
        """Raise: it cannot write."""
        _cannot("write questions")

    async def facts(self, record: RagRecord) -> Facts:
        """Raise: it does not attribute a reference's facts."""
        _cannot("attribute facts")

    async def relevance(self, record: RagRecord, *, with_reference: bool) -> Relevance:
        """Raise: words in common are no relevance."""
        _cannot("judge relevance")

    async def aclose(self) -> None:
        """Nothing is held."""


def _cannot(what: str) -> NoReturn:
    raise JudgeUnsupported(f"judge 'overlap' cannot {what}; choose --judge openai:MODEL")


def is_attempt(answer: str) -> bool:
    """Whether an answer tries to answer: False for a blank one and for one that only declines (English).

    Example:
        >>> is_attempt("I don't know."), is_attempt("I cannot help, but Paris is the capital.")
        (False, True)
    """
    parts = [clause for sentence in sentences(answer) for clause in _TURN.split(sentence) if clause.strip()]
    claiming = [part for part in parts if stems(part)]
    if not claiming:
        return bool(answer.strip()) and not _REFUSAL.search(answer)
    return any(not _REFUSAL.search(part) and not part.rstrip().endswith("?") for part in claiming)


def _read(record: RagRecord) -> _Evidence:
    windows: list[_Window] = []
    frequency: dict[str, int] = {}
    n_sentences, room, texts = 0, MAX_CONTEXT_CHARS, []
    for place, passage in enumerate(record.contexts):
        text = passage.text[:room]
        room -= len(text)
        texts.append(text)
        parts = [(part, frozenset(stems(part))) for part in sentences(text)]
        n_sentences += len(parts)
        for _, terms in parts:
            for term in terms:
                frequency[term] = frequency.get(term, 0) + 1
        windows.extend(_windows(place, parts))
    joined = "\n".join(texts)
    return _Evidence(
        windows=tuple(windows),
        frequency=frequency,
        n_sentences=n_sentences,
        numbers=numbers_in(joined),
        lowered=joined.lower(),
    )


def _windows(place: int, parts: list[tuple[str, frozenset[str]]]) -> Iterator[_Window]:
    for first in range(max(1, len(parts) - 1)) if parts else ():
        pair = parts[first : first + 2]
        terms = frozenset().union(*(terms for _, terms in pair))
        yield _Window(place, terms, " ".join(text for text, _ in pair))


def _claims(parts: list[str]) -> list[tuple[str, frozenset[str]]]:
    """Return the sentences that claim something; all with any term when none is long enough ("Oslo.")."""
    read = [(part, frozenset(stems(part))) for part in parts if not part.rstrip().endswith("?")]
    long = [(part, terms) for part, terms in read if len(terms) >= SHORTEST_CLAIM_TERMS]
    return long or [(part, terms) for part, terms in read if terms]


def _judged(text: str, terms: frozenset[str], evidence: _Evidence) -> Claim:
    weights = {term: evidence.weight(term) for term in terms}
    total = math.fsum(weights.values())  # exact: a set's order changes with the process, and the sum must not
    whole = math.fsum(weight for term, weight in weights.items() if term in evidence.frequency) / total
    best, window = 0.0, None
    for candidate in evidence.windows:
        covered = math.fsum(weights[term] for term in terms & candidate.terms) / total
        if covered > best:
            best, window = covered, candidate
    numbers = sorted(numbers_in(text) - evidence.numbers)
    names = sorted(name for name in names_in(text) if name.lower() not in evidence.lowered)
    penalty = NUMBER_PENALTY * min(len(numbers), MAX_PENALISED) + NAME_PENALTY * min(len(names), MAX_PENALISED)
    raw = WINDOW_SHARE * best + (1.0 - WINDOW_SHARE) * whole - penalty
    support = min(1.0, max(0.0, raw))
    return Claim(
        text=text,
        verdict="supported" if support >= THRESHOLD else "not_supported",
        support=support,
        sources=(window.context,) if window is not None else (),
        reason=_reason(window, numbers, names),
    )


def _reason(window: _Window | None, numbers: list[str], names: list[str]) -> str:
    parts = [f"nearest: {window.text[:160]}" if window else "no word of it is in the contexts"]
    if numbers:
        parts.append(f"numbers not in the contexts: {', '.join(numbers[:5])}")
    if names:
        parts.append(f"names not in the contexts: {', '.join(names[:5])}")
    return "; ".join(parts)
