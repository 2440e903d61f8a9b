"""Edges that the copied vectors do not hold, through the same harness."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.running_reference import RUNNERS

LAB = {"user_input": "Where?", "response": "a", "reference": "r", "retrieved_contexts": ["c0", "c1"]}
TABLES = {
    "reference_fact_by_context": [[1, 0]],
    "answer_claim_by_context": [[0, 1], [1, 0]],
    "answer_claim_correct": [0, 1],
}
SHARES = ("relevant", "irrelevant", "unattributed", "incorrect_rate")
RATIOS = ("precision", "recall", "f1")
TEXTS = {"answer": "a", "reference": "r"}
NAMES = {"reference_entities": ["Oslo"], "context_entities": ["oslo"]}
REF = {"reference": "r", "contexts": ["The lab is in Oslo."]}


def edge(
    metric: str, name: str, inputs: dict[str, Any], verdicts: Any, expected: Any, na: str | None = None
) -> Any:
    record = {"metric": metric, "inputs": inputs, "judge_verdicts": verdicts, "expected": expected}
    if na is not None:
        record["na_reason"] = na
    return pytest.param(record, id=f"{metric}-{name}")


def noise(name: str, verdicts: Any, expected: Any, na: str | None = None, **inputs: Any) -> Any:
    values = dict(zip(SHARES, expected, strict=True)) if expected else None
    return edge("noise_sensitivity", name, LAB | inputs, verdicts, values, na)


def factual(name: str, verdicts: Any, expected: Any, na: str | None = None, **inputs: Any) -> Any:
    values = dict(zip(RATIOS, expected, strict=True)) if expected else None
    return edge("factual_correctness", name, TEXTS | inputs, verdicts, values, na)


def entailed(answer: Any, reference: Any, **more: Any) -> dict[str, Any]:
    return {"answer_claims_entailed": answer, "reference_claims_entailed": reference, **more}


def entities(name: str, verdicts: Any, expected: float | None, na: str | None = None, **inputs: Any) -> Any:
    return edge("context_entities_recall", name, REF | inputs, verdicts, expected, na)


def similarity(name: str, a: Any, b: Any, expected: float | None, na: str | None = None) -> Any:
    return edge("semantic_similarity", name, {"a": a, "b": b}, None, expected, na)


EDGES = [
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
]


@pytest.mark.parametrize("record", EDGES)
async def test_edge(record: dict[str, Any]) -> None:
    await RUNNERS[record["metric"]](record)
