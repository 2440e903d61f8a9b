"""The parts that every page of one server shares."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from starlette.responses import HTMLResponse, Response

from ragtrace.pages.rendering import render
from ragtrace.views.filters import filter_from_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from ragtrace.pages.links import ServerLinks
    from ragtrace.views.source import Views
    from ragtrace.views.types import RunFilter

NAV = (
    ("overview", "Overview", "o"),
    ("runs", "Runs", "r"),
    ("investigate", "Investigate", "i"),
    ("compare", "Compare", "c"),
    ("queue", "Label", "l"),
)
"""Name, label and key of the pages that the head of each page links to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Address of a page's own update, and the state that it shows."""

    url: str
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Data, links and secret of one server.

    Attributes:
        views: the store or file that is shown.
        other: the file that it is compared with.
        token: secret of this process in each form.
    """

    views: Views
    links: ServerLinks
    other: Views | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def page(self, template: str, *, status: int = 200, **context: object) -> Response:
        """Return a page from its template.

        Args:
            template: file in `ragtrace/pages/templates`.
            status: HTTP status.
            context: values of the template, among them `page` (as in `NAV`) and `title`. A page with
                ``live=site.live(request)`` updates itself, and asks `unchanged` before its work.
        """
        context = {"live": None, **context}
        text = render(template, self.links, source=self.views.name, nav=NAV, token=self.token, **context)
        live = context["live"]
        headers = {"ETag": live.etag} if isinstance(live, Live) else {}
        return HTMLResponse(text, status, headers)

    def live(self, request: Request) -> Live:
        """Return the address of this page and the present state of the data."""
        query = f"?{request.url.query}" if request.url.query else ""
        return Live(url=f"{request.url.path}{query}", etag=f'"{self.views.version()}"')

    def unchanged(self, request: Request, live: Live) -> Response | None:
        """Return an empty answer 304 where the browser shows the present state; else None."""
        return Response(status_code=304) if request.headers.get("if-none-match") == live.etag else None


def site_of(request: Request) -> Site:
    """Return the site that a request is for."""
    return cast("Site", request.app.state.site)


def filter_of(query: Mapping[str, str]) -> RunFilter:
    """Return the filter of an address.

    Its times are Unix seconds, or dates in UTC as a form without scripts sends them.

    Raises:
        InputError: a field has a wrong value.
    """
    given = dict(query)
    for name in ("since", "until"):
        with suppress(ValueError, KeyError):
            given[name] = str(datetime.fromisoformat(given[name]).replace(tzinfo=UTC).timestamp())
    return filter_from_query(given)
