"""Lines for a person whose first traces give no scores, each said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.ingest.dialects.registry import all_dialects
from ragtrace.ingest.spans import received_spans
from ragtrace.model.printable import count_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.ingest.base import RawSpan
    from ragtrace.ingest.reading import ReadRun

# Spans of the others carry `gen_ai.*` too, so its variable is named only where it is alone.
_CONTENT = {
    "ragtrace": "set RAGTRACE_CONTENT=full",
    "traceloop": "unset TRACELOOP_TRACE_CONTENT",
    "openinference": "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and all OPENINFERENCE_HIDE_*",
    "genai": "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY, and for some instrumentations"
    " OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
}
_TEXTS = ("question", "answer", "documents", "document_text")
_ONE_TRACE = "If one request does both, open a span around both in the application, so that they are one trace"
_MOST_SCOPES = 5


class Hints:
    """Says once each what a trace lacks: a known dialect, a RAG run, its root, a search, an answer, or texts.

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
        found = sorted(
            {
                name
                for span in received_spans(spans)
                for name, dialect in all_dialects().items()
                if dialect.reads(span)
            }
        )
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

    def no_root(self, spans: Sequence[RawSpan]) -> None:
        """Explain a trace that ended without its root."""
        here = {raw.span.span_id for raw in spans}
        top = next((raw for raw in spans if raw.span.parent_span_id not in here), None)
        if top is not None:
            self._once(
                "no_root",
                f"a trace never got its root: the parent {top.span.parent_span_id.hex()} of the span"
                f" {printable(top.span.name)!r} did not come. Export that span too: it was not ended, its exporter"
                " was not flushed, or a filter on the way drops it",
            )

    def lacking(self, run: ReadRun) -> None:
        """Explain a run without the texts that a judge reads: the sender hides all, or its dialect lacks some."""
        missing = [name for name in _TEXTS if name in run.lacks]
        senders = " and ".join(run.dialects)
        todo = next((todo for name, todo in _CONTENT.items() if name in run.dialects), "turn content on")
        if "question" in missing:
            has_ids = bool(run.record.contexts)
            left = "only metrics over ids and ranks have values" if has_ids else "no metric has a value"
            self._once(
                f"no_content:{senders}",
                f"traces of {senders} come without texts, so a judge has nothing to read and {left}."
                f" In the application: {todo}",
            )
        elif "model_call" in run.lacks:
            self._once(
                f"no_answer:{senders}",
                f"a trace of {senders} is a search without a model's call and without an answer, so metrics of"
                f" answers are na. {_ONE_TRACE}",
            )
        elif "retrieval" in run.lacks:
            self._once(
                f"no_search:{senders}",
                f"a trace of {senders} has an answer and no search, so metrics over contexts are na. {_ONE_TRACE}",
            )
        elif missing:
            reasons = " ".join(run.lacks[name] for name in missing)
            self._once(f"lacks:{senders}", f"traces of {senders}: {reasons} Where content is hidden: {todo}")

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
