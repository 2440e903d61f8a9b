"""Token counts under the names of frameworks and providers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ragtrace.capture import provider_in, read_usage
from ragtrace.model import Usage, added_usage

WITH_CACHE = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=60, cache_write_tokens=30)
WITH_REASONING = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=60, reasoning_tokens=12)


def nested(**groups: Any) -> SimpleNamespace:
    """Return the same as objects, as the providers' clients give it."""
    return SimpleNamespace(
        **{name: SimpleNamespace(**v) if isinstance(v, dict) else v for name, v in groups.items()}
    )


OPENAI_CHAT = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 12},
}
ANTHROPIC = {
    "input_tokens": 10,
    "output_tokens": 20,
    "cache_read_input_tokens": 60,
    "cache_creation_input_tokens": 30,
}


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 20,
                "total_tokens": 120,
                "input_token_details": {"cache_read": 60, "cache_creation": 30},
            },
            WITH_CACHE,
            id="langchain",
        ),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 20,
                "input_token_details": {
                    "cache_read": 60,
                    "cache_creation": 0,
                    "ephemeral_5m_input_tokens": 20,
                    "ephemeral_1h_input_tokens": 10,
                },
            },
            WITH_CACHE,
            id="langchain-anthropic-by-lifetime",
        ),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 20,
                "input_token_details": {"cache_read": 60},
                "output_token_details": {"reasoning": 12},
            },
            WITH_REASONING,
            id="langchain-reasoning",
        ),
        pytest.param(OPENAI_CHAT, WITH_REASONING, id="openai-chat"),
        pytest.param(nested(**OPENAI_CHAT), WITH_REASONING, id="openai-chat-object"),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 60},
                "output_tokens_details": {"reasoning_tokens": 12},
            },
            WITH_REASONING,
            id="openai-responses",
        ),
        pytest.param(ANTHROPIC, WITH_CACHE, id="anthropic"),
        pytest.param(nested(**ANTHROPIC), WITH_CACHE, id="anthropic-object"),
        pytest.param(
            {"inputTokens": 10, "outputTokens": 20, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 30},
            WITH_CACHE,
            id="bedrock",
        ),
        pytest.param(
            {
                "prompt_token_count": 100,
                "candidates_token_count": 8,
                "thoughts_token_count": 12,
                "cached_content_token_count": 60,
            },
            WITH_REASONING,
            id="gemini",
        ),
        pytest.param(
            {"prompt_eval_count": 3, "eval_count": 1}, Usage(input_tokens=3, output_tokens=1), id="ollama"
        ),
        pytest.param({"output_tokens": 1}, Usage(output_tokens=1), id="output alone"),
        pytest.param({"input_tokens": True, "output_tokens": "7"}, None, id="no counts"),
        pytest.param({"total_tokens": 9}, None, id="a total alone"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_usage_is_read(counts: Any, usage: Usage | None) -> None:
    assert read_usage(counts) == usage


def test_usages_add_up_by_kind() -> None:
    assert added_usage(WITH_CACHE, WITH_REASONING) == Usage(
        input_tokens=200, output_tokens=40, cache_read_tokens=120, cache_write_tokens=30, reasoning_tokens=12
    )


@pytest.mark.parametrize(
    ("names", "provider"),
    [
        (("ChatOpenAI", "langchain_openai.chat_models.base"), "openai"),
        (("AzureChatOpenAI", "langchain_openai"), "azure.ai.openai"),
        (("CompanyBedrockModel", "shop.llm"), "aws.bedrock"),
        (("ChatGoogleGenerativeAI",), "gcp.gen_ai"),
        (("MyModel", "shop.llm"), None),
        ((), None),
    ],
)
def test_a_provider_is_read_from_the_names_of_a_class(names: tuple[str, ...], provider: str | None) -> None:
    assert provider_in(*names) == provider
