"""Citations: whether the cited passages support what the answer says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.errors import JudgeIncomplete, JudgeUnsupported
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, answer_lacking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult, RagRecord

Pair = tuple[int, str]  # 0-based index of the answer part, cited id
_POINTS = {"full": 1.0, "partial": 0.5, "none": 0.0}
_OUTPUTS = ("citation_precision", "citation_recall", "citation_f1", "citation_precision_micro")


class CitationScores(NamedTuple):
    """Scores of an answer's citations, in the order of the outputs; None where there is no value.

    Attributes:
        precision: mean over distinct cited ids of the id's mean support.
        recall: mean over all parts of the part's mean support; an uncited part has 0.
        f1: their harmonic mean.
        precision_micro: mean support over all (part, id) pairs.
    """

    precision: float | None
    recall: float
    f1: float | None
    precision_micro: float | None


def citation_scores(n_parts: int, points: Mapping[Pair, float]) -> CitationScores:
    """Return the scores of an answer from the points in [0, 1] of each distinct pair.

    The answer has `n_parts`, at least 1.

    Example:
        >>> citation_scores(2, {(0, "a"): 1.0, (0, "b"): 0.0})
        CitationScores(precision=0.5, recall=0.25, f1=0.3333333333333333, precision_micro=0.5)
    """
    by_id: dict[str, list[float]] = {}
    by_part: dict[int, list[float]] = {}
    for (part, cited), value in points.items():
        by_id.setdefault(cited, []).append(value)
        by_part.setdefault(part, []).append(value)
    recall = math.fsum(map(_mean, by_part.values())) / n_parts
    if not points:
        return CitationScores(precision=None, recall=recall, f1=None, precision_micro=None)
    precision = _mean([_mean(values) for values in by_id.values()])
    both = precision + recall
    return CitationScores(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / both if both else 0.0,
        precision_micro=_mean(list(points.values())),
    )


async def citations(ctx: EvalContext) -> list[MetricResult]:
    """Support of the answer's citations by the passages they name.

    All outputs in [0, 1], higher is better. Each distinct pair of an answer part and a cited id scores 1 for full
    support, .5 for partial, 0 for none.

    - ``citation_precision``: mean over distinct ids of the id's mean score;
    - ``citation_recall``: mean over all parts of the part's mean score, 0 for an uncited part;
    - ``citation_f1``: their harmonic mean, 0.0 where both are 0;
    - ``citation_precision_micro``: mean over all pairs, the usual reading.

    A citation of a passage that was not delivered (dangling) scores 0 and is never asked about. open-rag-eval skips
    it together with its part, so that an invented citation gets 1.0. Parts are read from the answer's markers where
    the application gave none; an answer without markers is ``na no_citations``. Parts that were given and cite
    nothing: recall 0.0, the others ``na no_citations``. Neither answer nor parts: ``na no_parts``. A judge that
    cannot read citations gives ``na unsupported_by_judge``. Source: open-rag-eval.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import AnswerPart, RagRecord
        >>> record = RagRecord(id="1", answer="Oslo.", answer_parts=(AnswerPart(text="Oslo.", citations=("9",)),))
        >>> results = asyncio.run(METRIC.compute(EvalContext(record)))
        >>> [result.value for result in results], results[0].details["dangling"]
        ([0.0, 0.0, 0.0, 0.0], 1)
    """
    record = ctx.record
    lacking = answer_lacking(record)
    if lacking is not None and lacking in {"no_answer_expected", "partial_run", "several_answers"}:
        return METRIC.spec.every(lacking)
    if not record.answer_parts:
        return METRIC.spec.every((lacking or "no_citations") if record.is_answer_given else "no_parts")
    pairs = [
        (index, cited) for index, part in enumerate(record.answer_parts) for cited in dict.fromkeys(part.citations)
    ]
    points = await _points(ctx, pairs)
    scores = citation_scores(len(record.answer_parts), points)
    return METRIC.spec.results(scores, "no_citations", _facts(record, pairs))


async def _points(ctx: EvalContext, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return the points of each pair; ask only about delivered passages."""
    delivered = {passage.id for passage in ctx.record.contexts}
    points = {pair: 0.0 for pair in pairs if pair[1] not in delivered}
    if len(points) == len(pairs):
        return points
    if ctx.judge is None or "citations" not in ctx.judge.tasks:
        raise JudgeUnsupported("the judge cannot read citations")
    verdicts = {(row.part, row.citation): row.support for row in (await ctx.audit()).citations}
    for pair in pairs:
        if pair in points:
            continue
        if pair not in verdicts:
            raise JudgeIncomplete("a citation has no verdict")
        points[pair] = _POINTS[verdicts[pair]]
    return {pair: points[pair] for pair in pairs}


def _facts(record: RagRecord, pairs: Sequence[Pair]) -> dict[str, object]:
    delivered = {passage.id for passage in record.contexts}
    dangling = [pair for pair in pairs if pair[1] not in delivered]
    n_parts = len(record.answer_parts)
    n_cited = len({part for part, _ in pairs})
    return {
        "parts": n_parts,
        "cited_parts": n_cited,
        "cited_part_rate": n_cited / n_parts,
        "citations": len(pairs),
        "dangling": len(dangling),
        "dangling_rate": len(dangling) / len(pairs) if pairs else 0.0,
        "dangling_ids": list(dict.fromkeys(cited for _, cited in dangling)),
    }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


METRIC = CoroutineMetric(
    MetricSpec(
        name="citations",
        summary="Share of citations that support their sentence, and of sentences with such a citation.",
        needs=("answer", "contexts", "judge"),
        required=(),
        task="audit",
        abilities=("citations",),
        outputs=tuple(Output(name=name) for name in _OUTPUTS),
        calls="1 judge call, shared with faithfulness and no_answer",
        source="open-rag-eval citation metric",
    ),
    citations,
)
