"""Citations of an answer as questions to a judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import JudgeIncomplete
from ragtrace.judges.base import CitationVerdict, Support
from ragtrace.prompts.fence import cleaned

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ragtrace.judges.llm.numbering import Numbered
    from ragtrace.judges.llm.replies import CitationRow
    from ragtrace.model import RagRecord

Pair = tuple[int, str]  # 0-based index of the answer part, passage id as given


class CitationPairs:
    """The distinct (part, citation) pairs of a record whose passage was delivered.

    A citation is shown to the judge as the number of its context. Where an id reads like the number of another
    context, as in contexts with the ids 2 and 1, all are shown as given. A citation of a context without text is
    ``none`` without being asked: an empty passage supports nothing. Dangling citations are left out.
    """

    def __init__(self, record: RagRecord, contexts: Numbered) -> None:
        self._parts = record.answer_parts
        delivered = {passage.id for passage in record.contexts}
        self.pairs = [
            (part, cited)
            for part, answer_part in enumerate(record.answer_parts)
            for cited in dict.fromkeys(answer_part.citations)
            if cited in delivered
        ]
        self._numbers = contexts.numbers()
        self.asked = [pair for pair in self.pairs if pair[1] in self._numbers]
        self.are_named = any(
            self._numbers.get(str(number), number) != number for number in range(1, len(contexts) + 1)
        )

    def shown(self, pairs: Collection[Pair]) -> list[dict[str, object]]:
        """Return the parts of some pairs for a prompt, numbered from 1."""
        return [
            {"part": part + 1, "text": answer_part.text, "cites": cites}
            for part, answer_part in enumerate(self._parts)
            if (cites := [self._label(cited) for owner, cited in pairs if owner == part])
        ]

    def data(self) -> dict[str, object]:
        """Return the asked parts for a prompt.

        Contexts that are cited by id come with the id behind each number.
        """
        if not self.asked:
            return {}
        parts = {"parts": self.shown(self.asked)}
        if not self.are_named:
            return {**parts}
        return {**parts, "cited_as": {str(number): cleaned(cited) for cited, number in self._numbers.items()}}

    def matched(self, rows: Sequence[CitationRow]) -> dict[Pair, Support]:
        """Return the support of every asked pair whose rows agree. Rows about other pairs are ignored."""
        keys: dict[tuple[int, str], Pair] = {}
        for form in (self._label, cleaned, str):
            for part, cited in self.asked:
                keys.setdefault((part + 1, form(cited)), (part, cited))
        said: dict[Pair, set[Support]] = {}
        for row in rows:
            pair = keys.get((row.part, str(row.cites)))
            if pair is not None:
                said.setdefault(pair, set()).add(row.support)
        return {pair: supports.pop() for pair, supports in said.items() if len(supports) == 1}

    def verdicts(self, supports: dict[Pair, Support]) -> tuple[CitationVerdict, ...]:
        """Return one verdict a pair, in order."""
        return tuple(
            CitationVerdict(part=pair[0], citation=pair[1], support=supports.get(pair, "none"))
            for pair in self.pairs
        )

    def completed(self, supports: dict[Pair, Support]) -> dict[Pair, Support]:
        """Return the supports when every asked pair has one.

        Raises:
            JudgeIncomplete: one is missing, or rows contradict each other.
        """
        missing = sum(pair not in supports for pair in self.asked)
        if missing:
            raise JudgeIncomplete(f"no verdict for {missing} citations, also after the repair")
        return supports

    def _label(self, cited: str) -> str:
        return cleaned(cited) if self.are_named else str(self._numbers[cited])
