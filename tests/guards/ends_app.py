"""An application of the table of kills: it captures, waits until all is in its place, and ends as it is told.

Two runs are scored, and their events wait in the exporter. Three more are finished: their judge answers or hangs. What
ends the process comes next. Under an application server the first request does the work. Settings come from the
environment; ``FOLDER`` is where its file is, ``NOTES`` where it notes its traces.

``hand-over`` captures for a worker and ends. ``produce NAME FIRST LAST`` captures units in portions, notes each
portion once it is handed over, and goes on after the last portion that is noted.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import ragtrace
from tests.guards.processes import until

SCORED, LATE = 2, 3
EARLY = [f"early {number}?" for number in range(SCORED)]
LATER = [f"late {number}?" for number in range(LATE)]
PORTION = 5


class Emitted:
    """A sink that counts what is published."""

    def __init__(self):
        self.count = 0

    def emit(self, record, scores):
        self.count += 1


def ask(question, **about):
    with ragtrace.query(question, **about) as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
        run.answered("The lab is in Oslo.")
    return run.trace_id


def asked(kind, questions):
    with Path(os.environ["NOTES"], f"{kind}-traces").open("a") as traces:
        traces.writelines(f"{ask(question)}\n" for question in questions)


def is_written(text):
    """Tell whether a text of a run that waits is in the file or its journal."""
    return any(text.encode() in path.read_bytes() for path in Path(os.environ["FOLDER"]).glob("*.sqlite*"))


def work(_=None):
    emitted = Emitted()
    ragtrace.configure(sinks=[emitted])
    asked("early", EARLY)
    until(lambda: emitted.count == SCORED)
    if filler := os.environ.get("FILLER"):
        fill(Path(filler))
    asked("late", LATER)
    if os.environ.get("UNTIL_WRITTEN"):
        until(lambda: all(is_written(question) for question in LATER))


def fill(filler):
    try:
        with filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        return


def hand_over():
    asked("early", EARLY)
    asked("late", LATER)
    sys.exit(0 if ragtrace.shutdown(30) else 1)


def produce(name, first, last):
    noted = Path(os.environ["NOTES"], f"produced-{name}")
    begin = int(noted.read_text().split()[-1]) if noted.exists() else first
    for start in range(begin, last, PORTION):
        for number in range(start, start + PORTION):
            ask(f"unit {number}?", session=f"unit-{number}")
            time.sleep(float(os.environ.get("PACE_S", "0")))
        assert ragtrace.flush(30)
        with noted.open("a") as file:
            file.write(f"{start + PORTION}\n")


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


def main(how, *rest):
    if level := os.environ.get("LOGGED"):
        logging.basicConfig(level=level)
    if how == "produce":
        produce(rest[0], int(rest[1]), int(rest[2]))
        return
    if how == "hand-over":
        hand_over()
    if how == "pool":
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.apply(work)
        sys.exit(0)
    if how == "fork" and (child := os.fork()):
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    work()
    if how == "os._exit":
        os._exit(0)
    elif how == "sys.exit":
        sys.exit(3)
    elif how == "exception":
        raise RuntimeError("nobody handles it")
    elif how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
