"""Keeps the judge's own calls out of the user's traces."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import context

if TYPE_CHECKING:
    from collections.abc import Iterator

# Instrumentations look for the generated keys of opentelemetry.context, older ones for the plain names.
_KEYS = (
    "suppress_instrumentation",
    "suppress_http_instrumentation",
    getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation"),
    getattr(context, "_SUPPRESS_HTTP_INSTRUMENTATION_KEY", "suppress_http_instrumentation"),
)


@contextmanager
def uninstrumented() -> Iterator[None]:
    """Tell instrumentations of HTTP and LLM clients to write no span inside the block.

    Enter and leave it in the same task: it sets the current OpenTelemetry context.

    Example:
        >>> with uninstrumented():
        ...     context.get_value("suppress_instrumentation")
        True
        >>> context.get_value("suppress_instrumentation") is None
        True
    """
    changed = context.get_current()
    for key in _KEYS:
        changed = context.set_value(key, True, changed)
    token = context.attach(changed)
    try:
        yield
    finally:
        context.detach(token)
