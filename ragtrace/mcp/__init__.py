"""Read-only tools for agents over a store or a scored file, as a Model Context Protocol server."""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.mcp.server import build_server
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "server": "build_server",
        },
    )
