"""Command ``ragtrace ui``, which serves local pages over a store or a scored file."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.answers import source_of
from ragtrace.cli.io.arguments import Source
from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.ui.serving import Server
    from ragtrace.views.source import Views

EPILOG = """\
Pages: the metrics with intervals, trends and drift; where answers fail; the runs, worst first; one run with its
passages and claims; people's ratings; a comparison of two files or periods. They update while scores arrive.

The server answers this machine alone, unless --host says otherwise. It has no login. Texts are shown where the
store or the file holds them.

Exit status: 0 stopped by Ctrl-C; 2 usage.
"""
DEFAULT_PORT = 7878
LOOPBACK = "127.0.0.1"
_PACKAGES = {name: name.replace("_", "-") for name in ("jinja2", "python_multipart", "starlette", "uvicorn")}


def command(
    source: Source = None,
    *,
    compare: Annotated[
        str | None, typer.Option(metavar="FILE|STORE", help="Compare with this file or store, as the state before.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen at.")] = LOOPBACK,
    port: Annotated[
        int,
        typer.Option(min=0, max=65_535, metavar="P", help="Port to listen at. 0 takes a free port."),
    ] = DEFAULT_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name under which browsers may ask, behind a proxy. Repeatable."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Take no ratings.")] = False,
    trace_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of a trace in your backend, with {trace_id} in it."),
    ] = None,
    is_opened: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = False,
) -> int:
    """See scored runs in a browser: metrics, worst answers, causes, ratings."""
    check_extra()
    from ragtrace.ui.serving import is_loopback

    name = source_of(source)
    if not is_loopback(host):
        can = "can read them" if read_only else "can read them and rate; --read-only forbids ratings"
        say(f"ragtrace: warning: no login. Anybody who reaches these pages {can}", file=sys.stderr)
    say(f"ragtrace ui: reading {name} ...", flush=True)
    with pages(
        name,
        compare=compare,
        address=(host, port),
        hosts=allow_host or [],
        is_read_only=read_only,
        trace_url=_checked(trace_url),
    ) as (server, url):
        say(f"ragtrace ui: {url} shows {name}; Ctrl-C stops", flush=True)
        if is_opened:
            webbrowser.open(url)
        with suppress(KeyboardInterrupt):
            server.serve_until_stopped()
    return 0


def check_extra() -> None:
    """Check that the packages of the extra ``ui`` are installed.

    Raises:
        MissingExtra: one is not.
    """
    for name, package in _PACKAGES.items():
        if find_spec(name) is None:
            raise MissingExtra(package, "ui")


@contextmanager
def pages(
    name: str,
    *,
    address: tuple[str, int],
    compare: str | None = None,
    hosts: Sequence[str] = (),
    is_read_only: bool = False,
    trace_url: str | None = None,
) -> Iterator[tuple[Server, str]]:
    """Yield a server over a store or file, which listens and does not serve yet, and its URL.

    Raises:
        ConfigError: the source cannot be read, or the address cannot be listened at.
    """
    from ragtrace.cli.io.scored_files import opened_views
    from ragtrace.pages.links import ServerLinks
    from ragtrace.ui.app import build_app
    from ragtrace.ui.serving import Server, listening, url_of
    from ragtrace.ui.site import Site

    with ExitStack() as stack:

        def opened(one: str) -> Views:
            return stack.enter_context(closing(opened_views(one, trace_url=trace_url, is_live=True)))

        bound = stack.enter_context(listening(*address))
        site = Site(
            views=opened(name),
            other=opened(source_of(compare)) if compare else None,
            links=ServerLinks(is_read_only=is_read_only),
        )
        yield Server(build_app(site, [address[0], *hosts]), bound), url_of(bound)


def _checked(url: str | None) -> str | None:
    if url is None or (url.startswith(("http://", "https://")) and "{trace_id}" in url):
        return url
    raise ConfigError(
        "--trace-url: write an address with {trace_id} in it, for example http://localhost:3000/{trace_id}"
    )
