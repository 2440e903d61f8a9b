"""The conventions' own metrics of a run: durations of its steps, and tokens of its model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.capture import Generation, Rerank, Retrieval
from ragtrace.model import Usage
from ragtrace.telemetry.wire import clean_value

if TYPE_CHECKING:
    from ragtrace.capture import FinishedRun, Step
    from ragtrace.telemetry.metrics.multi_meter import MultiMeter
    from ragtrace.telemetry.metrics.series import LabelValues

_NS = 1e9
_NO_USAGE = Usage()


def record_operations(
    meter: MultiMeter,
    captured: FinishedRun,
    workflow: str,
    labels: LabelValues,
) -> None:
    """Record the durations of a run and of its steps, and the tokens of its model calls.

    Args:
        meter: the instruments.
        captured: the finished run.
        workflow: its bounded name.
        labels: keeps the numbers of model names and of data sources finite.
    """
    about: dict[str, Any] = {semconv.GEN_AI_WORKFLOW_NAME: workflow}
    if captured.record.outcome == "error":
        about[semconv.ERROR_TYPE] = clean_value(captured.failure.kind) if captured.failure else "_OTHER"
    meter.record(semconv.INVOKE_WORKFLOW_DURATION, _seconds(captured), about)
    for step in captured.steps:
        if isinstance(step, Generation):
            _record_generation(meter, step, _about(step, labels))
        elif isinstance(step, Retrieval):
            named = {semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL}
            if step.source:
                named[semconv.GEN_AI_DATA_SOURCE_ID] = labels.source(step.source)
            _record_duration(meter, semconv.CLIENT_OPERATION_DURATION, step, named)
        elif isinstance(step, Rerank):
            named = {semconv.GEN_AI_REQUEST_MODEL: labels.model(step.model)} if step.model else {}
            _record_duration(meter, semconv.RERANK_DURATION, step, named)


def _about(step: Generation, labels: LabelValues) -> dict[str, Any]:
    about = {
        semconv.GEN_AI_OPERATION_NAME: clean_value(step.operation),
        semconv.GEN_AI_PROVIDER_NAME: clean_value(step.provider or semconv.PROVIDER_UNKNOWN),
    }
    if step.model:
        about[semconv.GEN_AI_REQUEST_MODEL] = labels.model(step.model)
    if step.response_model:
        about[semconv.GEN_AI_RESPONSE_MODEL] = labels.model(step.response_model)
    return about


def _record_duration(meter: MultiMeter, name: str, step: Retrieval | Rerank, about: dict[str, Any]) -> None:
    # A step that was reported without times has none: 0 s would be a false latency.
    if step.ended_ns > step.started_ns:
        meter.record(name, _seconds(step), _with_failure(step, about))


def _record_generation(meter: MultiMeter, step: Generation, about: dict[str, Any]) -> None:
    is_embedding = step.operation == "embeddings"
    seconds, described = _seconds(step), _with_failure(step, about)
    meter.record(semconv.CLIENT_OPERATION_DURATION, seconds, described)  # the former name
    today = semconv.CLIENT_EMBEDDINGS_DURATION if is_embedding else semconv.CLIENT_INFERENCE_DURATION
    meter.record(today, seconds, described)
    usage = step.usage
    if usage is not None:
        _record_tokens(meter, usage, about)
    if not is_embedding:
        about[semconv.GEN_AI_TOKEN_MODALITY] = semconv.MODALITY_UNKNOWN
        _count_tokens(meter, usage or _NO_USAGE, about)


def _record_tokens(meter: MultiMeter, usage: Usage, about: dict[str, Any]) -> None:
    """Record the tokens under their former name."""
    for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
        if _is_count(tokens):
            meter.record(semconv.CLIENT_TOKEN_USAGE, tokens or 0, about | {semconv.GEN_AI_TOKEN_TYPE: kind})


def _count_tokens(meter: MultiMeter, usage: Usage, about: dict[str, Any]) -> None:
    """Count the tokens of one call; of a call without usage, input and output count 0, as the conventions ask."""
    meter.add(semconv.CLIENT_INPUT_TOKENS, _counted(usage.input_tokens), about)
    meter.add(semconv.CLIENT_OUTPUT_TOKENS, _counted(usage.output_tokens), about)
    if usage.cache_read_tokens is not None:
        meter.add(semconv.CLIENT_CACHE_READ_TOKENS, _counted(usage.cache_read_tokens), about)
    if usage.cache_write_tokens is not None:
        meter.add(semconv.CLIENT_CACHE_WRITE_TOKENS, _counted(usage.cache_write_tokens), about)
    if usage.reasoning_tokens is not None:
        meter.add(semconv.CLIENT_REASONING_TOKENS, _counted(usage.reasoning_tokens), about)


def _is_count(tokens: int | None) -> bool:
    return isinstance(tokens, int) and tokens >= 0


def _counted(tokens: int | None) -> int:
    return tokens if isinstance(tokens, int) and tokens >= 0 else 0


def _with_failure(step: Step, about: dict[str, Any]) -> dict[str, Any]:
    return about | {semconv.ERROR_TYPE: step.failure.kind} if step.failure else about


def _seconds(timed: FinishedRun | Step) -> float:
    return max((timed.ended_ns - timed.started_ns) / _NS, 0.0)
