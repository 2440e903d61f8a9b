"""Processes and commands, as the guards start them and look at them from outside."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_OURS = ("RAGTRACE_", "OTEL_", "OPENAI_")
_QUIET = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}


def environment(**more):
    """Return the environment of a process that exports nowhere and has no other settings than those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {**kept, **_QUIET, "PYTHONPATH": str(ROOT), **more}


def started(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more):
    """Start a Python; `more` is its environment."""
    command = [sys.executable, *map(str, args)]
    return subprocess.Popen(command, env=environment(**more), cwd=ROOT, stdout=stdout, stderr=stderr, text=True)


def ran(*args, timeout=120, stdin="", **more):
    """Run a Python to its end; `more` is its environment."""
    command = [sys.executable, *map(str, args)]
    return subprocess.run(
        command, env=environment(**more), cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip


def command(*args, **more):
    """Run a command of ragtrace to its end."""
    return ran("-m", "ragtrace", *args, **more)


def exported(store):
    """Return the rows of a store as `ragtrace export` writes them."""
    done = command("export", "--store", store, "--out", "-")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def scores_in(receiver):
    """Return the attributes of every score that arrived as an event."""
    from ragtrace.testing.otlp import attributes_of  # an application that is to end soon imports this file too

    events = [(event, attributes_of(event.attributes)) for event in receiver.logs]
    return [
        {**about, "trace_id": event.trace_id.hex()} for event, about in events if "ragtrace.evaluation.key" in about
    ]


def until(condition, seconds=60, running=None):
    """Wait for a condition; a process that was to bring it about and has ended says why."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert running is None or running.poll() is None, (running.returncode, running.communicate())
        assert time.monotonic() < deadline
        time.sleep(0.02)


def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def got(port, path):
    """Return the status and the text that a local server answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def is_up(port):
    try:
        return got(port, "/up")[0] == 200
    except OSError:
        return False
