"""Runs metrics over a case, and turns every way to fail into a state with a reason, never into a number."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.errors import JudgeError, JudgeUnsupported
from ragtrace.judges.base import JudgePanel, PromptJudge
from ragtrace.judges.nli.checking import identity
from ragtrace.metrics.base import answer_lacking
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.panel import combined
from ragtrace.model import JudgeInfo, MetricResult, RagRecord
from ragtrace.prompts.loader import plain_forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.judges.base import Embedder, Judge, PairScorer, Task
    from ragtrace.metrics.base import Metric, MetricSpec, Need, Output
    from ragtrace.metrics.eval_context import Options

_log = logging.getLogger("ragtrace")
_CITING = "citations"  # the metric that reads answer parts
_REPEATS_AT_ONCE = 3  # of one judge


async def evaluate(metrics: Iterable[Metric], ctx: EvalContext) -> list[MetricResult]:
    """Run metrics over one case, in the order given, and return every output of each.

    Under a panel a metric that asks the judge is run once for each member and repeat, members at once and at most
    3 repeats of each, and the results are combined (`ragtrace.metrics.panel`); its cost is the sum of all.

    Never raises: a judge's failure becomes ``error`` with its reason, a missing input ``na``, a defect of a
    metric ``error internal_error`` with a log line.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.registry import select
        >>> from ragtrace.model import RagRecord
        >>> ctx = EvalContext(RagRecord(id="1", query="Where?", answer="  "))
        >>> results = asyncio.run(evaluate(select(["faithfulness"]), ctx))
        >>> results[0].state, results[0].reason
        ('na', 'no_answer')
    """
    chosen = list(metrics)
    ctx.set_citing(is_citing=any(metric.spec.name == _CITING for metric in chosen))
    results: list[MetricResult] = []
    for metric in chosen:
        results.extend(await _one(metric, ctx))
    return results


def expected(
    metrics: Iterable[Metric],
    judge: Judge | None,
    embedder: Embedder | None,
    options: Options,
    pairs: PairScorer | None = None,
) -> list[MetricResult]:
    """Return a stand-in of state ``na`` for each output whose judge and version are known before any record.

    Metrics over labels are left out: their judge, K and universe are the record's own.
    """
    results: list[MetricResult] = []
    for metric in metrics:
        spec = metric.spec
        is_asking = {"embedder", "pairs"} & {*spec.needs}
        is_known = spec.task is not None or spec.prompts or spec.offline_version
        if not is_known and not is_asking:
            continue
        ctx = EvalContext(RagRecord(id=""), judge=judge, embedder=embedder, pairs=pairs, options=options)
        results.extend(_signed(spec, spec.every("na", "no_answer"), ctx))
    return results


def is_computable(metric: Metric, judge: Judge | None, embedder: Embedder | None, pairs: PairScorer | None) -> bool:
    """Return whether a metric can have a value under these parts, on any record.

    Example:
        >>> from ragtrace.judges.offline.judge import OverlapJudge
        >>> from ragtrace.metrics.registry import select
        >>> [is_computable(metric, OverlapJudge(), None, None) for metric in select(["faithfulness", "citations"])]
        [True, False]
    """
    spec = metric.spec
    tasks = _tasks_of(judge) if judge is not None else frozenset()
    asked = {*spec.abilities, *([spec.task] if spec.task is not None else [])}
    given = {"judge": judge, "embedder": embedder, "pairs": pairs}
    if not asked <= tasks or any(given[need] is None for need in spec.needs if need in given):
        return False
    members = judge.members if isinstance(judge, JudgePanel) else (judge,)
    return not spec.prompts or any(isinstance(member, PromptJudge) for member in members)


async def _one(metric: Metric, ctx: EvalContext) -> Sequence[MetricResult]:
    spec = metric.spec
    ctx.tasks_used.clear()
    missing = _missing(spec, ctx)
    if missing is not None:
        results: Sequence[MetricResult] = spec.every("na", missing)
    elif isinstance(ctx.judge, JudgePanel):
        results = await _by_panel(metric, ctx, ctx.judge)
    else:
        results = await _guarded(metric, ctx)
    return _signed(spec, results, ctx)


def _asks(spec: MetricSpec) -> bool:
    """Return whether a metric is known to ask the judge; others may, on some records."""
    return "judge" in spec.needs or spec.task is not None or bool(spec.prompts)


async def _by_panel(metric: Metric, ctx: EvalContext, panel: JudgePanel) -> Sequence[MetricResult]:
    """Run a metric under each member and repeat; where none of them asks anything, one result stands for all."""
    seats = ctx.seats()
    if not _asks(metric.spec):
        first = await _under(metric, seats[0][0])
        if not seats[0][0].tasks_used:
            ctx.take_over(seats[0][0])
            return first
    runs = await asyncio.gather(*(_repeated(metric, seat) for seat in seats))
    for one in (repeat for seat in seats for repeat in seat):
        ctx.take_over(one)
    if not ctx.tasks_used:
        return runs[0][0]
    keyed = [[{result.key: result for result in run} for run in seat] for seat in runs]
    results = combined(keyed, [member.name for member in panel.members], panel.consensus)
    judge, _ = _identity(metric.spec, ctx)
    return [_judged_by(judge, result) for result in results]


async def _repeated(metric: Metric, seat: Sequence[EvalContext]) -> list[Sequence[MetricResult]]:
    gate = asyncio.Semaphore(_REPEATS_AT_ONCE)

    async def run(ctx: EvalContext) -> Sequence[MetricResult]:
        async with gate:
            return await _under(metric, ctx)

    return await asyncio.gather(*(run(ctx) for ctx in seat))


async def _under(metric: Metric, ctx: EvalContext) -> Sequence[MetricResult]:
    ctx.tasks_used.clear()
    return await _guarded(metric, ctx)


def _judged_by(panel: JudgeInfo | None, result: MetricResult) -> MetricResult:
    """Name the panel instead of the member, and keep the scale of its grades."""
    scale = result.judge.label_scale if result.judge else None
    return replace(result, judge=replace(panel, label_scale=scale) if panel and scale else None)


async def _guarded(metric: Metric, ctx: EvalContext) -> Sequence[MetricResult]:
    try:
        return await metric.compute(ctx)
    except JudgeUnsupported as error:
        return metric.spec.every("na", error.reason, {"message": str(error)})
    except JudgeError as error:
        return metric.spec.every("error", error.reason, {"message": str(error)})
    except Exception as error:
        _log.exception("metric %s failed on record %s", metric.spec.name, ctx.record.id)
        return metric.spec.every("error", "internal_error", {"message": type(error).__name__})


def _missing(spec: MetricSpec, ctx: EvalContext) -> str | None:
    required = spec.needs if spec.required is None else spec.required
    for need in required:
        reason = _absent(need, ctx)
        if reason is not None:
            return reason
    return None


def _absent(need: Need, ctx: EvalContext) -> str | None:
    record = ctx.record
    if need == "answer":
        return answer_lacking(record)
    if need == "query":
        return None if record.query.strip() else "missing_input:query"
    if need == "contexts":
        return None if ctx.contexts() else "no_contexts"
    if need == "pool":
        return None if any(pool.passages for pool in record.pools) else "no_contexts"
    if need == "reference":
        return None if (record.reference or "").strip() else "missing_input:reference"
    if need == "labels":
        return None if record.labels is not None else "no_labels"
    if need == "runs":
        return "insufficient_runs"  # a case is one record
    asked = {"judge": ctx.judge, "pairs": ctx.pairs, "embedder": ctx.embedder}[need]
    return None if asked is not None else "unsupported_by_judge"


def _signed(spec: MetricSpec, results: Sequence[MetricResult], ctx: EvalContext) -> list[MetricResult]:
    """Write judge, version, pass mark and cost onto the results of one metric."""
    judge, version = _identity(spec, ctx)
    spent = ctx.take_usage()
    outputs = {output.name: output for output in spec.outputs}
    signed = [
        replace(
            result,
            judge=result.judge or judge,
            version=_of_series(version, result.version),
            passed=_passed(outputs.get(result.name), result, ctx),
        )
        for result in results
    ]
    if signed:
        signed[0] = replace(
            signed[0],
            llm_calls=spent.llm_calls,
            embed_calls=spent.embed_calls,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
        )
    return signed


def _of_series(version: str, series: str) -> str:
    """Return the version with what a metric sets apart itself: numbers at another depth are another series."""
    return hashlib.sha256(f"{version}\0{series}".encode()).hexdigest()[:8] if series else version


def _identity(spec: MetricSpec, ctx: EvalContext) -> tuple[JudgeInfo | None, str]:
    tasks: set[Task] = {*ctx.tasks_used, *_prompts(spec, ctx.options)}
    if spec.task is not None:
        tasks.add(spec.task)
    embeds = "embedder" in spec.needs and ctx.embedder is not None
    chosen = {name: getattr(ctx.options, name) for name in spec.options}
    parts = [spec.name, str(spec.code_version), repr(chosen)]
    judge = None
    if spec.offline_version:
        judge = JudgeInfo(model="overlap", prompt_hash=spec.offline_version)
        parts.append(spec.offline_version)
    elif tasks and ctx.judge is not None:
        known = _tasks_of(ctx.judge)
        hashes = [ctx.judge.version(task) for task in sorted(tasks) if task in known]
        judge = JudgeInfo(model=ctx.judge.name, prompt_hash=hashes[0] if hashes else "")
        parts += [ctx.judge.name, *hashes]
    if embeds and ctx.embedder is not None:
        parts.append(ctx.embedder.name)
        judge = judge or JudgeInfo(model=f"embedder:{ctx.embedder.name}")
    if "pairs" in spec.needs and ctx.pairs is not None:
        name, scorer_version = identity(ctx.pairs)
        parts += [name, scorer_version]
        judge = judge or JudgeInfo(model=f"pairs:{name}", prompt_hash=scorer_version)
    return judge, hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _prompts(spec: MetricSpec, options: Options) -> tuple[str, ...]:
    """Return the prompts that a metric asks under these options."""
    is_plain = "length_debias" in spec.options and not options.length_debias
    return plain_forms(spec.prompts) if is_plain else spec.prompts


def _tasks_of(judge: Judge) -> frozenset[Task]:
    """Return the tasks of a judge; those that any member of a panel does."""
    if isinstance(judge, JudgePanel):
        return frozenset().union(*(member.tasks for member in judge.members))
    return judge.tasks


def _passed(output: Output | None, result: MetricResult, ctx: EvalContext) -> bool | None:
    if output is None or result.value is None:
        return None
    judge = ctx.judge if result.judge is None and ctx.tasks_used else None
    return replace(output, threshold=threshold_of(output, ctx.options, judge)).passes(result.value)


def threshold_of(output: Output, options: Options, judge: Judge | None) -> float | None:
    """Return the threshold in force: a person's choice, else the judge's own, else the metric's.

    An output without a threshold gets none by either.

    Args:
        output: of what.
        options: with what a person chose.
        judge: who gives the verdict, None where no judge does.
    """
    if output.threshold is None:
        return None
    own = judge.thresholds if judge is not None else {}
    return options.thresholds.get(output.name, own.get(output.name, output.threshold))
