"""PromQL of means, intervals and effective sizes over the weighted counters.

With w = 1 / inclusion probability: mean = WX / W, effective size n = W^2 / W2, variance of one score
s2 = W2X2 / W2 - 2 mean W2X / W2 + mean^2, for drift floored at .02: a perfect baseline would call one bad answer a
drop. The sums of squares are over clusters, which are sessions or questions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace.semconv import METRICS
from ragtrace_dashboards.config import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace_dashboards.config import Config

SERIES = {it.name: it.prometheus for it in METRICS}
"""Prometheus name of each metric."""

S2_FLOOR = semconv.SCORE_VARIANCE_FLOOR
Z95 = 1.96


def label(attribute: str) -> str:
    """Return the label of a point attribute.

    Example:
        >>> label(semconv.GEN_AI_EVALUATION_NAME)
        'gen_ai_evaluation_name'
    """
    return semconv.prometheus_name(attribute, "")


def legend_of(*labels: str) -> str:
    """Return the legend that shows some labels; one that a series lacks leaves nothing.

    Example:
        >>> legend_of("job", "le")
        '{{job}} {{le}}'
    """
    return " ".join(f"{{{{{it}}}}}" for it in labels)


METRIC = label(semconv.GEN_AI_EVALUATION_NAME)
WORKFLOW = label(semconv.GEN_AI_WORKFLOW_NAME)
CUTOFF = label(semconv.K)
LABEL_SCALE = label(semconv.LABEL_SCALE)
UNIVERSE = label(semconv.UNIVERSE)
JUDGE_MODEL = label(semconv.JUDGE_MODEL)
JUDGE_VERSION = label(semconv.JUDGE_VERSION)
VERDICT = label(semconv.DIAGNOSIS_VERDICT)
REASON = label(semconv.REASON)
SIGN = label(semconv.SIGN)
OUTCOME = label(semconv.OUTCOME)

WHOSE: Final = ("job", WORKFLOW, METRIC)
MEASURED: Final = (*WHOSE, CUTOFF)
HELD: Final = (*MEASURED, LABEL_SCALE, UNIVERSE, JUDGE_VERSION)
"""Labels by which the scorer keeps its baselines."""

IDENTITY: Final = (*HELD, JUDGE_MODEL)
"""Labels of one series. Scores that differ in one are not averaged, so a new judge has its own baseline."""

JOB = 'job=~"$job"'
SERVED = f'{JOB},{WORKFLOW}=~"$workflow"'
CHOSEN = f'{SERVED},{METRIC}=~"$metric"'
CHOSEN_K = f'{CHOSEN},{CUTOFF}=~"$k"'


def of(names: Sequence[str]) -> str:
    """Return the matchers of some metrics of the chosen services and workflows.

    Example:
        >>> of(["mrr", "p_at_k"])
        'job=~"$job",gen_ai_workflow_name=~"$workflow",gen_ai_evaluation_name=~"mrr|p_at_k"'
    """
    return f'{SERVED},{METRIC}=~"{"|".join(names)}"'


def summed(series: str, window: str, by: Sequence[str], where: str = JOB, at: str = "") -> str:
    """Return the increase of a counter over a window, summed by labels; `at` shifts or fixes its time.

    Example:
        >>> summed("x_total", "1d", ["k"])
        'sum by (k) (increase(x_total{job=~"$job"}[1d]))'
    """
    shift = f" {at}" if at else ""
    return f"sum by ({', '.join(by)}) (increase({series}{{{where}}}[{window}]{shift}))"


def on(labels: Sequence[str]) -> str:
    """Return the matching of two sides by labels.

    Example:
        >>> on(["job", "le"])
        'on (job, le)'
    """
    return f"on ({', '.join(labels)})"


def watching(names: Iterable[str]) -> str:
    """Return the matcher of some metrics.

    Example:
        >>> watching(["mrr", "harm_at_k"])
        'gen_ai_evaluation_name=~"mrr|harm_at_k"'
    """
    return f'{METRIC}=~"{"|".join(names)}"'


def gauge_by(how: str, name: str, by: Sequence[str], where: str = JOB) -> str:
    """Return a gauge, by its OpenTelemetry name, whose series are joined by labels.

    Example:
        >>> gauge_by("max", semconv.QUEUE_SIZE, ["job"])
        'max by (job) (ragtrace_queue_size{job=~"$job"})'
    """
    return f"{how} by ({', '.join(by)}) ({SERIES[name]}{{{where}}})"


def variance(mean: str, w2: str, w2x: str, w2x2: str, floor: float = S2_FLOOR) -> str:
    """Return the floored variance of one score from the mean and the sums of squared weights over clusters.

    Example:
        >>> variance("m", "a", "b", "c")
        'clamp_min(c / (a > 0) - 2 * (m) * b / (a > 0) + (m) ^ 2, 0.02)'
    """
    w2 = f"({w2} > 0)"
    return f"clamp_min({w2x2} / {w2} - 2 * ({mean}) * {w2x} / {w2} + ({mean}) ^ 2, {floor})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The weighted scores of one window: expressions of their statistics.

    Attributes:
        window: a duration or a variable.
        by: labels kept, never fewer than the default: series that differ in one are not averaged.
        where: label matchers.
        at: ``offset`` and ``@`` behind the range, empty = none.
    """

    window: str
    by: tuple[str, ...] = IDENTITY
    where: str = CHOSEN
    at: str = ""

    def sum(self, name: str) -> str:
        """Return the sum of one of the counters, by its OpenTelemetry name."""
        return summed(SERIES[name], self.window, self.by, self.where, self.at)

    @property
    def mean(self) -> str:
        """Weighted mean; absent where nothing was scored."""
        return f"{self.sum(semconv.SCORE_WX)} / ({self.sum(semconv.SCORE_W)} > 0)"

    @property
    def n_eff(self) -> str:
        """Effective number of scores; absent where nothing was scored."""
        return f"({self.sum(semconv.SCORE_W)} ^ 2) / ({self.sum(semconv.SCORE_W2)} > 0)"

    @property
    def s2(self) -> str:
        """Variance of one score, floored."""
        w2, w2x, w2x2 = (self.sum(it) for it in (semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2))
        return variance(self.mean, w2, w2x, w2x2)

    @property
    def low_share(self) -> str:
        """Weighted share of scores on the failing side of the threshold."""
        return f"{self.sum(semconv.SCORE_LOW_W)} / ({self.sum(semconv.SCORE_W)} > 0)"


def baseline_of(sample: Sample, config: Config) -> Sample:
    """Return the baseline before a sample of the last day: it ends a day ago."""
    return replace(sample, window=duration(config.baseline_s), at=f"offset {duration(config.day_window_s)}")


def bound(sample: Sample, side: str) -> str:
    """Return an end of the mean's 95 % interval, ``-`` or ``+``; absent where the mean is above 1."""
    w2, w2x, w2x2 = (sample.sum(it) for it in (semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2))
    s2 = variance(sample.mean, w2, w2x, w2x2, floor=0)
    return interval_end(f"({sample.mean} <= 1)", f"({sample.n_eff})", s2, side)


def interval_end(mean: str, size: str, s2: str, side: str) -> str:
    """Return an end of the 95 % interval of a mean in [0, 1], ``-`` or ``+``.

    It is that of `ragtrace.stats.intervals.mean_interval`: Student's t on the effective size with four added
    labels, of which three move the middle.

    Example:
        >>> interval_end("m", "n", "s", "-")[:70]
        'clamp(m + (3 * (0.5 - m) - (1.96 + 2.3724 / clamp_min(n - 2.1, 0.2)) *'
    """
    squares = (
        f"{size} * {s2} / (1 - 1 / clamp_min({size}, 1.5)) ^ 2 + 1 + 4 / (1 + 4 / {size}) * ({mean} - 0.5) ^ 2"
    )
    t = f"(1.96 + 2.3724 / clamp_min({size} - 2.1, 0.2))"
    return f"clamp({mean} + (3 * (0.5 - {mean}) {side} {t} * sqrt({squares})) / ({size} + 4), 0, 1)"


def wilson_bound(share: str, size: str, side: str, z: float = Z95) -> str:
    """Return an end of Wilson's interval of a share, ``-`` or ``+``; both sides have the same labels.

    Example:
        >>> wilson_bound("p", "n", "-", 2.0)
        'clamp((p + 2.0 / n - 2.0 * sqrt(p * (1 - p) / n + 1.0 / n ^ 2)) / (1 + 4.0 / n), 0, 1)'
    """
    square = round(z**2, 4)
    spread = f"{z} * sqrt({share} * (1 - {share}) / {size} + {square / 4} / {size} ^ 2)"
    return f"clamp(({share} + {square / 2} / {size} {side} {spread}) / (1 + {square} / {size}), 0, 1)"
