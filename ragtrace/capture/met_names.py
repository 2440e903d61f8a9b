"""Names that the runs of a process met, beside those that were declared: one that none of them met is misspelt."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping

_log = logging.getLogger("ragtrace")
RUNS = 20  # after which what none of them met is told
MOST_NAMES = 256
_MOST_SETS = 64  # of declarations, of one process
_MOST_TOLD = 8


class MetNames:
    """Names that the runs under one set of declarations met; after 20 runs it says once which ones are missing.

    It has no lock: a run that two threads count at once may be missing from the 20.
    """

    def __init__(self) -> None:
        self._runs = 0
        self._names: set[str] = set()  # of steps
        self._fields: set[str] = set()
        self._looked: dict[str, int] = {}  # runs in which a place was looked at
        self._held: set[str] = set()  # places that held something

    def count(
        self,
        wanted: Collection[tuple[str, str, bool]],
        met: Collection[str],
        fields: Collection[str],
        places: Mapping[str, bool],
        *,
        is_counted: bool = True,
    ) -> None:
        """Take a run.

        Args:
            wanted: what is declared: the argument, its name or place, and whether that is a place.
            met: names of steps in the run.
            fields: names of fields in what these handed on.
            places: those that were looked at, and whether they held something.
            is_counted: it is one of the 20.
        """
        if self._runs >= RUNS:
            return
        own = {name for _, name, is_place in wanted if not is_place}
        for new, known in ((met, self._names), (fields, self._fields)):
            known.update(own.intersection(new))  # also where there is no room for others
            known.update(islice(sorted(set(new) - known), max(MOST_NAMES - len(known), 0)))
        self._held.update(place for place, is_held in places.items() if is_held)
        if not is_counted:
            return
        self._runs += 1
        for place in places:
            self._looked[place] = self._looked.get(place, 0) + 1
        if self._runs == RUNS:
            for line in self._missing(wanted):
                _log.warning("%s", line)

    def _missing(self, wanted: Collection[tuple[str, str, bool]]) -> list[str]:
        found = []
        for argument, name, is_place in dict.fromkeys(wanted):
            if is_place and self._looked.get(name, 0) >= RUNS and name not in self._held:
                found.append(
                    f"{argument}: `{name}` held nothing in {RUNS} of {RUNS} runs{_near(name, self._fields)}"
                )
            elif not is_place and name not in self._names:
                found.append(f"{argument}: `{name}` was in none of {RUNS} runs{_near(name, self._names)}")
        return found


def _near(name: str, met: Iterable[str]) -> str:
    """Return the names that were met, the nearest first."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - for wrong names alone

    def nearness(other: str) -> float:
        return SequenceMatcher(None, name.rpartition(".")[2].lower(), other.lower()).ratio()

    names = sorted(filter(None, met), key=lambda other: (-nearness(other), other))
    return f"; met: {', '.join(names[:_MOST_TOLD])}" if names else ""


_by_declared: dict[Hashable, MetNames] = {}


def met_of(declared: Hashable) -> MetNames:
    """Return what the runs of this process met under a set of declarations; the oldest of many sets goes."""
    known = _by_declared.get(declared)
    if known is None:
        known = _by_declared.setdefault(declared, MetNames())
        for old in list(_by_declared)[:-_MOST_SETS]:
            _by_declared.pop(old, None)
    return known
