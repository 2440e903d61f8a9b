"""The way of the needed passages through pool, selection and prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragtrace.metrics.graded import candidates
from ragtrace.model import label_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.metrics.diagnosis.table import Known
    from ragtrace.model import Passage, RagRecord

Place = Literal["retrieval", "rerank", "room", "prompt", "delivered"]
By = Literal["labels", "grades", "shadow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageGrades:
    """Grades of passages by id, and how much of the corpus they cover.

    Attributes:
        grades: 1 to 5.
        by: who gave them.
        is_whole: they cover every relevant passage of the corpus, so that a passage without a grade is not needed.
        least: the lowest grade of a needed passage.
    """

    grades: Mapping[str, int]
    by: By
    is_whole: bool
    least: int

    def is_needed(self, passage: str) -> bool:
        """Return whether a passage is relevant enough to be needed."""
        return self.grades.get(passage, 0) >= self.least

    def ids(self, passages: Sequence[Passage]) -> list[str]:
        """Return the ids by which the grades know passages: of chunks their own, or their document's."""
        return [label_id(passage, self.grades) for passage in passages]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One needed passage, and where it went.

    Attributes:
        id: of the passage.
        grade: its grade, 1 to 5.
        place: the stage that lost it; ``room`` where only passages as good as it were selected.
        rank: its place in the pool, from 1; None outside it.
        selected_rank: its place in the selection, from 1; None outside it.
    """

    id: str
    grade: int
    place: Place
    rank: int | None = None
    selected_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """The needed passages of a run, best first.

    Attributes:
        relevance: what is known about relevance; None without labels and grades.
        traces: one for each needed passage.
        are_all_graded: whether each delivered passage has a grade, or needs none.
    """

    relevance: PassageGrades | None = None
    traces: tuple[Trace, ...] = ()
    are_all_graded: bool = False

    def lost(self, place: Place) -> list[Trace]:
        """Return the needed passages that a stage lost."""
        return [trace for trace in self.traces if trace.place == place]

    @property
    def delivered(self) -> list[Trace]:
        """The needed passages that stood in the prompt."""
        return self.lost("delivered")

    @property
    def found(self) -> Known:
        """As `ragtrace.metrics.diagnosis.table.DiagnosisFacts.found`."""
        if self.lost("retrieval"):
            return "no"
        return "yes" if self.relevance is not None and self.relevance.is_whole else "unknown"

    @property
    def selected(self) -> Known:
        """As `ragtrace.metrics.diagnosis.table.DiagnosisFacts.selected`."""
        if self.lost("rerank"):
            return "no"
        return "yes" if len(self.traces) > len(self.lost("retrieval")) else "unknown"

    @property
    def shown(self) -> Known:
        """As `ragtrace.metrics.diagnosis.table.DiagnosisFacts.shown`."""
        if self.lost("prompt"):
            return "no"
        return "yes" if self.delivered else "unknown"

    @property
    def reached(self) -> Known:
        """As `ragtrace.metrics.diagnosis.table.DiagnosisFacts.reached`."""
        best = max((trace.grade for trace in self.traces), default=0)
        if self.traces and all(trace.place == "delivered" for trace in self.traces if trace.grade == best):
            return "yes"
        return "no" if self.are_all_graded and not self.delivered else "unknown"


def followed(record: RagRecord, relevance: PassageGrades | None) -> Needed:
    """Return the way of each needed passage; nothing without labels and grades.

    The pool is the first stage seen. Without a ``reranked`` stage nothing was selected, and a passage of the pool
    that the prompt lacks was cut from it. A text of a tool was delivered, whatever the stages hold.

    Example:
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> a, b = (Passage(id=name, text=name, rank=rank) for rank, name in enumerate("ab", start=1))
        >>> pools = (Pool(stage="retrieved", passages=(a, b)), Pool(stage="used", passages=(a,)))
        >>> relevance = PassageGrades(grades={"b": 5}, by="labels", is_whole=True, least=4)
        >>> followed(RagRecord(id="1", pools=pools), relevance).traces[0].place
        'prompt'
    """
    if relevance is None:
        return Needed()
    stages = _StageRanks(record, relevance)
    needed = sorted(
        (passage for passage in relevance.grades if relevance.is_needed(passage)),
        key=lambda passage: (-relevance.grades[passage], stages.pool.get(passage, len(stages.pool) + 1), passage),
    )
    are_all = relevance.is_whole or all(name in relevance.grades for name in relevance.ids(record.contexts))
    return Needed(relevance=relevance, traces=tuple(map(stages.trace, needed)), are_all_graded=are_all)


class _StageRanks:
    """Ranks by passage id in each stage; None for a stage that was not seen."""

    def __init__(self, record: RagRecord, relevance: PassageGrades) -> None:
        seen = {pool.stage: relevance.ids(pool.passages) for pool in record.pools[1:]}
        self.relevance = relevance
        self.pool = _ranks(relevance.ids(candidates(record)))
        self.selection = _ranks(seen["reranked"]) if "reranked" in seen else None
        self.prompt = _ranks(seen["used"]) if "used" in seen else None
        self.unranked = frozenset(relevance.ids(record.unranked_contexts))

    def trace(self, passage: str) -> Trace:
        """Return where a needed passage went."""
        return Trace(
            id=passage,
            grade=self.relevance.grades[passage],
            place=self._place(passage),
            rank=self.pool.get(passage),
            selected_rank=(self.selection or {}).get(passage),
        )

    def _place(self, passage: str) -> Place:
        if passage in self.unranked:
            return "delivered"
        if passage not in self.pool:
            delivered = self.prompt if self.prompt is not None else self.selection
            return "delivered" if delivered is not None and passage in delivered else "retrieval"
        if self.selection is not None and passage not in self.selection:
            worse = [other for other in self.selection if self._is_worse(other, passage)]
            return "rerank" if worse or not self.selection else "room"
        if self.prompt is None or passage in self.prompt:
            return "delivered"
        return "rerank" if self._is_demoted(passage) else "prompt"

    def _is_worse(self, other: str, passage: str) -> bool:
        return self.relevance.grades.get(other, 0) < self.relevance.grades[passage]

    def _is_demoted(self, passage: str) -> bool:
        """Tell whether the prompt ends before a passage that the selection put behind a worse one.

        The worse one stood behind it in the pool.
        """
        if self.selection is None:
            return False
        rank = self.selection[passage]
        if any(self.selection.get(other, 0) > rank for other in self.prompt or ()):
            return False
        ahead = [other for other, its in self.selection.items() if its < rank and self._is_worse(other, passage)]
        return any(self.pool.get(other, 0) > self.pool[passage] for other in ahead)


def _ranks(ids: Sequence[str]) -> dict[str, int]:
    """Return the first place of each id, from 1."""
    ranks: dict[str, int] = {}
    for place, passage in enumerate(ids, start=1):
        ranks.setdefault(passage, place)
    return ranks
