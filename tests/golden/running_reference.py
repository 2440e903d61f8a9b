"""Golden vectors of the metrics that read a reference: noise, entities, factual correctness, similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.registry import select
from ragtrace.model import RagRecord
from tests.golden import replies
from tests.golden.running import FixedEmbedder, check, computed, used

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

SHARES = {
    "relevant": "noise_sensitivity_relevant",
    "irrelevant": "noise_sensitivity_irrelevant",
    "unattributed": "noise_sensitivity_unattributed",
    "incorrect_rate": "incorrect_rate",
}
FACTUAL = {
    "precision": "factual_correctness_precision",
    "recall": "factual_correctness_recall",
    "f1": "factual_correctness",
}


async def noise_sensitivity(record: dict[str, Any]) -> None:
    inputs = record["inputs"]
    contexts = _first(inputs, "retrieved_contexts", "contexts") or []
    made = RagRecord(
        id="1",
        query=_first(inputs, "user_input", "query") or "",
        answer=_first(inputs, "response", "answer") or "",
        reference=inputs.get("reference"),
        pools=used(contexts),
    )
    judge = replies.judge(record, lambda: _noise_reply(record["judge_verdicts"], contexts))
    results = await computed(select(["noise_sensitivity"]), EvalContext(made, judge=judge))
    expected = record["expected"] or {}
    for key, name in SHARES.items():
        if key in expected or record["expected"] is None:
            check(results[name], expected.get(key), record)


async def factual_correctness(record: dict[str, Any]) -> None:
    # The ORE records bring no texts: the verdicts say what was found in them.
    inputs = {"answer": "a", "reference": "r"} | record["inputs"]
    made = RagRecord(
        id="1", query=inputs.get("query") or "", answer=inputs["answer"] or "", reference=inputs["reference"]
    )
    judge = replies.judge(record, lambda: _factual_reply(record["judge_verdicts"]))
    options = MetricOptions(factual_beta=inputs.get("beta") or 1.0)
    results = await computed(select(["factual_correctness"]), EvalContext(made, judge=judge, options=options))
    expected = record["expected"] or {}
    for key, name in FACTUAL.items():
        if key in expected or record["expected"] is None:
            check(results[name], expected.get(key), record)


async def context_entities_recall(record: dict[str, Any]) -> None:
    inputs = record["inputs"]
    contexts = _first(inputs, "contexts", "retrieved_contexts") or []
    made = RagRecord(
        id="1", query=inputs.get("query") or "", reference=inputs.get("reference"), pools=used(contexts)
    )
    judge = replies.judge(record, lambda: record["judge_verdicts"])
    results = await computed(select(["context_entities_recall"]), EvalContext(made, judge=judge))
    check(results["context_entities_recall"], record["expected"], record)


async def semantic_similarity(record: dict[str, Any]) -> None:
    inputs = record["inputs"]
    answer, answer_row = _text_and_row(inputs, "answer", "a")
    reference, reference_row = _text_and_row(inputs, "reference", "b")
    made = RagRecord(id="1", answer=answer, reference=reference)
    embedder = FixedEmbedder({answer: answer_row, reference: reference_row})
    results = await computed(select(["semantic_similarity"]), EvalContext(made, embedder=embedder))
    check(results["semantic_similarity"], record["expected"], record)


def _text_and_row(inputs: dict[str, Any], name: str, short: str) -> tuple[str, Sequence[float]]:
    """The text of a side and its vector; a side without a vector is blank."""
    row = _first(inputs, short, f"{name}_embedding")
    given = inputs.get(name)
    return ("" if row is None else name) if given is None else given, row or ()


def _first(inputs: dict[str, Any], *names: str) -> Any:
    return next((inputs[name] for name in names if inputs.get(name) is not None), None)


def _noise_reply(verdicts: dict[str, Any], contexts: list[str]) -> dict[str, Any]:
    """One reply for the three prompts; the claims of the answer are numbered before those of the reference."""
    facts = verdicts.get("reference_fact_by_context") or []
    behind = verdicts.get("answer_claim_by_context") or []
    correct = verdicts.get("answer_claim_correct") or []
    n_claims, n_facts = _number(verdicts, "claims", behind), _number(verdicts, "facts", facts)
    places = _places(behind, n_claims, 1, n_claims + n_facts) + _places(facts, n_facts, n_claims + 1, None)
    table = [
        {"id": number, "sources": _sources(row, contexts)}
        for number, row in zip(places, [*behind, *facts], strict=True)
        if row is not None
    ]
    # The records say nothing of the reference's claims against the answer; the metric does not read it.
    flags = [*correct, *[0] * n_facts]
    ids = _places(correct, n_claims, 1, n_claims + n_facts) + list(range(n_claims + 1, n_claims + n_facts + 1))
    return _claims(n_claims, n_facts) | {"table": table, "verdicts": _verdicts(ids, flags)}


def _factual_reply(verdicts: dict[str, Any]) -> dict[str, Any]:
    answer = verdicts.get("answer_claims_entailed") or []
    reference = verdicts.get("reference_claims_entailed") or []
    n_claims = _number(verdicts, "answer_claims", answer)
    n_facts = _number(verdicts, "reference_claims", reference)
    ids = _places(answer, n_claims, 1, n_claims + n_facts) + _places(reference, n_facts, n_claims + 1, None)
    return _claims(n_claims, n_facts) | {"verdicts": _verdicts(ids, [*answer, *reference])}


def _number(verdicts: dict[str, Any], key: str, rows: list[Any]) -> int:
    """How many claims there are: as the record says, else as many as have a row."""
    given = verdicts.get(key, len(rows))
    return given if isinstance(given, int) else len(given)


def _places(rows: list[Any], known: int, first: int, beyond: int | None) -> list[int]:
    """The ids of rows from `first` on; those past `known` are ids that do not exist."""
    over = (first + known - 1 if beyond is None else beyond) + 1
    return [first + place if place < known else over + place for place in range(len(rows))]


def _claims(n_claims: int, n_facts: int) -> dict[str, Any]:
    return {
        "answer_claims": [f"claim {number}" for number in range(1, n_claims + 1)],
        "reference_claims": [f"fact {number}" for number in range(1, n_facts + 1)],
    }


def _sources(row: Any, contexts: list[str]) -> Any:
    """The contexts of a row of the matrix, as the judge numbers those that are not blank."""
    if not isinstance(row, list):
        return row
    kept = [place for place, text in enumerate(contexts) if text.strip()]
    if len(row) == len(kept):
        kept = list(range(len(row)))
    numbers = {place: number for number, place in enumerate(kept, start=1)}
    # A blank context is never shown; a column past the contexts is one that does not exist.
    return [
        numbers.get(place, place + 1)
        for place, cell in enumerate(row)
        if cell and (place in numbers or place >= len(contexts))
    ]


def _verdicts(ids: list[int], flags: list[Any]) -> list[dict[str, Any]]:
    return [
        {"id": number, "verdict": _verdict(flag)}
        for number, flag in zip(ids, flags, strict=True)
        if flag is not None
    ]


def _verdict(flag: Any) -> Any:
    """The word a record means; what it does not know goes to the parser as it is."""
    known = {"entailed": "supported", "neutral": "not_supported", True: "supported", False: "not_supported"}
    return known.get(flag, flag) if isinstance(flag, str | int) else flag


RUNNERS: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
    "noise_sensitivity": noise_sensitivity,
    "factual_correctness": factual_correctness,
    "factual_correctness_ore": factual_correctness,
    "context_entities_recall": context_entities_recall,
    "semantic_similarity": semantic_similarity,
}
