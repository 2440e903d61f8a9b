"""The shipped rules watch what the default metrics measure, inventions first, and say nothing of what no judge computes."""

from __future__ import annotations

import gzip
import json
import random
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import ragtrace_dashboards
from ragtrace import semconv
from ragtrace.metrics import select
from ragtrace.settings import Settings
from ragtrace_dashboards import Config
from tests.cases.numbers.judging import judged
from tests.cases.numbers.months import (
    DAY_H,
    STEP_MIN,
    counters,
    ever_firing,
    has_fired,
    labels,
    moved,
    wander,
)
from tests.cases.numbers.offline_service import Answered, Sample, demo_rows, scraped
from tests.monitoring.promtool import SERIES, expecting, run, samples

if TYPE_CHECKING:
    from collections.abc import Iterator

DIST = Path(ragtrace_dashboards.__file__).parent / "dist"
DATA = Path(__file__).parents[4] / "shared" / "data" / "faith_mtrag_dev.jsonl.gz"
INVENTED = "invented_specifics"
DEFAULT_METRICS = Settings.resolve({}, environ={}).metrics
WITH_THRESHOLD = {
    output.name
    for metric in select(DEFAULT_METRICS)
    for output in metric.spec.outputs
    if output.threshold is not None
}
COMPUTED = {"faithfulness", INVENTED, "answered"}
"""What is watched, and the offline judge computes."""


def drift_alerts() -> dict[str, str]:
    """Return the names of the shipped drift alerts: expressions by alert."""
    document = yaml.safe_load((DIST / "rules" / "ragtrace-alerts.yaml").read_text(encoding="utf-8"))
    rules = [rule for group in document["groups"] for rule in group["rules"] if "alert" in rule]
    return {rule["alert"]: rule["expr"] for rule in rules if rule["alert"].endswith(("Drift", "Fall"))}


# What is watched.


def test_inventions_are_watched_first_and_then_every_default_metric_with_a_threshold() -> None:
    names = [it.name for it in Config().metrics]
    assert names[0] == INVENTED
    assert WITH_THRESHOLD | {"answered"} <= set(names)
    assert next(it for it in Config().metrics if it.name == INVENTED).is_down


@pytest.mark.parametrize("metric", sorted(WITH_THRESHOLD | {"answered"}))
def test_the_shipped_files_watch_a_default_metric(metric: str) -> None:
    rules = (DIST / "rules" / "ragtrace-recording.yaml").read_text(encoding="utf-8")
    assert metric in rules


# What no judge computes.

EVERY = (*DEFAULT_METRICS, "context_precision")
QUIET_OF = "RagtraceScoresMissing|RagtraceDriftBlind|RagtraceJudgeErrors|RagtraceScorerSilent|RagtraceLowScores"
NOT_COMPUTED = "|".join(sorted((WITH_THRESHOLD | {"context_precision"}) - COMPUTED))
JOB, DAYS, PER_STEP = "offline", 12, 1_000 * STEP_MIN / 60 / 24


@cache
def shown(*metrics: str) -> list[Sample]:
    return scraped(*metrics)


def grown(found: list[Sample], *names: str) -> set[str | None]:
    """Return the metrics of which one of these counters has counted something."""
    return {sample.metric for sample in found if sample.name in {SERIES[it] for it in names} and sample.value > 0}


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [(), EVERY], ids=["default", "every one is chosen"])
def test_the_offline_service_counts_what_its_judge_computes_and_nothing_else(metrics: tuple[str, ...]) -> None:
    found = shown(*metrics)
    scored = grown(found, semconv.SCORE_N)
    assert scored >= COMPUTED
    cannot = set(NOT_COMPUTED.split("|"))
    assert not scored & cannot
    assert not grown(found, semconv.SCORE_DUE_W, semconv.SCORE_MISSING_W) & cannot


def played(found: list[Sample], begin_h: float, hours: float) -> Iterator[dict[str, str]]:
    """Yield the scraped series as they go on: counters grow by 1,000 runs a day, gauges stay."""
    runs = max(it.value for it in found if it.name == SERIES[semconv.SCORE_N])
    before, steps = round(begin_h * 60 / STEP_MIN), round(hours * 60 / STEP_MIN)
    for name, about, value in found:
        by = value / runs * PER_STEP if name.endswith(("_total", "_bucket", "_count", "_sum")) else 0.0
        begins = f"_x{before} " if before else ""
        yield samples(name, about | {"job": JOB}, f"{begins}{value!r}+{by!r}x{steps}")


def nothing_fires(hour: float) -> dict[str, Any]:
    about = f'alertname=~"{QUIET_OF}",gen_ai_evaluation_name=~"{NOT_COMPUTED}"'
    return expecting(f'count_over_time(ALERTS{{{about},alertstate="firing"}}[{round(hour)}h])', hour, [])


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [(), EVERY], ids=["default", "every one is chosen"])
def test_no_alert_fires_for_a_metric_that_the_offline_judge_never_computes(tmp_path: Path, metrics) -> None:
    series = played(shown(*metrics), 0.0, DAYS * DAY_H)
    run(tmp_path, list(series), [nothing_fires(DAYS * DAY_H)], only=QUIET_OF.split("|"), step_min=STEP_MIN)


@pytest.mark.slow
def test_no_alert_fires_for_what_only_the_judge_of_before_computed(tmp_path: Path) -> None:
    """A model scored answer relevancy for ten days; then the offline judge took its place."""
    rng, before = random.Random(4), 10 * DAY_H
    about = labels("answer_relevancy", JOB) | {"ragtrace_judge_model": "openai:m"}
    steps = ([[rng.choice((0.8, 0.9, 1.0))] for _ in range(round(PER_STEP))] for _ in range(round(before / 2)))
    series = [*counters(about, steps), *played(shown(), before, DAYS * DAY_H)]
    end = before + DAYS * DAY_H
    run(tmp_path, series, [nothing_fires(end)], only=QUIET_OF.split("|"), step_min=STEP_MIN)


# Inventions in a month.

SENTENCES = (
    "It was first measured in 1987.", "This applies to 742 cases.", "The fee is 83 dollars.",
    "About 61 % of them agree.", "It takes 19 days.", "Gregor Haldane confirmed it.",
    "It was built by Marlena Voss.", "The town of Askerby is known for it.",
)  # fmt: skip
LEARN, QUIET, SICK = 16, 30, 2
"""Days: the baseline is learnt, nothing may fire, one answer in ten invents."""
SHARE, WANDER = 0.1, 0.006


def mtrag_rows() -> list[Answered]:
    if not DATA.is_file():
        pytest.skip(f"the labelled answers ../shared/data/{DATA.name} are not on this machine")
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [Answered(it["query"], it["contexts"], it["answer"]) for it in rows if it["answer"] and it["contexts"]]


ROWS = {"handbook": demo_rows, "mtrag": mtrag_rows}


@cache
def pools(corpus: str, metric: str) -> tuple[list[float], list[float]]:
    """Return the offline judge's scores of the answers as they are, and with an invented number or name in each."""
    rng, rows = random.Random(0), ROWS[corpus]()
    said = judged(rows)
    invents = judged([(it.query, it.contexts, f"{it.answer} {rng.choice(SENTENCES)}") for it in rows])
    field = "invented" if metric == INVENTED else metric
    scores = [[getattr(it, field) for it in each] for each in (said, invents)]
    return tuple([x for x in each if x is not None] for each in scores)  # type: ignore[return-value]


def mean(xs: list[float]) -> float:
    return sum(xs) / len(xs)


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ROWS)
def test_inventions_move_the_metric_that_is_about_them(corpus: str) -> None:
    """Ten percent move it beyond every tolerance; faithfulness may lie below them."""
    before, after = pools(corpus, INVENTED)
    assert mean(before) < 0.25
    assert SHARE * (mean(after) - mean(before)) > 0.05


def month(corpus: str, seed: int, *, share: float) -> list[dict[str, str]]:
    """Return the counters of a workflow of 1,000 scores a day, of whose answers a share invents in the end."""
    rng = random.Random(seed)
    fine, invents = pools(corpus, INVENTED)
    offs = wander(rng, LEARN + QUIET + SICK, WANDER)
    per_day = 24 * 60 // STEP_MIN

    def steps() -> Iterator[list[list[float]]]:
        for step in range(len(offs) * per_day):
            is_sick = step >= (LEARN + QUIET) * per_day
            yield [
                [
                    moved(
                        rng,
                        rng.choice(invents if is_sick and rng.random() < share else fine),
                        offs[step // per_day],
                    )
                ]
                for _ in range(round(rng.gauss(PER_STEP, PER_STEP**0.5)))
            ]

    return counters(labels(INVENTED, JOB), steps())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("corpus", ROWS)
def test_inventions_fire_within_two_days_and_nothing_fires_in_a_month_before(
    tmp_path: Path, corpus: str, seed: int
) -> None:
    alerts = drift_alerts()
    well, end, family = (LEARN + QUIET) * DAY_H, (LEARN + QUIET + SICK) * DAY_H, "|".join(alerts)
    checks = [ever_firing(family, well, well, JOB), has_fired(family, end, SICK * DAY_H, JOB)]
    run(tmp_path, month(corpus, seed, share=SHARE), checks, only=list(alerts), step_min=STEP_MIN)
