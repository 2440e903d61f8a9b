"""Grades of one judge in a cache."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace.judges.cache.grade_cache import CachedGrade, LabelCache, grade_key, text_key, universe_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.cache.grade_cache import GradeCache, LabelSet
    from ragtrace.model import Passage, RagRecord

_log = logging.getLogger("ragtrace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Known grades by passage id. `fault` says why the cache could not be read."""

    grades: Mapping[str, int] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class GradeMemory:
    """Reads and writes a cache for one judge.

    Coroutine-safe, as its cache is. A cache that fails costs calls, never a verdict: it is logged, and told in
    the details of the scores.

    Attributes:
        cache: where grades are kept; None remembers nothing.
        rubric: hash of the prompt with the scale; a judge that grades one by one has another than one in batches.
        judge: the model's fingerprint.
    """

    cache: GradeCache | None
    rubric: str
    judge: str

    @property
    def keeps_labels(self) -> bool:
        """True when the cache knows labels by query."""
        return isinstance(self.cache, LabelCache)

    async def recall(self, record: RagRecord, passages: Sequence[Passage]) -> Recalled:
        """Return the known grades of the passages. They join the labels of the record's corpus."""
        if self.cache is None:
            return Recalled()
        distinct = {passage.id: passage for passage in reversed(passages) if passage.text.strip()}
        keys = {name: self._key(record, passage) for name, passage in distinct.items()}
        try:
            found = await self.cache.get(list(keys.values()))
        except OSError as error:
            _log.warning("%s", error)
            return Recalled(fault=str(error))
        known = [(passage, found[keys[name]]) for name, passage in distinct.items() if keys[name] in found]
        fault = await self.keep(record, known) if isinstance(self.cache, LabelCache) else ""
        return Recalled(grades={passage.id: grade for passage, grade in known}, fault=fault)

    async def keep(self, record: RagRecord, grades: Sequence[tuple[Passage, int]]) -> str:
        """Keep grades; return why that failed, "" when it did not."""
        if self.cache is None or not grades:
            return ""
        universe = self._universe(record)
        kept = [
            CachedGrade(
                key=self._key(record, passage), grade=grade, universe=universe, passage=text_key(passage.text)
            )
            for passage, grade in grades
        ]
        try:
            await self.cache.put(kept)
        except OSError as error:
            _log.warning("%s", error)
            return str(error)
        return ""

    async def labelled(self, record: RagRecord) -> LabelSet | None:
        """Return the labels of the record's query in its corpus. None where the cache keeps no labels."""
        if not isinstance(self.cache, LabelCache):
            return None
        found: LabelSet | None = await self.cache.labels(self._universe(record))
        return found

    async def aclose(self) -> None:
        """Release the cache."""
        if self.cache is not None:
            await self.cache.aclose()

    def _key(self, record: RagRecord, passage: Passage) -> str:
        return grade_key(record.query, passage.text, self.rubric, self.judge)

    def _universe(self, record: RagRecord) -> str:
        corpus = repr((record.corpus, record.corpus_version))
        return universe_key(record.query, corpus, self.rubric, self.judge)
