"""Checks an answer sentence by sentence with a pair scorer."""

from __future__ import annotations

import asyncio
import inspect
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace.capture.suppression import uninstrumented
from ragtrace.errors import JudgeError, JudgeInvalidOutput
from ragtrace.judges.base import PairModel, PairSignals
from ragtrace.judges.nli.premises import BETWEEN_CONTEXTS, Premise, pieces, premises
from ragtrace.judges.offline.words import sentences
from ragtrace.model import JudgeUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.judges.base import PairScorer

PAIRS_A_CALL = 32  # between two calls the event loop can stop a long check
_SLACK_TOKENS = 4  # a text inside a template may take a token or two more than alone


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSentence:
    """A sentence of the answer with the signals of each premise.

    The signals are in the order of the premises and never empty.
    """

    text: str
    signals: tuple[PairSignals, ...]

    @property
    def consistency(self) -> float:
        """The best premise's consistency, in [0, 1], higher is better."""
        return max(signal.consistency for signal in self.signals)

    @property
    def contradiction(self) -> float | None:
        """The worst premise's contradiction, in [0, 1], lower is better. None when the scorer has none."""
        known = [signal.contradiction for signal in self.signals if signal.contradiction is not None]
        return max(known) if len(known) == len(self.signals) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An answer checked against its contexts. `sentences` is empty when the answer has no word."""

    sentences: tuple[CheckedSentence, ...]
    premises: tuple[Premise, ...]
    usage: JudgeUsage = field(default_factory=JudgeUsage)


def identity(scorer: PairScorer) -> tuple[str, str]:
    """Return the name and version of a pair scorer.

    A function without a name of its own is named as in code.

    Example:
        >>> def same(pairs): ...
        >>> identity(same)
        ('function:same', '')
    """
    code = getattr(scorer, "__qualname__", None) or type(scorer).__qualname__
    name, version = getattr(scorer, "name", None), getattr(scorer, "version", None)
    return str(name or f"function:{code}"), str(version or "")


async def check(scorer: PairScorer, answer: str, contexts: Sequence[tuple[int, str]]) -> Checked:
    """Score every sentence of an answer against every premise.

    Contexts are joined to premises of the scorer's window; a sentence longer than half the window is checked in
    parts. Nothing is ever truncated. The work is done in threads, at most 32 pairs a call, so that the event loop
    stays free and a cancelled check ends soon.

    Args:
        scorer: any `ragtrace.judges.base.PairScorer`.
        answer: the text to check.
        contexts: non-blank contexts with their 0-based places in the record; at least one.

    Raises:
        JudgeError: the scorer failed, or gave not one number in [0, 1] for each pair.

    Example:
        >>> def copied(pairs):
        ...     return [float(hypothesis in premise) for premise, hypothesis in pairs]
        >>> checked = asyncio.run(check(copied, "It is red. It is big.", [(0, "It is red."), (1, "Oslo.")]))
        >>> [sentence.consistency for sentence in checked.sentences]
        [1.0, 0.0]
    """
    try:
        texts, chunks = await asyncio.to_thread(_planned, scorer, answer, contexts)
        pairs = [(chunk.text, text) for text in texts for chunk in chunks]
        signals: list[PairSignals] = []
        with uninstrumented():
            for first in range(0, len(pairs), PAIRS_A_CALL):
                signals += await _scored(scorer, pairs[first : first + PAIRS_A_CALL])
    except JudgeError:
        raise
    except Exception as error:
        raise JudgeError(f"{identity(scorer)[0]}: {type(error).__name__}: {error}") from error
    n = len(chunks)
    return Checked(
        sentences=tuple(
            CheckedSentence(text=text, signals=tuple(signals[at * n : at * n + n])) for at, text in enumerate(texts)
        ),
        premises=tuple(chunks),
    )


def _planned(
    scorer: PairScorer, answer: str, contexts: Sequence[tuple[int, str]]
) -> tuple[list[str], list[Premise]]:
    texts = [text for text in sentences(answer) if any(map(str.isalnum, text))]
    model: object = scorer
    if not isinstance(model, PairModel):
        joined = BETWEEN_CONTEXTS.join(text for _, text in contexts)
        return texts, [Premise(text=joined, contexts=tuple(place for place, _ in contexts))]
    window = model.window - _SLACK_TOKENS
    parts = [
        part
        for text in texts
        for part in pieces(text, lambda piece: model.size("", piece) <= window // 2, repeat=False)
    ]
    longest = max(parts, key=lambda part: model.size("", part), default="")
    return parts, premises(contexts, lambda premise: model.size(premise, longest) <= window)


async def _scored(scorer: PairScorer, pairs: list[tuple[str, str]]) -> list[PairSignals]:
    model: object = scorer
    if isinstance(model, PairModel):
        signals = list(await asyncio.to_thread(model.signals, pairs))
    else:
        given = await asyncio.to_thread(scorer, pairs)
        values = await given if inspect.isawaitable(given) else given
        signals = [PairSignals(consistency=_number(value)) for value in values]
    if len(signals) != len(pairs):
        raise JudgeInvalidOutput(f"{identity(scorer)[0]}: {len(signals)} scores for {len(pairs)} pairs")
    for signal in signals:
        _check_range(signal.consistency)
        _check_range(0.0 if signal.contradiction is None else signal.contradiction)
    return signals


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type] # numpy's numbers are floats too
    except (TypeError, ValueError):
        raise JudgeInvalidOutput(f"a pair scorer returned {value!r} for a pair, not a number") from None


def _check_range(value: float) -> None:
    if not (math.isfinite(value) and 0.0 <= value <= 1.0):
        raise JudgeInvalidOutput(f"a pair scorer returned {value!r}, which is not in [0, 1]")
