"""Edges that the copied vectors do not hold, in their form and through the same harness."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.test_golden import RUNNERS

LAB = {"query": "Where is the lab?", "answer": "a", "contexts": ["The lab is in Oslo.", "It opened in 2010."]}
UNIT = {"query": "q", "answer": "a", "query_embedding": [1.0, 0.0]}
LABELS = {"d0": 5, "d1": 4, "d2": 4, "d3": 3, "d4": 2}
SETS = ("ra_nwg", "proc", "pct_proc", "n_recall4", "n_recall5", "precision4", "harm")
TEXTS = {"1": "a", "2": "b"}
FULL = {"citation": "1", "support": "full"}
RANKED = {"labels": {"a": 3}, "rel_threshold": 2}
RANKS = ("p_at_k", "ap_at_k_retrieved", "ap_at_k", "ap_at_k_minRK", "mrr", "mrr_at_k", "ndcg_at_k")
NOISE = {"user_input": "Where?", "response": "a", "reference": "r", "retrieved_contexts": ["c0", "c1"]}
TABLES = {
    "reference_fact_by_context": [[1, 0]],
    "answer_claim_by_context": [[0, 1], [1, 0]],
    "answer_claim_correct": [0, 1],
}
SHARES = ("relevant", "irrelevant", "unattributed", "incorrect_rate")
RATIOS = ("precision", "recall", "f1")
FACTUAL = {"answer": "a", "reference": "r"}
NAMES = {"reference_entities": ["Oslo"], "context_entities": ["oslo"]}


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


def relevancy(name: str, embeddings: Any, flags: Any, expected: Any, na: str | None = None, **inputs: Any) -> Any:
    given = {**UNIT, "question_embeddings": embeddings, **inputs}
    return edge("answer_relevancy", name, given, {"noncommittal": flags}, expected, na)


def cites(
    name: str, cited: Any, verdicts: Any, values: Any, na: str | None = None, *, passages: Any = TEXTS, **facts: Any
) -> Any:
    """Return the case of an answer whose parts cite these ids; `values` are precision, recall, F1 and micro precision."""
    inputs = {"parts": [{"text": "s", "citations": ids} for ids in cited], "passages": passages}
    expected = values and dict(zip(("precision", "recall", "f1", "precision_micro"), values, strict=True)) | facts
    return edge("citations", name, inputs, verdicts, expected, na)


def precision(name: str, relevant: Any, expected: Any, na: str | None = None, **inputs: Any) -> Any:
    given = {"query": "q", "mode": "with_reference", "reference_or_answer": "r", "contexts": ["c"], **inputs}
    return edge("context_precision", name, given, relevant and {"relevant": relevant}, expected, na)


def recall(name: str, verdicts: Any, expected: Any, na: str | None = None, **inputs: Any) -> Any:
    return edge("context_recall", name, {**LAB, "reference": "r", **inputs}, verdicts, expected, na)


def noise(name: str, verdicts: Any, expected: Any, na: str | None = None, **inputs: Any) -> Any:
    values = dict(zip(SHARES, expected, strict=True)) if expected else None
    return edge("noise_sensitivity", name, NOISE | inputs, verdicts, values, na)


def factual(name: str, verdicts: Any, expected: Any, na: str | None = None, **inputs: Any) -> Any:
    values = dict(zip(RATIOS, expected, strict=True)) if expected else None
    return edge("factual_correctness", name, FACTUAL | inputs, verdicts, values, na)


def entailed(answer: Any, reference: Any, **more: Any) -> dict[str, Any]:
    return {"answer_claims_entailed": answer, "reference_claims_entailed": reference, **more}


def entities(name: str, verdicts: Any, expected: float | None, na: str | None = None, **inputs: Any) -> Any:
    return edge(
        "context_entities_recall",
        name,
        {"reference": "r", "contexts": ["The lab is in Oslo."]} | inputs,
        verdicts,
        expected,
        na,
    )


def similarity(name: str, a: Any, b: Any, expected: float | None, na: str | None = None) -> Any:
    return edge("semantic_similarity", name, {"a": a, "b": b}, None, expected, na)


def aggregate(
    name: str, runs: Any, per_judge: Any, score: float | None, apart: float | None, na: str | None = None
) -> Any:
    expected = {
        "per_judge": [dict(zip(("score", "std", "failures"), judge, strict=True)) for judge in per_judge],
        "score_1_5": score,
        "score_0_1": None if score is None else (score - 1) / 4,
        "passed_3": score is not None and score >= 3,
        "passed_4": score is not None and score >= 4,
        "mean_abs_diff": apart,
    }
    return edge("judge_aggregate", name, {}, {"runs_per_judge_0_means_failed": runs}, expected, na)


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
    relevancy("opposite", [[-1.0, 0.0]], [0], 0.0),
    relevancy("one-noncommittal", [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1, 0, 0], 2 / 3),
    relevancy("the-committal-one-is-empty", [[1.0, 0.0], None], [1, 0], 0.0),
    relevancy("query-zero", [[1.0, 0.0]], [0], None, "zero_embedding", query_embedding=[0.0, 0.0]),
    relevancy("all-zero", [[0.0, 0.0], [0.0, 0.0]], [0, 0], None, "zero_embedding"),
    relevancy("exception", [[1.0, 0.0]], "exception", None, "judge_error"),
    cites("no-parts", [], [], (None, None, None, None), dangling=0, parts=0),
    cites("no-citations", [[]], [[]], (None, 0.0, None, None), cited_parts=0, parts=1),
    cites("dangling-only", [["9"]], None, (0.0, 0.0, 0.0, 0.0), dangling=1, cited_parts=1),
    cites("dangling-part", [["1"], ["9"]], [[FULL], [{**FULL, "citation": "9"}]], (0.5,) * 4, dangling=1,
          dangling_rate=0.5),
    cites("passages-out-of-order", [["1", "2"]], [[FULL, {"citation": "2", "support": "none"}]], (0.5,) * 4,
          passages={"2": "b", "1": "a"}),
    cites("verdict-missing", [["1"]], [[]], None, "judge_incomplete"),
    cites("exception", [["1"]], "exception", None, "judge_error"),
    precision("blank-reference", None, None, "missing_input:reference", reference_or_answer=" "),
    precision("blank-answer", None, None, "no_answer", mode="without_reference", reference_or_answer=""),
    precision("blank-query", None, None, "missing_input:query", query=""),
    precision("blank-contexts", None, None, "no_contexts", contexts=[" ", ""]),
    precision("blank-among", [0, 1], 0.5, contexts=["", "c1", "c2"]),
    precision("shorter", [1], None, "judge_incomplete", mode="without_reference", contexts=["c0", "c1"]),
    precision("exception", ["exception"], None, "judge_error", mode="without_reference"),
    recall("no-reference", None, None, "missing_input:reference", reference=None),
    recall("blank-reference", None, None, "missing_input:reference", reference=""),
    recall("no-contexts", None, 0.0, contexts=[]),
    recall("no-query", {"facts": 1, "attributed": [1]}, 1.0, query=""),
    recall("no-facts", {"facts": 0, "attributed": []}, None, "no_claims"),
    recall("shorter", {"facts": 3, "attributed": [1, 0], "source_context": [2, None]}, None, "judge_incomplete"),
    recall("longer", {"facts": 1, "attributed": [1, 0]}, None, "judge_incomplete"),
    recall("exception", "exception", None, "judge_error"),
    edge("no_answer", "wrong", {"query": "q", "answer": "Rome."}, "yes", {"attempted": True}),
    edge("no_answer", "exception", {"query": "q", "answer": "Rome."}, "exception", None, "judge_error"),
    edge("no_answer", "unparseable", {"query": "q", "answer": "Rome."}, "perhaps", None, "judge_invalid_output"),
    edge("umbrela", "missing", {"query": "q", "passages": 2}, [3, None], None, "judge_incomplete"),
    edge("umbrela", "unparseable", {"query": "q", "passages": 1}, ["three"], None, "judge_invalid_output"),
    edge("umbrela", "exception", {"query": "q", "passages": 1}, ["exception"], None, "judge_error"),
    edge("rank_metrics", "k-zero", {**RANKED, "ranked": ["a"], "k": 0}, None, dict.fromkeys(RANKS), "k_not_positive"),
    edge("rank_metrics", "nothing-ranked", {**RANKED, "ranked": [], "k": 3}, None, dict.fromkeys(RANKS, 0.0)),
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
    noise("plain", TABLES, [0.0, 0.5, 0.0, 0.5]),
    noise("blank-answer", None, None, "no_answer", response=" "),
    noise("blank-reference", None, None, "missing_input:reference", reference="\n"),
    noise("no-reference", None, None, "missing_input:reference", reference=None),
    noise("no-contexts", None, None, "no_contexts", retrieved_contexts=["", " "]),
    noise("no-claims", TABLES | {"answer_claim_by_context": [], "answer_claim_correct": []}, None, "no_claims"),
    noise("no-facts", TABLES | {"reference_fact_by_context": []}, [0.0, 0.5, 0.0, 0.5]),
    noise("a-blank-context", TABLES, [0.0, 0.5, 0.0, 0.5], retrieved_contexts=["c0", "c1", " "]),
    noise("no-query", TABLES, [0.0, 0.5, 0.0, 0.5], user_input=""),
    noise("short-row-list", TABLES | {"answer_claim_by_context": [[0, 1]], "claims": 2}, None, "judge_incomplete"),
    noise("missing-row", TABLES | {"answer_claim_by_context": [[0, 1], None]}, None, "judge_incomplete"),
    noise("short-verdicts", TABLES | {"answer_claim_correct": [1]}, None, "judge_incomplete"),
    noise("long-verdicts", TABLES | {"answer_claim_correct": [1, 1, 1]}, None, "judge_incomplete"),
    noise("context-that-is-not", TABLES | {"answer_claim_by_context": [[0, 0, 1], [1]]}, None, "judge_incomplete"),
    noise("garbage", TABLES | {"answer_claim_correct": ["perhaps", 1]}, None, "judge_invalid_output"),
    noise("transport", TABLES | {"answer_claim_correct": "exception"}, None, "judge_error"),
    factual("no-answer-claims", entailed([], [1, 0]), [None, 0.5, None], "no_claims"),
    factual("no-claims-at-all", entailed([], []), None, "no_claims"),
    factual("words", entailed(["entailed", "contradicted"], ["neutral", "entailed"]), [0.5, 0.5, 0.5]),
    factual("beta", entailed([1, 1], [1, 0]), [1.0, 0.5, 5 * 0.5 / 4.5], beta=2.0),
    factual("blank-answer", None, None, "no_answer", answer=""),
    factual("no-reference", None, None, "missing_input:reference", reference=None),
    factual("short", entailed([1], [1], answer_claims=2), None, "judge_incomplete"),
    factual("long", entailed([1, 1, 1], [1], answer_claims=2), None, "judge_incomplete"),
    factual("long-reference", entailed([1, 1], [1, 1], reference_claims=1), None, "judge_incomplete"),
    factual("transport", entailed("exception", [1]), None, "judge_error"),
    factual("timeout", entailed("exception", [1]), None, "judge_timeout"),
    entities("no-contexts", None, 0.0, contexts=[]),
    entities("no-reference", None, None, "missing_input:reference", reference=""),
    entities("nothing-in-either", {"reference_entities": [], "context_entities": []}, None, "no_entities"),
    entities("punctuation-alone", NAMES | {"reference_entities": ["...", " "]}, None, "no_entities"),
    entities("doubled", NAMES | {"reference_entities": ["Oslo", "OSLO ", "\u201cOslo\u201d", "Rome"]}, 0.5),
    entities(
        "width",
        {"reference_entities": ["\uff2f\uff33\uff2c\uff2f\u3000Lab"], "context_entities": ["Oslo  lab."]},
        1.0,
    ),
    entities("sharp-s", {"reference_entities": ["Stra\u00dfe"], "context_entities": ["STRASSE"]}, 1.0),
    entities("no-list", {"reference_entities": "Oslo", "context_entities": []}, None, "judge_invalid_output"),
    entities("transport", "exception", None, "judge_error"),
    similarity("opposite", [1.0, 0.0], [-2.0, 0.0], -1.0),
    similarity("zero", [0.0, 0.0], [1.0, 0.0], None, "zero_embedding"),
    similarity("zero-reference", [1.0, 0.0], [0.0, 0.0], None, "zero_embedding"),
    similarity("no-reference", [1.0, 0.0], None, None, "missing_input:reference"),
    similarity("no-answer", None, [1.0, 0.0], None, "no_answer"),
    similarity("huge", [1e200, 1e200], [1e-200, 0.0], 2**-0.5),
    aggregate("one-run", [[5]], [(5.0, 0.0, 0)], 5.0, None),
    aggregate("all-zero", [[0, 0, 0]], [(None, None, 3)], None, None, "judge_error"),
    aggregate("one-zero", [[0]], [(None, None, 1)], None, None, "judge_error"),
    aggregate("mixed-failures", [[0, 7], [0, "exception"]], [(None, None, 2)] * 2, None, None, "judge_error"),
    aggregate("no-grades", [[4, 6, 2.5, "x", True, 4.0], [3]], [(4.0, 0.0, 5), (3.0, 0.0, 0)], 3.5, 1.0),
    aggregate("failed-in-the-middle", [[4, 0, 5], [2, 2, 0]], [(4.5, 0.5**0.5, 1), (2.0, 0.0, 1)], 3.25, 2.5),
    aggregate("fourteen-thirds", [[5, 5, 4]], [(14 / 3, 3**-0.5, 0)], 14 / 3, None),
]  # fmt: skip


@pytest.mark.parametrize("record", EDGES)
async def test_edge(record: dict[str, Any]) -> None:
    await RUNNERS[record["metric"]](record)


async def test_a_record_without_runs_has_no_score() -> None:
    record = {"inputs": {}, "judge_verdicts": {"runs_per_judge_0_means_failed": [[]]}, "expected": None}
    await RUNNERS["judge_aggregate"](record)
