"""A judge server on loopback that answers after a fixed time: ``python -m benchmarks.judging.server LATENCY_S``.

It prints its port, and runs until its standard input is closed. One process of its own, so that its CPU is not the
client's.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

from benchmarks.judging.sample import REPLIES

_NAME = re.compile(rb'"name":\s*"(\w+)"')


def answers() -> dict[bytes, bytes]:
    """Return the whole HTTP answer for each schema name."""
    return {name.encode(): _answer(json.dumps(reply)) for name, reply in REPLIES.items()}


def _answer(content: str) -> bytes:
    body = json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
            ],
            "usage": {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990},
        }
    ).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def serve(latency_s: float) -> None:
    known = answers()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
                body = await reader.readexactly(size)
                # Strict schemas stand behind the messages, where the format's name does too.
                name = _NAME.findall(body[body.rindex(b"response_format") :])[0]
                await asyncio.sleep(latency_s)
                writer.write(known[name])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
