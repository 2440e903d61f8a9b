"""Conformance suite for integrations: one application, written in its framework, in every situation.

An author subclasses `IntegrationConformance`, writes the application in a few methods, and pytest runs the rest.
docs/how-to/integration.md shows how. pytest itself is not imported here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec.structs import replace

from ragtrace import semconv
from ragtrace.capture import FinishedRun, Generation, Rerank, Retrieval, internal_errors
from ragtrace.model import Message, chunk_id
from ragtrace.testing.comparing import same, same_record
from ragtrace.testing.plan import (
    ANSWER,
    LABELS,
    Barrier,
    Plan,
    PlannedFailure,
    Request,
    difficult,
    expected_record,
    plan_of,
    without_ids,
)
from ragtrace.testing.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from ragtrace.capture import Recorder
    from ragtrace.model import RagRecord
    from ragtrace.modes import ContentMode

Capability = Literal[
    "reranker",
    "reranker step",
    "async",
    "cancel",
    "stream",
    "batch",
    "history",
    "no ids",
    "duplicate ids",
    "surrogates",
    "tokens",
    "block",
]

CHOICE = ((5, 0.93), (2, 0.71))
SECRET = "Ada Lovelace"  # noqa: S105 - a name that redaction takes out
MOST_ATTRIBUTES = 30
MOST_ATTRIBUTE_BYTES = 300_000  # of all spans of a run
LATER = 1e12  # seconds on the recorder's clock: every open run has been idle too long

__all__ = ["ANSWER", "CHOICE", "Capability", "IntegrationConformance", "Plan", "PlannedFailure"]


class IntegrationConformance:
    """Drives one application through every situation and compares the records; subclass it in a test module.

    The application asks its retriever (``plan.found()``), its reranker (``plan.chosen()``), shows the passages to a
    model in a prompt that holds ``plan.shown(text)`` of each and the question, and returns the model's answer
    (``plan.said()``, ``plan.asaid()``, ``plan.pieces()``). It is built anew for each plan, records to the recorder
    that it is given, and gives the facts of ``plan.request``.

    Attributes:
        selection_source: how the integration says that this application's reranker became known.
        texts: ``difficult`` texts and ids hold newlines, quotes, backslashes, tabs and non-ASCII characters.
        lacks: capabilities that the framework or the form does not have, each with the reason; their tests skip.
        ignored: facts in which this framework's record legitimately differs, each with the reason; names as
            `ragtrace.testing.comparing.facts_of` has them.
        metadata_keys: keys under which the framework keeps scores in a document's metadata; no difference.

    Example:
        >>> class TestManual(IntegrationConformance):
        ...     def ask(self, plan, recorder):
        ...         with recorder.start(query=plan.question) as run:
        ...             answer = plan.said()
        ...             run.answered(answer)
        ...         return answer
        >>> TestManual().test_the_result_is_the_application_s()
    """

    selection_source: ClassVar[str] = "explicit"
    texts: ClassVar[Literal["plain", "difficult"]] = "plain"
    lacks: ClassVar[Mapping[Capability, str]] = {}
    ignored: ClassVar[Mapping[str, str]] = {}
    metadata_keys: ClassVar[frozenset[str]] = frozenset()

    # written by an author

    def ask(self, plan: Plan, recorder: Recorder) -> str:
        """Build the application, ask it once, and return the answer; errors pass."""
        raise NotImplementedError

    async def aask(self, plan: Plan, recorder: Recorder) -> str:
        """Do what `ask` does, asynchronously; the model awaits ``plan.asaid()``."""
        raise NotImplementedError

    def stream(self, plan: Plan, recorder: Recorder) -> Iterator[str]:
        """Return the answer's pieces, lazily, as the framework gives them; the model yields ``plan.pieces()``."""
        raise NotImplementedError

    def batch(self, plans: Sequence[Plan], recorder: Recorder) -> Sequence[str]:
        """Ask for several plans at once, in one application if the framework can; they differ in the question."""
        raise NotImplementedError

    def held(self, recorder: Recorder) -> int:  # noqa: ARG002 - an author's method may need it
        """Return how many open events the integration remembers; 0 is expected once all has ended."""
        return 0

    # whole runs

    def test_the_result_is_the_application_s(self) -> None:
        """Capture changes nothing in what the application returns."""
        plan = self._usual()
        with self.recording() as kept:
            same("the answer", self.ask(plan, kept.recorder), plan.answer)

    def test_pool_selection_and_prompt(self) -> None:
        """Pool, selection and prompt set with ids, both scores and ranks, the model, its tokens, the answer."""
        self._needs("reranker")
        plan = self.plan(6, choice=CHOICE)
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            self.same_as_planned(kept.only, plan)
            same("ids in the prompt", kept.only.prompt_ids, (plan.documents[5].id, plan.documents[2].id))
            self._steps_are_whole(kept.only, plan)

    def test_no_reranker(self) -> None:
        """Without a reranker there is no selection: the retriever decided."""
        plan = self.plan(4)
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            self.same_as_planned(kept.only, plan)
            same("reranker steps", [step for step in kept.only.steps if isinstance(step, Rerank)], [])

    def test_a_reranker_that_keeps_all_and_reorders(self) -> None:
        """Another order is a choice too."""
        self._needs("reranker")
        plan = self.plan(3, choice=((2, 0.9), (0, 0.8), (1, 0.7)))
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            self.same_as_planned(kept.only, plan)

    def test_documents_without_ids(self) -> None:
        """The hash of the text joins pool and selection where the application gives no ids."""
        self._needs("no ids", "reranker")
        plan = without_ids(self.plan(6, choice=CHOICE))
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            self.same_as_planned(kept.only, plan)
            pool, selection = (kept.only.record.pool(stage) for stage in ("retrieved", "reranked"))
            same("ids by hash", {one.id[:7] for one in (*pool, *selection)}, {"sha256:"})

    def test_duplicate_ids(self) -> None:
        """Two passages of one id stay two passages of the pool, each with an id of its own."""
        self._needs("duplicate ids")
        whole = self.plan(4)
        documents = tuple(
            dataclasses.replace(one, id="twice") if one.page in {1, 2} else one for one in whole.documents
        )
        plan = dataclasses.replace(whole, documents=documents)
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            pool = kept.only.record.pool("retrieved")
            ids = [chunk_id(one.id, one.text) if one.id == "twice" else one.id for one in documents]
            same("ids of the pool", [one.id for one in pool], ids)
            same("its texts", [one.text for one in pool], [one.text for one in documents])
            same("its scores", [one.score for one in pool], [one.score for one in documents])

    def test_empty_retrieval(self) -> None:
        """An empty pool is a pool: the metrics then know that nothing was found."""
        plan = self.plan(0, choice=() if self._has("reranker") else None)
        with self.recording() as kept:
            answer = self.ask(plan, kept.recorder)
            record = kept.only.record
            same("the question", record.query, plan.question)
            same("the pool", [pool.passages for pool in record.pools if pool.stage == "retrieved"], [()])
            same("passages", [pool.passages for pool in record.pools if pool.passages], [])
            same("the answer", (record.answer, record.outcome), (answer, "answered"))

    def test_a_prompt_that_cuts_its_passages(self) -> None:
        """The record holds the part of each passage that the prompt shows, and that it was cut."""
        plan = self._usual(shown_chars=60)
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            self.same_as_planned(kept.only, plan)

    def test_what_the_request_says(self) -> None:
        """Session, user, corpus and its version, reference, labels, k and tags of one request."""
        request = Request(
            session="s-42",
            user="u-7",
            corpus="faq",
            corpus_version="2026-11",
            reference="In Oslo.",
            labels=LABELS,
            k=2,
            tags=("beta", "paid"),
        )
        plan = self._usual(request=request)
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            self.ask(self.plan(1, question="And then?"), kept.recorder)
            self.same_as_planned(kept.runs[0], plan)
            same("the next request's session", kept.records[1].session, None)
            same("the next request's tags", kept.records[1].tags, ())

    def test_two_turns(self) -> None:
        """The turns before the question are history; the question is the last one's."""
        self._needs("history")
        turns = (Message(role="user", content="Hello."), Message(role="assistant", content="Good day."))
        plan = self._usual(history=turns)
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            self.same_as_planned(kept.only, plan)

    # inside a run that the application opened itself

    def test_inside_a_block_of_the_application(self) -> None:
        """All that is called inside the block is part of its run; the next request is one of its own."""
        self._needs("block")
        plan = self._usual()
        after = self.plan(2, "next", question="And then?")
        with self.recording() as kept:
            with kept.recorder.start(query="Block?"):
                self.ask(plan, kept.recorder)
                same("runs inside the block", kept.runs, [])
            self.ask(after, kept.recorder)
            block, following = kept.records
            same("questions", (block.query, following.query), ("Block?", after.question))
            same("the block's answer", (block.answer, block.outcome), (plan.answer, "answered"))
            same("its pool", [one.id for one in block.pool("retrieved")], [one.id for one in plan.documents])
            same("delivered", len(block.contexts), len(plan.choice or plan.documents))

    def test_the_answer_of_a_block_comes_first(self) -> None:
        """An answer that the application gives its own run is kept."""
        self._needs("block")
        with self.recording() as kept:
            with kept.recorder.start(query="Block?") as run:
                self.ask(self.plan(6), kept.recorder)
                run.answered("In Bergen.", model="mine")
            same("the answer", (kept.only.record.answer, kept.only.record.model), ("In Bergen.", "mine"))

    def test_a_failure_inside_a_block_is_the_block_s(self) -> None:
        """An error that leaves the block makes its run an error."""
        self._needs("block")
        with self.recording() as kept:
            try:
                with kept.recorder.start(query="Block?"):
                    self.ask(self.plan(6, fails="model"), kept.recorder)
            except PlannedFailure:
                record = kept.only.record
                same("the block", (record.query, record.answer, record.outcome), ("Block?", "", "error"))
            else:
                raise AssertionError("the model's error did not leave the block")

    def test_a_block_of_another_recorder_is_left_alone(self) -> None:
        """A run that the application opened on another recorder takes nothing of this one's."""
        self._needs("block")
        plan = self._usual()
        with self.recording() as kept, self.recording() as other:
            with other.recorder.start(query="Other?"):
                self.ask(plan, kept.recorder)
            self.same_as_planned(kept.only, plan)
            same("the other run's pools", other.only.record.pools, ())

    # as real spans, with the SDK's default limits

    def test_a_hundred_documents(self) -> None:
        """Every id, score and rank of 100 candidates survives the SDK's default limits."""
        self._all_survive(100)

    def test_a_thousand_documents(self) -> None:
        """Every id, score and rank of 1,000 candidates survives the SDK's default limits."""
        self._all_survive(1000)

    def test_megabytes_of_documents_make_small_whole_spans(self) -> None:
        """Long texts are cut within the spans' budget: every id stays, and no JSON text is broken."""
        whole = self._usual(50)
        documents = tuple(
            dataclasses.replace(one, text=f"{one.text} " + '"é \\ ' * 6_000) for one in whole.documents
        )
        plan = dataclasses.replace(whole, documents=documents, shown_chars=60)
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            same("attributes are small", _attribute_bytes(kept.spans) <= MOST_ATTRIBUTE_BYTES, expected=True)
            (root,) = _roots(kept.spans)
            same("ids of the pool", _json_of(root, semconv.POOL_IDS), [one.id for one in plan.documents])
            found = kept.spans_of(semconv.OPERATION_RETRIEVAL)
            sizes = [len(_json_of(span, semconv.GEN_AI_RETRIEVAL_DOCUMENTS)) for span in found]
            same("documents of the largest retrieval", max(sizes), len(plan.documents))

    def test_content_none_writes_no_text(self) -> None:
        """In content mode ``none`` spans hold ids, scores and counts, and no text of anybody's."""
        plan = self._usual()
        with self.recording(content="none") as kept:
            self.ask(plan, kept.recorder)
            failing = dataclasses.replace(plan, fails="model", failure=plan.answer)
            self._fails(failing, kept)
            texts = [plan.question, plan.answer, *(document.text[:30] for document in plan.documents)]
            same("texts on spans", [text for text in texts if text in _everything_on(kept.spans)], [])
            root = _roots(kept.spans)[0]
            same("ids of the pool", _json_of(root, semconv.POOL_IDS), [one.id for one in plan.documents])

    def test_redaction_comes_before_anything_is_kept(self) -> None:
        """Nothing that redaction takes out stands anywhere in what is kept, on failures too; ids and scores do."""
        whole = self._usual()
        documents = tuple(dataclasses.replace(one, text=f"{one.text} {SECRET}") for one in whole.documents)
        plan = dataclasses.replace(
            whole, question=f"Where is {SECRET}?", documents=documents, answer=f"{SECRET} is in Oslo."
        )
        with self.recording(redact=lambda text: text.replace(SECRET, "[name]")) as kept:
            same("the answer", self.ask(plan, kept.recorder), plan.answer)
            self._fails(dataclasses.replace(plan, fails="model", failure=SECRET), kept)
            kept_texts = [*map(repr, kept.runs), _everything_on(kept.spans)]
            same("runs that show it", [text for text in kept_texts if SECRET in text], [])
            record = kept.records[0]
            same("question and answer", (record.query, record.answer), ("Where is [name]?", "[name] is in Oslo."))
            wanted = [(one.id, one.score) for one in plan.documents]
            same("the pool", [(one.id, one.score) for one in record.pool("retrieved")], wanted)
            same("delivered", len(record.contexts), len(whole.choice or whole.documents))

    def test_lone_surrogates(self) -> None:
        """Text that is no valid Unicode reaches the application unchanged, and spans and records as U+FFFD."""
        self._needs("surrogates")
        whole = self.plan(3)
        documents = tuple(dataclasses.replace(one, text=f"\ud800 {one.text}") for one in whole.documents)
        plan = dataclasses.replace(whole, question="Where\ud800?", documents=documents, answer="In \udfffOslo.")
        with self.recording() as kept:
            same("the answer", self.ask(plan, kept.recorder), plan.answer)
            record = kept.only.record
            same("question and answer", (record.query, record.answer), ("Where\ufffd?", "In \ufffdOslo."))
            same("passages", [one.text[:2] for one in record.pool("retrieved")], ["\ufffd "] * 3)
            same("in the prompt", len(record.pool("used")), 3)
            _everything_on(kept.spans).encode()

    # failures

    def test_the_retriever_fails(self) -> None:
        """A retriever's error passes on unchanged; the run is an error with an empty pool."""
        with self.recording() as kept:
            plan = self.plan(6, fails="retriever")
            self._fails(plan, kept)
            _failed(kept.only, plan)
            same("passages", [pool.passages for pool in kept.only.record.pools if pool.passages], [])

    def test_the_reranker_fails(self) -> None:
        """A reranker's error leaves the pool, and no selection."""
        self._needs("reranker")
        with self.recording() as kept:
            plan = self.plan(6, choice=CHOICE, fails="reranker")
            self._fails(plan, kept)
            _failed(kept.only, plan)
            same("the pool's length", len(kept.only.record.pool("retrieved")), 6)
            same("the selection", kept.only.record.pool("reranked"), ())

    def test_the_model_fails(self) -> None:
        """A model's error leaves pool, selection and prompt, and no answer."""
        plan = self._usual(fails="model")
        with self.recording() as kept:
            self._fails(plan, kept)
            _failed(kept.only, plan)
            expected = replace(self.expected(plan), answer="", usage=None, model=None, outcome="error")
            same_record(replace(self.plain(kept.only.record), model=None), expected, self.ignored)

    def test_the_next_run_after_a_failure_is_clean(self) -> None:
        """A run that failed leaves nothing to the one behind it."""
        plan = self._usual()
        with self.recording() as kept:
            for stage in ("retriever", "reranker", "model") if self._has("reranker") else ("retriever", "model"):
                self._fails(dataclasses.replace(plan, fails=stage), kept)
                self.ask(plan, kept.recorder)
                self.same_as_planned(kept.runs[-1], plan)
            _are_traces_of_their_own(kept)

    # streams

    def test_a_stream_that_is_read(self) -> None:
        """The reader gets every piece; the record is that of the answer in one."""
        self._needs("stream")
        plan = self._usual()
        with self.recording() as kept:
            same("the answer", "".join(self.stream(plan, kept.recorder)), plan.answer)
            self.same_as_planned(kept.only, plan)
            (call,) = [step for step in kept.only.steps if isinstance(step, Generation)]
            same("a time to the first chunk", call.first_chunk_s is not None, expected=True)

    def test_a_stream_that_is_left_half_read(self) -> None:
        """It ends as ``partial`` with what had come."""
        self._needs("stream")
        plan = self._usual()
        with self.recording() as kept:
            pieces = self.stream(plan, kept.recorder)
            read = next(pieces) + next(pieces)
            del pieces
            gc.collect()
            self._is_half_read(kept.only, plan, read)

    def test_a_stream_that_is_kept_and_not_read_on(self) -> None:
        """The time limit ends it as ``partial`` with what had come; what is read later changes nothing."""
        self._needs("stream")
        plan = self._usual()
        with self.recording() as kept:
            pieces = self.stream(plan, kept.recorder)
            read = next(pieces) + next(pieces)
            kept.recorder.sweep(now=LATER)
            self._is_half_read(kept.only, plan, read)
            same("the answer", read + "".join(pieces), plan.answer)
            same("runs", len(kept.runs), 1)

    def test_a_stream_that_is_never_read(self) -> None:
        """Nothing stays open; where the run had begun, it ends as ``partial`` without an answer."""
        self._needs("stream")
        with self.recording() as kept:
            pieces = self.stream(self.plan(6), kept.recorder)
            del pieces
            gc.collect()
            ends = [(record.outcome, record.answer) for record in kept.records]
            same("ends", ends, [("partial", "")] * len(kept.begun))

    def test_a_stream_that_is_first_read_after_its_time(self) -> None:
        """It is one run: ended by the time limit where it had begun, else begun by the first read."""
        self._needs("stream")
        plan = self.plan(6)
        with self.recording() as kept:
            pieces = self.stream(plan, kept.recorder)
            kept.recorder.sweep(now=LATER)
            had_begun = bool(kept.runs)
            same("the answer", "".join(pieces), plan.answer)
            ended = ("partial", "") if had_begun else ("answered", plan.answer)
            same("runs", [(record.outcome, record.answer) for record in kept.records], [ended])

    def test_a_stream_that_breaks(self) -> None:
        """The model's error reaches the reader behind the pieces that came; the run is an error."""
        self._needs("stream")
        plan = self._usual(fails="model")
        read: list[str] = []
        with self.recording() as kept:
            try:
                read.extend(self.stream(plan, kept.recorder))
            except PlannedFailure:
                same("the outcome", kept.only.record.outcome, "error")
            else:
                raise AssertionError(f"the model's error did not reach the reader, who got {read}")

    # many at once

    def test_async(self) -> None:
        """The same record from the asynchronous form."""
        self._needs("async")
        plan = self._usual()
        with self.recording() as kept:
            same("the answer", asyncio.run(self.aask(plan, kept.recorder)), plan.answer)
            self.same_as_planned(kept.only, plan)

    def test_many_tasks_at_once(self) -> None:
        """Sixteen tasks of one loop do not mix."""
        self._needs("async")
        plans = self._plans(16)

        async def all_of(recorder: Recorder) -> list[str]:
            return await asyncio.gather(*(self.aask(plan, recorder) for plan in plans))

        with self.recording() as kept:
            same("the answers", asyncio.run(all_of(kept.recorder)), [plan.answer for plan in plans])
            self._are_unmixed(kept, plans)

    def test_many_threads_at_once(self) -> None:
        """Eight threads with one application each do not mix."""
        plans = self._plans(8)
        with self.recording() as kept, ThreadPoolExecutor(len(plans)) as pool:
            answers = list(pool.map(lambda plan: self.ask(plan, kept.recorder), plans))
            same("the answers", answers, [plan.answer for plan in plans])
            self._are_unmixed(kept, plans)

    def test_a_batch_of_three(self) -> None:
        """Three at once are three traces, and the next request is one of its own."""
        self._needs("batch")
        plans = self._plans(3)
        after = self.plan(2, "next", question="And then?")
        with self.recording() as kept:
            same("answers", list(self.batch(plans, kept.recorder)), [plan.answer for plan in plans])
            self.ask(after, kept.recorder)
            self._are_unmixed(kept, [*plans, after])

    def test_a_cancelled_task(self) -> None:
        """A run that is cancelled while its model works is ``cancelled``, and no error."""
        self._needs("async", "cancel")

        async def cancelled(kept: Recording) -> None:
            gate = Barrier()
            plan = self._usual(gate=gate)
            task = asyncio.ensure_future(self.aask(plan, kept.recorder))
            await asyncio.wait_for(gate.reached.wait(), 10)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return
            raise AssertionError("the cancellation did not reach the caller")

        with self.recording() as kept:
            asyncio.run(cancelled(kept))
            same("the outcome", kept.only.record.outcome, "cancelled")
            same("failed spans", [span.name for span in kept.spans if span.status.status_code.name == "ERROR"], [])
            same("the pool's length", len(kept.only.record.pool("retrieved")), 6)

    # parts of the tests above

    @contextmanager
    def recording(
        self, *, content: ContentMode = "full", redact: Callable[[str], str] | None = None
    ) -> Iterator[Recording]:
        """Give a `Recording`; when the block ends nothing may be open, remembered or lost."""
        before = internal_errors()
        kept = Recording(content=content, redact=redact)
        yield kept
        gc.collect()
        same("open runs", kept.recorder.open_runs, 0)
        same("remembered events", self.held(kept.recorder), 0)
        same("losses", {site: n for site, n in internal_errors().items() if n != before.get(site)}, {})
        same("spans of runs", len(_roots(kept.spans)), len(kept.begun))

    def plan(self, size: int, prefix: str = "d", **facts: Any) -> Plan:
        """Return a plan of so many documents, with the texts of this suite."""
        made = plan_of(size, prefix, **facts)
        return made if self.texts == "plain" else difficult(made)

    def _usual(self, size: int = 6, **facts: Any) -> Plan:
        return self.plan(size, choice=CHOICE if self._has("reranker") else None, **facts)

    def expected(self, plan: Plan) -> RagRecord:
        """Return the record that this framework's application should leave."""
        record = expected_record(plan, self.selection_source)
        return record if self._has("tokens") else replace(record, usage=None)

    def plain(self, record: RagRecord) -> RagRecord:
        """Return a record without the scores that the framework keeps in a document's metadata."""
        pools = tuple(
            replace(
                pool,
                passages=tuple(
                    replace(one, metadata={k: v for k, v in one.metadata.items() if k not in self.metadata_keys})
                    for one in pool.passages
                ),
            )
            for pool in record.pools
        )
        return replace(record, pools=pools)

    def same_as_planned(self, captured: FinishedRun, plan: Plan) -> None:
        """Do nothing if a record is the plan's, field by field; else raise AssertionError."""
        same_record(self.plain(captured.record), self.expected(plan), self.ignored)

    def _has(self, capability: Capability) -> bool:
        return capability not in self.lacks

    def _needs(self, *capabilities: Capability) -> None:
        for one in capabilities:
            if one in self.lacks:
                raise unittest.SkipTest(f"{one}: {self.lacks[one]}")  # pytest shows the reason

    def _plans(self, count: int) -> list[Plan]:
        return [
            self._usual(prefix=f"run{number}-", question=f"Question {number}?", answer=f"Answer {number}.")
            for number in range(count)
        ]

    def _are_unmixed(self, kept: Recording, plans: Sequence[Plan]) -> None:
        same("runs", len(kept.runs), len(plans))
        by_question = {run.record.query: run for run in kept.runs}
        same("questions", sorted(by_question), sorted(plan.question for plan in plans))
        for plan in plans:
            self.same_as_planned(by_question[plan.question], plan)
        _are_traces_of_their_own(kept)

    def _fails(self, plan: Plan, kept: Recording) -> None:
        try:
            answer = self.ask(plan, kept.recorder)
        except PlannedFailure as error:
            same("the error", str(error), plan.failure)
        else:
            raise AssertionError(f"the {plan.fails}'s error did not reach the caller, who got {answer!r}")

    def _is_half_read(self, captured: FinishedRun, plan: Plan, read: str) -> None:
        record = captured.record
        same("the outcome", (record.query, record.outcome), (plan.question, "partial"))
        if not (record.answer.startswith(read) and plan.answer.startswith(record.answer)):
            raise AssertionError(f"the reader got {read!r} of {plan.answer!r}, and the record {record.answer!r}")
        same("the pool's length", len(record.pool("retrieved")), len(plan.documents))
        same("delivered", len(record.contexts), len(plan.choice or plan.documents))

    def _steps_are_whole(self, captured: FinishedRun, plan: Plan) -> None:
        found = [step for step in captured.steps if isinstance(step, Retrieval)]
        same("ids of the first retrieval", [p.id for p in found[0].passages], [d.id for d in plan.documents])
        same("calls of the model", len([step for step in captured.steps if isinstance(step, Generation)]), 1)
        if not self._has("reranker step"):
            return
        (step,) = [step for step in captured.steps if isinstance(step, Rerank)]
        same("candidates", [p.id for p in step.candidates], [d.id for d in plan.documents])
        same("the candidates' scores", [p.score for p in step.candidates], [d.score for d in plan.documents])
        chosen = [(plan.documents[place].id, score) for place, score in plan.choice or ()]
        same("the reranker's choice", [(p.id, p.score) for p in step.passages], chosen)

    def _all_survive(self, size: int) -> None:
        kept_places = range(0, size, size // 50)
        choice = tuple((place, round(0.99 - number / 100, 2)) for number, place in enumerate(reversed(kept_places)))
        plan = self.plan(size, choice=choice if self._has("reranker") else None)
        with self.recording() as kept:
            self.ask(plan, kept.recorder)
            self.same_as_planned(kept.only, plan)
            _are_within_limits(kept.spans)
            _pool_survives(kept, plan)
            if plan.choice is not None:
                _selection_survives(kept, plan, has_step=self._has("reranker step"))


def _roots(spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
    return [span for span in spans if span.parent is None]


def _json_of(span: ReadableSpan, name: str) -> Any:
    text = (span.attributes or {}).get(name)
    if not isinstance(text, str):
        raise AssertionError(f"{span.name} has no {name}")  # noqa: TRY004 - a test's verdict
    return json.loads(text)


def _everything_on(spans: Sequence[ReadableSpan]) -> str:
    """Return all that spans say, as one text."""
    parts: list[object] = []
    for span in spans:
        events = [(event.name, *(event.attributes or {}).values()) for event in span.events]
        parts += [span.name, *(span.attributes or {}).values(), span.status.description, *events]
    return "\n".join(map(str, parts))


def _attribute_bytes(spans: Sequence[ReadableSpan]) -> int:
    values = (value for span in spans for value in (span.attributes or {}).values())
    return sum(len(str(value).encode()) for value in values)


def _failed(captured: FinishedRun, plan: Plan) -> None:
    record = captured.record
    same("question, answer, outcome", (record.query, record.answer, record.outcome), (plan.question, "", "error"))
    same("what failed", captured.failure.kind if captured.failure else None, "PlannedFailure")
    kinds = {type(step) for step in captured.steps if step.failure is not None}
    if plan.fails == "reranker":
        # One inside a composite retriever fails with that; one that is a function of the chain has no step then.
        kinds = (kinds - {Retrieval}) or {Rerank}
    wanted = {"retriever": Retrieval, "reranker": Rerank, "model": Generation}.get(plan.fails or "")
    same("the kind of the failed step", kinds, {wanted})


def _are_traces_of_their_own(kept: Recording) -> None:
    roots = _roots(kept.spans)
    same("roots", len(roots), len(kept.runs))
    traces = {span.context.trace_id for span in roots if span.context}
    same("traces", len(traces), len(kept.runs))
    strays = [span.name for span in kept.spans if span.context and span.context.trace_id not in traces]
    same("spans outside them", strays, [])


def _are_within_limits(spans: Sequence[ReadableSpan]) -> None:
    same("spans that lost attributes", [span.name for span in spans if span.dropped_attributes], [])
    large = {
        span.name: len(span.attributes or {}) for span in spans if len(span.attributes or {}) > MOST_ATTRIBUTES
    }
    same(f"spans of more than {MOST_ATTRIBUTES} attributes", large, {})


def _pool_survives(kept: Recording, plan: Plan) -> None:
    (root,) = _roots(kept.spans)
    same(semconv.POOL_IDS, _json_of(root, semconv.POOL_IDS), [one.id for one in plan.documents])
    same(semconv.POOL_SCORES, _json_of(root, semconv.POOL_SCORES), [one.score for one in plan.documents])
    wanted = [(one.id, one.score, rank) for rank, one in enumerate(plan.documents, start=1)]
    on_spans = [
        [(row["id"], row["score"], row["rank"]) for row in _json_of(span, semconv.GEN_AI_RETRIEVAL_DOCUMENTS)]
        for span in kept.spans_of(semconv.OPERATION_RETRIEVAL)
    ]
    if wanted not in on_spans:
        raise AssertionError(f"no retrieval span holds all {len(wanted)} documents: {list(map(len, on_spans))}")


def _selection_survives(kept: Recording, plan: Plan, *, has_step: bool) -> None:
    (root,) = _roots(kept.spans)
    choice = plan.choice or ()
    ids, scores = [plan.documents[place].id for place, _ in choice], [score for _, score in choice]
    same(semconv.SELECTED_IDS, _json_of(root, semconv.SELECTED_IDS), ids)
    same(semconv.SELECTED_SCORES, _json_of(root, semconv.SELECTED_SCORES), scores)
    same(semconv.SELECTED_RANKS, _json_of(root, semconv.SELECTED_RANKS), [place + 1 for place, _ in choice])
    same(semconv.PROMPT_IDS, _json_of(root, semconv.PROMPT_IDS), ids)
    if not has_step:
        return
    (step,) = kept.spans_of(semconv.OPERATION_RERANK)
    keys = ("id", "score", "rank", "previous_rank", "retrieval_score")
    rows = [tuple(row[key] for key in keys) for row in _json_of(step, semconv.RERANK_DOCUMENTS)]
    wanted = [
        (plan.documents[place].id, score, rank, place + 1, plan.documents[place].score)
        for rank, (place, score) in enumerate(choice, start=1)
    ]
    same(semconv.RERANK_DOCUMENTS, rows, wanted)
