"""Computes the golden vectors that no command gives: set metrics of other parameters, and intervals of means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.metrics import EvalContext, MetricOptions, SetParams, evaluate, precision4, ra_nwg
from ragtrace.metrics.selection.harm import harm
from ragtrace.model import Labels, Passage, Pool, RagRecord
from ragtrace.stats import bootstrap_mean_ci
from tests.guards.golden.loading import na_reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ragtrace.model import MetricResult

TOLERANCE = 1e-9


def passages(ids: Iterable[str]) -> tuple[Passage, ...]:
    return tuple(Passage(id=i, text=i, rank=n) for n, i in enumerate(ids, start=1))


def check(result: MetricResult, expected: float | None, record: dict[str, Any]) -> None:
    if expected is None:
        assert result.value is None, f"{result.name} must have no value, got {result.value}"
        reason = na_reason(record)
        if reason is not None:
            assert result.reason == reason
            assert (result.state == "error") == (reason == "invalid_grade")
        return
    assert result.state == "ok", f"{result.name}: {result.state} {result.reason} {dict(result.details)}"
    assert result.value == pytest.approx(expected, rel=0, abs=TOLERANCE)


def same(found: float | None, expected: float | None, name: str) -> None:
    if found is None or expected is None:
        assert found is expected, name
    else:
        assert found == pytest.approx(expected, rel=0, abs=TOLERANCE), name


async def set_metrics(record: dict[str, Any]) -> None:
    inputs, expected = record["inputs"], record["expected"] or {}
    params = SetParams(**(inputs.get("params") or {}))
    made = RagRecord(
        id="1",
        pools=(
            Pool(stage="retrieved", passages=passages(inputs["pool"])),
            Pool(stage="used", passages=passages(inputs["topk"])),
        ),
        labels=Labels(grades=inputs["labels"]),
        k=inputs["k"],
    )
    case = EvalContext(made, options=MetricOptions(harm_max=params.harm_max))
    metrics = [ra_nwg(params), precision4(params), harm(params)]
    results = {result.key: result for result in await evaluate(metrics, case)}
    infix = "_monotone_at_k" if params.monotone else "_at_k"
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


async def bootstrap(record: dict[str, Any]) -> None:
    inputs = dict(record["inputs"])
    found = bootstrap_mean_ci(inputs.pop("values"), **inputs)
    expected = record["expected"] or {}
    for name in ("mean", "low", "high"):
        same(getattr(found, name), expected.get(name), name)


RUNNERS: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
    "set_metrics": set_metrics,
    "bootstrap_mean_ci": bootstrap,
}
