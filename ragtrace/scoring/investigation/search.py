"""The investigation of a fall: its size, its time, the stage and the part of the traffic."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragtrace.model.diagnosis import FAILURES, STAGES
from ragtrace.scoring.investigation.comparison import (
    NoMetric,
    Period,
    TooFewScores,
    compared,
    direction_of,
    known_output,
    there,
    worse_of,
)
from ragtrace.scoring.investigation.replaced import replaced_facts
from ragtrace.scoring.investigation.verdicts import verdict_shares
from ragtrace.stats.change.mean import TwoPeriods, adjusted, change_place, mean_change
from ragtrace.stats.change.slices import FALSE_DISCOVERY_RATE, LEAST_CLUSTERS, Slice, explain
from ragtrace.stats.intervals import UNIT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.errors import ConfigError
    from ragtrace.model import SeriesKey
    from ragtrace.model.diagnosis import Stage, Verdict
    from ragtrace.model.score import Direction
    from ragtrace.scoring.investigation.comparison import MetricChange
    from ragtrace.scoring.investigation.replaced import Replaced
    from ragtrace.scoring.investigation.runs import RunScore, Source
    from ragtrace.scoring.investigation.verdicts import VerdictShare
    from ragtrace.stats.change.mean import Array, Change, Mask, Worse
    from ragtrace.stats.change.slices import Explained

CERTAIN_P = 0.025
"""One-sided p-value at which the change of a metric counts as shown, whichever other metrics are looked at."""
EXAMPLES = 3
LOOKS = 20
"""By so many p-values are multiplied where the scores chose the time of the change."""
_MOST_SLICES = 300
_QUARTERS = (0.25, 0.5, 0.75)
_LENGTHS = {"query_length": "query_chars", "answer_length": "answer_chars"}
_LEAST_KNOWN = 0.9  # of a period's runs that must have a verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictGrowth:
    """The verdict whose share of the runs grew most.

    Attributes:
        verdict: the verdict.
        stage: the stage that it names.
        share: its share in both periods, the same as in `Investigation.shares`.
    """

    verdict: Verdict
    stage: Stage
    share: VerdictShare


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A run of the window with a bad score."""

    trace_id: str
    value: float
    verdict: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlsoWorse:
    """Another metric that changed for the worse, with its means in its own two periods."""

    metric: str
    before: float | None
    window: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """Result of an investigation.

    Attributes:
        key: of the scores; those of other keys were left out.
        direction: up = higher is better.
        period: the two periods.
        is_fallen: whether a change for the worse is shown.
        changed_at: Unix seconds of the first run after the estimated change; None where nothing fell.
        explained: the change and the slices that explain it.
        verdict: the verdict whose share grew most; None where none is shown to have grown.
        has_verdicts: whether the runs have verdicts.
        shares: the share of each verdict in both periods; empty where the runs have none.
        replaced: facts whose value nearly all runs changed; empty where nothing fell.
        has_facts: whether the runs of both periods have the facts of schema version 3, such as tags.
        examples: runs of the window that are worse than the mean of before, those of the first slice and of the
            verdict first.
        also: other metrics that changed for the worse, the surest first; only where the metric was chosen here.
        others: keys whose scores stand for the same traffic, and changed less surely.
        note: says that the window begins at the likeliest change although nobody asked for it; "" otherwise.
    """

    key: SeriesKey
    direction: Direction
    period: Period
    is_fallen: bool
    changed_at: float | None
    explained: Explained
    verdict: VerdictGrowth | None
    has_verdicts: bool
    has_facts: bool
    examples: tuple[Example, ...]
    also: tuple[AlsoWorse, ...] = ()
    others: tuple[SeriesKey, ...] = ()
    shares: tuple[VerdictShare, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    note: str = ""

    @property
    def change(self) -> Change:
        """The change of the mean of all runs."""
        return self.explained.change

    def to_json(self) -> dict[str, object]:
        """Return it as JSON-ready values."""
        fields = asdict(self)
        slices = fields["explained"]["slices"]
        return {
            "metric": fields.pop("key").metric,
            "direction": fields.pop("direction"),
            "maker": self.key.maker(),
            **fields,
            "others": [it.maker() for it in self.others],
            "explained": {
                **fields["explained"],
                "slices": [{**it, "slice": it["slice"]._asdict()} for it in slices],
            },
        }


def investigate(
    source: Source,
    period: Period,
    *,
    metric: str | None = None,
    changed_at: float | None = None,
    is_wanted: Callable[[SeriesKey], bool] = lambda _key: True,
) -> Investigation:
    """Compare two periods of a metric, and say where a fall lies.

    Without a metric it is that of the strongest evidence among those that are watched for a drop. Each is judged
    by itself, as if it had been asked for, so that all pages and commands agree on what changed. Scores of another
    judge version, K or kind of labels are never mixed: those of most weight in the window are compared, and of two
    judges the one whose scores changed most surely.

    Args:
        source: where the scores stand.
        period: what is compared.
        metric: the exported name; None = the one that changed for the worse most surely.
        changed_at: Unix seconds of the change, where it is known; None = estimated.
        is_wanted: says of which judge version, K and labels the scores are compared, where there are such.

    Raises:
        TooFewScores: a period has fewer than 20 independent scores.
        NoMetric: there are no scores to compare.
    """
    if metric is not None:
        look = _Look(compared(source, period, metric, is_wanted=is_wanted), period)
        return _explained(look, changed_at=changed_at)
    looks: list[_Look] = []
    problem: ConfigError = NoMetric("no metric with a threshold and values from 0 to 1 has scores in these periods")
    for name in filter(is_watched, source.metrics()):
        try:
            looks.append(_Look(compared(source, period, name), period))
        except TooFewScores as error:
            problem = problem if getattr(problem, "is_before", False) else error
    if not looks:
        raise problem
    return _surest(sorted(looks, key=lambda it: it.p), changed_at=changed_at)


def investigate_change(source: Source, metrics: Sequence[str], *, before: float, until: float) -> Investigation:
    """Compare the times before and after the likeliest change for the worse.

    Of several metrics the one that changed for the worse most surely is taken, the first where none did. Each is
    judged by itself, at its own likeliest time.

    Args:
        source: where the scores stand.
        metrics: at least one exported name; the first one need not be watched.
        before: Unix seconds of the earliest run.
        until: Unix seconds behind the last one.

    Raises:
        TooFewScores: every metric has too few; the message is of the first.
        NoMetric: the first has no score, and no other can be compared.
    """
    first, *others = metrics
    looks: list[_Look] = []
    problems: list[ConfigError] = []
    for name in [first, *filter(is_watched, others)]:
        try:
            period = period_of(source, name, before=before, until=until)
            looks.append(_Look(compared(source, period, name), period))
        except (TooFewScores, NoMetric) as error:  # it has no say
            problems.append(error)
    if not looks:
        raise problems[0]
    return _surest(looks)


def period_of(source: Source, metric: str, *, before: float, until: float) -> Period:
    """Return the two periods before and after the most likely change of a metric.

    The window begins at the change of `change_place`. Since the scores chose it, p-values are multiplied by 20.

    Raises:
        TooFewScores: there are fewer than 40 scores.
        NoMetric: there is none.
    """
    runs = sorted(source.scores(metric, before, until), key=lambda run: run.at)
    if not runs:
        raise NoMetric(f"{metric}: there is no score in this time; {there(source)}")
    values, weights = (np.array([getattr(run, name) for run in runs]) for name in ("value", "weight"))
    place = window_start(values, weights, worse=worse_of(direction_of(metric)))
    if place is None:
        raise TooFewScores(f"{metric}: {len(runs)} scores are too few; {2 * _least(len(runs))} are needed")
    return Period(before=before, since=runs[place].at, until=until, looks=LOOKS)


def window_start(values: Array, weights: Array, *, worse: Worse) -> int | None:
    """Return the place of the most likely change for the worse, half of the scores without one.

    Args:
        values: scores in the order of their times.
        weights: their weights.
        worse: sign of a change for the worse.

    Returns:
        None with fewer than 40 scores.
    """
    least = _least(len(values))
    if len(values) < 2 * least:
        return None
    return change_place(values, weights, worse=worse, least=least) or len(values) // 2


def _least(n: int) -> int:
    return max(int(LEAST_CLUSTERS), n // 20)


class _Look(NamedTuple):
    """The change of one metric between its two periods."""

    found: MetricChange
    period: Period

    @property
    def p(self) -> float:
        return self.found.p * self.period.looks

    @property
    def is_worse(self) -> bool:
        """Whether a change for the worse is shown."""
        return self.p <= CERTAIN_P


def _surest(looks: Sequence[_Look], *, changed_at: float | None = None) -> Investigation:
    """Explain the surest change for the worse, and name the others; where none is shown, explain the first look."""
    worse = sorted((it for it in looks if it.is_worse), key=lambda it: it.p)
    also = tuple(
        AlsoWorse(metric=it.key.metric, before=it.change.before.mean, window=it.change.window.mean)
        for it, _ in worse[1:]
    )
    return _explained(next(iter([*worse, *looks])), changed_at=changed_at, also=also)


def is_watched(name: str) -> bool:
    """Return whether a change for the worse is looked for: of every metric that can be watched for a drop."""
    known = known_output(name)
    return known is not None and known.can_drift


def _explained(look: _Look, *, changed_at: float | None, also: tuple[AlsoWorse, ...] = ()) -> Investigation:
    found, period, is_fallen = look.found, look.period, look.is_worse
    runs, scores, worse = found.runs, found.scores, found.worse
    has_facts = all(run.query_chars is not None for run in runs)
    left_out = _unknown_before(runs, has_facts=has_facts)
    members = _members(runs, left_out, has_facts=has_facts) if is_fallen else {}
    explained = explain(scores, members, worse=worse, effects=("answer_length",))
    has_verdicts = _has_verdicts(runs, scores)
    shares = verdict_shares(runs, scores) if has_verdicts else ()
    verdict = _grown(runs, scores, shares) if is_fallen else None
    first = members[explained.slices[0].slice] if explained.slices else None
    return Investigation(
        key=found.key,
        direction=found.direction,
        period=period,
        is_fallen=is_fallen,
        changed_at=(changed_at or _change_time(runs, scores, period, worse)) if is_fallen else None,
        explained=explained,
        verdict=verdict,
        has_verdicts=has_verdicts,
        has_facts=has_facts,
        examples=_examples(found, first, verdict.verdict if verdict else None),
        also=also,
        others=found.others,
        shares=shares,
        replaced=replaced_facts(runs, scores, left_out=left_out) if is_fallen else (),
    )


def _change_time(runs: Sequence[RunScore], scores: TwoPeriods, period: Period, worse: Worse) -> float | None:
    """Return the time of the first run after the change, within the window and a time as long before it."""
    earliest = period.since - (period.until - period.since)
    first = next((i for i, run in enumerate(runs) if run.at >= earliest), len(runs))
    place = change_place(scores.values[first:], scores.weights[first:], worse=worse)
    return None if place is None else runs[first + place].at


def _members(runs: Sequence[RunScore], left_out: set[str], *, has_facts: bool) -> dict[Slice, Mask]:
    """Return the runs of each slice, of the slices with the most runs."""
    slices = [[it for it in run.slices if it.dimension not in left_out] for run in runs]
    for dimension, field in _LENGTHS.items() if has_facts else ():
        for named, own in zip(slices, _binned([getattr(run, field) for run in runs]), strict=True):
            named.append(Slice(dimension, own))
    counts = Counter(it for named in slices for it in named)
    members = {
        it: np.zeros(len(runs), dtype=np.bool_) for it, n in counts.most_common(_MOST_SLICES) if n < len(runs)
    }
    for i, named in enumerate(slices):
        for it in named:
            if it in members:
                members[it][i] = True
    return members


def _unknown_before(runs: Sequence[RunScore], *, has_facts: bool) -> set[str]:
    """Return the dimensions that older runs do not have, whose slices would all seem new."""
    if not has_facts:
        return {"tag", "source", "k", "language", "kind"}
    has_kind = [any(it.dimension == "kind" for it in run.slices) for run in runs]
    return set() if all(has_kind) else {"kind"}


def _binned(lengths: Sequence[int]) -> list[str]:
    """Return the quarter of each length, as a range in words."""
    edges = sorted({int(edge) for edge in np.quantile(lengths, _QUARTERS)})
    names = [f"up to {edges[0]}", *(f"{low + 1} to {high}" for low, high in pairwise(edges))]
    names.append(f"over {edges[-1]}")
    return [names[int(place)] for place in np.searchsorted(edges, lengths)]


def _has_verdicts(runs: Sequence[RunScore], scores: TwoPeriods) -> bool:
    known = np.array([run.verdict is not None for run in runs], dtype=np.bool_)
    return all(known[side].mean() >= _LEAST_KNOWN for side in (scores.is_window, ~scores.is_window))


def _grown(runs: Sequence[RunScore], scores: TwoPeriods, shares: Sequence[VerdictShare]) -> VerdictGrowth | None:
    """Return the failure whose share grew most, of those whose growth is shown.

    Growth is shown by the interval of the share, and by a p-value that is adjusted for the number of verdicts.
    """
    failures = {verdict: it for verdict in FAILURES for it in shares if it.verdict == verdict}
    p_values = [_growth_p(runs, scores, verdict) for verdict in failures]
    grown = [
        verdict
        for verdict, q in zip(failures, adjusted(np.array(p_values)), strict=True)
        if q <= FALSE_DISCOVERY_RATE and failures[verdict].low > 0.0
    ]
    if not grown:
        return None
    most = max(grown, key=lambda it: failures[it].difference)
    return VerdictGrowth(verdict=most, stage=STAGES[most], share=failures[most])


def _growth_p(runs: Sequence[RunScore], scores: TwoPeriods, verdict: Verdict) -> float:
    values = np.array([run.verdict == verdict for run in runs], dtype=np.float64)
    return mean_change(replace(scores, values=values, ends=UNIT), worse=1).p


def _examples(found: MetricChange, first: Mask | None, verdict: str | None) -> tuple[Example, ...]:
    """Return runs of the window that moved the mean, one a session or question.

    Those of the first slice and of the verdict stand first, then those with the worst values.
    """
    runs, worse, before = found.runs, found.worse, found.change.before.mean or 0.0
    moved = found.scores.is_window & (worse * (found.scores.values - before) > 0.0)
    ranked = sorted(
        np.flatnonzero(moved).tolist(),
        key=lambda i: (
            first is not None and not first[i],
            verdict is not None and runs[i].verdict != verdict,
            -worse * runs[i].value,
            -runs[i].at,
        ),
    )
    a_cluster = {runs[i].cluster: runs[i] for i in reversed(ranked)}
    chosen = [run for i in ranked if (run := runs[i]) is a_cluster[run.cluster]][:EXAMPLES]
    return tuple(Example(trace_id=run.trace_id, value=run.value, verdict=run.verdict) for run in chosen)
