"""Write a finished run as spans: the root's summary, and one child for each step with its recorded times."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode

from ragtrace import semconv
from ragtrace.capture import Agent, Generation, Rerank, Retrieval
from ragtrace.telemetry.spans.attributes import Forms
from ragtrace.telemetry.spans.budget import Budget
from ragtrace.telemetry.spans.limits import event_limits, span_limits
from ragtrace.telemetry.wire import clean_attributes, clean_value, cut_value, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.trace import Span, Tracer
    from opentelemetry.util.types import AnyValue

    from ragtrace.capture import Failure, FinishedRun, Step
    from ragtrace.model.passage import IdKey
    from ragtrace.modes import ContentMode, Dialect

_NO_ERROR = frozenset({"CancelledError", "Cancelled", "GeneratorExit", "KeyboardInterrupt"})
_OPENING_BYTES, _OPENING_NAMES = 256, 2  # of the attributes that a root is opened with, and not written again
_MOST_MESSAGE_BYTES = 1_024
_MOST_LINKS = 64  # of an evaluation span; the SDK keeps 128 and drops the oldest


class Root:
    """A started root span and the facts of its trace.

    Attributes:
        span: the span; ended through `end` alone.
        trace_id: 32 lower-case hex digits.
        span_id: 16 lower-case hex digits.
        context: an OpenTelemetry context with the root as its span, the explicit parent of all children.
        is_recording: whether the span is recorded and sampled, and so will be exported.
        workflow: the name it was opened with.
        linked: span contexts of the retrieval and model spans, for the links of the evaluation span.
        data_source: name of the first data source that was searched.
        response_id: the id of the last model response.
        ended_ns: Unix ns at which the run ended; None before.
    """

    __slots__ = (
        "context", "data_source", "ended_ns", "is_recording", "linked",
        "response_id", "span", "span_id", "trace_id", "workflow",
    )  # fmt: skip

    def __init__(self, span: Span, identity: SpanContext, workflow: str) -> None:
        self.span = span
        self.trace_id = trace.format_trace_id(identity.trace_id)
        self.span_id = trace.format_span_id(identity.span_id)
        self.context = trace.set_span_in_context(span, Context())
        self.is_recording = span.is_recording() and identity.trace_flags.sampled
        self.workflow = workflow
        self.linked: Sequence[SpanContext] = ()
        self.data_source: str | None = None
        self.response_id: str | None = None
        self.ended_ns: int | None = None

    def end(self, ended_ns: int) -> None:
        """End the span at a Unix time in ns; a second call does nothing."""
        if self.ended_ns is None:
            self.ended_ns = ended_ns
            self.span.end(ended_ns)


class SpanWriter:
    """Writes runs as spans. Thread-safe; does no I/O and never waits.

    A root that is not recorded costs one no-op span: no JSON is built and no child is made for it.

    Args:
        tracer: of scope ``ragtrace``.
        content: ``none`` writes ids, scores, ranks, counts and hashes; ``full`` writes texts too.
        dialect: OpenTelemetry GenAI keys, OpenInference keys, or both.
        id_key: of the hashes that stand for texts; None makes plain ones.
        max_span_bytes: budget of each span's attributes, and of all texts of one trace's spans together. Ids,
            scores and ranks stay as long as they fit it themselves: see `ragtrace.telemetry.spans.budget`.

    Example:
        >>> from opentelemetry.trace import NoOpTracer
        >>> root = SpanWriter(NoOpTracer()).open_root("support", 1)
        >>> len(root.trace_id), root.is_recording
        (32, False)
        >>> root.end(2)
    """

    def __init__(
        self,
        tracer: Tracer,
        *,
        content: ContentMode = "none",
        dialect: Dialect = "both",
        id_key: IdKey | None = None,
        max_span_bytes: int = 262_144,
    ) -> None:
        self.tracer = tracer
        self.content = content
        self.dialect = dialect
        self.max_span_bytes = max_span_bytes
        self._has_content = content == "full"
        self._forms = Forms(dialect, content, id_key)

    def open_root(self, workflow: str, started_ns: int) -> Root:
        """Start the root of a run at a Unix time in ns, as a child of the span that is current now.

        The context is read once and nothing is ever attached to it. A tracer that makes no spans of its own (a
        no-op) gives a root with made-up ids, so that records have an identity.
        """
        ambient = get_current()
        name = clean_value(workflow)
        span = self.tracer.start_span(
            f"{semconv.SPAN_WORKFLOW} {name}" if name else semconv.SPAN_WORKFLOW,
            context=ambient,
            kind=SpanKind.INTERNAL,
            attributes={
                semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_WORKFLOW,
                semconv.GEN_AI_WORKFLOW_NAME: name,
                semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_CHAIN,
            },
            start_time=started_ns,
        )
        given, parent = span.get_span_context(), trace.get_current_span(ambient).get_span_context()
        # A no-op tracer hands back the parent's own context, under which two runs would share one identity.
        if given.is_valid and given.span_id != parent.span_id:
            return Root(span, given, workflow)
        made_up = SpanContext(
            trace_id=parent.trace_id if parent.is_valid else secrets.randbits(128) or 1,
            span_id=secrets.randbits(64) or 1,
            is_remote=False,
        )
        return Root(span, made_up, workflow)

    def write(
        self, root: Root, captured: FinishedRun, *, decision: str, reason: str | None, probability: float
    ) -> None:
        """Write the children and the root's summary; the root itself is ended by `Root.end`.

        Args:
            root: from `open_root`.
            captured: the finished run.
            decision: ``random``, ``forced``, ``none`` or ``dropped``: whether it is scored.
            reason: why it was forced or not drawn.
            probability: with which it had to be drawn.
        """
        for step in captured.steps:
            if isinstance(step, Retrieval) and root.data_source is None:
                root.data_source = step.source
            elif isinstance(step, Generation) and step.response_id:
                root.response_id = step.response_id
        if not root.is_recording:
            return
        record = captured.record
        attributes = {name: read(captured) for name, read in self._forms.root}
        attributes[semconv.SAMPLING_DECISION] = decision
        attributes[semconv.SAMPLING_REASON] = reason
        attributes[semconv.SAMPLING_PROBABILITY] = probability
        # A run that was cut short, cancelled or interrupted is not an error.
        if record.outcome == "error":
            attributes[semconv.ERROR_TYPE] = captured.failure.kind if captured.failure else "_OTHER"
        attributes |= {f"{semconv.RUN_METADATA_PREFIX}{name}": value for name, value in record.metadata.items()}
        budget = Budget(self.max_span_bytes, limits=span_limits(root.span))
        # First, so that question and answer have room.
        fitted = budget.fit(attributes, taken=_OPENING_BYTES, names=_OPENING_NAMES)
        root.linked = self._write_steps(root, captured, budget)
        if record.outcome == "error":
            self._fail(root.span, captured.failure, captured.ended_ns)
        if record.workflow != root.workflow:
            root.span.update_name(f"{semconv.SPAN_WORKFLOW} {clean_value(record.workflow)}")
        root.span.set_attributes(fitted)

    def _write_steps(self, root: Root, captured: FinishedRun, budget: Budget) -> tuple[SpanContext, ...]:
        # In the order in which they ended, so that a leaf retriever and not its composite carries the texts.
        fitted = [self._fitted(step, captured.record.session, budget) for step in captured.steps]
        contexts: dict[str, Context] = {}
        linked = []
        for place in parents_first(captured.steps):
            step = captured.steps[place]
            form, failure = self._forms.of(step), _failure_of(step)
            word, subject = form.word(step), form.subject(step)
            span = self.tracer.start_span(
                f"{word} {clean_value(subject)}" if subject else str(word),
                context=contexts.get(step.parent_key or "", root.context),
                kind=form.kind(step),
                attributes=fitted[place],
                start_time=step.started_ns,
            )
            if step.key and step.key not in contexts:
                contexts[step.key] = trace.set_span_in_context(span, Context())
            if failure is not None:
                self._fail(span, failure, step.ended_ns)
            span.end(step.ended_ns)
            if not isinstance(step, Rerank | Agent):
                linked.append(span.get_span_context())
        return tuple(linked[:_MOST_LINKS])

    def _fitted(self, step: Step, session: str | None, budget: Budget) -> dict[str, AnyValue]:
        attributes = {name: read(step) for name, read in self._forms.of(step).attributes}
        attributes[self._forms.session] = session
        if (failure := _failure_of(step)) is not None:
            attributes[semconv.ERROR_TYPE] = failure.kind
        return budget.fit(attributes)

    def _fail(self, span: Span, failure: Failure | None, ended_ns: int) -> None:
        """Set the status and add the exception's event, which has no stack trace: its lines may quote any text."""
        message = failure.message if failure and self._has_content else None
        text = cut_value(clean_value(message), _MOST_MESSAGE_BYTES) if message else None
        span.set_status(Status(StatusCode.ERROR, None if text is None else str(text)))
        if failure is not None:
            told = clean_attributes({semconv.EXCEPTION_TYPE: failure.kind, semconv.EXCEPTION_MESSAGE: text})
            span.add_event(semconv.EVENT_EXCEPTION, within(told, event_limits(span)), ended_ns)


def _failure_of(step: Step) -> Failure | None:
    return step.failure if step.failure is not None and step.failure.kind not in _NO_ERROR else None


def parents_first(steps: Sequence[Step]) -> list[int]:
    """Return the places of steps so that each stands behind the step its `parent_key` names.

    A parent that does not exist, or a circle of parents, leaves the steps of it under the root.

    Example:
        >>> leaf = Retrieval(started_ns=2, ended_ns=3, query="", passages=(), key="b", parent_key="a")
        >>> whole = Retrieval(started_ns=1, ended_ns=4, query="", passages=(), key="a")
        >>> parents_first([leaf, whole])
        [1, 0]
    """
    if not any(step.parent_key for step in steps):
        return list(range(len(steps)))
    first: dict[str, int] = {}
    for place, step in enumerate(steps):
        if step.key:
            first.setdefault(step.key, place)
    ordered: dict[int, None] = {}
    for place in range(len(steps)):
        line = [place]
        while (parent := first.get(steps[line[-1]].parent_key or "")) is not None and parent not in line:
            line.append(parent)
        ordered.update(dict.fromkeys(reversed(line)))
    return list(ordered)
