"""Guards of the local server: allowed hosts, headers of every answer, and forms from our own pages alone."""

from __future__ import annotations

import hmac
import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_LONGEST_FORM = 65_536
_DIGITS = re.compile("[0-9]{1,9}")


class Guard:
    """Middleware that refuses foreign hosts and large bodies, and adds the headers of security.

    A ``Host`` may be an IP address, localhost, or one of `hosts`. A web page that points a name of its own at this
    server (DNS rebinding) is refused for that reason.

    Args:
        app: the application behind it.
        hosts: further names of this server, in lower case.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers["Cache-Control"] = "no-cache" if scope["path"].startswith("/static/") else "no-store"
            await send(message)

        await (self._refusal(Headers(scope=scope)) or self._app)(scope, receive, send_guarded)

    def _refusal(self, headers: Headers) -> PlainTextResponse | None:
        if not is_host_allowed(headers.get("host", ""), self._hosts):
            return PlainTextResponse("The Host of this request is not this server's; see --allow-host.\n", 403)
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not _DIGITS.fullmatch(length) or int(length) > _LONGEST_FORM:
            return PlainTextResponse("This form is too long.\n", 413)
        return None


def is_host_allowed(host: str, names: frozenset[str]) -> bool:
    """Tell whether a ``Host`` is an IP address, localhost, or one of some names.

    Example:
        >>> [is_host_allowed(host, frozenset({"box"})) for host in ("[::1]:7878", "box:7878", "evil.example")]
        [True, True, False]
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
        if name == "localhost" or name in names:
            return True
        ip_address(name)
    except ValueError:
        return False
    return True


async def read_form(request: Request, token: str) -> FormData:
    """Return the fields of a form that one of our own pages sent.

    Raises:
        HTTPException: 403, where another site sent it or its token is not of this process.
    """
    if not _is_same_origin(request.headers):
        raise HTTPException(403, "This form came from another site.")
    form = await request.form(max_files=0, max_fields=50)
    if not hmac.compare_digest(str(form.get("token", "")).encode(), token.encode()):
        raise HTTPException(403, "This page is older than the server: load it again, then send the form.")
    return form


def _is_same_origin(headers: Headers) -> bool:
    """Tell whether a browser says that our own page sent a request; the token decides where it says nothing."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin", "null")  # null: the page's Referrer-Policy hides it
    return origin == "null" or urlsplit(origin).netloc == headers.get("host")
