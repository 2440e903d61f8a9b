"""A forked child sends over connections of its own, as the preloaded workers of a server do."""

from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.process.observing import environment

pytestmark = pytest.mark.slow

APP = """
import os, sys
import ragtrace
from tests.process.observing import ask as capture

def ask():
    capture()
    return ragtrace.flush(20)

ragtrace.configure(sample_rate=1.0)
assert ask()
print("forking", flush=True)
sys.stdin.readline()
child = os.fork()
if child == 0:
    is_sent = ask() and ragtrace.shutdown(10)
    os._exit(0 if is_sent else 1)
assert os.waitpid(child, 0)[1] == 0
print("forked", flush=True)
sys.stdin.readline()
assert ask() and ragtrace.shutdown(10)
"""


def test_a_forked_child_sends_over_connections_of_its_own():
    ports: list[int] = []

    class Receiver(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            ports.append(self.client_address[1])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    exporters = {f"OTEL_{signal}_EXPORTER": "otlp" for signal in ("TRACES", "METRICS", "LOGS")}
    env = environment(**exporters, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
    app = subprocess.Popen(
        [sys.executable, "-c", APP], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert app.stdout.readline() == "forking\n"
        before = set(ports)
        ports.clear()
        app.stdin.write("go\n")
        app.stdin.flush()
        assert app.stdout.readline() == "forked\n"
        child = set(ports)
        ports.clear()
        app.communicate("go\n", timeout=60)
        assert app.returncode == 0
        assert before
        assert child
        assert not before & child
        assert set(ports) <= before  # the parent goes on with those it had
    finally:
        app.kill()
        app.wait()
        server.shutdown()
        server.server_close()
