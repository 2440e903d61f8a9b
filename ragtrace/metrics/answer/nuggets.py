"""Nuggets: the share of the facts in the contexts that the answer states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.judges.llm.nuggets import PROMPTS, nuggets_of
from ragtrace.judges.scales import are_grades
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output
from ragtrace.metrics.graded import are_of
from ragtrace.model import JudgeInfo, MetricResult, label_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.llm.nuggets import AssignedNugget, AssignedNuggets
    from ragtrace.metrics.eval_context import EvalContext

_OKAY_WEIGHT = 0.5
_SUPPORT = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
_STRICT = {"support": 1.0, "partial_support": 0.0, "not_support": 0.0}
_NAMES = ("nuggets_all", "nuggets_vital", "nuggets_weighted")
_STRICT_NAMES = tuple(f"{name}_strict" for name in _NAMES)
# UMBRELA's 1, related, and better: 3 on the direct scale, 2 where the strict mapping put it.
_LOWEST_GRADE = {"direct5": 3, "umbrela_mapped": 3, "umbrela_mapped_strict": 2}


def nugget_scores(nuggets: Sequence[AssignedNugget], *, strict: bool = False) -> tuple[float | None, ...]:
    """Return the stated shares of all nuggets, of vital ones, and weighted.

    Each in [0, 1], higher is better; None where there is nothing to average over. Source: AutoNuggetizer (TREC
    2024); weighted: vital nuggets 1, okay ones 1/2, without a floor under their numbers.

    Args:
        nuggets: with their support: 1 for support, 1/2 for partial support, 0 else.
        strict: partial support counts 0.

    Example:
        >>> from ragtrace.judges.llm.nuggets import AssignedNugget
        >>> vital = AssignedNugget(text="a", is_vital=True, support="support")
        >>> okay = AssignedNugget(text="b", is_vital=False, support="partial_support")
        >>> nugget_scores([vital, okay, okay])
        (0.6666666666666666, 1.0, 0.75)
        >>> nugget_scores([okay], strict=True)
        (0.0, None, 0.0)
    """
    worth = _STRICT if strict else _SUPPORT
    vital = [worth[nugget.support] for nugget in nuggets if nugget.is_vital]
    okay = [worth[nugget.support] for nugget in nuggets if not nugget.is_vital]
    return (
        _share(sum(vital) + sum(okay), len(nuggets)),
        _share(sum(vital), len(vital)),
        _share(sum(vital) + _OKAY_WEIGHT * sum(okay), len(vital) + _OKAY_WEIGHT * len(okay)),
    )


async def nuggets(ctx: EvalContext) -> list[MetricResult]:
    """Share of the contexts' facts on the query that the answer states.

    In [0, 1], higher is better. A judge makes up to 30 nuggets of 1 to 12 words from the contexts, calls each vital
    or okay, and looks up the first `MetricOptions.max_nuggets` (20), vital ones first, in the answer. s = 1 for
    support, .5 for partial support, else 0.

    - ``nuggets_all``: mean s over all nuggets; ``nuggets_vital``: over the vital ones;
    - ``nuggets_weighted``: (sum over vital + .5 sum over okay) / (n vital + .5 n okay);
    - ``..._strict``: the same with s = 0 for partial support.

    open-rag-eval floors both counts at 1, so that a perfect answer without okay nuggets gets .8 or less.

    The value tells coverage of the retrieved text and not truth: poor contexts give easy nuggets. Contexts graded 3
    or better count (related or better on UMBRELA's scale), by the record's labels or, with ``nuggets_from_graded``,
    by the judge; where no context has a grade, all do. The judge grades passages with a rank alone, so texts of
    tools count then without a grade. ``details.grades`` says which. Contexts without anything on
    the query give the one nugget "not enough information", which an abstaining answer states.

    ``na``: missing_input:query, no_answer, partial_run, no_contexts (also where all grades are lower),
    unsupported_by_judge, no_claims without nuggets and, for the vital outputs, without vital ones. ``error``:
    invalid_grade, or the judge's. Source: AutoNuggetizer, TREC 2024.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> chat = ScriptedChat([
        ...     {"nuggets": ["The lab is in Oslo", "It opened in 2010"]},
        ...     {"labels": [{"id": 1, "importance": "vital"}, {"id": 2, "importance": "okay"}]},
        ...     {"assignments": [{"id": 1, "support": "support"}, {"id": 2, "support": "not_support"}]},
        ... ])
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="Oslo, since 2010.", rank=1),))
        >>> record = RagRecord(id="1", query="Where?", answer="In Oslo.", pools=(pool,))
        >>> results = asyncio.run(METRIC.compute(EvalContext(record, judge=LLMJudge(chat))))
        >>> {result.name: result.value for result in results[:2]}
        {'nuggets_all': 0.5, 'nuggets_vital': 1.0}
    """
    chosen = await _chosen(ctx)
    if chosen.fault is not None:
        results = METRIC.spec.every(chosen.fault, chosen.details)
    else:
        results = _results(await ctx.ask(nuggets_of(chosen.places, ctx.options.max_nuggets)), chosen)
    return [replace(result, judge=_judge(ctx, chosen.scale)) for result in results]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """Places of the contexts that count; `fault` says why no number may be computed."""

    places: tuple[int, ...] = ()
    scale: str | None = None
    fault: str | None = None
    details: Mapping[str, object]


async def _chosen(ctx: EvalContext) -> _Chosen:
    contexts = ctx.contexts()
    grades, scale, source = await _grades(ctx)
    names = {place: label_id(passage, grades) for place, passage in contexts}
    known = {place: grades[name] for place, name in names.items() if name in grades}
    details = {"grades": source if known else "none", "contexts": len(contexts)}
    if not known:
        return _Chosen(places=tuple(place for place, _ in contexts), details=details)
    n_ranked = len(ctx.record.ranked_contexts) if source == "judge" else len(ctx.record.contexts)
    unasked = {place for place, _ in contexts if place >= n_ranked and place not in known}
    details["ungraded"] = len(contexts) - len(known) - len(unasked)
    if not are_grades(known.values()):
        return _Chosen(scale=scale, fault="invalid_grade", details=details)
    counted = {place for place, grade in known.items() if grade >= _LOWEST_GRADE.get(scale, 3)} | unasked
    places = tuple(place for place, _ in contexts if place in counted)
    details["used"] = [passage.id for place, passage in contexts if place in places]
    return _Chosen(places=places, scale=scale, fault=None if places else "no_contexts", details=details)


async def _grades(ctx: EvalContext) -> tuple[Mapping[str, int], str, str]:
    """Return grades by passage id, their scale, and where they are from."""
    labels = ctx.record.labels
    if labels is not None and are_of(ctx.record, labels):
        return labels.grades, labels.scale, "labels"
    if not ctx.options.nuggets_from_graded:
        return {}, "direct5", "none"
    verdict = await ctx.grades()
    return verdict.grades, verdict.scale, "judge"


def _judge(ctx: EvalContext, scale: str | None) -> JudgeInfo | None:
    """Name the judge with the grades' scale; without grades `evaluate` names it."""
    if ctx.judge is None or scale is None:
        return None
    return JudgeInfo(model=ctx.judge.name, prompt_hash=ctx.judge.version(PROMPTS[-1]), label_scale=scale)


def _results(found: AssignedNuggets, chosen: _Chosen) -> list[MetricResult]:
    nuggets = found.nuggets
    details = {
        **chosen.details,
        "nuggets": len(nuggets),
        "vital": sum(nugget.is_vital for nugget in nuggets),
        "made": found.made,
        "truncated": found.truncated,
        "cached": found.cached,
    }
    values = [*nugget_scores(nuggets), *nugget_scores(nuggets, strict=True)]
    first, *others = METRIC.spec.results(values, "no_claims", details)
    listed = [{"text": one.text, "vital": one.is_vital, "support": one.support} for one in nuggets]
    return [replace(first, details={**details, "list": listed}), *others]


def _share(held: float, total: float) -> float | None:
    return held / total if total else None


METRIC = CoroutineMetric(
    MetricSpec(
        name="nuggets",
        summary="Share of the contexts' facts on the query that the answer states: all, vital ones, weighted.",
        needs=("query", "answer", "contexts", "judge"),
        outputs=tuple(Output(name=name) for name in (*_NAMES, *_STRICT_NAMES)),
        calls="3 judge calls for up to 10 nuggets, 5 for 20; 1 or 2 for another answer from the same contexts",
        source="AutoNuggetizer, TREC 2024",
        prompts=PROMPTS,
        options=("max_nuggets", "nuggets_from_graded"),
    ),
    nuggets,
)
