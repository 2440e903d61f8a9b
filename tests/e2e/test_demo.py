"""`ragtrace demo` as a person runs it: a process of its own, its output, its file and its endpoint."""

from __future__ import annotations

import asyncio
import http.client
import http.server
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import pytest
from msgspec.structs import replace

from ragtrace.demo import DemoOptions, Incident
from ragtrace.judges import OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import record_from_json, standing_by, standing_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT_S = 120


def command(out: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "ragtrace", "demo", "--out", str(out), "--port", "0", *flags]


def environment() -> dict[str, str]:
    foreign = ("OTEL_", "RAGTRACE_", "OPENAI_", "LANGCHAIN_", "LANGSMITH_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    )


def run(arguments: list[str]) -> tuple[int, str]:
    process = start(arguments)
    said, _ = process.communicate(timeout=LIMIT_S)
    return process.returncode, said


def begin(out: Path, *flags: str) -> subprocess.Popen[str]:
    return start(command(out, *flags))


def finish(out: Path, *flags: str) -> tuple[int, str]:
    return run(command(out, *flags))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def said_until(process: subprocess.Popen[str], wanted: str) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if wanted in line:
            return said
    raise AssertionError(f"{wanted!r} was never said:\n{said}")


def scraped(url: SplitResult, wanted: re.Pattern[str]) -> str:
    """Scrape until the pattern is there; the demo runs meanwhile."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(url.netloc, timeout=10)
        connection.request("GET", url.path, headers={"Accept": "application/openmetrics-text"})
        body = connection.getresponse().read().decode()
        connection.close()
        if wanted.search(body):
            return body
    raise AssertionError(f"{wanted.pattern} never appeared in:\n{body}")


@pytest.mark.slow
def test_the_drop_is_found_after_the_incident_and_the_records_can_be_used(tmp_path: Path) -> None:
    out = tmp_path / "demo.jsonl"
    process = begin(out, "--fast", "--questions", "300", "--save-svg", str(tmp_path / "demo.svg"))
    said = said_until(process, "OpenMetrics endpoint:")
    url = re.search(r"http://127\.0\.0\.1:\d+/metrics", said)
    assert url is not None, said
    counted = re.compile(r'ragtrace_score_n_total\{[^}]*gen_ai_evaluation_name="faithfulness"[^}]*\} [1-9]')
    assert "trace_id=" in scraped(urlsplit(url.group()), counted), "no exemplar carries a trace id"
    rest, _ = process.communicate(timeout=LIMIT_S)
    said += rest
    assert process.returncode == 0, said

    fall = re.search(r"found at question (\d+), (\d+) into the incident; change placed at (\d+)", said)
    assert fall is not None, said
    question, after, changed = map(int, fall.groups())
    assert 151 <= question <= 200
    assert question - 150 == after
    assert 130 <= changed <= question
    assert "faithfulness fell from 0.9" in said
    assert said.index("the incident begins") < said.index("FOUND")
    assert "not in the contexts" in said
    assert "the model: unsupported grew from" in said
    assert "1. tag channel:app" in said
    status, again = run([sys.executable, "-m", "ragtrace", "investigate", str(out), "--metric", "faithfulness"])
    assert status == 0, again
    assert again.splitlines()[:5] == said.partition("Diagnosis, from the scores alone\n")[2].splitlines()[:5]

    lines = lines_of(out)
    assert [line["id"] for line in lines] == [f"demo-{n:04d}" for n in range(1, 301)]
    assert all(line["scores"]["faithfulness"]["state"] in {"ok", "na"} for line in lines)
    record = record_from_json(lines[0], fallback_id="1")
    assert [len(pool.passages) for pool in record.pools] == [12, 4, 4]
    asyncio.run(check_planted(lines))
    check_resume(out)
    picture = (tmp_path / "demo.svg").read_text(encoding="utf-8")
    assert "FOUND" in picture
    assert "unsupported" in picture
    assert "Examples" not in picture  # below them stands a command with a path of this machine
    assert "font-face" not in picture


async def check_planted(lines: list[dict[str, Any]]) -> None:
    """Every invented sentence that the judge marks makes its run `unsupported`, with labels and without."""
    incident, count = Incident(first=DemoOptions().incident_at, seed=DemoOptions().seed), 0
    for number, line in enumerate(lines, start=1):
        planted = incident.apply("", number, has_answer=True).strip()
        if not planted or planted not in line["answer"]:
            continue
        standing = standing_of(line["scores"])
        if not any(claim.text in planted for claim in standing.claims):
            assert standing.word != "good", line["answer"]
            continue
        count += 1
        assert (standing.verdict, standing.word) == ("unsupported", "bad"), line["answer"]
        assert standing.details["supported"] is False
        record = replace(record_from_json(line, fallback_id=""), labels=None)
        metrics = select(["faithfulness", "invented_specifics", "diagnosis"])
        unlabelled = standing_by(await evaluate(metrics, EvalContext(record, judge=OverlapJudge())))
        assert unlabelled.verdict == "unsupported", line["answer"]
    assert count >= 50, "of about 55 that are planted"


def check_resume(out: Path) -> None:
    before = out.read_bytes()
    kept = before.splitlines(keepends=True)[:290]
    out.write_bytes(b"".join(kept))
    source = out.with_name("all.jsonl")
    source.write_bytes(before)
    score = [sys.executable, "-m", "ragtrace", "score", str(source), "--metrics", "faithfulness"]
    status, said = run([*score, "--out", str(out), "--resume"])
    assert status == 0, said
    again = lines_of(out)
    assert [line["id"] for line in again[:290]] == [json.loads(line)["id"] for line in kept]
    was = {line["id"]: values_of(line)["faithfulness"] for line in lines_of(source)}
    assert {line["id"]: values_of(line)["faithfulness"] for line in again} == was


@pytest.mark.slow
def test_without_an_incident_no_fall_is_found(tmp_path: Path) -> None:
    out = tmp_path / "demo.jsonl"
    status, said = finish(out, "--fast", "--questions", "240", "--no-incident", "--seed", "1")
    assert status == 0, said
    assert "FOUND" not in said
    assert "No fall found, as it should be without an incident." in said
    assert "faithfulness: nothing is shown to have fallen" in said


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_and_keeps_the_file(tmp_path: Path) -> None:
    out = tmp_path / "demo.jsonl"
    process = begin(out, "--rate", "50", "--questions", "300")
    said_until(process, "question 30 of 300")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert re.search(r"Stopped after \d+ of 300 questions", said)
    assert len(lines_of(out)) >= 29


def test_a_missing_langchain_is_one_line_that_names_the_extra(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['langchain_core'] = None; from ragtrace.cli import main; sys.exit(main())"
    out = tmp_path / "demo.jsonl"
    status, said = run([sys.executable, "-c", hidden, "demo", "--out", str(out)])
    assert status == 2
    assert said == (
        'ragtrace: langchain-core is not installed: pip install ".[langchain]" in your clone;'
        ' of a release "ragtrace-otel[langchain]"\n'
    )
    assert not out.exists()


def test_another_file_of_that_name_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "notes.jsonl"
    out.write_text("mine\n", encoding="utf-8")
    status, said = finish(out)
    assert status == 2
    assert len(said.splitlines()) == 1
    assert "--out" in said
    assert out.read_text(encoding="utf-8") == "mine\n"


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes OTLP over HTTP, and answers as a model that knows one sentence."""

    seen: list[str]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(self.path)
        answer = {"role": "assistant", "content": "Pass RagtraceHandler() in the callbacks."}
        reply = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "one-sentence",
            "choices": [{"index": 0, "finish_reason": "stop", "message": answer}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
        }
        self._reply(json.dumps(reply).encode() if self.path.endswith("completions") else b"")

    def do_GET(self) -> None:
        self._reply(json.dumps({"object": "list", "data": [{"id": "one-sentence", "object": "model"}]}).encode())

    def _reply(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []
    handler = type("Handler", (Collector,), {"seen": seen})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", seen
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
def test_a_seed_repeats_a_run_on_a_terminal_too_and_a_taken_port_is_replaced(
    tmp_path: Path, collector: tuple[str, list[str]]
) -> None:
    plain, shown = tmp_path / "plain.jsonl", tmp_path / "shown.jsonl"
    flags = ("--fast", "--questions", "20", "--seed", "5")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, said = finish(plain, *flags, "--port", port, "--otlp", collector[0])
    assert status == 0, said
    assert f"Port {port} is taken" in said
    assert {"/v1/traces", "/v1/metrics", "/v1/logs"} <= set(collector[1])
    on_terminal = run_on_terminal(command(shown, *flags))
    assert on_terminal.startswith("ragtrace demo: loading "), "before anything that takes long"
    assert "question 20 of 20" in on_terminal
    assert "95 % interval" in on_terminal
    assert facts_of(plain) == facts_of(shown)


def facts_of(path: Path) -> list[Any]:
    return [(line["query"], line["answer"], values_of(line)) for line in lines_of(path)]


def values_of(line: dict[str, Any]) -> dict[str, float | None]:
    """Return the values of a line to nine digits."""
    values = {name: score["value"] for name, score in line["scores"].items()}
    return {name: None if value is None else round(value, 9) for name, value in values.items()}


def run_on_terminal(arguments: list[str]) -> str:
    """Run a command on a pseudo-terminal of 100 x 50 and return what it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        arguments,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment(), "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "50"},
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # how Linux says that the other end has gone
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    assert process.wait(LIMIT_S) == 0, said.decode(errors="replace")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode(errors="replace"))


@pytest.mark.slow
def test_a_real_model_behind_a_base_url_answers(tmp_path: Path, collector: tuple[str, list[str]]) -> None:
    out = tmp_path / "demo.jsonl"
    flags = ("--fast", "--questions", "4", "--no-incident", "--base-url", f"{collector[0]}/v1")
    status, said = finish(out, *flags)
    assert status == 0, said
    assert "answers one-sentence" in said
    lines = lines_of(out)
    assert {line["answer"] for line in lines} == {"Pass RagtraceHandler() in the callbacks."}
    assert {line["model"] for line in lines} == {"one-sentence"}
    assert {line["usage"]["input_tokens"] for line in lines} == {7}


@pytest.mark.slow
def test_a_wrong_choice_is_one_line(tmp_path: Path) -> None:
    out, picture = tmp_path / "demo.jsonl", tmp_path / "no" / "demo.svg"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    status, said = finish(out, "--base-url", f"http://ada:s3cret@127.0.0.1:{port}/v1")
    assert status == 2, said
    assert f"http://***@127.0.0.1:{port}/v1: the server lists no models" in said
    assert "s3cret" not in said
    status, said = finish(out, "--fast", "--questions", "2", "--no-incident", "--save-svg", str(picture))
    assert status == 2, said
    assert f"ragtrace: --save-svg {picture}: No such file or directory; choose another file" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_model_that_is_down_ends_the_run_with_a_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    status, said = finish(
        tmp_path / "demo.jsonl", "--fast", "--model", "m", "--base-url", f"http://127.0.0.1:{port}/v1"
    )
    assert status == 1, said
    assert "failed 3 times in a row" in said
    assert "Traceback" not in said
