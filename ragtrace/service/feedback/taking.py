"""Take a person's rating of an answer from the application's own code."""

from __future__ import annotations

import atexit
import math
from typing import Any

from ragtrace.capture import guarded, record_wrong_call
from ragtrace.capture.guard import safe_redact
from ragtrace.model import is_trace_id
from ragtrace.service.runtime import current, recorder
from ragtrace.stores import Label
from ragtrace.stores.base import TRACE_ID_FORM
from ragtrace.text import MAX_NAME_CHARS, MAX_TEXT_CHARS, kept

_AT_EXIT_S = 2.0
_CALL = "ragtrace.feedback()"
_seen: set[int] = set()


def feedback(
    trace_id: str,
    value: float,
    comment: str | None = None,
    *,
    metric: str = "feedback",
    rater: str = "",
    session: str | None = None,
    user: str | None = None,
) -> bool:
    """Keep a person's rating of a trace in the store that the setting ``store`` names. Never raises, never waits.

    It may come before or after the trace is scored, for 30 days. A second call for the same trace, metric and rater
    replaces the first. Texts are redacted as all are; the comment is kept with ``content="full"`` alone.

    The trace's session and user are kept beside it, so that `ragtrace forget` finds it: those of the last 10,000
    runs of this process are known; where another captured it, give them.

    Args:
        trace_id: 32 hex digits, as in the trace; not all 0, as of a span that OpenTelemetry does not record.
        value: 0 (bad) to 1 (good).
        comment: in words.
        metric: what was judged; default the answer as a whole.
        rater: who, where several may.
        session: the trace's conversation, default as it was captured.
        user: the trace's end user, likewise.

    Returns:
        Whether it was taken; False without a store, for a text that is not a trace id, for a value outside 0 to 1,
        or after a defect. Each is counted, and the first of each kind is logged with its reason.

    Example:
        >>> import ragtrace
        >>> ragtrace.feedback("4bf92f3577b34da6a3ce929d0e0e4736", 5.0)
        False
    """
    texts = {"comment": comment, "rater": rater, "session": session, "user": user}
    return bool(_taken(trace_id, value, metric, texts))


@guarded
def _taken(trace_id: str, value: float, metric: str, texts: dict[str, Any]) -> bool:
    if not is_trace_id(trace_id):
        record_wrong_call(_CALL, f"a trace id has {TRACE_ID_FORM}", site="ragtrace.feedback.trace_id")
        return False
    number = _number(value)
    if not 0.0 <= number <= 1.0:
        record_wrong_call(_CALL, "a rating must lie between 0 and 1", site="ragtrace.feedback.value")
        return False
    recorder()  # configures at first use
    service = current()
    redact = safe_redact(service.settings.redact) if service is not None else None
    most = {"comment": MAX_TEXT_CHARS}
    given: dict[str, Any] = {
        name: None if text is None else kept(text, most.get(name, MAX_NAME_CHARS), redact)[0]
        for name, text in texts.items()
    }
    label = Label(trace_id=trace_id, value=number, metric=metric, **given)
    storing = service.storing if service is not None else None
    if storing is None:
        record_wrong_call(_CALL, "feedback needs the setting store", site="ragtrace.feedback.no_store")
        return False
    if id(storing) not in _seen:
        _seen.add(id(storing))
        atexit.register(storing.flush, _AT_EXIT_S)  # before the exporters end; the service's own end closes it
    storing.rate(label)
    return True


def _number(value: object) -> float:
    """Return a float; NaN for anything that is not a number."""
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception:  # any object may stand here; the caller counts it
        return math.nan
