"""The intake of a receiver: spans into traces, traces into units of the service's queue."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from ragtrace.ingest.assembly.assembler import Assembler, AssemblyLimits
from ragtrace.ingest.base import is_own_evaluation
from ragtrace.model.printable import count_text
from ragtrace.service.intake.foreign import ForeignScores
from ragtrace.service.intake.hints import Hints
from ragtrace.service.intake.units import TraceUnits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.ingest.base import RawLog, RawSpan
    from ragtrace.service.service import Service

_LOOK_EVERY_S = 0.25
_FULL = 0.9  # of the assembler's bounds: what is under way still finds room
_QUEUE_FULL = 0.95
_RETRY_S = 5.0
_BATCH = 128
_WORDS = {
    "duplicate": ("span", "sent twice"),
    "evicted": ("trace", "dropped for room"),
    "invalid": ("span", "rejected (bad ids or too large)"),
    "label_bad_value": ("label", "rejected (value not in 0 to 1)"),
    "label_foreign": ("label", "of other judges"),
    "label_human": ("label", "of people"),
    "label_no_name": ("label", "rejected (no name)"),
    "label_no_store": ("label", "not kept (no --store)"),
    "label_no_trace": ("label", "rejected (no trace id)"),
    "label_unknown_word": ("label", "rejected (unknown word)"),
    "late": ("span", "too late"),
    "no_root": ("trace", "without a root"),
    "oversized": ("span", "beyond a trace's size"),
    "unchanged": ("run", "that late spans did not change"),
}


class TraceIntake:
    """Takes what a receiver decoded, and puts drawn traces into the queue of a service.

    Any thread may call it. One thread of its own closes traces; it is the only one that draws.

    Args:
        service: draws, counts, queues and scores.
        limits: of the assembly.
        say: takes one line for a person; each is said once.

    Attributes:
        assembler: holds open traces.
        counts: spans and traces that ended otherwise than in a unit, by reason.

    Example:
        >>> import ragtrace
        >>> from ragtrace.service import runtime
        >>> ragtrace.configure(sample_rate=1.0)
        >>> intake = TraceIntake(runtime.current())
        >>> intake.is_wanted(bytes(range(16))), intake.retry_after_s()
        (True, None)
        >>> intake.close()
    """

    def __init__(
        self,
        service: Service,
        *,
        limits: AssemblyLimits | None = None,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._service = service
        self.assembler = Assembler(limits)
        storing = service.storing
        self._foreign = ForeignScores(None if storing is None else storing.rate, say)
        self._units = TraceUnits(service, self.assembler, self._foreign, Hints(say))
        self.counts: Counter[str] = Counter()
        self._stop = threading.Event()
        self._work = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="ragtrace-intake", daemon=True)

    def start(self) -> None:
        """Start the thread that closes traces."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether that thread runs."""
        return self._thread.is_alive()

    def is_wanted(self, trace_id: bytes) -> bool:
        """Say by its id whether a trace may be drawn."""
        return self._units.is_wanted(trace_id)

    def retry_after_s(self) -> float | None:
        """Return the seconds after which a sender may try again; None while assembly and queue have room."""
        if self.assembler.fill >= _FULL:
            return max(self.assembler.limits.settle_s, 1.0)
        for part in self._service.queue.stats():
            size, capacity = part.fill
            if size >= _QUEUE_FULL * capacity:
                return _RETRY_S
        return None

    def put_spans(self, spans: Sequence[RawSpan], *, skipped_roots: int, rejected: int = 0) -> int:
        """Take the spans of one request, and return how many were rejected. Our own evaluations are ignored."""
        self._units.skip(skipped_roots)
        self.assembler.count("invalid", rejected)
        return self.assembler.put([raw for raw in spans if not is_own_evaluation(raw)]).rejected

    def put_logs(self, logs: Sequence[RawLog]) -> Sequence[str]:
        """Take evaluation results of others, and return a reason for each rejected one."""
        return self._foreign.take_logs(logs)

    def close(self) -> None:
        """Close every trace: those with a root become units, the others are dropped (``shutdown``)."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._close_due(is_ending=True)

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            self._close_due()

    def _close_due(self, *, is_ending: bool = False) -> None:
        with self._work:
            # A batch at a time: what waits behind it still counts against the bounds, so that senders hear of it.
            while found := self.assembler.due(is_ending=is_ending, most=_BATCH):
                for trace in found:
                    for unit in self._units.units_of(trace):
                        self._service.pipeline.enqueue(unit)
                self._count()
            self._count()

    def _count(self) -> None:
        """Take the counts of all parts, and export what is new."""
        before = self.counts.copy()
        self.counts += self.assembler.take_counts()
        self.counts["unchanged"] += self._units.unchanged
        self._units.unchanged = 0
        self.counts.update({name: n - before[name] for name, n in self._foreign.counts.items()})
        for reason, count in self.counts.items():
            if count > before[reason]:
                self._service.instruments.assembly(reason, count - before[reason])

    def report(self) -> str:
        """Return the open traces, and the counts so far, as a person reads them."""
        with self._work:
            counts = sorted(self.counts.items())
        shown = ", ".join(_in_words(name, n) for name, n in counts if n)
        opened = f"{count_text(self.assembler.open_traces, 'trace')} open"
        if waiting := self.assembler.rootless_traces:
            opened += f" ({waiting} without a root yet, for {self.assembler.limits.longest_s:.0f} s at most)"
        return opened + (f"; {shown}" if shown else "")


def _in_words(name: str, count: int) -> str:
    noun, rest = _WORDS.get(name, (None, name))
    return f"{count if noun is None else count_text(count, noun)} {rest}"
