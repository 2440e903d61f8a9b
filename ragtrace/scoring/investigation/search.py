"""The investigation of a fall: its size, its time, the stage and the part of the traffic."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragtrace.model.diagnosis import FAILURES, STAGES
from ragtrace.scoring.investigation.comparison import NoMetric, TooFewScores, is_watched, series_of
from ragtrace.scoring.investigation.replaced import replaced_facts
from ragtrace.scoring.investigation.verdicts import verdict_shares
from ragtrace.stats.change.mean import TwoPeriods, adjusted, mean_change
from ragtrace.stats.change.slices import FALSE_DISCOVERY_RATE, Slice, explain
from ragtrace.stats.change.step import CERTAIN_P, PART_P, step_since, surest_step
from ragtrace.stats.intervals import UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.errors import ConfigError
    from ragtrace.model import SeriesKey
    from ragtrace.model.diagnosis import Stage, Verdict
    from ragtrace.model.score import Direction
    from ragtrace.scoring.investigation.comparison import MetricSeries
    from ragtrace.scoring.investigation.replaced import Replaced
    from ragtrace.scoring.investigation.runs import RunScore, Source
    from ragtrace.scoring.investigation.verdicts import VerdictShare
    from ragtrace.stats.change.mean import Change, Mask
    from ragtrace.stats.change.slices import Explained
    from ragtrace.stats.change.step import Step

EXAMPLES = 3
_MOST_SLICES = 300
_QUARTERS = (0.25, 0.5, 0.75)
_QUERY_LENGTH = "query_length"
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
    """Another metric that changed for the worse, with its means before and since its own onset."""

    metric: str
    before: float | None
    window: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """Result of an investigation.

    Attributes:
        key: of the scores; those of other keys were left out.
        direction: up = higher is better.
        is_fallen: whether a change for the worse is shown. By chance alone it is in at most 5 % of the months in
            which somebody looks each day, see docs/how-to/investigate.md.
        before: Unix seconds of the earliest run that was looked for.
        since: Unix seconds of the onset: of the first run after the likeliest change, or the time that a person
            named. All figures compare the runs since then with those before. Where nothing is shown to have
            fallen, it is that of the largest movement, which may be chance.
        ended: Unix seconds since which the mean is as before; nothing is fallen then, and the figures are of the
            time between. None for a change that lasts.
        until: Unix seconds after the last run that was looked for.
        p: one-sided p-value of "it is not worse by more than 0.02 of the scale"; a fall is shown at `certain_p`.
        part: the part of the traffic whose own mean shows the fall; None where that of all runs does, or nothing.
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
    """

    key: SeriesKey
    direction: Direction
    is_fallen: bool
    before: float
    since: float
    ended: float | None
    until: float
    p: float
    part: Slice | None
    explained: Explained
    verdict: VerdictGrowth | None
    has_verdicts: bool
    has_facts: bool
    examples: tuple[Example, ...]
    also: tuple[AlsoWorse, ...] = ()
    others: tuple[SeriesKey, ...] = ()
    shares: tuple[VerdictShare, ...] = ()
    replaced: tuple[Replaced, ...] = ()

    @property
    def certain_p(self) -> float:
        """The p-value at which a fall is shown: smaller for one of a part, of which there are many."""
        return CERTAIN_P if self.part is None else PART_P

    @property
    def changed_at(self) -> float | None:
        """Unix seconds of the onset; None where nothing is shown to have fallen."""
        return self.since if self.is_fallen else None

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
            "changed_at": self.changed_at,
            "certain_p": self.certain_p,
            "part": None if self.part is None else self.part._asdict(),
            "others": [it.maker() for it in self.others],
            "explained": {
                **fields["explained"],
                "slices": [{**it, "slice": it["slice"]._asdict()} for it in slices],
            },
        }


def investigated(
    source: Source, *, metric: str | None = None, before: float, until: float, since: float | None = None
) -> Investigation:
    """Say what fell, since when, at which stage and where.

    Each series of one judge version is looked at by itself, see `ragtrace.stats.change.step.surest_step`: windows
    of 1.5 hours to 7 days that end with its last run, of all runs, and where these show nothing of each larger part
    of the traffic. Everything is then computed since the onset of the surest step.

    Args:
        source: where the scores stand.
        metric: the exported name; None = the one that changed for the worse most surely, and where none is shown
            to have changed the one that moved most.
        before: Unix seconds of the earliest run.
        until: Unix seconds after the last one.
        since: begin of the window that a person named; None = it is looked for.

    Raises:
        TooFewScores: no window has 20 independent scores in it and before it.
        NoMetric: there are no scores to compare.
    """
    chosen: _Look | None = None
    worse: dict[AlsoWorse, float] = {}
    problem: ConfigError = NoMetric("no metric with a threshold and values from 0 to 1 has scores in this time")
    for name in filter(is_watched, source.metrics()) if metric is None else [metric]:
        try:
            look = _look(source, name, before=before, until=until, since=since)
        except (TooFewScores, NoMetric) as error:
            problem = problem if isinstance(problem, TooFewScores) else error
            continue
        if look.step.is_shown:
            means = look.change.before.mean, look.change.window.mean
            worse[AlsoWorse(metric=name, before=means[0], window=means[1])] = look.step.surety
        if chosen is None or look.step.rank > chosen.step.rank:  # of 100,000 runs only one look is kept at a time
            chosen = look
    if chosen is None:
        raise problem
    surest_first = sorted(worse, key=lambda it: -worse[it])
    also = tuple(it for it in surest_first if it.metric != chosen.series.key.metric)
    return _explained(chosen, before=before, until=until, also=also)


@dataclass(frozen=True, eq=False)
class _Look:
    """The surest step of a metric, and the series that it was found in."""

    series: MetricSeries
    parts: _Parts
    step: Step
    others: tuple[SeriesKey, ...]

    @cached_property
    def scores(self) -> TwoPeriods:
        """The scores before the onset and since."""
        return self.series.scores.split(self.step.since)

    @cached_property
    def change(self) -> Change:
        """The change of the mean of all runs since the onset."""
        return mean_change(self.scores, worse=self.series.worse, wander=self.step.wander)


def _look(source: Source, metric: str, *, before: float, until: float, since: float | None) -> _Look:
    """Return the surest step of the series of a metric."""
    found, of_late = [], series_of(source, metric, before=before, until=until)
    for series in of_late:
        parts = _parts(series.runs)
        step = (
            surest_step(series.scores, parts.named, worse=series.worse)
            if since is None
            else step_since(series.scores, since, worse=series.worse)
        )
        if step is not None:
            found.append((series, parts, step))
    if not found:
        raise of_late[0].too_few(is_named=since is not None)
    best = max(found, key=lambda it: it[2].rank)
    series, parts, step = best
    if step.ended is not None:
        series = series.before(step.ended)
        parts = _parts(series.runs)
    return _Look(series, parts, step, others=tuple(it[0].key for it in found if it is not best))


def _explained(look: _Look, *, before: float, until: float, also: tuple[AlsoWorse, ...]) -> Investigation:
    series, scores, is_fallen = look.series, look.scores, look.step.is_shown
    runs, members = series.runs, look.parts.of_all if is_fallen else {}
    explained = explain(scores, members, worse=series.worse, shown=look.step.part, wander=look.step.wander)
    has_verdicts = _has_verdicts(runs, scores)
    shares = verdict_shares(runs, scores) if has_verdicts else ()
    verdict = _grown(runs, scores, shares) if is_fallen else None
    first = members[explained.slices[0].slice] if explained.slices else None
    return Investigation(
        key=series.key,
        direction=series.direction,
        is_fallen=is_fallen,
        before=before,
        since=look.step.since,
        ended=look.step.ended if look.step.is_sure else None,
        until=until,
        p=look.step.p,
        part=look.step.part,
        explained=explained,
        verdict=verdict,
        has_verdicts=has_verdicts,
        has_facts=look.parts.has_facts,
        examples=_examples(look, first, verdict.verdict if verdict else None),
        also=also,
        others=look.others,
        shares=shares,
        replaced=replaced_facts(runs, scores, left_out=look.parts.left_out) if is_fallen else (),
    )


class _Parts(NamedTuple):
    """Parts of the traffic, each with its runs.

    Attributes:
        named: by a fact such as a tag or a model.
        lengths: by quarters of the questions' lengths.
        left_out: facts that older runs do not have, whose parts would all seem new.
        has_facts: whether all runs have the facts of store version 3, such as tags.
    """

    named: dict[Slice, Mask]
    lengths: dict[Slice, Mask]
    left_out: set[str]
    has_facts: bool

    @property
    def of_all(self) -> dict[Slice, Mask]:
        """All parts."""
        return {**self.named, **self.lengths}


def _parts(runs: Sequence[RunScore]) -> _Parts:
    """Return the parts with the most runs."""
    has_facts = all(run.query_chars is not None for run in runs)
    left_out = _unknown_before(runs, has_facts=has_facts)
    places: defaultdict[tuple[Slice, ...], list[int]] = defaultdict(list)
    for i, run in enumerate(runs):
        places[run.slices].append(i)  # thousands of runs have the same facts
    counts: Counter[Slice] = Counter()
    for slices, own in places.items():
        counts.update({it: len(own) for it in slices if it.dimension not in left_out})
    named = {it: np.zeros(len(runs), dtype=np.bool_) for it, n in counts.most_common(_MOST_SLICES) if n < len(runs)}
    for slices, own in places.items():
        for it in slices:
            if it in named:
                named[it][own] = True
    return _Parts(named, _by_length(runs) if has_facts else {}, left_out, has_facts)


def _by_length(runs: Sequence[RunScore]) -> dict[Slice, Mask]:
    """Return the runs of each quarter of the questions' lengths, named by its range."""
    lengths = np.array([run.query_chars for run in runs])
    edges = sorted({int(edge) for edge in np.quantile(lengths, _QUARTERS)})
    names = [f"up to {edges[0]}", *(f"{low + 1} to {high}" for low, high in pairwise(edges)), f"over {edges[-1]}"]
    places = np.searchsorted(edges, lengths)
    masks = {Slice(_QUERY_LENGTH, name): places == i for i, name in enumerate(names)}
    return {it: mask for it, mask in masks.items() if mask.any() and not mask.all()}


def _unknown_before(runs: Sequence[RunScore], *, has_facts: bool) -> set[str]:
    """Return the dimensions that older runs do not have, whose slices would all seem new."""
    if not has_facts:
        return {"tag", "source", "k", "language", "kind"}
    has_kind = [any(it.dimension == "kind" for it in run.slices) for run in runs]
    return set() if all(has_kind) else {"kind"}


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


def _examples(look: _Look, first: Mask | None, verdict: str | None) -> tuple[Example, ...]:
    """Return runs of the window that moved the mean, one a session or question.

    Those of the first slice and of the verdict stand first, then those with the worst values.
    """
    runs, worse, before = look.series.runs, look.series.worse, look.change.before.mean or 0.0
    moved = look.scores.is_window & (worse * (look.scores.values - before) > 0.0)
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
