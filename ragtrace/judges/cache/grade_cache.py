"""Grades in memory, and the contract of a cache.

A cache keeps hashes and numbers, never a text. Two forms: `GradeLru` in memory, and `GradeFile` (SQLite), which
several processes share and which knows all that was ever graded for a query: the universe ``cache``.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ragtrace.judges.cache.lru import Lru

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.base import Grades
    from ragtrace.model import Passage, RagRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedGrade:
    """One grade to keep.

    Attributes:
        key: `grade_key` of query, passage and judge.
        grade: 1 to 5.
        universe: `universe_key` of the query, under which a file gathers labels.
        passage: `text_key` of the passage's text.
    """

    key: str
    grade: int
    universe: str
    passage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSet:
    """All grades for one query, by one judge, in one corpus.

    Attributes:
        grades: grade by `text_key`; the same text under two ids counts once.
        version: number of the youngest label; it grows with every new one, and names the set for good.
        grown_at: Unix seconds of that label.
        frozen: the number at which the file was frozen, None while sets may grow.
    """

    grades: Mapping[str, int]
    version: int
    grown_at: float
    frozen: int | None = None


class GradeCache(Protocol):
    """Keeps grades by key.

    It is awaited on the event loop, and two coroutines may put the same key. A cache that cannot read or write
    raises OSError: the judge is then asked as if nothing were kept.
    """

    async def get(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Return the grades that are known, by key."""
        ...

    async def put(self, grades: Sequence[CachedGrade]) -> None:
        """Keep grades; may forget others."""
        ...

    async def aclose(self) -> None:
        """Release files and connections."""
        ...


@runtime_checkable
class LabelCache(GradeCache, Protocol):
    """A cache of grades that also knows all labels of a query."""

    async def labels(self, universe: str) -> LabelSet | None:
        """Return the labels under a `universe_key`, None without any. Raises OSError."""
        ...


@runtime_checkable
class PassageGrader(Protocol):
    """A judge that grades passages beyond those of the record's pool."""

    async def grade_passages(
        self,
        record: RagRecord,
        passages: Sequence[Passage],
        *,
        enough_fives: int | None = None,
        may_repair: bool = True,
    ) -> Grades:
        """Return grades by passage id; blank passages get none. Raises JudgeError.

        Args:
            record: the record with the query.
            passages: the passages to grade.
            enough_fives: stop once so many have a 5.
            may_repair: False where the evaluation that this goes on with has had its one repair.
        """
        ...


@runtime_checkable
class LabelKeeper(Protocol):
    """A judge that may keep its grades by query.

    Attributes:
        keeps_labels: whether it does: it has a file to keep it in.
    """

    @property
    def keeps_labels(self) -> bool:
        """True with a file."""
        ...

    async def labelled(self, record: RagRecord) -> LabelSet | None:
        """Return all labels of the record's query in its corpus. None where the judge keeps none."""
        ...


class GradeLru:
    """Keeps the grades that were used last, in memory. Thread-safe.

    Args:
        max_grades: grades kept, at least 1; 10,000 take about 2 MB.
    """

    def __init__(self, max_grades: int = 10_000) -> None:
        if max_grades < 1:
            raise ValueError(f"max_grades is at least 1, got {max_grades}")
        self._kept = Lru[int](max_grades)

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, keys: Sequence[str]) -> Mapping[str, int]:
        """Return the grades that are known; they count as used now."""
        return {key: grade for key in keys if (grade := self._kept.get(key)) is not None}

    async def put(self, grades: Sequence[CachedGrade]) -> None:
        """Keep grades, and forget the least recently used ones."""
        for item in grades:
            self._kept.put(item.key, item.grade)

    async def aclose(self) -> None:
        """Nothing is held."""


def normal_form(query: str) -> str:
    """Return a query composed and with single spaces; case counts."""
    return " ".join(unicodedata.normalize("NFC", query).split())


def text_key(text: str) -> str:
    """Return the key of a passage's text, as 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def joint_key(*parts: str) -> str:
    """Return the key of several texts in order, as 64 hex digits."""
    return text_key("\0".join(map(text_key, parts)))


def grade_key(query: str, text: str, rubric: str, judge: str) -> str:
    """Return the key of a grade, as 64 hex digits.

    Args:
        query: the query; neither spacing nor composition counts.
        text: the passage, to the letter.
        rubric: hash of the prompt, with the scale.
        judge: the model's fingerprint.
    """
    return joint_key(normal_form(query), text, rubric, judge)


def universe_key(query: str, corpus: str, rubric: str, judge: str) -> str:
    """Return the key of a query's labels, as 64 hex digits.

    Args:
        query: the query.
        corpus: name and version of the index; each index has labels of its own.
        rubric: as for `grade_key`.
        judge: as for `grade_key`.
    """
    return joint_key("universe", normal_form(query), corpus, rubric, judge)
