"""PromQL of the runs that should have a score and have none, and of a mean whatever they would have scored.

With q, the missing share of the due weight, and m, the mean of the present scores, the mean of all due runs lies
between (1 - q) m and (1 - q) m + q. Sampling errors of m and q move both ends outwards, as
`ragtrace.stats.shares.mean_whatever_is_missing` computes it. A run that waits for another try is missing, until the
counter of recovered weight takes it back when its score comes. Where nothing was scored, the mean lies between 0
and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.expressions import SERIES, SERVED, WHOSE, Sample, bound, on, summed, wilson_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

_SURE_Z: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """The due runs of one window: expressions of the share without a score.

    Attributes:
        window: a duration or a variable.
        where: label matchers of job, workflow and metric.
        at: ``offset`` and ``@`` behind the range, empty = none.
    """

    window: str
    where: str = SERVED
    at: str = ""

    def sum(self, name: str) -> str:
        """Return the sum of one of the counters, by job, workflow and metric."""
        return summed(SERIES[name], self.window, WHOSE, self.where, self.at)

    @property
    def share(self) -> str:
        """Share of the due weight that has no score; absent where nothing was due.

        It is never below 0: a window may have the score of a run that was counted missing before it.
        """
        lost = still_missing(self.window, WHOSE, self.where, self.at)
        return f"clamp({lost} / ({self.sum(semconv.SCORE_DUE_W)} > 0), 0, 1)"

    @property
    def n_eff(self) -> str:
        """Effective number of due runs."""
        return f"({self.sum(semconv.SCORE_DUE_W)} ^ 2 / ({self.sum(semconv.SCORE_DUE_W2)} > 0))"


def still_missing(window: str, by: Sequence[str], where: str, at: str = "") -> str:
    """Return the weight of the runs that were counted missing and have no score since, summed by labels."""
    missing, recovered = (
        summed(SERIES[name], window, by, where, at) for name in (semconv.SCORE_MISSING_W, semconv.SCORE_RECOVERED_W)
    )
    return f"({missing} - ({recovered} or 0 * {missing}))"


def whatever_is_missing(sample: Sample, missing: Missing, side: str) -> str:
    """Return an end, ``-`` or ``+``, of the interval of a mean over all due runs, within 0 and 1.

    It is 0 or 1 where runs were due and none was scored; `missing` must be of the sample's metrics.
    """
    share, match = missing.share, f"* {on(WHOSE)} group_left ()"
    moved = f"({wilson_bound(share, missing.n_eff, '+')} - {share})"
    present = f"(1 - {share})"
    off = f"(({sample.mean}) - ({bound(sample, side)})) {match} {present}"
    far = f"({sample.mean})" if side == "-" else f"(1 - {sample.mean})"
    error = f"sqrt(({off}) ^ 2 + ({far} {match} {moved}) ^ 2)"
    end = f"({sample.mean}) {match} {present}"
    if side == "+":
        end = f"({end}) + {on(WHOSE)} group_left () {share}"
    unscored = f"0 * {share} unless {on(WHOSE)} ({sample.sum(semconv.SCORE_W)} > 0)"
    worst = unscored if side == "-" else f"1 + {unscored}"
    return f"clamp(({end}) {side} {error}, 0, 1) or ({worst})"


def missing_rule(config: Config, where: str) -> str:
    """Return the alert: today's share without a score has risen against its baseline, or exceeds a level.

    Wilson's lower bound of three standard errors must lie beyond the limit. The value is the share.
    """
    today = Missing(window=duration(config.day_window_s), where=where)
    before = Missing(window=duration(config.baseline_s), where=where, at=f"offset {duration(config.day_window_s)}")
    low = wilson_bound(today.share, f"({today.n_eff} >= {config.few})", "-", _SURE_Z)
    usual = f"({before.share} and {before.n_eff} >= {config.min_baseline_n_eff})"
    return (
        f"{today.share}\nand (\n  {low} > {usual} + {config.missing_rise:g}\n"
        f"  or {low} > {config.missing_share:g}\n)"
    )
