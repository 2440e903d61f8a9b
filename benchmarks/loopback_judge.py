"""HTTP on loopback for judges of benchmarks that run as processes of their own."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def http_reply(status: str, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def completion(text: str) -> bytes:
    """Return the body of a chat completion with one choice."""
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990},
        }
    ).encode()


async def serve(answer: Callable[[bytes, bytes], Awaitable[bytes | None]]) -> None:
    """Print a port and answer there until the standard input is closed.

    Args:
        answer: gets head and body of a request; None breaks the connection off.
    """

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = re.search(rb"(?i)content-length: (\d+)", head)
                body = await reader.readexactly(int(size.group(1)) if size else 0)
                reply = await answer(head, body)
                if reply is None:
                    return
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
