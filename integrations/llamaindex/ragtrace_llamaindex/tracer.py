"""The map of open spans, and what becomes of each: a thin translation from LlamaIndex to runs and steps."""

from __future__ import annotations

import time
import weakref
from threading import RLock, get_ident
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.workflow import InputRequiredEvent, Workflow

import ragtrace
from ragtrace.capture import guarded, lost, outcome_of
from ragtrace_llamaindex.attributes import argument, first_of
from ragtrace_llamaindex.calls import report_call, take_asked
from ragtrace_llamaindex.extract import (
    answer_in,
    before_question,
    fields_of,
    history_in,
    query_text,
    question_in,
    spoken,
    turns_before,
    turns_in,
    turns_told,
)
from ragtrace_llamaindex.kinds import ID_TAIL, is_fusion, keeps_turns, kind_of
from ragtrace_llamaindex.models import asked_of
from ragtrace_llamaindex.request import describe, said
from ragtrace_llamaindex.selection import (
    pass_on,
    settle,
    take_given,
    take_postprocessed,
    take_retrieved,
    take_synthesized,
)
from ragtrace_llamaindex.streams import Watch, awatched, just_fed, reading, watched
from ragtrace_llamaindex.tree import MAX_IDS, ModelCall, Node, Stream, Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from inspect import BoundArguments

    from ragtrace.model import Message, Outcome
    from ragtrace_llamaindex.kinds import Kind
    from ragtrace_llamaindex.settings import Settings

MAX_UNSTARTED = 1_024  # outermost spans that are open and without a run so far
MAX_BURIED = 8_192
_STREAMED = {StreamingResponse, AsyncStreamingResponse}
_GENERATORS = {GeneratorType, AsyncGeneratorType}


class Tracer:
    """Open spans by id, of all of a process's runs.

    There is no lock around the map: every change is one dict or set operation. All of a tree leaves with its root.
    Spans that have ended stay until then, since a task begun in one may outlive it.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.takers: dict[str, Callable[[Any], None]] = {}  # of a stream's pieces, by the model call's span
        self._unstarted: dict[int, Tree] = {}
        self._lazy: dict[tuple[int, int], ModelCall] = {}
        self._buried: set[int] = set()
        self._buried_before: set[int] = set()

    def __len__(self) -> int:
        return len(self.nodes)

    def entered(
        self, settings: Settings | None, id_: str, bound: BoundArguments, instance: Any, parent_id: str | None
    ) -> None:
        """Note a span that begins."""
        kind = kind_of(id_, instance)
        read = reading.get()
        if read is None and just_fed:
            read = just_fed.get(get_ident())
        parent = self.nodes.get(parent_id) if parent_id is not None else None
        if parent is not None and parent.is_handle and parent.id == parent_id and _is_next(parent, id_, instance):
            parent = None
        if read is not None:
            parent, read = _read_in(parent, read)
        if self._lazy and kind == "model":
            parent = self._lazy.get((id(instance), id(asked_of(bound))), parent)
        if parent is None:
            if settings is not None:
                self._root_entered(settings, kind, id_, bound, instance, parent_id)
            return
        tree = parent.tree
        if tree.is_ended:
            self._bury(id_)
            return
        if kind == "other" or _is_same_call(kind, parent, instance):
            self.nodes[id_] = parent
            tree.ids.append(id_)
            return
        node = _node(tree, parent, kind, id_, instance)
        if read is not None and isinstance(node, ModelCall) and read.node.tree is tree:
            node.read_through = read
        self._add(node)
        self._begin(node, bound, instance)

    def exited(self, id_: str, instance: Any, result: Any) -> None:
        """Take what a span returned."""
        node = self.nodes.get(id_)
        if node is None:
            return
        tree = node.tree
        if type(result) in _STREAMED:
            self._watch_answer(node, result)
        elif isinstance(result, InputRequiredEvent):
            tree.interrupt = result
        if node.id != id_:
            self._let_go(tree, id_)
            return
        tree.open.discard(node)
        self._end(node, instance, result)
        if node.parent is None:
            self._root_exited(node, result)

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
        node.tree.open.discard(node)
        failure = error if error is not None else RuntimeError("span dropped")
        _report_failed(node, failure)
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
        if node is not None and _may_recall(node) and isinstance(history, str):
            _recall(node.tree, turns_told(history), is_final=False)  # what the answer is asked with is exact

    def stream_ended(self, id_: str, response: Any, error: BaseException | None) -> None:
        """Take the end of a model's stream; the end of a call that does not stream comes with its span."""
        node = self.nodes.get(id_)
        if isinstance(node, ModelCall) and node.id == id_ and node.stream is not None:
            self._read(node.stream, error, response)

    @guarded
    def reset_after_fork(self) -> None:
        """Leave the open spans to the parent, in a forked child; streams that it reads on are reported there."""
        for tree in {id(node.tree): node.tree for node in self.nodes.values()}.values():
            tree.lock = RLock()  # another thread of the parent's may have held it
            if tree.run is not None:
                tree.run.before_finish(_nothing)
            self._forget(tree, is_late_expected=True)

    # beginnings

    def _root_entered(
        self,
        settings: Settings,
        kind: Kind,
        id_: str,
        bound: BoundArguments,
        instance: Any,
        parent_id: str | None,
    ) -> None:
        if kind in {"rerank", "embedding"}:
            return  # alone they are no run: nothing is known of a question
        if parent_id is not None and self._is_buried(parent_id):
            self._bury(id_)
            return
        tree = Tree(settings)
        root = tree.root = _node(tree, None, kind, id_, instance)
        owner: Any = type(instance)
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
            self._forget(next(iter(self._unstarted.values())))

    def _add(self, node: Node) -> None:
        tree = node.tree
        tree.open.add(node)
        tree.ids.append(node.id)
        self.nodes[node.id] = node

    def _begin(self, node: Node, bound: BoundArguments, instance: Any) -> None:
        tree = node.tree
        if tree.run is None:
            self._start(tree)
        _BEGIN[node.kind](node, bound, instance)

    def _start(self, tree: Tree) -> None:
        root, settings = tree.root, tree.settings
        if root is None:
            return
        self._unstarted.pop(id(tree), None)
        facts = said()
        run = (settings.recorder or ragtrace.recorder()).start(
            workflow=settings.workflow or facts.get("workflow") or root.name, started_ns=root.started_ns
        )
        tree.run = run
        run.before_finish(lambda: self._cut_short(tree))
        describe(run, settings, facts)
        if tree.arguments is not None:
            _ask(tree, tree.arguments)
            tree.arguments = None

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
                self._watch_call(node, result)
            else:
                report_call(node, result, None, ended_ns)
        elif node.kind == "query" and node.sources and node.parent is not None:
            pass_on(node, node.found, node.last, ended_ns)

    def _root_exited(self, root: Node, result: Any) -> None:
        tree = root.tree
        if tree.run is None:
            self._forget(tree)
            return
        answer = None if root.kind == "retriever" else _answer(result)
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
            if tree.is_ended:
                return
            tree.is_ended = True
        try:
            self._conclude(tree, answer, outcome, error)
        finally:
            if tree.run is not None:
                tree.run.before_finish(_nothing)  # lets go of the tree
                tree.run.finish(outcome)
            self._forget(tree, is_late_expected=outcome is not None)

    @guarded
    def _conclude(
        self, tree: Tree, answer: str | None, outcome: Outcome | None, error: BaseException | None
    ) -> None:
        run, root = tree.run, tree.root
        if run is None or root is None:
            return
        _break_off(tree, error)
        text = answer if answer is not None else tree.answer or tree.last_text
        settle(root, run, text)
        if text and root.kind != "retriever" and (outcome != "error" or answer is not None):
            run.answered(text, model=tree.last_model, usage=tree.usage)
        if outcome == "interrupted":
            run.interrupted(fields_of(tree.interrupt))
        if error is not None and outcome in {"error", None}:
            run.failed(error)

    @guarded
    def _cut_short(self, tree: Tree) -> None:
        """Report what is there when the recorder ends a run, such as one whose stream nobody read."""
        with tree.lock:
            if tree.is_ended:
                return
            tree.is_ended = True
        self._conclude(tree, None, "partial", None)
        self._forget(tree, is_late_expected=True)

    def _forget(self, tree: Tree, *, is_late_expected: bool = False) -> None:
        """Take a tree off the map, and break its cycles: what it holds goes without a garbage collection."""
        tree.is_ended = True
        self._unstarted.pop(id(tree), None)
        for id_ in tree.ids:
            self.nodes.pop(id_, None)
            if is_late_expected:
                self._bury(id_)
        for stream in tree.streams:
            self._unwatch(stream)
        for thread, stream in tuple(just_fed.items()):
            if stream.node.tree is tree:
                just_fed.pop(thread, None)
        tree.ids = []
        tree.open.clear()
        tree.streams.clear()
        tree.root = tree.run = tree.arguments = tree.interrupt = tree.explicit = tree.error = None
        tree.seen, tree.raw, tree.last = {}, {}, None

    def _let_go(self, tree: Tree, id_: str) -> None:
        if len(tree.ids) > MAX_IDS:
            self.nodes.pop(id_, None)

    def _bury(self, id_: str) -> None:
        """Remember a span whose children are not to open a run of their own."""
        self._buried.add(hash(id_))
        if len(self._buried) > MAX_BURIED:
            self._buried_before, self._buried = self._buried, set()

    def _is_buried(self, id_: str) -> bool:
        name = hash(id_)
        return name in self._buried or name in self._buried_before

    # streams

    @guarded
    def _watch_answer(self, node: Node, response: Any) -> None:
        source = response.response_gen
        if getattr(source, "__name__", None) in {watched.__name__, awatched.__name__} or response.response_txt:
            return
        stream = Stream(node, is_answer=True)
        node.tree.streams.add(stream)
        watch = Watch(stream, self._read)
        is_async = hasattr(source, "__anext__")
        response.response_gen = awatched(source, watch) if is_async else watched(source, watch)

    @guarded
    def _watch_call(self, node: ModelCall, generator: Any) -> None:
        """Wait for a model's stream; that it is dropped unread is told by the generator itself."""
        stream = node.stream = Stream(node, is_answer=False)
        node.tree.streams.add(stream)

        answer = node.read_through
        if answer is not None and not answer.is_fed:
            answer.is_fed = True
            stream.feeds = (answer, len(answer.pieces))

        def take_first(piece: Any) -> None:
            node.first_chunk_ns = time.time_ns()
            stream.pieces.append(piece)
            if stream.feeds is None:
                self.takers[node.id] = stream.pieces.append  # the rest costs an append
            else:
                self.takers.pop(node.id, None)  # or nothing: the answer has them

        self.takers[node.id] = take_first
        stream.watch = weakref.ref(generator, lambda _gone: self._read(stream, GeneratorExit()))
        if node.lazy_key is not None:
            self._lazy[node.lazy_key] = node

    def _unwatch(self, stream: Stream) -> None:
        stream.is_done = True
        stream.watch = None
        node = stream.node
        if isinstance(node, ModelCall) and not stream.is_answer:
            self.takers.pop(node.id, None)
            if stream.feeds is not None:
                answer = stream.feeds[0]
                answer.is_fed = False
                if not answer.is_done:
                    just_fed[get_ident()] = answer
            if node.lazy_key is not None:
                self._lazy.pop(node.lazy_key, None)

    @guarded
    def _read(self, stream: Stream, error: BaseException | None, response: Any = None) -> None:
        """Take the end of a stream: read to its end, left by its reader, or broken by an error."""
        node = stream.node
        tree = node.tree
        with tree.lock:
            if stream.is_done or tree.is_ended:
                stream.is_done = True
                return
            tree.streams.discard(stream)
            self._unwatch(stream)
        is_answering = any(one.is_answer for one in tree.streams)
        if tree.is_waiting and isinstance(error, GeneratorExit):
            # Where an answer is read, that decides, and not the model's stream behind it.
            tree.is_partial = tree.is_partial or stream.is_answer or not is_answering
        elif tree.is_waiting and error is not None:
            tree.error = error
        if isinstance(node, ModelCall) and not stream.is_answer:
            report_call(node, response, error, time.time_ns())
        else:
            self._answer_read(stream, error)
        # An answer that is read is the end, whatever a model's generator may still hold.
        is_open = is_answering if stream.is_answer else bool(tree.streams)
        if tree.is_waiting and not is_open:
            self._stream_over(tree)

    def _answer_read(self, stream: Stream, error: BaseException | None) -> None:
        just_fed.pop(get_ident(), None)
        tree = stream.node.tree
        tree.answer = stream.text
        for inner in tuple(tree.streams):  # nobody reads on in what was read through it
            if isinstance(inner.node, ModelCall) and inner.node.read_through is stream:
                tree.streams.discard(inner)
                self._unwatch(inner)
                report_call(inner.node, None, error, time.time_ns())

    def _stream_over(self, tree: Tree) -> None:
        failure, tree.error = tree.error, None
        if failure is not None:
            self._finish(tree, None, outcome_of(failure), failure)
        else:
            self._finish(tree, None, "partial" if tree.is_partial else None, None)


def _nothing() -> None:
    """Report nothing before a run ends: all is reported."""


def _node(tree: Tree, parent: Node | None, kind: Kind, id_: str, instance: Any) -> Node:
    make = ModelCall if kind in {"model", "embedding"} else Node
    node = make(tree, parent, kind, id_, id(instance), time.time_ns())
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


def _answer(result: Any) -> str | None:
    try:
        return answer_in(result)
    except Exception as error:  # an application's own result may raise anything when it is looked at
        lost("ragtrace_llamaindex.tracer.answer", error)
        return None


@guarded
def _ask(tree: Tree, arguments: Mapping[str, Any]) -> None:
    run = tree.run
    if run is None:
        return
    question = question_in(arguments)
    if question:
        run.asked(question)
        tree.question = question
        tree.has_query = True
    history = history_in(arguments)
    if history and (history[-1].role, history[-1].content) == ("user", question):
        history = history[:-1]  # an agent puts it into the list that it was given
    if history:
        run.conversed(history)
        tree.is_told = True


def _recall(tree: Tree, turns: tuple[Message, ...], *, is_final: bool) -> None:
    """Take the turns before the question from what a chat engine or an agent hands on, where its caller gave none.

    Its memory itself is left alone: to read it may take a database, or a model that summarises.
    """
    examples = tree.examples
    if turns[: len(examples)] == examples:
        turns = turns[len(examples) :]
    if turns and tree.run is not None:
        tree.run.conversed(turns)
        tree.is_told = is_final


def _may_recall(node: Node | None) -> bool:
    """Tell whether what happens right inside a node may tell the turns before the run's question."""
    return node is not None and node.parent is None and node.tree.keeps_turns and not node.tree.is_told


def _ask_first(node: Node, question: str) -> None:
    tree = node.tree
    if question and tree.run is not None and not tree.has_query:
        tree.run.asked(question)
        tree.question = question
        tree.has_query = True


@guarded
def _begin_query(node: Node, bound: BoundArguments, _instance: Any) -> None:
    if not node.tree.has_query and node.within is None:
        _ask(node.tree, bound.arguments)


@guarded
def _begin_retrieval(node: Node, bound: BoundArguments, instance: Any) -> None:
    node.query = query_text(argument(bound, "str_or_query_bundle")) or question_in(bound.arguments)
    node.source = _source_of(instance) or node.name
    top_k = first_of(instance, ("similarity_top_k", "_similarity_top_k", "top_k"))
    node.top_k = top_k if isinstance(top_k, int) else None
    _ask_first(node, node.query)


def _source_of(retriever: Any) -> str | None:
    """Return the name of the index a retriever searches, where it or its vector store says one."""
    for part in (retriever, first_of(retriever, ("_vector_store",))):
        name = None if part is None else first_of(part, ("index_name", "collection_name", "table_name"))
        if isinstance(name, str) and name:
            return name
    return None


@guarded
def _begin_rerank(node: Node, bound: BoundArguments, instance: Any) -> None:
    take_given(node, argument(bound, "nodes"))
    model = first_of(instance, ("model_name", "model"))
    node.model = model if isinstance(model, str) else None
    top_n = first_of(instance, ("top_n",))
    node.top_k = top_n if isinstance(top_n, int) else None


@guarded
def _begin_synthesis(node: Node, bound: BoundArguments, instance: Any) -> None:
    tree = node.tree
    if _may_recall(node.parent):
        template = first_of(instance, ("_text_qa_template",))
        _recall(tree, before_question(turns_in(first_of(template, ("message_templates",)))), is_final=True)
    arguments = bound.arguments
    _ask_first(node, query_text(arguments.get("query")))
    if tree.run is not None:
        take_synthesized(node, tree.run, arguments.get("nodes"))


@guarded
def _begin_call(node: Node, bound: BoundArguments, instance: Any) -> None:
    if not isinstance(node, ModelCall):
        return
    take_asked(node, bound, instance)
    if node.kind == "model":
        node.lazy_key = (id(instance), id(asked_of(bound)))
        if _may_recall(node.parent):
            _recall(node.tree, turns_before(node.messages, node.tree.question), is_final=True)
    if node.parent is None and node.tree.run is not None and node.messages:
        _ask_first(node, next((m.content for m in reversed(node.messages) if m.role == "user"), ""))
        node.tree.run.conversed(before_question(node.messages))


_BEGIN = {
    "query": _begin_query,
    "retriever": _begin_retrieval,
    "rerank": _begin_rerank,
    "synthesize": _begin_synthesis,
    "model": _begin_call,
    "embedding": _begin_call,
}


def _break_off(tree: Tree, error: BaseException | None) -> None:
    """Report what is still open when a run ends: what it had done by then, and why it stopped."""
    now_ns = time.time_ns()
    for stream in tuple(tree.streams):
        stream.is_done = True
        node = stream.node
        if stream.is_answer:
            tree.answer = stream.text or tree.answer
        elif isinstance(node, ModelCall) and (stream.pieces or error is not None):
            report_call(node, None, error, now_ns)
    if error is not None:
        for node in tuple(tree.open):
            if node.parent is not None:
                _report_failed(node, error)


@guarded
def _report_failed(node: Node, error: BaseException) -> None:
    run = node.tree.run
    if run is None:
        return
    now_ns = time.time_ns()
    if node.kind == "retriever":
        if node.within is not None:
            node.within.is_outer = True
        run.retrieved(
            (),
            source=node.source,
            query=node.query or None,
            top_k=node.top_k,
            started_ns=node.started_ns,
            ended_ns=now_ns,
            key=node.id,
            parent_key=node.within_key,
            error=error,
        )
    elif node.kind == "rerank" and node.given is not None:
        run.reranked(
            (),
            candidates=node.given.passages(run.reader),
            model=node.model or node.name,
            top_n=node.top_k,
            started_ns=node.started_ns,
            ended_ns=now_ns,
            parent_key=node.within_key,
            error=error,
        )
    elif isinstance(node, ModelCall):
        report_call(node, None, error, now_ns)
