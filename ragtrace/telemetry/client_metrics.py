"""The conventions' own metrics of a run: durations and tokens of the application's model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.capture import Generation
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.capture import Captured, Step
    from ragtrace.telemetry.board import Fan

_NS = 1e9


def record_operations(fan: Fan, captured: Captured, workflow: str, bounded: Callable[[str], str]) -> None:
    """Record the duration of a run and of each of its model calls, and their tokens.

    Args:
        fan: the instruments.
        captured: the finished run.
        workflow: its bounded name.
        bounded: keeps the number of model names finite.
    """
    about: dict[str, Any] = {semconv.GEN_AI_WORKFLOW_NAME: workflow}
    if captured.record.outcome == "error":
        about[semconv.ERROR_TYPE] = captured.failure.kind if captured.failure else "_OTHER"
    seconds = (captured.ended_ns - captured.started_ns) / _NS
    fan.record(semconv.INVOKE_WORKFLOW_DURATION, max(seconds, 0.0), clean_attributes(about))
    for step in captured.steps:
        if isinstance(step, Generation):
            _record_generation(fan, step, _about(step, bounded))


def _about(step: Generation, bounded: Callable[[str], str]) -> dict[str, Any]:
    return clean_attributes(
        {
            semconv.GEN_AI_OPERATION_NAME: step.operation,
            semconv.GEN_AI_PROVIDER_NAME: step.provider,
            semconv.GEN_AI_REQUEST_MODEL: bounded(step.model) if step.model else None,
            semconv.GEN_AI_RESPONSE_MODEL: bounded(step.response_model) if step.response_model else None,
        }
    )


def _record_generation(fan: Fan, step: Generation, about: dict[str, Any]) -> None:
    failed = {semconv.ERROR_TYPE: step.failure.kind} if step.failure else {}
    fan.record(semconv.CLIENT_OPERATION_DURATION, _seconds(step), about | failed)
    if step.usage is None:
        return
    for kind, tokens in (("input", step.usage.input_tokens), ("output", step.usage.output_tokens)):
        if isinstance(tokens, int) and tokens >= 0:
            fan.record(semconv.CLIENT_TOKEN_USAGE, tokens, about | {semconv.GEN_AI_TOKEN_TYPE: kind})


def _seconds(step: Step) -> float:
    return max((step.ended_ns - step.started_ns) / _NS, 0.0)
