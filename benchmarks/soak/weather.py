"""A judge and a collector on loopback that fail now and then: ``python -m benchmarks.soak.weather SHARE``.

Of the judge's replies this share each is a 429, a 500, a broken connection, junk, an empty text, a wrong form, a
late one; of the collector's answers this share is a 503. It prints its port and runs until its input is closed.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys

from benchmarks.loopback_judge import completion, http_reply, serve

GOOD = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["The lab is in Oslo."],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
    "citations": [],
}
LATE_S = 3.0
_chance = random.Random(1)


async def judged(share: float) -> bytes | None:
    """Return an answer of the judge; None drops the connection."""
    kind = int(_chance.random() / share) if share else 99
    if kind == 0:
        return http_reply("429 Too Many Requests", b'{"error": {"message": "slow down"}}', "Retry-After: 0.2")
    if kind == 1:
        return http_reply("500 Internal Server Error", b'{"error": {"message": "oops"}}')
    if kind == 2:
        return None
    if kind == 3:
        return http_reply("200 OK", b"<html>not the API</html>")
    if kind == 4:
        return http_reply("200 OK", completion(""))
    if kind == 5:
        return http_reply("200 OK", completion(json.dumps({"verdict": "5 of 5"})))
    await asyncio.sleep(LATE_S if kind == 6 else 0.01)
    return http_reply("200 OK", completion(json.dumps(GOOD)))


async def main(share: float) -> None:
    async def answer(head: bytes, _body: bytes) -> bytes | None:
        if b"/chat/completions" in head:
            return await judged(share)
        if _chance.random() < share:
            return http_reply("503 Service Unavailable", b"{}")
        return http_reply("200 OK", b"")

    await serve(answer)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
