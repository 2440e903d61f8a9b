"""The order in which spans have to be made: a parent before its children."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import Step


def parents_first(steps: Sequence[Step]) -> list[int]:
    """Return the places of steps so that each stands behind the step its `parent_key` names.

    A parent that does not exist, or a circle of parents, leaves the steps of it under the root.

    Example:
        >>> from ragtrace.capture import Retrieval
        >>> leaf = Retrieval(started_ns=2, ended_ns=3, query="", passages=(), key="b", parent_key="a")
        >>> whole = Retrieval(started_ns=1, ended_ns=4, query="", passages=(), key="a")
        >>> parents_first([leaf, whole])
        [1, 0]
    """
    if not any(step.parent_key for step in steps):
        return list(range(len(steps)))
    first: dict[str, int] = {}
    for place, step in enumerate(steps):
        if step.key:
            first.setdefault(step.key, place)
    ordered: dict[int, None] = {}
    for place in range(len(steps)):
        line = [place]
        while (parent := first.get(steps[line[-1]].parent_key or "")) is not None and parent not in line:
            line.append(parent)
        ordered.update(dict.fromkeys(reversed(line)))
    return list(ordered)
