"""The address of a judge server, and the credentials in its URL."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

_LONGEST_VERSION = 4  # a value of a query such as v=1, which stands in many texts by chance


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAddress:
    """A base URL, taken apart.

    Attributes:
        url: the URL without login and query: safe to log.
        login: ``user:password`` in clear; "" without one.
        query: as it stood behind the ``?``; goes with each request.

    Example:
        >>> address = JudgeAddress.of("http://ada:p%40w@host:8000/v1/?api-key=s3cret")
        >>> address.url, address.host, address.login, address.query
        ('http://host:8000/v1', 'host:8000', 'ada:p@w', 'api-key=s3cret')
    """

    url: str
    login: str = ""
    query: str = ""

    @classmethod
    def of(cls, url: str) -> JudgeAddress:
        """Take a base URL apart.

        Raises:
            ValueError: it is none, for example because of an open bracket.
        """
        parts = urlsplit(url)
        login, _, host = parts.netloc.rpartition("@")
        user, _, password = login.partition(":")
        return cls(
            url=urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")),
            login=f"{unquote(user)}:{unquote(password)}" if login else "",
            query=parts.query,
        )

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that no error and no log may hold, the longest first."""
        password = self.login.partition(":")[2]
        token = base64.b64encode(self.login.encode()).decode() if self.login else ""
        values = [value for _, value in parse_qsl(self.query) if len(value) > _LONGEST_VERSION]
        found = {self.login, password, token, self.query, unquote(self.query), *values} - {"", ":"}
        return tuple(sorted(found, key=len, reverse=True))
