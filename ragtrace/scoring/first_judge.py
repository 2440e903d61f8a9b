"""The first of two judges: it scores every unit, and its score says how likely the second one scores it too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.judges.base import Judge
    from ragtrace.metrics.base import Metric, MetricSpec, Output
    from ragtrace.model import MetricResult, Score
    from ragtrace.sampling.second import SecondRates


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstJudge:
    """An offline judge of every unit, with the rates of the second draw.

    Attributes:
        judge: answers the tasks of its metrics.
        metrics: the ones that it can compute, or that ask no judge.
        lead: the output, of a metric of both judges, by whose first score a unit is drawn; None without one.
        rates: of the second draw.
        shared: names of the outputs that both judges give.
    """

    judge: Judge
    metrics: tuple[Metric, ...]
    lead: Output | None
    rates: SecondRates
    shared: frozenset[str] = frozenset()

    def gave(self, score: Score) -> bool:
        """Return whether this judge gave a score that the second judge gives too, where it is drawn."""
        result = score.result
        is_own = result.judge is not None and result.judge.model == self.judge.name
        return is_own and result.name in self.shared

    def able(self, chosen: Sequence[Metric]) -> list[Metric]:
        """Return the metrics among the chosen ones that this judge computes."""
        return [metric for metric in chosen if metric in self.metrics]

    def rate_of(self, results: Sequence[MetricResult]) -> float:
        """Return the probability of the second draw for a unit with these results of the first judge."""
        lead = self.lead
        values = [result.value for result in results if lead is not None and result.key == lead.name]
        value = next((value for value in values if value is not None), None)
        return self.rates.of(None if lead is None or value is None else lead.exported(value))


def asks_judge(spec: MetricSpec) -> bool:
    """Return whether a metric asks the judge, always or sometimes.

    Example:
        >>> from ragtrace.metrics.registry import select
        >>> [asks_judge(metric.spec) for metric in select(["faithfulness", "invented_specifics", "mrr"])]
        [True, False, True]
    """
    return "judge" in spec.needs or bool(spec.task or spec.prompts or spec.abilities)


def is_answer(result: MetricResult) -> bool:
    """Return whether a first judge could do what was asked; otherwise the second judge alone gives the metric."""
    return result.reason != "unsupported_by_judge"
