"""Read the limits that an SDK sets to attributes, which the API does not show."""

from __future__ import annotations

import os
from typing import Any

from ragtrace.telemetry.wire import AttributeLimits

DEFAULT_COUNT = 128  # the SDK's own
_LENGTH, _COUNT = "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT"


def span_limits(span: object) -> AttributeLimits:
    """Return the limits of a span's attributes: those of its provider, else those of the environment.

    Example:
        >>> from opentelemetry.sdk.trace import SpanLimits, TracerProvider
        >>> tracer = TracerProvider(span_limits=SpanLimits(max_span_attribute_length=99)).get_tracer("x")
        >>> span_limits(tracer.start_span("y"))
        AttributeLimits(length=99, most=128)
    """
    found: Any = getattr(
        span, "_limits", None
    )  # private, but the only place where a provider built in code keeps them
    if hasattr(found, "max_span_attribute_length"):
        return AttributeLimits(found.max_span_attribute_length, found.max_span_attributes)
    return _of_environment("SPAN_")


def event_limits(span: object) -> AttributeLimits:
    """Return the limits of the attributes of a span's events."""
    found: Any = getattr(span, "_limits", None)
    if hasattr(found, "max_attribute_length"):
        return AttributeLimits(found.max_attribute_length, found.max_event_attributes)
    return _of_environment("EVENT_")


def log_limits(logger: object) -> AttributeLimits:
    """Return the limits of the attributes of a logger's records."""
    found: Any = getattr(logger, "_log_record_limits", None)  # older SDKs have those of the environment alone
    if hasattr(found, "max_log_record_attribute_length"):
        return AttributeLimits(found.max_log_record_attribute_length, found.max_log_record_attributes)
    return _of_environment("LOGRECORD_")


def _of_environment(kind: str) -> AttributeLimits:
    length = _number(_LENGTH.replace("OTEL_", f"OTEL_{kind}"), _LENGTH)
    count = _number(_COUNT.replace("OTEL_", f"OTEL_{kind}"), _COUNT)
    return AttributeLimits(length, DEFAULT_COUNT if count is None else count)


def _number(*variables: str) -> int | None:
    for variable in variables:
        if (value := os.environ.get(variable, "").strip()).isdecimal():
            return int(value)
    return None
