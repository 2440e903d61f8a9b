"""State of a service after its shutdown, and the line that tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ONE = {"spans": "span", "events": "event", "metrics": "metrics report"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownReport:
    """State of the parts of a service once they were ended.

    `is_whole` and the text are made of the same values, so that neither says what the other denies.

    Attributes:
        unscored: traces of this process that were sampled and have no scores, and that no queue keeps.
        why: the cause for which the judge gives no scores; "" without one.
        is_scored: False where pipeline, scorer or queue did not end, or where another process scores.
        unended: parts that did not end in time, or failed: ``the scorer``, ``metrics``, ``the sink PhoenixSink``.
        unsent: items that are owed to a receiver, by signal.
        unheard: items for the default address, where no collector listened, by signal.
        sent: items that a receiver took.
        undelivered: what sinks did not deliver, in words.
        keeper: ``spool`` or ``queue``, where units outlive this process; "" without one.
        waiting: units that are known to wait there.
        unwritten: units that it did not take.
        has_store: whether a store keeps the scores.

    Example:
        >>> report = ShutdownReport(unscored=2, why="judge:80 has not answered for 3 s", sent=4)
        >>> report.is_whole, str(report)
        (False, 'not scored: 2 traces (judge:80 has not answered for 3 s); everything captured was sent')
        >>> str(ShutdownReport(is_scored=False, unended=["the scorer"], unsent={"spans": 1}, sent=4))
        'not ended: the scorer; not sent: 1 span'
    """

    unscored: int = 0
    why: str = ""
    is_scored: bool = True
    unended: Sequence[str] = ()
    unsent: Mapping[str, int] = field(default_factory=dict)
    unheard: Mapping[str, int] = field(default_factory=dict)
    sent: int = 0
    undelivered: Sequence[str] = ()
    keeper: str = ""
    waiting: int = 0
    unwritten: int = 0
    has_store: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost, and nothing is owed but what a spool or a queue keeps."""
        return not (self.unscored or self.unwritten or self.unended or self.unsent or self.undelivered)

    def __str__(self) -> str:
        return "; ".join([*self._scoring(), *self._sending(), *self._keeping()])

    @property
    def _because(self) -> str:
        return f" ({self.why})" if self.why else ""

    def _scoring(self) -> Iterator[str]:
        if self.unscored:
            yield f"not scored: {count_text(self.unscored, 'trace')}{self._because}"
        elif self.is_scored and not self.waiting:
            yield "every sampled trace was scored"
        if self.unended:
            yield f"not ended: {', '.join(self.unended)}"

    def _sending(self) -> Iterator[str]:
        if self.unsent:
            yield f"not sent: {_counted(self.unsent)}"
        if self.unheard:
            yield f"not sent, as no collector answers: {_counted(self.unheard)}"
        if self.sent and not (self.unsent or self.unheard or self.unended or self.undelivered):
            yield "everything captured was sent"
        yield from (one if self.has_store else f"{one}, lost" for one in self.undelivered)

    def _keeping(self) -> Iterator[str]:
        if self.unwritten:
            lost = count_text(self.unwritten, "unit")
            yield f"{lost} not written to the {self.keeper}, lost; what it has confirmed is kept"
        elif self.waiting:
            units = count_text(self.waiting, "unit")
            yield f"{units} in the {self.keeper}{self._because}, kept for the next scorer"
        elif self.keeper:
            yield f"what waits in the {self.keeper} is kept"
        if self.has_store:
            yield "scores in the store are kept"


def _counted(items: Mapping[str, int]) -> str:
    return ", ".join(count_text(count, _ONE[signal]) for signal, count in items.items())
