"""The map of open LangChain events: bounded, shared by all handlers of one recorder, emptied at each root's end."""

from __future__ import annotations

from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from langchain_core.runnables.config import var_child_runnable_config

from ragtrace.capture import Buried
from ragtrace.capture.forking import in_children
from ragtrace_langchain.documents import KnownDocuments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from ragtrace.capture import Recorder, Run
    from ragtrace_langchain.tree import Node, Tree

MAX_BURIED = 2_048  # ids kept of what was still open when its root ended
MAX_NESTED = 8  # retrievers noted as open in one context

# Ids of the retrievers that the current code runs inside, innermost first, each behind the map it is open in.
_retrievers: ContextVar[tuple[tuple[RunMap, int], ...]] = ContextVar("ragtrace_langchain_retrievers", default=())


class RunMap:
    """Open events by run id.

    There is no lock: every change is one dict or set operation. Whoever takes an event off the map reports its end,
    and nobody else. Two handlers of one recorder share a map, so that an event reported by both counts once.
    """

    def __init__(self) -> None:
        self._nodes: dict[object, Node] = {}
        self._trees: dict[int, Tree] = {}
        self._joined: dict[int, Tree] = {}
        self._buried = Buried(MAX_BURIED)
        in_children(self.reset_after_fork)

    def reset_after_fork(self) -> None:
        """Free the locks of the trees, in a forked child: a thread of the parent's may have held one."""
        for tree in self._trees.values():
            tree.lock = RLock()

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, run_id: object) -> Node | None:
        """Return the open event of this id."""
        return self._nodes.get(getattr(run_id, "int", run_id))

    def add(self, run_id: object, node: Node) -> None:
        """Take an event that began."""
        if node.parent is None:
            node.tree.root = node
            self._trees[id(node.tree)] = node.tree
        # By its number: a UUID's own hash is a call of Python's, 0.35 us each of some hundred a run.
        key = getattr(run_id, "int", run_id)
        node.tree.open.add(key)
        self._nodes[key] = node
        if node.tree.is_concluded:  # in this moment, by another thread: it may have looked at what is open before
            self.pop(run_id)
            self.bury(run_id)

    def pop(self, run_id: object) -> Node | None:
        """Take an event off the map, when it ends."""
        key = getattr(run_id, "int", run_id)
        node = self._nodes.pop(key, None)
        if node is not None:
            node.tree.open.discard(key)
        return node

    def opened(self, tree: Tree) -> Iterator[Node]:
        """Yield the events of a tree that are still open."""
        for run_id in list(tree.open):
            node = self._nodes.get(run_id)
            if node is not None:
                yield node

    def take_opened(self, tree: Tree) -> Iterator[Node]:
        """Take all events of a tree off the map; what later comes from inside them is ignored, see `is_buried`."""
        for run_id in list(tree.open):
            self.bury(run_id)
            node = self.pop(run_id)
            if node is not None:
                yield node

    def drop(self, tree: Tree) -> None:
        """Forget a whole tree."""
        for _ in self.take_opened(tree):
            pass
        self._trees.pop(id(tree), None)
        if tree.is_joined:
            self._joined.pop(id(tree.run), None)
        tree.root = tree.given = tree.waiting = None
        tree.seen = {}
        tree.pool = {}
        tree.told = {}
        tree.taken_back = {}
        tree.delivered = []
        tree.known = KnownDocuments()

    def join(self, run: Run) -> Tree | None:
        """Return the tree of a run that the application opened itself, once `joined` has put it here."""
        tree = self._joined.get(id(run))
        return tree if tree is not None and tree.run is run else None

    def joined(self, tree: Tree) -> Tree:
        """Put the tree of an application's own run here; of two threads that do so, both get the same one."""
        kept = self._joined.setdefault(id(tree.run), tree)
        self._trees[id(kept)] = kept
        return kept

    def enter_retriever(self, run_id: object) -> None:
        """Note that the code of this context runs inside a retriever, until that is no longer open."""
        outer = tuple((runs, number) for runs, number in _retrievers.get() if runs.get(number) is not None)
        _retrievers.set(((self, getattr(run_id, "int", 0)), *outer[: MAX_NESTED - 1]))

    def entered_retriever(self) -> Node | None:
        """Return the innermost open retriever that the current code runs inside."""
        for runs, number in _retrievers.get():
            if runs is self and (node := self._nodes.get(number)) is not None:
                return node
        return None

    def bury(self, run_id: object) -> None:
        """Remember an id whose children are not to open a run of their own."""
        self._buried.add(getattr(run_id, "int", run_id))

    def is_buried(self, run_id: object) -> bool:
        """Tell whether an id belonged to a root that has ended."""
        return getattr(run_id, "int", run_id) in self._buried

    def left(self) -> Iterator[Tree]:
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


def ambient_run_id() -> UUID | None:
    """Return the id of the LangChain run whose code is executing, for an event that names no parent.

    ``with_fallbacks`` gives its alternatives the caller's callbacks instead of its own (langchain-core 1.7.2), as
    does a chain that calls another with a handler of its own: both belong to the run they are called in.

    Example:
        >>> ambient_run_id() is None
        True
    """
    config = var_child_runnable_config.get()
    return getattr(config.get("callbacks"), "parent_run_id", None) if config else None


def ambient_settings(run_id: UUID) -> Mapping[str, Any] | None:
    """Return the ``configurable`` of a LangChain run, None where the code that is executing is not that run's.

    Example:
        >>> from uuid import uuid4
        >>> ambient_settings(uuid4()) is None
        True
    """
    config = var_child_runnable_config.get()
    if not config or getattr(config.get("callbacks"), "parent_run_id", None) != run_id:
        return None
    return config.get("configurable") or {}


_of_facade = RunMap()
_by_recorder: WeakKeyDictionary[Recorder, RunMap] = WeakKeyDictionary()


def open_events(run_id: object) -> list[Node]:
    """Return the open events of this id: one for each recorder whose handler the run has."""
    found = [_of_facade.get(run_id)]
    for reference in _by_recorder.keyrefs():  # a list: another thread may add a recorder meanwhile
        recorder = reference()
        runs = _by_recorder.get(recorder) if recorder is not None else None
        found.append(runs.get(run_id) if runs is not None else None)
    return [node for node in found if node is not None]


def runs_of(recorder: Recorder | None) -> RunMap:
    """Return the map of a recorder; None stands for the one of ``ragtrace.configure``.

    Example:
        >>> runs_of(None) is runs_of(None)
        True
    """
    if recorder is None:
        return _of_facade
    return _by_recorder.setdefault(recorder, RunMap())
