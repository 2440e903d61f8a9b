"""Other people's senders and collectors around ``ragtrace serve``: OpenInference, Node's SDK and Rotel."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests.beside.test_beside import beside_python
from tests.environments import ROOT, free_port
from tests.ingest.serve.serving import evaluations, has_evaluations, serving, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

PAGE = ROOT / "docs" / "how-to" / "serve.md"
NODE = ROOT / "build" / "node"
KINDS = {"http": "HTTP", "proto": "HTTP", "grpc": "GRPC"}


def app() -> str:
    """Return the application of the how-to page."""
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(code)


def run_app(endpoint: str) -> None:
    environ = {"PATH": os.environ["PATH"], "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{endpoint}/v1/traces"}
    subprocess.run([str(beside_python()), "-c", app()], env=environ, check=True, timeout=120)


@contextmanager
def rotel(destination: str, folder: Path) -> Iterator[str]:
    """Run Rotel from its OTLP/HTTP address to a destination; skip where it is not installed."""
    agents = list(beside_python().parents[1].glob("lib/python*/site-packages/rotel/rotel-agent"))
    if not agents:
        pytest.skip("no Rotel on this machine: `make test-beside` installs it in build/beside")
    grpc, http = free_port(), free_port()
    process = subprocess.Popen(
        [
            str(agents[0]), "start", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}",
            "--otlp-http-endpoint", f"127.0.0.1:{http}", "--exporter", "otlp", "--otlp-exporter-protocol", "http",
            "--otlp-exporter-endpoint", destination, "--pid-file", str(folder / f"{http}.pid"),
            "--log-file", str(folder / f"{http}.log"),
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert wait_for(lambda: is_open(http)), "Rotel did not start"
        yield f"http://127.0.0.1:{http}"
    finally:
        process.kill()
        process.wait()


def is_open(port: int) -> bool:
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


def check(found: Span) -> None:
    """The application's second sentence stands in no passage."""
    assert attributes_of(found.attributes)["ragtrace.score.faithfulness"] == 0.5
    assert found.name == "evaluation help-centre"


def test_the_application_of_the_how_to_is_scored() -> None:
    with OtlpReceiver() as receiver, serving(receiver.endpoint, RAGTRACE_CONSOLE="1") as serve:
        run_app(serve.http)
        assert receiver.wait_for(has_evaluations(1), 60.0)
        check(evaluations(receiver)[0])
        assert "faithfulness" in serve.says("faithfulness")


def test_a_collector_stands_before_and_behind(tmp_path: Path) -> None:
    with (
        OtlpReceiver() as receiver,
        rotel(receiver.endpoint, tmp_path) as behind,
        serving(behind) as serve,
        rotel(serve.http, tmp_path) as before,
    ):
        run_app(before)
        assert receiver.wait_for(has_evaluations(1), 60.0)
        assert receiver.wait_for(lambda it: bool(it.logs), 60.0)
        check(evaluations(receiver)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_node_s_exporters_send_to_it(kind: str) -> None:
    node = shutil.which("node")
    if node is None or not (NODE / ".ready").exists():
        pytest.skip("no Node exporters on this machine: `make test-beside` installs them in build/node")
    with OtlpReceiver() as receiver, serving(receiver.endpoint) as serve:
        url = f"http://127.0.0.1:{serve.ports[KINDS[kind]]}" + ("" if kind == "grpc" else "/v1/traces")
        sender = Path(__file__).with_name("node") / "send.mjs"
        done = subprocess.run(
            [node, str(sender), kind, url],
            env={"PATH": os.environ["PATH"], "NODE_FOLDER": str(NODE)},
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        ids = json.loads(done.stdout)
        assert receiver.wait_for(has_evaluations(1), 60.0)
    (found,) = evaluations(receiver)
    assert (found.trace_id.hex(), found.parent_span_id.hex()) == (ids["traceId"], ids["spanId"])
    assert attributes_of(found.attributes)["ragtrace.score.faithfulness"] == 1.0
