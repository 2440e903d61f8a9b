"""The FastAPI example under a real uvicorn: streams, sessions, ratings, and a client that leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.command_line import environment
from tests.environments import free_port
from tests.examples.model_server import asked, model_server
from tests.examples.running import EXAMPLES, rows, run, with_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
RATINGS = "FROM scored WHERE metric = 'feedback'"
FOLDER = EXAMPLES / "fastapi_langchain"


@contextmanager
def served(folder: Path, *options: str) -> Iterator[str]:
    """Give the address of the running application; it ends as Ctrl-C ends it."""
    port = free_port()
    command = [sys.executable, str(FOLDER / "app.py"), "--port", str(port), *options]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            try:
                httpx.get(f"http://127.0.0.1:{port}/docs")
                break
            except httpx.TransportError:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_a_conversation_is_streamed_rated_and_scored(tmp_path):
    with served(tmp_path) as url:
        said = run(tmp_path, FOLDER / "ask.py", url)
    assert "A refund takes five working days. Refunds above 500 euros take 21 days." in said
    store = tmp_path / "help-desk.sqlite"
    assert rows(store, "SELECT session FROM scored WHERE metric = 'faithfulness'") == ["s-42", "s-42"]
    first, second = rows(store, "SELECT value FROM scored WHERE metric = 'faithfulness' ORDER BY run")
    assert first == 1.0
    assert second < 0.8
    ((trace_id, value, details),) = rows(store, f"SELECT trace_id, value, details {RATINGS}")
    assert f"trace {trace_id} rated" in said
    assert (value, json.loads(details)) == (0.0, {"comment": "My refund of 700 euros took three days."})


def test_a_client_that_leaves_ends_its_run_early(tmp_path):
    def reply(request):
        assert "A refund takes five working days." in asked(request)
        return "A refund takes five working days."

    with model_server(reply) as model, served(tmp_path, *with_model(model.url)) as url:
        question = {"question": "How long does a refund take?", "session": "s-1"}
        assert "event: end" in httpx.post(f"{url}/ask", json=question).text
        model.go_on.clear()
        with httpx.stream("POST", f"{url}/ask", json={**question, "session": "s-2"}) as stream:
            pieces = [json.loads(line[6:]) for line in _first(stream, 4) if line.startswith("data: ")]
        model.go_on.set()
        assert pieces[1:] == [{"text": "A "}, {"text": "refund "}, {"text": "takes "}]
        assert httpx.post(f"{url}/feedback", json={**pieces[0], "value": 0.5}).status_code == 202
        assert httpx.post(f"{url}/feedback", json={"trace_id": "1", "value": 2}).status_code == 422
    store = tmp_path / "help-desk.sqlite"
    states = "SELECT session, state, reason FROM scored WHERE metric = 'faithfulness' ORDER BY session"
    assert rows(store, states) == [("s-1", "ok", None), ("s-2", "na", "partial_run")]
    assert rows(store, f"SELECT trace_id {RATINGS}") == [pieces[0]["trace_id"]]


def _first(stream: httpx.Response, events: int) -> Iterator[str]:
    for line in stream.iter_lines():
        yield line
        events -= not line
        if not events:
            return
