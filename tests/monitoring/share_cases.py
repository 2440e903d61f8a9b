"""Cases of runs without a score, and of shares of verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace.model import VERDICTS
from ragtrace_dashboards import OUTCOME, REASON, SERIES, VERDICT
from tests.monitoring.cases import Case
from tests.monitoring.promtool import COARSE, counter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.monitoring.cases import Kind

MISSING = "RagtraceScoresMissing"
DAY = 24.0
_T0 = 10 * DAY
_WEIGHT = 2.0

Phase = tuple[float, float, float]
"""Hours, due runs a day, and the share of them without a score."""


def share_cases() -> list[Case]:
    return [*_missing()]


def due(
    job: str,
    *phases: Phase,
    metric: str = "faithfulness",
    reason: str = "abstained",
    weight: float = _WEIGHT,
    waited: float = 0.0,
) -> list[dict[str, str]]:
    """Return the counters of due runs, and of those without a score, half of them for each of two reasons.

    A share `waited` of the due runs was missing as well, and got its score.
    """
    about = {"job": job, "gen_ai_workflow_name": "support", "gen_ai_evaluation_name": metric}

    def of(name: str, labels: dict[str, str], *rates: float) -> dict[str, str]:
        grown = [(hours, rate / 24) for (hours, _, _), rate in zip(phases, rates, strict=True)]
        return counter(SERIES[name], about | labels, *grown, step_min=COARSE)

    runs = [per_day for _, per_day, _ in phases]
    lost = [per_day * share for _, per_day, share in phases]
    return [
        of(semconv.SCORE_DUE_W, {}, *(weight * it for it in runs)),
        of(semconv.SCORE_DUE_W2, {}, *(weight**2 * it for it in runs)),
        *(
            of(semconv.SCORE_MISSING_W, {OUTCOME: outcome, REASON: why}, *(weight * it / 2 for it in lost))
            for outcome, why in (("na", reason), ("error", "judge_timeout"))
        ),
        *(
            of(name, {OUTCOME: "error", REASON: "judge_unavailable"}, *(weight * it * waited for it in runs))
            for name in (semconv.SCORE_MISSING_W, semconv.SCORE_RECOVERED_W)
            if waited
        ),
    ]


def verdicts(job: str, *phases: tuple[float, float, dict[str, float]]) -> list[dict[str, str]]:
    """Return the counters of verdicts: hours, runs a day, and the share of each verdict."""
    about, found = {"job": job, "gen_ai_workflow_name": "support"}, []
    for verdict in VERDICTS:
        for name, each in ((semconv.DIAGNOSIS_W, _WEIGHT), (semconv.DIAGNOSIS_W2, _WEIGHT**2)):
            rates = [(hours, each * per_day * shares.get(verdict, 0.0) / 24) for hours, per_day, shares in phases]
            found.append(counter(SERIES[name], about | {VERDICT: verdict}, *rates, step_min=COARSE))
    return found


def _missing() -> Iterator[Case]:
    def case(
        job: str,
        hours: list[tuple[float, int]],
        *phases: Phase,
        kind: Kind = "",
        metric: str = "",
        waited: float = 0.0,
    ) -> Case:
        series = due(job, *phases, metric=metric or "faithfulness", waited=waited)
        return Case(job, series, {MISSING: hours}, kind=kind)

    late = [(_T0 - 2, 0), (_T0 + 24, 1), (_T0 + 70, 1)]
    quiet = [(_T0 - 2, 0), (_T0 + 24, 0), (_T0 + 70, 0)]
    yield case("refusals have no score", late, (_T0, 200, 0.05), (72, 200, 0.25))
    yield case("always many without a score", quiet, (_T0 + 72, 200, 0.35))
    yield case("always most without a score", [(48, 1), (_T0, 1)], (_T0 + 72, 200, 0.70))
    yield case("few more than usual", quiet, (_T0, 200, 0.05), (72, 200, 0.09))
    yield case("fewer than usual", quiet, (_T0, 200, 0.30), (72, 200, 0.0))
    yield case("nobody watches this metric", quiet, (_T0, 200, 0.05), (72, 200, 0.45), metric="mrr")
    yield case("runs wait and are scored", quiet, (_T0, 200, 0.05), (72, 200, 0.05), waited=0.6)
    yield case("some wait, others are refused", late, (_T0, 200, 0.05), (72, 200, 0.25), waited=0.6)
    yield case("no budget for the whole day", late, (_T0, 200, 0.0), (72, 200, 1.0))
    yield case("20 runs a day", quiet, (_T0, 20, 0.05), (72, 20, 0.45), kind="low n")
    yield case("no baseline yet", [(20, 0), (30, 0)], (36, 100, 0.40), kind="low n")
    yield case("runs end", quiet, (_T0, 200, 0.05), (72, 0, 0.0), kind="silence")
    yield case("well again", [(_T0 + 24, 1), (_T0 + 70, 0)], (_T0, 200, 0.05), (36, 200, 0.30), (36, 200, 0.05))
