"""Read what a model is asked with: its parameters and its server, by the names that frameworks use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ragtrace.capture.names import (
    REQUEST_COUNTS,
    REQUEST_GROUPS,
    REQUEST_NAMES,
    REQUEST_NUMBERS,
    SERVER_NAMES,
    STOP_NAMES,
    STREAM_NAMES,
    URL_CLASSES,
)
from ragtrace.text import MAX_NAME_CHARS, clean_count, clean_score, cut, kept, shown

if TYPE_CHECKING:
    from collections.abc import Callable

_PORTS = {"http": 80, "https": 443}
_MOST_STOPS = 16


_KNOWN = frozenset(REQUEST_NAMES)


class Server(NamedTuple):
    """Host and port of a model's server; None where they are not known."""

    address: str | None = None
    port: int | None = None


NO_SERVER = Server()


def read_request(*settings: object) -> dict[str, Any]:
    """Return the parameters of a request by their names in the GenAI conventions; those of the first mapping count.

    Read are temperature, top_p, top_k, max_tokens, seed, frequency_penalty, presence_penalty, stop_sequences,
    choice_count and stream. What is no number where one is due is left out.

    Example:
        >>> read_request({"temperature": 0.2, "stop": "END"}, {"ls_max_tokens": 64, "ls_temperature": 1})
        {'temperature': 0.2, 'max_tokens': 64, 'stop_sequences': ('END',)}
    """
    mappings = [it for it in settings if isinstance(it, Mapping)]
    mappings += [inner for it in mappings for name in REQUEST_GROUPS if isinstance(inner := it.get(name), Mapping)]
    found: dict[str, Any] = {}
    told = {name for it in mappings for name, value in it.items() if value is not None}
    if told.isdisjoint(_KNOWN):  # as mostly
        return found
    for readers, clean in ((REQUEST_NUMBERS, clean_score), (REQUEST_COUNTS, clean_count)):
        for name, names in readers.items():
            if not told.isdisjoint(names) and (value := _first(mappings, names, clean)) is not None:
                found[name] = value
    if (stops := _first(mappings, STOP_NAMES, _stops)) is not None:
        found["stop_sequences"] = stops
    if _first(mappings, STREAM_NAMES, lambda value: value is True or None):
        found["stream"] = True
    return found


def clean_request(request: object, redact: Callable[[str], str] | None) -> dict[str, Any]:
    """Return parameters that may be kept: of known names and kinds, with stop sequences redacted and cut."""
    found = read_request(request)
    if "stop_sequences" in found:
        found["stop_sequences"] = tuple(kept(stop, MAX_NAME_CHARS, redact)[0] for stop in found["stop_sequences"])
    return found


def read_server(*settings: object) -> Server:
    """Return host and port of the first address among some mappings, without login, path and query.

    Example:
        >>> read_server({"base_url": "https://me:secret@llm.example.com/v1?key=7"})
        Server(address='llm.example.com', port=443)
        >>> read_server({"host": "localhost:11434"})
        Server(address='localhost', port=11434)
    """
    for it in settings:
        for name in SERVER_NAMES if isinstance(it, Mapping) else ():
            if name in it and (found := server_of(it[name])).address is not None:  # type: ignore[index, operator]
                return found
    return NO_SERVER


def server_of(url: object) -> Server:
    """Return host and port of an address; nothing of what is none.

    Example:
        >>> server_of("http://[::1]:8000/v1"), server_of("gpt-4o mini")
        (Server(address='::1', port=8000), Server(address=None, port=None))
    """
    if not isinstance(url, str):
        url = shown(url) if type(url).__name__ in URL_CLASSES else ""
    if not url or any(letter.isspace() for letter in url):
        return NO_SERVER
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return NO_SERVER
    if not host:
        return NO_SERVER
    return Server(cut(host, MAX_NAME_CHARS)[0], port or _PORTS.get(parts.scheme))


def _first(mappings: list[Mapping[Any, Any]], names: tuple[str, ...], clean: Callable[[Any], Any]) -> Any:
    given = (it[name] for it in mappings for name in names if name in it)
    return next((value for one in given if (value := clean(one)) is not None), None)


def _stops(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        return None
    return tuple(stop for stop in value[:_MOST_STOPS] if isinstance(stop, str) and stop) or None
