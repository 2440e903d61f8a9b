"""The recorder: the one API that integrations and the manual form write to."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ragtrace.capture.citations import parts_of_run
from ragtrace.capture.clamp import clean_text, shown
from ragtrace.capture.collecting import is_collecting
from ragtrace.capture.fitting import fitted
from ragtrace.capture.guard import guarded, record_internal_error
from ragtrace.capture.own import is_own_work
from ragtrace.capture.passages import ReadPassages, distinct, ranked, sourced_passage
from ragtrace.capture.prompt import found_in
from ragtrace.capture.prompt_set import prompt_set
from ragtrace.capture.redact import safe
from ragtrace.capture.run import MAX_NAME_CHARS, Run
from ragtrace.capture.steps import FinishedRun, Generation
from ragtrace.capture.texts import count_unread, shown_texts
from ragtrace.model import Pool, RagRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ragtrace.model import AnswerPart, Outcome, Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run and one process; the record's `lossy` counts what they cut.

    Sizes are in characters, so that a text in any language is cut at the same length.
    """

    passage_chars: int = 65_536
    record_chars: int = 262_144  # of all passages' texts
    fact_chars: int = 1_048_576  # of all passages' ids, sources and metadata
    text_chars: int = 65_536  # of an answer, a query, a reference, a message, and of the whole history
    open_runs: int = 4_096
    run_idle_s: float = 600.0


class TraceRef(Protocol):
    """A started root span: its ids, and whatever the listener needs to end it."""

    trace_id: str
    span_id: str


class RunProcessor(Protocol):
    """What the service hangs on the recorder. Called in the application's thread: neither blocks nor does I/O."""

    def on_start(self, workflow: str, started_ns: int) -> TraceRef:
        """Begin the trace of a run."""
        ...

    def on_end(self, ref: TraceRef, captured: FinishedRun) -> None:
        """Take a finished run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """What a run begins with and keeps; replaced as a whole, so that none begins with a part of two.

    Attributes:
        listener: takes finished runs; None keeps nothing (recording is then cheap and harmless).
        redact: applied to every text before it is kept.
        workflow: name of runs that give none.
        environment: deployment name written on every record.
        span_metadata: names of request metadata that `Run.add_metadata` keeps.
    """

    listener: RunProcessor | None = None
    redact: Callable[[str], str] | None = None
    workflow: str = "rag"
    environment: str | None = None
    span_metadata: tuple[str, ...] = ()


class Recorder:
    """Opens runs and hands each finished one to its listener as a `FinishedRun`.

    Thread-safe. At most `Limits.open_runs` stay open: the longest idle is ended as ``partial`` for a new one.

    Args:
        listener: takes finished runs; None keeps nothing (recording is then cheap and harmless).
        redact: applied to every text before it is kept; a failure drops the text.
        limits: what may be kept.
        workflow: name of runs that give none.
        environment: deployment name written on every record.
        span_metadata: names of request metadata that a run keeps.

    Attributes:
        setup: what the next run begins with.

    Example:
        >>> recorder = Recorder()
        >>> run = recorder.start(query="Where is the lab?")
        >>> run.finish()
        >>> recorder.open_runs
        0
    """

    def __init__(
        self,
        listener: RunProcessor | None = None,
        *,
        redact: Callable[[str], str] | None = None,
        limits: Limits | None = None,
        workflow: str = "rag",
        environment: str | None = None,
        span_metadata: Iterable[str] = (),
    ) -> None:
        self.setup = RunConfig(
            listener=listener,
            redact=safe(redact),
            workflow=workflow,
            environment=environment,
            span_metadata=tuple(span_metadata),
        )
        self.limits = limits or Limits()
        self._lock = threading.Lock()
        self._open: dict[int, Run] = {}
        self._aside: deque[tuple[Run, Outcome, int]] = deque()

    @property
    def open_runs(self) -> int:
        """Runs begun and not yet ended."""
        return len(self._open)

    def start(
        self,
        *,
        query: str | None = None,
        workflow: str | None = None,
        session: str | None = None,
        user: str | None = None,
        corpus: str | None = None,
        corpus_version: str | None = None,
        tags: Iterable[str] = (),
        k: int | None = None,
        started_ns: int | None = None,
    ) -> Run:
        """Open a run; never raises. One that begins in `own_work` is not kept.

        Args:
            query: the question; `Run.set_query` may give it later.
            workflow: name of the application or chain.
            session: conversation id; never invented.
            user: end user's id.
            corpus: name of the index searched.
            corpus_version: its version.
            tags: free labels; a text is one.
            k: cut-off of @K metrics; default the number of contexts delivered.
            started_ns: Unix ns; default now.
        """
        if self._aside:
            self.take_up()
        run = Run(self, {}, started_ns or time.time_ns())
        self._begin(run, workflow)
        if query is not None:
            run.set_query(query)
        if session is not None or user is not None or corpus is not None or corpus_version is not None:
            run.set_attributes(session=session, user=user, corpus=corpus, corpus_version=corpus_version)
        if type(tags) is not tuple or tags:  # anything may stand here, also what has no truth value
            run.add_tags(tags)
        if k is not None:
            run.set_k(k)
        return run

    @guarded
    def _begin(self, run: Run, workflow: str | None) -> None:
        name = clean_text(shown(workflow) or run.setup.workflow, MAX_NAME_CHARS)[0]
        run.facts["workflow"] = name
        run.facts["environment"] = run.setup.environment
        run.listener = None if is_own_work() else run.setup.listener
        if run.listener is not None:
            run.ref = run.listener.on_start(name, run.started_ns)
        with self._lock:
            self._open[id(run)] = run
            oldest = min(self._open.values(), key=_touched) if len(self._open) > self.limits.open_runs else None
        if oldest is not None:
            record_internal_error("ragtrace.capture.recorder.open_runs")
            oldest.finish("partial")

    def close(self, run: Run, outcome: Outcome, ended_ns: int) -> None:
        """Take a run off the list and hand it to the listener; called by `Run.finish` once a run.

        A run that the garbage collector ends is put aside until the next start or sweep.
        """
        if is_collecting():
            self._aside.append((run, outcome, ended_ns))
            return
        with self._lock:
            self._open.pop(id(run), None)
        if run.listener is None or run.ref is None:
            return
        run.listener.on_end(run.ref, captured(run, outcome, ended_ns))

    def forget(self, run: Run) -> None:
        """Take a run off the list without handing it on; called by `Run.discard`."""
        with self._lock:
            self._open.pop(id(run), None)

    @guarded
    def take_up(self) -> None:
        """Hand on the runs that were put aside."""
        while self._aside and not is_collecting():
            try:
                run, outcome, ended_ns = self._aside.popleft()
            except IndexError:  # another thread was faster
                return
            self.close(run, outcome, ended_ns)

    @guarded
    def end_all(self) -> None:
        """End every open run as ``partial``: at a shutdown, so that no span stays open."""
        self.take_up()
        with self._lock:
            left = list(self._open.values())
        self._end(left)

    @guarded
    def sweep(self, now: float | None = None) -> None:
        """End runs that were idle longer than `Limits.run_idle_s` as ``partial``.

        Args:
            now: seconds of the monotonic clock; default now.
        """
        self.take_up()
        limit = (time.monotonic() if now is None else now) - self.limits.run_idle_s
        with self._lock:
            idle = [run for run in self._open.values() if run.touched < limit]
        self._end(idle)

    def _end(self, runs: list[Run]) -> None:
        for run in runs:
            run.finish("partial")
        with self._lock:  # a run whose end failed half-way would stay on the list for ever
            for run in runs:
                self._open.pop(id(run), None)

    def reset_after_fork(self) -> None:
        """Forget the parent's open runs and take a fresh lock, in a forked child."""
        self._lock = threading.Lock()
        self._open = {}
        self._aside = deque()


def _touched(run: Run) -> float:
    return run.touched


def captured(run: Run, outcome: Outcome, ended_ns: int) -> FinishedRun:
    """Build the record and the steps of a run that ends now."""
    limits = run.limits
    seen = _with_texts(run, _stages(run))
    pools = _pools(run, seen)
    if not pools and (unread := count_unread(run)):
        run.lossy["context_unread"] = unread
    if run.reader.left_out:
        run.lossy["passages"] = run.reader.left_out
    facts = _known(run.facts, seen.k)
    if outcome == "answered" and "answer_parts" not in facts:
        facts["answer_parts"] = _parts(run, facts.get("answer", ""), pools)
    ref = run.ref
    trace_id, span_id = (ref.trace_id, ref.span_id) if ref else ("", "")
    record = RagRecord(
        id=f"{trace_id}-{span_id}",
        trace_id=trace_id,
        span_id=span_id,
        pools=pools,
        selection_source=seen.source if seen.retrieved or seen.selected else None,
        feedback=tuple(run.given_feedback),
        started=run.started_ns / 1e9,
        ended=ended_ns / 1e9,
        outcome=outcome,
        lossy=dict(run.lossy),
        **facts,
    )
    return FinishedRun(
        record=fitted(
            record,
            text_chars=limits.text_chars,
            passage_chars=limits.record_chars,
            fact_chars=limits.fact_chars,
        ),
        steps=tuple(run.steps),
        started_ns=run.started_ns,
        ended_ns=ended_ns,
        failure=run.failure,
        prompt_ids=seen.prompt_ids,
    )


class _Stages(NamedTuple):
    """The passages of a run by stage; None for a stage that was not seen."""

    retrieved: tuple[Passage, ...]
    selected: tuple[Passage, ...] | None
    used: tuple[Passage, ...] | None
    prompt_ids: tuple[str, ...] | None
    source: str
    k: int | None


def _stages(run: Run) -> _Stages:
    retrieved = run.candidates()
    selected = None if run.selection is None else _sourced(run.selection, retrieved)
    used, prompt_ids = _used(run, selected if selected is not None else retrieved)
    source = run.selection_source or _implied_source(retrieved, used)
    if used is not None and selected is None and run.has_parallel_results():
        retrieved = _as_shown(retrieved, used)
    return _Stages(retrieved, selected, used, prompt_ids, source, run.facts.get("k"))


def _as_shown(pool: tuple[Passage, ...], used: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """Return the pool of parallel searches in the prompt's order; the rest of it stands behind that."""
    places = {passage.id: place for place, passage in enumerate(used)}
    return ranked(sorted(pool, key=lambda passage: places.get(passage.id, len(places))))


def _with_texts(run: Run, seen: _Stages) -> _Stages:
    """Return the stages with the tool outputs and joined contexts that the answer was made of.

    They are the pool where nothing was searched, and else stand behind the documents among what was used. Rankings
    are then cut at the last document, so that another tool's output changes none of them.
    """
    if not run.texts or run.used_passages is not None:
        return seen
    is_searched = _has_searched(run)
    texts = shown_texts(run, seen.retrieved, is_searched=is_searched)
    if not texts:
        return seen
    ids = (*(seen.prompt_ids or ()), *(text.id for text in texts))
    if not is_searched:
        return seen._replace(retrieved=texts, used=texts, prompt_ids=ids, source="prompt")
    delivered = seen.selected if seen.selected is not None else seen.retrieved
    documents = seen.used if seen.used is not None else delivered
    k = seen.k if seen.k is not None else len(documents) or None
    return seen._replace(used=(*documents, *texts), prompt_ids=ids, k=k)


def _has_searched(run: Run) -> bool:
    has_passages = run.selection is not None or run.pool_order is not None or run.used_passages is not None
    return has_passages or bool(run.retrievals())


def _parts(run: Run, answer: str, pools: tuple[Pool, ...]) -> tuple[AnswerPart, ...]:
    """Return the answer's sentences with what they cite; () where nothing is cited."""
    if not pools:
        return ()
    replies = (said.content for step in run.steps if isinstance(step, Generation) for said in step.outputs)
    prompts = run.prompts if run.used_text is None else [*run.prompts, run.used_text]
    return parts_of_run(answer, pools[-1].passages, pools[0].passages, prompts, replies, run.passage_labels)


def _sourced(chosen: tuple[Passage, ...], pool: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """Return a selection with the sources of the pool, where a reranker's documents carry none."""
    if all(p.source is not None for p in chosen) or all(p.source is None for p in pool):
        return chosen
    sources = {p.id: p.source for p in pool}
    return ReadPassages(p if p.source is not None else sourced_passage(p, sources.get(p.id)) for p in chosen)


def _known(facts: dict[str, Any], k: int | None) -> dict[str, Any]:
    # A copy in one call: a step that ends late, in another thread, may add a fact meanwhile.
    known = facts.copy()
    known["k"] = k
    return {name: value for name, value in known.items() if value is not None}


def _implied_source(retrieved: tuple[Passage, ...], used: tuple[Passage, ...] | None) -> str:
    """Say how the selection is known when nobody chose: the prompt showed fewer, or the retriever decided."""
    return "prompt" if used is not None and len(used) < len(retrieved) else "retriever"


def _used(run: Run, delivered: tuple[Passage, ...]) -> tuple[tuple[Passage, ...] | None, tuple[str, ...] | None]:
    """Return the passages that the answer was made of, and their ids; None where no prompt was seen."""
    if run.used_passages is not None:
        named = found_in(run.used_text, distinct(delivered)) if run.used_text is not None else ()
        used = named or run.used_passages
        return used, tuple(p.id for p in used)
    if not run.prompts:
        return None, None
    if not delivered:
        return None, ()
    found = prompt_set(run.prompts, run.steps, run.facts.get("answer", ""), distinct(delivered))
    if found:
        return found, tuple(p.id for p in found)
    # The prompt shows none of them: a formatter rewrote them, so what was delivered stays what is scored.
    run.lossy["prompt_unmatched"] = len(delivered)
    return None, ()


def _pools(run: Run, seen: _Stages) -> tuple[Pool, ...]:
    pools = []
    if seen.retrieved or run.retrievals():
        pools.append(Pool(stage="retrieved", passages=ranked(seen.retrieved)))
    if seen.selected is not None:
        pools.append(Pool(stage="reranked", passages=seen.selected))
    if seen.used is not None:
        pools.append(Pool(stage="used", passages=ranked(seen.used)))
    return tuple(pools)
