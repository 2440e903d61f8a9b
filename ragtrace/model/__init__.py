"""Pure values: passages, pools, records and scores.

Owns: the shapes that every other room passes around. Imports: the standard library alone.
"""

from ragtrace.model.claims import BadClaim, bad_claims
from ragtrace.model.ends import ENDS, LOST, SERVED, End, is_drawn
from ragtrace.model.passage import Passage, Pool, Stage, content_id
from ragtrace.model.record import (
    AnswerPart,
    Feedback,
    Labels,
    LabelScale,
    LabelScope,
    LabelStratum,
    Message,
    Outcome,
    RagRecord,
)
from ragtrace.model.score import (
    ERROR_REASONS,
    NA_REASONS,
    SKIP_REASONS,
    Direction,
    JudgeInfo,
    MetricResult,
    Missed,
    Scale,
    Score,
    ScoreKey,
    State,
    Stratum,
)
from ragtrace.model.trace_id import as_trace_id, is_trace_id
from ragtrace.usage import JudgeUsage, Usage, added_usage

__all__ = [
    "ENDS",
    "ERROR_REASONS",
    "LOST",
    "NA_REASONS",
    "SERVED",
    "SKIP_REASONS",
    "AnswerPart",
    "BadClaim",
    "Direction",
    "End",
    "Feedback",
    "JudgeInfo",
    "JudgeUsage",
    "LabelScale",
    "LabelScope",
    "LabelStratum",
    "Labels",
    "Message",
    "MetricResult",
    "Missed",
    "Outcome",
    "Passage",
    "Pool",
    "RagRecord",
    "Scale",
    "Score",
    "ScoreKey",
    "Stage",
    "State",
    "Stratum",
    "Usage",
    "added_usage",
    "as_trace_id",
    "bad_claims",
    "content_id",
    "is_drawn",
    "is_trace_id",
]
