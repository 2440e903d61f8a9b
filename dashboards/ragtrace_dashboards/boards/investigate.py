"""Investigate a drop: is it real, did the measuring change, where is it, which answers are it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards.boards import failures, operations, other_means, scores
from ragtrace_dashboards.boards.drift_panels import drop_trends, z_trend
from ragtrace_dashboards.boards.panels import Panel, Query, Row, by_name
from ragtrace_dashboards.config import PANELS
from ragtrace_dashboards.expressions import (
    CHOSEN,
    CUTOFF,
    HELD,
    IDENTITY,
    JOB,
    JUDGE_MODEL,
    JUDGE_VERSION,
    LABEL_SCALE,
    METRIC,
    SERIES,
    UNIVERSE,
    WORKFLOW,
    gauge_by,
    label,
    legend_of,
    summed,
)

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

WATCHED = (*HELD, scores.DETECTOR)
DETECTED = f"{scores.WHICH} {legend_of(scores.DETECTOR)}"
"""Labels and legend of one detector; the board is of one metric."""


def rows(config: Config) -> list[Row]:
    """Return the rows in the order of the runbook's questions."""
    return [
        Row(10, "1. What happened, and since when", _what(config)),
        Row(20, "2. Is it real?", _real(config)),
        Row(30, "3. Did the measuring change?", _measuring(config)),
        Row(40, "4. Where? By $slice", _where(config)),
        Row(70, "5. Where answers fail", [
            failures.verdicts_over_time(number=71, width=12, height=11),
            failures.verdicts_before_and_now(config, number=PANELS["verdicts"][1], width=12, height=11),
        ]),
        Row(50, "6. Which answers?", _answers(config)),
        Row(60, "7. Did the application change?", _application()),
    ]  # fmt: skip


def _what(config: Config) -> list[Panel]:
    return [
        scores.trend(
            config,
            number=PANELS["investigate"][1],
            title="$metric with its 95 % band",
            description="Mean over the window and the baseline at the picture's right edge. A vertical mark is a "
            "release or an alarm: a drop that begins at one has its cause there. Lengthen the window if the band "
            "is wider than the drop; it is drawn for one workflow, K and judge, chosen above. The paler band "
            "holds the mean of all runs, whatever the missing ones scored. Where a baseline is frozen or "
            "accepted it has a line too: alerts take that.",
            has_frozen=True,
            width=16,
            height=10,
        ),
        _change_time(),
        scores.n_eff(config, number=PANELS["n_eff"][1], width=8, height=5),
    ]


def _change_time() -> Panel:
    return Panel(
        number=12,
        title="Change began about",
        description="When the detectors believe the change began: the last time their statistic was at zero. Look "
        "for a release, an index build or a judge change shortly before.",
        kind="stat",
        unit="dateTimeAsIso",
        options={"textMode": "value_and_name", "wideLayout": False},
        queries=[Query(f"{_latest(semconv.DRIFT_CHANGE_TIME)} * 1000", legend=DETECTED, shape="now")],
        width=8,
        height=5,
    )


def _latest(name: str) -> str:
    return gauge_by("max", name, WATCHED, CHOSEN)


def _real(config: Config) -> list[Panel]:
    return [
        z_trend(config, scores.WHICH, number=PANELS["z"][1], width=12),
        Panel(
            number=22,
            title="Detectors in the process",
            description="Statistic of each detector and where it alarms. A slow climb is a small change that "
            "lasts; a jump is one bad hour. Accept a wanted change with ragtrace baseline accept.",
            queries=[
                Query(_latest(semconv.DRIFT_STATISTIC), legend=DETECTED),
                Query(_latest(semconv.DRIFT_THRESHOLD), legend=f"threshold {DETECTED}"),
            ],
        ),
        scores.drift_state(number=23, width=6, height=6),
        Panel(
            number=24,
            title="Alarms of the detectors",
            description="Alarms that the detectors in the scorers raised within the window. More than one a month "
            "without a cause: tell us, or raise the tolerance in the scorer's settings.",
            unit="short",
            low=0,
            queries=[Query(summed(SERIES[semconv.DRIFT_ALARMS], "$window", WATCHED, CHOSEN), legend=DETECTED)],
            width=6,
            height=6,
        ),
        _baseline(),
        other_means.same_questions(number=26, width=24),
        *drop_trends(config, scores.WHICH, first_number=91),
    ]


def _baseline() -> Panel:
    names = {
        WORKFLOW: "workflow", CUTOFF: "K", LABEL_SCALE: "label scale", UNIVERSE: "universe",
        JUDGE_VERSION: "judge version",
    }  # fmt: skip
    columns = {
        "mean": gauge_by("max", semconv.BASELINE_MEAN, HELD, CHOSEN),
        "sd": gauge_by("max", semconv.BASELINE_SD, HELD, CHOSEN),
        "n": gauge_by("max", semconv.BASELINE_N, HELD, CHOSEN),
        "frozen": gauge_by("max", semconv.BASELINE_FROZEN_TIME, HELD, CHOSEN) + " * 1000",
    }
    return Panel(
        number=25,
        title="Baseline in the process",
        description="Mean, standard deviation and number of scores that the detectors compare with, and when they "
        "were frozen; alerts prefer a frozen one. An old or small baseline makes every verdict doubtful: renew it "
        "with ragtrace baseline accept.",
        kind="table",
        decimals=3,
        queries=[Query(expr, name=ref, shape="table") for ref, expr in columns.items()],
        transformations=scores.one_table("Time", METRIC, names={f"Value #{ref}": ref for ref in columns} | names),
        overrides=[scores.NOT_A_NUMBER, by_name("n", decimals=0), by_name("frozen", unit="dateTimeFromNow")],
        width=12,
        height=6,
    )


def _measuring(config: Config) -> list[Panel]:
    return [
        Panel(
            number=PANELS["judge_version"][1],
            title="Scores by judge and version",
            description="Which judge and which prompt version scored. If the colour changes where the mean drops, "
            "the ruler changed: freeze a new baseline before you look for a cause in the application.",
            unit="short",
            low=0,
            queries=[
                Query(
                    summed(SERIES[semconv.SCORE_N], "1h", (JUDGE_MODEL, JUDGE_VERSION), CHOSEN),
                    legend=legend_of(JUDGE_MODEL, JUDGE_VERSION),
                )
            ],
            custom={"fillOpacity": 40, "lineWidth": 0, "stacking": {"group": "A", "mode": "normal"}},
            width=8,
        ),
        operations.judge_errors(number=32, width=8),
        operations.canary_gap(config, number=33, width=8),
        operations.sampled_share(number=34, width=12),
        operations.coverage(number=35, width=12),
        failures.without_a_score(number=PANELS["missing"][1], width=24),
    ]


def _where(config: Config) -> list[Panel]:
    return [
        scores.by_slice(number=41),
        scores.means(
            config,
            number=42,
            by=(*IDENTITY, "$slice"),
            title="Slices, mean and distance from their own baseline",
        ),
    ]


def _answers(config: Config) -> list[Panel]:
    return [
        scores.distribution(number=51, width=12),
        scores.quantiles(config, number=52, width=12),
        scores.bad_answers(
            f'{{ event.{semconv.GEN_AI_EVALUATION_SCORE_LABEL} = "fail" && '
            f'event.{semconv.GEN_AI_EVALUATION_NAME} =~ "($metric).*" }}',
            number=53,
            title="Recent answers with a low $metric",
            description="Read five of them: what was retrieved, what reached the prompt, what the answer claims. "
            "The same gap in three of five is your cause; five different ones are noise or a change of the judge.",
        ),
    ]


def _application() -> list[Panel]:
    kind = label(semconv.ERROR_TYPE)
    runs = f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count"
    return [
        operations.latency(
            semconv.INVOKE_WORKFLOW_DURATION,
            number=61,
            title="Time of a run",
            description="A step here at the time of the drop means another path through the application: another "
            "model, a smaller K, a cache, a timeout that cuts the reranker.",
            width=8,
        ),
        Panel(
            number=62,
            title="Runs an hour by error",
            description="Runs of the application, failed ones by type of error. Fewer runs or another mix of "
            "workflows moves a mean without any fault: compare the slices above.",
            unit="short",
            low=0,
            queries=[
                Query(
                    f"sum by ({WORKFLOW}, {kind}) (increase({runs}{{{JOB}}}[1h]))",
                    legend=legend_of(WORKFLOW, kind),
                )
            ],
            width=8,
        ),
        scores.empty_share(number=63, width=8),
    ]
