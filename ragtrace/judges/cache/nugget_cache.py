"""Nuggets that were made before: for the same query, passages and judge they are made once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ragtrace.judges.cache.grade_cache import joint_key, normal_form, text_key
from ragtrace.judges.cache.lru import Lru

if TYPE_CHECKING:
    from collections.abc import Collection

    from ragtrace.judges.base import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Nugget:
    """A fact of a few words that an answer to the query should hold."""

    text: str
    is_vital: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NuggetSet:
    """The nuggets of some passages for a query, vital ones first; `truncated` when the judge made more."""

    nuggets: tuple[Nugget, ...]
    truncated: bool = False


class NuggetCache(Protocol):
    """Keeps nuggets by key (`nugget_key`). Both methods are called on the event loop, so they must not wait."""

    def get(self, key: str) -> NuggetSet | None:
        """Return what was kept, None where there is nothing."""
        ...

    def put(self, key: str, nuggets: NuggetSet) -> None:
        """Keep nuggets; may forget others."""
        ...


@runtime_checkable
class RemembersNuggets(Protocol):
    """A judge with a cache of nuggets; `name` and `version` keep the nuggets of two judges apart."""

    name: str
    nugget_cache: NuggetCache

    def version(self, task: Task) -> str:
        """Return 8 hex digits over prompt, schema, model and parameters of a task."""
        ...


class NuggetLru:
    """Keeps the nuggets that were used last, in memory. Thread-safe.

    Args:
        max_sets: sets kept, at least 1; one of 20 nuggets takes about 4 KiB.

    Example:
        >>> cache = NuggetLru(max_sets=1)
        >>> cache.put("a", NuggetSet(nuggets=()))
        >>> cache.put("b", NuggetSet(nuggets=()))
        >>> cache.get("a") is None, len(cache)
        (True, 1)
    """

    def __init__(self, max_sets: int = 1_000) -> None:
        if max_sets < 1:
            raise ValueError(f"max_sets is at least 1, got {max_sets}")
        self._kept = Lru[NuggetSet](max_sets)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> NuggetSet | None:
        """Return what was kept, None where there is nothing; it counts as used now."""
        return self._kept.get(key)

    def put(self, key: str, nuggets: NuggetSet) -> None:
        """Keep nuggets, and forget those that were not used for longest when there are too many."""
        self._kept.put(key, nuggets)


def nugget_key(query: str, texts: Collection[str], judge: str) -> str:
    """Return the key of a query with a set of passages under a judge, as 64 hex digits.

    Neither the order of the passages nor copies among them count, nor how the query is spaced or composed.

    Args:
        query: the query.
        texts: texts of the passages.
        judge: name and versions of the judge.

    Example:
        >>> nugget_key("Where  is it?", ["a", "b"], "j") == nugget_key("Where is it? ", ["b", "a", "b"], "j")
        True
        >>> nugget_key("Where is it?", ["ab"], "j") == nugget_key("Where is it?", ["a", "b"], "j")
        False
    """
    return joint_key(normal_form(query), judge, *sorted(map(text_key, set(texts))))
