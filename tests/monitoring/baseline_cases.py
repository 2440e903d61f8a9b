"""Cases of baselines: one for each K and judge version; learnt, rolling, frozen or accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace_dashboards import HELD, Config, Watched
from tests.monitoring.cases import Case
from tests.monitoring.drift_cases import DAY, HARM, LONG, METRIC_OF, NEW, QUALITY, SELECTION, labels
from tests.monitoring.promtool import JUDGE, Scores, baseline, expecting, scores

if TYPE_CHECKING:
    from collections.abc import Iterator

T0 = 6 * DAY
ACCEPTED = T0 + 4 * DAY
DOWN = replace(Config(), metrics=(*Config().metrics, Watched(name="contradicted_rate")))


def baseline_cases() -> list[Case]:
    return [*_cut_offs(), *_scales(), *_judges()]


def frozen_cases() -> list[Case]:
    return [*_accepted(), *_accepted_better(), *_frozen(), *_processes()]


def down_cases() -> list[Case]:
    """Another metric of which less is better: it has the quality alert, the right way round."""

    def case(job: str, before: float, after: float, count: int) -> Case:
        named = labels(job, "contradicted_rate")
        series = scores(named, Scores(T0, 200, before), Scores(72, 200, after)) + baseline(named, (LONG, before))
        quiet = {HARM: [(T0 + 70, 0)], SELECTION: [(T0 + 70, 0)]}
        return Case(job, series, {QUALITY: [(T0, 0), (T0 + 70, count)]} | quiet)

    rises = case("more is contradicted", 0.1, 0.25, 1)
    beside = labels(rises.job)
    well = scores(beside, Scores(T0 + 72, 200)) + baseline(beside, (LONG, 0.92))
    sick = scores(labels("quality falls"), Scores(T0, 200), Scores(72, 200, 0.8))
    return [
        Case(rises.job, rises.series + well, rises.expected),
        case("less is contradicted", 0.3, 0.1, 0),
        Case("quality falls", sick + baseline(labels("quality falls"), (LONG, 0.92)), {QUALITY: [(T0 + 70, 1)]}),
    ]


def _cut_offs() -> Iterator[Case]:
    """Two K of one metric. Mixed, the many scores of the lower one would be a drop of the other."""
    for job, after, count in (("two K hold", 0.92, 0), ("one K of two falls", 0.75, 1)):
        few, many = (labels(job, METRIC_OF[SELECTION], ragtrace_k=k) for k in ("5", "10"))
        yield Case(
            job,
            scores(few, Scores(T0, 200), Scores(72, 200, after)) + baseline(few, (LONG, 0.92), frozen_h=0)
            + scores(many, Scores(T0 + 72, 800, 0.6)) + baseline(many, (LONG, 0.6), frozen_h=0),
            {SELECTION: [(T0, 0), (T0 + 70, count)]},
        )  # fmt: skip


def _scales() -> Iterator[Case]:
    """Grades of two scales, and sets of labels as two universes: the baseline of one is none of the other."""
    for job, name, values in (
        ("two label scales", "ragtrace_label_scale", ("1-5", "0-3")),
        ("two universes", "ragtrace_universe", ("pool", "corpus")),
    ):
        few, many = (labels(job, METRIC_OF[HARM], ragtrace_k="5", **{name: it}) for it in values)
        yield Case(
            job,
            scores(few, Scores(T0 + 72, 200, 0.05)) + baseline(few, (LONG, 0.05), frozen_h=0)
            + scores(many, Scores(T0 + 72, 200, 0.30)),
            {HARM: [(it, 0) for it in (T0, T0 + 30, T0 + 70)]},
        )  # fmt: skip
        rises = f"{job}, one rises"
        few, many = (it | {"job": rises} for it in (few, many))
        yield Case(
            rises,
            scores(few, Scores(T0, 200, 0.05), Scores(72, 200, 0.15)) + baseline(few, (LONG, 0.05), frozen_h=0)
            + scores(many, Scores(T0 + 72, 200, 0.30)) + baseline(many, (LONG, 0.30), frozen_h=0),
            {HARM: [(T0, 0), (T0 + 70, 1)]},
        )  # fmt: skip


def _judges() -> Iterator[Case]:
    """A stricter judge learns its own baseline: quiet, also after the three silent days, until it sees a drop."""
    job, late = "stricter, and learnt", T0 + 8 * DAY
    old, new = labels(job), labels(job, **NEW)
    yield Case(
        job,
        scores(old, Scores(T0, 200), Scores(14 * DAY, 0))
        + scores(new, Scores(8 * DAY, 200, 0.6), Scores(72, 200, 0.45), begin_h=T0)
        + baseline(old, (T0, 0.92)) + baseline(new, (LONG, 0.6), begin_h=T0 + 60),
        {QUALITY: [*((T0 + it, 0) for it in (6, 30, 70, 78, 94, 140)), (late, 0), (late + 48, 1)]},
    )  # fmt: skip
    job = "stricter, the old one is frozen"
    old, new = labels(job), labels(job, **NEW)
    yield Case(
        job,
        scores(old, Scores(T0, 200), Scores(8 * DAY, 0)) + scores(new, Scores(8 * DAY, 200, 0.6), begin_h=T0)
        + baseline(old, (LONG, 0.92), frozen_h=0),
        {QUALITY: [(T0 + it, 0) for it in (30, 78, 140, 190)]},
    )  # fmt: skip
    job = "stricter, and its own is frozen"
    old, new = labels(job), labels(job, **NEW)
    yield Case(
        job,
        scores(old, Scores(T0, 200), Scores(5 * DAY, 0)) + scores(new, Scores(5 * DAY, 200, 0.6), begin_h=T0)
        + baseline(new, (LONG, 0.85), begin_h=T0 + 2, frozen_h=0),
        {QUALITY: [(T0 + 6, 0), (T0 + 22, 0), (T0 + 100, 1)]},
    )  # fmt: skip


def _accepted() -> Iterator[Case]:
    """A drop fires, its level is accepted, and a further drop from there fires again."""
    unjudged = {name: value for name, value in labels("").items() if name not in JUDGE}
    for job, alert, named, means in (
        ("accepted at last", QUALITY, labels(""), (0.92, 0.80, 0.70)),
        ("more harm is accepted", HARM, labels("", METRIC_OF[HARM], ragtrace_k="5"), (0.1, 0.2, 0.3)),
        (
            "no judge at all",
            SELECTION,
            unjudged | {"gen_ai_evaluation_name": METRIC_OF[SELECTION]},
            (0.9, 0.8, 0.7),
        ),
    ):
        whose = named | {"job": job}
        held = "{" + ", ".join(f'{name}="{whose[name]}"' for name in HELD if name in whose) + "}"
        base = f'round(max by ({", ".join(HELD)}) (ragtrace:normal_mean:week{{job="{job}"}}), 0.01)'
        late = T0 + 8 * DAY
        yield Case(
            job,
            scores(whose, *(Scores(hours, 200, x) for hours, x in zip((T0, late - T0, 96), means, strict=True)))
            + baseline(whose, (ACCEPTED, means[0]), (LONG, means[1]), frozen_h=ACCEPTED),
            {
                alert: [
                    (T0, 0), (T0 + 48, 1), (ACCEPTED - 2, 1), (ACCEPTED + 4, 0), (ACCEPTED + 48, 0), (late, 0),
                    (late + 30, 1), (late + 90, 1),
                ],
            },
            also=[
                expecting(base, ACCEPTED - 2, [{"labels": held, "value": means[0]}]),
                expecting(base, ACCEPTED + 2, [{"labels": held, "value": means[1]}]),
            ],
        )  # fmt: skip


def _accepted_better() -> Iterator[Case]:
    """A better level is accepted after a day: the scores from before, still in the window, are no drop from it."""
    for per_day, alert, before, after in (
        (200, QUALITY, 0.85, 0.95),
        (1_000, QUALITY, 0.85, 0.95),
        (200, HARM, 0.25, 0.1),
    ):
        job, late = f"a better level is accepted, {alert}, {per_day} a day", T0 + 8 * DAY
        named = labels(job, METRIC_OF[alert])
        yield Case(
            job,
            scores(named, Scores(T0, per_day, before), Scores(8 * DAY, per_day, after), Scores(72, per_day, before))
            + baseline(named, (T0 + 24, before), (LONG, after), frozen_h=T0 + 24),
            {
                alert: [
                    *((T0 + it, 0) for it in (20, 26, 30, 36, 48, 60, 70, 80, 96, 100)),
                    (late, 0),
                    (late + 30, 1),
                ]
            },
        )
    for job, then in (("a better level is accepted and lost", 0.70), ("back to the level of before", 0.85)):
        late = T0 + 40
        yield Case(
            job,
            scores(labels(job), Scores(T0, 200, 0.85), Scores(40, 200, 0.95), Scores(72, 200, then))
            + baseline(labels(job), (T0 + 24, 0.85), (LONG, 0.95), frozen_h=T0 + 24),
            {QUALITY: [(late, 0), (late + 24, 1), (late + 60, 1)]},
        )


def _frozen() -> Iterator[Case]:
    fallen = Scores(T0, 200), Scores(32 * DAY, 200, 0.80)
    job, end = "frozen: never forgotten", T0 + 32 * DAY - 2
    yield Case(
        job, scores(labels(job), *fallen) + baseline(labels(job), (LONG, 0.92), frozen_h=0),
        {QUALITY: [(T0, 0), (T0 + 96, 1), (end, 1)]},
    )  # fmt: skip
    job = "learnt: forgotten as ever"
    yield Case(
        job, scores(labels(job), *fallen) + baseline(labels(job), (LONG, 0.92)),
        {QUALITY: [(T0, 0), (T0 + 96, 1), (end, 0)]},
    )  # fmt: skip
    # The rolling baseline still holds the better days: without the accepted level it would be an alarm.
    job = "the scorer is away for a day"
    yield Case(
        job,
        scores(labels(job), Scores(T0, 200), Scores(96, 200, 0.85), Scores(36, 0), Scores(48, 200, 0.85))
        + baseline(labels(job), (T0 + 2, 0.85), (94, 0.85), (36, None), (LONG, 0.85), frozen_h=T0),
        {QUALITY: [(ACCEPTED - 2, 0), *((ACCEPTED + it, 0) for it in (2, 10, 20, 34, 38, 60))]},
    )
    # Too few to compare with: the rolling one stands in, where there is one.
    job = "frozen: too few"
    few = scores(labels(job), *fallen) + baseline(labels(job), (LONG, 0.92), n=150, frozen_h=0)
    yield Case(job, few, {QUALITY: [(T0, 0), (T0 + 96, 1)]})
    job = "too few are accepted over enough"
    yield Case(
        job,
        scores(labels(job), *fallen)
        + baseline(labels(job, instance="a"), (LONG, 0.92), frozen_h=0)
        + baseline(labels(job, instance="b"), (LONG, 0.80), n=83, begin_h=T0 + 24, frozen_h=0),
        {QUALITY: [(T0, 0), (T0 + 96, 1)]},
    )


def _processes() -> Iterator[Case]:
    """Several processes of a job tell what they hold scores against: the newest frozen one is meant."""
    job = "two tell the same"
    both = [labels(job, instance=it) for it in "ab"]
    yield Case(
        job,
        scores(labels(job), Scores(T0, 200), Scores(72, 200, 0.8))
        + [it for one in both for it in baseline(one, (LONG, 0.92), frozen_h=0)],
        {QUALITY: [(T0, 0), (T0 + 70, 1)]},
    )
    job = "accepted by one, learnt and frozen by others"
    a, b, c = (labels(job, instance=it) for it in "abc")
    yield Case(
        job,
        scores(labels(job), Scores(T0, 200), Scores(8 * DAY, 200, 0.80))
        + baseline(a, (T0 + 48, 0.92), (LONG, 0.80), frozen_h=0)
        + baseline(b, (LONG, 0.92), frozen_h=0)
        + baseline(c, (LONG, 0.90)),
        {QUALITY: [(T0 + 46, 1), (T0 + 52, 0), (T0 + 7 * DAY, 0)]},
    )
