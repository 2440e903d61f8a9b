"""The application of ``ragtrace ui``: routes, guards and error pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from ragtrace.errors import RagtraceError
from ragtrace.pages.rendering import STATIC
from ragtrace.ui import compare, labels, overview, rating, runs
from ragtrace.ui.security import Guard
from ragtrace.ui.site import Site, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp


def build_app(site: Site, hosts: Iterable[str] = ()) -> ASGIApp:
    """Return the ASGI application of one site.

    Args:
        site: what it shows.
        hosts: names besides localhost and IP addresses under which browsers may ask for it.
    """
    routes: list[BaseRoute] = [
        *overview.routes(),
        *runs.routes(),
        *rating.routes(),
        *labels.routes(),
        *compare.routes(),
    ]
    app = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=str(STATIC)))],
        exception_handlers={HTTPException: _refused, RagtraceError: _failed, Exception: _broken},
    )
    app.state.site = site
    return Guard(app, frozenset(name.lower() for name in hosts))  # outermost, so that error pages are guarded too


def _refused(request: Request, error: Exception) -> Response:
    status, message = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    title = "Nothing here" if status == 404 else "Not possible"
    message = "There is no page of this address." if message == "Not Found" else message
    return _message(request, status, title, message)


def _failed(request: Request, error: Exception) -> Response:
    return _message(request, 400, "Not possible", str(error))


def _broken(request: Request, error: Exception) -> Response:
    return _message(request, 500, "Something failed", f"{type(error).__name__}: the terminal shows more.")


def _message(request: Request, status: int, title: str, message: str) -> Response:
    return site_of(request).page("message.html", status=status, page="", title=title, message=message)
