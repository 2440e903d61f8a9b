"""A web application that answers over its own spool, for real application servers: ``application`` and ``asgi``."""

from __future__ import annotations

import os

import ragtrace

ragtrace.configure(sample_rate=1.0, content="full", scorer="worker")


def answer(question):
    with ragtrace.query(question) as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
        run.answered("The lab is in Oslo.")


def application(environ, start_response):
    answer(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    answer(scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
