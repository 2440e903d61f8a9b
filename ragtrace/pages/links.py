"""Addresses of pages and assets: what a template may link to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlencode

from ragtrace.views.filters import filter_to_query

if TYPE_CHECKING:
    from ragtrace.views.types import RunFilter


class Links(Protocol):
    """Addresses of the pages; None where the page does not exist, so that templates print the text alone.

    Attributes:
        is_live: whether a server answers: forms, updates and pages beyond those of a file.
        is_read_only: whether nothing can be saved.
    """

    is_live: bool
    is_read_only: bool

    def asset(self, name: str) -> str | None:
        """Return the address of a file of `ragtrace/pages/static`; None where its content is in the page."""

    def page(self, name: str, **query: str) -> str | None:
        """Return the address of a page by its name: overview, runs, investigate, compare, label and so on."""

    def runs(self, chosen: RunFilter, page: int = 1) -> str | None:
        """Return the address of the list of some runs."""

    def run(self, name: str, chosen: RunFilter | None = None) -> str | None:
        """Return the address of one run, within a list."""


class ServerLinks:
    """Links between the pages of `ragtrace ui`.

    Example:
        >>> ServerLinks(is_read_only=True).page("investigate", metric="faithfulness")
        '/investigate?metric=faithfulness'
    """

    is_live = True

    def __init__(self, *, is_read_only: bool) -> None:
        self.is_read_only = is_read_only

    def asset(self, name: str) -> str:
        """Return the address of a file of `ragtrace/pages/static`."""
        return f"/static/{name}"

    def page(self, name: str, **query: str) -> str:
        """Return the address of a page by its name."""
        return _address("/" if name == "overview" else f"/{name}", query)

    def runs(self, chosen: RunFilter, page: int = 1) -> str:
        """Return the address of the list of some runs."""
        return _address("/runs", {**filter_to_query(chosen), **({"page": str(page)} if page > 1 else {})})

    def run(self, name: str, chosen: RunFilter | None = None) -> str:
        """Return the address of one run; the list's filter stays in the query, for the runs before and after."""
        query = filter_to_query(chosen) if chosen else {}
        return _address(f"/runs/{quote(name, safe='', errors='replace')}", query)


def _address(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query, errors='replace')}" if query else path
