"""The one object from which boards, rules and alerts are generated, and the numbers by which alerts find panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PROVISIONED_UID: Final = "ragtrace-prometheus"
"""Data source uid of the Prometheus that the pack adds to a Grafana without one."""

Receiver = Literal["slack", "pagerduty", "email"]
RECEIVERS: Final[tuple[Receiver, ...]] = ("slack", "pagerduty", "email")

LOWER_IS_BETTER: Final = (
    "contradicted_rate",
    "harm_at_k",
    "incorrect_rate",
    "invented_specifics",
    "noise_sensitivity_irrelevant",
    "noise_sensitivity_relevant",
    "noise_sensitivity_unattributed",
    "pair_contradiction",
    "score_cv",
    "score_std",
)
"""Metrics for which lower is better. A test compares them with the registry, which this package cannot import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One metric that alerts watch.

    Attributes:
        name: the exported metric name.
        direction: up = higher is better; None = as the metric declares, up for one that is not ragtrace's.
    """

    name: str
    direction: Literal["up", "down"] | None = None

    @property
    def is_down(self) -> bool:
        """Whether lower is better."""
        return self.direction == "down" or (self.direction is None and self.name in LOWER_IS_BETTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Configuration of all boards, rules, alerts and runbooks.

    Times are in seconds. The defaults are the drift rule whose false alarms were simulated.

    Attributes:
        datasource_uid: uid of the Prometheus that Grafana's alerts ask; boards use their variable instead. Another
            than the default is one that you have, and none is provisioned.
        tempo_uid: uid of the provisioned Tempo.
        fast_window_s: the drift rule's shortest window, for large drops.
        day_window_s: its window of a day.
        week_window_s: its longest one, for few scores and slow drops.
        days_window_s: the longer window of the alert on low scores.
        baseline_s: length of the baseline.
        tolerance: a fall that is not worth an alert, in the windows of a day and a week.
        fast_tolerance: the same in the shortest window.
        z: standard errors at which one watched series fires in the day's window.
        week_z: the same in the week's.
        fast_z: the same in the shortest one.
        fall: the smallest drop in the shortest window that pages.
        family: series that share the false-alarm rate; 0 = the rules count those that are compared.
        block_s: length of the blocks whose spread is the cluster-robust variance of the means of day and week.
        fast_block_s: the same of the shortest window.
        wander_s: how much history the service's own wander is learnt from.
        wander_rest_s: how long ago that history ends, so that a drop is not taken for wander.
        wander_prior: wander of the mean, a standard deviation, before there is history; none is taken for less.
        wander_scores: scores whose sampling error the prior is at most: a metric near 0 or 1 has a smaller one.
        wander_weight_s: the history that the prior is worth.
        wander_cap: the largest wander that is believed, whatever the sampling error.
        fast_wander_cap: the same in the fast window.
        wander_sampling: times the sampling variance up to which a wander above these is believed too: scores that
            come in sessions which nobody declares look like one.
        min_n_eff: effective scores a window of the drift rule needs.
        min_baseline_n_eff: effective scores, or runs, a baseline needs.
        few: effective scores, runs or evaluations that the windows of other alerts need.
        scrape_s: scrape interval; also the evaluation interval of alerts and of the shortest window.
        window_interval_s: seconds between two evaluations of the windows of day and week, and of verdicts.
        culprit_interval_s: the same of the culprit.
        normal_interval_s: the same of what scores are held against.
        baseline_interval_s: the same of the rolling baselines.
        wander_interval_s: the same of the wander.
        metrics: watched by drift alerts.
        baseline_memory_s: how long a resting baseline is kept; after it the new level is normal.
        for_s: seconds that most alerts wait.
        keep_firing_s: seconds that a drift alert goes on after its last true evaluation.
        hour_s: window of the quick arms of operational alerts.
        day_step_s: short window beside `day_window_s` in the low-score alert; beside the longer one it is
            `fast_window_s`.
        good_share: share of scores that should meet their threshold.
        detectable_drop: the drop that shall be found within `week_window_s` in four of five cases.
        lag_limit_s: time from answer to score that is still fine.
        error_share: share of failed evaluations that is still fine.
        empty_share: share of empty retrievals that is still fine.
        missing_rise: rise of the share without a score that is still fine.
        missing_share: share without a score that is still fine, risen or not.
        canary_gap: rise of a poisoned score that is still fine.
        budget_share: share of the day's budget at which it counts as spent.
        prometheus_url: where Grafana finds the provisioned Prometheus.
        tempo_url: where it finds the provisioned Tempo.
        grafana_url: where Grafana stands, for links in alerts and runbooks; empty = no links to boards.
        runbook_url: where you serve the runbooks, without a slash at the end; empty = alerts name the page's file.
        folder: Grafana's folder of boards and alerts.
        folder_uid: its uid.
        receivers: where Alertmanager and Grafana send alerts, at least one.
    """

    datasource_uid: str = PROVISIONED_UID
    tempo_uid: str = "ragtrace-tempo"
    fast_window_s: int = 21_600
    day_window_s: int = 86_400
    week_window_s: int = 604_800
    days_window_s: int = 259_200
    baseline_s: int = 1_209_600
    tolerance: float = 0.02
    fast_tolerance: float = 0.04
    z: float = 3.6
    week_z: float = 2.85
    fast_z: float = 4.0
    fall: float = 0.11
    family: int = 0
    block_s: int = 3_600
    fast_block_s: int = 900
    wander_s: int = 2_419_200
    wander_rest_s: int = 345_600
    wander_prior: float = 0.009
    wander_scores: int = 500
    wander_weight_s: int = 604_800
    wander_cap: float = 0.015
    fast_wander_cap: float = 0.03
    wander_sampling: float = 3.0
    min_n_eff: int = 60
    min_baseline_n_eff: int = 200
    few: int = 30
    scrape_s: int = 60
    window_interval_s: int = 120
    culprit_interval_s: int = 150
    normal_interval_s: int = 180
    baseline_interval_s: int = 900
    wander_interval_s: int = 1_800
    metrics: tuple[Watched, ...] = (
        Watched(name="invented_specifics"),
        Watched(name="faithfulness"),
        Watched(name="answer_relevancy"),
        Watched(name="citation_precision"),
        Watched(name="citation_recall"),
        Watched(name="citation_f1"),
        Watched(name="citation_precision_micro"),
        Watched(name="context_sufficiency"),
        Watched(name="context_precision"),
        Watched(name="selection_efficiency_at_k"),
        Watched(name="harm_at_k"),
        Watched(name="answered"),
    )
    baseline_memory_s: int = 2_592_000
    for_s: int = 300
    keep_firing_s: int = 3_600
    hour_s: int = 3_600
    day_step_s: int = 7_200
    good_share: float = 0.8
    detectable_drop: float = 0.07
    lag_limit_s: int = 900
    error_share: float = 0.05
    empty_share: float = 0.05
    missing_rise: float = 0.05
    missing_share: float = 0.5
    canary_gap: float = 0.1
    budget_share: float = 0.02
    prometheus_url: str = "http://prometheus:9090"
    tempo_url: str = "http://tempo:3200"
    grafana_url: str = ""
    runbook_url: str = ""
    folder: str = "ragtrace"
    folder_uid: str = "ragtrace"
    receivers: tuple[Receiver, ...] = RECEIVERS

    @property
    def down_metrics(self) -> tuple[str, ...]:
        """Watched metrics for which lower is better."""
        return tuple(it.name for it in self.metrics if it.is_down)

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """Every metric for which lower is better, watched or not, since boards show them all."""
        return tuple(sorted({*LOWER_IS_BETTER, *self.down_metrics}))

    @property
    def longest_window_s(self) -> int:
        """Length of the longest window of the drift alerts."""
        return max(self.fast_window_s, self.day_window_s, self.week_window_s)

    @property
    def baseline_ends_s(self) -> dict[str, int]:
        """How long ago each recorded baseline ends, by its name."""
        return {"day": self.day_window_s, "week": self.week_window_s}

    @property
    def baseline_rest_s(self) -> int:
        """How long the last baseline rests after an alert: until none holds a score of the incident."""
        return self.baseline_s + self.longest_window_s

    @classmethod
    def demo(cls) -> Config:
        """Return the profile of the demo: seconds instead of days; it shows the mechanism, no false-alarm rate."""
        return cls(
            day_window_s=10,
            days_window_s=10,
            week_window_s=10,
            fast_window_s=10,
            baseline_s=30,
            z=3.0,
            week_z=3.0,
            fast_z=4.0,
            block_s=2,
            fast_block_s=2,
            wander_s=30,
            wander_rest_s=10,
            wander_sampling=0.0,
            min_n_eff=30,
            min_baseline_n_eff=100,
            scrape_s=1,
            window_interval_s=1,
            culprit_interval_s=1,
            normal_interval_s=1,
            baseline_interval_s=1,
            wander_interval_s=1,
            metrics=(Watched(name="faithfulness"),),  # of 56 questions the other metrics say little
            detectable_drop=0.2,  # 100 scores can show no less
            baseline_memory_s=3_600,
            for_s=2,  # "nothing is scraped" is true until the first scrape
            keep_firing_s=0,
            hour_s=10,
            day_step_s=5,
            lag_limit_s=60,
        )


def duration(seconds: int) -> str:
    """Return whole seconds as PromQL writes them, in the largest unit that divides them.

    Example:
        >>> duration(86_400), duration(21_600), duration(90)
        ('1d', '6h', '90s')
    """
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


DRIFT_ALERTS: Final = (
    "RagtraceQualityFall", "RagtraceQualityDrift", "RagtraceSelectionEfficiencyDrift", "RagtraceHarmDrift",
    "RagtraceAnsweredDrift",
)  # fmt: skip
"""Names of the alerts that fire by the drift rule. The baseline rests while one of them fires."""

OVERVIEW: Final = "ragtrace-overview"
INVESTIGATE: Final = "ragtrace-investigate"
SCORER: Final = "ragtrace-scorer"

PANELS: Final[dict[str, tuple[str, int]]] = {
    "quality": (OVERVIEW, 11),
    "low_share": (OVERVIEW, 24),
    "investigate": (INVESTIGATE, 11),
    "drop": (INVESTIGATE, 21),
    "judge_version": (INVESTIGATE, 31),
    "n_eff": (INVESTIGATE, 14),
    "missing": (INVESTIGATE, 36),
    "verdicts": (INVESTIGATE, 72),
    "selection_efficiency": (INVESTIGATE, 11),
    "harm": (INVESTIGATE, 11),
    "empty_retrieval": (INVESTIGATE, 84),
    "last_score": (SCORER, 11),
    "lag": (SCORER, 22),
    "judge_errors": (SCORER, 41),
    "budget": (SCORER, 51),
    "coverage": (SCORER, 31),
    "canary_gap": (SCORER, 61),
}
"""Board and panel to which an alert links, by topic. A number is never used again."""
