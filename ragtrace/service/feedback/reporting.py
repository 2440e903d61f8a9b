"""Export people's ratings as a counter and events, and their agreement with the judge as gauges."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from ragtrace import semconv
from ragtrace.capture import guarded
from ragtrace.service.feedback.within_runs import labels_of
from ragtrace.stores.base import FOREIGN, GOOD
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.util.types import AttributeValue

    from ragtrace.model import RagRecord
    from ragtrace.stores.agreement import Agreement
    from ragtrace.stores.base import Label
    from ragtrace.telemetry.metrics.instruments import Instruments
    from ragtrace.telemetry.spans.evaluation import EvaluationWriter

    Point = tuple[float, dict[str, AttributeValue]]

_REMEMBERED = 5_000  # runs, and ratings: about 1 MB each
_COMPARED_EVERY_S = 300.0


class _RecentRun(NamedTuple):
    workflow: str
    span_id: str


class FeedbackReport:
    """Counts each rating once, when it is taken, and writes an event with the context of its run.

    The run of a rating is known while it is among the last 5,000 of this process, or where the store has its
    scores; another one is counted under the workflow ``""``. Of the last 5,000 ratings one that is given again is
    ignored, one with another comment is an event alone, and one that turns from good to bad, or back, counts
    again. Thread-safe.

    Args:
        instruments: get the counter.
        writer: writes the events.
        agreement: reads the comparison of ratings and scores; None where no store keeps both.
        stored_run: reads the workflow and the span id of a trace's run; None without a store.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        instruments: Instruments,
        writer: EvaluationWriter,
        *,
        agreement: Callable[[], Sequence[Agreement]] | None = None,
        stored_run: Callable[[str], tuple[str, str] | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._instruments = instruments
        self._writer = writer
        self._read = agreement
        self._stored_run = stored_run
        self._clock = clock
        self._runs: OrderedDict[str, _RecentRun] = OrderedDict()
        self._given: OrderedDict[tuple[str, str, str], tuple[float, str | None]] = OrderedDict()
        self._found: Sequence[Agreement] = ()
        self._due_s = float("-inf")

    def remember(self, record: RagRecord) -> None:
        """Note a run, and report the ratings that the application gave within it."""
        workflow = self._instruments.workflow(record)
        self._runs[record.trace_id] = _RecentRun(workflow, record.span_id)
        if len(self._runs) > _REMEMBERED:
            self._runs.popitem(last=False)
        for label in labels_of(record):
            self._report(label)

    @guarded
    def rated(self, labels: Sequence[Label]) -> None:
        """Report people's ratings that were written to the store."""
        for label in labels:
            if not label.rater.startswith(FOREIGN):
                self._report(label)

    @guarded
    def compare(self) -> None:
        """Compare ratings and scores in the store, every 5 minutes; call it as often as you like."""
        if self._read is not None and self._clock() >= self._due_s:
            self._due_s = self._clock() + _COMPARED_EVERY_S
            self._found = self._read()

    def readers(self) -> dict[str, Callable[[], list[Point]]]:
        """Return a function for each gauge of agreement, which gives its points by metric and judge."""
        if self._read is None:
            return {}
        return {
            semconv.FEEDBACK_AGREEMENT: lambda: [(found.agreed / found.n, _about(found)) for found in self._found],
            semconv.FEEDBACK_AGREEMENT_N: lambda: [(float(found.n), _about(found)) for found in self._found],
        }

    def _report(self, label: Label) -> None:
        key, given = (label.trace_id, label.metric, label.rater), (label.value, label.comment)
        before, is_good = self._given.get(key), label.value >= GOOD
        if given == before:
            return
        self._given[key] = given
        if len(self._given) > _REMEMBERED:
            self._given.popitem(last=False)
        run = self._run_of(label)
        if before is None or (before[0] >= GOOD) != is_good:
            self._instruments.feedback(run.workflow, label.metric, is_good=is_good)
        self._writer.write_feedback(
            label.trace_id, run.span_id, label.metric, label.value, label.comment, is_good=is_good
        )

    def _run_of(self, label: Label) -> _RecentRun:
        if (known := self._runs.get(label.trace_id)) is not None:
            return known
        workflow, span_id = (self._stored_run and self._stored_run(label.trace_id)) or ("", "")
        return _RecentRun(self._instruments.bounded_workflow(workflow), label.span_id or span_id)


def _about(found: Agreement) -> dict[str, AttributeValue]:
    return clean_attributes(
        {
            semconv.GEN_AI_EVALUATION_NAME: found.metric,
            semconv.JUDGE_MODEL: found.judge,
            semconv.JUDGE_VERSION: found.version,
        }
    )
