"""ROUGE of two texts and the statistics over repeated runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.metrics import rouge, rouge_consistency, score_consistency
from tests.golden.running import same
from tests.guards.golden.loading import na_reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_FORMS = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rouge_l"}


async def rouge_of_a_pair(record: dict[str, Any]) -> None:
    prediction, reference = record["inputs"]["prediction"] or "", record["inputs"]["reference"] or ""
    expected, found = record["expected"], rouge(prediction, reference)
    if expected is None or (isinstance(expected, dict) and "na" in expected):
        assert found is None
        if na_reason(record) == "no_tokens":  # and as the metric: runs of which no two have tokens
            runs = rouge_consistency([prediction if prediction.strip() else "!", "?", "..."])
            assert {result.reason for result in runs} == {"no_tokens"}
        return
    assert found is not None
    if expected == "unicode_tokens":  # no more than this is asserted
        assert found.rouge1.f1 > 0.0
        assert found.rouge_l.f1 > 0.0
        return
    for form, own in _FORMS.items():
        scores = getattr(found, own)
        for name, value in (("p", scores.precision), ("r", scores.recall), ("f", scores.f1)):
            if name in expected.get(form, {}):
                same(value, expected[form][name], f"{form}.{name}")


async def consistency_stats(record: dict[str, Any]) -> None:
    results = {result.name: result for result in score_consistency(record["inputs"]["values"])}
    expected = record["expected"]
    if expected is None or "na" in expected:
        assert {result.value for result in results.values()} == {None}
        assert na_reason(record) in {None, *(result.reason for result in results.values())}
        return
    details = results["score_std"].details
    for name, value in expected.items():
        same(details[name], value, name)
    for name in ("cv", "std"):
        if name in expected:
            same(results[f"score_{name}"].value, expected[name], name)


RUNNERS: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
    "rouge": rouge_of_a_pair,
    "consistency_stats": consistency_stats,
}
