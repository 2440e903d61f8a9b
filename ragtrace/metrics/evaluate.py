"""Runs metrics over a record; a failure becomes a state with a reason."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.capture.citations import with_cited_parts
from ragtrace.judges.base import JudgePanel, PromptJudge
from ragtrace.judges.limiter import JUDGED
from ragtrace.judges.nli.checking import identity
from ragtrace.metrics.base import NO_RANKING, answer_lacking, compute_safely
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.graded import candidates
from ragtrace.metrics.panel import compute_by_panel
from ragtrace.model import JudgeInfo, MetricResult, RagRecord
from ragtrace.model.diagnosis import DIAGNOSIS
from ragtrace.model.passage import content_hash
from ragtrace.model.record import CONTEXTS_TRUNCATED
from ragtrace.model.score import is_of_set_up
from ragtrace.prompts.loader import plain_forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.judges.base import Embedder, Judge, PairScorer, Task
    from ragtrace.metrics.base import Metric, MetricSpec, Need, Output
    from ragtrace.metrics.eval_context import MetricOptions

_NO_TEXT = "missing_input:passage_text"
_OF_CONTEXTS = {"contexts", "ranking", "pool"}
_CITING = "citations"  # the metric that reads answer parts


async def evaluate(metrics: Iterable[Metric], ctx: EvalContext) -> list[MetricResult]:
    """Run metrics over one record, in the order given, and return every output of each.

    Under a panel a metric that asks the judge is computed once for each member and repeat, and the results are
    combined (`ragtrace.metrics.panel`); its usage is the sum of all.

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
    token = JUDGED.set(ctx.record.id)
    try:
        return await _evaluated(list(metrics), ctx)
    finally:
        JUDGED.reset(token)


async def _evaluated(chosen: list[Metric], ctx: EvalContext) -> list[MetricResult]:
    if any(metric.spec.name == _CITING for metric in chosen):
        ctx.record = with_cited_parts(ctx.record)
    elif ctx.record.answer_parts:  # the audit call would ask about them for nothing
        ctx.record = replace(ctx.record, answer_parts=())
    evaluated: dict[str, list[MetricResult]] = {metric.spec.name: [] for metric in chosen}
    for metric in sorted(chosen, key=lambda metric: bool(metric.spec.reads)):
        ctx.begin_metric()
        missing = _missing(metric.spec, ctx)
        if missing is not None:
            results: Sequence[MetricResult] = metric.spec.every(missing)
        elif isinstance(ctx.judge, JudgePanel):
            results = await compute_by_panel(metric, ctx, ctx.judge)
        else:
            results = await compute_safely(metric, ctx)
        evaluated[metric.spec.name] += _signed(metric.spec, results, ctx)
    return [result for results in evaluated.values() for result in results]


def is_due(spec: MetricSpec, ctx: EvalContext) -> bool:
    """Return whether a metric should have a score for a record, as far as its inputs tell before it is computed.

    Example:
        >>> from ragtrace.metrics.registry import select
        >>> from ragtrace.model import RagRecord
        >>> ctx = EvalContext(RagRecord(id="1", query="Where?", answer="In Oslo."))
        >>> [is_due(metric.spec, ctx) for metric in select(["invented_specifics", "factual_correctness"])]
        [True, False]
    """
    reason = _missing(spec, ctx)
    return reason is None or not is_of_set_up(reason)


def _missing(spec: MetricSpec, ctx: EvalContext) -> str | None:
    """Return the reason for the first required input that is missing."""
    record = ctx.record
    read = [passage for pool in record.pools for passage in pool.passages]
    if "contexts" in spec.needs:
        read += record.unranked_contexts
    is_textless = bool(read) and not any(passage.text for passage in read)  # as other instrumentations send them
    signs = {sign.name for sign in record.signs}
    if "follows_answer" in signs:
        return "follows_answer"
    no_contexts = "contexts_unread" if "evidence_unread" in signs else "no_contexts"
    no_passages = NO_RANKING if record.has_no_ranking else "no_contexts"
    lacking: dict[Need, str | None] = {
        "answer": answer_lacking(record),
        "query": None if record.query.strip() else "missing_input:query",
        "reference": None if (record.reference or "").strip() else "missing_input:reference",
        "contexts": None if ctx.contexts() else _NO_TEXT if is_textless else no_contexts,
        "ranking": None if ctx.ranked_contexts() else _NO_TEXT if is_textless else no_passages,
        "pool": None if any(pool.passages for pool in record.pools) else no_passages,
        "labels": None if record.labels is not None else "no_labels",
        "runs": "insufficient_runs",  # a context holds one record
        "judge": None if ctx.judge is not None else "unsupported_by_judge",
        "pairs": None if ctx.pairs is not None else "unsupported_by_judge",
        "embedder": None if ctx.embedder is not None else "unsupported_by_judge",
    }
    if spec.name == DIAGNOSIS and record.truncated_contexts:  # it says so as its verdict
        return None
    is_cut = spec.name != DIAGNOSIS and _is_cut(spec, record)
    required = spec.needs if spec.required is None else spec.required
    if is_cut:
        required = tuple(need for need in required if need not in _OF_CONTEXTS)
    found = next((reason for need in required if (reason := lacking[need]) is not None), None)
    if found is None and record.has_no_ranking and "ranking" in spec.needs:
        return NO_RANKING
    if found is None and is_cut:
        return CONTEXTS_TRUNCATED
    if found is None and is_textless and _OF_CONTEXTS & {*spec.needs}:
        is_by_id = "labels" in spec.needs and record.labels is not None
        return None if is_by_id else _NO_TEXT
    return found


def _is_cut(spec: MetricSpec, record: RagRecord) -> bool:
    """Return whether a metric needs texts that size cut: of the contexts, or of the pool that a judge grades."""
    needs = {*spec.needs}
    if "labels" in needs and record.labels is not None:  # ids alone count
        return False
    if "contexts" in needs and record.truncated_contexts:
        return True
    if "ranking" in needs and record.truncated_ranked_contexts:
        return True
    reads_pool = "pool" in needs or {"labels", "judge"} <= needs
    return reads_pool and any(passage.truncated for passage in candidates(record))


def _signed(spec: MetricSpec, results: Sequence[MetricResult], ctx: EvalContext) -> list[MetricResult]:
    """Write judge, version, pass mark and usage onto the results of one metric."""
    judge, version = _identity(spec, ctx)
    is_combined = isinstance(ctx.judge, JudgePanel) and bool(ctx.tasks_used)
    outputs = {output.name: output for output in spec.outputs}
    signed: list[MetricResult] = []
    for result in results:
        own = result.judge
        if is_combined:  # the panel gave the number, on the scale of its members' grades
            own = replace(judge, label_scale=own.label_scale) if judge and own and own.label_scale else None
        series = f"{version}\0{result.version}" if result.version else ""  # for example another retrieval depth
        output = outputs.get(result.name)
        passed = None
        if output is not None and result.value is not None:
            asked = ctx.judge if own is None and ctx.tasks_used else None
            passed = dataclasses.replace(output, threshold=threshold_of(output, ctx.options, asked)).passes(
                result.value
            )
        signed.append(
            replace(
                result, judge=own or judge, version=content_hash(series)[:8] if series else version, passed=passed
            )
        )
    if signed:
        signed[0] = replace(
            signed[0],
            llm_calls=ctx.usage.llm_calls,
            embed_calls=ctx.usage.embed_calls,
            input_tokens=ctx.usage.input_tokens,
            output_tokens=ctx.usage.output_tokens,
        )
    return signed


def _identity(spec: MetricSpec, ctx: EvalContext) -> tuple[JudgeInfo | None, str]:
    is_plain = "length_debias" in spec.options and not ctx.options.length_debias
    prompts = plain_forms(spec.prompts) if is_plain else spec.prompts
    tasks: set[Task] = {*ctx.tasks_used, *spec.reads, *spec.more_tasks, *prompts}
    if spec.task is not None:
        tasks.add(spec.task)
    embeds = "embedder" in spec.needs and ctx.embedder is not None
    chosen = {name: getattr(ctx.options, name) for name in spec.options}
    parts = [spec.name, str(spec.code_version), repr(chosen)]
    judge = None
    if spec.offline_version:
        judge = JudgeInfo(model="overlap", prompt_hash=spec.offline_version)
        parts.append(spec.offline_version)
    if tasks and ctx.judge is not None:
        known = tasks_of(ctx.judge)
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
    return judge, content_hash("\0".join(parts))[:8]


def tasks_of(judge: Judge) -> frozenset[Task]:
    """Return the tasks of a judge, or of all members of a panel."""
    if isinstance(judge, JudgePanel):
        return frozenset().union(*(member.tasks for member in judge.members))
    return judge.tasks


def threshold_of(output: Output, options: MetricOptions, judge: Judge | None) -> float | None:
    """Return the threshold in force: a person's choice, else the judge's own, else the metric's.

    An output without a threshold gets none by either.

    Args:
        output: the exported number.
        options: with the thresholds that a person chose.
        judge: of the verdict; None without a judge.
    """
    if output.threshold is None:
        return None
    own = judge.thresholds if judge is not None else {}
    return options.thresholds.get(output.name, own.get(output.name, output.threshold))


def expected(
    metrics: Iterable[Metric],
    judge: Judge | None,
    embedder: Embedder | None,
    options: MetricOptions,
    pairs: PairScorer | None = None,
) -> list[MetricResult]:
    """Return a stand-in of state ``na`` for each output that is known before any record.

    Its judge and version are those of every later result. Metrics over labels are left out: their judge, K and
    label scope are the record's own.
    """
    results: list[MetricResult] = []
    for metric in metrics:
        spec = metric.spec
        is_asking = {"embedder", "pairs"} & {*spec.needs}
        is_known = spec.task is not None or spec.prompts or spec.offline_version
        if not is_known and not is_asking:
            continue
        ctx = EvalContext(RagRecord(id=""), judge=judge, embedder=embedder, pairs=pairs, options=options)
        results.extend(_signed(spec, spec.every("no_answer"), ctx))
    return results


def is_computable(metric: Metric, judge: Judge | None, embedder: Embedder | None, pairs: PairScorer | None) -> bool:
    """Return whether a metric can have a value under these parts, on any record.

    Example:
        >>> from ragtrace.judges.offline.judge import OverlapJudge
        >>> from ragtrace.metrics.registry import select
        >>> [is_computable(metric, OverlapJudge(), None, None) for metric in select(["faithfulness", "citations"])]
        [True, False]
    """
    return not lacking(metric, judge, embedder, pairs)


def lacking(metric: Metric, judge: Judge | None, embedder: Embedder | None, pairs: PairScorer | None) -> str:
    """Return why a metric can never have a value under these parts; "" where it can.

    Example:
        >>> from ragtrace.judges.offline.judge import OverlapJudge
        >>> from ragtrace.metrics.registry import select
        >>> [lacking(metric, OverlapJudge(), None, None) for metric in select(["faithfulness", "citations"])]
        ['', 'the judge has no task citations']
    """
    spec = metric.spec
    parts = {"judge": judge, "embedder": embedder, "pairs": pairs}
    missing = [need for need in spec.needs if need in parts and parts[need] is None]
    if missing:
        return f"no {', '.join('pair scorer' if need == 'pairs' else need for need in missing)} is set"
    tasks = tasks_of(judge) if judge is not None else frozenset()
    asked = [task for task in dict.fromkeys((spec.task, *spec.abilities)) if task is not None and task not in tasks]
    if asked:
        return f"the judge has no task {', '.join(asked)}"
    members = judge.members if isinstance(judge, JudgePanel) else (judge,)
    if spec.prompts and not any(isinstance(member, PromptJudge) for member in members):
        return "the judge takes no prompts of a metric"
    return ""
