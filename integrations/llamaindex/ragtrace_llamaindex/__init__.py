"""LlamaIndex integration of ragtrace: ``ragtrace_llamaindex.instrument()``.

Owns: the translation from LlamaIndex's instrumentation (spans and events) to `ragtrace.capture`.
Imports: llama_index.core and llama_index_instrumentation, and of ragtrace the facade, capture, model and errors.
"""

from ragtrace.errors import MissingExtra

try:
    import llama_index.core.instrumentation as _core  # noqa: F401 - says which extra is missing
except ImportError as error:
    raise MissingExtra("llama-index-core", "llamaindex") from error

from ragtrace_llamaindex.instrumentation import (
    LlamaIndexInstrumentor,
    instrument,
    instrumented,
    is_instrumented,
    uninstrument,
)
from ragtrace_llamaindex.mark import mark_retrieved, mark_selected
from ragtrace_llamaindex.request import request

__all__ = [
    "LlamaIndexInstrumentor",
    "instrument",
    "instrumented",
    "is_instrumented",
    "mark_retrieved",
    "mark_selected",
    "request",
    "uninstrument",
]
