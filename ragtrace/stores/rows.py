"""Scores as rows, and rows as scores again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ragtrace.model import JudgeInfo, MetricResult, RagRecord, Score, ScoreKey
from ragtrace.model.codec import record_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_DETAILS_BYTES = 65_536
SERIES = ("metric", "version", "name", "variant", "source", "judge", "prompt_hash", "label_scale", "universe")
_TEXTS = ("workflow", "session", "user", "environment", "corpus", "model")


def clean(text: str | None) -> str | None:
    r"""Return a text that SQLite takes: half a surrogate pair becomes ``?``.

    Example:
        >>> clean("a\ud800"), clean(None)
        ('a?', None)
    """
    return None if text is None else text.encode("utf-8", "replace").decode()


def run_of(record: RagRecord) -> dict[str, Any]:
    """Return what all scores of a record share; a record that never was a trace is known by its id."""
    return {
        "trace_id": clean(record.trace_id or record.id),
        "span_id": clean(record.span_id),
        **{name: clean(getattr(record, name)) for name in _TEXTS},
        "revision": record.revision,
    }


def series_of(score: Score, source: str) -> tuple[str, ...]:
    """Return what all scores of a series share, in the order of `SERIES`."""
    result, judge = score.result, score.result.judge
    values = (
        score.key.metric,
        score.key.version,
        result.name,
        result.variant,
        source,
        judge.model if judge else "",
        judge.prompt_hash if judge else "",
        (judge.label_scale or "") if judge else "",
        result.universe or "",
    )
    return tuple(clean(value) or "" for value in values)


def score_of(score: Score, *, revision: int, at: float, has_content: bool) -> dict[str, Any]:
    """Return the rest of a score; without content its details keep numbers and truth values alone."""
    result = score.result
    return {
        "state": result.state,
        "value": result.value,
        "reason": clean(result.reason),
        "passed": None if result.passed is None else int(result.passed),
        "k": result.k,
        "stratum": score.stratum,
        "weight": score.weight,
        "llm_calls": result.llm_calls,
        "embed_calls": result.embed_calls,
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.completion_tokens,
        "revision": revision,
        "scored_at": at,
        "details": _details(result.shown_details(has_content=has_content)),
    }


def score_from(row: Mapping[str, Any]) -> Score:
    """Return the score of a row of the view ``scored``.

    Raises:
        ValueError: it is none of this version's: a state or reason that a newer ragtrace wrote.
    """
    judge = None
    if row["judge"]:
        judge = JudgeInfo(model=row["judge"], prompt_hash=row["prompt_hash"] or "", label_scale=row["label_scale"])
    result = MetricResult(
        name=row["name"],
        state=row["state"],
        value=row["value"],
        reason=row["reason"],
        details=json.loads(row["details"] or "{}"),
        llm_calls=row["llm_calls"],
        embed_calls=row["embed_calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        judge=judge,
        passed=None if row["passed"] is None else bool(row["passed"]),
        k=row["k"],
        universe=row["universe"],
        variant=row["variant"],
        version=row["version"],
    )
    key = ScoreKey(trace_id=row["trace_id"], span_id=row["span_id"], metric=row["metric"], version=row["version"])
    return Score(key=key, result=result, stratum=row["stratum"], weight=row["weight"], scored_at=row["scored_at"])


def record_from(row: Mapping[str, Any]) -> RagRecord:
    """Return the facts of a run as a record without texts."""
    given = {name: row[name] for name in ("trace_id", "span_id", *_TEXTS) if row[name] is not None}
    return record_from_json({**given, "revision": row["revision"]}, fallback_id=row["trace_id"])


def _details(shown: Mapping[str, Any]) -> str | None:
    if not shown:
        return None
    try:
        text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # a metric of a third party's
        return '{"message":"the details have no JSON form"}'
    if len(text) > MOST_DETAILS_BYTES:
        return f'{{"message":"the details were too long to keep: {len(text)} characters"}}'
    return clean(text)
