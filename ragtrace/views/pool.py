"""The passages of a run, each once, with its place in every stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import Passage, RagRecord, Stage

STAGES: tuple[Stage, ...] = ("retrieved", "reranked", "used")


@dataclass(slots=True)
class PooledPassage:
    """One passage with its place, from 1, in each stage that holds it; a text without rank has none."""

    key: str
    passage: Passage
    places: dict[Stage, int] = field(default_factory=dict)
    scores: dict[Stage, float] = field(default_factory=dict)


def pooled(record: RagRecord) -> list[PooledPassage]:
    """Return the passages of all stages, in the order of the first stage that holds each; then texts without rank.

    Example:
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> one, other = Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)
        >>> pools = (Pool(stage="retrieved", passages=(one, other)), Pool(stage="used", passages=(other,)))
        >>> [(it.key, it.places) for it in pooled(RagRecord(id="1", pools=pools))]
        [('a', {'retrieved': 1}), ('b', {'retrieved': 2, 'used': 1})]
    """
    found: dict[str, PooledPassage] = {}
    by_text: dict[str, str] = {}
    for stage in STAGES:
        for place, passage in enumerate(record.pool(stage), start=1):
            key = _same(passage, found, by_text)
            it = found.setdefault(key, PooledPassage(key, passage))
            by_text.setdefault(passage.text, key)
            it.places.setdefault(stage, place)
            if passage.score is not None:
                it.scores.setdefault(stage, passage.score)
    for passage in record.unranked_contexts:
        key = _same(passage, found, by_text)
        found.setdefault(key, PooledPassage(key, passage))
        by_text.setdefault(passage.text, key)
    return list(found.values())


def _same(passage: Passage, known: Mapping[str, PooledPassage], by_text: Mapping[str, str]) -> str:
    """Return the id of a listed passage; in files a context may have only its text."""
    if passage.id in known or not passage.text:
        return passage.id
    return by_text.get(passage.text, passage.id)
