"""Panels about rule F: z of each window, and the drop with the limit and the errors that it is held against.

An expression is the recorded series where rules are recorded, and else the same over raw counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from ragtrace_dashboards.boards.panels import Panel, Query, by_pattern
from ragtrace_dashboards.boards.raw_window import WindowComparison, raw_limit
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.drift_rule.variances import DROP, R2, S2, T2, THRESHOLD, VARIANCE, Z
from ragtrace_dashboards.expressions import CHOSEN_K, IDENTITY, JOB, METRIC, Sample

if TYPE_CHECKING:
    from ragtrace_dashboards.boards.panels import Place
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm
    from ragtrace_dashboards.yaml_text import JsonObject

_DASHED: JsonObject = {"dash": [8, 6], "fill": "dash"}
_COLORS = ("green", "blue", "purple", "orange")
"""A colour for each window, of its z and of the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftValues:
    """Values of the drift rule for the chosen series in one window, as expressions.

    Attributes:
        config: the configuration of the rules.
        arm: which window.
        by: labels kept; only series of the usual ones are recorded.
        where: label matchers.
    """

    config: Config
    arm: Arm
    by: tuple[str, ...] = IDENTITY
    where: str = CHOSEN_K

    @property
    def z(self) -> str:
        """How many standard errors the drop is."""
        return self._first(self._recorded(Z), self._either_side("z"))

    @property
    def drop(self) -> str:
        """How far the mean lies on the bad side of its baseline."""
        return self._first(self._recorded(DROP), self._either_side("drop"))

    @property
    def sampling(self) -> str:
        """Standard error of the drop by the number of scores."""
        return self._first(f"sqrt({self._recorded(S2)})", f"sqrt({self._raw().s2})")

    @property
    def between_blocks(self) -> str:
        """Standard error of the drop by the spread between hours."""
        return self._first(f"sqrt({self._recorded(R2)})", f"sqrt({self._raw().r2})")

    @property
    def wander(self) -> str:
        """Standard deviation of the service's own wander; without recorded rules the largest that is believed."""
        learnt = f"last_over_time({self._recorded(T2)}[{duration(self.config.fast_window_s)}])"
        return self._first(f"sqrt({learnt})", f"0 * {self._sample().n_eff} + {self.config.wander_cap:g}")

    @property
    def fires_above(self) -> str:
        """The z at which the window fires."""
        return f"{THRESHOLD}:{self.arm.name} or {raw_limit(self.config, self.arm, JOB)}"

    @property
    def limit(self) -> str:
        """The drop at which the window fires."""
        raw, tolerance = self._raw(), f"{self.arm.tolerance:g}"
        recorded = (
            f"clamp_min(scalar({THRESHOLD}:{self.arm.name}) * sqrt({self._recorded(VARIANCE)})"
            f" + 1 / {self._recorded('ragtrace:score_n_eff')}, {tolerance})"
        )
        limit = f"scalar({raw_limit(self.config, self.arm, JOB)})"
        return self._first(recorded, f"clamp_min({limit} * sqrt({raw.variance}) + 1 / ({raw.n_eff}), {tolerance})")

    def _recorded(self, name: str) -> str:
        return f"{name}:{self.arm.name}{{{self.where}}}"

    def _first(self, recorded: str, raw: str) -> str:
        return f"{recorded} or ({raw})" if self.by == IDENTITY else raw

    def _sample(self, where: str = "") -> Sample:
        return Sample(window=duration(self.arm.window_s), by=self.by, where=where or self.where)

    def _raw(self) -> WindowComparison:
        return WindowComparison.of_samples(self._sample(), self.config, self.arm)

    def _either_side(self, what: str) -> str:
        down = "|".join(self.config.lower_is_better)
        parts = []
        for operator, is_down in (("!~", False), ("=~", True)):
            sample = self._sample(f'{self.where},{METRIC}{operator}"{down}"')
            found = WindowComparison.of_samples(sample, self.config, self.arm, is_down=is_down)
            parts.append(found.z() if what == "z" else found.drop)
        return " or ".join(parts)


def z_trend(config: Config, which: str, **place: Unpack[Place]) -> Panel:
    """Return z over time for each window of rule F, and where it fires."""
    queries, colors = [], []
    for arm, color in zip(arms(config), _COLORS, strict=True):
        values, name = DriftValues(config=config, arm=arm), duration(arm.window_s)
        queries += [
            Query(values.z, legend=f"{name} {which}"),
            Query(values.fires_above, legend=f"{name} fires above"),
        ]
        colors.append(by_pattern(f"^{name} ", color={"fixedColor": color, "mode": "fixed"}))
    return Panel(
        title="z: how far below the baseline",
        description="Standard errors between the mean of each window and its baseline. The alert fires above the "
        f"window's line, if the drop also exceeds {config.tolerance:g} ({config.fast_tolerance:g} in "
        f"{duration(config.fast_window_s)}). The lines rise with the number of watched series. A short peak in one "
        "window alone is noise; several that rise are a drop.",
        decimals=1,
        interval=_step(config),
        overrides=[*colors, by_pattern(" fires above$", custom_lineStyle=_DASHED, custom_lineWidth=1)],
        queries=queries,
        **place,
    )


def drop_trends(config: Config, which: str, *, first_number: int, height: int = 8) -> list[Panel]:
    """Return a panel for each window: the drop, the limit that it must pass, and the errors behind the limit."""
    return [
        _drop_trend(config, arm, which, number=first_number + at, width=12, height=height)
        for at, arm in enumerate(arms(config))
    ]


def table_columns(config: Config, *, by: tuple[str, ...], where: str) -> dict[str, tuple[str, str]]:
    """Return the columns of a table about the day's window: heading and expression by the query's name."""
    arm = arms(config)[0]
    values = DriftValues(config=config, arm=arm, by=by, where=where)
    return {
        "drop": ("drop", values.drop),
        "limit": ("fires above", values.limit),
        "z": ("z", values.z),
    }


def _drop_trend(config: Config, arm: Arm, which: str, **place: Unpack[Place]) -> Panel:
    values, window = DriftValues(config=config, arm=arm), duration(arm.window_s)
    block = duration(arm.block_s)
    return Panel(
        title=f"{window}: the drop, and the drop that fires",
        description="The alert fires where the drop is above its limit. The limit comes from three errors: the "
        f"number of scores (sampling), the spread between blocks of {block}, and the wander of the service's own "
        "mean over the last weeks. If the wander is large, the service itself is unsteady: find out why.",
        decimals=3,
        interval=_step(config),
        queries=[
            Query(values.drop, legend=f"drop {which}", name="drop"),
            Query(values.limit, legend=f"fires above {which}", name="limit"),
            Query(values.sampling, legend=f"sampling error {which}", name="sampling"),
            Query(values.between_blocks, legend=f"error between blocks {which}", name="blocks"),
            Query(values.wander, legend=f"wander {which}", name="wander"),
        ],
        overrides=[
            by_pattern("^fires above ", custom_lineStyle=_DASHED, custom_lineWidth=2),
            by_pattern("^(sampling|error|wander)", custom_lineWidth=1),
        ],
        **place,
    )


def _step(config: Config) -> str:
    return "1h" if config.baseline_s >= 86_400 else ""  # without recorded rules, 14 days are read for each point
