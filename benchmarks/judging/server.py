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
from benchmarks.loopback_judge import completion, http_reply, serve

_NAME = re.compile(rb'"name":\s*"(\w+)"')


def answers() -> dict[bytes, bytes]:
    """Return the whole HTTP answer for each schema name."""
    return {name.encode(): http_reply("200 OK", completion(json.dumps(reply))) for name, reply in REPLIES.items()}


async def main(latency_s: float) -> None:
    known = answers()

    async def answer(_head: bytes, body: bytes) -> bytes:
        # Strict schemas stand behind the messages, where the format's name does too.
        name = _NAME.findall(body[body.rindex(b"response_format") :])[0]
        await asyncio.sleep(latency_s)
        return known[name]

    await serve(answer)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
