"""Edges that the copied vectors do not hold, in their form and through the same harness."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.running import RUNNERS

REF = {"query": "q", "contexts": ["The lab is in Oslo."], "reference": "r"}
LAB = {"query": "Where is the lab?", "answer": "a", "contexts": ["The lab is in Oslo.", "It opened in 2010."]}
UNIT = {"query": "q", "answer": "a", "query_embedding": [1.0, 0.0]}
LABELS = {"d0": 5, "d1": 4, "d2": 4, "d3": 3, "d4": 2}
SETS = ("ra_nwg", "proc", "pct_proc", "n_recall4", "n_recall5", "precision4", "harm")
PARTS = [{"text": "s1", "citations": ["1"]}, {"text": "s2", "citations": ["9"]}]
TEXTS = {"1": "a", "2": "b"}


def edge(
    metric: str, name: str, inputs: dict[str, Any], verdicts: Any, expected: Any, na: str | None = None
) -> Any:
    record = {"metric": metric, "inputs": inputs, "judge_verdicts": verdicts, "expected": expected}
    if na is not None:
        record["na_reason"] = na
    return pytest.param(record, id=f"{metric}-{name}")


def family(na: str | None, **values: float | None) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(SETS)
    return {**empty, **values, **({"na": na} if na else {})}


def sets(name: str, expected: Any, **inputs: Any) -> Any:
    given = {"labels": LABELS, "topk": ["d0", "d4"], "pool": list(LABELS), "k": 2, "params": {}, **inputs}
    return edge("set_metrics", name, given, None, expected)


EDGES = [
    edge("faithfulness", "blank-answer", {**LAB, "answer": " \n"}, None, None, "no_answer"),
    edge("faithfulness", "blank-contexts", {**LAB, "contexts": ["", " "]}, None, None, "no_contexts"),
    edge("faithfulness", "blank-among", {**LAB, "contexts": ["", "x"]}, {"claims": 2, "supported": [1, 0]}, 0.5),
    edge("faithfulness", "zero", {**LAB, "contexts": [], "on_empty_context": "zero"}, None, 0.0),
    edge("faithfulness", "no-claims", LAB, {"claims": 0, "supported": []}, None, "no_claims"),
    edge("faithfulness", "refusal", LAB, {"claims": 0, "supported": []}, None, "abstained"),
    edge("faithfulness", "exception", LAB, "exception", None, "judge_error"),
    edge("faithfulness", "exception-within", LAB, {"claims": 1, "supported": ["exception"]}, None, "judge_error"),
    edge("faithfulness", "timeout", LAB, "exception", None, "judge_timeout"),
    edge("faithfulness", "contradicted", LAB, {"claims": 2, "supported": [1, "contradicted"]}, 0.5),
    edge("answer_relevancy", "blank-query", {**UNIT, "query": " "}, None, None, "missing_input:query"),
    edge("answer_relevancy", "blank-answer", {**UNIT, "answer": ""}, None, None, "no_answer"),
    edge(
        "answer_relevancy",
        "opposite",
        {**UNIT, "question_embeddings": [[-1.0, 0.0]]},
        {"noncommittal": [0]},
        0.0,
    ),
    edge(
        "answer_relevancy",
        "one-noncommittal",
        {**UNIT, "question_embeddings": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]},
        {"noncommittal": [1, 0, 0]},
        2 / 3,
    ),
    edge(
        "answer_relevancy",
        "the-committal-one-is-empty",
        {**UNIT, "question_embeddings": [[1.0, 0.0], None]},
        {"noncommittal": [1, 0]},
        0.0,
    ),
    edge(
        "answer_relevancy",
        "query-zero",
        {**UNIT, "query_embedding": [0.0, 0.0], "question_embeddings": [[1.0, 0.0]]},
        {"noncommittal": [0]},
        None,
        "zero_embedding",
    ),
    edge(
        "answer_relevancy",
        "all-zero",
        {**UNIT, "question_embeddings": [[0.0, 0.0], [0.0, 0.0]]},
        {"noncommittal": [0, 0]},
        None,
        "zero_embedding",
    ),
    edge(
        "answer_relevancy",
        "exception",
        {**UNIT, "question_embeddings": [[1.0, 0.0]]},
        {"noncommittal": "exception"},
        None,
        "judge_error",
    ),
    edge(
        "citations",
        "no-parts",
        {"parts": [], "passages": TEXTS},
        [],
        {"precision": None, "recall": None, "f1": None, "precision_micro": None, "dangling": 0, "parts": 0},
    ),
    edge(
        "citations",
        "no-citations",
        {"parts": [{"text": "s1", "citations": []}], "passages": TEXTS},
        [[]],
        {"precision": None, "recall": 0.0, "f1": None, "precision_micro": None, "cited_parts": 0, "parts": 1},
    ),
    edge(
        "citations",
        "dangling-only",
        {"parts": PARTS[1:], "passages": TEXTS},
        None,
        {"precision": 0.0, "recall": 0.0, "f1": 0.0, "precision_micro": 0.0, "dangling": 1, "cited_parts": 1},
    ),
    edge(
        "citations",
        "dangling-part",
        {"parts": PARTS, "passages": TEXTS},
        [[{"citation": "1", "support": "full"}], [{"citation": "9", "support": "full"}]],
        {"precision": 0.5, "recall": 0.5, "f1": 0.5, "precision_micro": 0.5, "dangling": 1, "dangling_rate": 0.5},
    ),
    edge(
        "citations",
        "passages-out-of-order",
        {"parts": [{"text": "s", "citations": ["1", "2"]}], "passages": {"2": "b", "1": "a"}},
        [[{"citation": "1", "support": "full"}, {"citation": "2", "support": "none"}]],
        {"precision": 0.5, "recall": 0.5, "f1": 0.5, "precision_micro": 0.5},
    ),
    edge("citations", "verdict-missing", {"parts": PARTS[:1], "passages": TEXTS}, [[]], None, "judge_incomplete"),
    edge("citations", "exception", {"parts": PARTS[:1], "passages": TEXTS}, "exception", None, "judge_error"),
    edge(
        "context_precision",
        "blank-reference",
        {"query": "q", "mode": "with_reference", "reference_or_answer": " ", "contexts": ["c"]},
        None,
        None,
        "missing_input:reference",
    ),
    edge(
        "context_precision",
        "blank-answer",
        {"query": "q", "mode": "without_reference", "reference_or_answer": "", "contexts": ["c"]},
        None,
        None,
        "no_answer",
    ),
    edge(
        "context_precision",
        "blank-query",
        {"query": "", "mode": "with_reference", "reference_or_answer": "r", "contexts": ["c"]},
        None,
        None,
        "missing_input:query",
    ),
    edge(
        "context_precision",
        "blank-contexts",
        {"query": "q", "mode": "with_reference", "reference_or_answer": "r", "contexts": [" ", ""]},
        None,
        None,
        "no_contexts",
    ),
    edge(
        "context_precision",
        "blank-among",
        {"query": "q", "mode": "with_reference", "reference_or_answer": "r", "contexts": ["", "c1", "c2"]},
        {"relevant": [0, 1]},
        0.5,
    ),
    edge(
        "context_precision",
        "shorter",
        {"query": "q", "mode": "without_reference", "reference_or_answer": "a", "contexts": ["c0", "c1"]},
        {"relevant": [1]},
        None,
        "judge_incomplete",
    ),
    edge(
        "context_precision",
        "exception",
        {"query": "q", "mode": "without_reference", "reference_or_answer": "a", "contexts": ["c0"]},
        {"relevant": ["exception"]},
        None,
        "judge_error",
    ),
    edge("context_recall", "no-reference", {**LAB, "reference": None}, None, None, "missing_input:reference"),
    edge("context_recall", "blank-reference", {**LAB, "reference": ""}, None, None, "missing_input:reference"),
    edge("context_recall", "no-contexts", {"query": "q", "contexts": [], "reference": "r"}, None, 0.0),
    edge("context_recall", "no-query", {**REF, "query": ""}, {"facts": 1, "attributed": [1]}, 1.0),
    edge("context_recall", "no-facts", REF, {"facts": 0, "attributed": []}, None, "no_claims"),
    edge(
        "context_recall",
        "shorter",
        {**LAB, "reference": "r"},
        {"facts": 3, "attributed": [1, 0], "source_context": [2, None]},
        None,
        "judge_incomplete",
    ),
    edge(
        "context_recall",
        "longer",
        {**LAB, "reference": "r"},
        {"facts": 1, "attributed": [1, 0]},
        None,
        "judge_incomplete",
    ),
    edge("context_recall", "exception", {**LAB, "reference": "r"}, "exception", None, "judge_error"),
    edge("no_answer", "wrong", {"query": "q", "answer": "Rome."}, "yes", {"attempted": True}),
    edge("no_answer", "exception", {"query": "q", "answer": "Rome."}, "exception", None, "judge_error"),
    edge("no_answer", "unparseable", {"query": "q", "answer": "Rome."}, "perhaps", None, "judge_invalid_output"),
    edge("umbrela", "missing", {"query": "q", "passages": 2}, [3, None], None, "judge_incomplete"),
    edge("umbrela", "unparseable", {"query": "q", "passages": 1}, ["three"], None, "judge_invalid_output"),
    edge("umbrela", "exception", {"query": "q", "passages": 1}, ["exception"], None, "judge_error"),
    edge(
        "rank_metrics",
        "k-zero",
        {"labels": {"a": 3}, "ranked": ["a"], "k": 0, "rel_threshold": 2},
        None,
        dict.fromkeys(("p_at_k", "ap_at_k_retrieved", "ap_at_k", "mrr", "mrr_at_k", "ndcg_at_k")),
        "k_not_positive",
    ),
    edge(
        "rank_metrics",
        "nothing-ranked",
        {"labels": {"a": 3}, "ranked": [], "k": 3, "rel_threshold": 2},
        None,
        {"p_at_k": 0.0, "ap_at_k_retrieved": 0.0, "ap_at_k": 0.0, "mrr": 0.0, "mrr_at_k": 0.0, "ndcg_at_k": 0.0},
    ),
    sets("k-negative", family("k_not_positive", dup_count=0), k=-1),
    sets("k-zero-before-no-labels", family("k_not_positive", dup_count=1), k=0, labels={}, topk=["x", "x"]),
    sets("no-labels-before-unlabelled", family("no_labels"), labels={}),
    sets("grade-6", family("invalid_grade"), labels={"d0": 6, "d4": 1}),
    sets("grade-0", family("invalid_grade"), labels={"d0": 5, "d4": 0}),
    sets("grade-half", family("invalid_grade"), labels={"d0": 4.5, "d4": 1}),
    sets("grade-true", family("invalid_grade"), labels={"d0": True, "d4": 1}),
    sets("grade-text", family("invalid_grade"), labels={"d0": "5", "d4": 1}),
    sets("unlabelled-before-zero-oracle", family("unlabelled_topk"), labels={"d0": 1}),
    sets("unlabelled-beyond-k", family(None, ra_nwg=1.0, proc=1.0, pct_proc=1.0, n_recall4=1.0, n_recall5=1.0,
                                       precision4=1.0, harm=0.0), k=1, topk=["d0", "zz"]),
    sets("only-junk", family(None, precision4=0.0, harm=1.0), labels={"d0": 1, "d4": 2}),
    sets("nothing-delivered", family(None, ra_nwg=0.0, proc=1.0, pct_proc=0.0, n_recall4=0.0, n_recall5=0.0,
                                     precision4=0.0, harm=0.0), topk=[]),
    sets("zero-pool", family(None, ra_nwg=0.0, proc=0.0, n_recall4=0.0, n_recall5=0.0, precision4=0.0, harm=1.0),
         topk=["d4"], pool=["d4"], k=1),
    sets("unlabelled-pool-member", family(None, ra_nwg=0.8, proc=1.0, pct_proc=0.8, n_recall4=0.5, n_recall5=1.0,
                                          precision4=0.5, harm=0.5, g_pool=1.25, pool_unlabelled=1),
         pool=["d0", "d1", "zz"]),
    sets("returned", family(None, precision4=1.0, harm=0.0, ra_nwg=1 / 1.5, proc=1.0, pct_proc=1 / 1.5,
                            n_recall4=1 / 3, n_recall5=1.0),
         topk=["d0"], k=3, params={"denominator": "returned"}),
    sets("monotone", family(None, ra_nwg=0.05, weights={"5": 1.0, "4": 0.05, "3": 0.05, "2": 0.0, "1": 0.0},
                            proc=1.0, pct_proc=0.05, n_recall4=0.0, n_recall5=0.0, precision4=0.0, harm=0.0),
         labels={"a": 5, "t": 3, **{f"d{n}": 4 for n in range(10)}}, topk=["t"], pool=["a"], k=1,
         params={"monotone": True}),
]  # fmt: skip


@pytest.mark.parametrize("record", EDGES)
async def test_edge(record: dict[str, Any]) -> None:
    await RUNNERS[record["metric"]](record)
