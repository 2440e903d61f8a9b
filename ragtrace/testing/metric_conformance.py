"""Conformance suite for metrics: subclass it in a test module, and pytest runs the rest. pytest is not imported."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, ClassVar, get_args

from msgspec.structs import replace

from ragtrace.judges.offline.embedder import OverlapEmbedder
from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.metrics.base import Need
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.evaluate import evaluate
from ragtrace.model import Labels, Passage, Pool, RagRecord
from ragtrace.testing.comparing import same

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.metrics.base import Metric
    from ragtrace.model import MetricResult

_TEXTS = ("The lab is in Oslo.", "It opened in 2010.", "Bread is baked daily.")
_PASSAGES = tuple(
    Passage(id=f"p{rank}", text=text, rank=rank, score=1.0 - rank / 10) for rank, text in enumerate(_TEXTS, start=1)
)
WHOLE = RagRecord(
    id="whole",
    query="Where is the lab?",
    answer="The lab is in Oslo.",
    pools=(Pool(stage="retrieved", passages=_PASSAGES), Pool(stage="used", passages=_PASSAGES[:2])),
    reference="In Oslo.",
    labels=Labels(grades={"p1": 5, "p2": 3, "p3": 1}),
)
# A record without one input of a metric; a judge and the like are absent where the context has none.
_WITHOUT: Mapping[Need, RagRecord] = {
    "query": replace(WHOLE, query=""),
    "answer": replace(WHOLE, answer=""),
    "contexts": replace(WHOLE, pools=()),
    "pool": replace(WHOLE, pools=()),
    "reference": replace(WHOLE, reference=None),
    "labels": replace(WHOLE, labels=None),
}
_ODD = (
    WHOLE,
    RagRecord(id="empty"),
    replace(WHOLE, answer=" \n\t", query="?"),
    replace(WHOLE, answer="[1] [99] \x00 \ufffd 日曜日 " * 50),
    replace(WHOLE, pools=(Pool(stage="used", passages=(Passage(id="", text="", rank=1),)),)),
    replace(WHOLE, labels=Labels(grades={"elsewhere": 5})),
    replace(WHOLE, outcome="partial"),
    replace(WHOLE, is_answer_expected=False, answer=""),
)


class MetricConformance:
    """Checks one metric: its spec, its range, missing inputs, odd records and concurrent use.

    A metric that asks an LLM gets one from `context`; the default context has the offline judge and embedder.

    Attributes:
        metric: the metric under test.

    Example:
        >>> from ragtrace.metrics.registry import select
        >>> class TestMeanReciprocalRank(MetricConformance):
        ...     metric = select(["mrr"])[0]
        >>> TestMeanReciprocalRank().test_values_stay_in_range()
    """

    metric: ClassVar[Metric]

    def context(self, record: RagRecord) -> EvalContext:
        """Return the context in which a record is evaluated."""
        return EvalContext(record, judge=OverlapJudge(), embedder=OverlapEmbedder())

    def records(self) -> Sequence[RagRecord]:
        """Return the records that are evaluated; add those that are hard for this metric."""
        return _ODD

    def test_the_spec_is_complete(self) -> None:
        """Name, summary, source, inputs and outputs are given, and outputs have a range."""
        spec = self.metric.spec
        same("a name in lower case", spec.name, spec.name.lower().replace(" ", "_"))
        same(
            "empty texts", [name for name in ("name", "summary", "source", "calls") if not getattr(spec, name)], []
        )
        same("unknown needs", set(spec.needs) - {*get_args(Need)}, set())
        same("required inputs that are no needs", {*(spec.required or ())} - {*spec.needs}, set())
        names = [output.name for output in spec.outputs]
        same("outputs of one name", len(names) - len(set(names)), 0)
        same("has outputs", bool(names), expected=True)
        same("outputs without a range", [one.name for one in spec.outputs if not one.low < one.high], [])

    def test_values_stay_in_range(self) -> None:
        """Every value is finite and within the range of its output."""
        ranges = {output.name: (output.low, output.high) for output in self.metric.spec.outputs}
        for record in self.records():
            for result in self._results(record):
                low, high = ranges[result.name]
                is_inside = result.value is None or (math.isfinite(result.value) and low <= result.value <= high)
                same(f"{result.name} of {record.id} in [{low}, {high}]: {result.value}", is_inside, expected=True)

    def test_a_missing_input_is_na(self) -> None:
        """A record without a required input has the state ``na`` and a reason."""
        spec = self.metric.spec
        for need in spec.needs if spec.required is None else spec.required:
            if need in _WITHOUT:
                results = self._results(_WITHOUT[need])
                states = {(result.state, result.value) for result in results}
                same(f"without {need}", states, {("na", None)})
                same(f"reasons without {need}", all(result.reason for result in results), expected=True)

    def test_no_exception_escapes(self) -> None:
        """No record makes the metric raise anything but a JudgeError."""
        for record in self.records():
            reasons = {result.reason for result in self._results(record)}
            same(f"internal errors of {record.id}", reasons & {"internal_error"}, set())

    def test_the_same_record_gives_the_same_result(self) -> None:
        """Two evaluations agree."""
        for record in self.records():
            same(f"results of {record.id}", _numbers(self._results(record)), _numbers(self._results(record)))

    def test_many_at_once(self) -> None:
        """Evaluations that run at once on one event loop do not mix."""
        records = list(self.records())

        async def all_at_once() -> list[list[MetricResult]]:
            return await asyncio.gather(*(evaluate([self.metric], self.context(record)) for record in records))

        alone = [_numbers(self._results(record)) for record in records]
        same("results at once", [_numbers(results) for results in asyncio.run(all_at_once())], alone)

    def _results(self, record: RagRecord) -> list[MetricResult]:
        return asyncio.run(evaluate([self.metric], self.context(record)))


def _numbers(results: Sequence[MetricResult]) -> list[tuple[str, str, float | None, str | None]]:
    return [(result.name, result.state, result.value, result.reason) for result in results]
