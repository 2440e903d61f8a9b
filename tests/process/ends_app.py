"""An application of the test of ends: it captures, waits until all is in its place, and ends as ``HOW`` says.

Two runs are scored, and their events wait in the exporter. Three more are finished: their judge answers or hangs. What
ends the process comes next. Under an application server the first request does the work.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import ragtrace
from ragtrace.service import current
from tests.process.observing import ask, until

SCORED, LATE = 2, 3


class Emitted:
    """A sink that counts what is published."""

    def __init__(self):
        self.count = 0

    def emit(self, record, scores):
        self.count += 1


def work(_=None):
    emitted = Emitted()
    ragtrace.configure(sinks=[emitted], sample_rate=1.0, metrics=["faithfulness"], judge="openai:m")
    for number in range(SCORED):
        ask(question=f"early {number}?")
    until(lambda: emitted.count == SCORED)
    if filler := os.environ.get("FILLER"):
        fill(Path(filler))
    for number in range(LATE):
        ask(question=f"late {number}?")
    if not filler and current().settings.spool:
        until(lambda: current().queue.counters(is_fresh=True).offered == SCORED + LATE)


def fill(filler):
    try:
        with filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        return


def application(environ, start_response):
    if environ["PATH_INFO"] == "/work":
        work()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b""]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/work":
        work()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def asgi_with_lifespan(scope, receive, send):
    if scope["type"] != "lifespan":
        await asgi(scope, receive, send)
        return
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.to_thread(ragtrace.shutdown, 10.0)
    await send({"type": "lifespan.shutdown.complete"})


if __name__ == "__main__":
    how = sys.argv[1]
    if how == "pool":
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.apply(work)
        sys.exit(0)
    if how == "fork" and (child := os.fork()):
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    work()
    if how == "os._exit":
        os._exit(0)
    elif how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
        signal.pause()
