"""Puts a limiter before any chat model that has none of its own."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragtrace.errors import JudgeError, JudgeFiltered, JudgeRateLimited, JudgeUnavailable
from ragtrace.judges.limiter import AttemptResult, Request, counted, result_of
from ragtrace.judges.llm.chat import SeededModel
from ragtrace.judges.openai.patience import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.judges.limiter import RateLimiter, Tokens
    from ragtrace.judges.llm.chat import ChatModel, ChatReply
    from ragtrace.model import JudgeUsage


class LimitedChat:
    """A chat model whose every attempt passes a limiter; a `ragtrace.judges.llm.chat.ChatModel` itself.

    It repeats what may pass by itself, so the model should make one attempt a call.
    `ragtrace.judges.openai.client.OpenAIChat` takes a limiter as an argument, which then sees probes and attempts
    one by one; wrap other models alone.

    Args:
        model: who is asked.
        limiter: what each attempt passes.
        patience: how often, and how long in between.

    Example:
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.scoring.limits import Caps, JudgeLimiter
        >>> model = LimitedChat(ScriptedChat(always={"a": 1}), JudgeLimiter(host="here", caps=Caps()))
        >>> ask = model.complete(
        ...     system="", user="?", schema_name="s", schema={}, max_output_tokens=9, temperature=0.0
        ... )
        >>> asyncio.run(ask).text
        '{"a": 1}'
    """

    def __init__(self, model: ChatModel, limiter: RateLimiter, *, patience: RetryPolicy | None = None) -> None:
        self.name = model.name
        self._model = model
        self._limiter = limiter
        self._patience = patience or RetryPolicy()

    async def complete(
        self,
        *,
        system: str,
        user: str,
        schema_name: str,
        schema: Mapping[str, Any],
        max_output_tokens: int,
        temperature: float,
    ) -> ChatReply:
        """Return the model's reply to one prompt.

        Raises:
            ragtrace.errors.JudgeError: the limiter is closed, or the model's last error.
        """
        asked: dict[str, Any] = {
            "system": system,
            "user": user,
            "schema_name": schema_name,
            "schema": schema,
            "max_output_tokens": max_output_tokens,
            "temperature": temperature,
        }
        size = len(json.dumps(asked, default=str, ensure_ascii=False).encode(errors="replace"))
        request = Request(model=self.name, request_bytes=size, max_output_tokens=max_output_tokens)
        attempt = 0
        while True:
            attempt += 1
            outcome = await self._attempt(request, asked)
            if not isinstance(outcome, JudgeError):
                return outcome
            wait_s = self._patience.wait_s(attempt, outcome.retry_after_s)
            if wait_s is None or not _may_repeat(outcome):
                raise outcome
            await asyncio.sleep(wait_s)

    def with_seed(self, seed: int) -> LimitedChat:
        """Return the same behind the same limiter, sending this seed where its model has one."""
        model = self._model
        seeded = model.with_seed(seed) if isinstance(model, SeededModel) else model
        return LimitedChat(seeded, self._limiter, patience=self._patience)

    def fingerprint(self) -> str:
        """Return the model's own."""
        return self._model.fingerprint()

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def _attempt(self, request: Request, asked: dict[str, Any]) -> ChatReply | JudgeError:
        passed = await self._limiter.acquire(request)
        result = AttemptResult(fate="abandoned")
        try:
            reply = await self._model.complete(**asked)
        except JudgeError as error:
            if error.usage is not None:
                tokens = _tokens_of(error.usage, request, 0)
                error.usage = replace(
                    error.usage, input_tokens=tokens.prompt or 0, output_tokens=tokens.completion or 0
                )
            result = result_of(error)
            return error
        except Exception:
            result = AttemptResult(fate="failed")
            raise
        else:
            size = len(reply.text.encode(errors="replace"))
            tokens = _tokens_of(reply, request, size)
            is_counted = tokens.prompt or tokens.completion
            result = AttemptResult(
                fate="answered",
                input_tokens=tokens.prompt if is_counted else None,
                output_tokens=tokens.completion if is_counted else None,
                reply_bytes=size,
            )
            return replace(reply, input_tokens=tokens.prompt or 0, output_tokens=tokens.completion or 0)
        finally:
            passed.release(result)


def _tokens_of(said: ChatReply | JudgeUsage, request: Request, size: int) -> Tokens:
    usage = {"prompt_tokens": said.input_tokens, "completion_tokens": said.output_tokens}
    return counted(usage, request, size)


def _may_repeat(error: JudgeError) -> bool:
    if isinstance(error, JudgeRateLimited):
        return True
    return (
        isinstance(error, JudgeUnavailable)
        and not isinstance(error, JudgeFiltered)
        and result_of(error).fate == "failed"
    )
