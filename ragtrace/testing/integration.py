"""What every integration must record, whatever the framework: one application, one vocabulary, the same record.

An author of an integration builds the application of a `Play` out of the framework's own parts in a subclass of
`IntegrationConformance`; the suite plays it and looks at the records. pytest collects the subclass's ``test_*``::

    class TestMine(IntegrationConformance):
        def answer(self, recorder: Recorder, play: Play) -> str:
            return build(play, recorder).run(play.question)

What the framework cannot do stays unwritten, and its tests are skipped with that as the reason.
"""

from __future__ import annotations

import asyncio
import threading
import unittest
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ragtrace.capture import Captured, Generation, Recorder, Rerank, Retrieval, losses
from ragtrace.model import Labels, content_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.capture import TraceRef
    from ragtrace.model import Passage, RagRecord, Stage

SURROGATE = "half a pair \ud83d and on"


@dataclass(slots=True)
class Identity:
    """The ids of a trace that is no span: 1, 2, 3 ... in hex, the same in every test run."""

    trace_id: str
    span_id: str


class Kept:
    """A listener that keeps what was captured. Thread-safe.

    Example:
        >>> kept = Kept()
        >>> Recorder(kept).start(query="Where?").finish()
        >>> kept.records[0].query
        'Where?'
    """

    def __init__(self) -> None:
        self.captured: list[Captured] = []
        self.begun = 0
        self._lock = threading.Lock()

    def started(self, workflow: str, started_ns: int) -> TraceRef:  # noqa: ARG002 - the listener's protocol
        """Name a run that begins."""
        with self._lock:
            self.begun += 1
            return Identity(f"{self.begun:032x}", f"{self.begun:016x}")

    def finished(self, ref: TraceRef, captured: Captured) -> None:  # noqa: ARG002 - the listener's protocol
        """Keep a run that ended."""
        self.captured.append(captured)

    @property
    def records(self) -> list[RagRecord]:
        """The records, in the order in which their runs ended."""
        return [one.record for one in self.captured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doc:
    """A document of the play's index; without an id the integration has to give it one."""

    text: str
    id: str | None = None
    score: float | None = None


def index(size: int = 6, name: str = "d") -> tuple[Doc, ...]:
    """Return documents with ids and falling scores.

    Example:
        >>> [doc.id for doc in index(2)]
        ['d0', 'd1']
    """
    return tuple(
        Doc(id=f"{name}{i}", text=f"Passage {name}{i} says that the lab moved {i} times.", score=1 - i / (2 * size))
        for i in range(size)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """An application and one request to it.

    Attributes:
        documents: what the retriever returns, best first.
        chosen: places in `documents` with the reranker's score, best first; None: there is no reranker.
        question: the query.
        answer: what the model says, in the pieces in which it streams.
        shown_chars: how much of each passage the formatter puts into the prompt; None: all.
        fails: the part that raises ``ConnectionError("down")``.
        request: per-request data by the names of `RagRecord`: session, user, corpus, corpus_version, tags,
            reference, labels (``{id: grade}``), k.
        model: name of the model.
    """

    documents: tuple[Doc, ...] = field(default_factory=index)
    chosen: tuple[tuple[int, float], ...] | None = ((3, 0.9), (1, 0.8))
    question: str = "Where is the lab?"
    answer: tuple[str, ...] = ("The lab ", "is in ", "Oslo.")
    shown_chars: int | None = None
    fails: Literal["retriever", "reranker", "model"] | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    model: str = "stage-1"

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(self.answer)

    @property
    def selection(self) -> tuple[Doc, ...]:
        """What reaches the prompt, in its order."""
        if self.chosen is None:
            return self.documents
        return tuple(self.documents[place] for place, _ in self.chosen)


def named(docs: Sequence[Doc]) -> list[str]:
    """Return the ids that a record must show: the documents' own, else the hashes of their texts."""
    return [doc.id or content_id(doc.text) for doc in docs]


def essence(record: RagRecord) -> dict[str, Any]:
    """Return what two records of one play must share, whatever the framework: all but ids of traces and times.

    Left out too: `workflow` (each framework names its root), `selection_source` (how the choice became known) and
    `source` and `metadata` of passages (a framework's own).
    """
    stages: tuple[Stage, ...] = ("retrieved", "reranked", "used")
    return {
        "query": record.query,
        "answer": record.answer,
        "outcome": record.outcome,
        "model": record.model,
        "session": record.session,
        "user": record.user,
        "corpus": record.corpus,
        "corpus_version": record.corpus_version,
        "reference": record.reference,
        "labels": record.labels,
        "k": record.k,
        "tags": record.tags,
        "pools": {stage: [_shown(p) for p in record.pool(stage)] for stage in stages},
    }


def _shown(passage: Passage) -> tuple[Any, ...]:
    return passage.id, passage.text, passage.rank, passage.score, passage.truncated


class IntegrationConformance:
    """The suite; see the module. Each test gets a recorder of its own."""

    def answer(self, recorder: Recorder, play: Play) -> str:
        """Run the application once with `recorder` behind the integration, and return its answer."""
        raise NotImplementedError

    async def aanswer(self, recorder: Recorder, play: Play) -> str:
        """Do the same in asyncio."""
        raise NotImplementedError

    def stream(self, recorder: Recorder, play: Play) -> Iterator[str]:
        """Do the same, streaming the answer's pieces as the framework does."""
        raise NotImplementedError

    def batch(self, recorder: Recorder, plays: Sequence[Play]) -> list[str]:
        """Run several requests through the framework's own batch call."""
        raise NotImplementedError

    # -- the chain: pool, selection, prompt, answer --

    def test_pool_selection_and_prompt_with_ids_scores_and_ranks(self) -> None:
        """Pool, selection and prompt set have ids, both scores and ranks."""
        play = Play()
        record = self._record(play)
        _pool_is(record, play)
        assert _column(record, "reranked") == [("d3", 1, 0.9), ("d1", 2, 0.8)]
        assert [p.id for p in record.pool("used")] == ["d3", "d1"]
        assert (record.query, record.answer, record.outcome) == (play.question, play.text, "answered")
        assert record.model == play.model

    def test_a_step_for_the_retriever_the_reranker_and_the_model(self) -> None:
        """Retriever, reranker and model are a step each, in order, with times that make sense."""
        captured = self._captured(Play())
        assert [type(step) for step in captured.steps] == [Retrieval, Rerank, Generation]
        for step in captured.steps:
            assert captured.started_ns <= step.started_ns <= step.ended_ns <= captured.ended_ns
        rerank = captured.steps[1]
        assert isinstance(rerank, Rerank)
        assert [p.id for p in rerank.candidates] == [f"d{i}" for i in range(6)]

    def test_documents_without_ids_join_by_their_text(self) -> None:
        """A document without an id is named by its text's hash, the same in pool and selection."""
        play = Play(documents=tuple(replace(doc, id=None) for doc in index()))
        record = self._record(play)
        assert [p.id for p in record.pool("retrieved")] == named(play.documents)
        assert [p.id for p in record.pool("reranked")] == named(play.selection)
        assert [p.id for p in record.pool("used")] == named(play.selection)

    def test_without_a_reranker_there_is_no_selection_of_its_own(self) -> None:
        """An application without a reranker has a pool and a prompt set and no reranker step."""
        play = Play(chosen=None)
        captured = self._captured(play)
        assert [type(step) for step in captured.steps] == [Retrieval, Generation]
        assert captured.record.pool("reranked") == ()
        assert [p.id for p in captured.record.contexts] == named(play.documents)

    def test_an_empty_retrieval_is_an_empty_pool(self) -> None:
        """A retriever that finds nothing leaves an empty pool, not a missing one."""
        record = self._record(Play(documents=(), chosen=None))
        assert ("retrieved", ()) in [(pool.stage, pool.passages) for pool in record.pools]

    def test_a_formatter_that_cuts_is_seen(self) -> None:
        """A passage of which the prompt shows only the beginning comes back with that, and its full length."""
        long = tuple(replace(doc, text=f"{doc.text} {'And on it goes. ' * 20}".strip()) for doc in index())
        play = Play(documents=long, shown_chars=100)
        used = self._record(play).pool("used")
        assert [(p.id, p.text, p.truncated) for p in used] == [
            (doc.id, doc.text[:100].rstrip(), len(doc.text)) for doc in play.selection
        ]

    def test_a_hundred_and_a_thousand_documents_are_all_kept(self) -> None:
        """Every id, score and rank of a large pool is in the record."""
        for size in (100, 1_000):
            play = Play(
                documents=index(size), chosen=tuple((place, 0.5) for place in range(size - 1, size - 9, -1))
            )
            record = self._record(play)
            _pool_is(record, play)
            assert [p.id for p in record.pool("reranked")] == named(play.selection)

    # -- what goes wrong --

    def test_an_error_in_each_part_is_the_runs_and_the_steps(self) -> None:
        """A part that raises makes the run an error, marks its step, and what came before stays."""
        for part, kind in (("retriever", Retrieval), ("model", Generation)):
            captured = self._failing(part)
            assert (captured.record.outcome, captured.record.answer) == ("error", "")
            failed = [step for step in captured.steps if step.failure is not None]
            assert [type(step) for step in failed] == [kind]
            assert failed[0].failure is not None
            assert failed[0].failure.kind == "ConnectionError"
            assert captured.failure is not None
        assert [p.id for p in self._failing("reranker").record.pool("retrieved")] == named(index())

    def test_the_application_sees_its_own_error(self) -> None:
        """The exception that reaches the caller is the application's."""
        recorder = Recorder(Kept())
        try:
            self.answer(recorder, Play(fails="model"))
        except ConnectionError as error:
            assert str(error) == "down"  # noqa: PT017 - pytest is not imported here
        else:
            raise AssertionError("the error was swallowed")

    def test_texts_that_are_no_valid_unicode_are_mended(self) -> None:
        """A lone surrogate in a passage reaches neither the record nor the wire, and harms nothing."""
        documents = (replace(index()[0], text=SURROGATE), *index()[1:])
        record = self._record(Play(documents=documents, chosen=((0, 0.9),)))
        for pool in record.pools:
            for passage in pool.passages:
                passage.text.encode()
        assert record.pool("retrieved")[0].text == SURROGATE.replace("\ud83d", "\ufffd")

    def test_redaction_runs_before_anything_is_kept(self) -> None:
        """No text of the record, of a step or of a message holds what the redaction removes."""
        play = Play(question="Where is the lab of Ada?", answer=("Ada's lab ", "is in Oslo."))
        play = replace(play, documents=tuple(replace(doc, text=f"Ada: {doc.text}") for doc in index()))
        captured = self._captured(play, redact=lambda text: text.replace("Ada", "[name]"))
        assert "Ada" not in repr(captured)
        assert "[name]" in captured.record.query
        assert "[name]" in captured.record.answer
        assert [p.id for p in captured.record.pool("used")] == ["d3", "d1"]

    # -- how it is run --

    def test_async_is_the_same(self) -> None:
        """In asyncio the application gives the record that the synchronous call gives."""
        recording, recorder = _recorder()
        self._only_if(IntegrationConformance.aanswer)
        assert asyncio.run(self.aanswer(recorder, Play())) == Play().text
        assert essence(_only(recording).record) == essence(self._record(Play()))

    def test_sixty_four_at_once_do_not_mix(self) -> None:
        """Concurrent requests are runs of their own, each with its own documents."""
        self._only_if(IntegrationConformance.aanswer)
        recording, recorder = _recorder()
        plays = [Play(question=f"Where is {i}?", documents=index(name=f"r{i}-")) for i in range(64)]

        async def together() -> None:
            await asyncio.gather(*(self.aanswer(recorder, play) for play in plays))

        asyncio.run(together())
        assert len(recording.captured) == 64
        by_question = {record.query: record for record in recording.records}
        for play in plays:
            _pool_is(by_question[play.question], play)

    def test_a_batch_is_a_run_for_each_and_the_next_is_clean(self) -> None:
        """Three inputs of a batch are three runs, and the request behind it is one more."""
        self._only_if(IntegrationConformance.batch)
        recording, recorder = _recorder()
        plays = [Play(question=f"Where is {i}?") for i in range(3)]
        assert self.batch(recorder, plays) == [play.text for play in plays]
        self.answer(recorder, Play(question="And then?"))
        assert sorted(r.query for r in recording.records[:3]) == [play.question for play in plays]
        assert [r.query for r in recording.records[3:]] == ["And then?"]
        assert recorder.open_runs == 0

    def test_a_stream_that_is_read_is_whole(self) -> None:
        """Question and answer of a stream are whole on the run, like those of a call."""
        self._only_if(IntegrationConformance.stream)
        recording, recorder = _recorder()
        assert "".join(self.stream(recorder, Play())) == Play().text
        assert essence(_only(recording).record) == essence(self._record(Play()))

    def test_a_stream_that_is_closed_is_partial(self) -> None:
        """A stream that is abandoned ends its run as partial, with what had come."""
        self._only_if(IntegrationConformance.stream)
        recording, recorder = _recorder()
        stream = self.stream(recorder, Play())
        first = next(stream)
        getattr(stream, "close", lambda: None)()
        del stream
        record = _only(recording).record
        assert (record.outcome, record.query) == ("partial", Play().question)
        assert record.answer.startswith(first)
        assert record.answer != Play().text
        assert recorder.open_runs == 0

    def test_a_stream_that_is_leaked_ends_by_the_sweep(self) -> None:
        """A stream that is kept and never read on ends as partial by the time limit, with what had come."""
        self._only_if(IntegrationConformance.stream)
        recording, recorder = _recorder()
        stream = self.stream(recorder, Play())
        first = next(stream)
        recorder.sweep(now=1e12)
        record = _only(recording).record
        assert (record.outcome, recorder.open_runs) == ("partial", 0)
        assert record.answer.startswith(first)
        assert [p.id for p in record.pool("reranked")] == ["d3", "d1"]
        for _ in stream:  # what comes later is ignored
            pass
        assert len(recording.captured) == 1

    # -- what a request says of itself --

    def test_what_a_request_says_is_on_its_record(self) -> None:
        """Session, user, corpus, tags, reference, labels and k of a request are on its record, and on no other."""
        said = {
            "session": "s-42",
            "user": "u-7",
            "corpus": "faq",
            "corpus_version": "2026-11",
            "tags": ("beta",),
            "reference": "In Oslo.",
            "labels": {"d3": 5, "d1": 2},
            "k": 2,
        }
        recording, recorder = _recorder()
        self.answer(recorder, Play(request=said))
        self.answer(recorder, Play())
        first, second = recording.records
        assert first.labels == Labels(grades=said["labels"])  # type: ignore[arg-type]
        assert {name: getattr(first, name) for name in said if name != "labels"} == {
            name: value for name, value in said.items() if name != "labels"
        }
        assert (second.session, second.user, second.corpus, second.labels, second.k) == (None,) * 5

    # -- inside --

    def _only_if(self, method: Any) -> None:
        if getattr(type(self), method.__name__) is method:
            raise unittest.SkipTest(f"{type(self).__name__} has no {method.__name__}()")

    def _captured(self, play: Play, **options: Any) -> Captured:
        recording, recorder = _recorder(**options)
        before = losses()
        assert self.answer(recorder, play) == play.text
        assert losses() == before, "the integration lost data"
        assert recorder.open_runs == 0
        return _only(recording)

    def _record(self, play: Play) -> RagRecord:
        return self._captured(play).record

    def _failing(self, part: Any) -> Captured:
        recording, recorder = _recorder()
        try:
            self.answer(recorder, Play(fails=part))
        except ConnectionError:
            pass
        else:
            raise AssertionError(f"the error of the {part} was swallowed")
        assert recorder.open_runs == 0
        return _only(recording)


def _recorder(**options: Any) -> tuple[Kept, Recorder]:
    recording = Kept()
    return recording, Recorder(recording, **options)


def _only(recording: Kept) -> Captured:
    assert len(recording.captured) == 1, [record.query for record in recording.records]
    return recording.captured[0]


def _column(record: RagRecord, stage: Stage) -> list[tuple[str, int, float | None]]:
    return [(p.id, p.rank, p.score) for p in record.pool(stage)]


def _pool_is(record: RagRecord, play: Play) -> None:
    expected = [(doc.id, rank, doc.score) for rank, doc in enumerate(play.documents, start=1)]
    assert _column(record, "retrieved") == expected
