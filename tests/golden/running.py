"""Computes each golden record through the real metrics, and says what differs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ragtrace.judges.scales import from_umbrela, to_umbrela
from ragtrace.metrics.base import CoroutineMetric
from ragtrace.metrics.context.context_precision import METRIC as CONTEXT_PRECISION
from ragtrace.metrics.context.context_precision import context_precision as precision_over
from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.ranking import rank
from ragtrace.metrics.ranking.ap_at_k_retrieved import METRIC as AP_RETRIEVED
from ragtrace.metrics.ranking.mrr import METRIC as MRR
from ragtrace.metrics.ranking.ndcg import METRIC as NDCG
from ragtrace.metrics.ranking.p_at_k import METRIC as P_AT_K
from ragtrace.metrics.registry import select
from ragtrace.metrics.selection.harm import harm
from ragtrace.metrics.selection.precision4 import precision4
from ragtrace.metrics.selection.ra_nwg import ra_nwg
from ragtrace.metrics.selection.set_family import SetParams
from ragtrace.model import AnswerPart, Labels, Passage, Pool, RagRecord
from ragtrace.stats.intervals import bootstrap_mean_ci
from tests.golden import replies
from tests.golden.loading import na_reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from ragtrace.judges.llm.judge import LLMJudge
    from ragtrace.metrics.base import Metric
    from ragtrace.model import MetricResult

TOLERANCE = 1e-9
# The vectors name no reasons; ours say which of the two it was.
CITATION_REASONS = {"no_parts", "no_citations"}


class FixedEmbedder:
    """Gives the vectors of the record, by text."""

    name = "golden"

    def __init__(self, by_text: Mapping[str, Sequence[float]]) -> None:
        self._by_text = by_text

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([self._by_text[text] for text in texts], dtype=np.float64)


def passages(ids: Iterable[str], texts: Mapping[str, str] | None = None) -> tuple[Passage, ...]:
    listed = enumerate(ids, start=1)
    return tuple(Passage(id=i, text=i if texts is None else texts[i], rank=n) for n, i in listed)


def used(texts: Sequence[str]) -> tuple[Pool, ...]:
    """A record's contexts; their ids are far from the numbers that a judge sees."""
    listed = tuple(Passage(id=f"ctx-{n}", text=text, rank=n) for n, text in enumerate(texts, start=1))
    return (Pool(stage="used", passages=listed),)


async def computed(metrics: Sequence[Metric], case: EvalContext) -> dict[str, MetricResult]:
    return {result.key: result for result in await evaluate(metrics, case)}


def not_blank(texts: Sequence[str]) -> int:
    return sum(bool(text.strip()) for text in texts)


def check(result: MetricResult, expected: float | None, record: dict[str, Any]) -> None:
    if expected is None:
        assert result.value is None, f"{result.name} must have no value, got {result.value}"
        reason = na_reason(record)
        if reason is not None:
            assert result.reason == reason
            assert (result.state == "error") == (reason.startswith("judge_") or result.reason in _ERRORS)
        return
    assert result.state == "ok", f"{result.name}: {result.state} {result.reason} {dict(result.details)}"
    assert result.value == pytest.approx(expected, rel=0, abs=TOLERANCE)


def same(found: float | None, expected: float | None, name: str) -> None:
    if found is None or expected is None:
        assert found is expected, name
    else:
        assert found == pytest.approx(expected, rel=0, abs=TOLERANCE), name


_ERRORS = {"zero_embedding", "invalid_grade"}


async def faithfulness(record: dict[str, Any], judge: LLMJudge | None = None) -> None:
    inputs = record["inputs"]
    contexts = inputs.get("contexts") or []
    made = RagRecord(
        id="1", query=inputs.get("query") or "", answer=inputs.get("answer") or "", pools=used(contexts)
    )
    judge = judge or replies.judge(record, lambda: replies.faithfulness(record, not_blank(contexts)))
    options = MetricOptions(zero_on_empty_context=inputs.get("on_empty_context") == "zero")
    results = await computed(select(["faithfulness"]), EvalContext(made, judge=judge, options=options))
    check(results["faithfulness"], record["expected"], record)


async def answer_relevancy(record: dict[str, Any]) -> None:
    inputs = record["inputs"]
    query, vectors = inputs.get("query") or "", inputs.get("question_embeddings") or []
    texts = [f"question {n}?" if vector is not None else "" for n, vector in enumerate(vectors, start=1)]
    known = {text: vector for text, vector in zip(texts, vectors, strict=True) if vector is not None}
    embedder = FixedEmbedder({query: inputs.get("query_embedding"), **known})
    made = RagRecord(id="1", query=query, answer=inputs.get("answer") or "")
    options = MetricOptions(n_questions=min(max(len(texts), 1), 10))
    judge = replies.judge(record, lambda: replies.questions(record, texts))
    results = await computed(
        select(["answer_relevancy"]), EvalContext(made, judge=judge, embedder=embedder, options=options)
    )
    check(results["answer_relevancy"], record["expected"], record)


async def citations(record: dict[str, Any]) -> None:
    inputs = record["inputs"]
    given = inputs.get("passages") or {}
    texts = given if isinstance(given, dict) else {str(n): text for n, text in enumerate(given, start=1)}
    parts = tuple(
        AnswerPart(text=part["text"], citations=tuple(str(cited) for cited in part.get("citations") or ()))
        for part in inputs.get("parts") or ()
    )
    made = RagRecord(
        id="1",
        query=inputs.get("query") or "q",
        answer=" ".join(part.text for part in parts),
        answer_parts=parts,
        pools=(Pool(stage="used", passages=passages(texts, texts)),),
    )
    judge = replies.judge(record, lambda: replies.citations(record, set(texts)))
    results = await computed(select(["citations"]), EvalContext(made, judge=judge))
    expected = record["expected"] or {}
    for name in ("precision", "recall", "f1", "precision_micro"):
        result = results[f"citation_{name}"]
        if result.reason in CITATION_REASONS:
            assert expected.get(name) is None
        elif name in expected or record["expected"] is None:
            check(result, expected.get(name), record)
    details = results["citation_recall"].details
    for name in ("dangling", "dangling_rate", "cited_parts", "cited_part_rate", "parts"):
        if name in expected and details:
            assert details[name] == pytest.approx(expected[name], rel=0, abs=TOLERANCE)


async def context_precision(record: dict[str, Any], judge: LLMJudge | None = None) -> None:
    inputs = record["inputs"]
    with_reference = inputs.get("mode", "without_reference") == "with_reference"
    target, contexts = inputs.get("reference_or_answer") or "", inputs.get("contexts") or []
    made = RagRecord(
        id="1",
        query=inputs.get("query") or "",
        answer="" if with_reference else target,
        reference=target if with_reference else None,
        pools=used(contexts),
    )
    judge = judge or replies.judge(record, lambda: replies.relevance(record, contexts))
    metric = CoroutineMetric(CONTEXT_PRECISION.spec, partial(precision_over, needs_reference=with_reference))
    result = (await computed([metric], EvalContext(made, judge=judge)))["context_precision"]
    check(result, record["expected"], record)
    assert result.state == "error" or result.details["mode"] == inputs.get("mode", "without_reference")


async def context_recall(record: dict[str, Any]) -> None:
    inputs = record["inputs"]
    contexts = inputs.get("contexts") or []
    made = RagRecord(
        id="1", query=inputs.get("query") or "", reference=inputs.get("reference"), pools=used(contexts)
    )
    judge = replies.judge(record, lambda: replies.facts(record, contexts))
    results = await computed(select(["context_recall"]), EvalContext(made, judge=judge))
    check(results["context_recall"], record["expected"], record)


async def no_answer(record: dict[str, Any]) -> None:
    inputs = record["inputs"]
    made = RagRecord(id="1", query=inputs.get("query") or "", answer=inputs.get("answer") or "")
    judge = replies.judge(record, lambda: replies.attempt(record))
    result = (await computed(select(["no_answer"]), EvalContext(made, judge=judge)))["answered"]
    expected = record["expected"] or {}
    attempted = expected.get("attempted")
    check(result, None if attempted is None else float(attempted), record)
    if "short_circuit" in expected:
        assert (result.llm_calls == 0) == expected["short_circuit"]


async def rank_metrics(record: dict[str, Any]) -> None:
    inputs, expected = record["inputs"], record["expected"] or {}
    labels, ranked, k = inputs["labels"], inputs["ranked"], inputs["k"]
    relevant = inputs.get("rel_threshold", 2)
    found = {
        "p_at_k": rank.p_at_k(ranked, labels, k, relevant),
        "ap_at_k_retrieved": rank.ap_at_k_retrieved(ranked, labels, k, relevant),
        "ap_at_k": rank.ap_at_k(ranked, labels, k, relevant),
        "ap_at_k_minRK": rank.ap_at_k_min_rk(ranked, labels, k, relevant),
        "mrr": rank.reciprocal_rank(ranked, labels, relevant) if k > 0 else None,
        "mrr_at_k": rank.mrr_at_k(ranked, labels, k, relevant),
        "ndcg_at_k": rank.ndcg_at_k(ranked, labels, k),
        "ndcg_exp_at_k": rank.ndcg_exp_at_k(ranked, labels, k),
    }
    for name, value in found.items():
        if name in expected or record["expected"] is None:
            same(value, expected.get(name), name)
    await _rank_metrics_over_a_record(record, labels, ranked, k, relevant)


async def _rank_metrics_over_a_record(
    record: dict[str, Any], labels: dict[str, int], ranked: list[str], k: int, relevant: int
) -> None:
    """The same through the metrics, with the labels mapped onto 1 to 5; they refuse lists with unlabelled ids."""
    expected = record["expected"] or {}
    if not labels or not set(ranked) <= set(labels) or not set(labels.values()) <= {0, 1, 2, 3} or relevant < 1:
        return
    mapped = Labels(grades={key: from_umbrela(value) for key, value in labels.items()}, scale="umbrela_mapped")
    made = RagRecord(id="1", pools=(Pool(stage="retrieved", passages=passages(ranked)),), labels=mapped, k=k)
    case = EvalContext(made, options=MetricOptions(relevant_grade=from_umbrela(relevant)))
    results = await computed([P_AT_K, AP_RETRIEVED, MRR, NDCG], case)
    for name, result in results.items():
        assert (result.judge is None) == (result.reason == "k_not_positive")
        if name in expected:
            check(result, expected[name], record)


async def set_metrics(record: dict[str, Any]) -> None:
    inputs, expected = record["inputs"], record["expected"] or {}
    params = dict(inputs.get("params") or {})
    has_bounds = bool(params.pop("bounds", False))
    made_params = SetParams(**params)
    made = RagRecord(
        id="1",
        pools=(
            Pool(stage="retrieved", passages=passages(inputs["pool"])),
            Pool(stage="used", passages=passages(inputs["topk"])),
        ),
        labels=Labels(grades=inputs["labels"]),
        k=inputs["k"],
    )
    case = EvalContext(made, options=MetricOptions(harm_max=made_params.harm_max))
    metrics = [ra_nwg(made_params, has_bounds=has_bounds), precision4(made_params), harm(made_params)]
    results = await computed(metrics, case)
    infix = "_monotone_at_k" if made_params.monotone else "_at_k"
    names = {key: f"{key}{infix}" for key in ("ra_nwg", "proc", "pct_proc", "n_recall4", "n_recall5")}
    names |= {key: f"{key}_at_k" for key in ("precision4", "harm")}
    for key, name in names.items():
        if key in expected or record["expected"] is None:
            check(results[name], expected.get(key), record)
    _check_facts(expected, results[names["ra_nwg"]], set(names))


def _check_facts(expected: dict[str, Any], result: MetricResult, values: set[str]) -> None:
    for key, value in expected.items():
        if key in values or key == "na":
            continue
        found = result.details[key]
        if isinstance(value, dict):
            assert found == {
                str(grade): pytest.approx(weight, rel=0, abs=TOLERANCE) for grade, weight in value.items()
            }
        else:
            assert found == pytest.approx(value, rel=0, abs=TOLERANCE), key


def umbrela_record(inputs: dict[str, Any]) -> RagRecord:
    number = inputs["passages"]
    count = number if isinstance(number, int) else len(number)
    pool = Pool(stage="retrieved", passages=passages(f"d{place}" for place in range(count)))
    return RagRecord(id="1", query=inputs.get("query") or "", pools=(pool,))


async def umbrela(record: dict[str, Any], judge: LLMJudge | None = None, scale: str = "direct5") -> None:
    made, expected = umbrela_record(record["inputs"]), record["expected"] or {}
    judge = judge or replies.judge(record, lambda: replies.umbrela_grades(record, made)[0])
    case = EvalContext(made, judge=judge, options=MetricOptions(k_values=(1, 3, 5)))
    results = await computed([P_AT_K, AP_RETRIEVED, MRR], case)
    if record["expected"] is None:
        check(results["p_at_k"], None, record)
        return
    assert results["mrr"].judge is not None
    assert results["mrr"].judge.label_scale == scale
    grades: Any = results["mrr"].details["grades"]
    assert grades == expected["grades_1_5"]
    mean = sum(map(to_umbrela, grades)) / len(grades)
    assert mean == pytest.approx(expected["umbrela_mean"], rel=0, abs=TOLERANCE)
    check(results["mrr"], expected["mrr"], record)
    for name, by_k in (("p_at_k", expected["p_at"]), ("ap_at_k_retrieved", expected["ap_retrieved_at"])):
        for k, value in by_k.items():
            result = next(item for key, item in results.items() if item.name == name and item.k == int(k))
            check(result, value, record)


async def bootstrap(record: dict[str, Any]) -> None:
    inputs = dict(record["inputs"])
    found = bootstrap_mean_ci(inputs.pop("values"), **inputs)
    expected = record["expected"] or {}
    for name in ("mean", "low", "high"):
        same(getattr(found, name), expected.get(name), name)


RUNNERS: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
    "faithfulness": faithfulness,
    "answer_relevancy": answer_relevancy,
    "citations": citations,
    "context_precision": context_precision,
    "context_recall": context_recall,
    "no_answer": no_answer,
    "rank_metrics": rank_metrics,
    "set_metrics": set_metrics,
    "umbrela": umbrela,
    "bootstrap": bootstrap,
    "bootstrap_mean_ci": bootstrap,
}
