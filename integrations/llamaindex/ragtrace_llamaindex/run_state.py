"""State of the LlamaIndex calls that are open: a `RunState` for each root, an `OpenSpan` for each span recorded."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import ragtrace
from ragtrace.capture import NO_SERVER, Defaults, OwnWords, Server, current_run, describe
from ragtrace_llamaindex.request import said

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ragtrace.capture import IntegrationRun, Rows
    from ragtrace.capture.passages import ReadPassages
    from ragtrace.capture.types import Operation
    from ragtrace.model import Message, Passage, Usage
    from ragtrace_llamaindex.nodes import NodeColumns
    from ragtrace_llamaindex.span_kinds import Kind
    from ragtrace_llamaindex.workflow_state import Saved


MAX_IDS = 16_384  # of spans that have ended, of one tree


@dataclass(slots=True, eq=False)
class RunState:
    """State of one outermost call, and the `Run` it writes to.

    A call gets a run at its first step that is worth one: a search, a model call, a query.
    """

    defaults: Defaults
    run: IntegrationRun | None = None
    root: OpenSpan | None = None
    arguments: Mapping[str, object] | None = None  # of a root without a run
    interrupt: object = None  # the last input that a workflow asked a person for
    journals: list[object] = field(default_factory=list)  # what the runtime keeps of the workflows in the run
    saved: Saved | None = None  # what the workflow's context held when the run began
    error: BaseException | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)  # a stream's finaliser may run inside it
    ids: list[str] = field(default_factory=list)  # of ended spans too, since tasks may outlive them
    open: set[OpenSpan] = field(default_factory=set)
    streams: set[Stream] = field(default_factory=set)
    raw: dict[object, object] = field(default_factory=dict)  # text of each node by id, as first seen
    seen: dict[str, Passage] = field(default_factory=dict)
    pieces: dict[str, tuple[Passage, str]] = field(default_factory=dict)  # passage and text by citation number
    chunks: dict[str, list[str]] = field(default_factory=dict)  # texts that searches found under one id
    renamed: dict[tuple[str, str], str] = field(default_factory=dict)  # ids of chunks by the old id and the text
    parts: dict[str, list[str]] = field(default_factory=dict)  # texts of passages that a step gave out in several
    stands_for: dict[str, dict[str, Passage]] = field(default_factory=dict)  # passages behind an engine's answer
    explicit: ReadPassages | None = None  # the selection that the application marked
    is_narrowed: bool = False
    is_ended: bool = False
    is_joined: bool = False  # the application opened the run; `root` stands for its block
    is_model_asked: bool = False  # a model was asked after the last search
    is_cancelled: bool = False
    is_waiting: bool = False  # the root has returned and its answer is being read
    is_partial: bool = False
    is_searched: bool = False
    is_resumed: bool = False  # the root is a workflow that goes on from a saved context
    is_agent: bool = False
    is_retried: bool = False  # an engine shows its model the answer that was given up
    has_query: bool = False  # else `question` is what a search was asked, and stands in
    question: str = ""
    texts: tuple[str, ...] = ()  # of the input that names its question in its own way
    told: frozenset[str] = frozenset()  # answers of earlier turns that the context holds
    examples: tuple[Message, ...] = ()  # turns that a chat engine puts before its memory
    is_told: bool = False  # the history is known
    keeps_turns: bool = False  # the root is a chat engine or an agent
    last: ReadPassages | None = None  # the list delivered or chosen last, in any scope
    answer: str | None = None
    given_out: tuple[str, ...] = ()  # texts of a result that names its answer in its own way
    last_reply: str = ""  # what the last model said, thoughts included
    last_text: str = ""  # the answer in it
    is_json_asked: bool = False  # of the last model
    is_broken: bool = False  # the last model's stream broke, and `last_text` is the answer so far
    said: list[str] = field(default_factory=list)  # by models and tools of this run
    own: OwnWords = field(default_factory=OwnWords)  # what the run's models said
    rows: dict[str, Rows] = field(default_factory=dict)  # of databases, by the first form of their text
    offered: dict[str, NodeColumns | list[object] | str] = field(
        default_factory=dict
    )  # passages that steps gave out, by name
    refused_text: str | None = None  # what the last model said, where its provider declined
    last_model: str | None = None
    usage: Usage | None = None

    def record(self, function: Callable[..., None], *args: object, chars: int = 0) -> None:
        """Report to the run: in the pipeline's thread, or at once where the application opened the run.

        Args:
            function: reports to the run.
            args: its arguments, which the application must not be able to change later.
            chars: characters of the passages in `args`.
        """
        run = self.run
        if run is None:
            return
        if not self.is_joined:
            run.later(function, *args, chars=chars)
            return
        with self.lock:
            function(*args)


@dataclass(slots=True, eq=False)
class OpenSpan:
    """One open span of interest; spans refer to their parents and never to their children."""

    state: RunState
    parent: OpenSpan | None
    kind: Kind
    id: str
    owner: int  # id() of the object whose method runs
    started_ns: int
    within: OpenSpan | None = None  # the nearest retriever above
    tool: ToolSpan | None = None  # the nearest tool above
    is_handle: bool = False  # a workflow's run that spans the call that starts it, in early versions
    is_check: bool = False  # an evaluator's: it searched texts that the run has
    is_outer: bool = False  # a retriever inside failed, so the own result is the pool
    is_json_asked: bool = False  # structured output or JSON mode, here or above
    name: str = ""
    query: str = ""
    source: str | None = None
    model: str | None = None
    top_k: int | None = None
    given: NodeColumns | None = None  # nodes that a postprocessor was given
    answers: list[tuple[str, dict[str, Passage]]] = field(default_factory=list)  # of engines, with their passages
    found: dict[str, Passage] = field(default_factory=dict)  # passages delivered inside, less those dropped
    found_ns: int = 0
    last: ReadPassages | None = None  # the list delivered last inside
    sources: int = 0  # number of retriever results behind `found`
    lists: list[list[str]] = field(default_factory=list)  # the ids of each result
    synthesized: int = 0  # number of `lists` that a synthesizer has followed
    is_narrowed: bool = False

    def __post_init__(self) -> None:
        parent = self.parent
        if parent is not None:
            self.within = parent if parent.kind == "retriever" else parent.within
            self.tool = parent if isinstance(parent, ToolSpan) else parent.tool
            self.is_json_asked = parent.is_json_asked

    @property
    def within_key(self) -> str | None:
        """Key of the nearest retriever above, None outside retrievers."""
        return self.within.id if self.within is not None else None

    @property
    def is_inner(self) -> bool:
        """True inside a retriever, a postprocessor or a check, whose prompts ask no question."""
        parent = self.parent
        if self.is_check or parent is None:
            return self.is_check
        if parent.kind == "rerank" or parent.is_inner:
            return True
        # An engine inside a retriever answers with passages, and its answer stands for them.
        return parent.kind == "retriever" and self.kind != "query"

    @property
    def is_top(self) -> bool:
        """True for a call that the application made itself."""
        parent = self.parent
        return parent is None or (parent.parent is None and self.state.is_joined)

    def scope(self) -> OpenSpan:
        """Return the nearest span above that takes what is found here."""
        span = self.parent
        while span is not None and span.kind not in {"retriever", "query"} and span.parent is not None:
            span = span.parent
        return span if span is not None else self


@dataclass(slots=True, eq=False)
class ToolSpan(OpenSpan):
    """An open tool call."""

    arguments: str = ""
    description: str | None = None
    has_found: bool = False  # a search ran inside, so the output text stands for known passages
    replies: list[str] = field(default_factory=list)  # of models inside


@dataclass(slots=True, eq=False)
class Stream:
    """Pieces that a reader has read, kept apart from the generator so that nothing keeps that alive."""

    span: OpenSpan
    is_answer: bool  # the answer of the run, not a model's reply inside it
    is_done: bool = False
    is_fed: bool = False  # a model streams into it now
    feeds: tuple[Stream, int] | None = None  # the answer that a reply is read through, and its length before
    pieces: list[object] = field(default_factory=list)
    watch: object = None

    @property
    def text(self) -> str:
        """The pieces read so far as one text."""
        return "".join(piece for piece in self._read() if type(piece) is str)

    @property
    def chunks(self) -> int:
        """Number of pieces read so far."""
        return len(self._read())

    def _read(self) -> list[object]:
        if self.feeds is None:
            return self.pieces
        answer, start = self.feeds
        return answer.pieces[start:]


@dataclass(slots=True, eq=False)
class ModelSpan(OpenSpan):
    """An open model call."""

    messages: tuple[Message, ...] = ()
    operation: Operation = "chat"
    provider: str | None = None
    is_in_process: bool = False
    request: Mapping[str, object] = field(default_factory=dict)
    server: Server = NO_SERVER
    first_chunk_ns: int = 0
    chunks: int | None = None
    lazy_key: tuple[int, int] | None = None
    read_through: Stream | None = None
    stream: Stream | None = None

    @property
    def first_chunk_s(self) -> float | None:
        """Seconds to the first streamed chunk, None without a stream."""
        return (self.first_chunk_ns - self.started_ns) / 1e9 if self.first_chunk_ns else None


def ended_root() -> OpenSpan:
    """Return the root of a tree that has ended: nothing that begins in it is recorded.

    Example:
        >>> ended_root().state.is_ended
        True
    """
    state = RunState(Defaults())
    state.is_ended = True
    return OpenSpan(state, None, "other", "", 0, 0)


OWNER = "llamaindex"  # of what is reported before a run ends
_FACTS = ("session", "user", "corpus", "corpus_version", "k")


class JoinedStates:
    """The trees of open runs that the application opened itself, by run.

    Args:
        end: called with a tree just before its run ends.
    """

    def __init__(self, end: Callable[[RunState], None]) -> None:
        self._states: dict[int, RunState] = {}
        self._end = end

    def __len__(self) -> int:
        return len(self._states)

    def root(self, defaults: Defaults | None) -> OpenSpan | None:
        """Return the root that calls of the current code belong to, None outside such a run."""
        run = current_run()
        if run is None or defaults is None or not (defaults.recorder or ragtrace.recorder()).has_open(run):
            return None
        state = self._states.get(id(run))
        return (state or self._join(run, defaults)).root

    def forget(self, state: RunState) -> None:
        """Forget the state of a run that has ended."""
        self._states.pop(id(state.run), None)

    def clear(self) -> None:
        """Forget all run states."""
        self._states.clear()

    def _join(self, run: IntegrationRun, defaults: Defaults) -> RunState:
        state = RunState(defaults)
        state.is_joined = True
        state.run = run
        state.question = run.attributes.get("query", "")
        state.has_query = bool(state.question)
        state.root = OpenSpan(state, None, "other", f"run-{id(run)}", 0, run.started_ns)
        kept = self._states.setdefault(id(run), state)
        if kept is state:  # else another thread was faster
            run.before_finish(lambda: self._end(state), OWNER)
            _describe(run, defaults)
        return kept


def _describe(run: IntegrationRun, defaults: Defaults) -> None:
    """Write the facts of the request and the defaults that the application did not give the run itself."""
    request = {
        name: fact for name, fact in said().items() if name in {"tags", "metadata"} or name not in run.attributes
    }
    known = {name: None for name in _FACTS if name in run.attributes}
    describe(run, replace(defaults, **known), request)  # type: ignore[arg-type] # None of each fact
