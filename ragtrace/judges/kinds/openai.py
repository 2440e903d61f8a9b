"""Models of any OpenAI-compatible server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from ragtrace.judges.kinds import JudgeParameters
    from ragtrace.judges.llm.judge import LLMJudge
    from ragtrace.judges.openai.client import OpenAIEmbedder


def judge(model: str, options: JudgeParameters) -> LLMJudge:
    """Return the judge of a model. Raises ConfigError without a model, or without key and base URL."""
    _check("judge", model, options)
    from ragtrace.judges.llm.judge import LLMJudge  # noqa: PLC0415 -- only the chosen judge is loaded
    from ragtrace.judges.openai.client import OpenAIChat  # noqa: PLC0415

    chat = OpenAIChat(
        model,
        base_url=options.base_url,
        api_key=options.api_key,
        timeout_s=options.timeout_s,
        limiter=options.limiter,
    )
    return LLMJudge(
        chat,
        batch_size=options.grade_batch,
        scale=options.grading,
        grade_cache=options.grade_cache,
    )


def embedder(model: str, options: JudgeParameters) -> OpenAIEmbedder:
    """Return the embedder of a model; raises ConfigError as `judge` does."""
    _check("embedder", model, options)
    from ragtrace.judges.openai.client import OpenAIEmbedder  # noqa: PLC0415 -- only the chosen one is loaded

    return OpenAIEmbedder(
        model,
        base_url=options.base_url,
        api_key=options.api_key,
        timeout_s=options.timeout_s,
        limiter=options.limiter,
    )


def _check(kind: str, model: str, options: JudgeParameters) -> None:
    if not model:
        raise ConfigError(f"{kind} 'openai' needs a model: write openai:MODEL, for example openai:gpt-4o-mini")
    if not (options.api_key or "").strip() and not options.base_url:
        raise ConfigError(f"openai:{model}: set OPENAI_API_KEY, or a base URL of a server without keys")
