"""Chat and embeddings over any OpenAI-compatible server."""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import (
    JudgeError,
    JudgeFiltered,
    JudgeInvalidOutput,
    JudgeRefused,
    JudgeTruncated,
    JudgeUnavailable,
)
from ragtrace.judges.llm.chat import ChatReply
from ragtrace.judges.openai.complaints import AT_LIMIT, FILTERED
from ragtrace.judges.openai.negotiate import SEED, ladder_for
from ragtrace.judges.openai.transport import Answer, Fault, RetryPolicy, Transport

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from ragtrace.judges.limiter import RateLimiter
    from ragtrace.judges.openai.complaints import Complaint
    from ragtrace.judges.openai.negotiate import Dialect

# A judge's reply has some 20 kB; the longest vectors, of 8,192 numbers, have some 180 kB. The bounds keep memory
# low: parsed JSON takes up to 13 times its size.
_MAX_CHAT_BYTES = 1_000_000
_EMBED_BATCH = 32
_MAX_EMBEDDING_BYTES = _EMBED_BATCH * 196_608
_TEXT_TYPES = ("text", "output_text", None)  # of a part of the content; thoughts are parts of another type
_MOST = 1e18  # of a vector's number; the squares of 8,192 such numbers have a sum, and NaN is none of them
_PROBES = 10  # four rungs, three parameters, one renamed limit, and two to spare


class OpenAIChat:
    """A model behind ``/chat/completions``; a `ragtrace.judges.llm.chat.ChatModel`.

    The server's dialect (reply format, parameters) is found out at the first call and remembered for the process.
    The package openai is loaded at the first call. Coroutine-safe; a client belongs to one event loop, and
    another loop gets another client.

    Args:
        model: the model's name at the server.
        base_url: for example ``http://localhost:11434/v1``; OpenAI's when None.
        api_key: never logged and never part of an error; None for servers without keys.
        timeout_s: limit of one attempt, in seconds.
        retry: when a request is tried again; three attempts when None.
        limiter: admits every attempt, probes too; None admits all.

    Raises:
        ragtrace.errors.MissingExtra: the package openai is not installed.

    Example:
        >>> OpenAIChat("llama3.1", base_url="http://localhost:11434/v1").fingerprint()
        'openai:llama3.1 top_p=1 seed=42'
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 45.0,
        *,
        retry: RetryPolicy | None = None,
        limiter: RateLimiter | None = None,
    ) -> None:
        self.name = model
        self._seed = SEED
        self._transport = Transport(
            base_url=base_url,
            api_key=api_key,
            timeout_s=timeout_s,
            max_bytes=_MAX_CHAT_BYTES,
            retry=retry or RetryPolicy(),
            limiter=limiter,
        )
        self._ladder = ladder_for(self._transport.base_url, model)

    @property
    def requests_sent(self) -> int:
        """HTTP requests so far, tries and probes included."""
        return self._transport.requests_sent

    async def complete(
        self,
        *,
        system: str,
        user: str,
        schema_name: str,
        schema: Mapping[str, object],
        max_output_tokens: int,
        temperature: float,
    ) -> ChatReply:
        """Return the model's reply.

        Raises:
            ragtrace.errors.JudgeError: refused, filtered, truncated, timed out, rate limited or unavailable.
        """
        error: JudgeError = JudgeUnavailable(f"{self._transport.where} refuses every form of request")
        tried: set[Dialect] = set()
        for _ in range(_PROBES):
            dialect = self._ladder.current
            tried.add(dialect)
            body = dialect.body(
                system=system,
                user=user,
                schema_name=schema_name,
                schema=schema,
                max_output_tokens=max_output_tokens,
                temperature=temperature,
                seed=self._seed,
            )
            answer = await self._transport.post(
                "chat",
                {"model": self.name, **body},
                max_output_tokens=max_output_tokens,
                rejections_of=partial(self._rejections, tried, dialect),
            )
            if not isinstance(answer, Fault):
                self._ladder.settle(dialect)
                return _reply(answer)
            error = answer.error
            if not answer.is_followed:
                break
        self._ladder.reset()
        raise error

    def _rejections(self, tried: Collection[Dialect], used: Dialect, complaint: Complaint) -> int:
        """Learn from a rejection; return 0 where another form is to be tried, else how many were refused."""
        may_adapt = complaint.status in {400, 422} and not complaint.kind and len(tried) < _PROBES
        if may_adapt and self._ladder.adapt(used, complaint.text, complaint.param):
            return 0 if self._ladder.current not in tried else len(tried)
        return len(tried)

    def with_seed(self, seed: int) -> OpenAIChat:
        """Return the same model over the same connections, sending another seed.

        A server that refuses a seed gets none, as ever. Closing either closes both.
        """
        other = copy.copy(self)
        vars(other).update(_seed=seed)
        return other

    def fingerprint(self) -> str:
        """Return model and parameters.

        The address is left out, so that a proxy starts no new series. The seed of a repeat is left out too:
        repeats are one judge.
        """
        return f"openai:{self.name} top_p=1 seed={SEED}"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


def _reply(answer: Answer) -> ChatReply:
    """Read a chat completion; raises JudgeError with ``usage``."""
    usage = answer.usage
    error = _stopped(answer.message)
    if error is not None:
        error.usage = usage
        raise error
    return ChatReply(
        text=_text(answer.message),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def _stopped(message: Mapping[str, object]) -> JudgeError | None:
    reason = str(message["finish_reason"]).lower()
    if reason in AT_LIMIT:
        return JudgeTruncated("the reply hit the output limit")
    if reason in FILTERED:
        return JudgeFiltered("a content filter stopped the reply")
    content = message.get("content")
    parts = _parts(content) if isinstance(content, list) else []
    if message.get("refusal") or any(part.get("refusal") for part in parts):
        return JudgeRefused("the model refused to judge")
    return None


def _parts(content: Sequence[object]) -> list[Mapping[str, object]]:
    return [part for part in content if isinstance(part, dict)]


def _text(message: Mapping[str, object]) -> str:
    """Return all that a message says: its content, and the arguments of the functions that it calls."""
    content, calls = message.get("content"), message.get("tool_calls")
    if isinstance(content, list):
        parts = [part.get("text") for part in _parts(content) if part.get("type", "text") in _TEXT_TYPES]
        content = "".join(part for part in parts if isinstance(part, str))
    functions = (
        [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    )
    functions.append(message.get("function_call"))
    arguments = [function.get("arguments") for function in functions if isinstance(function, dict)]
    said = [content, *(json.dumps(given) if isinstance(given, dict) else given for given in arguments)]
    return "\n".join(text for text in said if isinstance(text, str) and text.strip())


class OpenAIEmbedder:
    """A model behind ``/embeddings``; a `ragtrace.judges.base.Embedder`.

    Arguments are those of `OpenAIChat`.

    Example:
        >>> OpenAIEmbedder("nomic-embed-text", base_url="http://localhost:11434/v1").name
        'openai:nomic-embed-text'
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 45.0,
        *,
        retry: RetryPolicy | None = None,
        limiter: RateLimiter | None = None,
    ) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._transport = Transport(
            base_url=base_url,
            api_key=api_key,
            timeout_s=timeout_s,
            max_bytes=_MAX_EMBEDDING_BYTES,
            retry=retry or RetryPolicy(),
            limiter=limiter,
        )

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return an array of shape (len(texts), d).

        A blank text is not sent and gives a zero row.

        Raises:
            ragtrace.errors.JudgeError: no usable vectors.
        """
        asked = [i for i, text in enumerate(texts) if text.strip()]
        vectors: list[list[float]] = []
        for start in range(0, len(asked), _EMBED_BATCH):
            vectors += await self._batch([texts[i] for i in asked[start : start + _EMBED_BATCH]])
        widths = {len(vector) for vector in vectors}
        if len(widths) > 1:
            raise JudgeInvalidOutput("the embedding server sent vectors of different lengths")
        rows = np.zeros((len(texts), widths.pop() if widths else 1))
        if asked:
            rows[asked] = vectors
        return rows

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _batch(self, texts: list[str]) -> list[list[float]]:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        answer = await self._transport.post("embeddings", body)
        if isinstance(answer, Fault):
            raise answer.error
        rows = answer.body.get("data")
        by_index = {
            row.get("index"): row.get("embedding")
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict) and type(row.get("index")) is int
        }
        vectors = [by_index.get(i) for i in range(len(texts))]
        if len(by_index) != len(texts) or not all(_is_vector(vector) for vector in vectors):
            raise JudgeInvalidOutput("the embedding server sent other than one vector a text")
        return [vector for vector in vectors if vector is not None]


def _is_vector(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(number) in {int, float} and -_MOST <= number <= _MOST for number in value)
    )
