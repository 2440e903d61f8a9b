"""The recorder that integrations call, and what keeps it safe: clamps, redaction, the guard.

Owns: turning what an application reports into a `RagRecord` and its steps, without ever raising.
Imports: model, text and errors only, and of third parties nothing.
"""

from typing import TYPE_CHECKING

from ragtrace.capture.assembly import finished_run
from ragtrace.capture.guard import (
    guarded,
    guarded_call,
    guarded_constructor,
    internal_errors,
    is_equal,
    kind_of,
    record_internal_error,
    record_wrong_call,
)
from ragtrace.capture.instrumentor import Instrumentor
from ragtrace.capture.messages import before_question, prompt_text, spoken
from ragtrace.capture.model_calls import (
    answer_field,
    answer_text,
    is_json_asked,
    is_refused,
    provider_in,
    provider_named,
    read_usage,
    without_thoughts,
)
from ragtrace.capture.model_requests import NO_SERVER, Server, read_request, read_server
from ragtrace.capture.names import (
    ANSWER_FIELDS,
    ID_KEYS,
    REQUEST_NAMES,
    RERANK_SCORE_KEYS,
    SCORE_KEYS,
    SERVER_NAMES,
    TEXT_KEYS,
)
from ragtrace.capture.passages import (
    MOST_PASSAGES,
    PassageReader,
    ReadPassages,
    are_joined,
    first_passages,
    id_in,
    number_of,
    ranked,
    read_mapping,
    score_in,
    text_key,
)
from ragtrace.capture.past import RecentIds
from ragtrace.capture.recorder import Recorder
from ragtrace.capture.run import Run, current_run, entered_run, outcome_of
from ragtrace.capture.run_context import Defaults, describe, tags_of, unsaid
from ragtrace.capture.types import (
    Agent,
    Failure,
    FinishedRun,
    Generation,
    Limits,
    Rerank,
    Retrieval,
    RunProcessor,
    Step,
    ToolCall,
    TraceRef,
)
from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.capture.attribution import PassageFinder, found_in, place_of
    from ragtrace.capture.citations import cited_parts, parts_of_run
    from ragtrace.capture.off_loop import is_on_loop, served_by
    from ragtrace.capture.origins import Origin, Origins, by_first_shown
    from ragtrace.capture.suppression import own_work
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "attribution": "PassageFinder found_in place_of",
            "citations": "cited_parts parts_of_run",
            "origins": "Origin Origins by_first_shown",
            "off_loop": "is_on_loop served_by",
            "suppression": "own_work",
        },
    )

__all__ = [
    "ANSWER_FIELDS",
    "ID_KEYS",
    "MOST_PASSAGES",
    "NO_SERVER",
    "REQUEST_NAMES",
    "RERANK_SCORE_KEYS",
    "SCORE_KEYS",
    "SERVER_NAMES",
    "TEXT_KEYS",
    "Agent",
    "Defaults",
    "Failure",
    "FinishedRun",
    "Generation",
    "Instrumentor",
    "Limits",
    "Origin",
    "Origins",
    "PassageReader",
    "ReadPassages",
    "RecentIds",
    "Recorder",
    "Rerank",
    "Retrieval",
    "Run",
    "RunProcessor",
    "Server",
    "Step",
    "ToolCall",
    "TraceRef",
    "answer_field",
    "answer_text",
    "are_joined",
    "before_question",
    "by_first_shown",
    "current_run",
    "describe",
    "entered_run",
    "finished_run",
    "first_passages",
    "guarded",
    "guarded_call",
    "guarded_constructor",
    "id_in",
    "internal_errors",
    "is_equal",
    "is_json_asked",
    "is_refused",
    "kind_of",
    "number_of",
    "outcome_of",
    "prompt_text",
    "provider_in",
    "provider_named",
    "ranked",
    "read_mapping",
    "read_request",
    "read_server",
    "read_usage",
    "record_internal_error",
    "record_wrong_call",
    "score_in",
    "spoken",
    "tags_of",
    "text_key",
    "unsaid",
    "without_thoughts",
]
