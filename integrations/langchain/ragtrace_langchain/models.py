"""Reads model calls out of LangChain events: which model, whose, what it said and what that took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrace.capture import provider_in, provider_named, read_usage
from ragtrace.model import Message
from ragtrace_langchain.extract import content_text, turn_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.outputs import LLMResult

    from ragtrace.model import Usage

_MODEL_KEYS = ("model", "model_name", "model_id", "deployment_name", "azure_deployment", "repo_id")
_IN_PROCESS = ("fake", "llamacpp", "huggingface_pipeline", "huggingfacepipeline", "gpt4all", "ctransformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What the start of a model call says of the model."""

    model: str | None
    provider: str | None
    is_in_process: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a call says at its end: `text` of the first choice, and what it `called` its first tool with."""

    text: str = ""
    called: Mapping[str, Any] | None = None
    outputs: tuple[Message, ...] = ()
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    response_model: str | None = None
    response_id: str | None = None


def model_facts(
    serialized: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    invocation: Mapping[str, Any] | None,
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
    return ModelFacts(
        model=model or name or None,
        provider=provider_named(provider) if provider else provider_in(name, *_path(serialized)),
        is_in_process=any(word in kind for word in _IN_PROCESS),
    )


def _path(serialized: Mapping[str, Any] | None) -> list[str]:
    """Return module and class of a serialized model."""
    path = (serialized or {}).get("id")
    return [part for part in path if isinstance(part, str)] if isinstance(path, list) else []


def _model_in(settings: Any) -> str | None:
    if not isinstance(settings, dict):
        return None
    return next((name for key in _MODEL_KEYS if (name := _text(settings.get(key)))), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def reply_of(response: LLMResult | None) -> Reply:
    """Return outputs, usage and finish reasons of a finished call; an empty `Reply` for None.

    Usage comes from the messages (``usage_metadata``), else from ``llm_output``.

    Example:
        >>> from langchain_core.outputs import Generation, LLMResult
        >>> reply_of(LLMResult(generations=[[Generation(text="In Oslo.")]])).text
        'In Oslo.'
    """
    generations = getattr(response, "generations", None)
    choices = [choice for choice in (generations or [[]])[0] if choice is not None]
    messages = [getattr(choice, "message", None) for choice in choices]
    outputs = tuple(_said(choice, message) for choice, message in zip(choices, messages, strict=True))
    facts = [_facts(choice, message) for choice, message in zip(choices, messages, strict=True)]
    whole = getattr(response, "llm_output", None) or {}
    first = facts[0] if facts else {}
    reasons = (fact.get("finish_reason") or fact.get("stop_reason") or fact.get("done_reason") for fact in facts)
    return Reply(
        text=_text_of(choices[0], messages[0]) if choices else "",
        called=_called(messages[0]) if messages else None,
        outputs=outputs,
        usage=next((u for m in messages if (u := read_usage(getattr(m, "usage_metadata", None)))), None)
        or read_usage(whole.get("token_usage") or whole.get("usage")),
        finish_reasons=tuple(reason for reason in reasons if isinstance(reason, str)),
        response_model=_text(first.get("model_name"))
        or _text(first.get("model"))
        or _text(whole.get("model_name")),
        response_id=_text(first.get("id")) or _provider_id(messages) or _text(whole.get("id")),
    )


def _said(choice: Any, message: Any) -> Message:
    turn = turn_of(message)
    return turn if turn is not None else Message(role="assistant", content=_text_of(choice, None))


def _text_of(choice: Any, message: Any) -> str:
    return content_text(message.content if message is not None else getattr(choice, "text", None))


def _called(message: Any) -> Mapping[str, Any] | None:
    calls = getattr(message, "tool_calls", None)
    return calls[0]["args"] if calls else None


def _facts(choice: Any, message: Any) -> dict[str, Any]:
    noted = getattr(choice, "generation_info", None) or {}
    return {**noted, **(getattr(message, "response_metadata", None) or {})}


def _provider_id(messages: list[Any]) -> str | None:
    name = _text(getattr(messages[0], "id", None)) if messages else None
    # LangChain makes up an id of its own run where the provider gave none.
    return None if name is None or name.startswith(("lc_", "run-")) else name
