"""A recorder whose runs are kept twice: as they were captured, and as real spans of the SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragtrace import semconv
from ragtrace.capture import Recorder, finished_run
from ragtrace.telemetry.spans.writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import ReadableSpan

    from ragtrace.capture import FinishedRun, Limits, Run
    from ragtrace.model import RagRecord
    from ragtrace.modes import ContentMode
    from ragtrace.telemetry.spans.writer import Root


class Recording:
    """Takes what an integration records; give `recorder` to the integration and look at the rest.

    Nothing is scored and nothing leaves the process. Runs may be recorded from any thread.

    Attributes:
        recorder: takes the calls of the integration.
        runs: finished runs, in the order in which they ended.
        begun: names of the runs begun, in their order.

    Args:
        content: ``full`` writes texts onto the spans, ``none`` does not.
        redact: applied to every text before it is kept.
        limits: of the recorder.

    Example:
        >>> kept = Recording()
        >>> with kept.recorder.start(query="Where?") as run:
        ...     run.answered("In Oslo.")
        >>> kept.only.record.answer, len(kept.spans)
        ('In Oslo.', 1)
    """

    def __init__(
        self,
        *,
        content: ContentMode = "full",
        redact: Callable[[str], str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.recorder = Recorder(self, redact=redact, limits=limits)
        self.runs: list[FinishedRun] = []
        self.begun: list[str] = []
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._writer = SpanWriter(
            provider.get_tracer(semconv.SCOPE, schema_url=semconv.SCHEMA_URL), content=content
        )

    @property
    def records(self) -> list[RagRecord]:
        """Records of the finished runs."""
        return [run.record for run in self.runs]

    @property
    def only(self) -> FinishedRun:
        """The one run that finished.

        Raises:
            AssertionError: there are none or several.
        """
        if len(self.runs) != 1:
            asked = [record.query for record in self.records]
            raise AssertionError(f"one finished run was expected, there are {len(self.runs)}: {asked}")
        return self.runs[0]

    @property
    def spans(self) -> list[ReadableSpan]:
        """Every span, in the order in which they ended: the children of a run stand before its root."""
        return list(self._exporter.get_finished_spans())

    def spans_of(self, operation: str) -> list[ReadableSpan]:
        """Return the spans of one ``gen_ai.operation.name``.

        Example:
            >>> Recording().spans_of("retrieval")
            []
        """
        name = semconv.GEN_AI_OPERATION_NAME
        return [span for span in self.spans if (span.attributes or {}).get(name) == operation]

    def on_start(self, workflow: str, started_ns: int) -> Root:
        """Begin the root span; called by the recorder."""
        self.begun.append(workflow)
        return self._writer.open_root(workflow, started_ns)

    def on_end(self, root: Any, run: Run) -> None:
        """Keep a run and write its spans at once; called by the recorder."""
        finished = finished_run(run)
        if finished is None:
            return
        self.runs.append(finished)
        self._writer.write(root, finished, decision="none", reason="not_sampled", probability=0.0)
        root.end(finished.ended_ns)
