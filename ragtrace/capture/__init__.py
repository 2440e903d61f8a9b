"""The recorder that integrations call, and what keeps it safe: clamps, redaction, the guard.

Owns: turning what an application reports into a `RagRecord` and its steps, without ever raising.
Imports: model and errors alone, and of third parties nothing.
"""

from ragtrace.capture.clamp import is_equal, shown
from ragtrace.capture.collecting import watch_collector
from ragtrace.capture.guard import guarded, guarded_constructor, losses, lost, register_fork_reset
from ragtrace.capture.passages import PassageReader, ReadPassages, ranked, reranked_passage
from ragtrace.capture.recorder import Limits, Listener, Recorder, TraceRef
from ragtrace.capture.run import Run, outcome_of
from ragtrace.capture.steps import Captured, Failure, Generation, Rerank, Retrieval, Step

__all__ = [
    "Captured",
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
    "TraceRef",
    "guarded",
    "guarded_constructor",
    "is_equal",
    "losses",
    "lost",
    "outcome_of",
    "ranked",
    "register_fork_reset",
    "reranked_passage",
    "shown",
]

register_fork_reset()
watch_collector()
