"""Every alert: condition, text, and links. Prometheus and Grafana get the same list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from ragtrace import semconv
from ragtrace_dashboards.config import PANELS, duration
from ragtrace_dashboards.details import change_text, effective_scores, grown_verdict, quoted
from ragtrace_dashboards.drift import CHANGED, judge_change, recorded_drift
from ragtrace_dashboards.drift_rule.blind import raw_blind, recorded_blind
from ragtrace_dashboards.drift_rule.culprit import culprit_text
from ragtrace_dashboards.drift_rule.raw import frozen_drift
from ragtrace_dashboards.expressions import (
    JUDGE_MODEL,
    METRIC,
    SERIES,
    WHOSE,
    WORKFLOW,
    Sample,
    label,
    summed,
    watching,
    wilson_bound,
)
from ragtrace_dashboards.missing import missing_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

Severity = Literal["critical", "warning", "info"]
VALUE: Final = "[[value]]"
"""Stands for the value of the expression in annotations: Prometheus and Grafana write it differently."""

ANCHOR: Final = "meaning"
_WILSON_Z = 3.0
_FEW_RUNS = 30
_FEW_EVALUATIONS = 10
_FEW_SCORED = 10
_MANY_DRAWN = 10  # fewer sampled traces without a score may all be cancelled runs
_QUICK_ERROR_SHARE = 0.5
_TICKET_FACTOR = 3.0  # 14.4 and 6 cannot fire where a fifth may be low: 14.4 x 20 % is more than all


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert.

    Attributes:
        name: CamelCase, also the name of its runbook page.
        topic: key of `PANELS`.
        severity: critical = look now, warning = look today, info = know it.
        summary: one line; labels stand in it as ``{{ $labels.x }}``, the value as `VALUE`.
        description: its meaning, and the first thing to do.
        expr: over raw series or recorded ones, for Prometheus.
        raw: the form without recording rules, for Grafana; empty = `expr`.
        printf: format of the value.
        labels: labels of the result; they go into the link to the board.
        for_s: seconds it waits.
        keep_firing_s: seconds it goes on after its last true evaluation.
        details: further annotations of the Prometheus form, whose templates can ask for other series.
        hint: lines added to the description in the Grafana form, whose templates cannot.
        command: the command line that says more.
    """

    name: str
    topic: str
    severity: Severity
    summary: str
    description: str
    expr: str
    raw: str = ""
    printf: str = "%.2f"
    labels: tuple[str, ...] = WHOSE
    for_s: int = 0
    keep_firing_s: int = 0
    details: dict[str, str] = field(default_factory=dict)
    hint: str = ""
    command: str = ""

    @property
    def dashboard(self) -> tuple[str, int]:
        """Board and panel to open."""
        return PANELS[self.topic]

    def runbook(self, config: Config) -> str:
        """Return the address of its page."""
        return f"{config.runbook_url}/{self.name}.md#{ANCHOR}"


def alerts(config: Config) -> list[Alert]:
    """Return every alert, the weightiest first.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> [it.name for it in alerts(Config()) if it.severity == "critical"]
        ['RagtraceQualityDrift', 'RagtraceScorerSilent']
    """
    return [
        *_drifts(config),
        _scorer_silent(config),
        _low_scores(config),
        _empty_retrievals(config),
        _judge_errors(config),
        _scores_missing(config),
        _evaluation_lag(config),
        _budget_spent(config),
        _canary_gap(config),
        _drift_blind(config),
        _judge_changed(config),
    ]


_OF = f"{{{{ $labels.{METRIC} }}}} of {{{{ $labels.{WORKFLOW} }}}}"


def _drifts(config: Config) -> list[Alert]:
    special = ("selection_efficiency_at_k", "harm_at_k", "answered")
    names = [it.name for it in config.metrics]
    kinds: list[tuple[str, str, Severity, Sequence[str], str]] = [
        ("RagtraceQualityDrift", "z", "critical", [it for it in names if it not in special],
         "Answers score worse than before"),
        ("RagtraceSelectionEfficiencyDrift", "selection_efficiency", "warning",
         [it for it in names if it == special[0]], "Reranking picks worse passages from the pool"),
        ("RagtraceHarmDrift", "harm", "warning", [it for it in names if it == special[1]],
         "More weak passages reach the prompt"),
        ("RagtraceAnsweredDrift", "z", "warning", [it for it in names if it == special[2]],
         "More questions are refused. Means over answers may rise meanwhile, as a refusal has no score"),
    ]  # fmt: skip
    return [
        _drift(config, name=name, topic=topic, severity=severity, names=chosen, means=means)
        for name, topic, severity, chosen, means in kinds
        if chosen
    ]


def _drift(config: Config, *, name: str, topic: str, severity: Severity, names: Sequence[str], means: str) -> Alert:
    return Alert(
        name=name,
        topic=topic,
        severity=severity,
        summary=f"{_OF} is worse than its baseline",
        description=f"{means}. The mean lies {VALUE} standard errors on the bad side of its baseline, and further "
        f"than the tolerance of {config.tolerance:g} ({config.fast_tolerance:g} within "
        f"{duration(config.fast_window_s)}). Open the board, find the hour in which it began, and compare that "
        "hour with your releases.",
        expr=recorded_drift(config, names),
        raw=frozen_drift(config, names),
        printf="%.1f",
        for_s=config.for_s,
        keep_firing_s=config.keep_firing_s,
        details={"change": change_text(config), "stage": grown_verdict(config), "culprit": culprit_text()},
        hint=' The table "Where answers fail: before and now" on the board has the verdict whose share grew most.',
        command=f"ragtrace investigate --since {duration(config.day_window_s)} --metric {quoted(METRIC)} "
        f"--workflow {quoted(WORKFLOW)}",
    )


def _low_scores(config: Config) -> Alert:
    where = watching(it.name for it in config.metrics)
    allowed = 1.0 - config.good_share

    def sample(window_s: int) -> Sample:
        return Sample(window=duration(window_s), where=where)

    def arm(long_s: int, short_s: int, factor: float) -> str:
        most = f"{factor * allowed:g}"
        return (
            f"({sample(long_s).low_share} > {most}\n    and {sample(short_s).low_share} > {most}\n"
            f"    and {sample(long_s).n_eff} >= {config.min_n_eff})"
        )

    quick = arm(config.day_window_s, config.day_step_s, _TICKET_FACTOR)
    slow = arm(config.days_window_s, config.fast_window_s, 1.0)
    return Alert(
        name="RagtraceLowScores",
        topic="low_share",
        severity="warning",
        summary=f"Too many low scores: {_OF}",
        description=f"A share of {VALUE} of the answers misses the metric's threshold. At least "
        f"{config.good_share:.0%} should meet it. The share of misses has been too high for hours or days, whether "
        "or not it is new. Handle this as a ticket: read the traces with the worst scores.",
        expr=f"{quick}\n  or {slow}",
        for_s=config.for_s,
        details={"change": effective_scores(config)},
        command=f"ragtrace worst --metric {quoted(METRIC)}",
    )


def _scorer_silent(config: Config) -> Alert:
    window = duration(config.fast_window_s)
    none_scored = _drawn_without(config, "ok", _MANY_DRAWN)
    none_evaluated = _drawn_without(config, "ok|na|error", 1)
    return Alert(
        name="RagtraceScorerSilent",
        topic="last_score",
        severity="critical",
        summary="No scores for {{ $labels.job }}",
        description=f"Within {window}, traces were sampled and none was evaluated, or at least {_MANY_DRAWN} were "
        "sampled and none got a score, or Prometheus scraped nothing of ragtrace. Until this is fixed, no other "
        "ragtrace alert can fire. Check that the worker runs, that it reaches the judge, and that Prometheus "
        "reaches the worker.",
        expr=f"{none_evaluated}\nor {none_scored}\n"
        # Every process exports it from its start on; counters are there after their first trace.
        f"or absent(last_over_time({SERIES[semconv.QUEUE_CAPACITY]}[{window}]))",
        printf="%.0f",
        labels=("job",),
        for_s=config.lag_limit_s + config.for_s,  # a score that comes so late is still fine
        command="ragtrace doctor",
    )


def _drawn_without(config: Config, outcomes: str, few: int) -> str:
    """Return the jobs with so many drawn traces and no evaluation of these outcomes."""
    window, by = duration(config.fast_window_s), ("job",)
    results = SERIES[semconv.EVALUATIONS]
    where = f'{label(semconv.OUTCOME)}=~"{outcomes}"'
    drawn = summed(SERIES[semconv.TRACES], window, by, f'{label(semconv.DECISION)}="sampled"')
    # A counter that a first evaluation begins has no increase: it was not there a window ago.
    begun = f"last_over_time({results}{{{where}}}[{window}]) > 0 unless {results}{{{where}}} offset {window}"
    done = f"({summed(results, window, by, where)} > 0 or count by (job) ({begun}))"
    once = f"max by (job) (max_over_time({results}[{duration(config.day_window_s)}])) > 0"
    # A job that only captures is well when any worker scores.
    elsewhere = f"({drawn} unless on (job) ({once})) and on () sum({done})"
    return f"(({drawn} >= {few})\n  unless on (job) {done}\n  unless on (job) ({elsewhere}))"


def _drift_blind(config: Config) -> Alert:
    window = duration(config.week_window_s)
    return Alert(
        name="RagtraceDriftBlind",
        topic="n_eff",
        severity="info",
        summary=f"Too few scores to see a drop: {_OF}",
        description=f"With the scores of {window}, drift alerts may miss a drop smaller than {VALUE}. They should "
        f"find a drop of {config.detectable_drop:g} ({config.raw_detectable_drop:g} in the Grafana form). The "
        "value 1 means that nothing is compared, since there are too few scores now or in the baseline. Raise the "
        "sampling fraction or the judge's budget, freeze a larger baseline, or accept the gap.",
        expr=recorded_blind(config),
        raw=raw_blind(config),
        for_s=config.hour_s,
    )


def _judge_errors(config: Config) -> Alert:
    name, outcome, by = SERIES[semconv.EVALUATIONS], label(semconv.OUTCOME), ("job", METRIC, JUDGE_MODEL)

    def arm(window_s: int, most: float, few: int) -> str:
        window = duration(window_s)
        failed = summed(name, window, by, f'{outcome}="error"')
        tried = summed(name, window, by, f'{outcome}=~"ok|error"')
        return f"{failed} / ({tried} >= {few}) > {most:g}"

    slow = arm(config.fast_window_s, config.error_share, config.min_n_eff)
    quick = arm(config.hour_s, _QUICK_ERROR_SHARE, _FEW_EVALUATIONS)
    judge = f"{{{{ with $labels.{JUDGE_MODEL} }}}} by {{{{ . }}}}{{{{ end }}}}"  # some metrics have none
    return Alert(
        name="RagtraceJudgeErrors",
        topic="judge_errors",
        severity="warning",
        summary=f"Evaluations of {{{{ $labels.{METRIC} }}}}{judge} fail",
        description=f"A share of {VALUE} of these evaluations fails. Failures do not hit all answers alike, so the "
        "means are biased while this lasts. The board shows the reasons.",
        expr=f"{slow}\n  or {quick}",
        labels=by,
        for_s=config.for_s,
        command="ragtrace doctor",
    )


def _scores_missing(config: Config) -> Alert:
    return Alert(
        name="RagtraceScoresMissing",
        topic="missing",
        severity="warning",
        summary=f"More runs have no score: {_OF}",
        description=f"A share of {VALUE} of the runs that should have a score has none. It has risen by more than "
        f"{config.missing_rise:g} against its baseline, or it exceeds {config.missing_share:g}. The mean says "
        "nothing of these runs, so it may rise while answers get worse. The board shows the reasons.",
        expr=missing_rule(config, watching(it.name for it in config.metrics)),
        for_s=config.for_s,
    )


def _evaluation_lag(config: Config) -> Alert:
    name, window = SERIES[semconv.EVALUATION_LAG], duration(config.hour_s)
    late = f"histogram_quantile(0.9, sum by (job, le) (rate({name}_bucket[{window}])))"
    scored = summed(f"{name}_count", window, ("job",), "")
    return Alert(
        name="RagtraceEvaluationLag",
        topic="lag",
        severity="warning",
        summary="Scores of {{ $labels.job }} come late",
        description=f"One score in ten comes {VALUE} s or more after its answer, or the oldest waiting trace is "
        f"that old. The limit is {config.lag_limit_s} s. Alerts on quality are late by as much. Check whether the "
        "judge is slow, rate-limited or out of budget.",
        expr=f"({late} > {config.lag_limit_s} and on (job) {scored} >= {_FEW_SCORED})\n"
        f"  or max by (job) ({SERIES[semconv.QUEUE_OLDEST]}) > {config.lag_limit_s}",
        printf="%.0f",
        labels=("job",),
        for_s=config.for_s,
        command="ragtrace doctor",
    )


def _budget_spent(config: Config) -> Alert:
    by = ("job", label(semconv.JUDGE_MODEL), label(semconv.UNIT))
    left, kept = SERIES[semconv.BUDGET_REMAINING], ", ".join(by)
    full = f"max by ({kept}) (max_over_time({left}[{duration(config.day_window_s)}]))"
    return Alert(
        name="RagtraceBudgetSpent",
        topic="budget",
        severity="warning",
        summary=f"Today's budget of the judge {{{{ $labels.{by[1]} }}}} is spent",
        description=f"{VALUE} {{{{ $labels.{by[2]} }}}} are left, less than {config.budget_share:g} of what the "
        "rest of the day should have. Until midnight UTC runs get no score: they count as missing, and the bounds "
        "of every mean are wide. Raise the budget or lower the sampling fraction.",
        # A budget lasts until midnight when it falls no faster than its day.
        expr=f"min by ({kept}) ({left}) <= {config.budget_share:g} * {full} * (1 - time() % 86400 / 86400)",
        labels=by,
        for_s=config.for_s,
    )


def _judge_changed(config: Config) -> Alert:
    by = (*WHOSE, label(semconv.JUDGE_MODEL), label(semconv.JUDGE_VERSION))
    return Alert(
        name="RagtraceJudgeChanged",
        topic="judge_version",
        severity="info",
        summary=f"A new judge or prompt scores {_OF}",
        description=f"{{{{ $labels.{by[3]} }}}} version {{{{ $labels.{by[4]} }}}} began to score today. The scores "
        f"may differ although the answers do not. Drift alerts are silent for {duration(config.day_window_s)}, and "
        "the new scores get a baseline of their own. Check that the change was intended.",
        expr=CHANGED,
        raw=judge_change(config, config.day_window_s),
        printf="%.0f",
        labels=by,
    )


def _canary_gap(config: Config) -> Alert:
    by = ("job", label(semconv.JUDGE_MODEL))
    return Alert(
        name="RagtraceCanaryGap",
        topic="canary_gap",
        severity="warning",
        summary=f"The judge {{{{ $labels.{by[1]} }}}} obeys instructions in the texts it scores",
        description=f"Test answers that contain instructions to the judge score {VALUE} higher than the same "
        f"answers without them. The limit is {config.canary_gap:g}. A text in a passage or an answer can raise "
        "scores.",
        expr=f"max by ({', '.join(by)}) ({SERIES[semconv.CANARY_GAP]}) > {config.canary_gap:g}",
        labels=by,
        for_s=config.for_s,
    )


def _empty_retrievals(config: Config) -> Alert:
    by, window = ("job", WORKFLOW), duration(config.fast_window_s)
    empty = summed(SERIES[semconv.RETRIEVAL_EMPTY], window, by, "")
    runs = summed(f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count", window, by, "")
    share = f"clamp_max({empty} / ({runs} > 0), 1)"
    low = wilson_bound(share, f"({runs} >= {_FEW_RUNS})", "-", _WILSON_Z)
    return Alert(
        name="RagtraceEmptyRetrievals",
        topic="empty_retrieval",
        severity="warning",
        summary=f"Searches of {{{{ $labels.{WORKFLOW} }}}} find nothing",
        description=f"At least a share of {VALUE} of the runs searched and found no passage (lower bound over "
        f"{window}). The limit is {config.empty_share:g}. Check the index, the filters and the embedding model.",
        expr=f"{low} > {config.empty_share:g}",
        labels=by,
        for_s=config.for_s,
    )
