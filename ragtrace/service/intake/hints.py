"""Lines for a person whose first traces give no scores, each said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.ingest.dialects.registry import all_dialects
from ragtrace.ingest.spans import received_span
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.ingest.base import RawSpan
    from ragtrace.ingest.reading import ReadRun

# Spans of the others carry `gen_ai.*` too, so its variable is named only where it is alone.
_CONTENT = {
    "ragtrace": "set RAGTRACE_CONTENT=full",
    "traceloop": "unset TRACELOOP_TRACE_CONTENT",
    "openinference": "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and all OPENINFERENCE_HIDE_*",
    "genai": "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only, and for some instrumentations"
    " OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
}
_TEXTS = ("question", "answer", "documents", "document_text")
_MOST_SCOPES = 5


class Hints:
    """Says once each: a trace has no known dialect, has no RAG run, or its spans have no texts.

    Args:
        say: takes one line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: set[str] = set()

    def no_run(self, spans: Sequence[RawSpan]) -> None:
        """Explain a complete trace in which no run was found."""
        if {"no_dialect", "no_question"} <= self._said or not spans:
            return
        found = sorted({name for raw in spans for name in _dialects_of(raw)})
        scopes = ", ".join(sorted({raw.scope or "?" for raw in spans})[:_MOST_SCOPES])
        what = f"a trace of {count_text(len(spans), 'span')} (scopes: {scopes}) has no RAG run"
        if found:
            self._once(
                "no_question",
                f"{what}: its spans ({', '.join(found)}) show no retrieval, and no question with a model's answer."
                " Such traces are counted as skipped (no_rag_run)",
            )
        else:
            self._once(
                "no_dialect",
                f"{what}: no span is of a known dialect ({', '.join(all_dialects())}). Traces of other services are"
                " expected here; if all are like this, instrument the application's RAG framework",
            )

    def lacking(self, run: ReadRun) -> None:
        """Explain a run without the texts that a judge reads: the sender hides all, or its dialect lacks some."""
        missing = [name for name in _TEXTS if name in run.lacks]
        senders = " and ".join(run.dialects)
        if "question" in missing:
            todo = next((todo for name, todo in _CONTENT.items() if name in run.dialects), "turn content on")
            self._once(
                f"no_content:{senders}",
                f"traces of {senders} come without texts, so a judge has nothing to read and only metrics over ids"
                f" and ranks have values. In the application: {todo}",
            )
        elif missing:
            self._once(f"lacks:{senders}", f"traces of {senders}: {' '.join(run.lacks[name] for name in missing)}")

    def sent_twice(self) -> None:
        """Explain runs that their own application scores."""
        self._once(
            "sender",
            "traces come of applications that use ragtrace and score them; they are not scored twice"
            " (skipped, scored_by_sender). With RAGTRACE_SAMPLE_RATE=0 there, they are scored here",
        )

    def _once(self, key: str, line: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self._say(line)


def _dialects_of(raw: RawSpan) -> list[str]:
    span = received_span(raw)
    return [name for name, dialect in all_dialects().items() if dialect.reads(span)]
