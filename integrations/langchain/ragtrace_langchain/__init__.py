"""LangChain integration of ragtrace: ``config={"callbacks": [RagtraceHandler()]}``.

Owns: the translation from LangChain's callbacks to `ragtrace.capture`.
Imports: langchain_core, and of ragtrace the facade, capture, model and errors.
"""

from ragtrace.errors import MissingExtra

try:
    import langchain_core as _core  # noqa: F401 - says which extra is missing
except ImportError as error:
    raise MissingExtra("langchain-core", "langchain") from error

from ragtrace_langchain.handler import RagtraceHandler
from ragtrace_langchain.instrumentation import LangChainInstrumentor, instrument, is_instrumented, uninstrument
from ragtrace_langchain.wrap import TracedCompressor, mark_retrieved, mark_selected

__all__ = [
    "LangChainInstrumentor",
    "RagtraceHandler",
    "TracedCompressor",
    "instrument",
    "is_instrumented",
    "mark_retrieved",
    "mark_selected",
    "uninstrument",
]
