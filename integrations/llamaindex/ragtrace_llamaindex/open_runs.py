"""LlamaIndex runs that are open: an `OpenRun` for each root, an `OpenSpan` for each span of interest.

Beside its spans a workflow's run has a state: the person it waits for, and its saved context.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent, StartEvent
from msgspec import structs

import ragtrace
from ragtrace.capture import Defaults, current_run, describe, record_internal_error, unsaid
from ragtrace.capture.events import Asked, Began, Event, Gave
from ragtrace_llamaindex.messages import fields_of
from ragtrace_llamaindex.request import said
from ragtrace_llamaindex.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ragtrace.capture import Failure, Run
    from ragtrace.capture.events import Kind as EventKind
    from ragtrace.capture.values import Doc
    from ragtrace.model import Message
    from ragtrace_llamaindex.span_kinds import Kind


MAX_IDS = 16_384  # of spans that have ended, of one tree
OWNER = "llamaindex"  # of the events, and of what is reported before a run ends
_EVENT_KINDS: dict[Kind, EventKind] = {
    "retriever": "search",
    "rerank": "choice",
    "model": "model",
    "embedding": "model",
    "tool": "tool",
}


@dataclass(slots=True, eq=False)
class OpenRun:
    """One outermost call that is open, and the `Run` it writes to.

    A call gets a run at its first step that is worth one: a search, a model call, a query.
    """

    defaults: Defaults
    run: Run | None = None
    root: OpenSpan | None = None
    arguments: Mapping[str, object] | None = None  # of a root without a run
    interrupt: object = None  # the last input that a workflow asked a person for
    journals: list[object] = field(default_factory=list)  # what the runtime keeps of the workflows in the run
    saved: Saved | None = None  # what the workflow's context held when the run began
    error: BaseException | None = None
    result: object = None  # of the root, where something is declared of the run
    offers: dict[str, Any] = field(default_factory=dict)  # what steps gave out before the run began
    values: Values = field(default_factory=Values)
    lock: threading.RLock = field(default_factory=threading.RLock)  # a stream's finaliser may run inside it
    ids: list[str] = field(default_factory=list)  # of ended spans too, since tasks may outlive them
    open: set[OpenSpan] = field(default_factory=set)
    streams: set[Stream] = field(default_factory=set)
    is_ended: bool = False
    is_begun: bool = False  # the first event was added
    is_joined: bool = False  # the application opened the run; `root` stands for its block
    is_cancelled: bool = False
    is_waiting: bool = False  # the root has returned and its answer is being read
    is_partial: bool = False
    broken: BaseException | None = None  # what ended the last stream of a model before the root returned
    is_searched: bool = False
    is_asked: bool = False  # a model
    is_resumed: bool = False  # the root is a workflow that goes on from a saved context
    is_agent: bool = False
    has_query: bool = False  # else `question` is what a search was asked, and stands in
    question: str = ""
    texts: tuple[str, ...] = ()  # of the input that names its question in its own way
    examples: tuple[Message, ...] = ()  # turns that a chat engine puts before its memory
    is_told: bool = False  # the history is known
    keeps_turns: bool = False  # the root is a chat engine or an agent
    working: dict[str | None, AgentWork] = field(default_factory=dict)  # by the id of an agent workflow's run
    agents: dict[str | None, AgentWork] = field(default_factory=dict)  # by the ids of steps and functions in it
    calls: dict[str | None, str] = field(default_factory=dict)  # of tools, by the ids of steps and functions

    def add(self, event: Event) -> None:
        """Add an event to the run."""
        run = self.run
        if run is None:
            return
        values = self.values
        run.add(structs.replace(event, teller=OWNER), chars=values.taken_chars(), cut=values.taken_cut())

    def agent_at(self, run_id: str | None, name: str | None, above: str) -> AgentWork | None:
        """Return the work of the agent that has its turn in a workflow's run.

        Args:
            run_id: of the span of the run.
            name: of the agent, where its step says it; another one than before takes over.
            above: id of the event around the run.
        """
        with self.lock:
            work = self.working.get(run_id)
            if name is None or (work is not None and work.name == name):
                return work
            self.end_agent(run_id, None)
            now = time.time_ns()
            work = self.working[run_id] = AgentWork(f"{run_id} {name} {now}", name, above, now)
            return work

    def begin_agent(self, work: AgentWork) -> None:
        """Add the event of an agent's beginning, once something happens in its work."""
        with self.lock:
            if not work.is_told:
                work.is_told = True
                began = Began(agent=work.name)
                self.add(Event("chain", work.id, work.above, work.name, work.started_ns, data=began))

    def end_agent(self, run_id: str | None, error: BaseException | None) -> None:
        """Add the event of the end of the agent that works in a workflow's run, where one does."""
        work = self.working.pop(run_id, None)
        if work is not None and work.is_told and self.run is not None:
            failure, now = self.run.failure_of(error), time.time_ns()
            self.add(Event("chain", work.id, work.above, work.name, work.started_ns, now, Gave(), failure))


@dataclass(slots=True, eq=False)
class AgentWork:
    """Work of one agent in a workflow's run, until another takes over or the run ends."""

    id: str  # of its events
    name: str
    above: str  # id of the event around it
    started_ns: int
    is_told: bool = False


@dataclass(slots=True, eq=False)
class OpenSpan:
    """One open span of interest; spans refer to their parents and never to their children."""

    state: OpenRun
    parent: OpenSpan | None
    kind: Kind
    id: str
    owner: int  # id() of the object whose method runs
    started_ns: int
    within: OpenSpan | None = None  # the nearest retriever above
    tool: OpenSpan | None = None  # the nearest tool above
    is_handle: bool = False  # a workflow's run that spans the call that starts it, in early versions
    is_json_asked: bool = False  # structured output or JSON mode, here or above
    name: str = ""
    model: str | None = None  # of a postprocessor
    top_k: int | None = None
    given: list[Doc] = field(default_factory=list)  # nodes that a postprocessor was given
    agent: AgentWork | None = None  # that it is a part of, where no other span of interest is between
    call_id: str | None = None  # of the call that a tool carries out for an agent

    def __post_init__(self) -> None:
        parent = self.parent
        if parent is not None:
            self.within = parent if parent.kind == "retriever" else parent.within
            self.tool = parent if parent.kind == "tool" else parent.tool
            self.is_json_asked = parent.is_json_asked

    @property
    def is_inner(self) -> bool:
        """True inside a retriever or a postprocessor, whose prompts ask no question."""
        parent = self.parent
        if parent is None:
            return False
        if parent.kind == "rerank" or parent.is_inner:
            return True
        # An engine inside a retriever answers with passages, and its answer stands for them.
        return parent.kind == "retriever" and self.kind != "query"

    @property
    def is_top(self) -> bool:
        """True for a call that the application made itself."""
        parent = self.parent
        return parent is None or (parent.parent is None and self.state.is_joined)

    def begins(self, data: Any) -> None:
        """Add the event of its beginning."""
        self._add(None, data, None)

    def ends(self, data: Any, error: Failure | None = None) -> None:
        """Add the event of its end."""
        self._add(time.time_ns(), data, error)

    def _add(self, ended_ns: int | None, data: Any, error: Failure | None) -> None:
        above = self.parent.id if self.parent is not None else ""
        if self.agent is not None:
            above = self.agent.id
            self.state.begin_agent(self.agent)
        kind = _EVENT_KINDS.get(self.kind, "chain")
        self.state.add(Event(kind, self.id, above, self.name, self.started_ns, ended_ns, data, error))


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

    asked: Asked = field(default_factory=Asked)
    first_chunk_ns: int = 0
    lazy_key: tuple[int, int] | None = None
    read_through: Stream | None = None
    stream: Stream | None = None


def ended_root() -> OpenSpan:
    """Return the root of a tree that has ended: nothing that begins in it is recorded.

    Example:
        >>> ended_root().state.is_ended
        True
    """
    state = OpenRun(Defaults())
    state.is_ended = True
    return OpenSpan(state, None, "other", "", 0, 0)


_FACTS = ("session", "user", "corpus", "corpus_version", "k")


class JoinedRuns:
    """The trees of open runs that the application opened itself, by run.

    Args:
        end: called with a tree just before its run ends.
    """

    def __init__(self, end: Callable[[OpenRun], None]) -> None:
        self._states: dict[int, OpenRun] = {}
        self._end = end

    def __len__(self) -> int:
        return len(self._states)

    def root(self, defaults: Defaults | None) -> OpenSpan | None:
        """Return the root that calls of the current code belong to, None outside such a run."""
        run = current_run()
        if run is None or defaults is None or not (defaults.recorder or ragtrace.recorder()).has_open(run):
            return None
        state = self._states.get(id(run))
        state = state or self._join(run, defaults)
        if not state.is_begun:
            with state.lock:  # another thread adds its first event
                pass
        return state.root

    def forget(self, state: OpenRun) -> None:
        """Forget the tree of a run that has ended."""
        self._states.pop(id(state.run), None)

    def clear(self) -> None:
        """Forget all trees."""
        self._states.clear()

    def _join(self, run: Run, defaults: Defaults) -> OpenRun:
        state = OpenRun(defaults)
        state.is_joined = True
        state.run = run
        state.question = run.said.get("query", "")
        state.has_query = bool(state.question)
        state.root = OpenSpan(state, None, "other", f"run-{id(run)}", 0, run.started_ns)
        with state.lock:
            kept = self._states.setdefault(id(run), state)
            if kept is state:  # else another thread was faster
                state.add(Event("told"))
                state.root.begins(Began(is_block=True))
                state.is_begun = True
                run.before_finish(lambda: self._end(state), OWNER)
                _describe(run, defaults)
        return kept


def _describe(run: Run, defaults: Defaults) -> None:
    """Write the facts of the request and the defaults that the application did not give the run itself."""
    known = {name: None for name in _FACTS if name in run.said}
    describe(run, replace(defaults, **known), unsaid(run, said()))  # type: ignore[arg-type] # None of each fact


_WAITING = "WaitingForEvent"


# -- state of a workflow's run --


def is_waiting(error: object) -> bool:
    """Tell whether an exception is the one by which ``ctx.wait_for_event`` leaves a step until its event comes.

    Example:
        >>> is_waiting(ValueError("waiting"))
        False
    """
    kind = type(error)
    return kind.__name__ == _WAITING and kind.__module__.startswith("workflows")


def journal_of(workflow: Any) -> object:
    """Return what the runtime of the current run of a workflow keeps of it; None where it keeps nothing.

    Early versions of llama-index-workflows have no such thing, and a runtime of another maker may have none.
    """
    try:
        return workflow.runtime.get_internal_adapter(workflow)
    except Exception:  # it says so in many ways, and each runtime in its own
        return None


def awaited_in(journals: Iterable[Any]) -> object:
    """Return what these runs wait for, as a person is asked it; None where they wait for nobody.

    That is the event that a step gave out, or that ``wait_for_event`` was told to give out, else the name of the
    event that is waited for.
    """
    try:
        return next((one for journal in journals for one in _open_waits(journal)), None)
    except Exception as error:
        record_internal_error("ragtrace_llamaindex.open_runs.awaited", error)
        return None


def _open_waits(journal: Any) -> Iterator[object]:
    replay = getattr(journal, "replay", None)
    if replay is None:
        return
    waits: dict[object, Any] = {}
    asked: object = None
    for tick in list(replay()):
        came = getattr(tick, "event", None) if getattr(tick, "type", None) == "add_event" else None
        if came is not None:
            asked = None if isinstance(came, HumanResponseEvent) else asked
            waits = {name: wait for name, wait in waits.items() if not _resolves(came, wait)}
        for part in getattr(tick, "result", None) or ():
            kind = getattr(part, "type", None)
            if kind == "add_waiter":
                waits[part.waiter_id] = part
            elif kind == "delete_waiter":
                waits.pop(part.waiter_id, None)
            elif isinstance(given := getattr(part, "result", None), InputRequiredEvent):
                asked = given
    if asked is not None:
        yield asked
    for wait in waits.values():
        yield wait.waiter_event if wait.waiter_event is not None else wait.event_type.__name__


def _resolves(event: Any, wait: Any) -> bool:
    if not isinstance(event, wait.event_type):
        return False
    return all(getattr(event, name, None) == value for name, value in (wait.requirements or {}).items())


class Saved(NamedTuple):
    """Contents of a context when a run begins with it.

    Attributes:
        started: fields of the event with which the conversation began, where a step still has it.
        state: what the steps have put into the store.
        events: fields of the other events that steps have yet to take.
    """

    started: Mapping[str, object]
    state: Mapping[str, object]
    events: tuple[Mapping[str, object], ...]


def saved_in(journal: object, broker: object) -> Saved:
    """Return what a context holds; of a store that keeps its state elsewhere nothing."""
    try:
        events = list(_waiting_events(broker))
        started = next((event for event in events if isinstance(event, StartEvent)), None)
        return Saved(
            {} if started is None else fields_of(started),
            _stored(journal),
            tuple(fields_of(event) for event in events if event is not started),
        )
    except Exception as error:  # an application's own state may raise anything when it is looked at
        record_internal_error("ragtrace_llamaindex.open_runs.saved", error)
        return Saved({}, {}, ())


def _waiting_events(broker: object) -> Iterator[object]:
    workers = getattr(broker, "workers", None)
    for worker in workers.values() if isinstance(workers, dict) else ():
        for name in ("queue", "in_progress", "collected_waiters"):
            for one in getattr(worker, name, None) or ():
                event = getattr(one, "event", None)
                if event is not None:
                    yield event


def _stored(journal: Any) -> Mapping[str, object]:
    find = getattr(journal, "get_state_store", None)
    store: Any = None if find is None else find()
    if not any(kind.__name__ == "InMemoryStateStore" for kind in type(store).__mro__):
        return {}
    reading = store.get_state()
    try:
        reading.send(None)
    except StopIteration as end:
        state = end.value
    else:  # somebody edits it: nothing of ours may wait
        reading.close()
        return {}
    return fields_of(state) if not isinstance(state, Mapping) else dict(state)
