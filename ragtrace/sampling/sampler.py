"""Decide for each trace which metrics are computed, and note each probability."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.sampling.draw import Draw, uniform
from ragtrace.sampling.pressure import FLOOR
from ragtrace.sampling.strata import forced_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.model import RagRecord
    from ragtrace.sampling.pressure import Pressure

FORCED_SHARE = 0.3  # of all units
_FORCED_BURST = 10.0  # forced units before the share binds: the first error of the day is scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rate for some traces; of several rules the first that fits counts. Fields left out fit everything.

    Attributes:
        rate: probability in [0, 1].
        workflow: name, with ``*`` and ``?``.
        tag: one of the trace's tags.
        model: name of the model, with ``*`` and ``?``.
        outcome: how the run ended.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> Rule(rate=1.0, workflow="support-*").fits(RagRecord(id="1", workflow="support-de"))
        True
    """

    rate: float
    workflow: str | None = None
    tag: str | None = None
    model: str | None = None
    outcome: str | None = None

    def fits(self, record: RagRecord) -> bool:
        """Return whether the rule is for this trace."""
        return (
            (self.workflow is None or fnmatchcase(record.workflow, self.workflow))
            and (self.tag is None or self.tag in record.tags)
            and (self.model is None or fnmatchcase(record.model or "", self.model))
            and (self.outcome is None or record.outcome == self.outcome)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Sampling rates from the settings.

    Attributes:
        rate: share of traces to score where nothing else is said.
        metrics: rates of metrics of their own; a metric is scored in a share of all traces, also above `rate`.
        rules: rates of some traces; they replace `rate`, and scale the metrics' own rates alike.
    """

    rate: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    rules: Sequence[Rule] = ()

    def of(self, record: RagRecord) -> tuple[float, float]:
        """Return the trace's rate, and the factor by which metrics' own rates change."""
        for rule in self.rules:
            if rule.fits(record):
                return rule.rate, rule.rate / self.rate if self.rate > 0.0 else 1.0
        return self.rate, 1.0

    def most(self, metrics: Sequence[str]) -> float:
        """Return the highest rate at which any trace can be drawn for one of some metrics.

        Example:
            >>> Rates(rate=0.05, rules=(Rule(rate=0.2, tag="vip"),)).most(("mrr",))
            0.2
        """
        scales = [(self.rate, 1.0)]
        scales += [(rule.rate, rule.rate / self.rate if self.rate > 0.0 else 1.0) for rule in self.rules]
        return max(
            min(self.metrics[name] * scale, 1.0) if name in self.metrics else rate
            for rate, scale in scales
            for name in metrics or ("",)
        )


class Sampler:
    """Draws traces, in one thread: the pipeline's. A few microseconds a trace, no I/O.

    A trace has one number for all metrics and processes, so that a metric of a lower rate is computed on a part of
    the traces of one of a higher rate. A trace that is drawn is of the random stratum, whatever else is said of it;
    one that is not may be taken for a reason of its own, within 30 % of all units.

    Args:
        rates: what was asked for.
        pressure: lowers all of them together; None never does.
        clock: monotonic seconds, of the forced stratum's bound.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> record = RagRecord(id="1", trace_id="4bf92f3577b34da6a3ce929d0e0e4736")
        >>> Sampler(Rates(rate=1.0, metrics={"nuggets": 0.0})).decide(record, ("faithfulness", "nuggets")).rates
        {'faithfulness': 1.0}
    """

    def __init__(
        self,
        rates: Rates,
        *,
        pressure: Pressure | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rates = rates
        self._pressure = pressure
        self._clock = clock
        self._credit = _FORCED_BURST

    def decide(self, record: RagRecord, metrics: Sequence[str], *, seen: float = 1.0) -> Draw:
        """Return the draw of one trace over some metrics.

        Args:
            record: the trace.
            metrics: names.
            seen: share of all traces that get here, those with the lowest numbers; each stands for 1 / seen in the
                demand that sets the pressure.
        """
        rate, wanted = self._wanted(record, metrics)
        most = max(wanted.values(), default=rate)
        factor = 1.0 if self._pressure is None or most <= 0.0 else self._pressure.factor(most / seen)
        if self._pressure is not None and (most * factor < FLOOR <= most or factor == 0.0):
            cause = self._pressure.cause
            reason = cause if cause == "budget_exceeded" else "pressure"
            draw = self._forced(record, metrics) or Draw(
                decision="dropped", probability=most * factor, reason=reason
            )
            return replace(draw, undrawn=_alike(wanted, seen), undrawn_for=cause)
        number = uniform(record.trace_id)
        drawn = {name: p * factor for name, p in wanted.items() if number < p * factor}
        if drawn or (not metrics and number < rate * factor):
            self._earn()
            return Draw(decision="random", probability=most * factor, rates=drawn, factor=factor)
        forced = self._forced(record, metrics) if most > 0.0 else None
        return forced or Draw(decision="none", probability=most * factor, reason="not_sampled")

    def undrawn(self, record: RagRecord, metrics: Sequence[str], *, seen: float = 1.0) -> dict[str, float]:
        """Return `Draw.undrawn` of a trace that cannot be drawn whatever the pressure is, because it was lost."""
        return _alike(self._wanted(record, metrics)[1], seen)

    def _wanted(self, record: RagRecord, metrics: Sequence[str]) -> tuple[float, dict[str, float]]:
        rate, scale = self.rates.of(record)
        own = self.rates.metrics
        return rate, {name: min(own[name] * scale, 1.0) if name in own else rate for name in metrics}

    def _forced(self, record: RagRecord, metrics: Sequence[str]) -> Draw | None:
        reason = forced_reason(record)
        if reason is None or not self._spend():
            return None
        # The probability 1 says that it had to be taken; its scores are counted apart and never averaged.
        return Draw(decision="forced", probability=1.0, reason=reason, rates=dict.fromkeys(metrics, 1.0))

    def _earn(self) -> None:
        """Each drawn trace pays for its share of a forced one: .3 of all is 3 for 7 drawn."""
        self._credit = min(self._credit + FORCED_SHARE / (1.0 - FORCED_SHARE), 10 * _FORCED_BURST)

    def _spend(self) -> bool:
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True


def _alike(wanted: Mapping[str, float], seen: float) -> dict[str, float]:
    return {name: seen for name, p in wanted.items() if p > 0.0}
