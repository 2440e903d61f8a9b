"""Read assembled traces into drawn units, and count every trace once."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from ragtrace.capture import record_internal_error
from ragtrace.capture.guard import safe_redact
from ragtrace.ingest.dialects.registry import all_dialects
from ragtrace.ingest.reading import read_trace
from ragtrace.ingest.spans import received_span
from ragtrace.model.codec import record_to_json
from ragtrace.sampling import uniform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.ingest.assembly.assembler import AssembledTrace, Assembler
    from ragtrace.ingest.base import RawSpan
    from ragtrace.ingest.reading import ReadRun
    from ragtrace.model import RagRecord
    from ragtrace.queues import Unit
    from ragtrace.service.intake.foreign import ForeignScores
    from ragtrace.service.intake.hints import Hints
    from ragtrace.service.service import Service

_SCORED_THERE = frozenset({"random", "forced"})
_STEPS = frozenset({"retrieval", "rerank", "generation", "embedding", "tool"})
_GIVEN_UP = {"evicted": "assembly_full", "shutdown": "shutdown"}


class TraceUnits:
    """Turns traces into units with a service's draw and counts. `units_of` is called in one thread.

    Args:
        service: its sampler, metrics, counters and settings.
        assembler: keeps drawn traces for late spans.
        foreign: takes the results of other evaluators.
        hints: explains traces without scores.

    Attributes:
        share: of all traces that may be drawn, those with the lowest numbers.
        unchanged: since it was last set to 0, runs of reopened traces that changed nothing.
    """

    def __init__(self, service: Service, assembler: Assembler, foreign: ForeignScores, hints: Hints) -> None:
        self._service = service
        self._assembler = assembler
        self._foreign = foreign
        self._hints = hints
        self.share = service.sampler.rates.most(service.pipeline.metrics)
        self.unchanged = 0
        self._redact = safe_redact(service.settings.redact)

    def is_wanted(self, trace_id: bytes) -> bool:
        """Say by its id whether a trace may be drawn; any thread may ask."""
        return uniform(trace_id.hex()) < self.share

    def skip(self, count: int) -> None:
        """Count traces that were left out by their id."""
        if count:
            self._passed("skipped", "not_sampled", count)

    def units_of(self, trace: AssembledTrace) -> list[Unit]:
        """Return the drawn units of one trace; everything else about it is counted. Never raises."""
        try:
            return self._units_of(trace)
        except Exception as error:
            record_internal_error("ragtrace.service.intake", error)
            self._passed("dropped", "internal_error", is_counted=not trace.revision)
            return []

    def _units_of(self, trace: AssembledTrace) -> list[Unit]:
        if (reason := _GIVEN_UP.get(trace.end)) is not None:
            self._passed("dropped", reason, is_counted=not trace.revision)
            if trace.end == "evicted" and not trace.revision:
                self._service.pipeline.lose_unread("queue_full", seen=self._seen)
            return []
        spans = trace.spans
        self._assembler.count("oversized", trace.size - len(spans))
        if trace.end == "no_root":
            self._hints.no_root(spans)
        self._foreign.take_spans(spans)
        settings = self._service.settings
        runs = read_trace(
            spans,
            redact=self._redact,
            id_key=self._service.id_key,
            workflow=settings.workflow,
            environment=settings.environment,
            span_metadata=settings.span_metadata,
            head_probability=settings.head_probability,
            revision=trace.revision,
        )
        if not runs and not trace.revision:
            self._hints.no_run(spans)
            self._passed("skipped", "no_rag_run")
        units, digests = [], {}
        for run in runs:
            is_partial = (
                trace.end == "no_root" and run.record.outcome == "answered" and not _is_whole(run.record, spans)
            )
            record = replace(run.record, outcome="partial") if is_partial else run.record
            digests[record.span_id] = digest = content_digest(record)
            if trace.revision and trace.digests.get(record.span_id) == digest:
                self.unchanged += 1
            elif (unit := self._unit_of(run, record, is_counted=not trace.revision)) is not None:
                units.append(unit)
        if units:
            self._assembler.keep(trace, digests)
        return units

    def _unit_of(self, run: ReadRun, record: RagRecord, *, is_counted: bool) -> Unit | None:
        if run.decision in _SCORED_THERE:
            self._hints.sent_twice()
            self._passed("skipped", "scored_by_sender", is_counted=is_counted)
            return None
        self._hints.lacking(run)
        pipeline = self._service.pipeline
        draw = self._service.sampler.decide(record, pipeline.metrics, seen=self._seen)
        return pipeline.unit_of(record, draw)

    @property
    def _seen(self) -> float:
        return max(self.share, 1e-9)

    def _passed(
        self, decision: Literal["skipped", "dropped"], reason: str, count: int = 1, *, is_counted: bool = True
    ) -> None:
        self._service.ledger.passed(decision, reason, count)
        if is_counted:
            self._service.instruments.traces(decision, reason, count)


def _is_whole(record: RagRecord, spans: Sequence[RawSpan]) -> bool:
    """Return whether the span around a run is here, which ended after its steps, though the trace's root is not."""
    raw = next((raw for raw in spans if raw.span.span_id.hex() == record.span_id), None)
    if raw is None:
        return False
    span = received_span(raw)
    roles = {dialect.facts(span).role for dialect in all_dialects().values() if dialect.reads(span)}
    return not roles & _STEPS


def content_digest(record: RagRecord) -> str:
    """Return 32 hex digits over all that metrics may read of a record.

    Times, tokens, counts of losses and the reading are left out: a late span that changes nothing else asks for no
    new scores.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> one, other = RagRecord(id="1", answer="a"), RagRecord(id="1", answer="a", ended=9.0)
        >>> content_digest(one) == content_digest(other)
        True
    """
    shown = record_to_json(replace(record, started=0.0, ended=0.0, revision=0, lossy={}, usage=None, reading=None))
    text = json.dumps(shown, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
