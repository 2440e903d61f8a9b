"""Reads model calls: which model, whose, what it was asked, what it said and what that took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatResponse

from ragtrace.capture import provider_in, provider_named, read_usage
from ragtrace.model import Message
from ragtrace_llamaindex.attributes import argument, first_of
from ragtrace_llamaindex.extract import turn_of, turns_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from inspect import BoundArguments

    from ragtrace.model import Usage

_MODEL_ATTRIBUTES = ("model", "model_name", "model_id", "engine", "deployment_name")
_IN_PROCESS = ("mock", "fake", "llama_cpp", "llamacpp", "huggingface", "gpt4all", "optimum", "onnx")


def model_of(model: Any) -> str:
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


def asked_of(bound: BoundArguments) -> Any:
    """Return what a model was called with: the prompt or the messages, as the application gave it."""
    return argument(bound, "messages", "prompt")


def messages_of(asked: Any) -> tuple[Message, ...]:
    """Return a prompt or messages as messages.

    Example:
        >>> messages_of("Where?")
        (Message(role='user', content='Where?'),)
    """
    if isinstance(asked, str):
        return (Message(role="user", content=asked),)
    return turns_in(asked if isinstance(asked, list | tuple) else _listed(asked))


def _listed(asked: Any) -> Sequence[Any]:
    return list(asked) if hasattr(asked, "__len__") and hasattr(asked, "__iter__") else ()


def reply_in(response: Any) -> Message | None:
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


def usage_in(response: Any) -> Usage | None:
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


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def facts_in(response: Any) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Return the model that answered, the response's id, and why it stopped, as far as the raw response says.

    Example:
        >>> from llama_index.core.base.llms.types import CompletionResponse
        >>> facts_in(CompletionResponse(text="", raw={"model": "m-1", "id": "r-7", "stop_reason": "end_turn"}))
        ('m-1', 'r-7', ('end_turn',))
    """
    raw = getattr(response, "raw", None)
    if raw is None:
        return None, None, ()
    choices = _field(raw, "choices")
    reasons = [_field(choice, "finish_reason") for choice in choices] if isinstance(choices, list) else []
    reasons = reasons or [_field(raw, "stop_reason"), _field(raw, "finish_reason"), _field(raw, "done_reason")]
    return (
        _text(_field(raw, "model")),
        _text(_field(raw, "id")),
        tuple(reason for reason in reasons if isinstance(reason, str)),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
