"""What a metric is: a spec, and one coroutine from a context to results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ragtrace.model import MetricResult, Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.base import Task
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import RagRecord, State

Need = Literal["query", "answer", "contexts", "pool", "reference", "labels", "judge", "embedder", "pairs", "runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Scale):
    """One exported number of a metric: its name, and its scale with the default threshold.

    `threshold` None: no pass or fail label, and no ``low.w`` counter (METRICS.md 0.9).
    """

    name: str
    threshold: float | None = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """What the registry, the CLI list, the docs table and the dashboards read of a metric.

    Attributes:
        name: what a person selects it by.
        aliases: other names a person may select it by.
        summary: one sentence.
        needs: inputs it reads, in the order in which their absence is reported; ``runs`` are several records of one
            query, which no single record has (`ragtrace.metrics.consistency.runs`).
        required: the needs whose absence alone makes it ``na``; None means all of `needs`.
        task: the judge task it always asks; None when it asks none or only sometimes.
        abilities: parts of the task that not every judge can do, and without which there is no value.
        offline_version: the version of the offline reading that it uses, whichever judge is configured; "" = none.
        prompts: ids of the prompts of an inquiry of its own, which it always asks.
        options: the fields of `ragtrace.metrics.eval_context.Options` that change its numbers and
            its version.
        outputs: every number it exports.
        calls: judge and embedding calls in words, for the table.
        source: paper, system or formula it follows.
        uses_deep_pool: it is computed for the share of traces that have a shadow pool.
        code_version: raised when the arithmetic changes, so that the new numbers start a new series.
    """

    name: str
    summary: str
    needs: tuple[Need, ...]
    outputs: tuple[Output, ...]
    calls: str
    source: str
    aliases: tuple[str, ...] = ()
    required: tuple[Need, ...] | None = None
    task: Task | None = None
    abilities: tuple[Task, ...] = ()
    offline_version: str = ""
    prompts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    code_version: int = 1
    uses_deep_pool: bool = False

    def every(self, state: State, reason: str, details: Mapping[str, Any] | None = None) -> list[MetricResult]:
        """Return one result without a number for each output."""
        return [
            MetricResult(name=it.name, state=state, reason=reason, details=details or {}) for it in self.outputs
        ]


def answer_lacking(record: RagRecord) -> str | None:
    """Return the reason for which an answer cannot be looked at, None where it can.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> answer_lacking(RagRecord(id="1", answer=" ")), answer_lacking(RagRecord(id="1", is_answer_given=False))
        ('no_answer', 'missing_input:answer')
    """
    if not record.is_answer_expected:
        return "no_answer_expected"
    if record.outcome != "answered":
        return "partial_run"
    if not record.is_answer_given:
        return "missing_input:answer"
    return None if record.answer.strip() else "no_answer"


class Metric(Protocol):
    """A metric: the spec, and the coroutine that computes it.

    `compute` returns one result for each of its outputs (for each K, where it has one). It may raise a
    `ragtrace.errors.JudgeError`; `ragtrace.metrics.evaluate` turns that into ``na`` or ``error`` results.
    """

    spec: MetricSpec

    async def compute(self, ctx: EvalContext) -> Sequence[MetricResult]:
        """Compute the metric for one ctx."""
        ...
