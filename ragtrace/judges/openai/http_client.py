"""The HTTP client under the package openai.

Bodies end early, no redirect is followed, and a log shows no secret. Imported at the first call of a judge,
since openai takes 0.6 s and 59 MB. Releases of openai stand on different HTTP packages, and more than one of them
may be installed. Ours is the one of openai's own client.
"""

from __future__ import annotations

import base64
import logging
import zlib
from collections.abc import AsyncGenerator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from ragtrace.judges.openai.addresses import JudgeAddress


def http_package(client: type) -> Any:
    """Return the package of a client's base class, whatever stands between.

    That may be openai or an instrumentation. Types of the package cannot be named, since there are two.
    """
    base = client.__mro__[-2]  # the last is object
    return import_module(base.__module__.partition(".")[0])


_http = http_package(DefaultAsyncHttpxClient)
_AsyncByteStream: Any = _http.AsyncByteStream
_URL: Any = _http.URL
_CORE = _http.__name__.replace("httpx", "httpcore")  # the package below it, of the same release
HTTP_PACKAGES = frozenset({_http.__name__, _CORE})

MOST_ERROR_BYTES = 65_536  # of a body whose status is an error; 4,000 characters of it are read
_PIECE = 65_536
_PACKED = frozenset({"gzip", "x-gzip"})
_LEAST_SECRET_CHARS = 5  # a shorter one stands in many lines by chance; the placeholder of a missing key is
# They log each reply: httpx at INFO the reason phrase, the others at DEBUG the headers. A redirect repeats the
# query of the URL, and a server may echo all.
_LOGGERS = (
    _http.__name__,
    "openai._base_client",
    *(f"{_CORE}.{name}" for name in ("http11", "http2", "connection", "proxy")),
)


class UnusableReply(Exception):
    """A reply that is left unread.

    Attributes:
        status: its HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class BoundedBody(_AsyncByteStream):  # type: ignore[misc] # of one package or the other
    """A body that ends after so many unpacked bytes.

    httpx inflates a piece of 64 KiB to 64 MB at once, and reads the body of an error to its end whatever its size.

    Args:
        body: as it comes from the server.
        most: bytes to give out.
        is_packed: whether it is gzip. A broken one ends where it breaks.
    """

    def __init__(self, body: Any, most: int, *, is_packed: bool) -> None:
        self._body = body
        self._left = most
        self._unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS) if is_packed else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = aiter(self._body)
        try:
            async for raw in stream:
                for piece in self._pieces(raw):
                    yield piece[: self._left]
                    self._left -= len(piece)
                if self._left <= 0:
                    return
        finally:
            if isinstance(stream, AsyncGenerator):  # or the garbage collector ends it, perhaps behind its loop
                await stream.aclose()

    async def aclose(self) -> None:
        """Close the connection, or give it back after a whole body."""
        await self._body.aclose()

    def _pieces(self, raw: bytes) -> Iterator[bytes]:
        if self._unpacker is None:
            yield raw
            return
        while self._left > 0:
            try:
                piece = self._unpacker.decompress(raw, _PIECE)
            except zlib.error:
                self._left = 0
                return
            if not piece:
                return
            yield piece
            raw = self._unpacker.unconsumed_tail


class _SecretFilter(logging.Filter):
    """Takes known secrets out of log lines."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets: frozenset[str] = frozenset()

    def hide(self, secrets: Iterable[str]) -> None:
        """Hide more secrets in all loggers of the client."""
        self._secrets |= {secret for secret in secrets if len(secret) >= _LEAST_SECRET_CHARS}
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)  # a second time adds nothing

    def filter(self, record: logging.LogRecord) -> bool:
        """Remove the secrets from a log line, and pass it on.

        openai 2 logs tracebacks. They stay as text: a handler that is given the exception may show the variables of
        its frames, and with them the request.
        """
        said = record.getMessage()
        shown = self._hidden(said)
        if shown != said:
            record.msg, record.args = shown, None
        if record.exc_info:
            record.exc_text = self._hidden(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True

    def _hidden(self, said: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            said = said.replace(secret, "[key]")
        return said


_secret_filter = _SecretFilter()


class _LoggedURL(_URL):  # type: ignore[misc] # the same
    """A URL that is logged without its query. httpx and openai log the URL of each request."""

    def __str__(self) -> str:
        return str(self.copy_with(query=None))

    def __repr__(self) -> str:
        return repr(self.copy_with(query=None))


def client_of(address: JudgeAddress, api_key: str, *, timeout_s: float, max_bytes: int) -> AsyncOpenAI:
    """Return a client for one server.

    Proxies are those of the environment, as in every client of httpx.

    Args:
        address: the server's address with the credentials in its URL.
        api_key: its key; a login in the URL goes before it, as httpx has it.
        timeout_s: of each wait on the connection.
        max_bytes: a longer body is cut one byte behind it, so that the cut shows.
    """

    async def before(request: Any) -> None:
        request.headers["Accept-Encoding"] = "gzip"
        if address.login:
            token = base64.b64encode(address.login.encode()).decode()
            request.headers["Authorization"] = f"Basic {token}"
        if address.query:
            request.url = _LoggedURL(request.url.copy_with(query=address.query.encode()))

    async def after(response: Any) -> None:
        status, headers = response.status_code, response.headers
        if 300 <= status < 400:
            # Also before httpx reads the address: the one it makes of a strange location raises.
            place = _host_of(headers.get("location", ""), address)
            raise UnusableReply(
                f"redirects to {place} ({status}), which is not followed: set judge_base_url", status
            )
        packing = headers.pop("content-encoding", "").strip().lower()
        if packing not in {"", "identity", *_PACKED}:
            raise UnusableReply(f"packed its reply in a way that was not asked for ({status})", status)
        headers["content-type"] = "application/json"  # a charset of its own choice may name any codec of Python
        most = MOST_ERROR_BYTES if status >= 400 else max_bytes + 1
        response.stream = BoundedBody(response.stream, most, is_packed=packing in _PACKED)

    _secret_filter.hide((api_key, *address.secrets))
    return AsyncOpenAI(
        base_url=address.url,
        api_key=api_key,
        timeout=timeout_s,
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(
            base_url=address.url,
            timeout=timeout_s,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # or a server fills memory and requests
            event_hooks={"request": [before], "response": [after]},
        ),
    )


def _host_of(location: str, address: JudgeAddress) -> str:
    try:
        host = address.of(urljoin(address.url, location[:2_000])).host
    except ValueError:
        host = ""
    return "".join(letter for letter in host[:100] if letter.isprintable()) or "nowhere"
