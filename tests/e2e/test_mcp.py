"""`ragtrace mcp` in a process of its own, over standard input and over HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.command_line import environment
from tests.ui.scored import incident, write_lines

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path


async def test_an_agent_starts_the_command_and_asks(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "scored.jsonl", incident())
    command = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "ragtrace", "mcp", str(path)], env=environment()
    )
    async with mcp.Client(mcp.stdio_client(command)) as client:
        overview = await client.call_tool("overview", {})
        wrong = await client.call_tool("run", {"id": "nobody"})
        found = await client.call_tool("diagnosis", {})
    assert json.loads(overview.content[0].text)["runs"] == 300  # type: ignore[union-attr]
    assert wrong.is_error
    assert found.structured_content["stage"] == "model"  # type: ignore[index]


async def test_it_listens_on_loopback(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "scored.jsonl", incident(40))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "ragtrace", "mcp", str(path), "--http", str(port)]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as server:  # noqa: ASYNC220 - it ends with the test
        assert f"http://127.0.0.1:{port}/mcp shows" in server.stderr.readline()  # type: ignore[union-attr]
        try:
            for _ in range(100):
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                await anyio.sleep(0.1)
            async with mcp.Client(f"http://127.0.0.1:{port}/mcp") as client:
                overview = await client.call_tool("overview", {})
            assert overview.structured_content["runs"] == 40  # type: ignore[index]
        finally:
            server.terminate()
