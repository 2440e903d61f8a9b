"""The recorder that integrations call, and what keeps it safe: clamps, redaction, the guard.

Owns: turning what an application reports into a `RagRecord` and its steps, without ever raising.
Imports: model and errors alone, and of third parties nothing.
"""

from ragtrace.capture.buried import Buried
from ragtrace.capture.clamp import is_equal, shown
from ragtrace.capture.collecting import watch_collector
from ragtrace.capture.current_run import current_run
from ragtrace.capture.guard import guarded, guarded_constructor, losses, lost, register_fork_reset
from ragtrace.capture.passages import PassageReader, ReadPassages, are_joined, ranked, reranked_passage
from ragtrace.capture.providers import provider_named
from ragtrace.capture.recorder import Limits, Listener, Recorder, TraceRef
from ragtrace.capture.request import Defaults, describe, tags_of
from ragtrace.capture.run import Run, outcome_of
from ragtrace.capture.steps import Captured, Failure, Generation, Rerank, Retrieval, Step, ToolCall
from ragtrace.capture.turns import before_question, prompt_text, spoken

__all__ = [
    "Buried",
    "Captured",
    "Defaults",
    "Failure",
    "Generation",
    "Limits",
    "Listener",
    "PassageReader",
    "ReadPassages",
    "Recorder",
    "Rerank",
    "Retrieval",
    "Run",
    "Step",
    "ToolCall",
    "TraceRef",
    "are_joined",
    "before_question",
    "current_run",
    "describe",
    "guarded",
    "guarded_constructor",
    "is_equal",
    "losses",
    "lost",
    "outcome_of",
    "prompt_text",
    "provider_named",
    "ranked",
    "register_fork_reset",
    "reranked_passage",
    "shown",
    "spoken",
    "tags_of",
]

register_fork_reset()
watch_collector()
