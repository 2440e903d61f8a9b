"""Command ``ragtrace mcp``, which answers agents over the Model Context Protocol."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from importlib.util import find_spec
from typing import Annotated

import typer

from ragtrace.cli.io.answers import source_of
from ragtrace.cli.io.arguments import Source
from ragtrace.cli.io.say import say
from ragtrace.cli.io.scored_files import opened_views
from ragtrace.errors import ConfigError, MissingExtra

EPILOG = """\
Tools: overview, worst_runs, run, diagnosis, compare. All of them only read.

An agent starts this command itself and talks over standard input and output. Questions, answers, claims and
passages leave with --content alone; sessions and users never do.

Exit status: 0 the agent has gone, 2 usage, 130 stopped by Ctrl-C.
"""


def command(
    source: Source = None,
    *,
    compare: Annotated[
        str | None, typer.Option(metavar="FILE|STORE", help="State before, for the tool compare.")
    ] = None,
    content: Annotated[
        bool, typer.Option("--content", help="Let questions, answers, claims and passages leave.")
    ] = False,
    http: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, metavar="PORT", help="Listen on this port of loopback at /mcp instead."),
    ] = None,
) -> int:
    """Answer an agent's questions about scored runs (MCP)."""
    if find_spec("mcp") is None:
        raise MissingExtra("mcp", "mcp")
    from ragtrace.mcp.server import build_server

    name = source_of(source)
    if name == "-":
        raise ConfigError("mcp: the agent talks over standard input; give a file or a store")
    with ExitStack() as stack:
        views = stack.enter_context(closing(opened_views(name)))
        before = stack.enter_context(closing(opened_views(source_of(compare)))) if compare else None
        server = build_server(views, before, has_content=content)
        if http is None:
            server.run("stdio")
        else:
            say(
                f"ragtrace mcp: http://127.0.0.1:{http}/mcp shows {name}; Ctrl-C stops", file=sys.stderr, flush=True
            )
            server.run("streamable-http", host="127.0.0.1", port=http, stateless_http=True)
    return 0
