"""Rule F over raw counters, for boards where no rule is recorded. The wander is `Config.wander_cap`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift_rule.variances import WANDER_FACTOR, block_steps, limit
from ragtrace_dashboards.expressions import (
    HELD,
    Sample,
    baseline_of,
    gauge_by,
)

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowComparison:
    """A window and what it is held against: expressions of the drop, its variances and z.

    Attributes:
        sample: the window.
        n_eff: effective number of its scores, gated or not.
        base_mean: mean of the baseline.
        base_s2: variance of one score of the baseline, floored.
        base_n_eff: effective number of the baseline's scores, gated or not.
        arm: which window of rule F it is.
        wander: standard deviation of the service's own wander.
        is_down: whether lower is better.
    """

    sample: Sample
    n_eff: str
    base_mean: str
    base_s2: str
    base_n_eff: str
    arm: Arm
    wander: float
    is_down: bool = False

    @classmethod
    def of_samples(cls, sample: Sample, config: Config, arm: Arm, *, is_down: bool = False) -> WindowComparison:
        """Return the comparison of a window with the rolling baseline before it, without gates."""
        base = baseline_of(sample, config)
        return cls(
            sample=sample, n_eff=sample.n_eff, base_mean=base.mean, base_s2=base.s2, base_n_eff=base.n_eff,
            arm=arm, wander=config.wander_cap, is_down=is_down,
        )  # fmt: skip

    @property
    def drop(self) -> str:
        """D: how far the window's mean lies on the bad side of the baseline."""
        better, worse = (self.sample.mean, self.base_mean) if self.is_down else (self.base_mean, self.sample.mean)
        return f"({better}) - ({worse})"

    @property
    def s2(self) -> str:
        """Sampling variance of the drop."""
        return f"({self.base_s2}) * (1 / ({self.n_eff}) + 1 / ({self.base_n_eff}))"

    @property
    def r2(self) -> str:
        """Variance of the drop between the blocks of the window."""
        w, wx = (self._block(it) for it in (semconv.SCORE_W, semconv.SCORE_WX))
        steps, mean = block_steps(self.arm.window_s, self.arm.block_s), f"({self.sample.mean})"
        squares = (
            f"sum_over_time(({wx} ^ 2){steps}) - 2 * {mean} * sum_over_time(({w} * {wx}){steps})"
            f" + {mean} ^ 2 * sum_over_time(({w} ^ 2){steps})"
        )
        weight = f"({self.sample.sum(semconv.SCORE_W)} * (sum_over_time(({w}){steps}) > 0))"
        return f"clamp_min({squares}, 0) / {weight} + ({self.base_s2}) / ({self.base_n_eff})"

    @property
    def variance(self) -> str:
        """Variance of the drop: the larger of the two, and the wander."""
        parts = " or ".join(
            f'label_replace({expr}, "part", "{name}", "", "")' for name, expr in (("s2", self.s2), ("r2", self.r2))
        )
        larger = f"max by ({', '.join(self.sample.by)}) ({parts})"
        return f"({larger} + {WANDER_FACTOR * self.wander**2:g})"

    def z(self, beyond: str = "") -> str:
        """Return z, where the drop passes a comparison such as ``> 0.02``."""
        drop = f"(({self.drop}){beyond and ' ' + beyond})"
        return f"({drop} - 1 / ({self.n_eff})) / sqrt({self.variance})"

    def _block(self, name: str) -> str:
        return Sample(window=duration(self.arm.block_s), by=self.sample.by, where=self.sample.where).sum(name)


def raw_limit(config: Config, arm: Arm, where: str = "") -> str:
    """Return the z at which a window fires: the series are those of which a scorer exports a large baseline."""
    if config.family:
        return limit(arm, f"vector({config.family})")
    size = gauge_by("avg", semconv.BASELINE_N, HELD, where)
    return limit(arm, f"count({size} >= {config.min_baseline_n_eff}) or vector(1)")
