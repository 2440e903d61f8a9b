"""State of the LangChain runs that are open: a `RunState` for each root, an `OpenSpan` for each open event."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

from langchain_core.runnables.config import var_child_runnable_config

from ragtrace.capture import RecentIds
from ragtrace.capture.evidence import OwnWords
from ragtrace.capture.fork import after_fork_in_child
from ragtrace.text import MAX_REDACTED_CHARS
from ragtrace_langchain.documents import KnownDocuments, columns_of
from ragtrace_langchain.turns import is_resumption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType
    from uuid import UUID

    from langchain_core.documents import Document

    from ragtrace.capture import IntegrationRun, Recorder
    from ragtrace.capture.evidence import Rows
    from ragtrace.capture.types import Operation
    from ragtrace.model import Message, Usage
    from ragtrace_langchain.documents import Columns, Hit
    from ragtrace_langchain.langgraph import Task
    from ragtrace_langchain.messages import ModelFacts
    from ragtrace_langchain.turns import Beginning


Kind = Literal["chain", "tool", "retriever", "model"]


class Delivered(NamedTuple):
    """Documents that a retriever or a choice handed on, and how many prompts had been rendered by then."""

    hits: dict[str, Hit]
    prompts: int
    is_choice: bool
    is_inner: bool = False  # a retriever inside another one


class Choice(NamedTuple):
    """Documents that a chain returned, and the documents that it chose from."""

    span: OpenSpan
    out: dict[str, Hit]
    base: dict[str, Hit]
    ended_ns: int


@dataclass(slots=True, eq=False)
class RunState:
    """State of one root run: the `Run` it writes to and the facts that its events have shown so far."""

    run: IntegrationRun
    is_joined: bool = False  # the application opened the run; `root` stands for its block
    has_retriever: bool = False  # a retriever was called, or the application marked documents
    has_model: bool = False  # a model was called outside retrievers
    has_query: bool = False
    searched_ns: int = 0  # start of the last retriever outside other retrievers
    spoken_ns: int = 0  # end of the last model call outside retrievers; its start while it is open
    is_retrieval_only: bool = False  # the output is no answer, and no model wrote one
    answer: str | None = None  # in the root's output, once the root has ended
    chain_answer: str | None = None  # the answer of the last chain in a joined run
    branches: list[str] = field(default_factory=list)  # answers of branches that ran side by side
    is_check: bool = False  # the root judged an answer that it was given
    said: set[str] = field(default_factory=set)  # texts of models outside retrievers
    spoken_in: dict[tuple[int, str], list[list[str]]] = field(default_factory=dict)  # of nodes, by graph and step
    spoken_at: dict[str, int] = field(default_factory=dict)  # texts of models that a step gave out: its number
    direct: dict[str, str] = field(default_factory=dict)  # results of tools with `return_direct`, by call id
    first_query: str = ""  # of the first retriever outside tools
    inner_question: str = ""  # in the input of an inner chain, for a root whose input has no text
    met: set[int] = field(default_factory=set)  # identities of the documents that events have shown
    lock: threading.RLock = field(default_factory=threading.RLock)  # a stream's finaliser may run inside it
    open: set[object] = field(default_factory=set)  # ids of open events, the root's among them
    seen: dict[str, Hit] = field(default_factory=dict)  # each document as first met
    pool: dict[str, Hit] = field(default_factory=dict)  # the candidates by key
    told: dict[str, Hit] = field(default_factory=dict)  # documents as a choice reported them last
    known: KnownDocuments = field(default_factory=KnownDocuments)
    tasks: dict[str, Task] = field(default_factory=dict)  # that found the candidates first, by key
    is_narrowed: bool = False  # a step chose among the documents
    is_pool_ordered: bool = False  # a step joined or fused results, and `pool` has its order
    is_interrupted: bool = False
    is_left: bool = False  # a generator of the run was closed before its end
    is_concluded: bool = False
    is_described: bool = False  # the call's `configurable` was read
    given: list[Document] | None = None  # the first documents given to a chain before any retrieval
    interrupts: list[str] = field(default_factory=list)  # texts that the run asks a person
    tool_calls: set[str | None] = field(default_factory=set)  # ids of tool calls with a known output
    root: OpenSpan | None = None
    block: OpenSpan | None = None  # `root` of a run that the application opened
    selection_source: str = "chain"
    last_chosen: list[str] = field(default_factory=list)  # keys of the selection reported last
    delivered: list[Delivered] = field(default_factory=list)  # results of retrievers and choices in turn
    taken_back: dict[str, Hit] = field(default_factory=dict)  # results of chains that failed later
    waiting: Choice | None = None  # counts as a choice if a prompt follows, else as citations
    last_reply: str = ""  # what the last model said, thoughts included
    last_text: str = ""  # the answer in it
    is_json_asked: bool = False  # of the last model
    broken_text: str | None = None  # the answer so far of the last model's stream, where that broke
    has_failed: bool = False  # the last model call did
    own: OwnWords = field(default_factory=OwnWords)  # what the run's models said
    replies: list[str] = field(default_factory=list)
    tool_texts: list[str] = field(default_factory=list)
    called_after: dict[str, int] = field(default_factory=dict)  # replies before a tool call, by its id
    joins: dict[str, list[Document]] = field(default_factory=dict)  # passages by the text that joins them
    rows: dict[str, Rows] = field(default_factory=dict)  # of databases, by the first form of their text
    found_by_call: dict[str, list[str]] = field(default_factory=dict)  # keys of documents by the id of a tool call
    shown: list[str] = field(default_factory=list)  # keys of documents in the order of a state or of messages
    is_fused: bool = False  # `pool` has the order of ranks that a step computed
    refused_text: str | None = None  # what the last model said, where its provider declined
    last_called: Mapping[str, object] | None = None  # arguments of the last model's first tool call
    last_model: str | None = None
    usage: Usage | None = None
    # Records an event: in the pipeline's thread, or at once in a run that the application opened.
    record: Callable[..., None] = field(init=False)

    def __post_init__(self) -> None:
        self.record = self._at_once if self.is_joined else self.run.later

    def record_documents(
        self, function: Callable[..., None], *args: object, documents: Sequence[Document], is_given: bool = False
    ) -> None:
        """Record an event that shows documents, which are read now.

        Args:
            function: records the event.
            args: its arguments, which the application must not be able to change.
            documents: the documents that the event shows.
            is_given: a step was given them; those that an event has shown before are not read again.
        """
        if self.is_joined:
            self._at_once(function, *args)
            return
        met = self.met
        if is_given and not met.issuperset(map(id, documents)):
            documents = [document for document in documents if id(document) not in met]
        elif is_given:
            documents = ()
        if not documents:
            self.record(function, *args)
            return
        columns = columns_of(documents)
        met.update(map(id, columns.documents))
        self.record(self._record_read, columns, function, args, chars=columns.chars)

    def _at_once(self, function: Callable[..., None], *args: object) -> None:
        with self.lock:
            function(*args)

    def _record_read(self, columns: Columns, function: Callable[..., None], args: tuple[object, ...]) -> None:
        self.known.take(columns)
        function(*args)

    def forget(self) -> None:
        """Forget the spans and documents, which refer to each other."""
        self.root = self.block = self.given = self.waiting = None
        self.record = self.run.later
        self.seen = {}
        self.pool = {}
        self.told = {}
        self.taken_back = {}
        self.delivered = []
        self.own = OwnWords()
        self.replies = []
        self.tool_texts = []
        self.rows = {}
        self.tasks = {}
        self.joins = {}
        self.known = KnownDocuments()
        self.met = set()
        self.said = set()
        self.spoken_in = {}
        self.spoken_at = {}
        self.direct = {}


@dataclass(slots=True, eq=False)
class OpenSpan:
    """One open event; spans refer to their parents and never to their children."""

    state: RunState
    parent: OpenSpan | None
    kind: Kind
    name: str
    started_ns: int
    within: OpenSpan | None = None  # the nearest retriever above
    within_key: str | None = None  # key of the nearest retriever above, else of the nearest tool
    key: str = ""
    query: str = ""
    source: str = ""
    top_k: int | None = None
    inputs: object = None
    given: list[Document] | None = None  # the documents in `inputs`
    found: dict[str, Hit] = field(default_factory=dict)  # documents delivered inside, less those dropped
    found_ns: int = 0
    sources: int = 0  # number of retriever results behind `found`
    chosen: dict[str, Hit] | None = None  # documents that the last reranker inside kept
    is_narrowed: bool = False
    has_model: bool = False
    step: str = ""  # of a graph's node
    task: Task = ()  # of the graphs that it runs in
    is_sent: bool = False  # in a node that a graph sent a part of its state
    graph: FrameType | None = None  # the frame that runs a graph, while it is open
    beginning: Beginning | None = None  # of the graph that a root, or a chain right inside a block, runs
    is_marked: bool = False  # the application marked documents inside
    results_before: int = 0  # results of searches and choices when it began
    replies_before: int = 0

    def __post_init__(self) -> None:
        self.source = self.source or self.name
        parent = self.parent
        if parent is None:
            return
        self.within, self.within_key = parent.within, parent.within_key
        self.task, self.is_sent = parent.task, parent.is_sent
        if parent.kind == "retriever":
            self.within, self.within_key = parent, parent.key

    @property
    def top(self) -> OpenSpan:
        """The root, or the call right inside the block that this event belongs to."""
        span = self
        while span.parent is not None and span.parent is not span.state.block:
            span = span.parent
        return span

    @property
    def outer_step(self) -> int:
        """The number of the step of the outermost graph that this event belongs to; 0 outside graphs."""
        span: OpenSpan | None = self
        tag = ""
        while span is not None:
            tag, span = span.step or tag, span.parent
        return int(tag.rpartition(":")[2] or 0)

    @property
    def is_resumed(self) -> bool:
        """True for a root whose graph goes on with a saved state."""
        return self.beginning is not None and is_resumption(self.inputs)

    @property
    def is_in_tool(self) -> bool:
        """True inside a tool call."""
        span = self.parent
        while span is not None and span.kind != "tool":
            span = span.parent
        return span is not None

    @property
    def is_in_block(self) -> bool:
        """True right inside the block of a run that the application opened."""
        return self.parent is not None and self.parent is self.state.block

    def is_in(self, above: OpenSpan) -> bool:
        """Tell whether `above` is this span or stands above it."""
        span: OpenSpan | None = self
        while span is not None and span is not above:
            span = span.parent
        return span is above

    def enclosing(self) -> Iterator[OpenSpan]:
        """Yield the spans above, up to the nearest retriever, else up to the root."""
        span = self.parent
        while span is not None:
            yield span
            if span.kind == "retriever":
                return
            span = span.parent


@dataclass(slots=True, eq=False)
class OpenToolCall(OpenSpan):
    """An open tool call."""

    arguments: object = None
    call_id: str | None = None
    call_key: str | None = None
    description: str | None = None
    is_direct: bool = False  # its result is the agent's answer


@dataclass(slots=True, eq=False)
class ModelCall(OpenSpan):
    """An open model call, with the text that it has streamed so far."""

    facts: ModelFacts | None = None
    is_json_asked: bool = False  # structured output, or JSON mode
    operation: Operation = "chat"
    messages: tuple[Message, ...] = ()
    listeners: int = 1  # how often this recorder is told of it: a handler may be given twice, or with its copy
    pieces_told: int = 0
    first_chunk_ns: int = 0
    chunks: int = 0
    streamed: list[str] = field(default_factory=list)
    streamed_chars: int = 0

    def streams(self, token: str, now_ns: int) -> None:
        """Add a streamed piece; those behind the one that passes what `redact` is given are dropped."""
        if not self.first_chunk_ns:
            self.first_chunk_ns = now_ns
        self.chunks += 1
        if token and self.streamed_chars <= MAX_REDACTED_CHARS:
            self.streamed.append(token)
            self.streamed_chars += len(token)


MAX_BURIED = 2_048  # ids kept of what was still open when its root ended
MAX_NESTED = 8  # retrievers noted as open in one context

# Ids of the retrievers that the current code runs inside, innermost first, each behind the map it is open in.
_retrievers: ContextVar[tuple[tuple[RunMap, int], ...]] = ContextVar("ragtrace_langchain_retrievers", default=())
entered_retrievers = _retrievers.get  # in C: mostly there are none


class RunMap:
    """Open events.

    Attributes:
        spans: open events by the number of their run id. A UUID's own hash is a call of Python's, 0.35 us each of
            some hundred a run.

    There is no lock: every change is one dict or set operation. Whoever takes an event off the map reports its end,
    and nobody else. Two handlers of one recorder share a map, so that an event reported by both counts once.
    """

    def __init__(self) -> None:
        self.spans: dict[object, OpenSpan] = {}
        self._states: dict[int, RunState] = {}
        self._joined: dict[int, RunState] = {}
        self._buried = RecentIds(MAX_BURIED)
        after_fork_in_child(self.reset_after_fork)

    def reset_after_fork(self) -> None:
        """Free the locks of the trees, in a forked child: a thread of the parent's may have held one."""
        for state in self._states.values():
            state.lock = RLock()

    def __len__(self) -> int:
        return len(self.spans)

    def get(self, run_id: object) -> OpenSpan | None:
        """Return the open event of this id."""
        return self.spans.get(getattr(run_id, "int", run_id))

    def add(self, run_id: object, span: OpenSpan) -> None:
        """Take an event that began."""
        if span.parent is None:
            span.state.root = span
            self._states[id(span.state)] = span.state
        key = getattr(run_id, "int", run_id)
        span.state.open.add(key)
        self.spans[key] = span
        if span.state.is_concluded:  # another thread ended the run meanwhile, and may not have seen this event
            self.pop(run_id)
            self.bury(run_id)

    def pop(self, run_id: object) -> OpenSpan | None:
        """Take an event off the map, when it ends."""
        key = getattr(run_id, "int", run_id)
        span = self.spans.pop(key, None)
        if span is not None:
            span.state.open.discard(key)
        return span

    def opened(self, state: RunState) -> Iterator[OpenSpan]:
        """Yield the events of a tree that are still open."""
        for run_id in list(state.open):
            span = self.spans.get(run_id)
            if span is not None:
                yield span

    def pop_open(self, state: RunState) -> Iterator[OpenSpan]:
        """Take all events of a tree off the map; what later comes from inside them is ignored, see `is_buried`."""
        for run_id in list(state.open):
            self._buried.add(run_id)
            state.open.discard(run_id)
            span = self.spans.pop(run_id, None)
            if span is not None:
                span.graph = None
                yield span

    def drop(self, state: RunState) -> None:
        """Forget a whole tree."""
        self._states.pop(id(state), None)
        if state.is_joined:
            self._joined.pop(id(state.run), None)

    def join(self, run: IntegrationRun) -> RunState | None:
        """Return the tree of a run that the application opened itself, once `joined` has put it here."""
        state = self._joined.get(id(run))
        return state if state is not None and state.run is run else None

    def joined(self, state: RunState) -> RunState:
        """Put the tree of an application's own run here; of two threads that do so, both get the same one."""
        kept = self._joined.setdefault(id(state.run), state)
        self._states[id(kept)] = kept
        return kept

    def enter_retriever(self, run_id: object) -> None:
        """Note that the code of this context runs inside a retriever, until that is no longer open."""
        outer = tuple((runs, number) for runs, number in _retrievers.get() if runs.get(number) is not None)
        _retrievers.set(((self, getattr(run_id, "int", 0)), *outer[: MAX_NESTED - 1]))

    def entered_retriever(self) -> OpenSpan | None:
        """Return the innermost open retriever that the current code runs inside."""
        for runs, number in _retrievers.get():
            if runs is self and (span := self.spans.get(number)) is not None:
                return span
        return None

    def bury(self, run_id: object) -> None:
        """Remember an id whose children are not to open a run of their own."""
        self._buried.add(getattr(run_id, "int", run_id))

    def is_buried(self, run_id: object) -> bool:
        """Tell whether an id belonged to a root that has ended."""
        return getattr(run_id, "int", run_id) in self._buried

    def left(self) -> Iterator[RunState]:
        """Look at the two oldest trees and yield those whose run has ended, as a failure of ours leaves them.

        Not those that another thread concludes now: nobody waits for that. Two looks for each new root see every
        tree in time, at a constant price.
        """
        for _ in range(2):
            try:
                name, state = next(iter(self._states.items()))
            except (StopIteration, RuntimeError):  # none, or another thread was faster
                return
            self._states.pop(name, None)
            if state.run.is_finished:
                if not state.is_concluded:
                    yield state
            else:
                self._states[name] = state


def current_call() -> tuple[UUID | None, Mapping[str, object]]:
    """Return the id and the ``configurable`` of the LangChain run whose code is executing.

    ``with_fallbacks`` gives its alternatives the caller's callbacks instead of its own (langchain-core 1.7.2), as
    does a chain that calls another with a handler of its own. Both belong to the run they are called in.

    Example:
        >>> current_call()
        (None, {})
    """
    config = var_child_runnable_config.get()
    if not config:
        return None, {}
    return getattr(config.get("callbacks"), "parent_run_id", None), config.get("configurable") or {}


def caller() -> FrameType | None:
    """Return the frame that tells the callbacks of an event; None where a thread or a task of its own does."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - 0.1 µs; inspect.stack reads source files
    while frame is not None and frame.f_globals.get("__name__") != _MANAGER:
        frame = frame.f_back
    while frame is not None and frame.f_globals.get("__name__") == _MANAGER:
        frame = frame.f_back
    return frame


_MANAGER = "langchain_core.callbacks.manager"
_of_facade = RunMap()
_by_recorder: WeakKeyDictionary[Recorder, RunMap] = WeakKeyDictionary()
_names: WeakKeyDictionary[Recorder, str] = WeakKeyDictionary()


def open_events(run_id: object) -> list[OpenSpan]:
    """Return the open events of this id: one for each recorder whose handler the run has."""
    found = [_of_facade.get(run_id)]
    for reference in _by_recorder.keyrefs():  # a list: another thread may add a recorder meanwhile
        recorder = reference()
        runs = _by_recorder.get(recorder) if recorder is not None else None
        found.append(runs.get(run_id) if runs is not None else None)
    return [span for span in found if span is not None]


def runs_of(recorder: Recorder | None) -> RunMap:
    """Return the map of a recorder; None stands for the one of ``ragtrace.configure``.

    Example:
        >>> runs_of(None) is runs_of(None)
        True
    """
    if recorder is None:
        return _of_facade
    return _by_recorder.setdefault(recorder, RunMap())


def name_of(recorder: Recorder | None) -> str:
    """Return a name under which this process finds a recorder again, "" for that of ``ragtrace.configure``.

    Example:
        >>> name_of(None)
        ''
    """
    return "" if recorder is None else _names.setdefault(recorder, uuid4().hex)


def recorder_named(name: str) -> Recorder | None:
    """Return the recorder of this name; None, for that of ``ragtrace.configure``, where this process has none."""
    return next((recorder for recorder, known in list(_names.items()) if known == name), None)
