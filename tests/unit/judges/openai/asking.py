"""Requests of a judge's client to a server, and a limiter that keeps what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.judges import OpenAIChat, RetryPolicy
from ragtrace.scoring import Caps, JudgeLimiter, Prices
from tests.guards.judge_server import Answer, JudgeServer, completion

if TYPE_CHECKING:
    from pathlib import Path

    from ragtrace.judges import AttemptResult, ChatModel, ChatReply, JudgeRequest, Permit
    from tests.unit.scoring.limits.clocks import HandClock

GOOD = Answer(200, completion({"a": 1}))  # 120 prompt tokens, 7 of the reply
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
KEY = "sk-test-5f0c9d1e"
QUICK = RetryPolicy(backoff_s=0.001)
ONCE = RetryPolicy(attempts=1)


class Counting:
    """A real limiter, and what it was told of each attempt."""

    def __init__(self, limiter: JudgeLimiter) -> None:
        self.limiter = limiter
        self.needs: list[JudgeRequest] = []
        self.results: list[AttemptResult] = []

    async def acquire(self, request: JudgeRequest) -> Permit:
        passed = await self.limiter.acquire(request)
        self.needs.append(request)
        outer = self

        class Told:
            def release(self, result: AttemptResult) -> None:
                outer.results.append(result)
                passed.release(result)

        return Told()


def limiter_of(path: Path | None = None, clock: HandClock | None = None, **caps: float) -> JudgeLimiter:
    """Make a limiter that bounds what `caps` name; with a clock of the test it waits for nothing."""
    off = dict.fromkeys(("usd_per_day", "tokens_per_day", "requests_per_minute", "tokens_per_minute"))
    own = Prices(input_usd_per_million=1.0, output_usd_per_million=1.0)
    turned: dict[str, Any] = {"clock": clock, "sleep": clock.sleep} if clock is not None else {}
    return JudgeLimiter(host="judge", caps=Caps(**{**off, **caps}), path=path, prices=own, **turned)


def chat_of(server: JudgeServer | str, limiter: Any = None, model: str = "m", **settings: Any) -> OpenAIChat:
    url = server if isinstance(server, str) else server.url
    settings = {"api_key": KEY, "timeout_s": 5.0, "retry": QUICK} | settings
    return OpenAIChat(model, base_url=url, limiter=limiter, **settings)


async def ask(model: ChatModel) -> ChatReply:
    return await model.complete(
        system="S", user="U", schema_name="audit", schema=SCHEMA, max_output_tokens=50, temperature=0.0
    )
