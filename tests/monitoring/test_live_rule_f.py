"""The drift rule on a real Prometheus with six backfilled weeks: drop, error, limit and alerts are numpy's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from ragtrace_dashboards import DRIFT_ALERTS, METRIC, Config, Watched, alerts, arms, recording_groups
from ragtrace_dashboards.drift import CHANGED, DROP, ERROR, LIMIT
from ragtrace_dashboards.drift_rule.wander import T2
from tests.dashboards.month import METRICS, Month
from tests.dashboards.promql import asked
from tests.dashboards.server import backfill, needs_prometheus, record, serving
from tests.monitoring.rule_f import SLOT_S, Comparison, Readings, Sums, compared, wanders

pytestmark = [pytest.mark.slow, needs_prometheus]
END = 1_780_012_800  # midnight
DAY = 86_400 // SLOT_S
DAYS = 41
STEP = 36 * DAY + 9 * 4
"""Slot at whose beginning the means fall: the wander of 32 days is known."""
BEGIN = END - DAYS * 86_400
WEIGHTS = (1.0, 1.0, 1.0, 2.0)
MORE = 1.12  # scores of these weights for one of weight 1: (5 / 4)^2 / (7 / 4) of them are effective
FIRST = 4
"""An hour: before it, there is no block."""
POINTS = np.arange(FIRST, DAYS * DAY + 1)
ATOMS = np.array([0, 0.25, 0.5, 0.67, 0.8, 1.0])
BAD = np.array([0.3, 0.25, 0.25, 0.2, 0, 0])
GOOD = np.array([0, 0.01, 0.02, 0.03, 0.04, 0.9])


@dataclass(frozen=True)
class Case:
    """One watched metric's weeks: effective scores a day, wander of its daily mean, the level it falls to."""

    per_day: int
    wander: float
    fall_to: float
    within: float
    """Days by which the fall is seen."""


CASES = {
    "faithfulness": Case(200, 0.004, 0.82, 3.0),
    "answer_relevancy": Case(200, 0.04, 0.65, 1.0),
    "context_precision": Case(2_000, 0.01, 0.85, 1.2),
    "selection_efficiency_at_k": Case(2_000, 0.0, 0.85, 0.5),
    "answered": Case(200, 0.006, 0.75, 1.5),
    "harm_at_k": Case(150, 0.006, 0.70, 2.0),
    "invented_specifics": Case(1_000, 0.0, 0.86, 2.0),
}
CONFIG = Config(
    metrics=tuple(Watched(name=name) for name in CASES),
    wander_interval_s=SLOT_S,  # as often as the rules are evaluated here
)
DOWN = set(CONFIG.down_metrics)


class Told:
    """What the weeks are and what Prometheus says of them."""

    def __init__(self, month, server):
        self.month, self.server = month, server

    @cached_property
    def sums(self):
        return {metric: Sums.of_scores(self.month.weighted(metric)[1:]) for metric in CASES}

    @cached_property
    def known(self):
        """By metric and window: drop, S2, R2."""
        return {
            metric: {arm.name: Comparison.of(sums, arm, CONFIG, is_down=metric in DOWN) for arm in arms(CONFIG)}
            for metric, sums in self.sums.items()
        }

    @cached_property
    def t2(self):
        return {metric: wanders(found, CONFIG) for metric, found in self.known.items()}

    @cached_property
    def family(self):
        return compared(list(self.known.values()))

    def fires(self, metric, *, is_fall=False):
        readings = Readings(self.known[metric], self.t2[metric])
        fires = readings.falls if is_fall else readings.fires
        return fires(CONFIG, self.family)[POINTS]

    def series(self, expr, points=POINTS):
        """Values of a range query, nan = none, by metric; of a series without labels by an empty name."""
        found = {}
        begin, end = (BEGIN + int(it) * SLOT_S for it in (points[0], points[-1]))
        for it in self.server.series(expr, begin, end, SLOT_S):
            values = found.setdefault(it["metric"].get(METRIC, ""), np.full(points.size, np.nan))
            for at, value in it["values"]:
                values[(at - BEGIN) // SLOT_S - points[0]] = float(value)
        return found


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    month = drawn()
    backfill(folder, month.text())
    apart = {"ragtrace-shares", "ragtrace-culprit"}
    rules = [it for group in recording_groups(CONFIG) if group.name not in apart for it in group.rules]
    record(folder, rules, BEGIN + FIRST * SLOT_S, END, SLOT_S)
    with serving(folder) as server:
        yield Told(month, server)


def drawn():
    """Draw scores with a rhythm of day and week, a daily wander, and a fall at the end."""
    slots = np.arange(DAYS * DAY)
    rhythm = (1 - 0.6 * np.cos(2 * np.pi * slots / DAY)) * np.where(slots // DAY % 7 < 5, 1.15, 0.625)
    scores = {}
    for metric in METRICS:
        case = CASES.get(metric, Case(20, 0.0, 0.9, 0.0))
        rng = np.random.default_rng(
            [6, *metric.encode()]
        )  # the scores of one metric are the same whatever else is watched
        means = np.repeat(0.92 + rng.normal(0, case.wander, DAYS), DAY)
        means[STEP:] += case.fall_to - 0.92
        bad = np.clip((GOOD @ ATOMS - means) / (GOOD @ ATOMS - BAD @ ATOMS), 0, 1)
        atoms = 1 - ATOMS if metric in DOWN else ATOMS
        counts = rng.poisson(case.per_day * MORE / DAY * rhythm)
        chances = GOOD + bad[:, None] * (BAD - GOOD)
        scores[metric] = [
            [],
            *(rng.choice(atoms, size=n, p=chance).tolist() for n, chance in zip(counts, chances, strict=True)),
        ]
    return Month([*range(BEGIN, END + 1, SLOT_S)], scores, WEIGHTS)


def assert_same(found, wanted, least=1e-7):
    """Both are there at the same times, and differ by less than 1 %."""
    assert (np.isnan(found) == np.isnan(wanted)).all()
    has = ~np.isnan(wanted)
    assert has.any()
    assert (np.abs(found - wanted)[has] <= np.maximum(0.01 * np.abs(wanted[has]), least)).all()


@pytest.mark.parametrize("arm", arms(CONFIG), ids=lambda arm: arm.name)
@pytest.mark.parametrize("part", ["drop", "t2", "error", "limit"])
def test_drop_wander_error_and_limit_are_numpys(told, arm, part):
    name = {"drop": DROP, "t2": T2, "error": ERROR, "limit": LIMIT}[part]
    found = told.series(f"{name}:{arm.name} and {DROP}:{arm.name}")
    assert set(found) == set(CASES)
    for metric, values in found.items():
        comparison, t2 = told.known[metric][arm.name], told.t2[metric][arm.name]
        gate = np.where(np.isnan(comparison.drop), np.nan, 1.0)
        wanted = {
            "drop": comparison.drop,
            "t2": t2 * gate,
            "error": comparison.error(t2),
            "limit": comparison.limit(arm, t2, told.family),
        }[part]
        assert_same(values, wanted[POINTS], 1e-9 if part == "t2" else 1e-5)


def test_the_wander_is_learnt(told):
    """It ends between the prior and the cap, as the service moves, and begins at the prior.

    With few scores the cap is a multiple of their sampling variance. A metric near 0 begins with less.
    """
    day = {metric: np.sqrt(it["day"]) for metric, it in told.t2.items()}
    prior = {
        metric: np.fmin(CONFIG.wander_prior, np.sqrt(it["day"].of_score / CONFIG.wander_scores))
        for metric, it in told.known.items()
    }
    assert all(it[4 * DAY] == pytest.approx(prior[metric][4 * DAY]) for metric, it in day.items())
    few, cap = told.t2["answer_relevancy"], CONFIG.wander_cap**2
    most = {name: CONFIG.wander_sampling * it.s2 for name, it in told.known["answer_relevancy"].items()}
    assert cap < few["day"][STEP] <= most["day"][STEP]
    assert most["week"][STEP] < few["week"][STEP] == cap
    assert day["selection_efficiency_at_k"][STEP] == pytest.approx(prior["selection_efficiency_at_k"][STEP])
    assert prior["context_precision"][STEP] < day["context_precision"][STEP] < CONFIG.wander_cap


def test_the_alerts_fire_where_numpy_says(told):
    by_name = {it.name: told.series(it.expr) for it in alerts(CONFIG) if it.name in DRIFT_ALERTS}
    falls = by_name.pop("RagtraceQualityFall")
    fired = {metric: values for found in by_name.values() for metric, values in found.items()}
    assert set(fired) == set(CASES)
    step, waits = STEP - FIRST, CONFIG.for_s / 86_400
    for metric, case in CASES.items():
        found = ~np.isnan(fired[metric])
        assert (found == told.fires(metric)).all(), metric
        assert not found[: step + 1].any(), metric
        delay = (found.argmax() - step) / DAY + waits
        assert 0 < delay <= case.within, f"{metric}: {delay:.2f} d"
    assert falls
    for metric, values in falls.items():
        assert (~np.isnan(values) == told.fires(metric, is_fall=True)).all(), metric


@pytest.mark.parametrize("alert", alerts(CONFIG), ids=lambda alert: alert.name)
def test_an_alert_runs_and_reads_what_is_there(told, alert):
    told.server.series(alert.expr, END - 3 * 86_400, END, 3_600)
    for name in {name for name, *_ in asked(alert.expr).selectors} - {CHANGED}:  # a month with one judge
        assert told.server.ask(f"last_over_time({name}[1d])", END), name
