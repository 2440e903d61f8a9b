"""State of the anchors for gauges and the log."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace import semconv
from ragtrace.judges.registry import costs
from ragtrace.stats.anchors import LEAST_ANCHORS, STATE_NUMBERS, judge_change
from ragtrace.telemetry.metrics.series import key_attributes
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.util.types import AttributeValue

    from ragtrace.model import SeriesKey
    from ragtrace.settings import Settings
    from ragtrace.stats.anchors import JudgeChange, State
    from ragtrace.stores.anchor_table import AnchorTable
    from ragtrace.stores.anchors import AnchorSeries

_log = logging.getLogger("ragtrace")
DEFAULT_EVERY_S = 86_400.0
_REFRESH_S = 10.0
FRESH_ROUNDS = 1.5  # rounds after which a score of an anchor is stale
GAUGES = {
    semconv.ANCHOR_MEAN: "mean",
    semconv.ANCHOR_LOW: "low",
    semconv.ANCHOR_HIGH: "high",
    semconv.ANCHOR_N: "n",
    semconv.ANCHOR_STATE: "state_number",
}
"""Gauges of the anchors, each with its field of `AnchorState`."""


def anchors_period_s(settings: Settings) -> float | None:
    """Return the seconds between two scores of one anchor; None = anchors are not scored.

    Where nothing is set: a day for a judge that asks a model, none for the offline judge, which cannot change.

    Example:
        >>> from ragtrace.settings import Settings
        >>> anchors_period_s(Settings.resolve({}, environ={})) is None
        True
        >>> anchors_period_s(Settings.resolve({"judge": "openai:m"}, environ={}))
        86400.0
    """
    if settings.anchors.every_s is not None:
        return settings.anchors.every_s or None
    return DEFAULT_EVERY_S if costs(settings.judge.name) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorState:
    """The anchors of one metric and judge version at one moment.

    Attributes:
        key: of the scores, in any workflow.
        change: of the judge; None while the reference is not whole, or where scores are too few or stale.
        state: learning (also where scores are stale), ok, warning or alarm.
        n: anchors with a reference and a fresh score.
        attributes: the point attributes.
    """

    key: SeriesKey
    change: JudgeChange | None
    state: State
    n: int
    attributes: Mapping[str, AttributeValue]

    @property
    def mean(self) -> float | None:
        """Estimated change of the mean."""
        return None if self.change is None else self.change.mean

    @property
    def low(self) -> float | None:
        """Its lower 95 % bound."""
        return None if self.change is None else self.change.low

    @property
    def high(self) -> float | None:
        """Its upper 95 % bound."""
        return None if self.change is None else self.change.high

    @property
    def state_number(self) -> int:
        """The state as its gauge shows it: 0 learning or stale, 1 ok, 2 warning, 3 alarm."""
        return STATE_NUMBERS[self.state]


class AnchorMonitor:
    """Reads what the anchors show, for gauges and the log.

    `refresh` belongs to the scorer's thread; any thread may read `states` and `points`.

    Args:
        table: the anchors, which other processes may score.
        every_s: seconds between two scores of one anchor.
    """

    def __init__(self, table: AnchorTable, *, every_s: float) -> None:
        self._table = table
        self._every_s = every_s
        self._read_at = float("-inf")
        self._states: dict[SeriesKey, AnchorState] = {}  # by their keys without the judge's name

    def refresh(self) -> bool:
        """Read the anchors' scores, at most every 10 s; True when it did.

        Raises:
            sqlite3.Error: the file cannot be read; the last states stay.
        """
        now = time.monotonic()
        if now - self._read_at < min(_REFRESH_S, self._every_s):
            return False
        self._read_at = now
        found = [state_of(it) for it in sorted(self._series(), key=lambda it: it.at)]
        before, self._states = self._states, {replace(it.key, judge=None): it for it in found}
        for state in found:
            _report(before.get(replace(state.key, judge=None)), state)
        return True

    def hurry(self) -> None:
        """Ask for a round at once, since a mean seems to fall; at most once in a round.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        if self._table.hurry(every_s=self._every_s):
            _log.info("anchors: a watched mean seems to fall; the whole set is scored now")

    def states(self) -> list[AnchorState]:
        """Return the anchors of every metric and judge; of its versions the last scored."""
        return list({replace(it.key, version=None): it for it in self._states.values()}.values())

    def points(self, field: str) -> list[tuple[float, Mapping[str, AttributeValue]]]:
        """Return the points of a gauge: a field of every state, where it is known."""
        return [
            (value, state.attributes) for state in self.states() if (value := getattr(state, field)) is not None
        ]

    def _series(self) -> Sequence[AnchorSeries]:
        return self._table.series(fresh_s=FRESH_ROUNDS * self._every_s)


def state_of(found: AnchorSeries) -> AnchorState:
    """Return the state of one series of anchors."""
    change = judge_change(found.pairs)
    is_known = change is not None and change.n >= max(LEAST_ANCHORS, found.n_reference / 2)
    return AnchorState(
        key=found.key,
        change=change if is_known else None,
        state=change.state if change is not None and is_known else "learning",
        n=len(found.pairs),
        attributes=clean_attributes(key_attributes(found.key)),
    )


def _report(before: AnchorState | None, now: AnchorState) -> None:
    was_alarm = before is not None and before.state == "alarm"
    if (now.state == "alarm") == was_alarm:
        return
    if now.change is None or now.state != "alarm":
        _log.warning("judge drift over: %s of %s; the judge scores the anchors as before, or scores them no more",
                     now.key.metric, now.key.judge)  # fmt: skip
        return
    _log.warning(
        "judge drift: %s of %s changed by %+.3f (%.3f to %.3f) on the same %d runs, behind the same version; "
        "`ragtrace anchors show` has the figures",
        now.key.metric,
        now.key.judge,
        now.change.mean,
        now.change.low,
        now.change.high,
        now.change.n,
    )
