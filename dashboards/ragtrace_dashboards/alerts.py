"""Every alert, in one list: condition, text and links. Prometheus and Grafana get the same list.

Conditions read recorded series, so the recording rules must be loaded where the metrics are.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from ragtrace import semconv
from ragtrace_dashboards.config import PANELS, duration
from ragtrace_dashboards.details import (
    WHOSE_MEAN,
    command_of,
    culprit_text,
    effective_scores,
    evidence,
    fallen,
    fallen_command,
    quoted,
)
from ragtrace_dashboards.drift import CHANGED, drift_alert, fall_alert
from ragtrace_dashboards.drift_rule.blind import blind_alert
from ragtrace_dashboards.expressions import (
    JUDGE_MODEL,
    JUDGE_VERSION,
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

_MANY_DRAWN = 10  # fewer sampled traces without a score may all be cancelled runs
_JOB = "{{ with $labels.job }} of {{ . }}{{ end }}"
_FLOW = f"{{{{ with $labels.{WORKFLOW} }}}} of {{{{ . }}}}{{{{ end }}}}"
_METRIC = f"{{{{ $labels.{METRIC} }}}}"
_MODEL = f"{{{{ $labels.{JUDGE_MODEL} }}}}"
_BUDGET = ("job", JUDGE_MODEL, label(semconv.UNIT))


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    Attributes:
        name: CamelCase, also the name of its runbook page.
        severity: critical = look now, warning = look today, info = know it.
        topic: key of `PANELS`.
        summary: one line, which every receiver shows first, before the command; labels stand in it as
            ``{{ $labels.x }}``, the value as `VALUE`.
        description: its meaning, and the first thing to do.
        expr: over raw series or recorded ones. It gives a point only where something is wrong.
        shown: how the value is shown, a function of both template languages.
        labels: labels of the result; they go into the link to the board.
        for_s: seconds it waits.
        keep_firing_s: seconds it goes on after its last true evaluation.
        details: annotations whose templates ask for other series: Prometheus' can, Grafana's cannot.
        command: the command line that says more.
    """

    name: str
    severity: Severity
    _: KW_ONLY
    topic: str
    summary: str
    description: str
    expr: str
    shown: str = 'printf "%.2f"'
    labels: tuple[str, ...] = WHOSE
    for_s: int = 0
    keep_firing_s: int = 0
    details: dict[str, str] = field(default_factory=dict)
    command: str = ""

    @property
    def dashboard(self) -> tuple[str, int]:
        """Board and panel to open."""
        return PANELS[self.topic]


def alerts(config: Config) -> list[Alert]:
    """Return every alert, the weightiest first; none for a drift of metrics that nobody watches.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> [it.name for it in alerts(Config()) if it.severity == "critical"]
        ['RagtraceQualityFall', 'RagtraceScorerSilent']
    """
    fast, day, week = (duration(it) for it in (config.fast_window_s, config.day_window_s, config.week_window_s))
    selection, harm, answered = special = ("selection_efficiency_at_k", "harm_at_k", "answered")
    quality = [it.name for it in config.metrics if it.name not in special]
    return [
        *_drift(
            config, "RagtraceQualityFall", "critical", topic="drop", metrics=quality, is_fall=True,
            means="Answers score far worse than before",
        ),
        *_drift(
            config, "RagtraceQualityDrift", "warning", topic="drop", metrics=quality,
            means="Answers score worse than before",
        ),
        *_drift(
            config, "RagtraceSelectionEfficiencyDrift", "warning", topic="selection_efficiency",
            metrics=[selection], means="Reranking picks worse passages from the pool",
        ),
        *_drift(
            config, "RagtraceHarmDrift", "warning", topic="harm", metrics=[harm],
            means="More weak passages reach the prompt",
        ),
        *_drift(
            config, "RagtraceAnsweredDrift", "warning", topic="drop", metrics=[answered],
            means="More questions are refused. Means over answers may rise meanwhile, as a refusal has no score",
        ),
        Alert(
            "RagtraceScorerSilent", "critical", topic="last_score",
            summary=f"No run{_JOB} was scored within {fast}",
            description=f"Traces were sampled and none was evaluated, or at least {_MANY_DRAWN} were sampled and "
            "none got a score, or Prometheus scraped nothing of ragtrace. Until this is fixed, no other ragtrace "
            "alert can fire. Run the command on the machine of the worker, with its environment: it tries the "
            "judge, the spool and the way to Prometheus, and says what to do about each.",
            expr=_silent(config), shown='printf "%.0f"', labels=("job",),
            for_s=config.lag_limit_s + config.for_s,  # a score that comes so late is still fine
            command="ragtrace doctor",
        ),
        Alert(
            "RagtraceLowScores", "warning", topic="low_share",
            summary=f"{VALUE} of the answers{_FLOW} miss the threshold of {_METRIC}",
            description=f"At least {config.good_share:.0%} should meet it. The share of misses has been too high "
            "for hours or days, whether or not it is new. Handle this as a ticket: read the worst answers, which "
            "the command prints.",
            expr=_low_scores(config), shown="humanizePercentage", for_s=config.for_s,
            details={"evidence": effective_scores(config)},
            command=f"ragtrace worst --metric {quoted(METRIC)}",
        ),
        Alert(
            "RagtraceEmptyRetrievals", "warning", topic="empty_retrieval",
            summary=f"At least {VALUE} of the runs{_FLOW} find no passage",
            description=f"This is the lower bound over {fast}, and the limit is {config.empty_share:.3g}. Ask the "
            "index one question that it must answer. Check the index, the filters and the embedding model.",
            expr=f"{_empty_share(config)} > {config.empty_share:g}", shown="humanizePercentage",
            labels=("job", WORKFLOW), for_s=config.for_s,
        ),
        Alert(
            "RagtraceJudgeErrors", "warning", topic="judge_errors",
            summary=f"{VALUE} of the evaluations of {_METRIC}"
            f"{{{{ with $labels.{JUDGE_MODEL} }}}} by {{{{ . }}}}{{{{ end }}}} fail",  # some metrics have no judge
            description="Failures do not hit all answers alike, so the means are biased while this lasts. The "
            "command asks the judge one question and shows what it says. The board shows the reasons.",
            expr=f"{_failed_share(config.fast_window_s, few=config.few)} > {config.error_share:g}\n"
            f"  or {_failed_share(config.hour_s, few=10)} > 0.5",
            shown="humanizePercentage", labels=("job", METRIC, JUDGE_MODEL), for_s=config.for_s,
            command="ragtrace doctor",
        ),
        Alert(
            "RagtraceScoresMissing", "warning", topic="missing",
            summary=f"{VALUE} of the runs{_FLOW} have no score of {_METRIC}",
            description=f"The share has risen by more than {config.missing_rise:g} against its baseline, or it "
            f"exceeds {config.missing_share:g}. The mean says nothing of these runs, so it may rise while answers "
            "get worse. The board shows the reasons.",
            expr=missing_rule(config, watching(it.name for it in config.metrics)),
            shown="humanizePercentage", for_s=config.for_s,
        ),
        Alert(
            "RagtraceEvaluationLag", "warning", topic="lag",
            summary=f"Scores{_JOB} come {VALUE} late",
            description="One score in ten comes so long after its answer, or the oldest waiting trace is so old. "
            f"The limit is {duration(config.lag_limit_s)}. Alerts on quality are late by as much. The command "
            "says whether the judge is slow, rate-limited, held or out of budget.",
            expr=f"({_lag(config)} > {config.lag_limit_s} and on (job) {_scored(config)} >= 10)\n"
            f"  or max by (job) ({SERIES[semconv.QUEUE_OLDEST]}) > {config.lag_limit_s}",
            shown="humanizeDuration", labels=("job",), for_s=config.for_s,
            command="ragtrace doctor",
        ),
        Alert(
            "RagtraceBudgetSpent", "warning", topic="budget",
            summary=f"Today's budget of the judge {_MODEL} is spent: {VALUE} "
            f"{{{{ $labels.{label(semconv.UNIT)} }}}} are left",
            description=f"That is less than {config.budget_share:g} of what the rest of the day should have. "
            "Until midnight UTC runs get no score: they count as missing, and the bounds of every mean are wide. "
            "Raise the budget or lower the sampling fraction.",
            expr=_budget_spent(config), labels=_BUDGET, for_s=config.for_s,
        ),
        Alert(
            "RagtraceCanaryGap", "warning", topic="canary_gap",
            summary=f"The judge {_MODEL} obeys instructions in the texts it scores: they raise a score by {VALUE}",
            description="Test answers that contain instructions to the judge score so much higher than the same "
            f"answers without them. The limit is {config.canary_gap:g}. A text in a passage or an answer can raise "
            "scores.",
            expr=f"max by (job, {JUDGE_MODEL}) ({SERIES[semconv.CANARY_GAP]}) > {config.canary_gap:g}",
            labels=("job", JUDGE_MODEL), for_s=config.for_s,
        ),
        Alert(
            "RagtraceDriftBlind", "info", topic="n_eff",
            summary=f"Too few scores to see a drop below {VALUE}: {WHOSE_MEAN}",
            description=f"This holds for the scores of {week}. Drift alerts should find a drop of "
            f"{config.detectable_drop:g}. The value 1 means that nothing is compared, since there are too few "
            "scores now or in the baseline. Raise the sampling fraction or the judge's budget, freeze a larger "
            "baseline, or accept the gap.",
            expr=blind_alert(config), for_s=config.hour_s,
        ),
        Alert(
            "RagtraceJudgeChanged", "info", topic="judge_version",
            summary=f"A new judge or prompt scores {WHOSE_MEAN}",
            description=f"{_MODEL} version {{{{ $labels.{JUDGE_VERSION} }}}} began to score today. The scores may "
            f"differ although the answers do not. Drift alerts are silent for {day}, and the new scores get a "
            "baseline of their own. Check that the change was intended.",
            expr=CHANGED, shown='printf "%.0f"', labels=(*WHOSE, JUDGE_MODEL, JUDGE_VERSION),
        ),
    ]  # fmt: skip


def _drift(
    config: Config,
    name: str,
    severity: Severity,
    *,
    topic: str,
    metrics: Sequence[str],
    means: str,
    is_fall: bool = False,
) -> list[Alert]:
    """Return the drift alert of some metrics; none where none of them is watched."""
    names = [it.name for it in config.metrics if it.name in metrics]
    window = duration(config.fast_window_s)
    beyond = f"the tolerance of {config.tolerance:g} ({config.fast_tolerance:g} within {window})"
    if is_fall:
        beyond = f"{config.fall:g} within {window}"
    plain = f"{WHOSE_MEAN} is worse than its baseline by {VALUE}"
    alert = Alert(
        name, severity, topic=topic, summary=plain,
        description=f"{means}. The drop exceeds noise, and {beyond}. Where the scorer has a store, the command "
        "names the part of the traffic and shows examples. Without one, the board does. Roll back or mend what "
        "changed when it began.",
        expr=fall_alert(config, names) if is_fall else drift_alert(config, names), shown='printf "%.3f"',
        for_s=config.for_s, keep_firing_s=config.keep_firing_s,
        details={
            "summary": fallen(config, plain),
            "command": fallen_command(config),
            "evidence": evidence(config),
            "culprit": culprit_text(),
        },
        command=command_of(window if is_fall else duration(config.day_window_s)),
    )  # fmt: skip
    return [alert] if names else []


def _silent(config: Config) -> str:
    """Return the jobs whose drawn traces get no evaluation or no score, and whether nothing is scraped at all."""
    none_scored = _drawn_without(config, "ok", _MANY_DRAWN)
    none_evaluated = _drawn_without(config, "ok|na|error", 1)
    # Every process exports it from its start on; counters are there after their first trace.
    scraped = f"last_over_time({SERIES[semconv.QUEUE_CAPACITY]}[{duration(config.fast_window_s)}])"
    return f"{none_evaluated}\nor {none_scored}\nor absent({scraped})"


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


def _low_scores(config: Config) -> str:
    """Return the share of low scores of a day or of days, where it is too high in a shorter window as well."""
    allowed = 1.0 - config.good_share

    def arm(long_s: int, short_s: int, factor: float) -> str:
        where = watching(it.name for it in config.metrics)
        long, short = (Sample(window=duration(it), where=where) for it in (long_s, short_s))
        most = f"{factor * allowed:g}"
        return (
            f"({long.low_share} > {most}\n    and {short.low_share} > {most}\n    and {long.n_eff} >= {config.few})"
        )

    # 14.4 and 6 cannot fire where a fifth may be low: 14.4 x 20 % is more than all.
    quick = arm(config.day_window_s, config.day_step_s, 3.0)
    slow = arm(config.days_window_s, config.fast_window_s, 1.0)
    return f"{quick}\n  or {slow}"


def _empty_share(config: Config) -> str:
    """Return the lower bound of the share of runs whose search found nothing, where 30 or more ran."""
    by, window = ("job", WORKFLOW), duration(config.fast_window_s)
    empty = summed(SERIES[semconv.RETRIEVAL_EMPTY], window, by, "")
    runs = summed(f"{SERIES[semconv.INVOKE_WORKFLOW_DURATION]}_count", window, by, "")
    return wilson_bound(f"clamp_max({empty} / ({runs} > 0), 1)", f"({runs} >= 30)", "-", 3.0)


def _failed_share(window_s: int, *, few: int) -> str:
    """Return the share of evaluations that failed, where so many were tried."""
    name, window, by = SERIES[semconv.EVALUATIONS], duration(window_s), ("job", METRIC, JUDGE_MODEL)
    failed = summed(name, window, by, f'{label(semconv.OUTCOME)}="error"')
    tried = summed(name, window, by, f'{label(semconv.OUTCOME)}=~"ok|error"')
    return f"{failed} / ({tried} >= {few})"


def _lag(config: Config) -> str:
    buckets = f"rate({SERIES[semconv.EVALUATION_LAG]}_bucket[{duration(config.hour_s)}])"
    return f"histogram_quantile(0.9, sum by (job, le) ({buckets}))"


def _scored(config: Config) -> str:
    return summed(f"{SERIES[semconv.EVALUATION_LAG]}_count", duration(config.hour_s), ("job",), "")


def _budget_spent(config: Config) -> str:
    """Return what is left, where it falls faster than the day, so that it does not last until midnight."""
    left, kept = SERIES[semconv.BUDGET_REMAINING], ", ".join(_BUDGET)
    full = f"max by ({kept}) (max_over_time({left}[{duration(config.day_window_s)}]))"
    return f"min by ({kept}) ({left}) <= {config.budget_share:g} * {full} * (1 - time() % 86400 / 86400)"
