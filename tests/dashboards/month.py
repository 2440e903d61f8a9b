"""A synthetic month of every instrument as OpenMetrics text, for promtool's backfill.

Names and labels are those of `ragtrace.semconv.METRICS`. Samples come every hour, in the last two days every ten
minutes. Faithfulness falls from 0.88 to 0.77 in the last day, and the reranker loses more of what is needed. All else is steady.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards import Config

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 86_400
DAYS = 30
AN_HOUR = 60  # scores
WEIGHT = 2.0
METRICS = (
    *(it.name for it in Config().metrics),
    "ra_nwg_at_k", "proc_at_k", "pct_proc_at_k", "pool_recall4_at_k", "precision4_at_k", "context_recall", "mrr",
)  # fmt: skip
_ATTRIBUTES = {
    semconv.GEN_AI_WORKFLOW_NAME: "support", semconv.GEN_AI_REQUEST_MODEL: "m-1", semconv.EVALUATOR: "ragtrace",
    semconv.JUDGE_MODEL: "judge-1", semconv.JUDGE_VERSION: "0a1b2c3d", semconv.LABEL_SCALE: "1-5",
    semconv.UNIVERSE: "pool", semconv.STRATUM: "random", semconv.STATE: "scored", semconv.REASON: "judge_timeout",
    semconv.OUTCOME: "error", semconv.DECISION: "sampled", semconv.SITE: "recorder",
    semconv.GEN_AI_OPERATION_NAME: "retrieval", semconv.GEN_AI_DATA_SOURCE_ID: "faq",
    semconv.GEN_AI_TOKEN_MODALITY: "unknown", semconv.GEN_AI_PROVIDER_NAME: "openai", semconv.ERROR_TYPE: "Timeout",
    semconv.GEN_AI_RESPONSE_MODEL: "m-1", semconv.GEN_AI_TOKEN_TYPE: "input", semconv.K: "5", semconv.FEEDBACK_LABEL: "bad",
    semconv.SIGN: "answer_guessed",
}  # fmt: skip
_SUMS = {
    semconv.SCORE_N: lambda _x, _w: 1.0,
    semconv.SCORE_W: lambda _, w: w,
    semconv.SCORE_WX: lambda x, w: w * x,
    semconv.SCORE_W2: lambda _, w: w**2,
    semconv.SCORE_W2X: lambda x, w: w**2 * x,
    semconv.SCORE_W2X2: lambda x, w: (w * x) ** 2,
    semconv.SCORE_LOW_W: lambda x, w: w * (x < 0.8),
}
# Every fourth score more is due and missing: a fifth of all. Of as many again the score came after all.
_DUE = {
    semconv.SCORE_DUE_W: 1.25 * WEIGHT,
    semconv.SCORE_DUE_W2: 1.25 * WEIGHT**2,
    semconv.SCORE_MISSING_W: 0.5 * WEIGHT,
    semconv.SCORE_RECOVERED_W: 0.25 * WEIGHT,
}
_VERDICTS = ("ok", "lost_in_rerank", "wrongly_refused")
_DISTRIBUTED = ("faithfulness", "harm_at_k")
_NUMBERS = {semconv.BASELINE_N, semconv.FEEDBACK_AGREEMENT_N}
_TIMES = {semconv.EVALUATION_LAST_TIME, semconv.BASELINE_FROZEN_TIME}


@dataclass(frozen=True)
class Month:
    """Times, and every score by metric and time; the weights of a metric's scores go round."""

    times: list[int]
    scores: dict[str, list[list[float]]]
    weights: tuple[float, ...] = (WEIGHT,)

    @classmethod
    def until(cls, end: int, seed: int = 6) -> Month:
        """Draw the scores of a month that ends at a Unix time."""
        rng = random.Random(seed)
        fine = end - 2 * DAY
        times = [*range(end - DAYS * DAY, fine, 3_600), *range(fine, end + 1, 600)]
        scores = {}
        for metric in METRICS:
            drawn, before = [], times[0]
            for at in times:
                bad = 0.40 if metric == "faithfulness" and at > end - DAY else 0.15
                drawn.append([_score(rng, bad) for _ in range(round(AN_HOUR * (at - before) / 3_600))])
                before = at
            scores[metric] = drawn
        return cls(times, scores)

    def weighted(self, metric: str) -> list[list[tuple[float, float]]]:
        """Scores and weights by time."""
        weights = cycle(self.weights)
        return [[(x, next(weights)) for x in xs] for xs in self.scores[metric]]

    def mean(self, metric: str, since: int, until: int) -> float:
        """Plain mean of the scores drawn in (since, until]."""
        found = self.within(metric, since, until)
        return sum(found) / len(found)

    def within(self, metric: str, since: int, until: int) -> list[float]:
        """The scores drawn in (since, until]."""
        drawn = zip(self.times, self.scores[metric], strict=True)
        return [x for at, xs in drawn if since < at <= until for x in xs]

    def text(self) -> Iterator[str]:
        """Yield the lines of all instruments."""
        for it in semconv.METRICS:
            base = it.prometheus.removesuffix("_total")
            kind = "counter" if it.kind.endswith("counter") else it.kind.removeprefix("observable_")
            yield f"# TYPE {base} {kind}\n"
            if it.name in _SUMS:
                yield from self._sums(it)
            elif it.name in _DUE:
                yield from self._due(it)
            elif it.kind == "histogram":
                for metric in _DISTRIBUTED if it.name == semconv.EVALUATION_SCORE else _DISTRIBUTED[:1]:
                    yield from self._histogram(it, metric)
            else:
                for verdict in _VERDICTS if semconv.DIAGNOSIS_VERDICT in it.attributes else ("",):
                    yield from self._plain(it, is_counter=kind == "counter", verdict=verdict)
                for metric in METRICS if it.name == semconv.EVALUATIONS else ():
                    if metric != "faithfulness":
                        yield from self._plain(it, is_counter=True, metric=metric)
                if it.name == semconv.FEEDBACK:
                    yield from self._plain(it, is_counter=True, metric="feedback")
        yield "# EOF\n"

    def _sums(self, it: semconv.Instrument) -> Iterator[str]:
        for metric in METRICS:
            total, name = 0.0, f"{it.prometheus}{_labels(it, metric)}"
            for at, pairs in zip(self.times, self.weighted(metric), strict=True):
                total += sum(_SUMS[it.name](x, w) for x, w in pairs)
                yield f"{name} {total!r} {at}\n"

    def _due(self, it: semconv.Instrument) -> Iterator[str]:
        for metric in METRICS:
            total = 0.0
            for at, xs in zip(self.times, self.scores[metric], strict=True):
                total += _DUE[it.name] * len(xs)
                yield f"{it.prometheus}{_labels(it, metric, reason='abstained')} {total!r} {at}\n"

    def _plain(
        self, it: semconv.Instrument, *, is_counter: bool, verdict: str = "", metric: str = "faithfulness"
    ) -> Iterator[str]:
        # A frozen baseline of what is scored here would be preferred to the month's own.
        workflow = "elsewhere" if it.name.startswith("ragtrace.baseline.") else ""
        name = f"{it.prometheus}{_labels(it, metric, workflow=workflow, verdict=verdict)}"
        for place, at in enumerate(self.times):
            is_time = it.name in _TIMES
            value = at - 60 if is_time else place if is_counter else 500 if it.name in _NUMBERS else 0.9
            if verdict == "lost_in_rerank":
                value += max(0, at - self.times[-1] + DAY) // 200
            yield f"{name} {value} {at}\n"

    def _histogram(self, it: semconv.Instrument, metric: str) -> Iterator[str]:
        bounds = [*(f"{bound:g}" for bound in it.boundaries), "+Inf"]
        for rank, bound in enumerate(bounds):
            for place, at in enumerate(self.times):
                count = place * 10 * (rank + 1) // len(bounds)
                yield f"{it.prometheus}_bucket{_labels(it, metric, le=bound)} {count} {at}\n"
        for part in ("sum", "count"):
            for place, at in enumerate(self.times):
                yield f"{it.prometheus}_{part}{_labels(it, metric)} {place * 10} {at}\n"


def _score(rng: random.Random, bad: float) -> float:
    return rng.choice((0.25, 0.5, 0.6, 0.67)) if rng.random() < bad else rng.choice((1.0, 1.0, 1.0, 0.8))


def _labels(
    it: semconv.Instrument,
    metric: str = "faithfulness",
    le: str = "",
    workflow: str = "",
    verdict: str = "",
    reason: str = "",
) -> str:
    others = {
        semconv.GEN_AI_WORKFLOW_NAME: workflow,
        semconv.DIAGNOSIS_VERDICT: verdict,
        semconv.REASON: reason,
        semconv.OUTCOME: "na" if reason else "",
    }
    chosen = _ATTRIBUTES | {key: value for key, value in others.items() if value}
    found = {semconv.prometheus_name(key, ""): chosen.get(key, metric) for key in it.attributes}
    if not metric.endswith("_at_k"):
        found.pop("ragtrace_k", None)  # as in life: a metric without K has no such label
    pairs = {"job": "rag-app", **found} | ({"le": le} if le else {})
    return "{" + ",".join(f'{key}="{value}"' for key, value in pairs.items()) + "}"
