"""The conventions' own metrics of a run: durations of its steps, and tokens of its model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.capture import Generation, Rerank, Retrieval
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.capture import Captured, Step
    from ragtrace.model import Usage
    from ragtrace.telemetry.board import Fan

_NS = 1e9


def record_operations(
    fan: Fan,
    captured: Captured,
    workflow: str,
    *,
    model_name: Callable[[str], str],
    source_name: Callable[[str], str],
) -> None:
    """Record the durations of a run and of its steps, and the tokens of its model calls.

    Args:
        fan: the instruments.
        captured: the finished run.
        workflow: its bounded name.
        model_name: keeps the number of model names finite.
        source_name: keeps the number of data sources finite.
    """
    about: dict[str, Any] = {semconv.GEN_AI_WORKFLOW_NAME: workflow}
    if captured.record.outcome == "error":
        about[semconv.ERROR_TYPE] = captured.failure.kind if captured.failure else "_OTHER"
    seconds = (captured.ended_ns - captured.started_ns) / _NS
    fan.record(semconv.INVOKE_WORKFLOW_DURATION, max(seconds, 0.0), clean_attributes(about))
    for step in captured.steps:
        if isinstance(step, Generation):
            _record_generation(fan, step, _about(step, model_name))
        elif isinstance(step, Retrieval):
            source = source_name(step.source) if step.source else None
            operation = {semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL}
            named = operation if source is None else operation | {semconv.GEN_AI_DATA_SOURCE_ID: source}
            _record_duration(fan, semconv.CLIENT_OPERATION_DURATION, step, named)
        elif isinstance(step, Rerank):
            named = {semconv.GEN_AI_REQUEST_MODEL: model_name(step.model)} if step.model else {}
            _record_duration(fan, semconv.RERANK_DURATION, step, named)


def _about(step: Generation, model_name: Callable[[str], str]) -> dict[str, Any]:
    return clean_attributes(
        {
            semconv.GEN_AI_OPERATION_NAME: step.operation,
            semconv.GEN_AI_PROVIDER_NAME: step.provider or semconv.PROVIDER_UNKNOWN,
            semconv.GEN_AI_REQUEST_MODEL: model_name(step.model) if step.model else None,
            semconv.GEN_AI_RESPONSE_MODEL: model_name(step.response_model) if step.response_model else None,
        }
    )


def _record_duration(fan: Fan, name: str, step: Retrieval | Rerank, about: dict[str, Any]) -> None:
    # A step that was reported without times has none: 0 s would be a false latency.
    if step.ended_ns > step.started_ns:
        fan.record(name, _seconds(step), about | _failed(step))


def _record_generation(fan: Fan, step: Generation, about: dict[str, Any]) -> None:
    is_embedding = step.operation == "embeddings"
    seconds, described = _seconds(step), about | _failed(step)
    fan.record(semconv.CLIENT_OPERATION_DURATION, seconds, described)  # the former name
    today = semconv.CLIENT_EMBEDDINGS_DURATION if is_embedding else semconv.CLIENT_INFERENCE_DURATION
    fan.record(today, seconds, described)
    if step.usage is not None:
        for kind, tokens in (("input", step.usage.input_tokens), ("output", step.usage.output_tokens)):
            if _is_count(tokens):
                fan.record(semconv.CLIENT_TOKEN_USAGE, tokens or 0, about | {semconv.GEN_AI_TOKEN_TYPE: kind})
    if not is_embedding:
        _count_tokens(fan, step.usage, about | {semconv.GEN_AI_TOKEN_MODALITY: semconv.MODALITY_UNKNOWN})


def _count_tokens(fan: Fan, usage: Usage | None, about: dict[str, Any]) -> None:
    """Count the tokens of one call; of a call without usage, input and output count 0, as the conventions ask."""
    fan.add(semconv.CLIENT_INPUT_TOKENS, _counted(usage.input_tokens) if usage else 0, about)
    fan.add(semconv.CLIENT_OUTPUT_TOKENS, _counted(usage.output_tokens) if usage else 0, about)
    if usage is None:
        return
    for name, tokens in (
        (semconv.CLIENT_CACHE_READ_TOKENS, usage.cache_read_tokens),
        (semconv.CLIENT_CACHE_WRITE_TOKENS, usage.cache_write_tokens),
        (semconv.CLIENT_REASONING_TOKENS, usage.reasoning_tokens),
    ):
        if tokens is not None:
            fan.add(name, _counted(tokens), about)


def _is_count(tokens: int | None) -> bool:
    return isinstance(tokens, int) and tokens >= 0


def _counted(tokens: int | None) -> int:
    return tokens if tokens is not None and _is_count(tokens) else 0


def _failed(step: Step) -> dict[str, str]:
    return {semconv.ERROR_TYPE: step.failure.kind} if step.failure else {}


def _seconds(step: Step) -> float:
    return max((step.ended_ns - step.started_ns) / _NS, 0.0)
