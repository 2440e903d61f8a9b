"""The callback handler: a thin translation from LangChain events to runs and steps."""

from __future__ import annotations

import sys
import time
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler

import ragtrace
from ragtrace.capture import Defaults, current_run, entered_run, guarded, guarded_constructor, outcome_of, shown
from ragtrace_langchain.documents import PLAIN, as_given, as_left, new_documents
from ragtrace_langchain.langgraph import (
    graph_of,
    is_at_breakpoint,
    is_control_flow,
    is_interrupt,
    is_sent,
    step_of,
    task_of,
)
from ragtrace_langchain.messages import as_said, piece_text, turns_in
from ragtrace_langchain.on_end import (
    arguments_text,
    break_off,
    conclude,
    record_chain_answer,
    record_chain_end,
    record_failed_retrieval,
    record_interrupt,
    record_model_call,
    record_tool_call,
    tool_result,
)
from ragtrace_langchain.on_start import (
    PREFIX,
    describe_configured,
    describe_joined,
    describe_request,
    record_hub_prompt,
    record_inputs,
    record_prompt,
    record_query,
    record_question,
    workflow_of,
)
from ragtrace_langchain.run_state import (
    ModelCall,
    OpenSpan,
    OpenToolCall,
    RunState,
    caller,
    current_call,
    entered_retrievers,
    name_of,
    recorder_named,
    runs_of,
)
from ragtrace_langchain.selection import record_retrieved, withdraw_failed
from ragtrace_langchain.turns import is_resumption

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import FrameType
    from uuid import UUID

    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from ragtrace.capture import Failure, Recorder
    from ragtrace.model import Outcome
    from ragtrace_langchain.run_state import Kind, RunMap


_NO_QUESTION = frozenset({"prompt", "parser"})  # steps without a question of their own
_SPANS: dict[Kind, type[OpenSpan]] = {
    "chain": OpenSpan,
    "retriever": OpenSpan,
    "tool": OpenToolCall,
    "model": ModelCall,
}


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
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle the handler as another one of the same recorder; in another process, of that one's."""
        said = self._defaults
        defaults = {one.name: getattr(said, one.name) for one in fields(said) if one.name != "recorder"}
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
        span = self._begin("chain", kwargs.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata)
        if span is not None:
            if metadata and "lc_hub_repo" in metadata:
                span.state.record(record_hub_prompt, span.state, dict(metadata))
            span.step = step_of(tags)
            if span.step:
                span.task += task_of(span.step, metadata)
                span.is_sent = span.is_sent or is_sent(metadata)
            span.graph = graph_of(caller()) if "langgraph.pregel" in sys.modules else None
            if span.graph is not None and is_resumption(inputs):  # a program that asks and goes on within one run
                span.state.is_interrupted = False
                span.state.interrupts.clear()
            _note_inputs(span, inputs)

    @guarded
    def on_chain_end(self, outputs: object, *, run_id: UUID, **kwargs: object) -> None:
        """Take documents that a chain or a tool handed on; end the run with its root."""
        span = self._runs.pop(run_id)
        if span is None:
            return
        now_ns, state = time.time_ns(), span.state
        is_streamed = "inputs" in kwargs
        inputs = as_left(kwargs["inputs"]) if is_streamed else span.inputs
        graph, span.graph = span.graph, None
        if graph is not None and is_at_breakpoint(graph):
            state.is_interrupted = True
        documents, left = None, outputs
        if type(outputs) not in PLAIN:
            documents, left = new_documents(outputs, inputs, span.name), as_left(outputs)
        if isinstance(span, OpenToolCall):
            span.call_id = span.call_id or getattr(outputs, "tool_call_id", None)
            span.is_direct = span.is_direct and getattr(outputs, "status", None) != "error"
            state.record(record_tool_call, span, documents, tool_result(outputs), None, now_ns)
        state.is_left = state.is_left or sys.exc_info()[0] is GeneratorExit
        outcome: Outcome | None = None
        if span.parent is None or span.parent is state.block:
            if state.is_interrupted:
                outcome = "interrupted"
            elif is_streamed and self._is_broken_off(span):
                outcome = "partial"
        event = (record_chain_end, span, inputs, left, documents, outcome, now_ns, is_streamed)
        if documents:
            state.record_documents(*event, documents=documents)
        else:
            state.record(*event)
        if span.parent is None:
            self._finish(span, run_id, outcome)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """End the run with its root; a chain or a tool inside may fail and be caught."""
        span = self._runs.pop(run_id)
        if span is not None:
            now_ns = time.time_ns()
            if isinstance(span, OpenToolCall):
                span.state.record(record_tool_call, span, None, None, _failure(span.state, error), now_ns)
            self._failed(span, error, kwargs, run_id)

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
        span = self._begin("tool", kwargs.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata)
        if isinstance(span, OpenToolCall):
            given = inputs if inputs is not None else input_str
            span.call_key = str(run_id)
            if span.within is None:
                span.within_key = span.call_key
            span.arguments = arguments_text(given)
            call_id = kwargs.get("tool_call_id")
            span.call_id = call_id if isinstance(call_id, str) else None
            span.description = shown(serialized.get("description")) or None if serialized else None
            tool = told_by.f_locals.get("self") if (told_by := caller()) is not None else None
            span.is_direct = getattr(tool, "return_direct", False) is True  # no event says it
            _note_inputs(span, given)

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
        span = self._begin(
            "retriever", kwargs.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata
        )
        if span is not None:
            noted: Mapping[str, object] = metadata or {}
            span.key = str(run_id)
            span.query = str(query)
            span.source = str(noted.get(f"{PREFIX}source") or span.name)
            top_k = noted.get(f"{PREFIX}top_k")
            span.top_k = top_k if isinstance(top_k, int) else None
            span.state.record(record_query, span)
            self._runs.enter_retriever(run_id)

    @guarded
    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **_kwargs: object) -> None:
        """Take what a retriever returned."""
        span = self._runs.pop(run_id)
        if span is None:
            return
        state = span.state
        found = list(state.run.reader.first(documents))
        state.record_documents(record_retrieved, span, found, time.time_ns(), documents=found)
        if span.parent is None:
            state.answer = ""
            self._finish(span, run_id)

    @guarded
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """Report a retriever that failed."""
        span = self._runs.pop(run_id)
        if span is not None:
            span.state.record(record_failed_retrieval, span, _failure(span.state, error), time.time_ns())
            self._failed(span, error, kwargs, run_id)

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
        """Take the rendered prompt of a chat model call."""
        span = self._begin("model", kwargs.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata)
        if isinstance(span, ModelCall):
            _note_prompt(span, messages[0] if messages else (), serialized, metadata, kwargs)

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
        """Take the rendered prompt of a text model call."""
        span = self._begin("model", kwargs.get("name") or _name(serialized), run_id, parent_run_id, tags, metadata)
        if isinstance(span, ModelCall):
            span.operation = "text_completion"
            _note_prompt(span, [("user", str(prompt)) for prompt in prompts[:1]], serialized, metadata, kwargs)

    @guarded
    def on_llm_new_token(self, token: object, *, run_id: UUID, **_kwargs: object) -> None:
        """Note a streamed chunk: the first one's time, and its text for a stream that breaks off."""
        span = self._runs.get(run_id)
        if isinstance(span, ModelCall):
            span.pieces_told += 1
            if span.pieces_told % span.listeners:
                return
            now_ns = span.first_chunk_ns or time.time_ns()  # the first chunk's time is kept, and no other
            span.streams(token if type(token) is str else piece_text(token), now_ns)
            span.state.run.last_activity = time.monotonic()  # a stream that flows is not idle

    @guarded
    def on_stream_event(self, event: object, *, run_id: UUID, **_kwargs: object) -> None:  # noqa: ARG002 - called by keyword
        """Note an event of the newer streaming protocol, for the first one's time."""
        span = self._runs.get(run_id)
        if isinstance(span, ModelCall):
            span.streams("", time.time_ns())

    @guarded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_kwargs: object) -> None:
        """Report a model call, and end the run when it was its root."""
        span = self._runs.pop(run_id)
        if not isinstance(span, ModelCall):
            return
        span.state.record(record_model_call, span, as_said(response), None, time.time_ns())
        if span.parent is None:
            self._finish(span, run_id)
        elif span.is_in_block:
            record_chain_answer(span, span.state.last_text, None)

    @guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: object) -> None:
        """Report a model call that failed, with what it had said by then."""
        span = self._runs.pop(run_id)
        if isinstance(span, ModelCall):
            said, failure = as_said(kwargs.get("response")), _failure(span.state, error)
            span.state.record(record_model_call, span, said, failure, time.time_ns())
            self._failed(span, error, kwargs, run_id)

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
    ) -> OpenSpan | None:
        """Put an event on the map; None for one that is there already or belongs to a run that has ended."""
        runs = self._runs
        spans = runs.spans
        known = spans.get(getattr(run_id, "int", run_id))
        if known is not None:
            if isinstance(known, ModelCall):
                known.listeners += 1
            return None
        above = parent_run_id if parent_run_id is not None else current_call()[0]
        parent = spans.get(getattr(above, "int", above))
        # Without ``run_manager.get_child()`` a retriever inside another names a wrong parent, or none.
        retriever = runs.entered_retriever() if entered_retrievers() else None
        if retriever is not None and (parent is None or retriever.is_in(parent)):
            parent = retriever
        now_ns = time.time_ns()
        if parent is not None:
            state = parent.state
            if state.run.is_finished:
                if not state.is_concluded:  # else another thread does that, and need not be waited for
                    _conclude(runs, state, "partial", None)
                runs.bury(run_id)
                return None
            span = _SPANS[kind](state, parent, kind, str(name), now_ns)
            if not state.is_described:
                current, configurable = current_call()
                state.is_described = above == current  # not for a step of a batch
                if configurable and above == current:
                    describe_configured(state.run, configurable)
        elif parent_run_id is not None and runs.is_buried(parent_run_id):
            runs.bury(run_id)
            return None
        else:
            for left in runs.left():
                _conclude(runs, left, "partial", None)
            joined = self._joined(tags, metadata or {}) if entered_run() is not None else None
            state = joined or self._open(str(name), tags, metadata or {}, now_ns)
            span = _SPANS[kind](state, state.root, kind, str(name), now_ns)
        runs.add(run_id, span)
        return span

    def _open(self, name: str, tags: list[str] | None, metadata: Mapping[str, object], now_ns: int) -> RunState:
        defaults = self._defaults
        recorder = defaults.recorder or ragtrace.recorder()
        run = recorder.start(workflow=workflow_of(defaults, metadata, name), started_ns=now_ns)
        describe_request(run, defaults, metadata, tags)
        state = RunState(run)
        run.before_finish(partial(_conclude, self._runs, state, "partial", None), "langchain")
        return state

    def _joined(self, tags: list[str] | None, metadata: Mapping[str, object]) -> RunState | None:
        """Return the tree of the run that the application opened around this call, None where it opened none."""
        run = current_run()
        if run is None or not (self._defaults.recorder or ragtrace.recorder()).has_open(run):
            return None
        state = self._runs.join(run)
        if state is None:
            state = RunState(run, is_joined=True)
            state.has_query = "query" in run.attributes
            state.root = state.block = OpenSpan(state, None, "chain", "block", run.started_ns)
            state.root.inputs = run.attributes.get("query")
            state = self._runs.joined(state)
            run.before_finish(partial(_conclude, self._runs, state, None, None), "langchain")
        describe_joined(run, self._defaults, metadata, tags)
        return state

    def _is_alone(self) -> bool:
        """Tell whether the code that is executing belongs to no run."""
        above, _ = current_call()
        is_inside = above is not None and self._runs.get(above) is not None
        return not is_inside and current_run() is None and self._runs.entered_retriever() is None

    def _is_broken_off(self, root: OpenSpan) -> bool:
        """Tell whether a stream was abandoned: LangChain then ends its root like one that was read to the end.

        Steps inside are still open then, unless their generators were closed before it.
        """
        return root.state.is_left or any(span.is_in(root) for span in self._runs.opened(root.state))

    def _failed(self, span: OpenSpan, error: BaseException, kwargs: dict[str, object], run_id: UUID) -> None:
        state = span.state
        span.graph = None
        if is_interrupt(error):
            record_interrupt(state, error)
        if isinstance(error, Exception) and not is_control_flow(error):
            state.record(withdraw_failed, span)
        state.is_left = state.is_left or isinstance(error, GeneratorExit)
        if span.parent is not None:
            if span.is_in_block:
                record_chain_answer(span, "", "interrupted" if is_interrupt(error) else None)
            return
        if "inputs" in kwargs:
            state.record(record_question, state, as_left(kwargs["inputs"]))
        if is_interrupt(error):
            self._finish(span, run_id, "interrupted")
        elif is_control_flow(error):
            self._finish(span, run_id)
        else:
            self._finish(span, run_id, outcome_of(error), error)

    def _finish(
        self, root: OpenSpan, run_id: UUID, outcome: Outcome | None = None, error: BaseException | None = None
    ) -> None:
        """End the run whatever becomes of its last facts, and forget the tree."""
        self._runs.bury(run_id)
        try:
            _conclude(self._runs, root.state, outcome, error)
        finally:
            root.state.run.finish(outcome)


def _conclude(runs: RunMap, state: RunState, outcome: Outcome | None, error: BaseException | None) -> None:
    """Report what is open where a run ends, have its last facts written and take its tree off the map.

    The first to come does that: the root's end, or what ends the run for it, as the recorder's sweep ends a
    leaked stream. Another thread that ends it as well waits until it is done.
    """
    with state.lock:
        if state.is_concluded:
            return
        state.is_concluded = True
        root, now_ns = state.root, time.time_ns()
        failure = state.run.failure_of(error)
        left_open = None if error is None or is_control_flow(error) else failure
        try:
            for span in runs.pop_open(state):
                break_off(span, left_open, is_failed=error is not None, ended_ns=now_ns)
            if root is not None:
                state.record(conclude, root, outcome, failure)
        finally:
            runs.drop(state)


def _again(kind: type[RagtraceHandler], recorder: str, defaults: dict[str, Any]) -> RagtraceHandler:
    handler = kind.__new__(kind)
    RagtraceHandler.__init__(handler, recorder_named(recorder), **defaults)
    return handler


def _note_inputs(span: OpenSpan, inputs: object) -> None:
    span.inputs = inputs
    if type(inputs) in PLAIN:
        span.state.record(record_inputs, span, inputs)
        return
    span.inputs, span.given = as_given(inputs)
    asked = span.inputs if isinstance(inputs, dict | list) else inputs
    if span.given:
        span.state.record_documents(record_inputs, span, asked, documents=span.given, is_given=True)
    else:
        span.state.record(record_inputs, span, asked)


def _note_prompt(
    span: ModelCall,
    prompt: Sequence[object],
    serialized: Mapping[str, object] | None,
    metadata: Mapping[str, object] | None,
    kwargs: Mapping[str, object],
) -> None:
    span.messages = turns_in(prompt, is_prompt=True)
    invocation, options = kwargs.get("invocation_params"), kwargs.get("options")
    span.state.record(record_prompt, span, tuple(prompt), serialized, metadata, invocation, options)


def _failure(state: RunState, error: BaseException) -> Failure | None:
    return None if is_control_flow(error) else state.run.failure_of(error)


def _name(serialized: Mapping[str, object] | None) -> object:
    given = serialized if isinstance(serialized, dict) else {}
    return given.get("name") or (given.get("id") or [None])[-1] or "unnamed"
