"""Cases of services that drift alerts watch: each arm, each gate, silence, another judge, a long incident."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace_dashboards import DRIFT_ALERTS
from tests.monitoring.cases import Case
from tests.monitoring.promtool import FAITHFULNESS, Scores, baseline, expecting, scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.monitoring.cases import Kind

DAY = 24.0
T0 = 10 * DAY
"""Hour at which most things change."""
END = 16 * DAY
"""Until which exported baselines are there."""
FULL = 16 * DAY
"""The same where the baseline is to be as long as it may get."""
LONG = 40 * DAY
FALL, QUALITY, SELECTION, HARM, ANSWERED = DRIFT_ALERTS
CHANGED = "RagtraceJudgeChanged"
METRIC_OF = {
    FALL: "faithfulness",
    QUALITY: "faithfulness",
    SELECTION: "selection_efficiency_at_k",
    HARM: "harm_at_k",
    ANSWERED: "answered",
}
NEW = {"ragtrace_judge_version": "bbbb2222"}
BEFORE = Scores(T0, 200)


def labels(job: str, metric: str = "faithfulness", **others: str) -> dict[str, str]:
    return FAITHFULNESS | {"job": job, "gen_ai_evaluation_name": metric} | others


def drift_cases() -> list[Case]:
    return [*_quality(), *_selection(), *_harm(), *_answered(), *_judges()]


def fall_cases() -> list[Case]:
    """Cases apart from the others: promtool loads no more than 10,000 samples for a rule."""
    return [*_falls()]


def long_cases() -> list[Case]:
    return [*_baseline_rests(), *_second_drops(), *_new_level()]


def wander_cases() -> list[Case]:
    return [*_wander(), *_no_wander()]


def _case(
    job: str,
    alert: str,
    hours: list[tuple[float, int]],
    *phases: Scores,
    metric: str = "",
    base: float = 0.92,
    n: int = 2_000,
    kind: Kind = "",
) -> Case:
    """Return a service with one metric, an exported baseline, and what is expected of one alert."""
    named = labels(job, metric or METRIC_OF[alert])
    return Case(job, scores(named, *phases) + baseline(named, (END, base), n=n), {alert: hours}, kind=kind)


def _quality() -> Iterator[Case]:
    fires, quiet = [(24.0, 0), (T0, 0), (T0 + 60, 1), (T0 + 70, 1)], [(T0 + 24, 0), (T0 + 70, 0)]
    yield _case("a drop of 12 points", QUALITY, fires, BEFORE, Scores(72, 200, 0.80))
    # Of a day's 200 scores it is less than 3.6 standard errors.
    yield _case(
        "a week sees 6 points", QUALITY, [(T0, 0), (T0 + 30, 0), (T0 + 80, 0), (T0 + 142, 1)],
        BEFORE, Scores(6 * DAY, 200, 0.86),
    )  # fmt: skip
    yield _case(
        "within the tolerance", QUALITY, [(T0 + 48, 0), (T0 + 94, 0)], Scores(T0, 5_000), Scores(96, 5_000, 0.905)
    )
    yield _case("a rise", QUALITY, quiet, BEFORE, Scores(72, 200, 1.0))
    yield _case("4 a day", QUALITY, quiet, Scores(T0, 4), Scores(72, 4, 0.3), kind="low n")
    yield _case(
        "4 a day after 200", QUALITY, [(T0 + 30, 0), (T0 + 94, 0)], BEFORE, Scores(96, 4, 0.3), kind="low n"
    )
    yield _case(
        "few of many carry the weight", QUALITY, quiet,
        Scores(T0, 200, w2=50.0), Scores(72, 200, 0.6, w2=50.0), kind="low n",
    )  # fmt: skip
    yield _case(
        "a baseline of 150", QUALITY, [(48, 0), (58, 0)], Scores(36, 100), Scores(24, 100, 0.5), n=150, kind="low n"
    )
    yield _case(
        "scores end", QUALITY, [(T0 + 6, 0), (T0 + 22, 0), (T0 + 94, 0)], BEFORE, Scores(96, 0), kind="silence"
    )
    # The last bad scores are forgotten with the longest window.
    yield _case(
        "scores end in an incident", QUALITY, [(T0 + 46, 1), (T0 + 48 + 7 * DAY + 4, 0)],
        BEFORE, Scores(48, 200, 0.7), Scores(8 * DAY, 0), kind="silence",
    )  # fmt: skip
    yield _case("not watched", QUALITY, quiet, BEFORE, Scores(72, 200, 0.5), metric="own")
    count = 'count by (gen_ai_evaluation_name) (ragtrace:baseline_mean:day{job="a well one beside it"})'
    other = labels("a well one beside it", "answer_relevancy")
    sick = _case("a well one beside it", QUALITY, [(T0 + 48, 1)], BEFORE, Scores(72, 200, 0.7))
    well = scores(other, BEFORE, Scores(72, 200)) + baseline(other, (END, 0.92))
    only = [{"labels": '{gen_ai_evaluation_name="answer_relevancy"}', "value": 1}]
    yield Case(sick.job, sick.series + well, sick.expected, also=[expecting(count, T0 + 48, only)])


def _falls() -> Iterator[Case]:
    """A fall of 14 points pages, a drop of 6 does not."""
    yield _case(
        "a fall of 14 points",
        FALL,
        [(T0, 0), (T0 + 10, 1), (T0 + 70, 1)],
        Scores(T0, 1_000),
        Scores(72, 1_000, 0.78),
    )
    quiet = [(T0 + it, 0) for it in (4, 6, 24, 70)]
    yield _case("a drop of 6 points pages nobody", FALL, quiet, Scores(T0, 1_000), Scores(72, 1_000, 0.86))
    yield _case("40 a day fall", FALL, quiet, Scores(T0, 40), Scores(72, 40, 0.3), kind="low n")
    yield _case("scores end after a fall", FALL, quiet, Scores(T0, 1_000), Scores(72, 0), kind="silence")


def _selection() -> Iterator[Case]:
    quiet = [(T0 + 24, 0), (T0 + 70, 0)]
    yield _case("selection falls", SELECTION, [(T0, 0), (T0 + 70, 1)], BEFORE, Scores(72, 200, 0.8))
    yield _case("selection holds", SELECTION, quiet, BEFORE, Scores(72, 200))
    yield _case(
        "it has an alert of its own", QUALITY, quiet, BEFORE, Scores(72, 200, 0.8), metric=METRIC_OF[SELECTION]
    )
    yield _case("selection of 4 a day", SELECTION, quiet, Scores(T0, 4), Scores(72, 4, 0.2), kind="low n")
    yield _case("selection ends", SELECTION, quiet, BEFORE, Scores(72, 0), kind="silence")


def _harm() -> Iterator[Case]:
    quiet = [(T0 + 24, 0), (T0 + 70, 0)]
    yield _case("harm rises", HARM, [(T0, 0), (T0 + 70, 1)], Scores(T0, 200, 0.1), Scores(72, 200, 0.2), base=0.1)
    yield _case("harm falls", HARM, quiet, Scores(T0, 200, 0.2), Scores(72, 200, 0.0), base=0.2)
    yield _case(
        "harm falls far: quality is as it was", QUALITY, quiet,
        Scores(T0, 200, 0.6), Scores(72, 200, 0.0), metric=METRIC_OF[HARM], base=0.6,
    )  # fmt: skip
    yield _case("harm of 4 a day", HARM, quiet, Scores(T0, 4, 0.0), Scores(72, 4, 0.9), base=0.0, kind="low n")
    yield _case("harm ends", HARM, quiet, Scores(T0, 200, 0.1), Scores(72, 0), base=0.1, kind="silence")


def _answered() -> Iterator[Case]:
    quiet, var = [(T0 + 24, 0), (T0 + 70, 0)], 0.95 * 0.05
    usual = Scores(T0, 200, 0.95, var=var)
    yield _case(
        "more refusals", ANSWERED, [(T0, 0), (T0 + 70, 1)], usual, Scores(72, 200, 0.80, var=0.16), base=0.95
    )
    yield _case("as many refusals", ANSWERED, quiet, usual, Scores(72, 200, 0.95, var=var), base=0.95)
    yield _case("fewer refusals", ANSWERED, quiet, usual, Scores(72, 200, 1.0, var=0.0), base=0.95)
    yield _case(
        "refusals are no quality drift", QUALITY, quiet, usual, Scores(72, 200, 0.80, var=0.16), metric="answered",
        base=0.95,
    )  # fmt: skip
    yield _case(
        "4 questions a day are refused", ANSWERED, quiet, Scores(T0, 4, 1.0), Scores(72, 4, 0.0), base=1.0,
        kind="low n",
    )  # fmt: skip
    yield _case("answers end", ANSWERED, quiet, usual, Scores(72, 0), base=0.95, kind="silence")


def _judges() -> Iterator[Case]:
    """A stricter judge, and the new judge's own drop."""
    for alert, metric in METRIC_OF.items():
        job, old, new = f"stricter: {alert}", labels("", metric), labels("", metric, **NEW)
        before, after = (0.1, 0.5) if alert == HARM else (0.92, 0.6)
        yield Case(
            job,
            scores(old | {"job": job}, Scores(T0, 200, before), Scores(96, 0))
            + scores(new | {"job": job}, Scores(96, 200, after), begin_h=T0)
            + baseline(old | {"job": job}, (T0 + 70, before), (96, after)),
            {
                alert: [(T0 + it, 0) for it in (6, 12, 22, 30, 48, 70, 94)],
                CHANGED: [(T0, 0), (T0 + 6, 1), (T0 + 30, 0)],
            },
            kind="judge change",
        )
    job, t0 = "the new judge sees a drop", 5 * DAY
    yield Case(
        job,
        scores(labels(job), Scores(t0, 200), Scores(9 * DAY, 0))
        + scores(labels(job, **NEW), Scores(6 * DAY, 200, 0.85), Scores(72, 200, 0.70), begin_h=t0)
        + baseline(labels(job), (t0, 0.92))
        + baseline(labels(job, **NEW), (LONG, 0.85), begin_h=t0 + 60),
        {QUALITY: [(t0 + 5 * DAY, 0), (t0 + 8 * DAY, 1)]},
        kind="judge change",
    )


def _baseline_rests() -> Iterator[Case]:
    """Six days into a drop a baseline that rolls on would have taken much of it for normal: z 1.8, no alert."""
    job, late, end = "six bad days", FULL + 6 * DAY, FULL + 10 * DAY
    again = FULL + 29 * DAY - 2  # 17 days after the last bad score has left the longest window
    mine = f'{{job="{job}"}}'
    rolling = (
        f"sum(increase(ragtrace_score_wx_total{mine}[14d] offset 1d))"
        f" / sum(increase(ragtrace_score_w_total{mine}[14d] offset 1d)) < bool 0.90"
    )
    kept = f"last_over_time(ragtrace:baseline_mean:day{mine}[7d]) > bool 0.91"
    whose = "{" + ", ".join(f'{k}="{v}"' for k, v in labels(job).items() if k != "ragtrace_stratum") + "}"
    yield Case(
        job,
        scores(labels(job), Scores(FULL, 200), Scores(6 * DAY, 200, 0.80), Scores(23 * DAY, 200))
        + baseline(labels(job), (LONG, 0.92)),
        {QUALITY: [*((FULL + 24 * day, 1) for day in (2, 3, 4, 5, 6)), (end, 0), (again, 0)]},
        also=[
            *(
                expecting(f"ragtrace:baseline_{it}{mine}", at, [])
                for it in ("mean:day", "n_eff:week", "s2:day")
                for at in (late, end)
            ),
            expecting(kept, late, [{"labels": whose, "value": 1}]),
            expecting(rolling, late, [{"labels": "{}", "value": 1}]),
            *(
                expecting(f"count(ragtrace:baseline_{it}{mine})", again, [{"labels": "{}", "value": 1}])
                for it in ("mean:day", "n_eff:week", "s2:day")
            ),
        ],
    )


def _second_drops() -> Iterator[Case]:
    """A baseline that learns the incident once it is over is .877 here, and the second drop from it is none."""
    first, mended = 12 * DAY, 17 * DAY
    second = mended + 6 * DAY
    for per_day in (200, 1_000):
        job = f"a second drop, {per_day} a day"
        yield Case(
            job,
            scores(
                labels(job),
                Scores(first, per_day),
                Scores(mended - first, per_day, 0.80),
                Scores(second - mended, per_day),
                Scores(6 * DAY, per_day, 0.84),
            ),
            {
                QUALITY: [
                    (first, 0), (first + 100, 1), (mended + 4, 1), (mended + 30, 0), (second - 4, 0),
                    *((second + it, 1) for it in (26, 48, 96, 120)),
                ],
            },
        )  # fmt: skip


def _new_level() -> Iterator[Case]:
    """The recorded baseline is forgotten after 30 days.

    What is normal then is read once, and a further drop is seen, though the first fired within the 17 days of rest.
    """
    job, t0 = "a new level is normal once the old baseline is forgotten", 6 * DAY
    forgotten = t0 + 31 * DAY
    one = [{"labels": "{}", "value": 1}]
    yield Case(
        job, scores(labels(job), Scores(t0, 200), Scores(32 * DAY, 200, 0.80), Scores(72, 200, 0.70)),
        {QUALITY: [(t0 + 96, 1), (t0 + 29 * DAY, 1), (forgotten, 0), (t0 + 32 * DAY - 2, 0), (t0 + 34 * DAY, 1)]},
        also=[
            expecting(f'count(ragtrace:normal_{it}{{job="{job}"}} > bool 0)', forgotten, one)
            for it in ("mean:day", "n_eff:day", "s2:day", "mean:week", "n_eff:week", "s2:week")
        ],
    )  # fmt: skip


def _wander() -> Iterator[Case]:
    """A drop of 5 points is none of a service whose mean moves by 2 points every other day."""
    known, per_day = 33 * DAY, 1_000
    for job, swing, count in (("a steady service", 0.0, 1), ("an unsteady service", 0.02, 0)):
        days = [Scores(2 * DAY, per_day, 0.92 + swing * (-1) ** day) for day in range(16)]
        learnt = f'round(10000 * max(ragtrace:drift_t2:day{{job="{job}"}}), 0.01)'
        yield Case(
            job,
            scores(labels(job), *days, Scores(DAY, per_day), Scores(60, per_day, 0.87)),
            {QUALITY: [*((day * DAY, 0) for day in range(1, 34, 4)), (known + 30, count), (known + 54, count)]},
            also=[expecting(learnt, known, [{"labels": "{}", "value": 2.25 if swing else 0.8}])],
        )
    # Few scores in sessions that nobody declares move the day's mean: up to 3 S2 of it is believed, in that window alone.
    job = "sessions that nobody declares"
    sampling = "(ragtrace:normal_s2:day * (1 / ragtrace:score_n_eff:day + 1 / ragtrace:normal_n_eff:day))"
    days = [Scores(8 * DAY, 200), *(Scores(2 * DAY, 200, 0.92 - 0.06 * (-1) ** day) for day in range(12))]
    yield Case(
        job,
        scores(labels(job), *days, Scores(DAY, 200), Scores(6 * DAY, 200, 0.82)),
        {QUALITY: [*((day * DAY, 0) for day in range(1, 34, 4)), (known + 24, 0), (known + 140, 1)]},
        also=[
            expecting(f"round({value}, 0.05)", known, [{"labels": "{}", "value": expected}])
            for value, expected in (
                (f'max(ragtrace:drift_t2:day{{job="{job}"}} / {sampling})', 3),
                (f'10000 * max(ragtrace:drift_t2:week{{job="{job}"}})', 0.8),
            )
        ],
    )
    # As steady, but nothing shows it yet: the prior holds.
    job, begin = "a steady service on its fifth day", 5 * DAY
    yield Case(
        job,
        scores(labels(job), Scores(begin, per_day), Scores(60, per_day, 0.875)),
        {QUALITY: [(begin, 0), (begin + 24, 0), (begin + 40, 0)]},
        also=[
            expecting(
                f'round(10000 * max(ragtrace:drift_t2:{arm}{{job="{job}"}}), 0.01)',
                4 * DAY,
                [{"labels": "{}", "value": 0.8}],
            )
            for arm in ("day", "fast")
        ],
    )


def _no_wander() -> Iterator[Case]:
    """An incident that was mended or accepted is no wander: the next small drop is seen."""
    t0, late = 20 * DAY, 34 * DAY
    for job, after, accepted in (("mended", 0.92, False), ("accepted at once", 0.80, True)):
        named = labels(f"an incident, {job}")
        frozen = baseline(named, (t0 + 40, None), (LONG, 0.80), frozen_h=t0 + 40) if accepted else []
        learnt = f'max(ragtrace:drift_t2:day{{job="{named["job"]}"}}) < bool 0.0001'
        yield Case(
            named["job"],
            scores(
                named, Scores(t0, 1_000), Scores(40, 1_000, 0.80), Scores(late - t0 - 40, 1_000, after),
                Scores(60, 1_000, after - 0.05),
            ) + frozen,
            {QUALITY: [(t0 + 24, 1), (t0 + 90, 0), (late, 0), (late + 30, 1)]},
            also=[expecting(learnt, late, [{"labels": "{}", "value": 1}])],
        )  # fmt: skip
