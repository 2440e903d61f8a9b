"""The map of open spans, and what becomes of each: a thin translation from LlamaIndex to runs and steps."""

from __future__ import annotations

import time
from threading import RLock
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, InputRequiredEvent, Workflow

import ragtrace
from ragtrace.capture import RecentIds, describe, entered_run, guarded, outcome_of
from ragtrace.capture.events import Began, Ended, Gave
from ragtrace.capture.events import Event as RunEvent
from ragtrace.capture.values import told
from ragtrace_llamaindex.calls import (
    BEGINNINGS,
    answer_of,
    call_in,
    chosen_by,
    examples_of,
    given_out,
    may_tell_history,
    tell_history,
    tell_input,
)
from ragtrace_llamaindex.messages import asked_of, fields_of, turns_told
from ragtrace_llamaindex.open_runs import (
    MAX_IDS,
    OWNER,
    JoinedRuns,
    ModelSpan,
    OpenRun,
    OpenSpan,
    awaited_in,
    ended_root,
    is_waiting,
    journal_of,
    saved_in,
)
from ragtrace_llamaindex.request import said
from ragtrace_llamaindex.span_kinds import (
    ID_TAIL,
    KINDS,
    is_agent,
    is_agent_event,
    is_building_class,
    is_output_form,
    is_step_class,
    is_tool_search,
    is_upkeep,
    keeps_turns,
    kind_of,
)
from ragtrace_llamaindex.streams import OpenStreams, end_model_call, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from inspect import BoundArguments

    from ragtrace.capture import Defaults
    from ragtrace.model import Outcome
    from ragtrace_llamaindex.open_runs import Stream
    from ragtrace_llamaindex.span_kinds import Kind

MAX_UNSTARTED = 1_024  # outermost spans that are open and without a run so far
MAX_BURIED = 8_192
MAX_JOURNALS = 64  # of workflows inside one run
_STREAMED = {StreamingResponse, AsyncStreamingResponse}
_SPAN_CLASSES: dict[Kind, type[OpenSpan]] = {"model": ModelSpan, "embedding": ModelSpan}
_ANSWERLESS = {"retriever", "rerank", "embedding", "tool"}
_LISTS = {list, tuple}
_CHOOSING = {"retriever", "rerank"}
_GENERATORS = {GeneratorType, AsyncGeneratorType}


class Tracer:
    """Open spans by id, of all of a process's runs.

    There is no lock around the map: every change is one dict or set operation. All of a tree leaves with its root.
    Spans that have ended stay until then, since a task begun in one may outlive it.

    Args:
        defaults: returns the recorder and the defaults of a run that begins now, None where nothing is captured.
    """

    def __init__(self, defaults: Callable[[], Defaults | None]) -> None:
        self._defaults = defaults
        self.spans: dict[str | None, OpenSpan] = {}
        self._streams = OpenStreams(self._stream_over)
        self.takers = self._streams.takers
        self._lazy = self._streams.lazy
        self._unstarted: dict[int, OpenRun] = {}
        self._buried = RecentIds(MAX_BURIED)
        self.joined = JoinedRuns(self._end_joined)
        self._upkeep = ended_root()

    def __len__(self) -> int:
        return len(self.spans)

    def entered(self, id_: str, bound: BoundArguments, instance: object, parent_id: str | None) -> None:
        """Note a span that begins."""
        kind = KINDS.get((type(instance), id_[:-ID_TAIL])) or kind_of(id_, instance)
        if kind == "tool" and is_output_form(instance):
            kind = "other"
        if kind in _CHOOSING and is_tool_search():
            self._buried.add(id_)
            return
        parent = self.spans.get(parent_id) if parent_id is not None else None
        read = reading.get()
        if read is not None or self._lazy or (parent is not None and parent.is_handle):
            is_direct = parent is not None and parent.id == parent_id
            if parent is not None and is_direct and parent.is_handle and _is_next(parent, id_, instance):
                parent = None
            parent, read = self._above(parent, kind, bound, instance)
        if entered_run() is not None and read is None:
            parent = self._in_block(parent, kind, instance, parent_id)
        if parent is not None and kind == "other" and not parent.state.is_joined and not parent.state.is_ended:
            self._keep(id_, parent)
            if _is_run_of(instance, id_):
                _note_workflow(parent.state, instance)
            else:
                _note_step(parent, id_, bound, parent_id)
        elif parent is not None:
            self._entered_below(parent, read, kind, id_, bound, instance, parent_id)
        elif (defaults := self._defaults()) is not None:
            self._root_entered(defaults, kind, id_, bound, instance, parent_id)

    def _above(
        self, parent: OpenSpan | None, kind: Kind, bound: BoundArguments, instance: object
    ) -> tuple[OpenSpan | None, Stream | None]:
        """Return the node that a span begins in, and the stream through whose reading it does."""
        read = reading.get()
        if read is not None:
            parent, read = _read_in(parent, read)
        if self._lazy and kind == "model":
            parent = self._lazy.get((id(instance), id(asked_of(bound))), parent)
        return parent, read

    def _in_block(
        self,
        parent: OpenSpan | None,
        kind: Kind,
        instance: object,
        parent_id: str | None,
    ) -> OpenSpan | None:
        """Return the node that a span begins in, inside the block of a run of the application's own."""
        outer = self.joined.root(self._defaults())
        if outer is None or (parent is not None and parent.state is outer.state):
            return parent
        return self._upkeep if self._is_upkeep(kind, instance, parent_id) else outer

    def _entered_below(
        self,
        parent: OpenSpan,
        read: Stream | None,
        kind: Kind,
        id_: str,
        bound: BoundArguments,
        instance: object,
        parent_id: str | None,
    ) -> None:
        state = parent.state
        if state.is_ended:
            self._buried.add(id_)
            return
        is_top = parent.parent is None and state.is_joined
        if (kind == "other" and not is_top) or _is_same_call(kind, parent, instance):
            self._keep(id_, parent)
            if kind == "other" and not _is_run_of(instance, id_):
                _note_step(parent, id_, bound, parent_id)
            return
        span = _new_span(state, parent, kind, id_, instance)
        span.agent, span.call_id = state.agents.get(parent_id), state.calls.get(parent_id)
        if is_top:
            _note_top(span, bound, instance)
        if read is not None and isinstance(span, ModelSpan) and read.span.state is state:
            span.read_through = read
        self._add(span)
        if kind == "other":
            span.begins(Began())
        else:
            self._begin(span, bound, instance)

    def exited(self, id_: str, result: object) -> None:
        """Take what a span returned."""
        span = self.spans.get(id_)
        if span is None:
            return
        state = span.state
        _end_agent(span, id_, None)
        if type(result) in _STREAMED:
            self._streams.watch_answer(span, result)
        elif isinstance(result, InputRequiredEvent):
            state.interrupt = result
        elif isinstance(result, Event):  # the workflow goes on
            state.interrupt = None
            if span.id != id_ and not state.is_agent:
                _offer(state, fields_of(result))
        elif span.id != id_ and type(result) in _LISTS and not _is_told_later(span, result):
            _offer(state, {id_[:-ID_TAIL].rpartition(".")[2]: result})
        if span.id != id_:
            if len(state.ids) > MAX_IDS:
                self.spans.pop(id_, None)
            return
        if not _closed(span):
            return
        self._end(span, result)
        if span.parent is None:
            self._root_exited(span, result)

    def dropped(self, id_: str, error: BaseException | None) -> None:
        """Take the failure of a span."""
        span = self.spans.get(id_)
        if span is None:
            return
        if is_waiting(error) and (
            span.parent is not None or span.id != id_
        ):  # it is run again when its event comes
            span.state.interrupt = span.state.interrupt or error
            if span.id == id_:
                _closed(span)
            return
        _end_agent(span, id_, error)
        if span.id != id_:
            if span.is_handle:  # early workflows return None from a run that failed
                span.state.error = error
            if len(span.state.ids) > MAX_IDS:
                self.spans.pop(id_, None)
            return
        if not _closed(span):
            return
        failure = error if error is not None else RuntimeError("span dropped")
        _end_failed(span, failure)
        if span.parent is None:
            self._finish(span.state, None, _outcome(span.state, outcome_of(failure)), failure)

    def cancelled(self, id_: str | None) -> None:
        """Note that a workflow was cancelled: its span then ends like one that returned None."""
        span = self.spans.get(id_)
        if span is not None and span.parent is None and span.id == id_:
            span.state.is_cancelled = True

    def prompted(self, id_: str | None, name: object, version: object) -> None:
        """Take the name and the version that an application gave its prompt template."""
        span = self.spans.get(id_)
        if span is not None and span.state.run is not None and not span.is_inner:
            span.state.run.prompted(told(name), None if version is None else told(version))

    def condensed(self, id_: str | None, history: object) -> None:
        """Take the turns that a chat engine wrote into a prompt that condenses them and the question to one."""
        span = self.spans.get(id_)
        if span is not None and may_tell_history(span) and isinstance(history, str):
            # What the answer is asked with is exact.
            tell_history(span.state, turns_told(history), is_final=False)

    def stream_ended(self, id_: str | None, response: object, error: BaseException | None) -> None:
        """Take the end of a model's stream; the end of a call that does not stream comes with its span."""
        span = self.spans.get(id_)
        if isinstance(span, ModelSpan) and span.id == id_ and span.stream is not None:
            self._streams.ended(span.stream, error, response)

    @guarded
    def reset_after_fork(self) -> None:
        """Leave the open spans to the parent, in a forked child; streams that it reads on are reported there."""
        for state in {id(span.state): span.state for span in list(self.spans.values())}.values():
            state.lock = RLock()  # another thread of the parent's may have held it
            if state.run is not None:
                state.run.before_finish(None, OWNER)
            self._forget(state, is_late_expected=True)

    # beginnings

    def _root_entered(
        self,
        defaults: Defaults,
        kind: Kind,
        id_: str,
        bound: BoundArguments,
        instance: object,
        parent_id: str | None,
    ) -> None:
        if kind == "embedding":
            return  # no run alone: nothing is known of a question
        owner: type = type(instance)
        if is_step_class(owner) or self._is_upkeep(kind, instance, parent_id):
            self._buried.add(id_)
            return
        kind = "other" if kind == "tool" else kind  # no run alone, as a function is none
        state = OpenRun(defaults)
        root = state.root = _new_span(state, None, kind, id_, instance)
        if keeps_turns(owner):
            state.keeps_turns = True
            state.examples = examples_of(instance)
        self._add(root)
        if kind != "other":
            self._begin(root, bound, instance)
            return
        # A workflow, or an application's own function: a run as soon as something in it is worth one.
        state.arguments = bound.arguments
        if isinstance(instance, Workflow):
            root.is_handle = "start_event" not in bound.arguments
            state.is_agent = is_agent(owner)
            _note_workflow(state, instance)
            _note_saved(state, bound)
        self._unstarted[id(state)] = state
        if len(self._unstarted) > MAX_UNSTARTED:
            for oldest in list(self._unstarted.values())[:1]:
                self._forget(oldest)

    def _is_upkeep(self, kind: Kind, instance: object, parent_id: str | None) -> bool:
        """Tell whether a call is part of an evaluation or of building an index."""
        owner: type = type(instance)
        is_part = parent_id is not None and parent_id in self._buried
        is_building = kind == "other" and is_building_class(owner)
        return is_part or is_building or is_upkeep()

    def _add(self, span: OpenSpan) -> None:
        span.state.open.add(span)
        if span.kind == "retriever":
            span.state.is_searched = True
        elif isinstance(span, ModelSpan):
            span.state.is_asked = True
        self._keep(span.id, span)

    def _keep(self, id_: str, span: OpenSpan) -> None:
        state = span.state
        state.ids.append(id_)
        self.spans[id_] = span
        if state.is_ended:  # since a moment, in another thread, which may have looked at the ids before
            self.spans.pop(id_, None)
            self._buried.add(id_)

    def _begin(self, span: OpenSpan, bound: BoundArguments, instance: object) -> None:
        state = span.state
        if state.run is None:
            with state.lock:  # the first steps of an application's function may be parallel ones
                if state.run is None:
                    self._start(state)
        BEGINNINGS[span.kind](span, bound, instance)

    def _start(self, state: OpenRun) -> None:
        root, defaults = state.root, state.defaults
        if root is None or state.is_ended:
            return
        self._unstarted.pop(id(state), None)
        request = said()
        run = (defaults.recorder or ragtrace.recorder()).start(
            workflow=told(request.get("workflow")) or defaults.workflow or root.name, started_ns=root.started_ns
        )
        run.before_finish(lambda: self._cut_short(state), OWNER)
        describe(run, defaults, request)
        run.add(RunEvent("told", teller=OWNER))
        if root.kind == "other":
            given = state.values.of(_given(state)) if run.has_declared else None
            began = Began(given, calls_tools=state.is_agent, is_resumed=state.is_resumed)
            run.add(RunEvent("chain", root.id, "", root.name, root.started_ns, data=began, teller=OWNER))
        state.run = run  # what other threads add comes behind
        if state.arguments is not None:
            tell_input(state, state.arguments)
            state.arguments = state.saved = None
        if state.offers:
            state.add(RunEvent("offer", data=state.offers))

    # ends

    @guarded
    def _end(self, span: OpenSpan, result: object) -> None:
        state = span.state
        if state.run is None:
            return
        if span.kind == "retriever":
            span.ends(state.values.documents(result))
        elif span.kind == "rerank":
            span.ends(chosen_by(span, result))
        elif isinstance(span, ModelSpan):
            if type(result) in _GENERATORS:
                self._streams.watch_call(span, result)
            else:
                end_model_call(span, result, None)
        elif span.kind == "tool":
            span.ends(state.values.given_by_tool(span.name, result))
        else:
            is_engine, is_given = span.kind == "query" and span.parent is not None, state.is_joined and span.is_top
            text = answer_of(result, is_inner=True) if is_engine else None
            span.ends(Gave(answer_of(result) if is_given else None, text=text))

    def _root_exited(self, root: OpenSpan, result: object) -> None:
        state = root.state
        with state.lock:
            if state.run is None:
                self._forget(state)
                return
        if state.journals and not state.is_searched and not state.is_agent:
            _offer(state, saved_in(state.journals[0], None).state)
        found = result.source_nodes if isinstance(result, Response) and root.kind == "query" else None
        if found and not (state.is_searched or state.is_asked):  # kept from earlier, or by a service that searches
            state.run.set_candidates(found)
        if state.run.has_declared:  # copied at once: a stream that nobody reads is to be collected
            held = getattr(result, "result", None)  # of a workflow's last event
            state.result = state.values.of(result if held is None else held)
        answer = None if root.kind == "retriever" else answer_of(result, is_synthesis=root.kind == "synthesize")
        texts = given_out(result) if answer is None and root.kind == "other" else ()
        error, state.error = state.error, None
        if error is not None and result is None and type(error).__name__ != "WorkflowDone":
            self._finish(state, None, outcome_of(error), error)
            return
        with state.lock:
            state.is_waiting = bool(answer is None and state.streams)
            broken, state.broken = state.broken, None
        if state.is_waiting:
            return
        if broken is not None and isinstance(result, StreamingAgentChatResponse):  # whose reader is told
            self._finish(state, None, outcome_of(broken), broken)
            return
        outcome = _outcome(state, "cancelled") if state.is_cancelled else None
        self._finish(state, answer, outcome, None, texts)

    def _finish(
        self,
        state: OpenRun,
        answer: str | None,
        outcome: Outcome | None,
        error: BaseException | None,
        texts: tuple[str, ...] = (),
    ) -> None:
        """End the run whatever becomes of its last facts, and forget the tree."""
        run = state.run
        if not _concluded(state, answer, outcome, error, texts):
            return
        if run is not None:
            run.before_finish(None, OWNER)  # lets go of the tree
            run.finish(outcome)
        self._forget(state, is_late_expected=outcome is not None)

    @guarded
    def _end_joined(self, state: OpenRun) -> None:
        """Report what is there when the application ends a run of its own."""
        _concluded(state, None, None, None)
        self._forget(state, is_late_expected=True)

    @guarded
    def _cut_short(self, state: OpenRun) -> None:
        """Report what is there when the recorder ends a run, such as one whose stream nobody read."""
        outcome = _outcome(state, "partial")
        run = state.run
        if run is not None and outcome == "interrupted":
            run.ends_as(outcome)
        _concluded(state, None, outcome, None)
        self._forget(state, is_late_expected=True)

    def _forget(self, state: OpenRun, *, is_late_expected: bool = False) -> None:
        """Take a tree off the map, and break its cycles: what it holds goes without a garbage collection."""
        self._unstarted.pop(id(state), None)
        if state.is_joined:
            self.joined.forget(state)
        with state.lock:
            state.is_ended = True
            for id_ in state.ids:
                self.spans.pop(id_, None)
                if is_late_expected:
                    self._buried.add(id_)
            self._streams.forget(state)
            state.ids = []
            state.open.clear()
            state.root = state.run = state.arguments = state.interrupt = state.error = state.saved = None
            state.result = None
            state.journals = []
            state.working, state.agents, state.calls = {}, {}, {}

    def _stream_over(self, state: OpenRun) -> None:
        failure, state.error = state.error, None
        if failure is not None:
            self._finish(state, None, outcome_of(failure), failure)
        else:
            self._finish(state, None, "partial" if state.is_partial else None, None)


def _concluded(
    state: OpenRun,
    answer: str | None,
    outcome: Outcome | None,
    error: BaseException | None,
    texts: tuple[str, ...] = (),
) -> bool:
    """Tell how a run ended, and whether that was still to do; other threads that end it wait."""
    with state.lock:
        if state.is_ended:
            return False
        state.is_ended = True
        _tell_end(state, answer, outcome, error, texts)
    return True


@guarded
def _tell_end(
    state: OpenRun, answer: str | None, outcome: Outcome | None, error: BaseException | None, texts: tuple[str, ...]
) -> None:
    run = state.run
    if state.root is None or run is None:
        return
    if state.is_joined and state.streams:
        run.ends_as("partial")
    failure = run.failure_of(error)
    try:
        _end_open(state, error)
    finally:
        asks = told(_asked_of_person(state)) if outcome == "interrupted" else None
        ended = Ended(outcome, answer, texts, asks, state.result)
        state.add(RunEvent("end", ended_ns=time.time_ns(), data=ended, error=failure))


def _given(state: OpenRun) -> dict[str, object]:
    """Return the arguments of the outermost call with the fields of its start event, for declared places."""
    arguments = dict(state.arguments or {})
    event = arguments.pop("start_event", None)
    named = {} if event is None else fields_of(event)
    return {**{name: one for name, one in arguments.items() if name not in {"self", "ctx"}}, **named}


@guarded
def _end_open(state: OpenRun, error: BaseException | None) -> None:
    """Tell the end of what is still open when a run ends: what it had done by then, and why it stopped."""
    for stream in list(state.streams):
        stream.is_done = True
        span = stream.span
        if stream.is_answer:
            if stream.text:
                state.add(RunEvent("answer", data=stream.text))
        elif isinstance(span, ModelSpan) and (stream.pieces or error is not None):
            end_model_call(span, None, error)
    while error is not None and state.open:
        span = state.open.pop()  # it ends here, and not again in a thread of its own
        if span.parent is not None:
            _end_failed(span, error)


@guarded
def _end_failed(span: OpenSpan, error: BaseException) -> None:
    """Tell the end of a step that failed, or was open when its run did."""
    run = span.state.run
    if run is None:
        return
    if isinstance(span, ModelSpan):
        end_model_call(span, None, error)
        return
    data: object = Gave()
    if span.kind in _CHOOSING:
        data = chosen_by(span, None) if span.kind == "rerank" else None
    span.ends(data, run.failure_of(error))


@guarded
def _offer(state: OpenRun, fields: Mapping[str, object]) -> None:
    """Tell what a step gave out that may come from a search of its own: passages, and rows of a database."""
    made = {name: state.values.offered(part) for name, part in fields.items()}
    found = {name: part for name, part in made.items() if part}
    if not found:
        return
    if state.run is None:  # a search or a model may begin one later
        state.offers.update((name, part) for name, part in found.items() if name not in state.offers)
    else:
        state.add(RunEvent("offer", data=found))


def _is_told_later(span: OpenSpan, result: Any) -> bool:
    """Tell whether a function gave nodes to the retriever that called it: what that makes of them is told."""
    return span.kind == "retriever" and bool(result) and type(result[0]) is NodeWithScore


def _closed(span: OpenSpan) -> bool:
    """Take a step for ended, and tell whether nobody did so before, as the end of its run does."""
    try:
        span.state.open.remove(span)
    except KeyError:
        return False
    return True


def _note_top(span: OpenSpan, bound: BoundArguments, instance: object) -> None:
    """Note what a call right inside the block of a run says of its question and of the turns before it."""
    state = span.state
    owner: type = type(instance)
    if isinstance(instance, Workflow):
        span.is_handle = "start_event" not in bound.arguments
        _note_workflow(state, instance)
        _note_saved(state, bound)
    if keeps_turns(owner):
        state.keeps_turns = True
        state.examples = examples_of(instance)
    if span.kind == "other":
        tell_input(state, bound.arguments)
        state.saved = None


def _is_run_of(instance: object, id_: str) -> bool:
    return isinstance(instance, Workflow) and id_[:-ID_TAIL].endswith(".run")


def _note_step(parent: OpenSpan, id_: str, bound: BoundArguments, run_id: str | None) -> None:
    """Note the agent that works in a step of its workflow, and the call of a tool that it carries out."""
    _note_agent(parent, id_, bound, run_id)
    calls = parent.state.calls
    call_id = calls.get(run_id) or call_in(bound.arguments.get("ev"))
    if call_id is not None:
        calls[id_] = call_id


def _note_agent(parent: OpenSpan, id_: str, bound: BoundArguments, run_id: str | None) -> None:
    """Note the agent that works in a step of its workflow, or in a function that such a step calls."""
    state = parent.state
    work = state.agents.get(run_id)
    if work is None:
        event = bound.arguments.get("ev")
        kind: type = type(event)
        if not is_agent_event(kind):
            return
        name = getattr(event, "current_agent_name", None)  # of those by which an agent takes its turn
        work = state.agent_at(run_id, None if name is None else told(name), parent.id)
    if work is not None:
        state.agents[id_] = work


def _end_agent(span: OpenSpan, run_id: str, error: BaseException | None) -> None:
    """Tell the end of the agent that works in a workflow's run; the end of a root tells it of its own."""
    if run_id in span.state.working and (span.parent is not None or span.id != run_id):
        span.state.end_agent(run_id, error)


def _note_workflow(state: OpenRun, workflow: object) -> None:
    """Keep what tells for whom a workflow of the run waits when it is cancelled."""
    journal = journal_of(workflow)
    if journal is not None and len(state.journals) < MAX_JOURNALS:
        state.journals.append(journal)


def _note_saved(state: OpenRun, bound: BoundArguments) -> None:
    """Note what a workflow's context holds before its steps change it."""
    arguments = bound.arguments
    state.is_resumed = "start_event" in arguments and arguments["start_event"] is None
    if state.journals:
        state.saved = saved_in(state.journals[-1], arguments.get("init_state"))


def _outcome(state: OpenRun, outcome: Outcome) -> Outcome:
    """Return how a run ended that was cut short: one that waited for a person then is interrupted."""
    is_cut = outcome in {"cancelled", "partial"} and not state.is_waiting
    return "interrupted" if is_cut and _awaited(state) is not None else outcome


def _awaited(state: OpenRun) -> object:
    """Return what the run waits for; without a journal the last that a step asked a person."""
    return awaited_in(state.journals) if state.journals else state.interrupt


def _asked_of_person(state: OpenRun) -> object:
    awaited = _awaited(state)
    if is_waiting(awaited) and (add := getattr(awaited, "add", None)) is not None:
        awaited = getattr(add, "waiter_event", None) or getattr(add, "event_type", None)
    return fields_of(awaited) if isinstance(awaited, Event) else told(awaited)


def _new_span(state: OpenRun, parent: OpenSpan | None, kind: Kind, id_: str, instance: object) -> OpenSpan:
    span = _SPAN_CLASSES.get(kind, OpenSpan)(state, parent, kind, id_, id(instance), time.time_ns())
    if instance is not None:
        span.name = type(instance).__name__
    else:
        span.name = id_[:-ID_TAIL].rpartition("<locals>.")[2].removesuffix(".run")
    return span


def _read_in(parent: OpenSpan | None, read: Stream) -> tuple[OpenSpan | None, Stream | None]:
    """Return the parent of what happens while a stream is read: a span of its tree, else the stream's own node."""
    state = read.span.state
    if state.is_ended:  # what a late read begins belongs to a run that the sweep has ended
        return parent or read.span, None
    return (parent if parent is not None and parent.state is state else read.span), read


def _is_next(handle: OpenSpan, id_: str, instance: object) -> bool:
    """Tell whether a span is another request behind a workflow's run, and no step of it.

    With early versions of llama-index-workflows, whoever called ``run`` stays inside its span for ever.
    """
    is_run = id_[:-ID_TAIL].endswith(".run")
    return instance is not None and (is_run or id(instance) != handle.owner)


def _is_same_call(kind: Kind, parent: OpenSpan, instance: object) -> bool:
    """Tell whether a span is a part of the call around it: a method that calls its like, or super()."""
    if kind != parent.kind:
        return False
    return kind in {"model", "embedding"} or parent.owner == id(instance)
