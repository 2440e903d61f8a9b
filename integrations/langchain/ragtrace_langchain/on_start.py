"""Facts recorded where an event starts: request data, the question, the history, the prompt, a tool's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.capture import Defaults, describe, guarded, is_json_asked, prompt_text, shown, tags_of
from ragtrace_langchain.documents import documents_in, fields_of
from ragtrace_langchain.messages import history_in, model_facts, question_in, recalled_in
from ragtrace_langchain.selection import record_tool_messages, record_waiting_choice
from ragtrace_langchain.tools import from_outside, note_begin, record_context_texts, record_contexts
from ragtrace_langchain.turns import Beginning, has_texts, question_among, question_in_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.capture import IntegrationRun
    from ragtrace_langchain.run_state import ModelCall, OpenSpan, RunState


_ASKED_KEYS = ("question", "query", "input", "user_input", "user_query", "messages")  # of an inner chain


@guarded
def record_inputs(span: OpenSpan, inputs: object) -> None:
    """Take the input of a chain or a tool: the documents in it, and the question of the run.

    `inputs` is the input as it came where the span's copy of it is another kind of object.
    """
    note_begin(span, inputs)
    if span.given and span.state.given is None and not span.state.pool:
        span.state.given = from_outside(span.state, span.given)
    if span.parent is None and isinstance(inputs, dict):
        record_contexts(span, None, inputs)
    if span.within is not None:
        return
    state = span.state
    if span.parent is None or span.is_in_block:
        if not state.has_query:
            record_question(state, inputs)
        return
    if span.step:
        _record_state(span)
    _record_memory(span)
    if state.has_query:
        return
    if span.kind == "chain" and not state.inner_question and isinstance(inputs, dict) and not span.is_in_tool:
        asked = {key: inputs[key] for key in _ASKED_KEYS if key in inputs}
        state.inner_question = question_in(asked)


@guarded
def record_streamed_inputs(span: OpenSpan, inputs: object) -> None:
    """Take the input of a streamed chain, which comes with its end: documents or a text in their place."""
    state = span.state
    if span.parent is None:
        span.inputs = inputs
    if state.given is None and not state.pool:
        state.given = documents_in(inputs)
        if span.parent is None and isinstance(inputs, dict) and not state.given:
            record_context_texts(span, None, inputs)


@guarded
def record_question(state: RunState, inputs: object) -> None:
    """Take a run's question and the turns before it, where a root's input has them.

    Of a `Command` it is what it writes into the state; the reply to an interrupt is no question.
    """
    given = inputs if isinstance(inputs, dict) else fields_of(inputs) or inputs
    _take_question(state, question_in(given), given)


def _take_question(state: RunState, question: str, given: object) -> None:
    if question:
        state.has_query = True
        state.run.set_query(question)
        history = history_in(given)
        if history:
            state.run.set_history(history)


def _record_state(span: OpenSpan) -> None:
    """Take the state that a graph's node is given: what a turn begins with, and the question of a resumed one."""
    state, fields, top = span.state, fields_of(span.inputs), span.top
    # An `entrypoint` is called again with the input of its first run, as step 0, which other graphs do not tell.
    is_entrypoint = top.beginning is None and span.step == "graph:step:0"
    top.beginning = top.beginning or Beginning()
    if is_entrypoint and not state.has_query:
        _take_question(state, question_in(span.inputs), span.inputs)
    if not fields:  # a tool's call, which a resumed agent begins with
        return
    top.beginning.note(fields)
    if span.is_sent:  # written for one task, as a part of a question is
        return
    for key, value in fields.items():
        top.beginning.whole.setdefault(key, value)
    if not state.has_query:
        _take_question(state, question_in_state(fields), fields)


@guarded
def record_asked(root: OpenSpan, outputs: object = None) -> None:
    """Find the question of a run whose input names it in its own way, or that goes on with a saved state.

    A text of the input or of the state comes first, see `question_among`; then what a retriever was asked with. The
    state that a resumed graph gives out has the question too, where the steps that ran were given a part of it.
    """
    state = root.state
    if state.has_query:
        return
    if root.is_resumed and (left := fields_of(outputs)):
        question = question_in_state(left)
        if question:
            _take_question(state, question, left)
            return
    queries = [step.query.strip() for step in state.run.retrievals() if step.query]
    began = root.beginning.fields if root.beginning is not None else {}
    is_told = has_texts(root.inputs)
    given = began if root.is_resumed or not is_told else root.inputs
    whole = root.beginning.whole if root.is_resumed and root.beginning is not None else None
    question = question_among(whole, queries) or question_among(given, queries)
    if not question and not root.is_resumed:
        question = ("" if is_told else state.inner_question) or state.first_query
    _take_question(state, question, given)


def _record_memory(span: OpenSpan) -> None:
    """Take the turns that a memory keeps, where the root's input has none; after the answer it holds that too."""
    state = span.state
    root = state.root
    if root is None or root.has_model or "history" in state.run.attributes:
        return
    turns = recalled_in(span.inputs, root.inputs)
    if turns:
        state.run.set_history(turns)


@guarded
def record_query(span: OpenSpan) -> None:
    """Take what a retriever is asked."""
    state = span.state
    state.has_retriever = True
    if span.within is None:
        state.searched_ns = span.started_ns
    if not state.has_query and (span.parent is None or span.is_in_block):
        state.run.set_query(span.query)
        state.has_query = True
    if not (state.first_query or span.is_in_tool or span.within is not None):
        state.first_query = span.query


PREFIX = "ragtrace."
_OWN = {
    name: PREFIX + name
    for name in ("session", "user", "corpus", "corpus_version", "prompt", "k", "reference", "labels")
}
# Names that applications and LangGraph use already, for what is not given under our own.
_COMMON = {
    "session": ("session_id", "conversation_id", "thread_id"),
    "user": ("user_id",),
}
_DESCRIBED = ("session", "user", "corpus", "corpus_version", "k")
# Tags that LangChain and LangGraph set on their own steps.
_INNER_TAGS = ("seq:step:", "map:key:", "graph:step:", "langsmith:")
_NOTHING = Defaults()
_OWN_NAMES = frozenset({"LangGraph", "unnamed"})


def workflow_of(defaults: Defaults, metadata: Mapping[str, object], name: str) -> str | None:
    """Return a run's workflow: ``ragtrace.workflow``, then the handler's argument, then the name given to the root.

    None where there is none of these: LangChain's own names are not given. The recorder's setting then holds.

    Example:
        >>> workflow_of(Defaults(workflow="support"), {}, "RunnableSequence")
        'support'
        >>> workflow_of(Defaults(), {}, "LangGraph") is None
        True
    """
    given = None if name in _OWN_NAMES or name.startswith("Runnable") else name
    return shown(metadata.get(f"{PREFIX}workflow")) or defaults.workflow or given


def said_in(defaults: Defaults, metadata: Mapping[str, object]) -> dict[str, object]:
    """Return what a request's metadata say: under our own keys, and under common ones what is else unknown.

    Example:
        >>> said_in(Defaults(user="u1"), {"thread_id": 7, "user_id": 8, "ragtrace.k": 4})
        {'k': 4, 'session': 7}
    """
    said = {name: metadata[key] for name, key in _OWN.items() if key in metadata}
    for name, keys in _COMMON.items():
        if not shown(said.get(name)) and not getattr(defaults, name):
            said.update((name, metadata[key]) for key in reversed(keys) if shown(metadata.get(key)))
    return said


@guarded
def describe_configured(run: IntegrationRun, configurable: Mapping[str, object]) -> None:
    """Write what a call is configured with onto a run that nothing else says it of.

    LangGraph copies a thread's id into the metadata; what looks up a conversation's memory does not.
    """
    for name, keys in _COMMON.items():
        if name not in run.attributes:
            run.set_attributes(
                **{name: next((shown(configurable[key]) for key in keys if shown(configurable.get(key))), None)}
            )


@guarded
def describe_request(
    run: IntegrationRun, defaults: Defaults, metadata: Mapping[str, object], tags: Iterable[str] | None
) -> None:
    """Write the per-request data onto a run."""
    own = [tag for tag in tags_of(tags) if not tag.startswith(_INNER_TAGS)]
    if metadata or own or defaults != _NOTHING:
        describe(run, defaults, {**said_in(defaults, metadata), "tags": own, "metadata": metadata})


@guarded
def describe_joined(
    run: IntegrationRun, defaults: Defaults, metadata: Mapping[str, object], tags: Iterable[str] | None
) -> None:
    """Write the per-request data of a chain onto the application's own run, where that says nothing of it."""
    own = [tag for tag in tags_of(tags) if not tag.startswith(_INNER_TAGS)]
    if metadata or own or defaults != _NOTHING:
        said = {**{name: getattr(defaults, name) for name in _DESCRIBED}, **said_in(defaults, metadata)}
        missing = {name: value for name, value in said.items() if name not in run.attributes}
        describe(run, Defaults(tags=defaults.tags), {**missing, "tags": own, "metadata": metadata})


@guarded
def record_hub_prompt(state: RunState, metadata: Mapping[str, object]) -> None:
    """Take owner, name and commit of a prompt of LangChain's hub."""
    parts = (shown(metadata.get("lc_hub_owner")), shown(metadata.get("lc_hub_repo")))
    state.run.prompted("/".join(filter(None, parts)), shown(metadata.get("lc_hub_commit_hash")) or None)


@guarded
def record_prompt(
    span: ModelCall,
    prompt: Sequence[object],
    serialized: Mapping[str, object] | None,
    metadata: Mapping[str, object] | None,
    invocation: Mapping[str, object] | None,
    options: Mapping[str, object] | None,
) -> None:
    """Take the rendered prompt of a model call."""
    span.facts = model_facts(serialized, metadata, invocation, span.name)
    span.is_json_asked = is_json_asked(invocation) or is_json_asked(options)
    for above in span.enclosing():
        above.has_model = True
    state = span.state
    if not state.has_query and (span.parent is None or span.is_in_block):
        record_question(state, prompt)
    if span.within is None:  # a prompt inside a retriever asks for other queries, not for the answer
        state.has_model = True
        state.spoken_ns = span.started_ns
        record_tool_messages(span, prompt)
        if state.waiting is not None:
            record_waiting_choice(state)
        state.run.add_prompt(prompt_text(span.messages))
