"""The map of open spans, and what becomes of each: a thin translation from LlamaIndex to runs and steps."""

from __future__ import annotations

import time
from threading import RLock
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.workflow import InputRequiredEvent, Workflow

import ragtrace
from ragtrace.capture import Buried, describe, entered_run, guarded, outcome_of, shown, spoken
from ragtrace_llamaindex.attributes import first_of
from ragtrace_llamaindex.beginnings import BEGIN, ask, may_recall, recall
from ragtrace_llamaindex.calls import report_call
from ragtrace_llamaindex.endings import answer_of, conclude, report_failed
from ragtrace_llamaindex.extract import turns_in, turns_told
from ragtrace_llamaindex.joining import OWNER, JoinedTrees
from ragtrace_llamaindex.kinds import ID_TAIL, is_fusion, keeps_turns, kind_of
from ragtrace_llamaindex.models import asked_of
from ragtrace_llamaindex.open_streams import OpenStreams
from ragtrace_llamaindex.questions import is_building_class, is_step_class, is_tool_search, is_upkeep
from ragtrace_llamaindex.request import said
from ragtrace_llamaindex.selection import pass_on, take_postprocessed, take_retrieved
from ragtrace_llamaindex.streams import reading
from ragtrace_llamaindex.tools import report_tool
from ragtrace_llamaindex.tree import MAX_IDS, ModelCall, Node, ToolNode, Tree, ended_root

if TYPE_CHECKING:
    from inspect import BoundArguments

    from ragtrace.capture import Defaults
    from ragtrace.model import Outcome
    from ragtrace_llamaindex.kinds import Kind
    from ragtrace_llamaindex.tree import Stream

MAX_UNSTARTED = 1_024  # outermost spans that are open and without a run so far
MAX_BURIED = 8_192
_STREAMED = {StreamingResponse, AsyncStreamingResponse}
_NODES: dict[Kind, type[Node]] = {"model": ModelCall, "embedding": ModelCall, "tool": ToolNode}
_ANSWERLESS = {"retriever", "rerank", "embedding", "tool"}
_CHOOSING = {"retriever", "rerank"}
_GENERATORS = {GeneratorType, AsyncGeneratorType}


class Tracer:
    """Open spans by id, of all of a process's runs.

    There is no lock around the map: every change is one dict or set operation. All of a tree leaves with its root.
    Spans that have ended stay until then, since a task begun in one may outlive it.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._streams = OpenStreams(self._stream_over)
        self.takers = self._streams.takers
        self._lazy = self._streams.lazy
        self._unstarted: dict[int, Tree] = {}
        self._buried = Buried(MAX_BURIED)
        self.joined = JoinedTrees(self._end_joined)
        self._upkeep = ended_root()

    def __len__(self) -> int:
        return len(self.nodes)

    def entered(
        self, defaults: Defaults | None, id_: str, bound: BoundArguments, instance: Any, parent_id: str | None
    ) -> None:
        """Note a span that begins."""
        kind = kind_of(id_, instance)
        if kind in _CHOOSING and is_tool_search():
            self._buried.add(id_)
            return
        parent = self.nodes.get(parent_id) if parent_id is not None else None
        read = reading.get()
        if read is not None or self._lazy or (parent is not None and parent.is_handle):
            is_direct = parent is not None and parent.id == parent_id
            if parent is not None and is_direct and parent.is_handle and _is_next(parent, id_, instance):
                parent = None
            parent, read = self._above(parent, kind, bound, instance)
        if entered_run() is not None and read is None:
            parent = self._in_block(parent, defaults, kind, instance, parent_id)
        if parent is not None and kind == "other" and not parent.tree.is_joined and not parent.tree.is_ended:
            self._keep(id_, parent)
        elif parent is not None:
            self._entered_below(parent, read, kind, id_, bound, instance)
        elif defaults is not None:
            self._root_entered(defaults, kind, id_, bound, instance, parent_id)

    def _above(
        self, parent: Node | None, kind: Kind, bound: BoundArguments, instance: Any
    ) -> tuple[Node | None, Stream | None]:
        """Return the node that a span begins in, and the stream through whose reading it does."""
        read = reading.get()
        if read is not None:
            parent, read = _read_in(parent, read)
        if self._lazy and kind == "model":
            parent = self._lazy.get((id(instance), id(asked_of(bound))), parent)
        return parent, read

    def _in_block(
        self,
        parent: Node | None,
        defaults: Defaults | None,
        kind: Kind,
        instance: Any,
        parent_id: str | None,
    ) -> Node | None:
        """Return the node that a span begins in, inside the block of a run of the application's own."""
        outer = self.joined.root(defaults)
        if outer is None or (parent is not None and parent.tree is outer.tree):
            return parent
        return self._upkeep if self._is_upkeep(kind, instance, parent_id) else outer

    def _entered_below(
        self, parent: Node, read: Stream | None, kind: Kind, id_: str, bound: BoundArguments, instance: Any
    ) -> None:
        tree = parent.tree
        if tree.is_ended:
            self._buried.add(id_)
            return
        is_top = parent.parent is None and tree.is_joined
        if (kind == "other" and not is_top) or _is_same_call(kind, parent, instance):
            self._keep(id_, parent)
            return
        node = _node(tree, parent, kind, id_, instance)
        if is_top:
            _note_top(node, bound, instance)
        if read is not None and isinstance(node, ModelCall) and read.node.tree is tree:
            node.read_through = read
        self._add(node)
        if kind != "other":
            self._begin(node, bound, instance)

    def exited(self, id_: str, instance: Any, result: Any) -> None:
        """Take what a span returned."""
        node = self.nodes.get(id_)
        if node is None:
            return
        tree = node.tree
        if type(result) in _STREAMED:
            self._streams.watch_answer(node, result)
        elif isinstance(result, InputRequiredEvent):
            tree.interrupt = result
        if node.id != id_:
            self._let_go(tree, id_)
            return
        if not _closed(node):
            return
        self._end(node, instance, result)
        if node.parent is None:
            self._root_exited(node, result)
        elif tree.is_joined and node.is_top and node.kind not in _ANSWERLESS:
            tree.answer = answer_of(result) or tree.answer

    def dropped(self, id_: str, error: BaseException | None) -> None:
        """Take the failure of a span."""
        node = self.nodes.get(id_)
        if node is None:
            return
        if node.id != id_:
            if node.is_handle:  # early workflows return None from a run that failed
                node.tree.error = error
            self._let_go(node.tree, id_)
            return
        if not _closed(node):
            return
        failure = error if error is not None else RuntimeError("span dropped")
        report_failed(node, failure)
        if node.parent is None:
            self._finish(node.tree, None, outcome_of(failure), failure)

    def cancelled(self, id_: str) -> None:
        """Note that a workflow was cancelled: its span then ends like one that returned None."""
        node = self.nodes.get(id_)
        if node is not None and node.parent is None and node.id == id_:
            node.tree.is_cancelled = True

    def condensed(self, id_: str, history: object) -> None:
        """Take the turns that a chat engine wrote into a prompt that condenses them and the question to one."""
        node = self.nodes.get(id_)
        if node is not None and may_recall(node) and isinstance(history, str):
            recall(node.tree, turns_told(history), is_final=False)  # what the answer is asked with is exact

    def stream_ended(self, id_: str, response: Any, error: BaseException | None) -> None:
        """Take the end of a model's stream; the end of a call that does not stream comes with its span."""
        node = self.nodes.get(id_)
        if isinstance(node, ModelCall) and node.id == id_ and node.stream is not None:
            self._streams.ended(node.stream, error, response)

    @guarded
    def reset_after_fork(self) -> None:
        """Leave the open spans to the parent, in a forked child; streams that it reads on are reported there."""
        for tree in {id(node.tree): node.tree for node in list(self.nodes.values())}.values():
            tree.lock = RLock()  # another thread of the parent's may have held it
            if tree.run is not None:
                tree.run.before_finish(_nothing, OWNER)
            self._forget(tree, is_late_expected=True)

    # beginnings

    def _root_entered(
        self,
        defaults: Defaults,
        kind: Kind,
        id_: str,
        bound: BoundArguments,
        instance: Any,
        parent_id: str | None,
    ) -> None:
        if kind == "embedding":
            return  # no run alone: nothing is known of a question
        owner: Any = type(instance)
        if is_step_class(owner) or self._is_upkeep(kind, instance, parent_id):
            self._buried.add(id_)
            return
        kind = "other" if kind == "tool" else kind  # no run alone, as a function is none
        tree = Tree(defaults)
        root = tree.root = _node(tree, None, kind, id_, instance)
        if keeps_turns(owner):
            tree.keeps_turns = True
            tree.examples = spoken(turns_in(first_of(instance, ("_prefix_messages",))))
        self._add(root)
        if kind != "other":
            self._begin(root, bound, instance)
            return
        # A workflow, or an application's own function: a run as soon as something in it is worth one.
        tree.arguments = bound.arguments
        root.is_handle = isinstance(instance, Workflow) and "start_event" not in bound.arguments
        self._unstarted[id(tree)] = tree
        if len(self._unstarted) > MAX_UNSTARTED:
            for oldest in list(self._unstarted.values())[:1]:
                self._forget(oldest)

    def _is_upkeep(self, kind: Kind, instance: Any, parent_id: str | None) -> bool:
        """Tell whether a call is part of an evaluation or of building an index."""
        owner: Any = type(instance)
        is_part = parent_id is not None and parent_id in self._buried
        is_building = kind == "other" and is_building_class(owner)
        return is_part or is_building or is_upkeep()

    def _add(self, node: Node) -> None:
        node.tree.open.add(node)
        if node.kind == "retriever":
            node.tree.is_searched = True
        self._keep(node.id, node)

    def _keep(self, id_: str, node: Node) -> None:
        tree = node.tree
        tree.ids.append(id_)
        self.nodes[id_] = node
        if tree.is_ended:  # since a moment, in another thread, which may have looked at the ids before
            self.nodes.pop(id_, None)
            self._buried.add(id_)

    def _begin(self, node: Node, bound: BoundArguments, instance: Any) -> None:
        tree = node.tree
        if tree.run is None:
            with tree.lock:  # the first steps of an application's function may be parallel ones
                if tree.run is None:
                    self._start(tree)
        BEGIN[node.kind](node, bound, instance)

    def _start(self, tree: Tree) -> None:
        root, defaults = tree.root, tree.defaults
        if root is None or tree.is_ended:
            return
        self._unstarted.pop(id(tree), None)
        request = said()
        run = (defaults.recorder or ragtrace.recorder()).start(
            workflow=shown(request.get("workflow")) or defaults.workflow or root.name, started_ns=root.started_ns
        )
        run.before_finish(lambda: self._cut_short(tree), OWNER)
        describe(run, defaults, request)
        if tree.arguments is not None:
            ask(tree, run, tree.arguments)
            tree.arguments = None
        tree.run = run

    # ends

    def _end(self, node: Node, instance: Any, result: Any) -> None:
        ended_ns = time.time_ns()
        run = node.tree.run
        if run is None:
            return
        run.touched = time.monotonic()
        if node.kind == "retriever":
            take_retrieved(node, run, result, ended_ns, is_fusion=is_fusion(type(instance)))
        elif node.kind == "rerank":
            take_postprocessed(node, run, result, ended_ns)
        elif isinstance(node, ModelCall):
            if type(result) in _GENERATORS:
                self._streams.watch_call(node, result)
            else:
                report_call(node, result, None, ended_ns)
        elif isinstance(node, ToolNode):
            report_tool(node, run, result, None, ended_ns)
        elif node.kind == "query" and node.sources and node.parent is not None:
            with node.tree.lock:
                if node.within is not None and (said := answer_of(result)):
                    node.within.answers.append((said, node.found))
                pass_on(node, node.found, node.last, ended_ns)

    def _root_exited(self, root: Node, result: Any) -> None:
        tree = root.tree
        with tree.lock:
            if tree.run is None:
                self._forget(tree)
                return
        answer = None if root.kind == "retriever" else answer_of(result)
        error, tree.error = tree.error, None
        if error is not None and result is None and type(error).__name__ != "WorkflowDone":
            self._finish(tree, None, outcome_of(error), error)
            return
        with tree.lock:
            tree.is_waiting = bool(answer is None and tree.streams)
        if tree.is_waiting:
            return
        if not tree.is_cancelled:
            self._finish(tree, answer, None, None)
        elif tree.interrupt is not None:
            self._finish(tree, answer, "interrupted", None)
        else:
            self._finish(tree, answer, "cancelled", None)

    def _finish(self, tree: Tree, answer: str | None, outcome: Outcome | None, error: BaseException | None) -> None:
        """End the run whatever becomes of its last facts, and forget the tree."""
        with tree.lock:
            run = tree.run
            if not _concluded(tree, answer, outcome, error):
                return
        if run is not None:
            run.before_finish(_nothing, OWNER)  # lets go of the tree
            if tree.is_question:
                run.finish(outcome)
            else:
                run.discard()
        self._forget(tree, is_late_expected=outcome is not None)

    @guarded
    def _end_joined(self, tree: Tree) -> None:
        """Report what is there when the application ends a run of its own."""
        _concluded(tree, None, None, None)
        self._forget(tree, is_late_expected=True)

    @guarded
    def _cut_short(self, tree: Tree) -> None:
        """Report what is there when the recorder ends a run, such as one whose stream nobody read."""
        run = tree.run
        if _concluded(tree, None, "partial", None) and run is not None and not tree.is_question:
            run.discard()
        self._forget(tree, is_late_expected=True)

    def _forget(self, tree: Tree, *, is_late_expected: bool = False) -> None:
        """Take a tree off the map, and break its cycles: what it holds goes without a garbage collection."""
        self._unstarted.pop(id(tree), None)
        if tree.is_joined:
            self.joined.forget(tree)
        with tree.lock:
            tree.is_ended = True
            for id_ in tree.ids:
                self.nodes.pop(id_, None)
                if is_late_expected:
                    self._buried.add(id_)
            self._streams.forget(tree)
            tree.ids = []
            tree.open.clear()
            tree.root = tree.run = tree.arguments = tree.interrupt = tree.explicit = tree.error = None
            tree.seen, tree.raw, tree.stands_for, tree.pieces, tree.last = {}, {}, {}, {}, None

    def _let_go(self, tree: Tree, id_: str) -> None:
        if len(tree.ids) > MAX_IDS:
            self.nodes.pop(id_, None)

    def _stream_over(self, tree: Tree) -> None:
        failure, tree.error = tree.error, None
        if failure is not None:
            self._finish(tree, None, outcome_of(failure), failure)
        else:
            self._finish(tree, None, "partial" if tree.is_partial else None, None)


def _concluded(tree: Tree, answer: str | None, outcome: Outcome | None, error: BaseException | None) -> bool:
    """Write a run's last facts, and tell whether that was still to do; who else ends it waits for that."""
    with tree.lock:
        if tree.is_ended:
            return False
        tree.is_ended = True
        conclude(tree, answer, outcome, error)
    return True


def _closed(node: Node) -> bool:
    """Take a step for ended, and tell whether nobody did so before, as the end of its run does."""
    try:
        node.tree.open.remove(node)
    except KeyError:
        return False
    return True


def _note_top(node: Node, bound: BoundArguments, instance: Any) -> None:
    """Note what a call right inside the block of a run says of its question and of the turns before it."""
    tree = node.tree
    owner: Any = type(instance)
    node.is_handle = isinstance(instance, Workflow) and "start_event" not in bound.arguments
    if keeps_turns(owner):
        tree.keeps_turns = True
        tree.examples = spoken(turns_in(first_of(instance, ("_prefix_messages",))))
    if node.kind == "other" and tree.run is not None:
        ask(tree, tree.run, bound.arguments)


def _nothing() -> None:
    """Report nothing before a run ends: all is reported."""


def _node(tree: Tree, parent: Node | None, kind: Kind, id_: str, instance: Any) -> Node:
    node = _NODES.get(kind, Node)(tree, parent, kind, id_, id(instance), time.time_ns())
    if instance is not None:
        node.name = type(instance).__name__
    else:
        node.name = id_[:-ID_TAIL].rpartition("<locals>.")[2].removesuffix(".run")
    return node


def _read_in(parent: Node | None, read: Stream) -> tuple[Node | None, Stream | None]:
    """Return the parent of what happens while a stream is read: a span of its tree, else the stream's own node."""
    tree = read.node.tree
    if tree.is_ended:  # what a late read begins belongs to a run that the sweep has ended
        return parent or read.node, None
    return (parent if parent is not None and parent.tree is tree else read.node), read


def _is_next(handle: Node, id_: str, instance: Any) -> bool:
    """Tell whether a span is another request behind a workflow's run, and no step of it.

    With early versions of llama-index-workflows, whoever called ``run`` stays inside its span for ever.
    """
    is_run = id_[:-ID_TAIL].endswith(".run")
    return instance is not None and (is_run or id(instance) != handle.owner)


def _is_same_call(kind: Kind, parent: Node, instance: Any) -> bool:
    """Tell whether a span is a part of the call around it: a method that calls its like, or super()."""
    if kind != parent.kind:
        return False
    return kind in {"model", "embedding"} or parent.owner == id(instance)
