"""Sends requests to an OpenAI-compatible server: attempts, waits, and every way to fail as a judge error.

Nothing here raises inside an ``except`` block: an error chained to the client's own would carry the request's
headers, and with them the key.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Any, Literal

from ragtrace.errors import (
    ConfigError,
    JudgeError,
    JudgeFiltered,
    JudgeInvalidOutput,
    JudgeRateLimited,
    JudgeTimeout,
    JudgeUnavailable,
    MissingExtra,
)
from ragtrace.judges.limiter import AttemptResult, Request, Tokens, counted, result_of
from ragtrace.judges.openai.addresses import JudgeAddress
from ragtrace.judges.openai.patience import RetryPolicy
from ragtrace.judges.quiet import uninstrumented
from ragtrace.model import JudgeUsage
from ragtrace.settings import shown_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import APIStatusError, AsyncOpenAI

    from ragtrace.judges.limiter import RateLimiter

DEFAULT_BASE_URL = "https://api.openai.com/v1"
Endpoint = Literal["chat", "embeddings"]
_REPEATABLE = frozenset({408, 409, 429})
_MOST_VALUES = 300_000  # in JSON; one takes 64 bytes of memory, and of an answer of 1 MB some 500,000 could be made
_MOST_HEADER = 64
_MOST_RETRY_AFTER_S = 86_400.0
# Modules of the client's HTTP layers: their errors while a body is read are broken connections.
_NETWORK = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "anyio", "h11", "h2", "ssl"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A failed attempt.

    Attributes:
        error: what to raise when nobody can help; carries ``status`` and ``retry_after_s`` where known.
        may_repeat: whether the same request may succeed later.
        complaint: what the server said, for `ragtrace.judges.openai.negotiate`.
        param: the parameter that it named.
        is_quota: whether the account's money is at its end, which no wait mends.
    """

    error: JudgeError
    status: int | None = None
    may_repeat: bool = False
    retry_after_s: float | None = None
    complaint: str = ""
    param: str | None = None
    is_quota: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply that may be read.

    Attributes:
        body: its JSON object; of the endpoint ``chat`` its first choice has a message.
        tokens: what the call result, as far as the server counted it.
        size: bytes that the model may have written; 0 for embeddings.
    """

    body: dict[str, Any]
    tokens: Tokens
    size: int


_MOST_LOOPS = 16  # whose clients are kept; a program that makes and drops more connects anew


class Transport:
    """One server: a client of each event loop, made at first use, and the attempts of a request.

    Args:
        base_url: where the server is; OpenAI's when None. A login in it is sent instead of the key.
        api_key: its key; None sends a placeholder, for servers that need none.
        timeout_s: limit of one attempt in all, not of one read.
        max_bytes: a longer answer is not read to its end.
        attempts: tries of one request; 408, 409, 429, 5xx and broken connections are tried again.
        backoff_s: the first wait is uniform in [0, backoff_s], the second in twice that.
        retry_after_max_s: a server that asks for a longer wait is given up.
        limiter: what every attempt passes; None lets all pass.

    Raises:
        MissingExtra: the package openai is not installed.
        ConfigError: the address is none, or the key holds a character that no header may hold.
    """

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout_s: float,
        max_bytes: int,
        attempts: int = 3,
        backoff_s: float = 1.0,
        retry_after_max_s: float = 60.0,
        limiter: RateLimiter | None = None,
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise MissingExtra("openai", "openai")
        try:
            self._address = JudgeAddress.of(base_url or DEFAULT_BASE_URL)
        except ValueError:
            raise ConfigError("judge_base_url has no valid host and port") from None
        self.base_url = self._address.url
        self.where = shown_address(base_url or DEFAULT_BASE_URL).rstrip("/")
        self.requests_sent = 0
        self._api_key = (api_key or "").strip()
        if not self._api_key.isascii() or not self._api_key.isprintable():
            raise ConfigError("the judge's API key holds a character that cannot be sent: set it again")
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._patience = RetryPolicy(attempts=attempts, backoff_s=backoff_s, retry_after_max_s=retry_after_max_s)
        self._limiter = limiter
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}

    async def post(self, endpoint: Endpoint, body: Mapping[str, Any]) -> Answer | Fault:
        """Return the server's answer, or the last fault; raises nothing but a cancellation.

        Args:
            endpoint: which resource.
            body: the request.
        """
        request = _request_of(body)
        attempt = 0
        with uninstrumented():
            while True:
                attempt += 1
                outcome = await self._admitted(endpoint, body, request)
                if not isinstance(outcome, Fault) or not outcome.may_repeat:
                    return outcome
                wait_s = self._patience.wait_s(attempt, outcome.retry_after_s)
                if wait_s is None:
                    return outcome
                await asyncio.sleep(wait_s)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        self._drop_left()
        if client is not None:
            await client.close()

    async def _admitted(self, endpoint: Endpoint, body: Mapping[str, Any], request: Request) -> Answer | Fault:
        """Make one attempt, through the limiter."""
        if self._limiter is None:
            return await self._attempt(endpoint, body, request)
        try:
            passed = await self._limiter.acquire(request)
        except JudgeError as error:
            return Fault(error=error)
        result = AttemptResult(fate="abandoned")
        try:
            outcome = await self._attempt(endpoint, body, request)
            result = _took_of(outcome)
        finally:
            passed.release(result)
        return outcome

    def _connected(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            from ragtrace.judges.openai.http_client import client_of  # noqa: PLC0415 -- 0.6 s and 59 MB, paid at the first call

            self._drop_left()
            client = self._clients[loop] = client_of(
                self._address, self._api_key or "none", timeout_s=self._timeout_s, max_bytes=self._max_bytes
            )
        return client

    def _drop_left(self) -> None:
        """Let go of the clients of loops that are closed, and of the oldest ones when there are too many."""
        loops = list(self._clients)
        for number, loop in enumerate(loops):
            if loop.is_closed() or number <= len(loops) - _MOST_LOOPS:
                self._clients.pop(loop, None)

    async def _attempt(self, endpoint: Endpoint, body: Mapping[str, Any], request: Request) -> Answer | Fault:
        self.requests_sent += 1
        raw = bytearray()
        try:
            client = self._connected()
            resource: Any = client.chat.completions if endpoint == "chat" else client.embeddings
            async with (
                asyncio.timeout(self._timeout_s),
                resource.with_streaming_response.create(**body) as response,
            ):
                async for chunk in response.iter_bytes():
                    raw += chunk
        except Exception as error:
            return self._fault_of(error)
        if len(raw) > self._max_bytes:
            return self._fault(JudgeInvalidOutput, f"the answer is larger than {self._max_bytes} bytes")
        if sum(map(raw.count, b",[{")) > _MOST_VALUES:
            return self._fault(JudgeInvalidOutput, f"the answer holds more than {_MOST_VALUES} values")
        return self._answer(endpoint, request, raw)

    def _answer(self, endpoint: Endpoint, request: Request, raw: bytearray) -> Answer | Fault:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            return self._fault(JudgeUnavailable, f"{self.where} answered without a JSON object: check the base URL")
        if value.get("error"):
            said = self._said(value["error"])
            return self._fault(JudgeUnavailable, f"{self.where} answered 200 with an error{said}")
        size = len(raw) if endpoint == "chat" else 0
        tokens = counted(value.get("usage"), request, size)
        if endpoint == "chat" and not _has_message(value):
            fault = self._fault(JudgeUnavailable, f"{self.where} answered 200 without a message")
            fault.error.usage = spent_of(tokens)
            return fault
        return Answer(body=value, tokens=tokens, size=size)

    def _fault(self, kind: type[JudgeError], message: str, **facts: Any) -> Fault:
        error = kind(message)
        error.status, error.retry_after_s = facts.get("status"), facts.get("retry_after_s")
        return Fault(error=error, **facts)

    def _fault_of(self, error: Exception) -> Fault:
        import openai  # noqa: PLC0415 -- loaded by now

        from ragtrace.judges.openai.http_client import UnusableReply  # noqa: PLC0415 -- the same

        for unusable in (error, error.__cause__):  # the oldest openai wraps it
            if isinstance(unusable, UnusableReply):
                status = None if 200 <= unusable.status < 300 else unusable.status
                return self._fault(JudgeUnavailable, f"{self.where} {self._hidden(str(unusable))}", status=status)
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            return self._fault(JudgeTimeout, f"{self.where} gave no reply within {self._timeout_s:g} s")
        if isinstance(error, openai.APIStatusError):
            return self._refusal(error)
        is_network = (
            isinstance(error, openai.APIConnectionError | OSError)
            or type(error).__module__.partition(".")[0] in _NETWORK
        )
        cause = type(error.__cause__ or error).__name__
        message = f"{self.where} cannot be reached or broke the connection ({cause})"
        return self._fault(JudgeUnavailable, message, may_repeat=is_network)

    def _refusal(self, error: APIStatusError) -> Fault:
        status = error.status_code
        body = error.body if isinstance(error.body, dict) else {}
        complaint = _dumped(error.body)[:4000]
        codes = (body.get("code"), body.get("type"))
        code = next((code for code in codes if isinstance(code, str) and code), "")
        facts: dict[str, Any] = {"status": status, "complaint": complaint}
        if status == 429 and "insufficient_quota" not in complaint:
            facts |= {"may_repeat": True, "retry_after_s": _retry_after_s(error.response.headers)}
            return self._fault(JudgeRateLimited, f"{self.where} limits the rate (429)", **facts)
        if status in _REPEATABLE or status >= 500:
            facts |= {
                "may_repeat": status != 429,
                "retry_after_s": _retry_after_s(error.response.headers),
                "is_quota": status == 429,
            }
        elif "content_filter" in code or "content_policy" in code:
            return self._fault(JudgeFiltered, f"{self.where} filtered the prompt ({status})", **facts)
        elif isinstance(body.get("param"), str):
            facts["param"] = body["param"]
        return self._fault(JudgeUnavailable, self._sentence(status, body), **facts)

    def _sentence(self, status: int, body: Mapping[str, Any]) -> str:
        if status == 401:
            return f"{self.where} refuses the API key (401): check judge_api_key or OPENAI_API_KEY"
        if status == 403:
            return f"{self.where} forbids this key to use this model (403)"
        if status == 404:
            return f"{self.where} has no such model or path (404): check the model's name and the base URL"
        return f"{self.where} answered {status}{self._said(body)}"

    def _said(self, body: object) -> str:
        """Return a short form of the server's own message, without the key; it may quote anything."""
        said = body.get("message") if isinstance(body, dict) else body
        if not isinstance(said, str) or not said.strip():
            return ""
        return f": {' '.join(_shown(self._hidden(said)).split())[:200]}"

    def _hidden(self, said: str) -> str:
        """Return what a server says without our secrets, which it knows."""
        for secret in filter(None, (self._api_key, *self._address.secrets)):
            said = said.replace(secret, "[key]")
        return said


def _shown(said: str) -> str:
    """Return a server's text without what could steer a terminal or break an encoder."""
    return "".join(letter if letter.isprintable() else " " for letter in said[:2_000])


def _dumped(value: object) -> str:
    try:
        return "" if value is None else json.dumps(value)
    except RecursionError:
        return ""


def _request_of(body: Mapping[str, Any]) -> Request:
    """Return what a request may take; a body is some 10 kB, and 20 us to write."""
    limit = body.get("max_tokens", body.get("max_completion_tokens", 0))
    size = len(json.dumps(body, ensure_ascii=False).encode(errors="replace"))
    return Request(model=str(body.get("model", "")), request_bytes=size, max_output_tokens=limit)


def _has_message(answer: Mapping[str, Any]) -> bool:
    """Return whether a chat completion holds a message, or says why it has no text.

    A reply without one is the server's fault. A text that is empty or not of the asked form is the model's.
    """
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return False
    if isinstance(message.get("content"), str | list) or message.get("refusal") or message.get("tool_calls"):
        return True
    return choice.get("finish_reason") in ("length", "content_filter", "tool_calls")


def _took_of(outcome: Answer | Fault) -> AttemptResult:
    if isinstance(outcome, Fault):
        result = result_of(outcome.error, is_quota=outcome.is_quota)
        quotes_server = result.reason in {"402", "quota"}
        is_told = result.fate == "refused" and not quotes_server
        return replace(result, message=str(outcome.error)) if is_told else result
    prompt, completion = outcome.tokens
    return AttemptResult(fate="answered", input_tokens=prompt, output_tokens=completion, reply_bytes=outcome.size)


def spent_of(tokens: Tokens) -> JudgeUsage:
    """Return one call with what the server counted, 0 where it did not."""
    return JudgeUsage(llm_calls=1, input_tokens=tokens.prompt or 0, output_tokens=tokens.completion or 0)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait that a server asks for, a day at most; None when it asks for none, or for nonsense."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()[:_MOST_HEADER]
        if said.isascii() and said.replace(".", "", 1).isdecimal():
            return min(float(said) * unit_s, _MOST_RETRY_AFTER_S)
    try:
        at_s = parsedate_to_datetime(headers.get("retry-after", "")[:_MOST_HEADER]).timestamp()
    except Exception:  # of the standard library's parser, which raises more than it says
        return None
    return min(max(0.0, at_s - time()), _MOST_RETRY_AFTER_S)
