"""Attempts of requests to an OpenAI-compatible server.

The client's own retries are off. They stay inside one permit, so rates, budget and breaker would count one attempt
for three, and they repeat at once where a server asks for more than a minute. Nothing here raises inside an
``except`` block, since an error chained to the client's own carries the request's headers and with them the key.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import ssl
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from importlib import metadata
from importlib.util import find_spec
from itertools import count
from time import time
from typing import TYPE_CHECKING, Literal, Protocol

from ragtrace.address import shown_address
from ragtrace.capture.off_loop import off_loop
from ragtrace.capture.suppression import uninstrumented
from ragtrace.errors import (
    ConfigError,
    JudgeError,
    JudgeFiltered,
    JudgeInvalidOutput,
    JudgePromptTooLong,
    JudgeRateLimited,
    JudgeRefused,
    JudgeTimeout,
    JudgeUnavailable,
    MissingExtra,
)
from ragtrace.judges.limiter import JUDGED, AttemptResult, Fate, JudgeRequest, counted
from ragtrace.judges.openai.addresses import JudgeAddress
from ragtrace.judges.openai.complaints import AT_LIMIT, FILTERED, Complaint, complaint_in, complaint_of, end_of
from ragtrace.model import JudgeUsage, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from openai import AsyncOpenAI

    from ragtrace.judges.limiter import RateLimiter

OPENAI_RANGE = ">=2.0,<4"  # of the extra `openai` in pyproject.toml
DEFAULT_BASE_URL = "https://api.openai.com/v1"
Endpoint = Literal["chat", "embeddings"]
_REFUSALS = frozenset({401, 402, 403})
_MOST_VALUES = 300_000  # in JSON; one takes 64 bytes of memory, and of an answer of 1 MB some 500,000 could be made
_SAID = ("refusal", "tool_calls", "function_call")  # beside the content
_STOPPED = AT_LIMIT | FILTERED | {"tool_calls", "function_call"}
_MOST_HEADER = 64
_MOST_RETRY_AFTER_S = 86_400.0
# Modules below the client's HTTP package: their errors while a body is read are broken connections, as its own are.
_NETWORK = frozenset({"anyio", "h11", "h2", "ssl"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Waits between attempts, with full jitter.

    The wait after attempt n is uniform in [0, min(backoff_s * 2^(n - 1), 60 s)].

    Attributes:
        attempts: tries in all.
        backoff_s: bound of the first wait.
        retry_after_max_s: a server that asks for a longer wait is given up.

    Example:
        >>> retry = RetryPolicy(attempts=3)
        >>> retry.wait_s(1, retry_after_s=30.0), retry.wait_s(1, retry_after_s=61.0), retry.wait_s(3)
        (30.0, None, None)
    """

    attempts: int = 3
    backoff_s: float = 1.0
    retry_after_max_s: float = 60.0

    def wait_s(self, attempt: int, retry_after_s: float | None = None) -> float | None:
        """Return the seconds to wait after an attempt.

        Attempts count from 1; None says that it was the last.

        Args:
            attempt: number of the failed attempt.
            retry_after_s: the server's wish; never waited for less.
        """
        if attempt >= self.attempts:
            return None
        # 2^30 is beyond every bound; more would overflow a float after a thousand attempts.
        jitter_s = random.uniform(0.0, min(self.backoff_s * 2 ** min(attempt - 1, 30), 60.0))
        wait_s = max(jitter_s, retry_after_s or 0.0)
        return wait_s if wait_s <= self.retry_after_max_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A failed attempt. What the server said is in no traceback, since it may repeat the key.

    Attributes:
        error: the error to raise when no retry helps; carries ``status`` and ``retry_after_s`` where known.
        result: the attempt's end, for the limits.
        may_repeat: whether the same request may succeed later.
        complaint: what the server complained of, where another form of request may help.
        is_followed: whether the request goes on in another form.
    """

    error: JudgeError
    result: AttemptResult
    may_repeat: bool = False
    complaint: Complaint | None = field(default=None, repr=False)
    is_followed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply that may be read. It is in no traceback either.

    Attributes:
        body: its JSON object.
        result: the attempt's end, with tokens as far as the server counted them.
        message: of the endpoint ``chat``, the message of the first choice with its ``finish_reason``.
    """

    body: Mapping[str, object] = field(repr=False)
    result: AttemptResult
    message: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def usage(self) -> JudgeUsage:
        """One call with its tokens, 0 where nobody counted."""
        return _one_call(self.result.input_tokens, self.result.output_tokens)


class _Streamed(Protocol):
    @property
    def headers(self) -> Mapping[str, str]: ...

    def iter_bytes(self) -> AsyncIterator[bytes]: ...


class Transport:
    """One server, with a client for each event loop.

    Args:
        base_url: where the server is; OpenAI's when None. A login in it is sent instead of the key.
        api_key: its key; None sends a placeholder, for servers that need none.
        timeout_s: limit of one attempt in all, not of one read.
        max_bytes: a longer answer is not read to its end.
        retry: when to try again; 408, 409, 429, 5xx and broken connections are.
        limiter: asked before every attempt; None lets all pass.

    Raises:
        MissingExtra: the package openai is not installed.
        ConfigError: its release is another than 2 or 3, the address is none, or the key holds a character that no
            header may hold.
    """

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout_s: float,
        max_bytes: int,
        retry: RetryPolicy,
        limiter: RateLimiter | None = None,
    ) -> None:
        _check_openai()
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
        self._retry = retry
        self._limiter = limiter
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}

    async def post(
        self,
        endpoint: Endpoint,
        body: Mapping[str, object],
        *,
        max_output_tokens: int = 0,
        rejections_of: Callable[[Complaint], int] = lambda _: 1,
    ) -> Answer | Fault:
        """Return the server's answer, or the last fault. It raises nothing but a cancellation.

        Args:
            endpoint: which of the server's.
            body: the request.
            max_output_tokens: the reply's limit.
            rejections_of: told of a rejection, returns how many requests the caller has made in vain; 0 where
                another form follows.
        """
        size = len(json.dumps(body, ensure_ascii=False).encode(errors="replace"))  # 20 us for some 10 kB
        request = JudgeRequest(
            model=str(body.get("model", "")),
            request_bytes=size,
            max_output_tokens=max_output_tokens,
            unit=JUDGED.get(),
        )
        with uninstrumented():
            for attempt in count(1):
                outcome = await self._limited(endpoint, body, request, rejections_of)
                if isinstance(outcome, Answer) or not outcome.may_repeat:
                    break
                wait_s = self._retry.wait_s(attempt, outcome.error.retry_after_s)
                if wait_s is None:
                    break
                if self._limiter is None or not outcome.result.is_busy:  # else it holds the next permit back
                    await asyncio.sleep(wait_s)
        return outcome

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def _limited(
        self,
        endpoint: Endpoint,
        body: Mapping[str, object],
        request: JudgeRequest,
        rejections_of: Callable[[Complaint], int],
    ) -> Answer | Fault:
        permit, result = None, AttemptResult(fate="abandoned")
        if self._limiter is not None:
            try:
                permit = await self._limiter.acquire(request)
            except JudgeError as error:
                return Fault(error=error, result=result)
        try:
            outcome = await self._attempt(endpoint, body, request)
            if isinstance(outcome, Fault) and outcome.complaint is not None:
                result = replace(outcome.result, rejections=rejections_of(outcome.complaint))
                outcome = replace(outcome, result=result, is_followed=not result.rejections)
            result = outcome.result
        finally:
            if permit is not None:
                permit.release(result)
        return outcome

    def _connected(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for ended in [known for known in list(self._clients) if known.is_closed()]:
                self._clients.pop(ended, None)
            client = self._clients[loop] = self._client()
        return client

    @off_loop
    def _client(self) -> AsyncOpenAI:
        from ragtrace.judges.openai.http_client import client_of  # noqa: PLC0415 -- 0.6 s and 59 MB, at first use

        return client_of(
            self._address, self._api_key or "none", timeout_s=self._timeout_s, max_bytes=self._max_bytes
        )

    async def _attempt(
        self, endpoint: Endpoint, body: Mapping[str, object], request: JudgeRequest
    ) -> Answer | Fault:
        self.requests_sent += 1
        raw, retry_after_s = bytearray(), None
        try:
            client = self._connected()
            resource = client.chat.completions if endpoint == "chat" else client.embeddings
            create: Callable[..., AbstractAsyncContextManager[_Streamed]] = resource.with_streaming_response.create
            async with asyncio.timeout(self._timeout_s), create(**body) as response:
                retry_after_s = _retry_after_s(response.headers)
                async for chunk in response.iter_bytes():
                    raw += chunk
        except Exception as error:
            return self._fault_of(error)
        excess = ""
        if len(raw) > self._max_bytes:
            excess = f"is larger than {self._max_bytes} bytes"
        elif sum(map(raw.count, b",[{")) > _MOST_VALUES:
            excess = f"holds more than {_MOST_VALUES} values"
        if excess:
            return Fault(error=JudgeInvalidOutput(f"the answer {excess}"), result=AttemptResult(fate="answered"))
        return self._read(endpoint, request, raw, retry_after_s)

    def _read(
        self, endpoint: Endpoint, request: JudgeRequest, raw: bytearray, retry_after_s: float | None
    ) -> Answer | Fault:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, list) and value:  # Gemini's errors stand in a list
            value = value[0]
        if not isinstance(value, dict):
            return self._unavailable("answered without a JSON object: check the base URL")
        if (error := complaint_in(value)) is not None:
            return self._complained(complaint_of(200, error), retry_after_s)
        size = len(raw) if endpoint == "chat" else 0
        usage = counted(value.get("usage"), request, size)
        message = _message_in(value) if endpoint == "chat" else {}
        if message is None:
            return self._unavailable("answered 200 without a message", usage)
        result = AttemptResult(
            fate="answered",
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            reply_bytes=size,
        )
        return Answer(body=value, result=result, message=message)

    def _unavailable(
        self, fault: str, usage: Usage | None = None, *, said: str = "", may_repeat: bool = False
    ) -> Fault:
        """Return the fault of a broken server. `usage` is that of a reply it charged, `said` are its words."""
        error = JudgeUnavailable(f"{self.where} {fault}{said}")
        tokens = usage or Usage()
        error.usage = _one_call(tokens.input_tokens, tokens.output_tokens) if usage else None
        result = AttemptResult(
            fate="failed",
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            reason="connection" if may_repeat else "reply",
            message=f"{self.where} {fault}",
        )
        return Fault(error=error, result=result, may_repeat=may_repeat)

    def _fault_of(self, error: Exception) -> Fault:
        import openai  # noqa: PLC0415 -- loaded by now

        from ragtrace.judges.openai.http_client import HTTP_PACKAGES, UnusableReply  # noqa: PLC0415 -- the same

        for unusable in (error, error.__cause__):  # the oldest openai wraps it
            if isinstance(unusable, UnusableReply):
                if 200 <= unusable.status < 300:
                    return self._unavailable(self._hidden(str(unusable)))
                return self._refused(unusable.status, self._hidden(str(unusable)))
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            late = JudgeTimeout(f"{self.where} gave no reply within {self._timeout_s:g} s")
            return Fault(error=late, result=AttemptResult(fate="timed_out", message=str(late)))
        if isinstance(error, openai.APIStatusError):
            body: object = error.body
            if isinstance(body, list) and body and isinstance(body[0], dict):
                body = body[0].get("error") or body[0]
            complaint = complaint_of(error.status_code, body)
            return self._complained(complaint, _retry_after_s(error.response.headers))
        is_network = (
            isinstance(error, openai.APIConnectionError | OSError)
            or type(error).__module__.partition(".")[0] in _NETWORK | HTTP_PACKAGES
        )
        return self._unavailable(
            f"cannot be reached or broke the connection ({_cause_of(error)})", may_repeat=is_network
        )

    def _complained(self, complaint: Complaint, retry_after_s: float | None) -> Fault:
        """Return the fault of a complaint."""
        status, said = complaint.status or 200, self._said(complaint.message)
        if complaint.is_of_one_input:
            return self._unfit(complaint, said)
        if complaint.kind == "limited":
            limited = JudgeRateLimited(f"{self.where} limits the rate (429)")
            limited.status, limited.retry_after_s = 429, retry_after_s
            result = AttemptResult(
                fate="rate_limited", retry_after_s=retry_after_s, is_busy=True, message=str(limited)
            )
            return Fault(error=limited, result=result, may_repeat=True)
        if complaint.kind == "quota":
            return self._refused(429, f"answered {status}", said=said, reason="quota")
        if complaint.kind == "no_model":
            return self._refused(404, _ADVICE[404], reason="404")
        if complaint.kind == "overloaded" or status in {408, 409} or status >= 500:
            status = status if status != 200 else 503
            fault = self._refused(status, f"answered {status}", retry_after_s, said=said)
            is_busy = complaint.kind == "overloaded" or retry_after_s is not None
            return replace(fault, result=replace(fault.result, is_busy=is_busy), may_repeat=True)
        if complaint.status is None:
            return self._unavailable("answered 200 with an error", said=said)
        advice = None if complaint.is_page and status == 403 else _ADVICE.get(status)
        fault = self._refused(status, advice or f"answered {status}", said="" if advice else said)
        if complaint.is_page and status == 403:
            fault = replace(fault, result=replace(fault.result, fate="rejected"))
        return replace(fault, complaint=complaint) if fault.result.fate == "rejected" else fault

    def _unfit(self, complaint: Complaint, said: str) -> Fault:
        """Return the fault of an input that this server takes from nobody."""
        status = complaint.status or 200
        error: JudgeError
        if complaint.kind == "filtered":
            error = JudgeFiltered(f"{self.where} filtered the prompt ({status})")
        elif complaint.kind == "too_long":
            error = JudgePromptTooLong(f"{self.where} answered {status}{said}")
        else:
            error = JudgeRefused(f"{self.where} does not take this input ({status}){said}")
        error.status = complaint.status
        return Fault(error=error, result=AttemptResult(fate="unfit"))

    def _refused(
        self, status: int, sentence: str, retry_after_s: float | None = None, *, said: str = "", reason: str = ""
    ) -> Fault:
        """Return the fault of an error status. A refused request costs nothing; `said` are the server's words.

        Args:
            status: of the answer.
            sentence: what it means.
            retry_after_s: the pause that the server asks for.
            said: the server's words.
            reason: of a refusal of all calls that the status does not tell.
        """
        error = JudgeUnavailable(f"{self.where} {sentence}{said}")
        error.status, error.retry_after_s = status, retry_after_s
        fate: Fate = "rejected"
        if status >= 500 or status < 200 or status == 408:
            fate = "failed"
        elif reason or status in _REFUSALS or 300 <= status < 400:
            fate = "refused"
        result = AttemptResult(
            fate=fate,
            retry_after_s=retry_after_s if fate == "failed" else None,
            reason=reason or str(status),
            message=f"{self.where} {_OF_MONEY.get(status) or sentence}",
        )
        return Fault(error=error, result=result)

    def _said(self, said: str) -> str:
        """Return a short form of the server's message, without the key."""
        if not said.strip():
            return ""
        shown = "".join(letter if letter.isprintable() else " " for letter in self._hidden(said)[:2_000])
        return f": {' '.join(shown.split())[:200]}"

    def _hidden(self, said: str) -> str:
        """Replace the secrets that a server repeats."""
        for secret in filter(None, (self._api_key, *self._address.secrets)):
            said = said.replace(secret, "[key]")
        return said


_ADVICE = {
    401: "refuses the API key (401): check judge_api_key or OPENAI_API_KEY",
    403: "forbids this key to use this model (403)",
    404: "has no such model or path (404): check the model's name and the base URL",
}


_CAUSES: dict[type[Exception], str] = {
    ConnectionRefusedError: "connection refused: is the server up, and the port right?",
    socket.gaierror: "the host's name does not resolve: check the base URL",
    ssl.SSLCertVerificationError: "its certificate is not trusted",
    ssl.SSLError: "TLS failed: is the port one for https?",
}
_MOST_LINKS = 10  # of a chain of errors


_OF_MONEY = {
    402: "refuses the judge's calls (402): the account has no money left",
    429: "refuses the judge's calls (429): the quota of the account is used up",
}


def _cause_of(error: Exception) -> str:
    """Return in words why a connection failed, else the name of the client's error. It quotes nothing."""
    link: BaseException | None = error
    for _ in range(_MOST_LINKS):
        if link is None:
            break
        for kind, words in _CAUSES.items():
            if isinstance(link, kind):
                return words
        link = link.__cause__ or link.__context__
    return type(error.__cause__ or error).__name__


def _check_openai() -> None:
    """Refuse a missing openai, and a release outside the range. The package is not loaded."""
    if find_spec("openai") is None:
        raise MissingExtra("openai", "openai")
    try:
        found = metadata.distribution("openai")
    except metadata.PackageNotFoundError:  # of a frozen application, which may leave metadata out
        return
    if found.version.partition(".")[0] not in {"2", "3"}:
        raise ConfigError(
            f"openai {found.version} in {found.locate_file('')} is outside {OPENAI_RANGE},"
            f' which judges and embedders openai:MODEL need: pip install "openai{OPENAI_RANGE}"'
        )


def _one_call(input_tokens: int | None, output_tokens: int | None) -> JudgeUsage:
    return JudgeUsage(llm_calls=1, input_tokens=input_tokens or 0, output_tokens=output_tokens or 0)


def _message_in(answer: Mapping[str, object]) -> dict[str, object] | None:
    """Return a completion's message with its ``finish_reason``.

    None where it has neither a text nor a reason for that. A reply without one is the server's fault. A text
    that is empty or not of the asked form is the model's.
    """
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return None
    message = choice.get("message")
    given = message if isinstance(message, dict) else {}
    reason = end_of(choice)
    is_said = isinstance(given.get("content"), str | list) or any(map(given.get, _SAID))
    is_stopped = str(reason).lower() in _STOPPED
    return {**given, "finish_reason": reason} if is_said or is_stopped else None


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait that a server asks for, a day at most."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()[:_MOST_HEADER]
        if said.isascii() and said.replace(".", "", 1).isdecimal():
            return min(float(said) * unit_s, _MOST_RETRY_AFTER_S)
    try:
        at_s = parsedate_to_datetime(headers.get("retry-after", "")[:_MOST_HEADER]).timestamp()
    except Exception:  # of the standard library's parser, which raises more than it says
        return None
    return min(max(0.0, at_s - time()), _MOST_RETRY_AFTER_S)
