"""Rule F on a real Prometheus with a backfilled month: its z is numpy's, and its alerts come as soon as promised."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from ragtrace_dashboards.alerts import alerts
from ragtrace_dashboards.config import Config, duration
from ragtrace_dashboards.drift import CHANGED, DRIFT_ALERTS, arms, baseline_rules, window_rules
from ragtrace_dashboards.expressions import IDENTITY, METRIC, Sample, baseline_of, z_score
from tests.dashboards.month import METRICS, Month
from tests.dashboards.promql import asked
from tests.dashboards.server import backfill, needs_prometheus, serving
from tests.monitoring import rule_f
from tests.monitoring.rule_f import SLOT_S, Sums
from tests.monitoring.worlds import ATOMS, DAY, LEARNING, World

pytestmark = [pytest.mark.slow, needs_prometheus]
CONFIG = Config()
END = 1_780_012_800  # midnight
DAYS = LEARNING + 13
BEGIN = END - DAYS * 86_400
WEIGHTS = (1.0, 1.0, 1.0, 2.0)
MORE = 1.12  # scores of these weights for one of weight 1: (5 / 4)^2 / (7 / 4) of them are effective
POINTS = LEARNING * DAY + np.arange((DAYS - LEARNING) * DAY + 1)
DOWN = set(CONFIG.down_metrics)


@dataclass(frozen=True)
class Case:
    """One watched metric's month: effective scores a day, the level it falls to, and days within which it is seen."""

    per_day: int
    fall_to: float
    within: float
    """Nine of ten such steps were seen by then."""


CASES = {
    "faithfulness": Case(200, 0.85, 2.4),
    "answer_relevancy": Case(200, 0.80, 1.0),
    "context_precision": Case(5_000, 0.85, 0.43),
    "selection_efficiency_at_k": Case(5_000, 0.80, 0.18),
    "harm_at_k": Case(200, 0.80, 1.0),
}
STEP = World(per_day=1).step


class Told:
    """What the month is and what Prometheus says of it."""

    def __init__(self, month, server):
        self.month, self.server = month, server

    @cached_property
    def sums(self):
        return {metric: Sums.of_scores(self.month.weighted(metric)[1:]) for metric in CASES}

    def z(self, metric, arm):
        return rule_f.z_score(self.sums[metric], arm, CONFIG, is_down=metric in DOWN)[POINTS]

    def series(self, expr):
        """Values of a range query at `POINTS`, nan = none, by metric."""
        found = {}
        for it in self.server.series(expr, BEGIN + int(POINTS[0]) * SLOT_S, END, SLOT_S):
            values = found.setdefault(it["metric"][METRIC], np.full(POINTS.size, np.nan))
            for at, value in it["values"]:
                values[(at - BEGIN) // SLOT_S - POINTS[0]] = float(value)
        return found


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    month = drawn()
    backfill(folder, month.text())
    for rules in levels():
        with serving(folder) as server:
            backfill(folder, recorded(server, rules))
    with serving(folder) as server:
        yield Told(month, server)


def drawn():
    rng = np.random.default_rng(6)
    scores = {}
    for metric in METRICS:
        case = CASES.get(metric)
        world = World(
            per_day=(case.per_day if case else 200) * MORE, days=DAYS, fall_to=case.fall_to if case else None
        )
        counts = world.draw(rng, 1)[0]
        atoms = 1 - ATOMS if metric in DOWN else ATOMS
        scores[metric] = [[], *(rng.permutation(np.repeat(atoms, slot)).tolist() for slot in counts)]
    return Month([*range(BEGIN, END + 1, SLOT_S)], scores, WEIGHTS)


def levels():
    """Recording rules in groups that need only the groups before."""
    known, rest = set(), [*baseline_rules(CONFIG), *window_rules(CONFIG)]
    names = {rule["record"] for rule in rest}
    while rest:
        ready = [
            it
            for it in rest
            if {name for name, *_ in asked(it["expr"]).selectors} & names
            <= known | {it["record"]}  # one reads itself
        ]
        yield ready
        known |= {it["record"] for it in ready}
        rest = [it for it in rest if it not in ready]


def recorded(server, rules):
    """Evaluate recording rules over the past; promtool can too, but in blocks of two hours: minutes for a month."""
    for rule in rules:
        yield f"# TYPE {rule['record']} gauge\n"
        for it in server.series(rule["expr"], BEGIN + int(POINTS[0]) * SLOT_S, END, SLOT_S):
            labels = ",".join(f'{key}="{value}"' for key, value in it["metric"].items() if key != "__name__")
            for at, value in it["values"]:
                yield f"{rule['record']}{{{labels}}} {value} {at}\n"
    yield "# EOF\n"


@pytest.mark.parametrize("arm", arms(CONFIG), ids=lambda arm: arm.name)
def test_z_of_raw_series_is_numpys(told, arm):
    for metric in CASES:
        sample = Sample(window=duration(arm.window_s), by=IDENTITY, where=f'{METRIC}="{metric}"')
        base = baseline_of(sample, CONFIG)
        found = told.series(z_score(sample, base, arm.tolerance, is_down=metric in DOWN))[metric]
        wanted = told.z(metric, arm)
        has = ~np.isnan(wanted)
        assert has.sum() > 0.4 * POINTS.size
        assert np.abs(found - wanted)[has].max() < 0.005


@pytest.mark.parametrize("arm", arms(CONFIG), ids=lambda arm: arm.name)
def test_recorded_z_is_numpys(told, arm):
    recorded = told.series(f"ragtrace:drift_z:{arm.name}")
    assert set(recorded) == set(CASES)
    for metric, found in recorded.items():
        wanted = told.z(metric, arm)
        assert (np.isnan(found) == np.isnan(wanted)).all()  # the gates are the same
        assert np.nanmax(np.abs(found - wanted)) < 0.005


def test_the_drops_are_found_as_soon_as_the_table_says(told):
    fired = {}
    for alert in alerts(CONFIG):
        if alert.name in DRIFT_ALERTS:
            fired |= told.series(alert.expr)
    assert set(fired) == set(CASES)
    step, waits = STEP - POINTS[0], CONFIG.for_s / 86_400
    for metric, case in CASES.items():
        found = ~np.isnan(fired[metric])
        assert not found[: step + 1].any(), metric
        delay = (found.argmax() - step) / DAY + waits
        assert 0 < delay <= case.within, f"{metric}: {delay:.2f} d"
        by_numpy = rule_f.fires(told.sums[metric], CONFIG, is_down=metric in DOWN)[POINTS]
        assert (found == by_numpy).all(), metric


@pytest.mark.parametrize("form", ["expr", "raw"])
@pytest.mark.parametrize("alert", alerts(CONFIG), ids=lambda alert: alert.name)
def test_an_alert_runs_and_reads_what_is_there(told, alert, form):
    expr = getattr(alert, form) or alert.expr
    told.server.series(expr, END - 3 * 86_400, END, 3_600)
    for name in {name for name, *_ in asked(expr).selectors} - {CHANGED}:  # a month with one judge
        assert told.server.ask(f"last_over_time({name}[1d])", END), name
