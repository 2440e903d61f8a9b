"""The ways in which a judge server fails. It repeats the key wherever a server can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.guards.judge_server import Answer, completion, refusal
from tests.unit.judges.openai.asking import KEY

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

GZIP = {"Content-Encoding": "gzip"}
SAID = f"Authorization: Bearer {KEY}"
FAULTS: dict[str, Callable[[threading.Event], Answer]] = {
    "no answer in time": lambda never: Answer(hold=never),
    "a body that never ends": lambda never: Answer(200, drip_until=never),
    "a wrong key": lambda _: refusal(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"),
    "no right": lambda _: refusal(403, SAID),
    "no such model": lambda _: refusal(404, SAID),
    "another form": lambda _: refusal(400, SAID, param=KEY),
    "a filter": lambda _: refusal(400, SAID, code="content_filter"),
    "a long prompt": lambda _: refusal(413, f"context length: {SAID}"),
    "too fast": lambda _: refusal(429, SAID),
    "no money": lambda _: refusal(429, SAID, code="insufficient_quota"),
    "broken": lambda _: refusal(500, SAID),
    "broken, in HTML": lambda _: Answer(502, f"<h1>{SAID}</h1>".encode()),
    "broken gzip": lambda _: Answer(200, b"\x1f\x8b\x08 broken " + KEY.encode(), GZIP),
    "an error in broken gzip": lambda _: Answer(500, b"\x1f\x8b\x08 broken " + KEY.encode(), GZIP),
    "another packing": lambda _: Answer(200, KEY.encode(), {"Content-Encoding": "br"}),
    "a redirect": lambda _: Answer(307, {}, {"Location": f"http://{KEY}.example/{KEY}?key={KEY}"}),
    "bad JSON": lambda _: Answer(200, f'{{"choices": [{KEY}'.encode()),
    "no message": lambda _: Answer(200, {"choices": [], "key": KEY}),
    "an error in a 200": lambda _: Answer(200, {"error": {"message": SAID}}),
    "a cut body": lambda _: Answer(200, completion(KEY), drop=True),
    "a cut error": lambda _: Answer(500, {"error": {"message": SAID}}, drop=True),
}  # fmt: skip
