"""Health and readiness over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ragtrace.capture import internal_errors
from ragtrace.errors import ConfigError
from ragtrace.host import unwritable
from ragtrace.model import RagRecord
from ragtrace.queues import MemoryQueue, SqliteQueue, Unit
from ragtrace.scoring import Blocked, Caps, JudgeLimiter, Outcome, Worker
from ragtrace.service import HealthChecks, HealthEndpoint, health, longest_quiet_s, reasons_of
from tests.guards.processes import until


def get(endpoint, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=30)
    connection.request(method, path)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, json.loads(body) if body else None


@pytest.fixture
def serve():
    made = []

    def start(health=None, ready=None, **more):
        made.append(HealthEndpoint(health or {}, ready or {}, **more))
        return made[-1]

    yield start
    for endpoint in made:
        endpoint.close()


def test_what_is_wrong_is_503_with_its_reasons_and_comes_back(serve):
    state = {"queue": None}
    endpoint = serve(ready={"queue": lambda: state["queue"], "spool": lambda: None})
    assert get(endpoint, "/readyz") == (
        200, {"status": "ok", "checks": {"queue": "ok", "spool": "ok"}, "reasons": []},
    )  # fmt: skip
    state["queue"] = "full (8 of 8)"
    status, said = get(endpoint, "/readyz?verbose")
    assert (status, said["status"], said["checks"]["queue"]) == (503, "unavailable", "failed")
    assert said["reasons"] == ["queue: full (8 of 8)"]
    assert get(endpoint, "/healthz")[0] == 200, "readiness is no matter of health"
    state["queue"] = None
    assert get(endpoint, "/readyz")[0] == 200


def test_another_path_is_404_and_head_has_no_body(serve):
    endpoint = serve(health={"thread": lambda: "gone"})
    assert get(endpoint, "/")[0] == 404
    assert get(endpoint, "/healthz", "HEAD") == (503, None)


def test_a_fact_that_raises_is_not_well_and_is_counted(serve):
    def broken():
        raise RuntimeError("secret-in-a-message")

    before = internal_errors().get("ragtrace.service.health.judge", 0)
    status, said = get(serve(ready={"judge": broken}), "/readyz")
    assert (status, said["reasons"]) == (503, ["judge: cannot be told (RuntimeError)"])
    assert internal_errors()["ragtrace.service.health.judge"] == before + 1


async def scored(job):
    return Outcome()


def failed(checks):
    return [f"{name}: {reason}" for name, reason in reasons_of(checks).items() if reason]


@pytest.fixture
def idle():
    return Worker(MemoryQueue(8, 10_000), scored)


def test_a_real_scorer_is_well_before_and_while_it_runs_and_not_when_its_thread_has_ended():
    worker = Worker(MemoryQueue(8, 10_000), scored)
    checks = HealthChecks(worker, MemoryQueue())
    later = HealthChecks(worker, MemoryQueue(), clock=lambda: worker.turned_at_s + 10.5)
    assert failed(checks.health) == [], "the thread starts with the first run"
    worker.begin()
    try:
        assert failed(checks.health) == []
        assert failed(later.health) == ["loop: the scorer's loop has not turned for 10 s"]
    finally:
        assert worker.stop(30)
    assert failed(checks.health) == ["thread: the scorer's thread has ended"]


def test_a_full_queue_is_not_ready(idle):
    queue = MemoryQueue(1, 10_000)
    checks = HealthChecks(idle, queue)
    assert failed(checks.ready) == []
    queue.put(Unit(record=RagRecord(id="1"), decision="random", probability=1.0, is_recorded=False))
    assert failed(checks.ready) == ["queue: full (1 of 1)"]


def test_a_judge_that_refuses_us_is_held_and_one_that_fails_opens_the_breaker(idle):
    from ragtrace.judges import AttemptResult, JudgeRequest

    async def calls(limiter, *tooks):
        for took in tooks:
            passed = await limiter.acquire(JudgeRequest(model="m", request_bytes=10, max_output_tokens=1))
            passed.release(took)

    def reasons(limiter):
        return failed(HealthChecks(idle, MemoryQueue(), limiter=limiter).ready)

    limiter = JudgeLimiter(host="judge", caps=Caps())
    assert reasons(limiter) == []
    asyncio.run(calls(limiter, AttemptResult(fate="refused", reason="401")))
    assert reasons(limiter) == ["judge: held: it refuses us (401)"]
    limiter = JudgeLimiter(host="judge", caps=Caps())
    asyncio.run(calls(limiter, *[AttemptResult(fate="failed")] * 10))
    assert reasons(limiter) == ["breaker: open: the judge failed too often"]


def test_a_scorer_that_has_units_and_ends_none_is_not_ready():
    begun, may_end, limiter = threading.Event(), threading.Event(), JudgeLimiter(host="judge", caps=Caps())

    async def stuck(job):
        begun.set()
        await asyncio.to_thread(may_end.wait, 60)
        return Outcome()

    queue, far_s = MemoryQueue(8, 100_000), 0.0
    worker = Worker(queue, stuck)
    quiet_s = longest_quiet_s(45.0)
    checks = HealthChecks(worker, queue, limiter=limiter, quiet_s=quiet_s, clock=lambda: time.monotonic() + far_s)
    try:
        worker.begin()
        assert failed(checks.ready) == []
        queue.put(Unit(record=RagRecord(id="1")))
        assert begun.wait(30)
        assert failed(checks.ready) == []
        far_s = 200.0
        assert failed(checks.ready) == ["progress: no unit and no call has ended for 200 s, though there are units"]
        limiter._block(Blocked(reason="budget_exceeded", wait_s=9.0))
        assert failed(checks.ready) == [], "the budget explains it"
        limiter._blocked_until_s.clear()
        far_s, before = 0.0, worker.moved_at_s
        may_end.set()
        until(lambda: worker.is_idle and worker.moved_at_s > before + 1.0)  # idle, and still told to be well
        assert failed(checks.ready) == []
    finally:
        may_end.set()
        assert worker.stop(30)


def test_a_queue_that_gives_nothing_out_is_no_progress():
    class Broken(MemoryQueue):
        def lease(self, limit):
            raise sqlite3.OperationalError("disk I/O error")

    worker = Worker(Broken(8, 100_000), scored)
    worker.begin()
    try:
        moved_at_s = worker.moved_at_s
        until(lambda: worker.turned_at_s > moved_at_s + 0.3)
        assert worker.moved_at_s == moved_at_s
    finally:
        worker.stop(30, drain=False)


def test_a_spool_whose_folder_has_gone_is_not_ready(idle, tmp_path):
    spool = tmp_path / "in" / "spool.sqlite"
    spool.parent.mkdir()
    checks = HealthChecks(idle, MemoryQueue(), spool=spool)
    assert failed(checks.ready) == []
    assert list(spool.parent.iterdir()) == [], "the probe leaves nothing behind"
    spool.parent.rmdir()
    assert failed(checks.ready) == ["spool: the folder of 'spool.sqlite' is not there"]


def test_a_spool_that_another_process_keeps_locked_is_not_ready(idle, tmp_path, monkeypatch):
    path = tmp_path / "spool"
    queue = SqliteQueue(path)
    monkeypatch.setattr(queue, "_opened", lambda: SqliteQueue._opened(queue, busy_s=0.05))  # not 10 s a look
    monkeypatch.setattr(health, "_UNREAD_S", 0.5)
    checks = HealthChecks(idle, queue, spool=path)
    queue.requeue_expired()
    assert failed(checks.ready) == []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        queue.requeue_expired()
        time.sleep(0.6)
        queue.requeue_expired()
        assert "locked or broken for" in failed(checks.ready)[0]
        other.execute("ROLLBACK")
    queue.requeue_expired()
    assert failed(checks.ready) == []
    queue.close()


def test_a_look_at_the_spool_leaves_the_locks_of_its_own_process(idle, tmp_path):
    spool = tmp_path / "spool.sqlite"
    with contextlib.closing(sqlite3.connect(spool, isolation_level=None)) as ours:
        ours.execute("PRAGMA journal_mode = WAL")
        ours.execute("CREATE TABLE jobs (n)")
        assert failed(HealthChecks(idle, MemoryQueue(), spool=spool).ready) == []
        count = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1])\n"
        count += "print(*db.execute('SELECT count(*) FROM jobs').fetchone()); db.close()"
        for n in range(2):  # another process that closes believes it is the last, and throws our journal away
            said = subprocess.run([sys.executable, "-c", count, spool], capture_output=True, text=True, check=True)
            assert said.stdout == f"{n}\n"
            ours.execute("INSERT INTO jobs VALUES (1)")


def test_a_folder_that_cannot_be_written_and_a_path_that_is_a_folder(tmp_path):
    (tmp_path / "x").mkdir()
    assert unwritable(tmp_path / "x") == "'x' is not a file"
    # /proc takes no file of anybody's, root's neither: chmod would not stop root, who runs tests in containers.
    if Path("/proc/self").is_dir():
        assert "cannot be written" in unwritable(Path("/proc/self/spool.sqlite"))


def test_a_taken_port_is_one_line_that_says_what_to_do(serve):
    taken = serve()
    with pytest.raises(ConfigError, match=r"health_port=\d+: cannot listen .* choose another health_port"):
        serve(port=taken.port)


def test_close_frees_the_port_and_a_silent_client_holds_nothing_up(serve):
    endpoint = serve()
    assert endpoint._server.server_address[0] == "127.0.0.1", "on loopback alone unless told"
    with socket.create_connection(("127.0.0.1", endpoint.port)):
        assert get(endpoint, "/healthz")[0] == 200
        endpoint.close()
    serve(port=endpoint.port)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_keep_the_port(serve):
    endpoint = serve()
    reads, writes = os.pipe()
    told, tells = os.pipe()
    child = os.fork()
    if child == 0:  # lives until the parent closes the pipe
        endpoint.leave_to_parent()
        os.close(writes)
        os.write(tells, b"x")
        os.read(reads, 1)
        os._exit(0)
    os.close(reads)
    try:
        assert os.read(told, 1) == b"x"
        endpoint.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", endpoint.port), timeout=30)
    finally:
        os.close(writes)
        os.waitpid(child, 0)
