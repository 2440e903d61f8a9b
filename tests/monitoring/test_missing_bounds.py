"""The bounds of a mean whatever is missing, as promtool reads them: from 0 to 1 where nothing was scored."""

from __future__ import annotations

import pytest

from ragtrace import semconv
from ragtrace_dashboards import METRIC, SERIES, WORKFLOW, Sample, whatever_is_missing
from ragtrace_dashboards.missing import Missing
from tests.monitoring.promtool import COARSE, counter, run
from tests.monitoring.share_cases import MISSING, due

pytestmark = pytest.mark.slow

HOURS, RUNS, MEAN = 30.0, 200, 0.5
JUDGED = {"ragtrace_judge_model": "openai:m", "ragtrace_judge_version": "a"}


def scored(job, share):
    """The sums of scores of 0 and 1 alike, of a share of the due runs; every run weighs 2."""
    about = {"job": job, WORKFLOW: "support", METRIC: "faithfulness", **JUDGED}
    runs = RUNS * share / 24
    sums = {
        semconv.SCORE_W: 2, semconv.SCORE_WX: 2 * MEAN, semconv.SCORE_W2: 4, semconv.SCORE_W2X: 4 * MEAN,
        semconv.SCORE_W2X2: 4 * MEAN,
    }  # fmt: skip
    return [counter(SERIES[name], about, (HOURS, runs * each), step_min=COARSE) for name, each in sums.items()]


def within(expr, low, high):
    """Check that an expression has one value, between two others."""
    return {
        "expr": f"count(({expr}) >= {low} <= {high}) == 1 and count({expr}) == 1",
        "eval_time": f"{HOURS:g}h",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }


@pytest.mark.parametrize(
    ("share", "missing", "waited", "low", "high"),
    [
        (0.0, 1.0, 0.0, (0.0, 0.0), (1.0, 1.0)),  # nothing was scored
        (0.5, 0.5, 0.0, (0.15, 0.25), (0.75, 0.85)),
        (1.0, 0.0, 0.5, (0.40, 0.50), (0.50, 0.60)),  # half of the runs waited, and all were scored
        (0.5, 0.5, 0.3, (0.15, 0.25), (0.75, 0.85)),
    ],
)
def test_the_bounds(tmp_path, share, missing, waited, low, high):
    job, where = "shop", 'job="shop"'
    sample, lost = Sample(window="1d", where=where), Missing(window="1d", where=where)
    series = [*due(job, (HOURS, RUNS, missing), waited=waited), *(scored(job, share) if share else [])]
    ends = {side: whatever_is_missing(sample, lost, side) for side in "-+"}
    run(tmp_path, series, [within(ends["-"], *low), within(ends["+"], *high)], only={MISSING}, step_min=COARSE)


def test_series_that_exist_at_zero_hide_no_bounds(tmp_path):
    """A process makes the sums of its judge before the first score."""
    where = 'job="shop"'
    sample, lost = Sample(window="1d", where=where), Missing(window="1d", where=where)
    series = [*due("shop", (HOURS, RUNS, 1.0)), *scored("shop", 0.0)]
    ends = {side: whatever_is_missing(sample, lost, side) for side in "-+"}
    run(tmp_path, series, [within(ends["-"], 0, 0), within(ends["+"], 1, 1)], only={MISSING}, step_min=COARSE)
