"""Pure functions that read questions, answers, messages and model calls out of LlamaIndex's values."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, MessageRole
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.workflow import StartEvent
from msgspec.structs import replace

from ragtrace.capture import (
    ANSWER_FIELDS,
    answer_field,
    before_question,
    provider_in,
    provider_named,
    read_usage,
    spoken,
)
from ragtrace.capture.values import told, within
from ragtrace.model import Call, Message
from ragtrace.text import first_items, is_vector
from ragtrace_llamaindex.values import argument, first_of, picture_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from inspect import BoundArguments

    from ragtrace.model import Usage


QUESTION_KEYS = ("query", "question", "message", "user_msg", "input", "query_str", "query_bundle", "prompt")
_QUERY_ARGUMENTS = ("str_or_query_bundle", *QUESTION_KEYS, "messages")
_HISTORY_ARGUMENTS = ("chat_history", "history", "messages")
_TURN = re.compile(r"^(" + "|".join(role.value for role in MessageRole) + "): ", re.MULTILINE)
_REQUEST_KEYS = (
    "query",
    "question",
    "user_msg",
    "query_str",
    "message",
    "messages",
)  # in an application's own object
_SPEAKERS = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "chatbot": "assistant"}
# Of scripts that set no blanks between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")  # of at most 4,096 characters
_LOOKED_AT_CHARS = 4_096
_FEWEST_UNSPACED = 5
_DEPTH = 4
_MOST_PARTS = 64  # of a list or mapping of an input, to look for texts in
_MOST_LOOKED = 4_096  # of the whole input
_MOST_TURNS = 10_000  # of a list of messages
_MOST_CHOICES = 128  # of a reply: as many as OpenAI gives
_CALL = re.compile(r"^Action: *\S[^\n]*\n+Action Input:|<execute>", re.MULTILINE)
_OBSERVATIONS = ("Observation:", "The code execution results are:", "Result of executing the code given:")


def query_text(query: object) -> str:
    """Return a query's text: a text, or what has a ``query_str``.

    Example:
        >>> from llama_index.core.schema import QueryBundle
        >>> query_text("Where?"), query_text(QueryBundle("Where?"))
        ('Where?', 'Where?')
    """
    if isinstance(query, str):
        return query
    text = getattr(query, "query_str", None)
    return text if isinstance(text, str) else ""


def question_in(arguments: Mapping[str, object], depth: int = 0) -> str:
    """Return the question among a call's arguments, "" when there is none to be seen.

    Looks at ``str_or_query_bundle``, ``query``, ``question``, ``message``, ``user_msg``, ``messages`` and the
    like, into ``kwargs``, and into a workflow's start event.

    Example:
        >>> question_in({"message": "Where?", "chat_history": None})
        'Where?'
    """
    for name in _QUERY_ARGUMENTS:
        if name in arguments and (found := _question(arguments[name], depth)):
            return found
    if depth > _DEPTH:
        return ""
    if "user_msg" in arguments and (found := _question(arguments.get("chat_history"))):
        return found  # an agent that is given turns only
    inner = arguments.get("kwargs")
    if isinstance(inner, dict) and (found := question_in(inner, depth + 1)):
        return found
    event = arguments.get("start_event")
    if event is not None:
        return question_in(fields_of(event), depth + 1)
    return next((asked for part in _own_parts(arguments) if (asked := _question_of_own(part, depth))), "")


def place_of_question(arguments: Mapping[str, object], question: str) -> str:
    """Return where a question stands in a call's arguments: under a name of theirs, or of a start event's fields.

    Example:
        >>> place_of_question({"self": None, "message": "Where?"}, "Where?")
        'input.message'
    """
    event = arguments.get("start_event")
    for held in (arguments, {} if event is None else fields_of(event)):
        for name, value in first_items(held, _MOST_PARTS).items():
            if query_text(value) == question:
                return f"input.{name}"
    return "input"


def _question(value: object, depth: int = 0) -> str:
    if isinstance(value, list | tuple):
        asked = [turn.content for turn in turns_in(value) if turn.role == "user"]
        return asked[-1] if asked else ""
    if isinstance(value, ChatMessage):
        return turn_of(value).shown
    return query_text(value) or _question_of_own(value, depth)


def _own_parts(arguments: Mapping[str, object]) -> Iterator[object]:
    """Yield the arguments in which an application may hold a request of its own."""
    some = first_items(arguments, _MOST_PARTS)
    return (value for name, value in some.items() if name not in {"self", "kwargs", "ctx"})


def _question_of_own(value: object, depth: int) -> str:
    """Return the question in a mapping or an object of the application's own, such as a chat page's request."""
    held = _fields_of_own(value) if depth <= _DEPTH else {}
    parts = (held[name] for name in _REQUEST_KEYS if name in held)
    return next((asked for part in parts if (asked := _question(part, depth + 1))), "")


def _fields_of_own(value: object) -> Mapping[str, object]:
    if isinstance(value, dict):
        return value
    if isinstance(value, type) or _is_framework_s(value):
        return {}
    if isinstance(value, BaseModel):
        return fields_of(value)
    return {one.name: getattr(value, one.name, None) for one in fields(value)} if is_dataclass(value) else {}


def fields_of(event: object) -> dict[str, object]:
    """Return the data of a workflow's event: its declared fields and its free ones.

    Example:
        >>> from llama_index.core.workflow import StartEvent
        >>> fields_of(StartEvent(query="Where?"))
        {'query': 'Where?'}
    """
    declared = {name: getattr(event, name, None) for name in getattr(type(event), "model_fields", ())}
    free = getattr(event, "_data", None)
    return {**declared, **free} if isinstance(free, dict) else declared


def question_in_state(state: Mapping[str, object]) -> str:
    """Return the question that a workflow's stored state holds; a prompt that a step rendered is none.

    An agent keeps it under ``user_msg_str``, and in its memory. Other workflows keep it under a name of a question,
    or as the last message of a person in a list.

    Example:
        >>> question_in_state({"prompt": "Use this: ...", "messages": [ChatMessage("Where?", role="user")]})
        'Where?'
    """
    kept = {name: value for name, value in state.items() if name != "prompt"}
    known = query_text(state.get("user_msg_str")) or question_in(kept)
    lists = (_kept_turns(value) for value in state.values())
    return known or next((asked for turns in lists if (asked := _question(turns))), "")


def _kept_turns(value: object) -> list[object]:
    """Return the messages that a value of a state holds; of a memory those that it keeps in this process."""
    store = getattr(getattr(value, "chat_store", None), "store", None)
    if isinstance(store, dict):
        value = store.get(getattr(value, "chat_store_key", None))
    return _first(value, _MOST_TURNS) if isinstance(value, list | tuple) else []


def _first(parts: Iterable[object], most: int) -> list[object]:
    """Return the first parts of a list; none of a vector."""
    some = list(islice(parts, most))
    return [] if is_vector(some) else some


def answers_told(state: Mapping[str, object]) -> Iterator[str]:
    """Yield what a stored state holds of the answers of earlier turns.

    Example:
        >>> list(answers_told({"answer": "In Oslo.", "messages": [ChatMessage("In Rome.", role="assistant")]}))
        ['In Oslo.', 'In Rome.']
    """
    for name, value in state.items():
        if name in ANSWER_FIELDS and isinstance(value, str):
            yield value.strip()
        yield from (turn.content.strip() for turn in turns_in(_kept_turns(value)) if turn.role == "assistant")


def question_shown(turns: Sequence[Message], *, is_agent: bool = False) -> str:
    """Return the question that a model is shown: the last message of a person, where it is of one line.

    An agent's may have several. What its tools observed is none, though it may come as one.

    Example:
        >>> question_shown([Message(role="system", content="Be brief."), Message(role="user", content="Where?")])
        'Where?'
    """
    said = [m.content for m in turns if m.role == "user" and not m.content.startswith(_OBSERVATIONS)]
    last = said[-1].strip() if said else ""
    return last if is_agent or (len(turns) > 1 and "\n" not in last) else ""


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts of an input, also of the mappings, lists and objects of the application's own in it.

    Example:
        >>> list(texts_in({"customer": {"says": "Where?"}, "limit": 3}))
        ['Where?']
    """
    return _texts_in(value, 0, count())


def _texts_in(value: object, depth: int, looked: Iterator[int]) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value.strip()
        return
    if depth > _DEPTH:
        return
    if isinstance(value, list | tuple):
        parts: Iterable[object] = _first(value, _MOST_PARTS)
    elif isinstance(value, dict):
        parts = first_items(value, _MOST_PARTS).values()
    elif isinstance(value, StartEvent) or (isinstance(value, BaseModel) and not _is_framework_s(value)):
        parts = list(fields_of(value).values())
    elif is_dataclass(value) and not isinstance(value, type) and not _is_framework_s(value):
        parts = [getattr(value, one.name, None) for one in fields(value)]
    else:
        return
    for part in parts:
        if next(looked) > _MOST_LOOKED:
            return
        yield from _texts_in(part, depth + 1, looked)


def asked_with(asked: str, texts: Sequence[str]) -> str:
    """Return the text of an input that a step was asked with: it is it, or stands in it as several words.

    Where the input has only one text of several words, a step that is asked otherwise asks for that.

    Example:
        >>> asked_with("Where is it? (de)", ["de", "Where is it?"])
        'Where is it?'
    """
    same = asked.strip()
    if same in texts:
        return same
    prose = sorted({text for text in texts if _has_several_words(text)}, key=len, reverse=True)
    inside = next((text for text in prose if text in asked), "")
    return inside or (prose[0] if len(prose) == 1 else "")


def _has_several_words(text: str) -> bool:
    return len(text.split(None, 1)) > 1 or len(_UNSPACED.findall(text[:_LOOKED_AT_CHARS])) >= _FEWEST_UNSPACED


def history_in(arguments: Mapping[str, object]) -> tuple[Message, ...]:
    """Return the turns before the question among a call's arguments, oldest first.

    Example:
        >>> [m.content for m in history_in({"message": "?", "chat_history": [ChatMessage("Hi", role="user")]})]
        ['Hi']
    """
    for name in _HISTORY_ARGUMENTS:
        turns = turns_in(arguments.get(name))
        if turns:
            return before_question(turns) if name == "messages" else spoken(turns)
    event = arguments.get("start_event")
    if event is not None:
        return history_in(fields_of(event))
    held = (_fields_of_own(part).get("messages") for part in _own_parts(arguments))
    return next((before_question(turns) for part in held if (turns := turns_in(part))), ())


def turns_before(turns: Sequence[Message], question: str) -> tuple[Message, ...]:
    """Return what was said before a question: before the last user turn that is it; nothing where none is.

    Example:
        >>> asked = [Message(role="user", content="Hi"), Message(role="user", content="Where?")]
        >>> [turn.content for turn in turns_before(asked, "Where?")]
        ['Hi']
    """
    for i in reversed(range(len(turns))):
        if turns[i].role == "user" and turns[i].content == question:
            return spoken(turns[:i])
    return ()


def turns_told(text: str) -> tuple[Message, ...]:
    r"""Return the turns of user and assistant in a conversation that LlamaIndex wrote as one text.

    Example:
        >>> [turn.content for turn in turns_told("user: Hi\nyou\nassistant: Hello")]
        ['Hi\nyou', 'Hello']
    """
    parts = _TURN.split(text)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return spoken(turn_of(ChatMessage(content=said.removesuffix("\n"), role=role)) for role, said in pairs)


def turns_in(value: object) -> tuple[Message, ...]:
    """Return the messages in a value: a message, or a list of them, also of mappings and the application's objects.

    Example:
        >>> turns_in([ChatMessage("Hi", role="user")]) == turns_in([{"role": "user", "content": "Hi"}])
        True
    """
    if isinstance(value, ChatMessage):
        return (turn_of(value),)
    if not isinstance(value, list | tuple):
        return ()
    return tuple(turn for part in _first(value, _MOST_TURNS) if (turn := _turn_in(part)) is not None)


def _turn_in(part: object) -> Message | None:
    if isinstance(part, ChatMessage):
        return turn_of(part)
    held = _fields_of_own(part)
    role, content = held.get("role"), held.get("content")
    if role is None or content is None:
        return None
    if isinstance(content, list | tuple):
        content = "\n".join(text for one in content if isinstance(text := _field(one, "text"), str))
    name = str(getattr(role, "value", role)).lower()
    return Message(role=_SPEAKERS.get(name, name), content=content) if isinstance(content, str) else None


def turn_of(message: ChatMessage) -> Message:
    """Return one message with its role in words of the API.

    Example:
        >>> turn_of(ChatMessage("Hi", role="chatbot")).role
        'assistant'
    """
    role = str(getattr(message.role, "value", message.role))
    call_id = message.additional_kwargs.get("tool_call_id") if message.additional_kwargs else None
    return Message(
        role="assistant" if role == "chatbot" else role,
        content=message.content or "",
        calls=tuple(map(_call, _calls_of(message))),
        call_id=_text(call_id),
    )


def _calls_of(message: ChatMessage) -> Sequence[object]:
    blocks = [b for b in getattr(message, "blocks", ()) if getattr(b, "block_type", None) == "tool_call"]
    if blocks or not message.additional_kwargs:
        return blocks
    calls = message.additional_kwargs.get("tool_calls")
    return calls if isinstance(calls, list | tuple) else []


def _called_with(message: ChatMessage) -> Iterator[object]:
    """Yield the arguments of each call of a tool in a message, as a mapping or as JSON."""
    return map(_given_to, _calls_of(message))


def _given_to(call: object) -> object:
    if _field(call, "tool_name") is not None:
        return _field(call, "tool_kwargs")
    function = _field(call, "function") or call
    given = _field(function, "arguments")
    return _field(function, "args") if given is None else given


def _call(call: object) -> Call:
    """Return a call of a block of LlamaIndex's, or as a provider's client has it."""
    name = _field(call, "tool_name")
    if name is not None:
        identity = _field(call, "tool_call_id") or _field(call, "tool_id")
        return Call(name=told(name), arguments=_arguments(_given_to(call)), id=_text(identity))
    function = _field(call, "function") or call
    return Call(
        name=told(_field(function, "name")), arguments=_arguments(_given_to(call)), id=_text(_field(call, "id"))
    )


def _arguments(given: object) -> str:
    return json.dumps(within(given), ensure_ascii=False, default=told) if isinstance(given, dict) else told(given)


def answer_in(result: object, depth: int = 0) -> str | None:
    """Return the answer in a call's result, None when there is none to be seen or it is yet to be read.

    Of structured output it is the answer's field, see `answer_field`, and else the whole as JSON.

    Example:
        >>> answer_in(Response("In Oslo."))
        'In Oslo.'
        >>> answer_in([]) is None
        True
    """
    if isinstance(result, str):
        return result
    if result is None or depth > _DEPTH or isinstance(result, StreamingAgentChatResponse):
        return None
    if isinstance(result, Response | AgentChatResponse):
        return result.response if isinstance(result.response, str) else None
    if isinstance(result, PydanticResponse):
        answer = answer_field(result.response)
        return object_text(result) if answer is None else answer
    if isinstance(result, ChatMessage):
        return result.content or ""
    if isinstance(result, ChatResponse):
        return result.message.content or ""
    if isinstance(result, CompletionResponse):
        return result.text
    return _answer_within(result, depth)


def _answer_within(result: object, depth: int) -> str | None:
    if isinstance(result, dict):
        parts = objects = [result.get(name) for name in ANSWER_FIELDS]
    elif _is_framework_s(result):
        parts = [getattr(result, name, None) for name in ("response", "result")]
        objects = [getattr(result, "structured_response", None)]
    else:
        return answer_field(result) if _is_object(result) else None
    said = next((text for part in parts if (text := answer_in(part, depth + 1)) is not None), None)
    if said:
        return said
    return next((text for part in objects if (text := structured_answer(part))), said)


def object_text(result: PydanticResponse) -> str:
    """Return the JSON of a response that is an object of the application's own, without the vectors in it."""
    return told(result if within(result.response) is result.response else result.response)


def structured_answer(value: object) -> str | None:
    """Return the answer of an application's own object, else its fields as JSON; None for anything else.

    Example:
        >>> structured_answer({"city": "Oslo"}), structured_answer(Response("In Oslo."))
        ('{"city": "Oslo"}', None)
    """
    if isinstance(value, type) or _is_framework_s(value):  # among these are streams
        return None
    if (isinstance(value, dict) or _is_object(value)) and (answer := answer_field(value)) is not None:
        return answer
    if isinstance(value, BaseModel):
        held: object = fields_of(value)
        if (bounded := within(held)) is held:
            return value.model_dump_json()
    elif is_dataclass(value):
        bounded = within({field.name: getattr(value, field.name) for field in fields(value)})
    else:
        bounded = within(value)
    if not isinstance(bounded, dict) or not bounded:
        return None
    return json.dumps(bounded, ensure_ascii=False, default=str, skipkeys=True)


def _is_object(value: object) -> bool:
    """Tell whether a value is an object of an application's own, with declared fields."""
    return (isinstance(value, BaseModel) or is_dataclass(value)) and not isinstance(value, type)


def _is_framework_s(value: object) -> bool:
    return type(value).__module__.startswith(("workflows", "llama_index"))


_MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "engine", "deployment_name")
_IN_PROCESS = ("mock", "fake", "llama_cpp", "llamacpp", "huggingface", "gpt4all", "optimum", "onnx")


def model_of(model: object) -> str:
    """Return a model's name: its ``model``, ``model_name`` and the like, else its metadata's, else its class.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> model_of(MockLLM())
        'MockLLM'
    """
    name = first_of(model, _MODEL_ATTRIBUTES)
    if isinstance(name, str) and name:
        return name
    name = getattr(getattr(model, "metadata", None), "model_name", None)
    return name if isinstance(name, str) and name not in {"", "unknown"} else type(model).__name__


def provider_of(owner: type) -> str | None:
    """Return the provider in words of the GenAI conventions, None for one that is not known.

    The package says it, ``llama_index.llms.openai`` or ``llama_index.embeddings.openai``, else the names of an
    application's own class and module.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> provider_of(MockLLM) is None
        True
    """
    for base in owner.__mro__:
        parts = base.__module__.split(".")
        if parts[0] == "llama_index" and len(parts) > 2 and parts[1] in {"llms", "embeddings"}:
            return provider_named(parts[2])
    return provider_in(*(f"{base.__module__} {base.__name__}" for base in owner.__mro__))


def is_in_process(owner: type) -> bool:
    """Tell whether a model runs inside the application's process, as far as its class says.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> is_in_process(MockLLM)
        True
    """
    names = [f"{base.__module__}.{base.__name__}".lower() for base in owner.__mro__]
    return any(word in name and "api" not in name for name in names for word in _IN_PROCESS)


def asked_of(bound: BoundArguments) -> object:
    """Return what a model was called with: the prompt or the messages, as the application gave it."""
    return argument(bound, "messages", "prompt")


def messages_in(asked: object) -> list[ChatMessage]:
    """Return the messages that a model was called with; none of one that was given a prompt.

    Example:
        >>> messages_in("Where?"), len(messages_in([ChatMessage("Where?"), None]))
        ([], 1)
    """
    is_listed = not isinstance(asked, str) and hasattr(asked, "__len__") and hasattr(asked, "__iter__")
    messages: Iterable[Any] = islice(asked, _MOST_TURNS) if is_listed else ()  # type: ignore[call-overload]
    return [one for one in messages if isinstance(one, ChatMessage)]


def with_pictures(message: ChatMessage) -> Message:
    """Return a message with the keys of its pictures, a line each: before its text, or behind it.

    Example:
        >>> with_pictures(ChatMessage("Where?"))
        Message(role='user', content='Where?')
    """
    turn = turn_of(message)
    blocks: Sequence[object] = getattr(message, "blocks", ())
    pictures = [block for block in blocks if getattr(block, "block_type", None) == "image"]
    lines = [f"[image {key}]" for block in pictures if (key := picture_in(block)) is not None]
    if not lines:
        return turn
    parts = [*lines, turn.content] if blocks[0] is pictures[0] else [turn.content, *lines]
    return replace(turn, content="\n".join(filter(None, parts)))


def reply_in(response: object) -> Message | None:
    """Return what a model said, None for a response without a text.

    Example:
        >>> from llama_index.core.base.llms.types import CompletionResponse
        >>> reply_in(CompletionResponse(text="In Oslo."))
        Message(role='assistant', content='In Oslo.')
    """
    if isinstance(response, ChatResponse):
        return turn_of(response.message)
    text = getattr(response, "text", None)
    return Message(role="assistant", content=text) if isinstance(text, str) else None


class ReplyFacts(NamedTuple):
    """The provider's facts of a reply, as they were when the call ended."""

    raw: object
    additional_kwargs: object
    calls: tuple[object, ...] = ()  # what it gave to the tools that it called


def facts_of(response: object) -> ReplyFacts:
    """Return what a response holds beside its text, in shallow copies.

    Example:
        >>> facts_of(CompletionResponse(text="In Oslo.", raw={"id": "r-7"}))
        ReplyFacts(raw={'id': 'r-7'}, additional_kwargs={}, calls=())
    """
    raw, more = getattr(response, "raw", None), getattr(response, "additional_kwargs", None)
    return ReplyFacts(
        raw.copy() if isinstance(raw, dict) else raw,
        more.copy() if isinstance(more, dict) else more,
        tuple(_called_with(response.message)) if isinstance(response, ChatResponse) else (),
    )


def is_call(text: str) -> bool:
    r"""Tell whether an agent's reply calls a tool in its text, as ReAct and CodeAct agents do.

    Example:
        >>> is_call("Thought: I need a tool.\nAction: search\nAction Input: {}"), is_call("In Oslo.")
        (True, False)
    """
    return _CALL.search(text) is not None


def usage_in(response: object) -> Usage | None:
    """Return the tokens of a call: out of the provider's raw response, else of ``additional_kwargs``.

    Example:
        >>> from llama_index.core.base.llms.types import CompletionResponse
        >>> raw = {"usage": {"prompt_tokens": 3, "completion_tokens": 1}}
        >>> usage_in(CompletionResponse(text="", raw=raw)).input_tokens
        3
    """
    raw = getattr(response, "raw", None)
    found = None
    if raw is not None:
        found = read_usage(_field(raw, "usage")) or read_usage(_field(raw, "usage_metadata")) or read_usage(raw)
    return found or read_usage(getattr(response, "additional_kwargs", None))


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


_REASON_KEYS = ("stop_reason", "finish_reason", "stopReason", "done_reason")


def facts_in(response: object) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return the model that answered, the response's id, and why it stopped, as far as the raw response says.

    Example:
        >>> from llama_index.core.base.llms.types import CompletionResponse
        >>> facts_in(CompletionResponse(text="", raw={"model": "m-1", "id": "r-7", "stop_reason": "end_turn"}))
        ('m-1', 'r-7', ('end_turn',))
    """
    raw = getattr(response, "raw", None)
    if raw is None:
        return None, None, ()
    lists = (_field(raw, name) for name in ("choices", "candidates"))
    choices = next((one for one in lists if isinstance(one, list) and one), [])
    reasons = [_field(choice, "finish_reason") for choice in choices[:_MOST_CHOICES]]
    reasons = reasons or [_field(raw, name) for name in _REASON_KEYS]
    return (
        _text(_field(raw, "model")),
        _text(_field(raw, "id")),
        tuple(reason for reason in reasons if isinstance(reason, str)),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
