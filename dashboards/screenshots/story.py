"""The month that the pictures show, as OpenMetrics text for promtool's backfill.

Names, labels and boundaries are those of `ragtrace.semconv.METRICS`. Two workflows share one scorer. In the last 40
hours the search of the workflow "docs" finds less: recall falls, faithfulness follows, runs without any passage
and refusals appear, and people rate worse. The mix of questions and the judge are as before. Samples come
every hour, in the last eight days every five minutes.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dashboards.screenshots.opinions import opinions
from dashboards.screenshots.scene import (
    CHANGE,
    END,
    MODELS,
    RUNS_AN_HOUR,
    WORKFLOWS,
    busy,
    falling,
    label,
    wave,
    whose,
    workflow_of,
)
from ragtrace import semconv
from ragtrace.stats.intervals import Sums, mean_interval
from ragtrace_dashboards.config import LOWER_IS_BETTER
from tests.dashboards.month import _ATTRIBUTES, _SUMS, DAY, DAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dashboards.screenshots.scene import Labels, Reading

FINE_S, COARSE_S = 300, 3_600
SAMPLED = 0.5
WEIGHT = 1 / SAMPLED
DISTRIBUTED = ("faithfulness",)  # 25 series each: more would be half a gigabyte
# Share of low scores before and after the change, the second for "docs" alone.
BAD = {
    "invented_specifics": (0.05, 0.11), "faithfulness": (0.15, 0.50), "answer_relevancy": (0.12, 0.15),
    "citation_precision": (0.10, 0.20), "context_sufficiency": (0.12, 0.38), "context_precision": (0.22, 0.30),
    "selection_efficiency_at_k": (0.17, 0.18), "harm_at_k": (0.06, 0.07), "answered": (0.03, 0.09),
}  # fmt: skip
VERDICT_SHARES = {
    "ok": (0.80, 0.52), "not_retrieved": (0.03, 0.24), "lost_in_rerank": (0.03, 0.03),
    "cut_from_prompt": (0.01, 0.01), "insufficient_but_answered": (0.02, 0.05), "unsupported": (0.05, 0.05),
    "contradicted": (0.01, 0.01), "rightly_refused": (0.02, 0.06), "wrongly_refused": (0.01, 0.01),
    "undetermined": (0.02, 0.02),
}  # fmt: skip
"""Share of each verdict before and after the change, the second for "docs" alone."""

_LOW, _HIGH = (0.25, 0.5, 0.6, 0.67), (1.0, 1.0, 1.0, 0.8)


@dataclass(frozen=True)
class Story:
    """Times, and the scores by metric and workflow."""

    times: list[int] = field(default_factory=lambda: [*range(END - DAYS * DAY, END - 8 * DAY, COARSE_S),
                                                     *range(END - 8 * DAY, END + 1, FINE_S)])  # fmt: skip
    seed: int = 6

    def text(self) -> Iterator[str]:
        """Yield the lines of all instruments."""
        scores = {it: self._drawn(*it) for it in itertools.product(BAD, WORKFLOWS, MODELS)}
        for it in semconv.METRICS:
            kind = "counter" if it.kind.endswith("counter") else it.kind.removeprefix("observable_")
            yield f"# TYPE {it.prometheus.removesuffix('_total')} {kind}\n"
            if semconv.STRATUM in it.attributes:
                for (metric, workflow, model), drawn in scores.items():
                    if it.kind == "histogram" and metric not in DISTRIBUTED:
                        continue
                    used = label(semconv.GEN_AI_REQUEST_MODEL, model)
                    yield from self._of_scores(it, whose(metric, workflow) | used, drawn)
            elif it.kind == "histogram":
                yield from self._histogram(it)
            else:
                yield from self._plain(it)
        yield "# EOF\n"

    def _drawn(self, metric: str, workflow: str, model: str) -> list[list[float]]:
        rng = random.Random(f"{self.seed} {metric} {workflow} {model}")
        drawn, before = [], self.times[0]
        for at in self.times:
            bad = BAD[metric][at > CHANGE and workflow == "docs"]
            runs = RUNS_AN_HOUR * WORKFLOWS[workflow] * MODELS[model] * busy(at) * (at - before) / 3_600
            expected = SAMPLED * runs
            count = int(expected) + (rng.random() < expected % 1)
            found = [rng.choice(_LOW) if rng.random() < bad else rng.choice(_HIGH) for _ in range(count)]
            drawn.append([1 - x for x in found] if metric in LOWER_IS_BETTER else found)
            before = at
        return drawn

    def _of_scores(self, it: semconv.Instrument, own: Labels, drawn: list[list[float]]) -> Iterator[str]:
        if it.name in _SUMS:
            if it.name == semconv.SCORE_LOW_W and own[_METRIC] in LOWER_IS_BETTER:
                drawn = [[1 - x for x in xs] for xs in drawn]  # more is worse
            total = itertools.accumulate(sum(_SUMS[it.name](x, WEIGHT) for x in xs) for xs in drawn)
            yield from self._lines(it.prometheus, it, own, total)
        elif it.kind == "histogram":
            for bound in (*it.boundaries, math.inf):
                below = itertools.accumulate(sum(x <= bound for x in xs) for xs in drawn)
                yield from self._lines(f"{it.prometheus}_bucket", it, own | {"le": _le(bound)}, below)
            yield from self._lines(f"{it.prometheus}_sum", it, own, itertools.accumulate(map(sum, drawn)))
            yield from self._lines(f"{it.prometheus}_count", it, own, itertools.accumulate(map(len, drawn)))
        elif it.name in _ESTIMATES and own[_METRIC] in _ESTIMATED.get(_ESTIMATES[it.name][0], BAD):
            first = _FIRST_JUDGE if semconv.FIRST_JUDGE_MODEL in it.attributes else {}
            yield from self._lines(it.prometheus, it, own | first, self._estimate(it.name, drawn))

    def _estimate(self, name: str, drawn: list[list[float]]) -> Iterator[float]:
        """Yield mean, low or high of the last scores: of an hour, of a day, of three hours from two judges."""
        length_s, part = _ESTIMATES[name]
        counts, sums, squares = (
            [0.0, *itertools.accumulate(sum(x**power for x in xs) for xs in drawn)] for power in (0, 1, 2)
        )
        for place, at in enumerate(self.times, 1):
            first = bisect.bisect_right(self.times, at - length_s)
            n, wx, wx2 = (it[place] - it[first] for it in (counts, sums, squares))
            # A new kind of questions comes and goes; it is not what makes the scores fall.
            moved = 0.006 * math.sin(at / DAY) if length_s == DAY else 0.0
            yield getattr(mean_interval(Sums(n, wx, n, wx, wx2)), part) + moved if n else 1.0

    def _histogram(self, it: semconv.Instrument) -> Iterator[str]:
        for own, middle, an_hour in _MIDDLES[it.name]:
            steps = [an_hour * busy(at) / 3_600 * (at - before) for before, at in self._pairs()]
            for bound in (*it.boundaries, math.inf):
                shares = (_lognormal(bound, middle(at)) for at in self.times)
                below = itertools.accumulate(n * share for n, share in zip(steps, shares, strict=True))
                yield from self._lines(f"{it.prometheus}_bucket", it, own | {"le": _le(bound)}, below)
            total = itertools.accumulate(n * middle(at) for n, at in zip(steps, self.times, strict=True))
            yield from self._lines(f"{it.prometheus}_sum", it, own, total)
            yield from self._lines(f"{it.prometheus}_count", it, own, itertools.accumulate(steps))

    def _plain(self, it: semconv.Instrument) -> Iterator[str]:
        for own, reading in _READINGS.get(it.name, []):
            values = map(reading, self.times)
            if it.kind.endswith("counter"):  # the reading is a rate an hour
                values = itertools.accumulate(reading(at) * (at - before) / 3_600 for before, at in self._pairs())
            yield from self._lines(it.prometheus, it, own, values)

    def _pairs(self) -> Iterator[tuple[int, int]]:
        return itertools.pairwise([self.times[0], *self.times])

    def _lines(self, name: str, it: semconv.Instrument, own: Labels, values: Iterator[float]) -> Iterator[str]:
        named = {semconv.prometheus_name(key, ""): _ATTRIBUTES.get(key, "") for key in it.attributes}
        pairs = {"job": "rag-app", **named, **own}
        labels = ",".join(f'{key}="{value}"' for key, value in pairs.items() if value)
        for at, value in zip(self.times, values, strict=True):
            yield f"{name}{{{labels}}} {value:.10g} {at}\n"


def _le(bound: float) -> str:
    return "+Inf" if bound == math.inf else f"{bound:g}"


_ESTIMATES = {
    semconv.WINDOW_MEAN: (3_600, "mean"), semconv.WINDOW_LOW: (3_600, "low"), semconv.WINDOW_HIGH: (3_600, "high"),
    semconv.ADJUSTED_MEAN: (DAY, "mean"), semconv.ADJUSTED_LOW: (DAY, "low"), semconv.ADJUSTED_HIGH: (DAY, "high"),
    semconv.COMBINED_MEAN: (10_800, "mean"), semconv.COMBINED_LOW: (10_800, "low"),
    semconv.COMBINED_HIGH: (10_800, "high"),
}  # fmt: skip
_ESTIMATED = {DAY: DISTRIBUTED, 10_800: ("faithfulness",)}
_FIRST_JUDGE = label(semconv.FIRST_JUDGE_MODEL, "overlap")
_METRIC = semconv.prometheus_name(semconv.GEN_AI_EVALUATION_NAME, "")


def _lognormal(bound: float, middle: float, spread: float = 0.6) -> float:
    if bound <= 0:
        return 0.0
    return 0.5 * (1 + math.erf(math.log(bound / middle) / (spread * math.sqrt(2)))) if bound < math.inf else 1.0


_FAILING = {"faithfulness": 1.2, "answer_relevancy": 1.0, "context_precision": 0.6}


def _results() -> Iterator[tuple[Labels, Reading]]:
    """An hour's results of the judged metrics by outcome."""
    drawn = RUNS_AN_HOUR * SAMPLED
    for metric, (workflow, part) in itertools.product(BAD, WORKFLOWS.items()):
        for outcome, reason, share in (
            ("ok", "", 0.95), ("na", "no_context", 0.03), ("error", "judge_timeout", 0.012),
            ("error", "judge_invalid", 0.006),
        ):  # fmt: skip
            own = {
                semconv.GEN_AI_EVALUATION_NAME: metric, semconv.OUTCOME: outcome, semconv.REASON: reason,
                semconv.GEN_AI_WORKFLOW_NAME: workflow,
            }  # fmt: skip
            labels = {semconv.prometheus_name(key, ""): value for key, value in own.items()}
            rate = share * part * drawn * (1.0 if outcome != "error" else _FAILING.get(metric, 0.5))
            yield labels, lambda at, rate=rate: rate * busy(at)


def _due() -> Iterator[tuple[str, Labels, Reading]]:
    """An hour's due runs of each metric, and those without a score; "docs" refuses more after the change."""
    for metric, workflow in itertools.product(BAD, WORKFLOWS):
        own, runs = whose(metric, workflow), WEIGHT * RUNS_AN_HOUR * SAMPLED * WORKFLOWS[workflow]
        lost = {"abstained": (0.02, 0.05), "no_contexts": (0.005, 0.03), "judge_timeout": (0.012, 0.012)}
        yield semconv.SCORE_DUE_W, own, lambda at, runs=runs: runs * busy(at)
        yield semconv.SCORE_DUE_W2, own, lambda at, runs=runs: WEIGHT * runs * busy(at)
        for reason, shares in lost.items():
            about = own | label(semconv.REASON, reason)
            about |= label(semconv.OUTCOME, "error" if reason.startswith("judge") else "na")
            yield semconv.SCORE_MISSING_W, about, falling(runs, shares, workflow)


def _verdicts() -> Iterator[tuple[str, Labels, Reading]]:
    """An hour's runs by verdict; after the change the search of "docs" does not find the needed passages."""
    for (verdict, shares), workflow in itertools.product(VERDICT_SHARES.items(), WORKFLOWS):
        about = workflow_of(workflow) | label(semconv.DIAGNOSIS_VERDICT, verdict)
        runs = RUNS_AN_HOUR * SAMPLED * WORKFLOWS[workflow]
        for name, each in (
            (semconv.DIAGNOSIS_N, 1.0),
            (semconv.DIAGNOSIS_W, WEIGHT),
            (semconv.DIAGNOSIS_W2, WEIGHT**2),
        ):
            yield name, about, falling(each * runs, shares, workflow)


def _named(found: Iterator[tuple[str, Labels, Reading]]) -> dict[str, list[tuple[Labels, Reading]]]:
    by_name: dict[str, list[tuple[Labels, Reading]]] = {}
    for name, own, reading in found:
        by_name.setdefault(name, []).append((own, reading))
    return by_name


def _by(attribute: str, rates: dict[str, float], other: str = "", **fixed: str) -> list[tuple[Labels, Reading]]:
    """Counters an hour for each value of an attribute; `other` is an attribute that stays empty."""
    none = label(other, "") if other else {}
    return [
        (label(attribute, value) | none | fixed, lambda at, rate=rate: rate * busy(at))
        for value, rate in rates.items()
    ]


def _decision(name: str, reason: str, rate: float) -> tuple[Labels, Reading]:
    return label(semconv.DECISION, name) | label(semconv.REASON, reason), lambda at: rate * busy(at)


def _state(name: str, reason: str, reading: Reading) -> tuple[Labels, Reading]:
    return label(semconv.STATE, name) | label(semconv.REASON, reason), reading


def _spent(at: int) -> float:
    return at % DAY / DAY * (0.6 + 0.3 * random.Random(at // DAY).random())


def _since_begin(at: int) -> float:
    return (at - (END - DAYS * DAY)) / 3_600 * RUNS_AN_HOUR


_DOCS_EMPTY = 2.5  # runs an hour that find nothing after the change
_READINGS: dict[str, list[tuple[Labels, Reading]]] = {
    semconv.COVERAGE_RATIO: [(workflow_of(name), lambda at: 1.01 - wave(at, 0.02, 0.05)) for name in WORKFLOWS],
    semconv.WEIGHT_CAPPED: [(workflow_of("support"), lambda at: 0.3 * busy(at))],
    semconv.CANARY_GAP: [({}, lambda at: 0.02 + 0.02 * random.Random(at // 21_600).random())],
    semconv.RUNS: [
        (workflow_of(name), lambda at, share=share: RUNS_AN_HOUR * share * busy(at))
        for name, share in WORKFLOWS.items()
    ],
    semconv.RUNS_SIGNED: [
        (
            workflow_of(name) | label(semconv.SIGN, sign),
            lambda at, n=n * WORKFLOWS[name]: RUNS_AN_HOUR * n * busy(at),
        )
        for name, sign, n in (
            ("support", "any", 0.02),
            ("support", "answer_guessed", 0.02),
            ("docs", "any", 0.05),
            ("docs", "evidence_unread", 0.05),
        )
    ],
    semconv.RETRIEVAL_EMPTY: [
        (workflow_of("support"), lambda at: 0.4 * busy(at)),
        (workflow_of("docs"), lambda at: (_DOCS_EMPTY if at > CHANGE else 0.3) * busy(at)),
    ],
    semconv.BUDGET_REMAINING: [
        (label(semconv.UNIT, "USD"), lambda at: 20 * (1 - _spent(at))),
        (label(semconv.UNIT, "token"), lambda at: 3e7 * (1 - 0.8 * _spent(at))),
    ],
    semconv.BREAKER_STATE: [({}, lambda _: 0.0)],
    semconv.LEDGER: [
        _state("scored", "", lambda at: 0.485 * _since_begin(at)),
        _state("skipped", "not_sampled", lambda at: 0.5 * _since_begin(at)),
        _state("pending", "", lambda at: wave(at, 2, 40)),
        _state("failed", "judge_timeout", lambda at: 0.015 * _since_begin(at)),
    ],
    semconv.EVALUATIONS: list(_results()),
    semconv.TRACES: [
        _decision("sampled", "", RUNS_AN_HOUR * SAMPLED),
        _decision("skipped", "not_sampled", RUNS_AN_HOUR * (1 - SAMPLED)),
    ],
    semconv.EVALUATION_COST_METRIC: [
        (workflow_of(name), lambda at, share=share: 0.55 * share * busy(at)) for name, share in WORKFLOWS.items()
    ],
    semconv.JUDGE_CALLS: _by(semconv.OUTCOME, {"ok": 260.0, "error": 5.0}),
    semconv.JUDGE_TOKENS: _by(semconv.GEN_AI_TOKEN_TYPE, {"input": 410_000.0, "output": 36_000.0}),
    **{
        name: [(label(semconv.GEN_AI_OPERATION_NAME, "chat"), lambda at, n=n: n * 1.4 * RUNS_AN_HOUR * busy(at))]
        for name, n in (
            (semconv.CLIENT_INPUT_TOKENS, 2_600.0),
            (semconv.CLIENT_OUTPUT_TOKENS, 310.0),
            (semconv.CLIENT_CACHE_READ_TOKENS, 900.0),
            (semconv.CLIENT_CACHE_WRITE_TOKENS, 120.0),
            (semconv.CLIENT_REASONING_TOKENS, 60.0),
        )
    },
    semconv.QUEUE_SIZE: [({}, lambda at: float(round(wave(at, 2, 40))))],
    semconv.QUEUE_CAPACITY: [({}, lambda _: 1_000.0)],
    semconv.QUEUE_OLDEST: [({}, lambda at: wave(at, 3, 38))],
    semconv.EVALUATION_LAST_TIME: [({}, lambda at: at - 23.0)],
    semconv.INTERNAL_LOSSES: [({}, lambda _: 0.0)],
    **_named(_due()),
    **_named(_verdicts()),
    **opinions(),
}
_FINE: Labels = label(semconv.ERROR_TYPE, "")


def _timed(
    low: float, high: float, an_hour: float, own: Labels | None = None
) -> list[tuple[Labels, Reading, float]]:
    """Times by workflow; a busier one is slower, so that its line can be told apart."""
    return [
        (
            workflow_of(name) | (own or {}),
            lambda at, share=share: wave(at, low * share, high * share),
            an_hour * share,
        )
        for name, share in WORKFLOWS.items()
    ]


_CHAT: Labels = _FINE | label(semconv.GEN_AI_OPERATION_NAME, "chat")
_EMBEDDING: Labels = _FINE | label(semconv.GEN_AI_OPERATION_NAME, "embeddings")
_MIDDLES: dict[str, list[tuple[Labels, Reading, float]]] = {
    semconv.EVALUATION_DURATION: _timed(7.5, 11, RUNS_AN_HOUR * SAMPLED),
    semconv.EVALUATION_LAG: _timed(10, 40, RUNS_AN_HOUR * SAMPLED),
    semconv.CLIENT_OPERATION_DURATION: [(_FINE, lambda at: wave(at, 0.05, 0.11), RUNS_AN_HOUR)],
    semconv.CLIENT_INFERENCE_DURATION: [(_CHAT, lambda at: wave(at, 1.2, 2.4), 1.4 * RUNS_AN_HOUR)],
    semconv.CLIENT_EMBEDDINGS_DURATION: [(_EMBEDDING, lambda at: wave(at, 0.02, 0.05), RUNS_AN_HOUR)],
    semconv.RERANK_DURATION: [(_FINE, lambda at: wave(at, 0.15, 0.4), RUNS_AN_HOUR)],
    semconv.CLIENT_TOKEN_USAGE: [
        (_CHAT | label(semconv.GEN_AI_TOKEN_TYPE, kind), lambda _, tokens=tokens: tokens, 1.4 * RUNS_AN_HOUR)
        for kind, tokens in (("input", 2_600.0), ("output", 310.0))
    ],
    semconv.INVOKE_WORKFLOW_DURATION: [
        *_timed(5.2, 9.2, RUNS_AN_HOUR, _FINE),
        (workflow_of("docs") | label(semconv.ERROR_TYPE, "Timeout"), lambda _: 31.0, 0.9),
    ],
}  # fmt: skip
