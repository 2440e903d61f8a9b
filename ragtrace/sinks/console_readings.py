"""Print what capture read of a workflow's first runs, and of each new shape of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ragtrace.capture import guarded
from ragtrace.model.printable import printable
from ragtrace.model.reading import preview

if TYPE_CHECKING:
    from ragtrace.model import RagRecord
    from ragtrace.model.reading import Reading

_RUNS = 3  # of a workflow that are shown whatever their shape
_MOST_WORKFLOWS = 256
_MOST_SHAPES = 16  # of a workflow; it is told of no more of them


class ConsoleReadings:
    """Writes the preview of a run to standard error where a person has not seen its like.

    Shown are the first three runs of a workflow, and the first run of each shape. Memory is bounded: beyond 256
    workflows or 16 shapes of one nothing more is shown. Thread-safe.
    """

    def __init__(self) -> None:
        self._runs: dict[str, int] = {}
        self._shapes: dict[str, set[int]] = {}

    @guarded
    def remember(self, record: RagRecord) -> None:
        """Take one captured run, and write its lines where they are new; a later revision is no run of its own."""
        if record.reading is None or record.revision:
            return
        if self._is_new(record.workflow, shape_of(record.reading)):
            sys.stderr.write(readings_text(record.workflow, record.reading))  # in one call: others write here too
            sys.stderr.flush()

    def _is_new(self, workflow: str, shape: int) -> bool:
        if workflow not in self._runs and len(self._runs) >= _MOST_WORKFLOWS:
            return False
        runs = self._runs[workflow] = self._runs.get(workflow, 0) + 1
        shapes = self._shapes.setdefault(workflow, set())
        if shape in shapes:
            return runs <= _RUNS
        if len(shapes) >= _MOST_SHAPES:
            return False
        shapes.add(shape)
        return True


def shape_of(reading: Reading) -> int:
    """Return a number for what was read and not how much: places, names, kinds and how each is known.

    The order of sources and signs is none of it, since tools that run side by side end in any order.

    Example:
        >>> from ragtrace.model.reading import Reading, Source
        >>> shapes = {shape_of(Reading(sources=(Source("faq", "search", passages=n),))) for n in (1, 5)}
        >>> len(shapes), shape_of(Reading()) in shapes
        (1, False)
    """
    question = reading.question
    return hash(
        (
            None if question is None else (question.place, question.how),
            tuple((one.place, one.how) for one in reading.answers),
            frozenset((one.name, one.kind, one.how) for one in reading.sources),
            frozenset((sign.name, sign.about) for sign in reading.signs),
            reading.roots[:1],
        )
    )


def readings_text(workflow: str, reading: Reading) -> str:
    r"""Return the lines of one run, each with its end.

    Example:
        >>> from ragtrace.model.reading import Found, Reading
        >>> print(readings_text("faq", Reading(Found("input.question"), (Found("output"),))), end="")
        ragtrace: faq: question from input.question; answer from output
          evidence: none
    """
    first, *others = preview(reading)
    lines = [f"ragtrace: {workflow}: {first}", *(f"  {line}" for line in others)]
    return "".join(f"{printable(line)}\n" for line in lines)
