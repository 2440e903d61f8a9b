"""Facts that a call of LangChain's has beside its values: of the request, of the model, of its reply."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from ragtrace.capture import (
    Defaults,
    describe,
    guarded,
    is_json_asked,
    is_refused,
    provider_in,
    provider_named,
    read_request,
    read_server,
    read_usage,
    tags_of,
    unsaid,
)
from ragtrace.capture.content_blocks import block_text, is_text_block
from ragtrace.capture.events import Asked, Node, Said
from ragtrace.capture.names import MODEL_NAMES, REPLY_FINISH_KEYS, SESSION_KEYS, USER_KEYS
from ragtrace.capture.values import Turn, told, within
from ragtrace.model import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.capture import Run
    from ragtrace.capture.types import Operation
    from ragtrace_langchain.values import Values

PREFIX = "ragtrace."
_OWN = {
    name: PREFIX + name
    for name in ("question", "session", "user", "corpus", "corpus_version", "prompt", "k", "reference", "labels")
}
# Names that applications and LangGraph use already, for what is not given under our own.
_COMMON = {
    "session": SESSION_KEYS,
    "user": USER_KEYS,
}
_DESCRIBED = ("session", "user", "corpus", "corpus_version", "k")
# Tags that LangChain and LangGraph set on their own steps.
_STEP = "graph:step:"
_INNER_TAGS = ("seq:step:", "map:key:", _STEP, "langsmith:")
_SENT = "__pregel_push"
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
    return told(metadata.get(f"{PREFIX}workflow")) or defaults.workflow or given


def said_in(defaults: Defaults, metadata: Mapping[str, object]) -> dict[str, object]:
    """Return what a request's metadata say: under our own keys, and under common ones what is else unknown.

    Example:
        >>> said_in(Defaults(user="u1"), {"thread_id": 7, "user_id": 8, "ragtrace.k": 4})
        {'k': 4, 'session': 7}
    """
    said = {name: metadata[key] for name, key in _OWN.items() if key in metadata}
    for name, keys in _COMMON.items():
        if not told(said.get(name)) and not getattr(defaults, name):
            said.update((name, metadata[key]) for key in reversed(keys) if told(metadata.get(key)))
    return said


@guarded
def describe_configured(run: Run, configurable: Mapping[str, object]) -> None:
    """Write what a call is configured with onto a run that nothing else says it of.

    LangGraph copies a thread's id into the metadata; what looks up a conversation's memory does not.
    """
    for name, keys in _COMMON.items():
        if name not in run.said:
            run.set_attributes(
                **{name: next((told(configurable[key]) for key in keys if told(configurable.get(key))), None)}
            )


@guarded
def describe_request(
    run: Run,
    defaults: Defaults,
    metadata: Mapping[str, object],
    tags: Iterable[str] | None,
    *,
    is_joined: bool = False,
) -> None:
    """Write the per-request data onto a run; on the application's own run, where that says nothing of it."""
    own = [tag for tag in tags_of(tags) if not tag.startswith(_INNER_TAGS)]
    if not (metadata or own or defaults != _NOTHING):
        return
    said = said_in(defaults, metadata)
    if is_joined:
        said = unsaid(run, {**{name: getattr(defaults, name) for name in _DESCRIBED}, **said})
        defaults = Defaults(tags=defaults.tags, declared=defaults.declared)
    describe(run, defaults, {**said, "tags": own, "metadata": metadata})


@guarded
def describe_prompt(run: Run, metadata: Mapping[str, object]) -> None:
    """Write owner, name and commit of a prompt of LangChain's hub onto a run."""
    parts = (told(metadata.get("lc_hub_owner")), told(metadata.get("lc_hub_repo")))
    run.prompted("/".join(filter(None, parts)), told(metadata.get("lc_hub_commit_hash")) or None)


def node_of(tags: list[str] | None, metadata: Mapping[str, object] | None) -> Node | None:
    """Return where a graph's node stands, by which those of one step are ordered as in the state; else None.

    Example:
        >>> node_of(["graph:step:2"], {"langgraph_path": ("__pregel_push", 1, False)})
        Node(step=2, place=1, path='__pregel_push')
        >>> node_of(["seq:step:1"], {}) is None
        True
    """
    step = next((tag for tag in tags or () if tag.startswith(_STEP)), None)
    if step is None:
        return None
    noted = metadata or {}
    path, triggers = noted.get("langgraph_path"), noted.get("langgraph_triggers")
    parts = path if isinstance(path, list | tuple) else ()
    places = [part for part in parts if type(part) is int]
    number = step[len(_STEP) :]
    return Node(
        step=int(number) if number.isdigit() else 0,
        place=places[-1] if places else -1,
        path="/".join(part for part in parts if isinstance(part, str)),
        is_sent=isinstance(triggers, list | tuple) and _SENT in triggers,
    )


def asks_of(error: BaseException) -> str:
    """Return what an interrupt asks a person, one a line; a value that is no text as JSON.

    Example:
        >>> asks_of(ValueError())
        ''
    """
    interrupts = error.args[0] if error.args and isinstance(error.args[0], list | tuple) else ()
    values = (getattr(interrupt, "value", interrupt) for interrupt in interrupts)
    return "\n".join(
        value if isinstance(value, str) else json.dumps(within(value), default=told, ensure_ascii=False)
        for value in values
    )


# -- models --

_COSTS = frozenset({"input_cost", "output_cost"})
_IN_PROCESS = ("fake", "llamacpp", "huggingface_pipeline", "huggingfacepipeline", "gpt4all", "ctransformers")


def asked_of(
    name: str,
    messages: list[Turn],
    operation: Operation,
    serialized: Mapping[str, object] | None,
    metadata: Mapping[str, object] | None,
    extra: Mapping[str, object],
) -> Asked:
    """Return what a model is asked, with its model and provider.

    LangSmith's fields come first, then the call's parameters, then the names of class and module.

    Example:
        >>> asked_of("ChatOpenAI", [], "chat", None, {"ls_provider": "openai", "ls_model_name": "gpt-4o"}, {}).model
        'gpt-4o'
    """
    noted, invocation = metadata or {}, extra.get("invocation_params")
    settings = (serialized or {}).get("kwargs")
    provider = _text(noted.get("ls_provider"))
    kind = f"{provider or ''} {name}".lower()
    path = (serialized or {}).get("id")
    classes = [part for part in path if isinstance(part, str)] if isinstance(path, list) else []
    server = read_server(invocation, settings)
    return Asked(
        messages=messages,
        operation=operation,
        model=_text(noted.get("ls_model_name")) or _model_in(invocation) or _model_in(settings) or name or None,
        provider=provider_named(provider) if provider else provider_in(name, *classes),
        request=read_request(invocation, noted, settings),
        server_address=server.address,
        server_port=server.port,
        is_in_process=any(word in kind for word in _IN_PROCESS),
        is_json_asked=_asks_for_json(invocation) or _asks_for_json(extra.get("options")),
    )


def _asks_for_json(parameters: object) -> bool:
    return isinstance(parameters, dict) and is_json_asked(parameters)


def _model_in(settings: object) -> str | None:
    if not isinstance(settings, dict):
        return None
    return next((name for key in MODEL_NAMES if (name := _text(settings.get(key)))), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def said_of(
    response: object, values: Values, streamed: Sequence[str] = (), first_chunk_ns: int = 0, chunks: int = 0
) -> Said:
    """Return what a model replied: its choices, usage and reasons; an empty reply for None.

    Usage comes from the messages (``usage_metadata``), else from ``llm_output``. A reply out of LangChain's cache
    used no tokens. An identifier of LangChain's own is none of the provider's.

    Example:
        >>> from langchain_core.outputs import Generation, LLMResult
        >>> from ragtrace_langchain.values import Values
        >>> said_of(LLMResult(generations=[[Generation(text="In Oslo.")]]), Values()).choices
        [Turn(role='assistant', content='In Oslo.')]
    """
    generations = getattr(response, "generations", None)
    choices = [choice for choice in (generations or [[]])[0] if choice is not None]
    messages = [getattr(choice, "message", None) for choice in choices]
    facts: list[dict[str, Any]] = [
        {**(getattr(choice, "generation_info", None) or {}), **(getattr(message, "response_metadata", None) or {})}
        for choice, message in zip(choices, messages, strict=True)
    ]
    name = _text(getattr(messages[0], "id", None)) if messages else None
    if name is not None and name.startswith(("lc_", "run-")):
        name = None
    counts = [getattr(message, "usage_metadata", None) for message in messages]
    whole = getattr(response, "llm_output", None) or {}
    first = facts[0] if facts else {}
    reasons = (next((fact[key] for key in REPLY_FINISH_KEYS if fact.get(key)), None) for fact in facts)
    is_cached = any(count is not None and _is_cached(count) for count in counts)
    return Said(
        choices=[
            values.of(message) if isinstance(message, BaseMessage) else Turn("assistant", values.of(choice.text))
            for choice, message in zip(choices, messages, strict=True)
        ],
        streamed="".join(streamed),
        first_chunk_ns=first_chunk_ns,
        chunks=chunks,
        usage=Usage(input_tokens=0, output_tokens=0)
        if is_cached
        else next(filter(None, map(read_usage, counts)), None)
        or read_usage(whole.get("token_usage") or whole.get("usage")),
        finish_reasons=tuple(reason for reason in reasons if isinstance(reason, str)),
        response_model=_text(first.get("model_name"))
        or _text(first.get("model"))
        or _text(whole.get("model_name")),
        response_id=_text(first.get("id")) or name or _text(whole.get("id")),
        is_refused=bool(messages) and (is_refused(messages[0]) or is_refused(first)),
    )


def _is_cached(counts: Mapping[str, object]) -> bool:
    """Tell whether a reply is out of LangChain's cache, which sets its whole cost to 0.

    A model of no cost may say so too; it then names the parts of the cost as well, and all are 0.
    """
    parts = [counts[name] for name in _COSTS if name in counts]
    return counts.get("total_cost") == 0 and (not parts or any(parts))


def piece_text(piece: object) -> str:
    """Return the text of a streamed piece; other blocks than text come in fragments and say nothing by themselves.

    Example:
        >>> piece_text([{"type": "text", "text": "In "}, {"type": "input_json_delta", "partial_json": "{"}])
        'In '
    """
    if isinstance(piece, list):
        return "".join(block_text(block) for block in piece if is_text_block(block))
    return piece if isinstance(piece, str) else ""
