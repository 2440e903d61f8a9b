"""A judge on loopback that answers each call after a while: ``python -m benchmarks.batch.judge SECONDS``.

Its verdict depends on the number of the lab in the request, so that equal records have equal scores. The fence
around data is random, so no two requests are the same. It prints its port, and runs until its input is closed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from zlib import crc32

VERDICTS = ("supported", "not_supported")


def reply(request: bytes) -> bytes:
    lab = re.search(rb"Where is lab \d+", request)
    verdict = {"id": 1, "sources": [1], "reason": "", "verdict": VERDICTS[crc32(lab.group() if lab else b"") % 2]}
    text = {
        "attempted": True,
        "noncommittal": False,
        "claims": ["A claim."],
        "verdicts": [verdict],
        "citations": [],
    }
    message = {"role": "assistant", "content": json.dumps(text)}
    body = json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990},
        }
    ).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"(?i)content-length: (\d+)", head)
            request = await reader.readexactly(int(size.group(1)) if size else 0)
            await asyncio.sleep(seconds)
            writer.write(reply(request))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(seconds: float) -> None:
    server = await asyncio.start_server(lambda r, w: handle(r, w, seconds), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
