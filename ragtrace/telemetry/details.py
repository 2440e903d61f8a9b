"""Details of scores as one JSON attribute within a byte budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.telemetry.wire import cut_text, size_bytes, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import MetricResult, Score

MOST_EXPLANATION_BYTES = 4_096


def details_json(scores: Sequence[Score], budget_bytes: int, *, has_content: bool) -> str:
    """Return ``{metric: {version, judge, label_scale, k, universe, details}}``, valid JSON within the budget.

    Without content the details are numbers and truth values alone (`MetricResult.shown_details`). Over budget
    those of the last metrics go first, then whole metrics.

    Example:
        >>> from ragtrace.model import MetricResult, Score, ScoreKey
        >>> result = MetricResult(name="mrr", state="ok", value=1.0, version="0a1b2c3d", k=3, details={"rank": 1})
        >>> score = Score(key=ScoreKey(trace_id="", span_id="", metric="mrr", version="0a1b2c3d"), result=result)
        >>> details_json([score], 1_000, has_content=False)
        '{"mrr":{"version":"0a1b2c3d","k":3,"details":{"rank":1}}}'
    """
    rows = {score.result.key: _row(score.result, has_content=has_content) for score in scores}
    text = to_json(rows)
    for key in reversed(list(rows)):
        if size_bytes(text) <= budget_bytes:
            return text
        rows[key].pop("details", None)
        text = to_json(rows)
    while rows and size_bytes(text) > budget_bytes:
        rows.popitem()
        text = to_json(rows)
    return text


def _row(result: MetricResult, *, has_content: bool) -> dict[str, Any]:
    judge = result.judge
    row: dict[str, Any] = {
        "version": result.version or None,
        "judge": judge.model if judge else None,
        "prompt": (judge.prompt_hash or None) if judge else None,
        "label_scale": judge.label_scale if judge else None,
        "k": result.k,
        "universe": result.label_scope,
        "details": result.shown_details(has_content=has_content) or None,
    }
    return {name: value for name, value in row.items() if value is not None}


def explanation(result: MetricResult, most_bytes: int = MOST_EXPLANATION_BYTES) -> str | None:
    """Return a score's explanation in words: its own, the unsupported claims, or the judge's message.

    Example:
        >>> from ragtrace.model import MetricResult
        >>> explanation(MetricResult(name="x", state="ok", value=0.5, details={"unsupported": ["It rains."]}))
        'unsupported: ["It rains."]'
    """
    for name in ("explanation", "message"):
        text = result.details.get(name)
        if isinstance(text, str) and text:
            return cut_text(text, most_bytes)
    unsupported = result.details.get("unsupported")
    if unsupported:
        return cut_text(f"unsupported: {to_json(unsupported)}", most_bytes)
    return None
