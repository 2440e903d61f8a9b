"""A judge and a collector on loopback that fail now and then: ``python -m benchmarks.soak.weather SHARE``.

Of the judge's replies this share each is a 429, a 500, a broken connection, junk, an empty text, a wrong form, a
late one; of the collector's answers this share is a 503. It prints its port and runs until its input is closed.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys

GOOD = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["The lab is in Oslo."],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
    "citations": [],
}
LATE_S = 3.0
_chance = random.Random(1)


def reply(text: str) -> bytes:
    return json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990},
        }
    ).encode()


def answer(status: str, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


async def judged(share: float) -> bytes | None:
    """Return an answer of the judge; None drops the connection."""
    kind = int(_chance.random() / share) if share else 99
    if kind == 0:
        return answer("429 Too Many Requests", b'{"error": {"message": "slow down"}}', "Retry-After: 0.2")
    if kind == 1:
        return answer("500 Internal Server Error", b'{"error": {"message": "oops"}}')
    if kind == 2:
        return None
    if kind == 3:
        return answer("200 OK", b"<html>not the API</html>")
    if kind == 4:
        return answer("200 OK", reply(""))
    if kind == 5:
        return answer("200 OK", reply(json.dumps({"verdict": "5 of 5"})))
    await asyncio.sleep(LATE_S if kind == 6 else 0.01)
    return answer("200 OK", reply(json.dumps(GOOD)))


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, share: float) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"(?i)content-length: (\d+)", head)
            await reader.readexactly(int(size.group(1)) if size else 0)
            if b"/chat/completions" in head:
                said = await judged(share)
            elif _chance.random() < share:
                said = answer("503 Service Unavailable", b"{}")
            else:
                said = answer("200 OK", b"")
            if said is None:
                return
            writer.write(said)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(share: float) -> None:
    server = await asyncio.start_server(lambda r, w: handle(r, w, share), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
