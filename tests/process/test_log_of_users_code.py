"""What the log says of an exception in code of the application, with content=none."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

APPLICATION = '''
import json, logging, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
logging.basicConfig(stream=sys.stderr, level=getattr(logging, sys.argv[2]), format="%(levelname)s %(message)s")
import ragtrace

SECRET = "PLANTED patient Ada"


def fail(kind):
    if sys.argv[1] == kind:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(f"no number: {SECRET}") from error


@ragtrace.metric(needs=("answer",), range=(0, 1))
def mine(context) -> float:
    """A metric that reads the answer."""
    fail("metric")
    return 1.0


class Echo(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        said = json.dumps({"error": {"message": "not understood: " + asked.decode(), "code": "odd"}}).encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
threading.Thread(target=server.serve_forever, daemon=True).start()
asked = {"judge": "openai:any", "judge_base_url": f"http://127.0.0.1:{server.server_port}/v1", "judge_api_key": "k"}


class Sink:
    def emit(self, record, scores):
        fail("sink")


class Exporter(Sink):
    def __repr__(self):
        return SECRET


def redact(text):
    fail("redact")
    return text


ragtrace.configure(
    sample_rate=1.0, metrics=["mine", "faithfulness"], content="none", sinks=[Exporter()], redact=redact,
    **(asked if sys.argv[1] == "judge" else {}),
)
with ragtrace.query(f"Who is {SECRET}?") as run:
    run.retrieved([f"{SECRET} is in Oslo."])
    run.answered(f"{SECRET} is in Oslo.")
ragtrace.flush(20)
ragtrace.shutdown(10)
'''
RAISED = {
    "metric": "metric mine failed on record",
    "judge": "answered 400",
    "sink": "ValueError at tmp/app.py:",
    "redact": "redact",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RAISED)
def test_an_exception_of_the_application_quotes_no_text_above_debug(kind, tmp_path):
    (tmp_path / "tmp").mkdir()
    app = tmp_path / "tmp" / "app.py"
    app.write_text(APPLICATION, encoding="utf-8")
    quiet = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    for level in ("INFO", "DEBUG"):
        done = subprocess.run(
            [sys.executable, str(app), kind, level],
            capture_output=True, text=True, env={**os.environ, **quiet}, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        above = [line for line in done.stderr.splitlines() if line.startswith(("INFO", "WARNING", "ERROR"))]
        assert "PLANTED" not in "\n".join(above)
        if level == "INFO":
            assert "PLANTED" not in done.stderr
            assert "Traceback" not in done.stderr
            assert RAISED[kind] in done.stderr
