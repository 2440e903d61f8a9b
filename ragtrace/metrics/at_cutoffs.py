"""What all @K metrics over grades share: one result for each output and each K, with its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragtrace.metrics.cutoffs import cutoffs
from ragtrace.metrics.graded import Graded, graded
from ragtrace.model import ERROR_REASONS, MetricResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.metrics.base import MetricSpec
    from ragtrace.metrics.eval_context import EvalContext, Options
    from ragtrace.model import State

Outcome = float | str  # a value, or the reason why there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a metric computes nothing for a record, at any K."""

    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The outcome of each output at one K, the facts behind them, and who graded over which universe."""

    outcomes: Mapping[str, Outcome]
    details: Mapping[str, Any] = field(default_factory=dict)
    source: Graded | None = None
    label_scopes: Mapping[str, str] = field(default_factory=dict)  # of outputs that read another than the source's


def outcome_of(value: float | None, none_reason: str) -> Outcome:
    """Return a value, or the reason why there is none.

    Example:
        >>> outcome_of(0.0, "zero_oracle"), outcome_of(None, "zero_oracle")
        (0.0, 'zero_oracle')
    """
    return none_reason if value is None else float(value)


def result(
    name: str,
    outcome: Outcome,
    *,
    source: Graded | None = None,
    details: Mapping[str, Any] | None = None,
    label_scope: str | None = None,
    k: int | None = None,
    variant: str = "",
) -> MetricResult:
    """Return an outcome as a result of state ok, na or error.

    Example:
        >>> result("p_at_k", "no_labels", k=5).state
        'na'
    """
    state: State = "ok"
    if isinstance(outcome, str):
        state = "skipped" if outcome == "not_sampled" else "error" if outcome in ERROR_REASONS else "na"
    return MetricResult(
        name=name,
        state=state,
        value=None if isinstance(outcome, str) else outcome,
        reason=outcome if isinstance(outcome, str) else None,
        details={**(source.facts() if source else {}), **(details or {})},
        judge=source.judge if source else None,
        label_scope=label_scope or (source.label_scope if source else None),
        k=k,
        variant=variant,
        version=source.series if source else "",
    )


class AtCutoffs(ABC):
    """A metric over grades with a value for each K.

    Without a positive K nothing is asked of the judge. Coroutine-safe: it keeps nothing between records.
    """

    spec: MetricSpec

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return one result for each K and output; raises JudgeError when the judge has no grades."""
        places = cutoffs(ctx)
        source: Graded | Refusal = _no_places(ctx)
        if any(k > 0 for k, _ in places):
            source = await self.read(ctx)
        return [made for k, variant in places for made in self._results(self._found(source, k, ctx), k, variant)]

    async def read(self, ctx: EvalContext) -> Graded | Refusal:
        """Return the grades of a case; a subclass may refuse instead."""
        return await graded(ctx)

    @abstractmethod
    def at(self, source: Graded, k: int, options: Options) -> Found:
        """Return the outcomes for one K, which is positive."""

    def _found(self, source: Graded | Refusal, k: int, ctx: EvalContext) -> Found:
        names = [output.name for output in self.spec.outputs]
        if k <= 0:
            source = _no_places(ctx)
        if isinstance(source, Refusal):
            return Found(outcomes=dict.fromkeys(names, source.reason), details=source.details)
        return self.at(source, k, ctx.options)

    def _results(self, found: Found, k: int, variant: str) -> list[MetricResult]:
        return [
            result(
                output.name,
                found.outcomes[output.name],
                source=found.source,
                details=found.details,
                label_scope=found.label_scopes.get(output.name),
                k=k,
                variant=variant,
            )
            for output in self.spec.outputs
        ]


def _no_places(ctx: EvalContext) -> Refusal:
    ids = [passage.id for passage in ctx.record.contexts]
    return Refusal(reason="k_not_positive", details={"dup_count": len(ids) - len(set(ids))})
