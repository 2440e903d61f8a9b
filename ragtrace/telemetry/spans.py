"""A finished run into spans: the root's summary, and one child for each step with its recorded times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Status, StatusCode

from ragtrace import semconv
from ragtrace.capture import Generation, Rerank, Retrieval
from ragtrace.telemetry.budget import within
from ragtrace.telemetry.documents import Room
from ragtrace.telemetry.flattened import DEFAULT_ATTRIBUTES, MAX_ATTRIBUTES
from ragtrace.telemetry.messages import PassageMarks
from ragtrace.telemetry.placing import parents_first
from ragtrace.telemetry.root import OPENING_BYTES, Root, open_root
from ragtrace.telemetry.steps import StepWriter
from ragtrace.telemetry.summary import summary
from ragtrace.telemetry.wire import clean_attributes, clean_value, cut_text

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from ragtrace.capture import Failure, FinishedRun
    from ragtrace.model import Passage
    from ragtrace.settings import ContentMode, Dialect, PromptContent

_DOCUMENT_SHARE = 0.75  # of the byte budget; the rest is for questions, answers and messages
_NO_ERROR = frozenset({"CancelledError", "Cancelled", "GeneratorExit", "KeyboardInterrupt"})
_MOST_MESSAGE_BYTES = 1_024
_MOST_LINKS = 64  # of an evaluation span; the SDK keeps 128 and drops the oldest

__all__ = ["Root", "SpanWriter"]


class SpanWriter:
    """Writes runs as spans (TELEMETRY.md 2). Thread-safe; does no I/O and never waits.

    A root that is not recorded costs one no-op span: no JSON is built and no child is made for it.

    Args:
        tracer: of scope ``ragtrace``.
        content: ``none`` writes ids, scores, ranks, counts and hashes; ``full`` writes texts too.
        dialect: OpenTelemetry GenAI keys, OpenInference keys, or both.
        prompt_content: ``full`` writes prompts as they were; ``reference`` writes ``[passage ID]`` in place of
            each passage, whose text the retrieval span holds.
        max_span_bytes: budget of each span's attributes, and of all texts of one trace's spans together. Ids,
            scores and ranks stay as long as they fit it themselves: see `ragtrace.telemetry.budget`.

    Example:
        >>> from opentelemetry.trace import NoOpTracer
        >>> writer = SpanWriter(NoOpTracer())
        >>> root = writer.open_root("support", 1)
        >>> len(root.trace_id), root.is_recording
        (32, False)
        >>> writer.end_root(root, 2)
    """

    def __init__(
        self,
        tracer: Tracer,
        *,
        content: ContentMode = "none",
        dialect: Dialect = "both",
        prompt_content: PromptContent = "full",
        max_span_bytes: int = 262_144,
    ) -> None:
        self.tracer = tracer
        self.content = content
        self.dialect = dialect
        self.max_span_bytes = max_span_bytes
        self._has_content = content == "full"
        self._has_references = self._has_content and prompt_content == "reference"

    def open_root(self, workflow: str, started_ns: int) -> Root:
        """Start the root of a run, as a child of the span that is current now; Unix ns."""
        return open_root(self.tracer, workflow, started_ns)

    def write(
        self, root: Root, captured: FinishedRun, *, decision: str, reason: str | None, probability: float
    ) -> None:
        """Write the children and the root's summary; the root itself is ended by `end_root`.

        Args:
            root: from `open_root`.
            captured: the finished run.
            decision: ``random``, ``forced``, ``none`` or ``dropped``: whether it is scored.
            reason: why it was forced or not drawn.
            probability: with which it had to be drawn.
        """
        _remember(root, captured)
        if not root.is_recording:
            return
        room = self._room(root.span)
        attributes = summary(captured, room, has_content=self._has_content, dialect=self.dialect)
        attributes[semconv.SAMPLING_DECISION] = decision
        attributes[semconv.SAMPLING_REASON] = reason
        attributes[semconv.SAMPLING_PROBABILITY] = probability
        root.linked = self._write_steps(root, captured, room)
        record = captured.record
        # A run that was cut short, cancelled or interrupted is not an error.
        if record.outcome == "error":
            attributes[semconv.ERROR_TYPE] = captured.failure.kind if captured.failure else "_OTHER"
            self._fail(root.span, captured.failure)
        if record.workflow != root.workflow:
            root.span.update_name(f"{semconv.SPAN_WORKFLOW} {clean_value(record.workflow)}")
        root.span.set_attributes(within(clean_attributes(attributes), self.max_span_bytes - OPENING_BYTES))

    def end_root(self, root: Root, ended_ns: int) -> None:
        """End the root at a Unix time in ns; a second call does nothing."""
        root.end(ended_ns)

    def _room(self, span: Span) -> Room:
        documents = int(self.max_span_bytes * _DOCUMENT_SHARE)
        # Private, but the only place where a provider built in code keeps the limit; absent = no limit.
        limits = getattr(span, "_limits", None)
        attributes = getattr(limits, "max_span_attributes", DEFAULT_ATTRIBUTES)
        return Room(
            document_bytes=documents,
            text_bytes=self.max_span_bytes - documents,
            limit_chars=getattr(limits, "max_span_attribute_length", None),
            limit_attributes=MAX_ATTRIBUTES if attributes is None else attributes,
        )

    def _write_steps(self, root: Root, captured: FinishedRun, room: Room) -> tuple[trace.SpanContext, ...]:
        marks = PassageMarks(_passages(captured) if self._has_references else ())
        steps = StepWriter(room, marks, has_content=self._has_content, dialect=self.dialect)
        # In the order in which they ended, so that a leaf retriever and not its composite carries the texts.
        built = [steps.built(step) for step in captured.steps]
        contexts: dict[str, Context] = {}
        linked = []
        for place in parents_first(captured.steps):
            step, (name, kind, attributes) = captured.steps[place], built[place]
            failure = step.failure if step.failure and step.failure.kind not in _NO_ERROR else None
            if failure is not None:
                attributes[semconv.ERROR_TYPE] = failure.kind
            span = self.tracer.start_span(
                name,
                context=contexts.get(step.parent_key or "", root.context),
                kind=kind,
                attributes=within(clean_attributes(attributes), self.max_span_bytes),
                start_time=step.started_ns,
            )
            if step.key and step.key not in contexts:
                contexts[step.key] = trace.set_span_in_context(span, Context())
            if failure is not None:
                self._fail(span, failure)
            span.end(step.ended_ns)
            if not isinstance(step, Rerank):
                linked.append(span.get_span_context())
        return tuple(linked[:_MOST_LINKS])

    def _fail(self, span: Span, failure: Failure | None) -> None:
        message = failure.message if failure and self._has_content else None
        text = cut_text(clean_value(message), _MOST_MESSAGE_BYTES) if message else None
        span.set_status(Status(StatusCode.ERROR, text))


def _remember(root: Root, captured: FinishedRun) -> None:
    """Keep what the evaluation span copies from the run."""
    for step in captured.steps:
        if isinstance(step, Retrieval) and root.data_source is None:
            root.data_source = step.source
        elif isinstance(step, Generation) and step.response_id:
            root.response_id = step.response_id


def _passages(captured: FinishedRun) -> list[Passage]:
    """Every passage of a run, those that were delivered first: they are the likeliest in a prompt."""
    parts = [pool.passages for pool in reversed(captured.record.pools)]
    for step in captured.steps:
        # Of a single retrieval the pool is the very same tuple.
        if isinstance(step, Retrieval) and not any(step.passages is part for part in parts):
            parts.append(step.passages)
    return [passage for part in parts for passage in part]
