"""Pure values: passages, pools, records and scores.

Owns: the shapes that every other room passes around. Imports: the standard library and msgspec.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names
from ragtrace.model.claims import BadClaim, bad_claims
from ragtrace.model.ends import ENDS, LOST, SERVED, End, is_drawn
from ragtrace.model.passage import Passage, Pool, Stage, chunk_id, content_id, label_id, shared_id
from ragtrace.model.reading import SIGNS, Found, How, Reading, Sign, SignName, Source, preview
from ragtrace.model.record import (
    AnswerPart,
    Call,
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
    SeriesKey,
    State,
    Stratum,
)
from ragtrace.model.trace_id import as_trace_id, is_trace_id
from ragtrace.usage import JudgeUsage, Usage, added_usage

if TYPE_CHECKING:
    from ragtrace.model.claims import INVENTED
    from ragtrace.model.cluster import cluster_of
    from ragtrace.model.codec import record_from_json, record_to_json, score_to_json
    from ragtrace.model.diagnosis import DIAGNOSIS, FAILURES, STAGES, VERDICTS, Verdict, verdict_of
    from ragtrace.model.line import SCHEMA_ID
    from ragtrace.model.printable import is_printable
    from ragtrace.model.schema import SCHEMA
    from ragtrace.model.score import NOT_APPLICABLE
    from ragtrace.model.standing import standing_by, standing_of
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "claims": "INVENTED",
            "cluster": "cluster_of",
            "codec": "record_from_json record_to_json score_to_json",
            "diagnosis": "DIAGNOSIS FAILURES STAGES VERDICTS Verdict verdict_of",
            "line": "SCHEMA_ID",
            "printable": "is_printable",
            "schema": "SCHEMA",
            "score": "NOT_APPLICABLE",
            "standing": "standing_by standing_of",
        },
    )

__all__ = [
    "ENDS",
    "ERROR_REASONS",
    "LOST",
    "NA_REASONS",
    "SERVED",
    "SIGNS",
    "SKIP_REASONS",
    "AnswerPart",
    "BadClaim",
    "Call",
    "Direction",
    "End",
    "Feedback",
    "Found",
    "How",
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
    "Reading",
    "Scale",
    "Score",
    "ScoreKey",
    "SeriesKey",
    "Sign",
    "SignName",
    "Source",
    "Stage",
    "State",
    "Stratum",
    "Usage",
    "added_usage",
    "as_trace_id",
    "bad_claims",
    "chunk_id",
    "content_id",
    "is_drawn",
    "is_trace_id",
    "label_id",
    "preview",
    "shared_id",
]
