"""The parts of a metric: its spec, its outputs and its coroutine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ragtrace.capture.guard import log_failure
from ragtrace.errors import JudgeError
from ragtrace.judges.offline.reading import is_blank
from ragtrace.model import ERROR_REASONS, MetricResult, Scale
from ragtrace.model.record import ANSWER_LOST, SEVERAL_ANSWERS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from ragtrace.judges.base import Audit, Task
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import RagRecord, State

    Compute = Callable[["EvalContext"], Coroutine[object, object, Sequence[MetricResult]]]

Need = Literal[
    "query", "answer", "contexts", "ranking", "pool", "reference", "labels", "judge", "embedder", "pairs", "runs"
]
NO_RANKING = "no_ranking"
Outcome = float | str  # a value, or the reason for which there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Scale):
    """One exported number of a metric: its name, and its scale with the default threshold.

    Without a threshold an output has no pass or fail label and no ``low.w`` counter.

    Attributes:
        is_watched: watched for a drop also without a threshold, such as a share whose values neither pass nor fail.
    """

    name: str
    threshold: float | None = 0.8
    is_watched: bool = False

    @property
    def can_drift(self) -> bool:
        """Whether a change for the worse is looked for: values from 0 to 1, with a threshold or `is_watched`."""
        return (self.threshold is not None or self.is_watched) and 0 <= self.low < self.high <= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """Facts about a metric, for registry, command line, docs and dashboards.

    Attributes:
        name: the name by which a person selects it.
        aliases: other names for selecting it.
        summary: one sentence.
        needs: inputs that it reads, in the order in which their absence is reported. ``ranking`` are the contexts
            that have a rank, so texts of tools are none of them. ``runs`` are several records of one query
            (`ragtrace.metrics.consistency.runs`), so a metric with it has no value for one record.
        required: the needs without which it is ``na``; None means all of `needs`.
        task: the judge task it always asks; None when it asks none or only sometimes.
        more_tasks: tasks that it asks where a reply to `task` calls for them; its version always names them.
        abilities: parts of the task that it needs and that some judges cannot do.
        reads: tasks whose verdicts it reads where another metric asked for them. Such a metric is computed after
            all others.
        offline_version: the version of the offline reading, which it uses under any judge, beside a judge or
            alone; "" = none.
        prompts: ids of the metric's own prompts, which it always asks.
        options: fields of `ragtrace.metrics.eval_context.MetricOptions` that change its numbers and version.
        outputs: every number it exports.
        calls: judge and embedding calls in words, for the table.
        source: paper, system or formula it follows.
        uses_deep_pool: it is computed only for the traces that `DeepRetriever.rate` draws.
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
    more_tasks: tuple[Task, ...] = ()
    abilities: tuple[Task, ...] = ()
    reads: tuple[Task, ...] = ()
    offline_version: str = ""
    prompts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    code_version: int = 1
    uses_deep_pool: bool = False

    def every(self, reason: str, details: Mapping[str, object] | None = None) -> list[MetricResult]:
        """Return one result without a number for each output."""
        return [result(it.name, reason, details) for it in self.outputs]

    def results(
        self, values: Sequence[float | None], reason: str, details: Mapping[str, object] | None = None
    ) -> list[MetricResult]:
        """Return one result for each output; `reason` stands where its value is None."""
        pairs = zip(self.outputs, values, strict=True)
        return [result(it.name, reason if value is None else value, details) for it, value in pairs]


class Metric(Protocol):
    """A metric: the spec, and the coroutine that computes it.

    `compute` returns one result for each output, and for each K where the metric has a cut-off. It may raise a
    `ragtrace.errors.JudgeError`, which `ragtrace.metrics.evaluate` turns into ``na`` or ``error`` results.
    """

    spec: MetricSpec

    async def compute(self, ctx: EvalContext) -> Sequence[MetricResult]:
        """Compute the metric for one record."""
        ...


class CoroutineMetric:
    """A metric made of its spec and a coroutine function, which keeps nothing between records."""

    def __init__(self, spec: MetricSpec, compute: Compute) -> None:
        self.spec = spec
        self.compute = compute


async def compute_safely(metric: Metric, ctx: EvalContext) -> Sequence[MetricResult]:
    """Compute a metric; a judge's failure gives its reason, and any other exception ``error internal_error``.

    The context keeps the results for the metrics that read others.
    """
    results: Sequence[MetricResult]
    try:
        results = await metric.compute(ctx)
    except JudgeError as error:
        results = metric.spec.every(error.reason, {"message": str(error)})
    except Exception as error:
        log_failure(f"metric {metric.spec.name} failed on record {ctx.record.id}", error)
        results = metric.spec.every("internal_error", {"message": type(error).__name__})
    ctx.results |= {found.key: found for found in results}
    return results


def result(name: str, outcome: Outcome, details: Mapping[str, object] | None = None) -> MetricResult:
    """Return an outcome as a result of state ok, na, error or skipped.

    Args:
        name: of the output.
        outcome: the value, or a reason of the closed lists in `ragtrace.model.score`.
        details: JSON-ready facts behind the number.

    Raises:
        ValueError: the value is not finite, or the reason is unknown.

    Example:
        >>> result("mrr", 0.5).value, result("mrr", "no_labels").state, result("mrr", "judge_error").state
        (0.5, 'na', 'error')
    """
    if not isinstance(outcome, str):
        return MetricResult(name=name, state="ok", value=float(outcome), details=details or {})
    state: State = "skipped" if outcome == "not_sampled" else "error" if outcome in ERROR_REASONS else "na"
    return MetricResult(name=name, state=state, reason=outcome, details=details or {})


def answer_lacking(record: RagRecord) -> str | None:
    """Return why an answer cannot be evaluated; None where it can.

    LlamaIndex's "Empty Response" is no answer, as a blank one. One that was cut for size is missing in part.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> answer_lacking(RagRecord(id="1", answer=" ")), answer_lacking(RagRecord(id="1", is_answer_given=False))
        ('no_answer', 'missing_input:answer')
    """
    is_lost = not record.lossy.keys().isdisjoint((ANSWER_LOST, "answer_chars"))
    if not record.is_answer_expected and not is_lost:
        return "no_answer_expected"
    if record.outcome != "answered":
        return "partial_run"
    if is_lost:
        return "answer_missing"
    if SEVERAL_ANSWERS in record.lossy:
        return SEVERAL_ANSWERS
    if record.is_refused:
        return "abstained"
    if not record.is_answer_given:
        return "missing_input:answer"
    return "no_answer" if is_blank(record.answer) else None


def claims_lacking(audit: Audit) -> str | None:
    """Return why an audited answer has no claims to count; None where it has some."""
    if not audit.attempted:
        return "abstained"
    return None if audit.claims else audit.unscorable or "no_claims"
