"""Read token counts and the provider of a model call, by the names that frameworks use."""

from __future__ import annotations

from dataclasses import fields, replace

from ragtrace.capture.sanitize import clean_count
from ragtrace.model import Usage

# These providers count cached tokens apart from the input; every other name includes them.
_INPUT_WITHOUT_CACHE = ("input_tokens", "inputTokens")
_INPUT = (*_INPUT_WITHOUT_CACHE, "prompt_tokens", "prompt_token_count", "prompt_eval_count")
_OUTPUT = (
    "output_tokens", "outputTokens", "completion_tokens", "candidates_token_count", "eval_count",
)  # fmt: skip
_CACHE_READ = ("cache_read_input_tokens", "cacheReadInputTokens")
_CACHE_WRITE = ("cache_creation_input_tokens", "cacheWriteInputTokens")
_INPUT_DETAILS = ("input_token_details", "input_tokens_details", "prompt_tokens_details")
_OUTPUT_DETAILS = ("output_token_details", "output_tokens_details", "completion_tokens_details")
_EPHEMERAL = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_THOUGHTS = "thoughts_token_count"
_CACHED = "cached_content_token_count"
# A mapping with none of these tells input and output alone, as most do.
_PARTS = frozenset({*_CACHE_READ, *_CACHE_WRITE, *_INPUT_DETAILS, *_OUTPUT_DETAILS, _THOUGHTS, _CACHED})
_CONVENTIONAL = {  # what frameworks call otherwise
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "xai": "x_ai",
}
_IN_NAMES = {  # a word in the name of a class or module, the more particular first
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "vertex": "gcp.vertex_ai",
    "gemini": "gcp.gemini",
    "google": "gcp.gen_ai",
    "watsonx": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "anthropic": "anthropic",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "groq": "groq",
    "perplexity": "perplexity",
    "openai": "openai",
    "ollama": "ollama",
    "huggingface": "huggingface",
}


def read_usage(counts: object) -> Usage | None:
    """Return the tokens of a mapping or object; None where it holds neither input nor output.

    LangChain's ``usage_metadata``, the raw usage of OpenAI (both APIs), Anthropic, Bedrock and Gemini, and
    Ollama's counters are read. Input includes cached tokens, and output includes reasoning.

    Example:
        >>> found = read_usage({"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 90})
        >>> found.input_tokens, found.cache_read_tokens
        (95, 90)
    """
    if counts is None:
        return None
    sent, written = _first(counts, _INPUT), _first(counts, _OUTPUT)
    if sent is None and written is None:
        return None
    if isinstance(counts, dict) and _PARTS.isdisjoint(counts):
        return Usage(input_tokens=sent, output_tokens=written)
    read, stored = _first(counts, _CACHE_READ), _first(counts, _CACHE_WRITE)
    if sent is not None and _first(counts, _INPUT_WITHOUT_CACHE) is not None:
        sent += (read or 0) + (stored or 0)
    thoughts = _first(counts, (_THOUGHTS,))
    return Usage(
        input_tokens=sent,
        output_tokens=written if written is None or thoughts is None else written + thoughts,
        cache_read_tokens=_known(read, _cached(counts)),
        cache_write_tokens=_known(stored, _stored(counts)),
        reasoning_tokens=_known(thoughts, _detail(counts, _OUTPUT_DETAILS, ("reasoning", "reasoning_tokens"))),
    )


def clean_usage(usage: Usage | None) -> Usage | None:
    """Return tokens without the counts that are none: a provider's reply may hold any number.

    Example:
        >>> clean_usage(Usage(input_tokens=3, output_tokens=10**5000)) == Usage(input_tokens=3)
        True
    """
    if usage is None:
        return None
    given = {field.name: getattr(usage, field.name) for field in fields(Usage)}
    wrong = {name: None for name, n in given.items() if n is not None and clean_count(n) is None}
    return replace(usage, **wrong) if wrong else usage


def _cached(counts: object) -> int | None:
    found = _detail(counts, _INPUT_DETAILS, ("cache_read", "cached_tokens"))
    return _known(found, _first(counts, (_CACHED,)))


def _stored(counts: object) -> int | None:
    """Return the tokens written to a cache; LangChain gives Anthropic's by their lifetime, and then no total."""
    total = _detail(counts, _INPUT_DETAILS, ("cache_creation",))
    parts = [part for name in _EPHEMERAL if (part := _detail(counts, _INPUT_DETAILS, (name,))) is not None]
    return max(total or 0, sum(parts)) if parts else total


def _known(one: int | None, other: int | None) -> int | None:
    return other if one is None else one


def _detail(counts: object, groups: tuple[str, ...], names: tuple[str, ...]) -> int | None:
    group = next((found for name in groups if (found := _field(counts, name)) is not None), None)
    return None if group is None else _first(group, names)


def _first(counts: object, names: tuple[str, ...]) -> int | None:
    for name in names:
        value = counts.get(name) if isinstance(counts, dict) else getattr(counts, name, None)
        if type(value) is int and (count := clean_count(value)) is not None:
            return count
    return None


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def provider_named(name: str) -> str:
    """Return the conventional name of a provider that a framework names; one that is not known as it is.

    Example:
        >>> provider_named("azure_openai"), provider_named("openai")
        ('azure.ai.openai', 'openai')
    """
    return _CONVENTIONAL.get(name, name)


def provider_in(*names: str) -> str | None:
    """Return the provider that the names of a class and its module hold; None where they hold none.

    Example:
        >>> provider_in("MyAzureOpenAI", "shop.models"), provider_in("MockLLM")
        ('azure.ai.openai', None)
    """
    text = " ".join(names).lower()
    return next((provider for word, provider in _IN_NAMES.items() if word in text), None)
