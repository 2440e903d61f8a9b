"""Values that one run has met, with what was made of each: an object, a list, and the head of a longer list.

What a step is given is mostly what an earlier one gave out: a list of messages with one more behind them. Its head
is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import attrgetter, eq, is_, is_not
from typing import Any, NamedTuple

from msgspec import Struct

from ragtrace.capture.guard import is_equal
from ragtrace.text import is_vector

SHORTEST = 64  # parts of a head; those of a shorter list are looked up one by one, which takes 0.3 us each
_MOST_ALIKE = 4  # heads with the same first part: all that was found, and what was chosen of it
_MOST_COMPARED = 32  # objects of a head
_MOST_FIRST = 256  # first parts of heads
_MOST_PARTS = 262_144  # of the lists that are known again as a whole: 2 MB of references
_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))


class Met(Struct, gc=False):
    """An object that was met.

    Attributes:
        value: the object; as long as it is held, its id is no other's.
        made: what was made of it.
        holders: the object, and those in it that what was made depends on; None where it has to be read again.
        states: the ``vars`` of each when it was read.
    """

    value: Any
    made: Any
    holders: Sequence[Any] | None = None
    states: Sequence[Any] = ()


class Head(NamedTuple):
    """Parts that a list begins with.

    Attributes:
        parts: objects of the application.
        made: what was made of each.
        ends: how many of `holders` belong to the parts up to each.
        holders: of all parts, as in `Met`.
        states: of these.
    """

    parts: list[Any]
    made: list[Any]
    ends: list[int]
    holders: list[Any]
    states: list[Any]

    def first(self, most: int) -> Head:
        """Return the same with that many parts."""
        if most == len(self.parts):
            return self
        end = self.ends[most - 1] if most else 0
        return Head(self.parts[:most], self.made[:most], self.ends[:most], self.holders[:end], self.states[:end])


NONE = Head([], [], [], [], [])
_fields_of = attrgetter("__dict__")


class MetValues:
    """Values of one run that were met; an object stands for itself, never for one that is equal to it.

    An object whose ``vars`` are equal to its states is as it was. Texts and other leaves are the same objects in
    both, so that they are compared by their addresses: this takes a tenth of the time that it takes to read it.

    It grows with the objects of a run, and not with the lists that they stand in: of these it forgets the oldest.
    Thread-safe.

    Attributes:
        objects: by their ids.
    """

    def __init__(self) -> None:
        self.objects: dict[int, Met] = {}
        self._lists: dict[int, tuple[Any, list[Any], list[Any]]] = {}  # with what was made, and the parts, by id
        self._heads: dict[int, list[Head]] = {}  # by the id of the first part
        self._parts = 0  # of `_lists`

    def made_of(self, value: object) -> Any:
        """Return what was made of an object that nobody has changed since; else None."""
        known = self.objects.get(id(value))
        if known is None or known.holders is None:
            return None
        return known.made if _are_as_met(known.holders, known.states) else None

    def keep(
        self, value: object, made: Any, holders: Sequence[Any] | None = None, states: Sequence[Any] = ()
    ) -> Any:
        """Note what was made of an object, and return it; what is equal to that of before is that of before."""
        known = self.objects.get(id(value))
        if known is not None and is_equal(known.made, made):
            made = known.made
        self.objects[id(value)] = Met(value, made, holders, states)
        return made

    def list_made(self, value: object) -> list[Any] | None:
        """Return what was made of this very list; None where it was not met, or long ago."""
        known = self._lists.get(id(value))
        return None if known is None else known[1]

    def list_as_met(self, value: list[Any]) -> list[Any] | None:
        """Return what was made of this very list, where it has the same parts; else None."""
        known = self._lists.get(id(value))
        is_same = known is not None and len(known[2]) == len(value) and all(map(is_, known[2], value))
        return known[1] if known is not None and is_same else None

    def keep_list(self, value: object, made: list[Any], parts: list[Any]) -> None:
        """Note what was made of a list, and of which parts."""
        before = self._lists.pop(id(value), None)
        self._lists[id(value)] = value, made, parts
        self._parts += len(made) - (0 if before is None else len(before[1]))
        while self._parts > _MOST_PARTS and len(self._lists) > 1:
            try:
                oldest = self._lists.pop(next(iter(self._lists)), None)
            except (RuntimeError, StopIteration):  # another thread adds one
                return
            self._parts -= 0 if oldest is None else len(oldest[1])

    def head(self, parts: list[Any], *, is_shown: bool = False) -> Head:
        """Return the longest head of a list of which every part was met, and is as it was; else `NONE`.

        Of a long list some parts are compared, so that its length costs nothing: who writes into a list in place,
        as a reranker does, writes into all of it or into its first or last parts. Another change is met where the
        part is in a shorter list, in a prompt, or in what the run gives out.

        Args:
            parts: of the list.
            is_shown: a model is shown it, or a search found it: all parts are compared.

        Example:
            >>> from types import SimpleNamespace
            >>> met, parts = MetValues(), [SimpleNamespace(n=n) for n in range(99)]
            >>> made = [met.keep(one, str(one.n), [one], [vars(one).copy()]) for one in parts]
            >>> met.keep_head(parts, made, NONE)
            >>> met.head([*parts, {}]).made == made, met.head(parts[1:]).made
            (True, [])
            >>> parts[0].n = 7
            >>> met.head(parts).made
            []
        """
        if len(parts) < SHORTEST or (alike := self._heads.get(id(parts[0]))) is None:
            return NONE
        found, longest = NONE, 0
        for one in alike:
            if min(len(one.parts), len(parts)) > longest and (same := _same(one.parts, parts)) > longest:
                found, longest = one, same
        found = found.first(longest)
        holders, states = found.holders, found.states
        if len(holders) > _MOST_COMPARED and not is_shown:
            half = _MOST_COMPARED // 2
            step = len(holders) // half
            holders, states = [*holders[::step], *holders[-half:]], [*states[::step], *states[-half:]]
        return found if _are_as_met(holders, states) else NONE

    def forget_heads(self) -> None:
        """Look up each part of the next lists by itself."""
        self._heads.clear()

    def keep_head(self, parts: list[Any], made: list[Any], head: Head) -> None:
        """Note what was made of a list as the head of others, as far as its parts can be compared.

        Args:
            parts: of the list.
            made: of each.
            head: that it was known by.
        """
        known = len(head.parts)
        if known == len(parts) or len(parts) < SHORTEST:
            return
        ends, holders, states = head.ends.copy(), head.holders.copy(), head.states.copy()
        for part, one in zip(parts[known:], made[known:], strict=False):
            if part is not one or type(part) not in _SCALARS:
                met = self.objects.get(id(part))
                if met is None or met.holders is None or met.made is not one:
                    break
                holders += met.holders
                states += met.states
            ends.append(len(holders))
        if len(ends) < SHORTEST:
            return
        if len(self._heads) >= _MOST_FIRST:
            self._heads.clear()
        new = Head(parts[: len(ends)], made[: len(ends)], ends, holders, states)
        alike = self._heads.get(id(parts[0]), [])
        others = [one for one in alike if _same(one.parts, new.parts) < min(len(one.parts), len(ends))]
        self._heads[id(parts[0])] = [*others[1 - _MOST_ALIKE :], new]


def _are_as_met(holders: Sequence[Any], states: Sequence[Any]) -> bool:
    try:
        return all(map(eq, map(_fields_of, holders), states))
    except Exception:  # an application's object may raise anything when it is compared
        return False


def _same(some: list[Any], others: list[Any]) -> int:
    """Return how many parts two lists begin with that are the same objects."""
    if all(map(is_, some, others)):
        return min(len(some), len(others))
    return next(compress(count(), map(is_not, some, others)))


def as_now(value: Any, most: int, depth: int = 8) -> Any:
    """Return a copy of lists and mappings with the same leaves, vectors among these; None of one that is too large.

    Example:
        >>> leaf = object()
        >>> copied = as_now({"a": [leaf]}, 100)
        >>> copied == {"a": [leaf]}, as_now([1, 2, 3], 2) is None
        (True, True)
    """
    room = [most]
    try:
        return _as_now(value, room, depth)
    except _TooLarge:
        return None


class _TooLarge(Exception):
    """A value has more parts than may be compared."""


def _as_now(value: Any, room: list[int], depth: int) -> Any:
    if not isinstance(value, list | dict | tuple):
        return value
    if not isinstance(value, dict) and is_vector(value):
        return value
    room[0] -= len(value)
    if room[0] < 0 or depth < 0:
        raise _TooLarge
    if isinstance(value, dict):
        parts = list(value.items())  # at once: another thread may add to it
        return {key: _as_now(part, room, depth - 1) for key, part in parts}
    copied = [_as_now(part, room, depth - 1) for part in value]
    return tuple(copied) if isinstance(value, tuple) else copied
