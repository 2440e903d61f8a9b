"""Values that pages, reports, notebooks and agents show; no HTML and no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ragtrace.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import SeriesKey
    from ragtrace.scoring.investigation.search import AlsoWorse
    from ragtrace.stats.intervals import Interval

Order = Literal["worst", "best", "newest", "oldest"]
DriftState = Literal["steady", "fell", "rose", "too_few", "unwatched"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Means over time in equal bins; a bin without scores has None.

    Attributes:
        starts: Unix seconds at which each bin begins.
        width_s: seconds of a bin.
        means: weighted mean of each bin.
        lows: lower end of its 95 % interval.
        highs: upper end.
        counts: scores in each bin.
    """

    starts: tuple[float, ...]
    width_s: float
    means: tuple[float | None, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Distribution of a metric's values.

    Attributes:
        edges: ends of the bins, one more than `counts`.
        counts: scores in each bin, the last bin with its upper end.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether a metric changed, and since when.

    Attributes:
        state: ``unwatched`` for a metric without a better direction or outside [0, 1], and for a judge version
            that scores no more.
        since: Unix seconds of the most likely change; None without one.
        before: mean before the change.
        after: mean after it.
    """

    state: DriftState
    since: float | None = None
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricView:
    """One metric by one judge over the chosen runs.

    Attributes:
        key: of its scores.
        label: the metric, with what tells it from another series of it.
        summary: what it measures, in one sentence; empty for a metric that is not installed here.
        low: lowest possible value; `high` the highest, None without an end.
        direction: which way is better; None where neither is, or it is not known.
        threshold: of pass and fail; None without one.
        is_own_threshold: whether it is the judge's, and differs from the metric's.
        mean: weighted mean of the random stratum with its 95 % interval.
        n: scores in the mean.
        forced: scores of the forced stratum, which enter no mean.
        missed: share of values that miss the threshold; None without one.
        na: how often it did not apply, by reason.
        errors: how often it failed, by reason.
        units: what counts as one in the interval: runs, sessions or users.
    """

    key: SeriesKey
    label: str
    mean: Interval
    n: int
    summary: str = ""
    low: float | None = 0.0
    high: float | None = 1.0
    direction: Literal["up", "down"] | None = "up"
    threshold: float | None = None
    is_own_threshold: bool = False
    forced: int = 0
    missed: float | None = None
    na: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    units: str = "runs"
    trend: Trend | None = None
    histogram: Histogram | None = None
    drift: Drift = field(default_factory=lambda: Drift(state="unwatched"))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictShare:
    """Share of runs with one verdict of the metric ``diagnosis``.

    Attributes:
        verdict: of `ragtrace.model.diagnosis.VERDICTS`.
        stage: the stage that it names.
        meaning: in words.
        n: runs with it.
        share: weighted, with its 95 % interval.
        trend: share over time.
    """

    verdict: str
    stage: str
    meaning: str
    n: int
    share: Interval
    trend: Trend | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything about the chosen runs on one page.

    Attributes:
        source: name of the store or file.
        runs: number of runs; `first` and `last` the Unix seconds of their ends, None where no run has a time.
        metrics: those people look at first stand first.
        verdicts: the most frequent failure first, then ``ok``; empty without the metric ``diagnosis``.
        workflows: name and number of runs, the most frequent first.
        notes: what a reader must know, for example that rows were broken or that no texts were kept.
        signed: runs of which capture is unsure, see `ragtrace.model.reading.Reading.is_signed`.
    """

    source: str
    runs: int
    first: float | None
    last: float | None
    metrics: tuple[MetricView, ...]
    verdicts: tuple[VerdictShare, ...]
    workflows: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    signed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Choice of runs; every field but `metric` and `order` may be left out.

    Attributes:
        metric: the metric that orders and whose range is chosen; None = the first of the source.
        low: least value, inclusive; `high` the greatest, inclusive.
        verdict: of ``diagnosis``; or ``failed`` for all failures.
        stage: of the verdict: retrieval, rerank, prompt, model.
        workflow: by name, likewise `model`, `tag` and `session`.
        state: of the metric's score: ok, na, error or missed (a value that misses its threshold).
        since: Unix seconds, inclusive; `until` exclusive.
        text: case-insensitive part of the question, the answer or an id.
        labelled: True = people rated the run, False = nobody did.
        sign: name of a sign that capture set; or ``any`` for the runs that count as signed.
        order: worst and best follow the metric's direction.
    """

    metric: str | None = None
    order: Order = "worst"
    low: float | None = None
    high: float | None = None
    verdict: str | None = None
    stage: str | None = None
    workflow: str | None = None
    model: str | None = None
    tag: str | None = None
    session: str | None = None
    state: str | None = None
    since: float | None = None
    until: float | None = None
    text: str | None = None
    labelled: bool | None = None
    sign: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run in a list.

    Attributes:
        id: names the run in this source: a trace id in a store, the row number in a file.
        query: the question; None where no texts were kept.
        claim: the worst claim of the answer, or a specific that no context has; None without one.
        at: Unix seconds of its end, 0 where unknown.
        value: of the filter's metric; None with another state.
        passed: the value against its threshold.
        word: good, bad or unclear, as `ragtrace.model.standing.Standing` has it; None where no score says so.
        rating: people's mean rating from 0 (bad) to 1 (good); None without one.
    """

    id: str
    at: float
    workflow: str
    query: str | None = None
    claim: str | None = None
    value: float | None = None
    passed: bool | None = None
    state: str | None = None
    reason: str | None = None
    verdict: str | None = None
    stage: str | None = None
    word: str | None = None
    model: str | None = None
    session: str | None = None
    rating: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """One page of a list.

    Attributes:
        metric: the metric's key that orders it; `direction` which way is better.
        lines: at most `size`.
        count: runs that the filter chooses.
        page: from 1.
    """

    metric: str | None
    direction: Literal["up", "down"] | None
    lines: tuple[RunLine, ...]
    count: int
    page: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageRow:
    """One passage of the pool, or one text of a tool, which has no rank.

    Attributes:
        rank: place in the retrieved pool, from 1; None where it was not retrieved.
        selected: place after reranking or filtering; None where it was not selected.
        used: place in the prompt; None where it did not reach it.
        score: of the retriever; `rerank_score` of the reranker.
        grade: relevance by labels or judge, 1 to 5; None without one.
        claims: numbers of the claims that it supports.
        cited: whether the answer cites it.
    """

    id: str
    text: str = ""
    rank: int | None = None
    selected: int | None = None
    used: int | None = None
    score: float | None = None
    rerank_score: float | None = None
    grade: int | None = None
    source: str | None = None
    claims: tuple[int, ...] = ()
    cited: bool = False

    @property
    def has_rank(self) -> bool:
        """Whether some stage held it; a text of a tool stands in none."""
        return any(place is not None for place in (self.rank, self.selected, self.used))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """One claim of the answer, as the judge saw it.

    Attributes:
        number: from 1.
        verdict: supported, not_supported, contradicted, invented (a specific that no context has), or another word
            of the judge.
        support: 0 to 1; None where the judge gave none.
        evidence: ids of passages that support or contradict it.
        reason: the judge's words.
        placed: whether its text was found in the answer.
    """

    number: int
    text: str
    verdict: str
    support: float | None = None
    evidence: tuple[str, ...] = ()
    reason: str | None = None
    placed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPiece:
    """A piece of the answer; the pieces together are the answer.

    Attributes:
        claim: number of the claim that it states; None between claims.
    """

    text: str
    claim: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One score of a run."""

    key: SeriesKey
    state: str
    value: float | None = None
    reason: str | None = None
    passed: bool | None = None
    direction: Literal["up", "down"] | None = None
    threshold: float | None = None
    is_own_threshold: bool = False
    weight: float | None = None
    stratum: str | None = None
    llm_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    scored_at: float | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingRow:
    """One person's rating of a run: 0 (bad) to 1 (good)."""

    metric: str
    value: float
    rater: str = ""
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignRow:
    """Something that capture is unsure of.

    Attributes:
        name: of `ragtrace.model.reading.SIGNS`; `sentence` says what it means.
        about: the place or the source that it is about.
        text: the words that it is about; empty where no texts were kept.
        declare: the argument that settles it; empty where none does.
    """

    name: str
    sentence: str
    about: str = ""
    text: str = ""
    declare: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run whole.

    Attributes:
        id: as in `RunLine`.
        has_texts: False where the store kept no content; question, answer and passages are empty then.
        pieces: the answer with its claims marked.
        passages: retrieved ones by rank, others, and behind them texts of tools, which have no rank. The pool's
            stages that were seen are `stages`.
        verdict: of ``diagnosis``, with `stage`, `meaning` and `verdict_facts` (what decided).
        word: good, bad or unclear, as `ragtrace.model.standing.Standing` has it; None where no score says so.
        claim: the worst claim against the answer, as in `RunLine`.
        duration_s: from start to end; None where unknown.
        tokens: of the application's own model calls, as (input, output).
        facts: name and value of what the run is known by: workflow, session, model, tags and so on.
        trace_url: link to the trace where a template was given, else None.
        read: where capture read question, answer and evidence, line by line; empty where that is not known.
        signs: what it is unsure of.
    """

    id: str
    trace_id: str
    at: float
    has_texts: bool
    query: str = ""
    answer: str = ""
    reference: str | None = None
    outcome: str = "answered"
    history: tuple[tuple[str, str], ...] = ()
    pieces: tuple[AnswerPiece, ...] = ()
    claims: tuple[ClaimRow, ...] = ()
    passages: tuple[PassageRow, ...] = ()
    stages: tuple[str, ...] = ()
    scores: tuple[ScoreRow, ...] = ()
    ratings: tuple[RatingRow, ...] = ()
    verdict: str | None = None
    stage: str | None = None
    meaning: str | None = None
    word: str | None = None
    claim: str | None = None
    verdict_facts: tuple[tuple[str, str], ...] = ()
    duration_s: float | None = None
    tokens: tuple[int, int] | None = None
    judge_calls: int = 0
    judge_tokens: tuple[int, int] = (0, 0)
    facts: tuple[tuple[str, str], ...] = ()
    trace_url: str | None = None
    read: tuple[str, ...] = ()
    signs: tuple[SignRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """One metric in two files or periods.

    Attributes:
        verdict: better, worse, no difference shown, too few to tell, or why nothing is compared.
        pairs: runs in both; 0 where the difference is over all runs.
    """

    metric: str
    label: str
    direction: Literal["up", "down"] | None
    before: Interval
    after: Interval
    n: tuple[int, int]
    difference: float | None
    low: float | None
    high: float | None
    pairs: int
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One question in both files: `change` is in the metric's unit, and negative where it became worse."""

    before_id: str
    after_id: str
    query: str | None
    before: float
    after: float
    change: float
    before_verdict: str | None = None
    after_verdict: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """Two files or two periods.

    Attributes:
        names: of the two sides; `counts` their runs.
        metric: the metric that `runs` are ordered by.
        runs: questions that stand in both, the worst regression first; empty where none does.
        pairing: which runs of a question `runs` holds, in words.
        verdicts: verdict, share before and share after.
        refused: why metrics were not compared.
    """

    names: tuple[str, str]
    counts: tuple[int, int]
    metric: str | None
    metrics: tuple[ComparedMetric, ...]
    runs: tuple[ComparedRun, ...]
    pairing: str = "the worst run of each question on either side"
    verdicts: tuple[tuple[str, Interval, Interval], ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A part of the traffic that explains a change, as `ragtrace investigate` names it.

    Attributes:
        dimension: for example ``tag``; `value` for example ``channel:app``.
        share: part of the change that it explains, 0 to 1 and above.
        before: mean of its runs before, `after` after.
        runs_before: its share of all runs before, `runs_after` after.
    """

    dimension: str
    value: str
    share: float | None
    before: float | None
    after: float | None
    sentence: str
    runs_before: float | None = None
    runs_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareChange:
    """Share of a verdict before and after a fall; `change` is the difference with its 95 % interval."""

    verdict: str
    before: float
    after: float
    change: Interval
    n: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationView:
    """Report of a fall: metric, time, stage and parts of the traffic.

    Attributes:
        is_fallen: whether a change for the worse is shown.
        headline: one sentence.
        by: size of the change with its 95 % interval, positive for the worse.
        meaning: of the verdict, in words.
        shares: of each verdict on both sides; empty where the runs have none.
        rest: whether the mean changed outside the culprits.
        also: other metrics that changed for the worse; only where none was asked for.
        lines: the report of `ragtrace investigate`, line by line.
        example_ids: runs that show it.
    """

    is_fallen: bool
    headline: str
    metric: str | None = None
    since: float | None = None
    before: Interval | None = None
    after: Interval | None = None
    by: Interval | None = None
    stage: str | None = None
    verdict: str | None = None
    meaning: str | None = None
    culprits: tuple[Culprit, ...] = ()
    shares: tuple[ShareChange, ...] = ()
    rest: str | None = None
    also: tuple[AlsoWorse, ...] = ()
    lines: tuple[str, ...] = ()
    example_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """A run whose label would narrow the corrected mean most.

    Attributes:
        value: the judge's score.
        gain: expected narrowing of the interval, relative to the best run of the queue, 0 to 1.
        why: in one phrase, for example "the judge is unsure here".
    """

    id: str
    query: str | None
    value: float
    gain: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelQueue:
    """Runs to label next, and how far the labels have come.

    Attributes:
        metric: whose scores are checked.
        labelled: runs with a person's label of it.
        total: runs with a score of it.
        raw: mean by the judge alone.
        corrected: mean corrected by the labels; None with too few.
        agreement: share of labels that agree with the judge; None without any.
        kept_as_bad: labelled runs whose texts the store kept for being bad, by that reason; labels of such runs do
            not stand for all.
        unkept: runs without a label that nobody can read, since their texts were not kept; they are left out.
        deleted: likewise, since their texts were deleted.
    """

    metric: str
    items: tuple[QueueItem, ...]
    labelled: int
    total: int
    raw: Interval
    corrected: Interval | None = None
    agreement: float | None = None
    kept_as_bad: Mapping[str, int] = field(default_factory=dict)
    unkept: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRating:
    """A person's rating of a run, to be kept; a later one of the same rater replaces it.

    Attributes:
        run_id: as in `RunLine`.
        value: 0 (bad) to 1 (good), whatever the metric's direction.
        metric: the rated metric; ``feedback`` is the answer as a whole.
        rater: name of the person; empty when it does not matter.
        comment: in words; a store keeps it only where it keeps texts.
        at: Unix seconds; 0 = now.

    Raises:
        InputError: the value is outside 0 to 1.
    """

    run_id: str
    value: float
    metric: str = "feedback"
    rater: str = ""
    comment: str | None = None
    at: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0:
            raise InputError(f"a rating lies between 0 and 1, got {self.value!r:.20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Names for the form of a filter, each with its number of runs, the most frequent first."""

    metrics: tuple[tuple[str, int], ...] = ()
    workflows: tuple[tuple[str, int], ...] = ()
    models: tuple[tuple[str, int], ...] = ()
    tags: tuple[tuple[str, int], ...] = ()
    verdicts: tuple[tuple[str, int], ...] = ()
    signs: tuple[tuple[str, int], ...] = ()
