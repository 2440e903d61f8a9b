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

from benchmarks.loopback_judge import completion, http_reply, serve

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
    return http_reply("200 OK", completion(json.dumps(text)))


async def main(seconds: float) -> None:
    async def answer(_head: bytes, request: bytes) -> bytes:
        await asyncio.sleep(seconds)
        return reply(request)

    await serve(answer)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
