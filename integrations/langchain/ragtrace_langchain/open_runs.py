"""LangChain runs that are open: an `OpenRun` for each root, an `OpenStep` for each step that has begun."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakKeyDictionary

from langchain_core.runnables.config import var_child_runnable_config

from ragtrace.capture import RecentIds
from ragtrace.capture.events import Event
from ragtrace.capture.fork import after_fork_in_child
from ragtrace.text import MAX_REDACTED_CHARS
from ragtrace_langchain.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType
    from typing import Any
    from uuid import UUID

    from ragtrace.capture import Failure, Recorder, Run
    from ragtrace.capture.events import Kind


@dataclass(slots=True, eq=False)
class OpenRun:
    """One run that is open: the `Run` it writes to, and what its steps share.

    Attributes:
        is_joined: the application opened the run, and `block` stands for it above its steps.
    """

    run: Run
    is_joined: bool = False
    block: OpenStep | None = None
    values: Values = field(default_factory=Values)
    open: set[object] = field(default_factory=set)  # ids of open steps, the root's among them
    lock: threading.RLock = field(default_factory=threading.RLock)  # a stream's finaliser may run inside it
    is_concluded: bool = False
    is_described: bool = False  # the call's `configurable` was read
    ids: Iterator[int] = field(default_factory=count)

    def add(self, event: Event) -> None:
        """Add an event to the run."""
        values = self.values
        self.run.add(event, chars=values.taken_chars(), cut=values.taken_cut())


@dataclass(slots=True, eq=False)
class OpenStep:
    """One step that has begun; steps refer to their parents and never to their children."""

    of: OpenRun
    parent: OpenStep | None
    kind: Kind
    name: str
    started_ns: int
    id: str = ""
    graph: FrameType | None = None  # the frame that runs a graph

    def __post_init__(self) -> None:
        self.id = str(next(self.of.ids))

    @property
    def is_top(self) -> bool:
        """True for a root, and for a step right inside the application's block."""
        return self.parent is None or self.parent is self.of.block

    def is_in(self, above: OpenStep) -> bool:
        """Tell whether `above` is this step or stands above it."""
        step: OpenStep | None = self
        while step is not None and step is not above:
            step = step.parent
        return step is above

    def begins(self, data: Any) -> None:
        """Add the event of its beginning."""
        above = self.parent.id if self.parent is not None else ""
        self.of.add(Event(self.kind, self.id, above, self.name, self.started_ns, None, data))

    def ends(self, data: Any, ended_ns: int, error: Failure | None = None) -> None:
        """Add the event of its end."""
        above = self.parent.id if self.parent is not None else ""
        self.of.add(Event(self.kind, self.id, above, self.name, self.started_ns, ended_ns, data, error))


@dataclass(slots=True, eq=False)
class ModelCall(OpenStep):
    """An open model call, with the text that it has streamed so far."""

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
    """Open steps.

    Attributes:
        steps: open steps by the number of their run id. A UUID's own hash is a call of Python's, 0.35 us each of
            some hundred a run.

    There is no lock: every change is one dict or set operation. Whoever takes a step off the map reports its end,
    and nobody else. Two handlers of one recorder share a map, so that an event reported by both counts once.
    """

    def __init__(self) -> None:
        self.steps: dict[object, OpenStep] = {}
        self._trees: dict[int, OpenRun] = {}
        self._joined: dict[int, OpenRun] = {}
        self._buried = RecentIds(MAX_BURIED)
        after_fork_in_child(self.reset_after_fork)

    def reset_after_fork(self) -> None:
        """Leave the open runs to the parent, in a forked child; what goes on inside them there is ignored."""
        for tree in list(self._trees.values()):
            tree.lock = RLock()  # another thread of the parent's may have held it
            tree.is_concluded = True
            tree.run.before_finish(None, "langchain")
            for _ in self.pop_open(tree):
                pass
            self.drop(tree)

    def __len__(self) -> int:
        return len(self.steps)

    def get(self, run_id: object) -> OpenStep | None:
        """Return the open step of this id."""
        return self.steps.get(getattr(run_id, "int", run_id))

    def add(self, run_id: object, step: OpenStep) -> None:
        """Take a step that began."""
        if step.parent is None:
            self._trees[id(step.of)] = step.of
        key = getattr(run_id, "int", run_id)
        step.of.open.add(key)
        self.steps[key] = step
        if step.of.is_concluded:  # another thread ended the run meanwhile, and may not have seen this event
            self.pop(run_id)
            self.bury(run_id)

    def pop(self, run_id: object) -> OpenStep | None:
        """Take a step off the map, when it ends."""
        key = getattr(run_id, "int", run_id)
        step = self.steps.pop(key, None)
        if step is not None:
            step.of.open.discard(key)
        return step

    def opened(self, tree: OpenRun) -> Iterator[OpenStep]:
        """Yield the steps of a tree that are still open."""
        for run_id in list(tree.open):
            step = self.steps.get(run_id)
            if step is not None:
                yield step

    def pop_open(self, tree: OpenRun) -> Iterator[OpenStep]:
        """Take all steps of a tree off the map; what later comes from inside them is ignored, see `is_buried`."""
        for run_id in list(tree.open):
            self._buried.add(run_id)
            tree.open.discard(run_id)
            step = self.steps.pop(run_id, None)
            if step is not None:
                step.graph = None
                yield step

    def drop(self, tree: OpenRun) -> None:
        """Forget a whole tree, and leave nothing that refers to itself: the run's texts are freed at once."""
        self._trees.pop(id(tree), None)
        if tree.is_joined:
            self._joined.pop(id(tree.run), None)
            tree.block = None

    def join(self, run: Run) -> OpenRun | None:
        """Return the tree of a run that the application opened itself, once `joined` has put it here."""
        tree = self._joined.get(id(run))
        return tree if tree is not None and tree.run is run else None

    def joined(self, tree: OpenRun) -> OpenRun:
        """Put the tree of an application's own run here; of two threads that do so, both get the same one."""
        kept = self._joined.setdefault(id(tree.run), tree)
        self._trees[id(kept)] = kept
        return kept

    def enter_retriever(self, run_id: object) -> None:
        """Note that the code of this context runs inside a retriever, until that is no longer open."""
        outer = tuple((runs, number) for runs, number in _retrievers.get() if runs.get(number) is not None)
        _retrievers.set(((self, getattr(run_id, "int", 0)), *outer[: MAX_NESTED - 1]))

    def entered_retriever(self) -> OpenStep | None:
        """Return the innermost open retriever that the current code runs inside."""
        for runs, number in _retrievers.get():
            if runs is self and (step := self.steps.get(number)) is not None:
                return step
        return None

    def bury(self, run_id: object) -> None:
        """Remember an id whose children are not to open a run of their own."""
        self._buried.add(getattr(run_id, "int", run_id))

    def is_buried(self, run_id: object) -> bool:
        """Tell whether an id belonged to a root that has ended."""
        return getattr(run_id, "int", run_id) in self._buried

    def left(self) -> Iterator[OpenRun]:
        """Look at the two oldest trees and yield those whose run has ended, as a failure of ours leaves them.

        Not those that another thread concludes now: nobody waits for that. Two looks for each new root see every
        tree in time, at a constant price.
        """
        for _ in range(2):
            try:
                name, tree = next(iter(self._trees.items()))
            except (StopIteration, RuntimeError):  # none, or another thread was faster
                return
            self._trees.pop(name, None)
            if tree.run.is_finished:
                if not tree.is_concluded:
                    yield tree
            else:
                self._trees[name] = tree


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


def open_steps(run_id: object) -> list[OpenStep]:
    """Return the open steps of this id: one for each recorder whose handler the run has."""
    found = [_of_facade.get(run_id)]
    for reference in _by_recorder.keyrefs():  # a list: another thread may add a recorder meanwhile
        recorder = reference()
        runs = _by_recorder.get(recorder) if recorder is not None else None
        found.append(runs.get(run_id) if runs is not None else None)
    return [step for step in found if step is not None]


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
