"""By every kind of end: what becomes of units that are not scored yet, and of scores that are not sent yet.

The table is the one in docs/concepts/threat-model.md, which is held against it.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from ragtrace.stores.sqlite import SqliteStore
from ragtrace.testing.otlp import OtlpReceiver
from tests.process.ends_app import LATE, SCORED
from tests.process.full_disk import small_disk
from tests.process.observing import ROOT, accounts, closed_port, environment, until
from tests.process.test_app_servers import get, is_up
from tests.process.test_limits_wired import GOOD
from tests.unit.judges.openai.judge_server import Answer, JudgeServer, completion

pytestmark = pytest.mark.slow

PLACES = ("memory", "spool", "spool and store")
LOST = ("units lost, scores lost", "units kept, scores lost", "units kept, scores in the store")
SENT = ("units lost, scores sent", "units kept, scores sent", "units kept, scores sent")
WHOLE = ("units scored, scores sent", "units kept, scores sent", "units kept, scores sent")
ENDS = {
    "normal exit": WHOLE,
    "a forked child that ends normally": WHOLE,
    "SIGTERM under gunicorn": WHOLE,
    "SIGTERM under uvicorn, `ragtrace.shutdown()` in its lifespan": WHOLE,
    "a judge that hangs at exit": SENT,
    "SIGTERM under uvicorn": LOST,
    "SIGTERM without a handler": LOST,
    "SIGKILL": LOST,
    "`os._exit`": LOST,
    "a child that `multiprocessing.Pool` terminates": LOST,
}
HOW = {
    "normal exit": "normal",
    "a forked child that ends normally": "fork",
    "a judge that hangs at exit": "normal",
    "SIGTERM without a handler": "SIGTERM",
    "SIGKILL": "SIGKILL",
    "`os._exit`": "os._exit",
    "a child that `multiprocessing.Pool` terminates": "pool",
}
SERVERS = {
    "SIGTERM under gunicorn": ["gunicorn", "tests.process.ends_app", "--bind"],
    "SIGTERM under uvicorn, `ragtrace.shutdown()` in its lifespan": [
        "uvicorn",
        "tests.process.ends_app:asgi_with_lifespan",
        "--log-level",
        "error",
        "--port",
    ],
    "SIGTERM under uvicorn": ["uvicorn", "tests.process.ends_app:asgi", "--log-level", "error", "--port"],
}


@pytest.fixture
def judge():
    """Return a judge that answers the early questions, and the late ones when it is told to."""
    server, is_quick, is_over = JudgeServer(), threading.Event(), threading.Event()
    answer = Answer(200, completion(GOOD))

    def reply(request):
        if "late" in str(request.body) and not is_quick.is_set():
            is_over.wait(60)
        return answer

    server.always, server.is_quick = reply, is_quick
    server.start()
    yield server
    is_over.set()
    server.stop()


def settings(judge, receiver, place, folder, **more):
    given = {
        "RAGTRACE_JUDGE_BASE_URL": judge.url,
        "OPENAI_API_KEY": "k",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
        "OTEL_BLRP_SCHEDULE_DELAY": "3600000",  # what is not sent at the end is not sent
        **more,
    }
    if place != "memory":
        given["RAGTRACE_SPOOL"] = str(folder / "spool.sqlite")
    if place == "spool and store":
        given["RAGTRACE_STORE"] = str(folder / "spool.sqlite")
    return environment(**given)


def serve(server, env):
    port = closed_port()
    last = str(port) if server[-1] == "--port" else f"127.0.0.1:{port}"
    process = subprocess.Popen([sys.executable, "-m", *server, last], env=env, cwd=ROOT, stderr=subprocess.PIPE)
    try:
        until(lambda: is_up(port), running=process)
        assert get(port, "/work")[0] == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def end(name, env):
    if name in SERVERS:
        serve(SERVERS[name], env)
    else:
        command = [sys.executable, "-m", "tests.process.ends_app", HOW[name]]
        subprocess.run(command, env=env, cwd=ROOT, check=False, timeout=120, capture_output=True)


def became(receiver, path, place):
    """Return what became of the late units and of the early scores, in the words of the table."""
    sent = {event.trace_id for event in receiver.logs}
    if place == "memory":
        units = {SCORED + LATE: "scored"}.get(len(sent), "lost")
    else:
        found = accounts(path)
        units = "kept" if found.pending + found.ends.get(("scored", ""), 0) == SCORED + LATE else "lost"
    if len(sent) >= SCORED:
        return f"units {units}, scores sent"
    is_stored = place == "spool and store" and stored(path) >= SCORED
    return f"units {units}, scores {'in the store' if is_stored else 'lost'}"


def stored(path):
    with closing(SqliteStore(path)) as store:
        return len({row["trace_id"] for row in store.rows()})


@pytest.mark.parametrize("name", ENDS)
def test_what_is_lost_by_kind_of_end(name, judge, tmp_path):
    if "hangs" not in name and ENDS[name] != LOST:
        judge.is_quick.set()

    def run(place):
        folder = tmp_path / place.replace(" ", "-")
        folder.mkdir()
        with OtlpReceiver() as receiver:
            end(name, settings(judge, receiver, place, folder))
            return became(receiver, folder / "spool.sqlite", place)

    with ThreadPoolExecutor(len(PLACES)) as together:
        assert tuple(together.map(run, PLACES)) == ENDS[name]


def test_a_spool_on_a_full_disk_loses_what_ends_with_the_process(judge, tmp_path):
    with small_disk(tmp_path / "disk") as disk, OtlpReceiver() as receiver:
        filler = str(disk.folder / "filler")
        end("normal exit", settings(judge, receiver, "spool and store", disk.folder, FILLER=filler))
        disk.free()
        assert became(receiver, disk.folder / "spool.sqlite", "spool and store") == SENT[0]


def test_the_page_s_table_says_the_same():
    page = (ROOT / "docs" / "concepts" / "threat-model.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", page, re.MULTILINE)
    ]
    shown = {row[0]: tuple(row[1:]) for row in rows}
    assert shown["kind of end"] == PLACES
    assert {name: shown[name] for name in ENDS} == ENDS
