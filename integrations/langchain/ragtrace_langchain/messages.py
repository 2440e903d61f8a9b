"""Pure functions that read questions, answers, messages and model calls out of LangChain's values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from langchain_core.load import Serializable
from langchain_core.messages import BaseMessage

from ragtrace.capture import (
    ANSWER_FIELDS,
    NO_SERVER,
    Server,
    answer_field,
    before_question,
    is_refused,
    provider_in,
    provider_named,
    read_request,
    read_server,
    read_usage,
    shown,
    spoken,
)
from ragtrace.model import Call, Message, Usage
from ragtrace_langchain.content_blocks import block_text, is_text_block, prompt_block_text
from ragtrace_langchain.documents import fields_of

if TYPE_CHECKING:
    from langchain_core.outputs import LLMResult


# The name of a field with what a person wrote; it comes before `_LOOSE_KEYS`, whose text may be the program's.
_PERSONS = re.compile(
    r"(?:(?:user|customer|client|visitor|caller|human|person|original)_?)?"
    r"(?:question|message|utterance|inquiry|enquiry|query|request|frage|anfrage|nachricht)",
    re.IGNORECASE,
)
_LOOSE_KEYS = ("search_query", "prompt", "text")
QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "search_query", "prompt", "text")
HISTORY_KEYS = ("chat_history", "history", "messages")
_EARLIER = re.compile("histor|previous|past|earlier|example|shots", re.IGNORECASE)
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "HumanMessageChunk": "user"}
_SPEAKERS = frozenset({"user", "assistant", "system", "tool"})
_DEPTH = 4  # of containers in containers, for cyclic ones


def question_in(inputs: object) -> str:
    """Return the question in a root run's input, "" when there is none to be seen.

    A text, a message, a list of messages (the last human one), a prompt value, or a dict with one of those
    under ``question``, ``query``, ``input``, ``messages`` and the like, or with one text only.

    Example:
        >>> question_in({"input": "Where?", "chat_history": []})
        'Where?'
        >>> question_in({"messages": [("user", "Where?")]})
        'Where?'
    """
    if isinstance(inputs, str):
        return inputs
    if isinstance(inputs, dict):
        return _question_under_keys(inputs)
    turns = turns_in(inputs)
    asked = [turn.content for turn in turns if turn.role == "user"]
    return asked[-1] if asked else ""


def _question_under_keys(inputs: Mapping[object, object]) -> str:
    for key in (*QUESTION_KEYS, "messages"):
        value = inputs.get(key)
        if key in _LOOSE_KEYS and value is not None and (asked := _written_by_a_person(inputs)):
            return asked
        if value is not None and not isinstance(value, dict) and (found := question_in(value)):
            return found
    talk = conversation_in(inputs)
    if talk and talk[-1].role == "user":
        return talk[-1].content
    texts = [value for value in inputs.values() if isinstance(value, str)]
    nested = [part for part in inputs.values() if isinstance(part, dict)]
    is_only = len(texts) == 1 and not any(isinstance(value, str) for part in nested for value in part.values())
    return texts[0] if is_only else ""


def _written_by_a_person(inputs: Mapping[object, object]) -> str:
    named = (text for name, text in inputs.items() if isinstance(text, str) and _PERSONS.fullmatch(str(name)))
    return next((text for text in named if text.strip()), "")


def conversation_in(fields: Mapping[object, object]) -> tuple[Message, ...]:
    """Return the turns of the one list of messages among fields, under a name of the application's own.

    Those under ``messages`` are not meant, nor earlier turns under a name that says so.

    Example:
        >>> [turn.content for turn in conversation_in({"talk": [("user", "Where?")], "lang": "en"})]
        ['Where?']
        >>> conversation_in({"chat_history": [("user", "Where?")]})
        ()
    """
    found = [
        turns
        for name, part in fields.items()
        if isinstance(part, list) and part and name != "messages" and not _EARLIER.search(str(name))
        if len(turns := turns_in(part)) == len(part) and any(turn.role == "user" for turn in turns)
        if all(turn.role in _SPEAKERS for turn in turns)
    ]
    return found[0] if len(found) == 1 else ()


def history_in(inputs: object) -> tuple[Message, ...]:
    """Return the turns before the question, oldest first; system messages are not among them.

    Example:
        >>> [m.content for m in history_in([("user", "Hi"), ("assistant", "Hello"), ("user", "Where?")])]
        ['Hi', 'Hello']
    """
    if isinstance(inputs, dict):
        for key in HISTORY_KEYS:
            turns = turns_in(inputs.get(key))
            if turns:
                return before_question(turns) if key == "messages" else spoken(turns)
        return before_question(conversation_in(inputs))
    return before_question(turns_in(inputs))


def recalled_in(inputs: object, asked: object) -> tuple[Message, ...]:
    """Return the earlier turns that a framework's memory put into an inner step's input, oldest first.

    They are messages under ``chat_history`` or ``history``, or before the question in any list that ends with it;
    other lists may be examples for the model. `asked` is the root's input.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> state = {"messages": [HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("Where?")]}
        >>> [turn.content for turn in recalled_in(state, "Where?")]
        ['Hi', 'Hello']
    """
    parts = inputs.items() if isinstance(inputs, dict) else (("messages", inputs),)
    for key, part in parts:
        if not (isinstance(part, list) and part and isinstance(part[0], BaseMessage)):
            continue
        turns = turns_in(part)
        if key in HISTORY_KEYS and key != "messages":
            return spoken(turns)
        if question_in(part) == question_in(asked):
            return before_question(turns)
    return ()


def turns_in(value: object, *, is_prompt: bool = False) -> tuple[Message, ...]:
    """Return the messages in a value: a message, a list of them, a prompt value; pairs and dicts count too.

    Of a prompt, the documents in blocks are told too.

    Example:
        >>> turns_in([{"role": "user", "content": "Hi"}])
        (Message(role='user', content='Hi'),)
    """
    to_messages = getattr(value, "to_messages", None)
    if to_messages is not None and not isinstance(value, type):
        value = to_messages()
    if isinstance(value, list | tuple) and not _is_pair(value):
        return tuple(turn for part in value if (turn := turn_of(part, is_prompt=is_prompt)) is not None)
    one = turn_of(value, is_prompt=is_prompt)
    return () if one is None else (one,)


def turn_of(value: object, *, is_prompt: bool = False) -> Message | None:
    """Return one message with its role in words of the API (user, assistant, system, tool), else None.

    Example:
        >>> turn_of(("human", "Hi"))
        Message(role='user', content='Hi')
        >>> from langchain_core.messages import AIMessage
        >>> turn_of(AIMessage("", tool_calls=[{"name": "search", "args": {"q": "lab"}, "id": "1"}])).shown
        'search({"q": "lab"})'
    """
    if isinstance(value, BaseMessage):
        return Message(
            role=_role(value),
            content=content_text(value.content, is_prompt=is_prompt),
            calls=tuple(map(_call, getattr(value, "tool_calls", None) or ())),
            call_id=getattr(value, "tool_call_id", None),
        )
    if _is_pair(value):
        return Message(role=_role(value[0]), content=value[1])
    if isinstance(value, dict) and "role" in value and "content" in value:
        return Message(role=_role(value["role"]), content=content_text(value["content"], is_prompt=is_prompt))
    return None


def _is_pair(value: object) -> TypeGuard[tuple[str, str]]:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, str) for part in value)


def _role(of: object) -> str:
    """Return the API's word for a message's role or for a role's name in LangChain."""
    if isinstance(of, BaseMessage):
        of = getattr(of, "role", None) if of.type == "chat" else of.type
    return _ROLES.get(of, of) if isinstance(of, str) else "user"


def _call(call: Mapping[str, object]) -> Call:
    arguments = json.dumps(call["args"], default=str, ensure_ascii=False)
    return Call(name=shown(call["name"]), arguments=arguments, id=_text(call.get("id")))


def content_text(content: object, *, is_prompt: bool = False) -> str:
    """Return the text of a message's content; of blocks, the text blocks, and the others' types in brackets.

    In a prompt, the texts of documents and search results are among it.

    Example:
        >>> content_text([{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": "..."}])
        'Look: [image_url]'
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return shown(content)
    return "".join(map(prompt_block_text if is_prompt else block_text, content))


def piece_text(piece: object) -> str:
    """Return the text of a streamed piece; other blocks than text come in fragments and say nothing by themselves.

    Example:
        >>> piece_text([{"type": "text", "text": "In "}, {"type": "input_json_delta", "partial_json": "{"}])
        'In '
    """
    if isinstance(piece, list):
        return "".join(block_text(block) for block in piece if is_text_block(block))
    return piece if isinstance(piece, str) else ""


def answer_in(outputs: object, depth: int = 0) -> str | None:
    """Return the answer in a root run's output, None when there is none to be seen.

    A text, a message, the last assistant message of a list, a dict or object with ``answer``, ``output``,
    ``result``, ``response`` and the like, a state with ``messages``, or another object, as JSON.

    Example:
        >>> answer_in({"question": "Where?", "answer": "In Oslo."})
        'In Oslo.'
        >>> answer_in({"context": []}) is None
        True
    """
    if isinstance(outputs, str):
        return outputs
    if outputs is None or depth > _DEPTH:
        return None
    if isinstance(outputs, BaseMessage):
        return content_text(outputs.content)
    if isinstance(outputs, list | tuple):
        return _last_said(outputs)
    if isinstance(outputs, dict):
        answer = _answer_under_keys(outputs, depth)
        return structured_text(outputs) if answer is None and depth else answer  # a root's dict is a state
    answer = answer_field(outputs)
    return structured_text(outputs) if answer is None else answer


def structured_text(value: object) -> str | None:
    """Return structured output as JSON: of an object with fields, a dict or a list.

    None for other values, and where LangChain's own objects stand in it: that is a state and no answer.

    Example:
        >>> structured_text({"city": "Oslo"})
        '{"city": "Oslo"}'
        >>> structured_text({"said": BaseMessage(content="Oslo", type="ai")}) is None
        True
    """
    parts = value if isinstance(value, list) else fields_of(value)
    if not parts:
        return None
    try:
        return json.dumps(parts, default=_plain, ensure_ascii=False)
    except Exception:  # an application's object may raise anything here; it is then no answer
        return None


def called_in(outputs: object, called: Mapping[str, object] | None) -> str | None:
    """Return the answer that a model gave by calling a tool, where a state holds it as an object under any key.

    Example:
        >>> called_in({"docs": [], "found": {"city": "Oslo"}}, {"city": "Oslo"})
        '{"city": "Oslo"}'
    """
    parts = (fields_of(outputs) or {}).values() if called else ()
    found = (part for part in parts if (held := fields_of(part)) and held.keys() >= (called or {}).keys())
    return answer_in(next(found, None), 1)


def _plain(value: object) -> object:
    if isinstance(value, Serializable):
        raise TypeError
    fields = fields_of(value)
    return str(value) if fields is None else fields


def _answer_under_keys(outputs: dict[object, object], depth: int) -> str | None:
    for key in ANSWER_FIELDS:
        if key in outputs and (found := answer_in(outputs[key], depth + 1)) is not None:
            return found
    if "messages" not in outputs and not depth:
        talks = [part for name, part in outputs.items() if _are_messages(part) and not _EARLIER.search(str(name))]
        return _last_said(talks[0]) if len(talks) == 1 else None
    messages = outputs.get("messages")
    return _last_said(messages if isinstance(messages, Iterable) else ())


def _are_messages(part: object) -> TypeGuard[list[BaseMessage]]:
    return isinstance(part, list) and bool(part) and all(isinstance(one, BaseMessage) for one in part)


def _last_said(parts: Iterable[object]) -> str | None:
    said = [part for part in parts if isinstance(part, BaseMessage) and _role(part) == "assistant"]
    return content_text(said[-1].content) if said else None


_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
_MODEL_KEYS = ("model", "model_name", "model_id", "deployment_name", "azure_deployment", "repo_id")
_COSTS = frozenset({"input_cost", "output_cost"})
_IN_PROCESS = ("fake", "llamacpp", "huggingface_pipeline", "huggingfacepipeline", "gpt4all", "ctransformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Model, provider, place and parameters of a call that starts."""

    model: str | None
    provider: str | None
    is_in_process: bool
    request: Mapping[str, object] = field(default_factory=dict)
    server: Server = NO_SERVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Reply of a model call: `text` of the first choice, and `called`, the arguments of its first tool call.

    `is_refused` says that the provider declined, or that its filter stopped the reply.
    """

    text: str = ""
    called: Mapping[str, object] | None = None
    is_refused: bool = False
    outputs: tuple[Message, ...] = ()
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    response_model: str | None = None
    response_id: str | None = None


def model_facts(
    serialized: Mapping[str, object] | None,
    metadata: Mapping[str, object] | None,
    invocation: Mapping[str, object] | None,
    name: str,
) -> ModelFacts:
    """Return model and provider of a call.

    LangSmith's fields come first, then the call's parameters, then the names of class and module.

    Example:
        >>> model_facts(None, {"ls_provider": "openai", "ls_model_name": "gpt-4o"}, None, "ChatOpenAI").model
        'gpt-4o'
    """
    noted = metadata or {}
    settings = (serialized or {}).get("kwargs")
    model = _text(noted.get("ls_model_name")) or _model_in(invocation) or _model_in(settings)
    provider = _text(noted.get("ls_provider"))
    kind = f"{provider or ''} {name}".lower()
    path = (serialized or {}).get("id")
    classes = [part for part in path if isinstance(part, str)] if isinstance(path, list) else []
    return ModelFacts(
        model=model or name or None,
        provider=provider_named(provider) if provider else provider_in(name, *classes),
        is_in_process=any(word in kind for word in _IN_PROCESS),
        request=read_request(invocation, noted, settings),
        server=read_server(invocation, settings),
    )


def _model_in(settings: object) -> str | None:
    if not isinstance(settings, dict):
        return None
    return next((name for key in _MODEL_KEYS if (name := _text(settings.get(key)))), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


class Said(NamedTuple):
    """One choice of a reply, with a copy of its message."""

    text: str | None
    message: BaseMessage | None
    generation_info: dict[str, object] | None


class ResultCopy(NamedTuple):
    """A model's reply as it was when the call ended; the application may change its messages later."""

    generations: list[list[Said]]
    llm_output: dict[str, object] | None


def as_said(response: object) -> ResultCopy:
    """Return a model's reply as it is now.

    Example:
        >>> as_said(None)
        ResultCopy(generations=[[]], llm_output=None)
    """
    choices = [choice for choice in (getattr(response, "generations", None) or [[]])[0] if choice is not None]
    messages = [getattr(choice, "message", None) for choice in choices]
    said = [
        Said(
            getattr(choice, "text", None),
            message.model_copy() if isinstance(message, BaseMessage) else message,
            getattr(choice, "generation_info", None),
        )
        for choice, message in zip(choices, messages, strict=True)
    ]
    return ResultCopy([said], getattr(response, "llm_output", None))


def reply_of(response: LLMResult | ResultCopy | None) -> Reply:
    """Return outputs, usage and finish reasons of a finished call; an empty `Reply` for None.

    Usage comes from the messages (``usage_metadata``), else from ``llm_output``. A reply out of LangChain's cache
    used no tokens.

    Example:
        >>> from langchain_core.outputs import Generation, LLMResult
        >>> reply_of(LLMResult(generations=[[Generation(text="In Oslo.")]])).text
        'In Oslo.'
    """
    generations = getattr(response, "generations", None)
    choices = [choice for choice in (generations or [[]])[0] if choice is not None]
    messages = [getattr(choice, "message", None) for choice in choices]
    texts = [
        content_text(message.content if message is not None else getattr(choice, "text", None))
        for choice, message in zip(choices, messages, strict=True)
    ]
    facts = [
        {**(getattr(choice, "generation_info", None) or {}), **(getattr(message, "response_metadata", None) or {})}
        for choice, message in zip(choices, messages, strict=True)
    ]
    calls = getattr(messages[0], "tool_calls", None) if messages else None
    name = _text(getattr(messages[0], "id", None)) if messages else None
    if name is not None and name.startswith(("lc_", "run-")):  # LangChain's own where the provider gave none
        name = None
    counts = [getattr(message, "usage_metadata", None) for message in messages]
    whole = getattr(response, "llm_output", None) or {}
    first = facts[0] if facts else {}
    reasons = (next((fact[key] for key in _REASON_KEYS if fact.get(key)), None) for fact in facts)
    return Reply(
        text=texts[0] if texts else "",
        called=calls[0]["args"] if calls else None,
        is_refused=bool(messages) and (is_refused(messages[0]) or is_refused(first)),
        outputs=tuple(
            turn_of(message) or Message(role="assistant", content=text)
            for message, text in zip(messages, texts, strict=True)
        ),
        usage=Usage(input_tokens=0, output_tokens=0)
        if any(map(_is_cached, counts))
        else next(filter(None, map(read_usage, counts)), None)
        or read_usage(whole.get("token_usage") or whole.get("usage")),
        finish_reasons=tuple(reason for reason in reasons if isinstance(reason, str)),
        response_model=_text(first.get("model_name"))
        or _text(first.get("model"))
        or _text(whole.get("model_name")),
        response_id=_text(first.get("id")) or name or _text(whole.get("id")),
    )


def _is_cached(counts: Mapping[str, object] | None) -> bool:
    """Tell whether a reply is out of LangChain's cache, which sets its whole cost to 0.

    A model of no cost may say so too; it then names the parts of the cost as well.
    """
    return counts is not None and counts.get("total_cost") == 0 and _COSTS.isdisjoint(counts)
