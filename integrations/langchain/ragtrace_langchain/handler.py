"""The callback handler: a thin translation from LangChain events to runs and steps."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler

import ragtrace
from ragtrace.capture import guarded, guarded_constructor, outcome_of
from ragtrace.model import added_usage
from ragtrace_langchain.control import is_control_flow, is_interrupt, payload_of
from ragtrace_langchain.documents import as_given
from ragtrace_langchain.extract import (
    answer_in,
    history_in,
    piece_text,
    prompt_text,
    question_in,
    recalled_in,
    structured_text,
    turns_in,
)
from ragtrace_langchain.models import model_facts, reply_of
from ragtrace_langchain.request import PREFIX, Defaults, describe, workflow_of
from ragtrace_langchain.runs import ambient_run_id, runs_of
from ragtrace_langchain.selection import settle, take_chain, take_failed, take_prompt, take_retrieved
from ragtrace_langchain.tree import ModelCall, Node, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from ragtrace.capture import Recorder
    from ragtrace.model import Outcome
    from ragtrace_langchain.models import Reply
    from ragtrace_langchain.runs import RunMap
    from ragtrace_langchain.tree import Kind


class RagtraceHandler(BaseCallbackHandler):
    """Captures every top-level LangChain run it is given to: ``config={"callbacks": [RagtraceHandler()]}``.

    One handler may serve any number of threads, tasks and requests at once; it keeps nothing of a run that has
    ended. It never raises and never does I/O: what it fails at is counted in ``ragtrace.capture.losses``.

    Args:
        recorder: where runs go; default the process's own, as ``ragtrace.configure`` set it up.
        workflow: name of the application; default the metadata ``ragtrace.workflow``, else the root run's name.
        session: conversation id of every run; the metadata ``ragtrace.session`` of a request comes first.
        user: end user's id, likewise.
        corpus: name of the index searched, likewise.
        corpus_version: its version, likewise.
        k: cut-off of @K metrics, likewise; default the number of contexts delivered.
        tags: tags of every run.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from ragtrace.capture import Recorder
        >>> chain = RunnableLambda(lambda question: "In Oslo.")
        >>> chain.invoke("Where?", config={"callbacks": [RagtraceHandler(Recorder())]})
        'In Oslo.'
    """

    raise_error = False
    run_inline = True  # else async runs send it to a thread of an executor

    @guarded_constructor
    def __init__(
        self,
        recorder: Recorder | None = None,
        *,
        workflow: str | None = None,
        session: str | None = None,
        user: str | None = None,
        corpus: str | None = None,
        corpus_version: str | None = None,
        k: int | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        self._recorder = recorder
        self._runs = runs_of(recorder)
        self._defaults = Defaults(
            workflow=workflow,
            session=session,
            user=user,
            corpus=corpus,
            corpus_version=corpus_version,
            k=k,
            tags=tuple(tags),
        )

    @property
    def ignore_retry(self) -> bool:
        """Retries are attempts of one run: the attempt that counts reports itself."""
        return True

    @property
    def ignore_custom_event(self) -> bool:
        """An application's own events are none of ours."""
        return True

    @guarded
    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a run for a top-level chain, or note a chain inside one."""
        name = _name(serialized, kwargs)
        node = self._begin("chain", name, run_id, parent_run_id, tags, metadata)
        if node is not None:
            _take_inputs(node, inputs)

    @guarded
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Take documents that a chain handed on; end the run with its root."""
        node = self._runs.pop(run_id)
        if node is not None:
            self._chain_ended(node, outputs, kwargs, run_id)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """End the run with its root; a chain inside may fail and be caught."""
        node = self._runs.pop(run_id)
        if node is not None:
            self._failed(node, error, kwargs, run_id)

    @guarded
    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a tool call: a retriever inside it belongs to the run."""
        node = self._begin("tool", _name(serialized, kwargs), run_id, parent_run_id, tags, metadata)
        if node is not None:
            _take_inputs(node, inputs if inputs is not None else input_str)

    @guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Take documents that a tool handed on."""
        node = self._runs.pop(run_id)
        if node is not None:
            self._chain_ended(node, output, kwargs, run_id)

    @guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """End the run when the tool was its root."""
        node = self._runs.pop(run_id)
        if node is not None:
            self._failed(node, error, kwargs, run_id)

    @guarded
    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note a retriever call, or open a run for a top-level one."""
        node = self._begin("retriever", _name(serialized, kwargs), run_id, parent_run_id, tags, metadata)
        if node is not None:
            _take_query(node, query, str(run_id), metadata or {})

    @guarded
    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **_kwargs: Any) -> None:
        """Take what a retriever returned."""
        node = self._runs.pop(run_id)
        if node is None:
            return
        take_retrieved(node, documents, time.time_ns())
        if node.parent is None:
            self._finish(node, run_id, None)

    @guarded
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Report a retriever that failed."""
        node = self._runs.pop(run_id)
        if node is not None:
            _report_failed_retrieval(node, error)
            self._failed(node, error, kwargs, run_id)

    @guarded
    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Take the rendered prompt of a chat model call."""
        node = self._begin("model", _name(serialized, kwargs), run_id, parent_run_id, tags, metadata)
        if isinstance(node, ModelCall):
            _take_prompt(node, messages[0] if messages else (), serialized, metadata, kwargs)

    @guarded
    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Take the rendered prompt of a text model call."""
        node = self._begin("model", _name(serialized, kwargs), run_id, parent_run_id, tags, metadata)
        if isinstance(node, ModelCall):
            node.operation = "text_completion"
            _take_prompt(node, [("user", str(prompt)) for prompt in prompts[:1]], serialized, metadata, kwargs)

    @guarded
    def on_llm_new_token(self, token: Any, *, run_id: UUID, **_kwargs: Any) -> None:
        """Note a streamed chunk: the first one's time, and its text for a stream that breaks off."""
        node = self._runs.get(run_id)
        if isinstance(node, ModelCall):
            node.streams(token if type(token) is str else piece_text(token), time.time_ns())
            node.tree.run.touched = time.monotonic()  # a stream that flows is not idle

    @guarded
    def on_stream_event(self, event: Any, *, run_id: UUID, **_kwargs: Any) -> None:  # noqa: ARG002 - called by keyword
        """Note an event of the newer streaming protocol, for the first one's time."""
        node = self._runs.get(run_id)
        if isinstance(node, ModelCall):
            node.streams("", time.time_ns())

    @guarded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_kwargs: Any) -> None:
        """Report a model call, and end the run when it was its root."""
        node = self._runs.pop(run_id)
        if not isinstance(node, ModelCall):
            return
        _report_call(node, response, None)
        if node.parent is None:
            self._finish(node, run_id, node.tree.last_text)

    @guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Report a model call that failed, with what it had said by then."""
        node = self._runs.pop(run_id)
        if isinstance(node, ModelCall):
            _report_call(node, kwargs.get("response"), error)
            self._failed(node, error, kwargs, run_id)

    @guarded
    def on_interrupt(self, event: Any) -> None:
        """LangGraph calls this by name; the interrupt itself arrives as a chain's error."""

    @guarded
    def on_resume(self, event: Any) -> None:
        """LangGraph calls this by name; a resumed graph is a run of its own."""

    def _begin(
        self,
        kind: Kind,
        name: str,
        run_id: UUID,
        parent_run_id: UUID | None,
        tags: list[str] | None,
        metadata: dict[str, Any] | None,
    ) -> Node | None:
        """Put an event on the map; None for one that is there already or belongs to a run that has ended."""
        runs = self._runs
        if runs.get(run_id) is not None:
            return None
        above = parent_run_id if parent_run_id is not None else ambient_run_id()
        parent = runs.get(above) if above is not None else None
        now_ns = time.time_ns()
        if parent is not None:
            if parent.tree.run.is_finished:
                runs.drop(parent.tree, run_id)
                return None
            node = _node(parent.tree, parent, kind, name, now_ns)
            parent.tree.run.touched = time.monotonic()
        elif parent_run_id is not None and runs.is_buried(parent_run_id):
            runs.bury(run_id)
            return None
        else:
            node = _node(self._open(name, tags, metadata or {}, now_ns), None, kind, name, now_ns)
        runs.add(run_id, node)
        return node

    def _open(self, name: str, tags: list[str] | None, metadata: Mapping[str, Any], now_ns: int) -> Tree:
        recorder = self._recorder or ragtrace.recorder()
        run = recorder.start(workflow=workflow_of(self._defaults, metadata, name), started_ns=now_ns)
        describe(run, self._defaults, metadata, tags)
        tree = Tree(run)
        run.before_finish(partial(_end_early, self._runs, tree))
        return tree

    def _chain_ended(self, node: Node, outputs: Any, kwargs: dict[str, Any], run_id: UUID) -> None:
        inputs = kwargs.get("inputs", node.inputs)
        if outputs is not None:
            take_chain(node, inputs, outputs, time.time_ns())
        if node.parent is not None:
            return
        is_streamed = "inputs" in kwargs
        if is_streamed:
            _ask(node.tree, inputs)
        answer = _answer(node.tree, outputs, is_streamed=is_streamed)
        if node.tree.is_interrupted:
            self._finish(node, run_id, answer, "interrupted")
        elif is_streamed and self._is_broken_off(node.tree, outputs):
            self._finish(node, run_id, answer, "partial")
        else:
            self._finish(node, run_id, answer)

    def _is_broken_off(self, tree: Tree, outputs: Any) -> bool:
        """Tell whether a stream was abandoned: LangChain then ends its root like one that was read to the end."""
        opened = list(self._runs.opened(tree))
        is_streaming = any(isinstance(node, ModelCall) and node.first_chunk_ns for node in opened)
        return is_streaming or (bool(opened) and outputs is None)

    def _failed(self, node: Node, error: BaseException, kwargs: dict[str, Any], run_id: UUID) -> None:
        if is_interrupt(error):
            _take_interrupt(node.tree, error)
        take_failed(node, error)
        if node.parent is not None:
            return
        if "inputs" in kwargs:
            _ask(node.tree, kwargs["inputs"])
        if is_interrupt(error):
            self._finish(node, run_id, None, "interrupted")
        elif is_control_flow(error):
            self._finish(node, run_id, None)
        else:
            self._finish(node, run_id, None, outcome_of(error), error)

    def _finish(
        self,
        root: Node,
        run_id: UUID,
        answer: str | None,
        outcome: Outcome | None = None,
        error: BaseException | None = None,
    ) -> None:
        """End the run whatever becomes of its last facts, and forget the tree."""
        tree = root.tree
        tree.is_concluded = True
        try:
            for node in self._runs.opened(tree):
                _break_off(node, error)
            _conclude(root, answer, outcome, error)
        finally:
            tree.run.finish(outcome)
            self._runs.drop(tree, run_id)


def _end_early(runs: RunMap, tree: Tree) -> None:
    """Report what is open when something else ends the run, as the recorder's sweep ends a leaked stream."""
    if tree.is_concluded:
        return
    tree.is_concluded = True
    try:
        for node in runs.opened(tree):
            _break_off(node, None)
        if tree.root is not None:
            _conclude(tree.root, None, "partial", None)
    finally:
        runs.drop(tree)


def _node(tree: Tree, parent: Node | None, kind: Kind, name: str, now_ns: int) -> Node:
    if kind == "model":
        return ModelCall(tree, parent, name, now_ns)
    return Node(tree, parent, kind, name, now_ns)


def _name(serialized: Mapping[str, Any] | None, kwargs: Mapping[str, Any]) -> str:
    name = kwargs.get("name")
    if not name and isinstance(serialized, dict):
        name = serialized.get("name") or (serialized.get("id") or [None])[-1]
    return str(name) if name else "unnamed"


@guarded
def _take_inputs(node: Node, inputs: Any) -> None:
    node.inputs, node.given = as_given(inputs)
    if node.given and node.tree.given is None and not node.tree.pool:
        node.tree.given = node.given
    if node.within is None and not node.tree.has_query:
        _ask(node.tree, inputs)
    elif node.within is None and node.parent is not None:
        _recall(node)


@guarded
def _take_interrupt(tree: Tree, error: BaseException) -> None:
    tree.is_interrupted = True
    asked = payload_of(error)
    if asked and asked not in tree.interrupts:  # it passes through the node and each graph around it
        tree.interrupts.append(asked)


@guarded
def _ask(tree: Tree, inputs: Any) -> None:
    question = question_in(inputs)
    if question:
        tree.has_query = True
        tree.run.asked(question)
        history = history_in(inputs)
        if history:
            tree.run.conversed(history)


def _recall(node: Node) -> None:
    """Take the turns that a memory keeps, where the root's input has none; after the answer it holds that too."""
    tree = node.tree
    root = tree.root
    if root is None or root.has_model or "history" in tree.run.facts:
        return
    turns = recalled_in(node.inputs, root.inputs)
    if turns:
        tree.run.conversed(turns)


@guarded
def _take_query(node: Node, query: Any, key: str, metadata: Mapping[str, Any]) -> None:
    node.key = key
    node.query = query if isinstance(query, str) else str(query)
    node.source = str(metadata.get(f"{PREFIX}source") or node.name)
    top_k = metadata.get(f"{PREFIX}top_k")
    node.top_k = top_k if isinstance(top_k, int) else None
    if not node.tree.has_query:
        node.tree.run.asked(node.query)  # a stream's question comes with its end; until then this one stands
        node.tree.has_query = node.parent is None


@guarded
def _take_prompt(
    node: ModelCall,
    prompt: Sequence[Any],
    serialized: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    kwargs: Mapping[str, Any],
) -> None:
    node.facts = model_facts(serialized, metadata, kwargs.get("invocation_params"), node.name)
    node.messages = turns_in(prompt)
    for above in node.enclosing():
        above.has_model = True
    if node.parent is None:
        _ask(node.tree, prompt)
    if node.within is None:  # a prompt inside a retriever asks for other queries, not for the answer
        take_prompt(node.tree)
        node.tree.run.prompted(prompt_text(node.messages))


@guarded
def _report_call(node: ModelCall, response: LLMResult | None, error: BaseException | None) -> None:
    reply = reply_of(response)
    text = reply.text or "".join(node.streamed)
    tree = node.tree
    if node.within is None:
        tree.last_text = text or tree.last_text
        tree.last_model = node.facts.model if node.facts else node.name
        tree.usage = added_usage(tree.usage, reply.usage)
    _generated(node, reply, text, None if error is None or is_control_flow(error) else error)


def _generated(node: ModelCall, reply: Reply, text: str, error: BaseException | None) -> None:
    facts = node.facts
    outputs = reply.outputs or (turns_in([("assistant", text)]) if text else ())
    node.tree.run.generated(
        operation=node.operation,
        model=facts.model if facts else node.name,
        provider=facts.provider if facts else None,
        response_model=reply.response_model,
        response_id=reply.response_id,
        inputs=node.messages,
        outputs=outputs,
        usage=reply.usage,
        finish_reasons=reply.finish_reasons,
        first_chunk_s=node.first_chunk_s,
        is_in_process=facts.is_in_process if facts else False,
        started_ns=node.started_ns,
        key=node.key or None,
        parent_key=node.within_key,
        error=error,
    )


@guarded
def _report_failed_retrieval(node: Node, error: BaseException) -> None:
    node.tree.run.retrieved(
        (),
        source=node.source,
        query=node.query or None,
        top_k=node.top_k,
        started_ns=node.started_ns,
        key=node.key or None,
        parent_key=node.within_key,
        error=None if is_control_flow(error) else error,
    )


@guarded
def _break_off(node: Node, error: BaseException | None) -> None:
    """Report a step that was still open when its root ended: what it had done by then, and why it stopped."""
    if isinstance(node, ModelCall):
        if error is not None or node.first_chunk_ns:
            _report_call(node, None, error)
    elif node.kind == "retriever" and error is not None:
        _report_failed_retrieval(node, error)


@guarded
def _answer(tree: Tree, outputs: Any, *, is_streamed: bool) -> str | None:
    """Return the root's answer, None for what the last model said.

    A stream whose pieces cannot be added up leaves the root with the last piece alone; the model has the whole.
    """
    answer = answer_in(outputs)
    if answer is None:
        is_wordless = tree.last_model is not None and not tree.last_text  # it called a tool with its answer
        return structured_text(outputs) if is_wordless else None
    whole = tree.last_text
    is_last_piece = is_streamed and len(answer) < len(whole) and whole.endswith(answer)
    return whole if is_last_piece else answer


@guarded
def _conclude(root: Node, answer: str | None, outcome: Outcome | None, error: BaseException | None) -> None:
    tree = root.tree
    settle(root)
    if tree.interrupts:
        tree.run.interrupted("\n".join(tree.interrupts))
    text = answer if answer is not None else tree.last_text
    if outcome == "partial" and tree.last_text.startswith(text):
        text = tree.last_text  # LangChain hands an abandoned root all pieces but the last one that was read
    if text and (outcome != "error" or answer is not None):
        tree.run.answered(text, model=tree.last_model, usage=tree.usage)
    if error is not None and outcome in {"error", None}:
        tree.run.failed(error)


__all__ = ["RagtraceHandler"]
