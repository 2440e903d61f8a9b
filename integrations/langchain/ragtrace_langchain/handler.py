"""The callback handler: it notes what LangChain tells as events of a run."""

from __future__ import annotations

import sys
import time
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from msgspec.structs import replace

import ragtrace
from ragtrace.capture import Defaults, current_run, entered_run, guarded, guarded_constructor, outcome_of
from ragtrace.capture.declared import Declared
from ragtrace.capture.events import Began, Event, Gave, Said, Sought
from ragtrace.capture.values import told
from ragtrace_langchain.calls import (
    PREFIX,
    asked_of,
    asks_of,
    describe_configured,
    describe_prompt,
    describe_request,
    node_of,
    piece_text,
    said_of,
    workflow_of,
)
from ragtrace_langchain.open_runs import (
    ModelCall,
    OpenRun,
    OpenStep,
    caller,
    current_call,
    entered_retrievers,
    name_of,
    recorder_named,
    runs_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import FrameType
    from uuid import UUID

    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from ragtrace.capture import Recorder
    from ragtrace.capture.declared import Evidence
    from ragtrace.capture.events import Kind
    from ragtrace.capture.types import Operation
    from ragtrace.model import Outcome
    from ragtrace_langchain.open_runs import RunMap


_NO_QUESTION = frozenset({"prompt", "parser"})  # steps without a question of their own


class _Inline:
    """Whether async runs call a handler in their own context, not in an executor's thread: yes, but for one reader.

    ``AsyncCallbackManager.on_llm_start`` starts no other handler as soon as one is inline. Where only ours are, it
    reads no, and hands all handlers to ``ahandle_event``, which reads yes. An application may still set a value.
    """

    _READER = "AsyncCallbackManager.on_llm_start"  # and its comprehensions, which are frames of their own in 3.11

    def __get__(self, handler: object, owner: type | None = None) -> bool:
        reader = sys._getframe(1)  # noqa: SLF001 - 0.1 µs; inspect.stack reads source files
        return not (reader.f_code.co_qualname.startswith(self._READER) and _only_ours_are_inline(reader))


@guarded
def _only_ours_are_inline(reader: FrameType) -> bool:
    """Tell whether the manager whose method is reading has no inline handler but ours."""
    frame: FrameType | None = reader
    while frame is not None and "self" not in frame.f_locals:
        frame = frame.f_back
    handlers = frame.f_locals["self"].handlers if frame is not None else ()
    return not any(one.run_inline for one in handlers if not isinstance(one, RagtraceHandler))


class RagtraceHandler(BaseCallbackHandler):
    """Captures the questions among top-level LangChain calls: ``config={"callbacks": [RagtraceHandler()]}``.

    One handler may serve any number of threads, tasks and requests at once; it keeps nothing of a run that has
    ended. A call that is given it twice, or with a copy of it, is captured once. It never raises and never does
    I/O: what it fails at is counted in ``ragtrace.capture.internal_errors``.

    Args:
        recorder: where runs go; default the process's own, as ``ragtrace.configure`` set it up.
        workflow: name of the application; default the name given to the root, else the setting. The metadata
            ``ragtrace.workflow`` of a request comes first, and so it is with the others.
        session: conversation id of every run.
        user: end user's id.
        corpus: name of the index searched.
        corpus_version: its version.
        k: cut-off of @K metrics; default the number of contexts delivered.
        tags: tags of every run; a text is one.
        question: where the question stands, such as ``input.ticket.body`` or ``state.messages[-1]``; see
            docs/how-to/declare.md for this and what follows.
        answer: where the answer stands, such as ``output.report``.
        selected: where the chosen passages stand.
        evidence: names of tools, retrievers, functions and places: True of evidence, False of none, or where in its
            output the evidence stands. A list of names is True of each.
        roots: names of the calls that are runs; others are none.
        follows: False where no run repeats the answer of the one before it.

    Raises:
        ConfigError: a declaration is wrong; nothing else raises.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from ragtrace.capture import Recorder
        >>> chain = RunnableLambda(lambda question: "In Oslo.")
        >>> chain.invoke("Where?", config={"callbacks": [RagtraceHandler(Recorder())]})
        'In Oslo.'
    """

    raise_error = False
    run_inline = _Inline()

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
        question: str | None = None,
        answer: str | None = None,
        selected: str | None = None,
        evidence: Evidence | None = None,
        roots: Iterable[str] | None = None,
        follows: bool | None = None,
    ) -> None:
        self._runs = runs_of(recorder)
        self._defaults = Defaults(
            recorder=recorder,
            workflow=workflow,
            session=session,
            user=user,
            corpus=corpus,
            corpus_version=corpus_version,
            k=k,
            tags=tags,
            declared=Declared.of(
                question=question,
                answer=answer,
                selected=selected,
                evidence=evidence,
                roots=roots,
                follows=follows,
            ),
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle the handler as another one of the same recorder; in another process, of that one's."""
        said = self._defaults
        defaults = {
            one.name: getattr(said, one.name) for one in fields(said) if one.name not in {"recorder", "declared"}
        } | said.declared.said()
        own = {name: value for name, value in vars(self).items() if name not in {"_runs", "_defaults"}}
        return _again, (type(self), name_of(said.recorder), defaults), own or None

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
        serialized: dict[str, object] | None,
        inputs: object,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Open a run for a top-level chain, or note a chain inside one."""
        if parent_run_id is None and kwargs.get("run_type") in _NO_QUESTION and self._is_alone():
            return
        step = self._begin("chain", kwargs.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata)
        if step is None:
            return
        if metadata and "lc_hub_repo" in metadata:
            describe_prompt(step.of.run, metadata)
        is_frame_read = "langgraph.pregel" in sys.modules or "langchain_classic.agents.agent" in sys.modules
        node = node_of(tags, metadata) if tags else None
        value = step.of.values.handed_in(inputs)
        if is_frame_read and (frame := caller()) is not None:
            step.graph = graph_of(frame)
            step.begins(Began(value, node, is_graph=step.graph is not None, agent=agent_of(frame)))
        else:
            step.begins(Began(value, node))

    @guarded
    def on_chain_end(self, outputs: object, *, run_id: UUID, **kwargs: object) -> None:
        """Note what a chain or a tool gave out; end the run with its root."""
        step = self._runs.pop(run_id)
        if step is None:
            return
        now_ns, values = time.time_ns(), step.of.values
        graph, step.graph = step.graph, None
        is_shown, is_streamed = step.is_top or step.kind == "tool", "inputs" in kwargs
        is_left = sys.exc_info()[0] is GeneratorExit
        try:
            made = values.given(outputs, is_last=step.parent is None) if is_shown else values.of(outputs)
            step.ends(
                Gave(
                    made,
                    text=values.text(outputs, made) if step.kind == "tool" else None,
                    streamed_input=values.of(kwargs["inputs"]) if is_streamed else None,
                    is_streamed=is_streamed,
                    is_left=is_left,
                    is_waiting=graph is not None and is_at_breakpoint(graph),
                ),
                now_ns,
            )
        finally:  # a run whose last value cannot be read ends too
            if step.parent is None:
                self._finish(step, run_id)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """End the run with its root; a chain or a tool inside may fail and be caught."""
        step = self._runs.pop(run_id)
        if step is not None:
            self._failed(step, error, kwargs, run_id)

    @guarded
    def on_tool_start(
        self,
        serialized: dict[str, object] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, object] | None = None,
        inputs: dict[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Note a tool call: a retriever inside it belongs to the run."""
        step = self._begin("tool", kwargs.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata)
        if step is None:
            return
        call_id, values = kwargs.get("tool_call_id"), step.of.values
        tool = told_by.f_locals.get("self") if (told_by := caller()) is not None else None
        step.begins(
            Began(
                values.of(inputs if inputs is not None else input_str),
                call_id=call_id if isinstance(call_id, str) else None,
                description=told(serialized.get("description")) or None if serialized else None,
                is_direct=getattr(tool, "return_direct", False) is True,  # no event says it
            )
        )

    on_tool_end = on_chain_end  # type: ignore[assignment]  # its output has another name, and comes by place
    on_tool_error = on_chain_error

    @guarded
    def on_retriever_start(
        self,
        serialized: dict[str, object] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Note a retriever call, or open a run for a top-level one."""
        step = self._begin("search", kwargs.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata)
        if step is not None:
            noted: Mapping[str, object] = metadata or {}
            source, top_k = noted.get(f"{PREFIX}source"), noted.get(f"{PREFIX}top_k")
            step.begins(
                Sought(
                    told(query),
                    told(source) or None,
                    top_k if isinstance(top_k, int) else None,
                )
            )
            self._runs.enter_retriever(run_id)

    @guarded
    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **_kwargs: object) -> None:
        """Note what a retriever returned."""
        step = self._runs.pop(run_id)
        if step is None:
            return
        step.ends(step.of.values.documents(documents), time.time_ns())
        if step.parent is None:
            self._finish(step, run_id)

    on_retriever_error = on_chain_error

    @guarded
    def on_chat_model_start(
        self,
        serialized: dict[str, object] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Note the rendered prompt of a chat model call."""
        prompt = messages[0] if messages else ()
        self._begin_model("chat", prompt, serialized, run_id, parent_run_id, tags, metadata, kwargs)

    @guarded
    def on_llm_start(
        self,
        serialized: dict[str, object] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        """Note the rendered prompt of a text model call."""
        prompt = [str(prompt) for prompt in prompts[:1]]
        self._begin_model("text_completion", prompt, serialized, run_id, parent_run_id, tags, metadata, kwargs)

    def _begin_model(
        self,
        operation: Operation,
        prompt: Sequence[object],
        serialized: Mapping[str, object] | None,
        run_id: UUID,
        parent_run_id: UUID | None,
        tags: list[str] | None,
        metadata: dict[str, object] | None,
        extra: Mapping[str, object],
    ) -> None:
        step = self._begin("model", extra.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata)
        if step is not None:
            turns = step.of.values.turns(prompt)
            step.begins(asked_of(step.name, turns, operation, serialized, metadata, extra))

    @guarded
    def on_llm_new_token(self, token: object, *, run_id: UUID, **_kwargs: object) -> None:
        """Note a streamed chunk: the first one's time, and its text for a stream that breaks off."""
        step = self._runs.get(run_id)
        if isinstance(step, ModelCall):
            step.pieces_told += 1
            if step.pieces_told % step.listeners:
                return
            now_ns = step.first_chunk_ns or time.time_ns()  # the first chunk's time is kept, and no other
            step.streams(token if type(token) is str else piece_text(token), now_ns)
            step.of.run.last_activity = time.monotonic()  # a stream that flows is not idle

    @guarded
    def on_stream_event(self, event: object, *, run_id: UUID, **_kwargs: object) -> None:  # noqa: ARG002 - called by keyword
        """Note an event of the newer streaming protocol, for the first one's time."""
        step = self._runs.get(run_id)
        if isinstance(step, ModelCall):
            step.streams("", time.time_ns())

    @guarded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_kwargs: object) -> None:
        """Note what a model replied, and end the run when it was its root."""
        step = self._runs.pop(run_id)
        if isinstance(step, ModelCall):
            step.ends(_said(step, response), time.time_ns())
            if step.parent is None:
                self._finish(step, run_id)

    @guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """Note a model call that failed, with what it had said by then."""
        step = self._runs.pop(run_id)
        if isinstance(step, ModelCall):
            failure = None if is_control_flow(error) else step.of.run.failure_of(error)
            step.ends(_said(step, kwargs.get("response")), time.time_ns(), failure)
            if step.parent is None:
                self._end_by(error, step, run_id)

    @guarded
    def on_interrupt(self, event: object) -> None:
        """LangGraph calls this by name; the interrupt itself arrives as a chain's error."""

    @guarded
    def on_resume(self, event: object) -> None:
        """LangGraph calls this by name; a resumed graph is a run of its own."""

    def _begin(
        self,
        kind: Kind,
        name: object,
        run_id: UUID,
        parent_run_id: UUID | None,
        tags: list[str] | None,
        metadata: dict[str, object] | None,
    ) -> OpenStep | None:
        """Put a step on the map; None for one that is there already or belongs to a run that has ended."""
        runs = self._runs
        steps = runs.steps
        known = steps.get(getattr(run_id, "int", run_id))
        if known is not None:
            if isinstance(known, ModelCall):
                known.listeners += 1
            return None
        above = parent_run_id if parent_run_id is not None else current_call()[0]
        parent = steps.get(getattr(above, "int", above))
        # Without ``run_manager.get_child()`` a retriever inside another names a wrong parent, or none.
        retriever = runs.entered_retriever() if entered_retrievers() else None
        if retriever is not None and (parent is None or retriever.is_in(parent)):
            parent = retriever
        now_ns = time.time_ns()
        if parent is not None:
            tree = parent.of
            if tree.run.is_finished:
                if not tree.is_concluded:  # else another thread does that, and need not be waited for
                    _conclude(runs, tree, "partial", None)
                runs.bury(run_id)
                return None
            if not tree.is_described:
                current, configurable = current_call()
                tree.is_described = above == current  # not for a step of a batch
                if configurable and above == current:
                    describe_configured(tree.run, configurable)
        elif parent_run_id is not None and runs.is_buried(parent_run_id):
            runs.bury(run_id)
            return None
        else:
            for left in runs.left():
                _conclude(runs, left, "partial", None)
            joined = self._joined(tags, metadata or {}) if entered_run() is not None else None
            tree = joined or self._open(str(name), tags, metadata or {}, now_ns)
            parent = tree.block
        step = (ModelCall if kind == "model" else OpenStep)(tree, parent, kind, str(name), now_ns)
        runs.add(run_id, step)
        return step

    def _open(self, name: str, tags: list[str] | None, metadata: Mapping[str, object], now_ns: int) -> OpenRun:
        defaults = self._defaults
        recorder = defaults.recorder or ragtrace.recorder()
        run = recorder.start(workflow=workflow_of(defaults, metadata, name), started_ns=now_ns)
        describe_request(run, defaults, metadata, tags)
        tree = OpenRun(run)
        run.before_finish(partial(_conclude, self._runs, tree, "partial", None), "langchain")
        return tree

    def _joined(self, tags: list[str] | None, metadata: Mapping[str, object]) -> OpenRun | None:
        """Return the tree of the run that the application opened around this call, None where it opened none."""
        run = current_run()
        if run is None or not (self._defaults.recorder or ragtrace.recorder()).has_open(run):
            return None
        tree = self._runs.join(run)
        if tree is None:
            tree = OpenRun(run, is_joined=True)
            tree.block = OpenStep(tree, None, "chain", "block", run.started_ns)
            kept = self._runs.joined(tree)
            if kept is tree:
                tree.block.begins(Began(is_block=True))
                run.before_finish(partial(_conclude, self._runs, tree, None, None), "langchain")
            tree = kept
        describe_request(run, self._defaults, metadata, tags, is_joined=True)
        return tree

    def _is_alone(self) -> bool:
        """Tell whether the code that is executing belongs to no run."""
        above, _ = current_call()
        is_inside = above is not None and self._runs.get(above) is not None
        return not is_inside and current_run() is None and self._runs.entered_retriever() is None

    def _failed(self, step: OpenStep, error: BaseException, kwargs: dict[str, object], run_id: UUID) -> None:
        """Note a step that stopped by an exception; end the run with its root."""
        now_ns = time.time_ns()
        step.graph = None
        is_steered, is_streamed = is_control_flow(error), "inputs" in kwargs
        gave = Gave(
            streamed_input=step.of.values.of(kwargs["inputs"]) if is_streamed else None,
            is_streamed=is_streamed,
            is_left=isinstance(error, GeneratorExit),
            is_steered=is_steered,
            is_stopped=not isinstance(error, Exception),
            asks=asks_of(error) if is_interrupt(error) else None,
        )
        step.ends(gave, now_ns, None if is_steered else step.of.run.failure_of(error))
        if step.parent is None:
            self._end_by(error, step, run_id)

    def _end_by(self, error: BaseException, root: OpenStep, run_id: UUID) -> None:
        if is_control_flow(error):
            self._finish(root, run_id)
        else:
            self._finish(root, run_id, outcome_of(error), error)

    def _finish(
        self, root: OpenStep, run_id: UUID, outcome: Outcome | None = None, error: BaseException | None = None
    ) -> None:
        """End the run whatever becomes of its last facts, and forget the tree."""
        self._runs.bury(run_id)
        try:
            _conclude(self._runs, root.of, outcome, error)
        finally:
            root.of.run.finish(outcome)


def _conclude(runs: RunMap, tree: OpenRun, outcome: Outcome | None, error: BaseException | None) -> None:
    """Note what is open where a run ends and that it has ended, and take its tree off the map.

    The first to come does that: the root's end, or what ends the run for it, as the recorder's sweep ends a
    leaked stream. Another thread that ends it as well waits until it is done.
    """
    with tree.lock:
        if tree.is_concluded:
            return
        tree.is_concluded = True
        now_ns = time.time_ns()
        failure = tree.run.failure_of(error)
        reason = None if error is None or is_control_flow(error) else failure
        try:
            for step in runs.pop_open(tree):
                if isinstance(step, ModelCall):
                    if error is not None or step.first_chunk_ns:
                        step.ends(replace(_said(step, None), is_open=True), now_ns, reason)
                elif step.kind == "search" and error is not None:
                    step.ends(None, now_ns, reason)
            tree.add(Event("end", ended_ns=now_ns, data=outcome, error=failure))
        finally:
            runs.drop(tree)


@guarded
def _said(step: ModelCall, response: object) -> Said:
    return said_of(response, step.of.values, step.streamed, step.first_chunk_ns, step.chunks)


def _again(kind: type[RagtraceHandler], recorder: str, defaults: dict[str, Any]) -> RagtraceHandler:
    handler = kind.__new__(kind)
    RagtraceHandler.__init__(handler, recorder_named(recorder), **defaults)
    return handler


def _name(serialized: Mapping[str, object] | None) -> object:
    given = serialized if isinstance(serialized, dict) else {}
    return given.get("name") or (given.get("id") or [None])[-1] or "unnamed"


# -- LangGraph, which an application may have imported --


def is_control_flow(error: BaseException) -> bool:
    """Tell whether an exception is LangGraph steering: an interrupt, a command to the parent graph, a drain.

    Only an application that has imported LangGraph can raise one, so that ours need not import it. The class
    decides, never its name: an application's own ``GraphInterrupt`` is an error like any other.

    Example:
        >>> is_control_flow(ValueError())
        False
    """
    return _is_a(error, "GraphBubbleUp")


def is_interrupt(error: BaseException) -> bool:
    """Tell whether an exception is a LangGraph interrupt: the run waits for a person.

    Example:
        >>> is_interrupt(KeyboardInterrupt())
        False
    """
    return _is_a(error, "GraphInterrupt")


def _is_a(error: BaseException, name: str) -> bool:
    module = sys.modules.get("langgraph.errors")
    kind = getattr(module, name, None) if module is not None else None
    return isinstance(kind, type) and isinstance(error, kind)


def graph_of(frame: FrameType | None) -> FrameType | None:
    """Return the frame if a graph runs in it: the one that tells the callbacks of its start.

    Example:
        >>> graph_of(sys._getframe()) is None
        True
    """
    if frame is None or not frame.f_globals.get("__name__", "").startswith("langgraph.pregel"):
        return None
    return frame if frame.f_code.co_name in {"stream", "astream"} else None


_UNNAMED = "LangGraph"  # name of a graph that was given none
_EXECUTORS = frozenset({"langchain_classic.chains.base", "langchain_classic.agents.agent_iterator"})
_AGENT_MAKERS = frozenset({"langchain.agents.factory", "langgraph.prebuilt.chat_agent_executor"})


@guarded
def agent_of(frame: FrameType | None) -> str | None:
    """Return the name of the agent that runs in this frame: "" of one without a name, None where none does.

    What runs says it itself. Metadata of the event do not, since all steps inside an agent inherit them.

    - A graph whose own config has `lc_agent_name` in its metadata. `create_agent(name=...)` writes it there, as
      `create_deep_agent` does; LangChain documents the key for streams of sub-agents. An application may write it
      onto a graph of its own.
    - A graph of `create_agent` or of LangGraph's `create_react_agent`: a node runs a function of their modules. An
      agent without a name has no such metadata, nor has one of `create_react_agent` or of langchain 1.0.2.
    - An `AgentExecutor` of langchain-classic, by its class.

    Example:
        >>> agent_of(sys._getframe()) is None
        True
    """
    if frame is None:
        return None
    if graph_of(frame) is not None:
        graph = frame.f_locals.get("self")
        metadata = (_held(graph).get("config") or {}).get("metadata") or {}
        # No attribute of an application's node is asked for: one with fallbacks looks up types at that.
        functions = [_held(node.bound).get("func") for node in _held(graph).get("nodes", {}).values()]
        is_made = any(getattr(function, "__module__", None) in _AGENT_MAKERS for function in functions)
        own = getattr(graph, "name", None)
        named = told(metadata.get("lc_agent_name"))
        return named or (told(own if own != _UNNAMED else None) if is_made else None)
    if frame.f_globals.get("__name__") not in _EXECUTORS:
        return None
    told_by = frame.f_locals.get("self")
    executor = getattr(told_by, "agent_executor", told_by)  # an iterator of its steps has it
    kind = getattr(sys.modules.get("langchain_classic.agents.agent"), "AgentExecutor", None)
    return told(getattr(executor, "name", None)) if isinstance(kind, type) and isinstance(executor, kind) else None


def _held(value: object) -> dict[str, Any]:
    return getattr(value, "__dict__", {})


def is_at_breakpoint(graph: FrameType) -> bool:
    """Tell whether a graph that ends has stopped at a breakpoint: ``interrupt_before`` or ``interrupt_after``.

    It then raises nothing, and its last state looks like any other. Behind the last node nothing waits. LangGraph's
    `GraphCallbackHandler` is told, but not under `instrument`: a graph looks for it only in the callbacks of its
    call (langgraph 1.2.22). The status of its loop is the same in all versions.
    """
    loop = graph.f_locals.get("loop")
    status = getattr(loop, "status", None)
    return status == "interrupt_before" or (status == "interrupt_after" and bool(getattr(loop, "tasks", True)))
