"""Send one JSON request with the standard library, and return the reply or a reason.

Each request is a connection of its own: nothing is kept that a forked child or a restarted server could break.
Redirects are not followed, so a key goes to the server that was named and to no other.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_ANSWER_BYTES = 65_536
_REPEATABLE = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class RestResponse:
    """Outcome of a request.

    Attributes:
        status: HTTP status; None when no answer came.
        failure: name of the error when no answer came, else "".
        retry_after_s: the wait that the server asks for; None when it asks for none.
        body: the first 64 KiB of the answer.
    """

    status: int | None = None
    failure: str = ""
    retry_after_s: float | None = None
    body: bytes = b""

    @property
    def is_taken(self) -> bool:
        """Whether the server took it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def may_repeat(self) -> bool:
        """Whether the same request may succeed later: no answer, 408, 425, 429 or 5xx."""
        return self.status is None or self.status >= 500 or self.status in _REPEATABLE

    @property
    def json(self) -> Mapping[str, object]:
        """The JSON object of the answer; empty where it is none."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def complaint(self, *, endpoint: str, key: str, thing: str = "a score") -> str:
        """Return what the server does wrong, for the log.

        Args:
            endpoint: setting of the address.
            key: setting of the key.
            thing: one item that was sent.
        """
        if self.status is None:
            return f"cannot be reached or broke the connection ({self.failure}); scores wait a while for it"
        if self.status in {401, 403}:
            return f"refuses the API key ({self.status}): check {key}; scores are not delivered"
        if self.status in {404, 405, 410} or 300 <= self.status < 400:
            return f"has no such path ({self.status}): check {endpoint}; scores are not delivered"
        if self.may_repeat:
            return f"is not ready ({self.status}); scores wait a while for it"
        return f"refused {thing} ({self.status}); it is not delivered"


@dataclass(frozen=True, slots=True)
class Address:
    """A server's scheme, host, port and path prefix.

    Example:
        >>> Address.parse("http://127.0.0.1:6006/", setting="endpoint")
        Address(scheme='http', host='127.0.0.1', port=6006, path='')
        >>> Address.parse("127.0.0.1:6006", setting="endpoint")
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: endpoint must begin with http:// or https://, for example https://host.example
    """

    scheme: str
    host: str
    port: int
    path: str = ""

    @classmethod
    def parse(cls, endpoint: object, *, setting: str) -> Address:
        """Read a base URL; a path is kept as the prefix of every request.

        Raises:
            ConfigError: not http or https, no host, a wrong port, credentials, a query or a fragment. The
                message names the setting and never repeats the URL, which may hold a password.
        """
        endpoint = endpoint.strip() if isinstance(endpoint, str) else ""
        if not endpoint.startswith(("http://", "https://")):
            raise ConfigError(f"{setting} must begin with http:// or https://, for example https://host.example")
        try:
            parts = urlsplit(endpoint)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise ConfigError(f"{setting} has no valid host and port") from None
        if not parts.hostname or not is_plain(endpoint):
            raise ConfigError(f"{setting} has no valid host and port")
        if parts.username is not None or parts.password is not None:
            raise ConfigError(f"{setting} must not hold a name or password; give the key in its own setting")
        if parts.query or parts.fragment:
            raise ConfigError(f"{setting} is the server's address, without ? or #")
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    @property
    def origin(self) -> str:
        """The address without its path, which may be a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        return self.origin + self.path

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float, method: str = "POST"
    ) -> RestResponse:
        """Send a JSON body; return the reply or the failure. `timeout_s` limits each wait on the socket."""
        connection: http.client.HTTPConnection | None = None
        try:
            connection = self._connection(timeout_s)
            sent = {"Content-Type": "application/json", "Connection": "close", **headers}
            connection.request(method, self.path + path, body, sent)
            response = connection.getresponse()
            wait_s = _seconds(response.getheader("Retry-After"))
            return RestResponse(
                status=response.status, retry_after_s=wait_s, body=response.read(_MOST_ANSWER_BYTES)
            )
        except (OSError, http.client.HTTPException) as error:
            return RestResponse(failure=type(error).__name__)
        finally:
            if connection is not None:
                connection.close()

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if self.scheme == "https":
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)


def bearer(key: object, *, setting: str) -> dict[str, str]:
    """Return the header of a key, none without one.

    Raises:
        ConfigError: a character that no header may hold; the message does not repeat the key.

    Example:
        >>> bearer("k", setting="api_key"), bearer(None, setting="api_key")
        ({'Authorization': 'Bearer k'}, {})
    """
    return {"Authorization": f"Bearer {checked_key(key, setting=setting)}"} if key else {}


def basic(user: str, password: str) -> dict[str, str]:
    """Return the header of a name and a password.

    Example:
        >>> basic("ada", "pw")
        {'Authorization': 'Basic YWRhOnB3'}
    """
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def checked_key(key: object, *, setting: str) -> str:
    """Return a key that a header may hold.

    Raises:
        ConfigError: a character that no header may hold; the message does not repeat the key.
    """
    if not isinstance(key, str) or not is_plain(key):
        raise ConfigError(f"{setting} holds a character that no HTTP header may hold; was it copied whole?")
    return key


def is_plain(text: str) -> bool:
    """Return whether a text is printable ASCII without blanks, as headers and addresses are."""
    return text.isascii() and text.isprintable() and " " not in text


def iso_utc(unix_s: float) -> str:
    """Return Unix seconds as a time of ISO 8601 in UTC, with milliseconds.

    Example:
        >>> iso_utc(1.7e9)
        '2023-11-14T22:13:20.000Z'
    """
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _seconds(said: str | None) -> float | None:
    """Return the seconds of Retry-After, which says a number or a date."""
    if said is None:
        return None
    if said.isascii() and said.strip().isdecimal():
        return float(said)
    try:
        return max(parsedate_to_datetime(said).timestamp() - time.time(), 0.0)
    except ValueError:
        return None
