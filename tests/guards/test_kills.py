"""By every kind of end: what becomes of units that are not scored yet, and of scores that are not sent yet.

The tables are those in docs/concepts/threat-model.md, which is held against them. "Kept" is what the next scorer takes
up: after each end a `ragtrace worker` with the offline judge does.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests.guards import setting_up
from tests.guards.ends_app import LATE, PORTION, SCORED
from tests.guards.full_disk import small_disk
from tests.guards.judge_server import SUPPORTED, Answer, JudgeServer, completion
from tests.guards.processes import (
    ROOT,
    closed_port,
    environment,
    exported,
    got,
    is_up,
    ran,
    scores_in,
    started,
    until,
)

pytestmark = pytest.mark.slow

PLACES = ("memory", "spool", "spool and store")
LOST = ("units lost, scores lost", "units kept, scores lost", "units kept, scores in the store")
SENT = ("units lost, scores sent", "units kept, scores sent", "units kept, scores sent")
WHOLE = ("units scored, scores sent", "units kept, scores sent", "units kept, scores sent")
ENDS = {
    "normal exit": WHOLE,
    "`sys.exit`": WHOLE,
    "an unhandled exception": WHOLE,
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
    "`sys.exit`": "sys.exit",
    "an unhandled exception": "exception",
    "a forked child that ends normally": "fork",
    "a judge that hangs at exit": "normal",
    "SIGTERM without a handler": "SIGTERM",
    "SIGKILL": "SIGKILL",
    "`os._exit`": "os._exit",
    "a child that `multiprocessing.Pool` terminates": "pool",
}
UVICORN = ["--log-level", "error", "--port"]
SERVERS = {
    "SIGTERM under gunicorn": ["gunicorn", "tests.guards.ends_app", "--bind"],
    "SIGTERM under uvicorn, `ragtrace.shutdown()` in its lifespan": [
        "uvicorn",
        "tests.guards.ends_app:asgi_with_lifespan",
        *UVICORN,
    ],
    "SIGTERM under uvicorn": ["uvicorn", "tests.guards.ends_app:asgi", *UVICORN],
}
WORKER_PLACES = PLACES[1:]
WORKER_ENDS = {
    "`--once`, until all is scored": ("units scored, scores sent", "units scored, scores sent"),
    "SIGTERM or Ctrl-C": ("units kept, scores sent", "units kept, scores sent"),
    "SIGTERM, and a judge that hangs": ("units kept, scores sent", "units kept, scores sent"),
    "SIGKILL": ("units kept, scores lost", "units kept, scores in the store"),
}
SENT_SOON = {"OTEL_LOGS_EXPORTER": "otlp", "OTEL_BLRP_SCHEDULE_DELAY": "50"}
SENT_LATE = {"OTEL_LOGS_EXPORTER": "otlp", "OTEL_BLRP_SCHEDULE_DELAY": "3600000"}  # not sent at the end is not sent


# -- kills at any time --

APPLICATIONS, WORKERS, KILLS, SHARE, CALLS = 2, 2, 10, 150, 4


def keys(rows):
    return Counter(":".join(row[name] for name in ("trace_id", "span_id", "metric", "version")) for row in rows)


def kill_at_random(hands, start, chance, receiver):
    """Kill one process after the other at a random moment, and start each anew; the receiver refuses for a while."""
    for number in range(KILLS):
        receiver.status = 503 if number in {2, 3} else 200
        time.sleep(chance.uniform(0.5, 2.5))
        running = sorted(name for name, process in hands.items() if process.poll() is None)
        victim = chance.choice(running)
        hands[victim].kill()
        hands[victim].communicate()
        hands[victim] = start(victim)
    receiver.status = 200


def finished(hands, start):
    """Let each application come to its end, killed or not, and kill the workers."""
    for name in [name for name in hands if name.startswith("application")]:
        while hands[name].wait(120) != 0:
            hands[name].communicate()
            hands[name] = start(name)
    for process in hands.values():
        process.kill()
        process.communicate()


@pytest.mark.timeout(400)
def test_kills_at_any_time_lose_nothing_that_was_handed_over_and_score_nothing_twice(tmp_path):
    chance = random.Random(3)
    place = setting_up.waiting_in("spool and store", tmp_path)

    def reply(_):
        time.sleep(0.2)
        return Answer(body=completion(SUPPORTED))

    with JudgeServer(reply) as judge, OtlpReceiver() as receiver:
        capturing = setting_up.variables({**place, **setting_up.offline(), **setting_up.HANDED_OVER})
        scoring = {
            **setting_up.variables({**place, **setting_up.judged(judge.url), **setting_up.at_once(CALLS)}),
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
            **SENT_SOON, "OTEL_BLRP_SCHEDULE_DELAY": "1000",  # a kill finds events that are not sent
        }  # fmt: skip

        def start(name):
            kind, number = name.split()
            if kind == "worker":
                return started("-m", "ragtrace", "worker", **scoring)
            first = int(number) * SHARE
            produce = ("produce", number, first, first + SHARE)
            return started("-m", "tests.guards.ends_app", *produce, NOTES=str(tmp_path), PACE_S="0.1", **capturing)

        names = [f"application {n}" for n in range(APPLICATIONS)] + [f"worker {n}" for n in range(WORKERS)]
        hands = {name: start(name) for name in names}
        kill_at_random(hands, start, chance, receiver)
        finished(hands, start)
        # The leases of killed workers end after two minutes.
        last = ran("-m", "ragtrace", "worker", "--once", "--deadline", "60", timeout=300, **scoring)
        assert last.returncode == 0, last.stderr
        assert ", 0 pending" in last.stderr
        sent = Counter(score["ragtrace.evaluation.key"] for score in scores_in(receiver))
        asked = Counter(re.search(r"unit \d+\?", request.text)[0] for request in judge.requests)
    rows = exported(place["store"])
    sessions = Counter(row["session"] for row in rows)
    assert set(sessions) == {f"unit-{n}" for n in range(APPLICATIONS * SHARE)}
    assert sum(sessions.values()) - len(sessions) <= KILLS * PORTION  # a killed application offers its last again
    assert set(keys(rows).values()) == {1}
    assert set(sent) == set(keys(rows))
    assert sum(asked.values()) - len(rows) <= (KILLS + WORKERS) * CALLS  # the calls under way


# -- an application --


@pytest.fixture
def judge():
    """Return a judge that answers the early questions, and the late ones when it is told to."""
    is_quick, is_over = threading.Event(), threading.Event()

    def reply(request):
        while "late" in request.text and not (is_quick.is_set() or is_over.is_set()):
            is_over.wait(0.02)
        return Answer(body=completion(SUPPORTED))

    with JudgeServer(reply) as server:
        server.is_quick = is_quick
        yield server
        is_over.set()


def of_application(judge, receiver, place, folder, notes=None, **more):
    given = {**setting_up.judged(judge.url), **setting_up.at_once(1), **setting_up.waiting_in(place, folder)}
    return {
        **setting_up.variables(given),
        "FOLDER": str(folder),
        "NOTES": str(notes or folder),
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
        **SENT_LATE,
        **more,
    }


def serve(server, env):
    port = closed_port()
    last = str(port) if server[-1] == "--port" else f"127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", *server, last], env=environment(**env), cwd=ROOT, stderr=subprocess.PIPE
    )
    try:
        until(lambda: is_up(port), running=process)
        assert got(port, "/work")[0] == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def end(name, env):
    if name in SERVERS:
        serve(SERVERS[name], env)
    else:
        ran("-m", "tests.guards.ends_app", HOW[name], **env)


def noted(folder, kind):
    path = folder / f"{kind}-traces"
    return set(path.read_text().split()) if path.exists() else set()


def seen(receiver):
    return {score["trace_id"] for score in scores_in(receiver)}


def taken_up(place, folder, wanted, leased):
    """Return the traces that the next worker sends scores of, and how many it leaves to the end of their leases.

    Those are at most `leased`: what a kill left under way comes back after two minutes, all else at once.
    """
    settings = setting_up.variables(setting_up.waiting_in(place, folder))
    with OtlpReceiver() as receiver:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, **SENT_SOON, **settings}
        worker = started("-m", "ragtrace", "worker", "--once", "--deadline", "20", **env)
        until(
            lambda: (
                worker.poll() is not None or (seen(receiver) & wanted and len(wanted - seen(receiver)) <= leased)
            )
        )
        worker.send_signal(signal.SIGTERM)
        _, said = worker.communicate(timeout=60)
        pending = re.search(r", (\d+) pending\n$", said)
        assert pending, said
        assert int(pending[1]) <= leased
        return seen(receiver), int(pending[1])


def became(receiver, place, folder, notes=None, *, is_kill=False, is_full=False):
    """Return what became of the late units and of the early scores, in the words of the table.

    What was sent is not sent again, unless a full disk kept the store from noting that it was.
    """
    early, late = noted(notes or folder, "early"), noted(notes or folder, "late")
    assert (len(early), len(late)) == (SCORED, LATE)
    sent = seen(receiver)
    stored = {row["trace_id"] for row in exported(folder / setting_up.FILE)} if "store" in place else set()
    where = "sent" if early <= sent else "in the store" if early <= stored else "lost"
    if late <= sent:
        return f"units scored, scores {where}"
    if place == "memory":
        return f"units lost, scores {where}"
    again, pending = taken_up(place, folder, late - sent, int(is_kill))
    assert early <= again if where == "in the store" else is_full or not early & again
    return f"units {'kept' if len(late & (sent | again)) + pending == LATE else 'lost'}, scores {where}"


def is_as_said(found, wanted):
    """Tell whether it is what the table says; units of a spool that were scored before the end are kept as well."""
    return found == wanted or found.replace("units scored", "units kept") == wanted


@pytest.mark.parametrize("name", ENDS)
def test_what_is_lost_by_kind_of_end(name, judge, tmp_path):
    if "hangs" not in name and ENDS[name] != LOST:
        judge.is_quick.set()
    is_sudden = {"UNTIL_WRITTEN": "yes"} if ENDS[name] == LOST else {}

    def run(place):
        folder = tmp_path / place.replace(" ", "-")
        folder.mkdir()
        with OtlpReceiver() as receiver:
            env = of_application(judge, receiver, place, folder)
            end(name, {**env, **(is_sudden if place != "memory" else {})})
            return became(receiver, place, folder, is_kill=bool(is_sudden))

    with ThreadPoolExecutor(len(PLACES)) as together:
        found = list(together.map(run, PLACES))
    assert all(map(is_as_said, found, ENDS[name])), found


def test_a_spool_on_a_full_disk_loses_what_ends_with_the_process(judge, tmp_path):
    with small_disk(tmp_path / "disk") as disk, OtlpReceiver() as receiver:
        filler = str(disk.folder / "filler")
        end("normal exit", of_application(judge, receiver, "spool and store", disk.folder, tmp_path, FILLER=filler))
        disk.free()
        assert became(receiver, "spool and store", disk.folder, tmp_path, is_full=True) == SENT[0]


# -- ragtrace worker --


def handed_over(place, folder):
    """Let an application capture the five runs for a worker."""
    given = {**setting_up.waiting_in(place, folder), **setting_up.offline(), **setting_up.HANDED_OVER}
    env = {**setting_up.variables(given), "FOLDER": str(folder), "NOTES": str(folder)}
    done = ran("-m", "tests.guards.ends_app", "hand-over", **env)
    assert done.returncode == 0, done.stderr


def worker_ends(name, judge, worker, place, is_early_stored):
    """Let a worker that asks of the first late run end as it is told; return its exit status."""
    if not name.startswith("`--once`"):
        until(lambda: any("late" in request.text for request in judge.requests), running=worker)
        until(is_early_stored, running=worker)
        if name == "SIGKILL":
            worker.kill()
        else:
            worker.send_signal(signal.SIGINT if "Ctrl-C" in name and "store" in place else signal.SIGTERM)
    if "hangs" not in name and name != "SIGKILL":
        time.sleep(0.5)  # a signal comes before the answer
        judge.is_quick.set()
    worker.communicate(timeout=60)
    return worker.returncode


@pytest.mark.parametrize("name", WORKER_ENDS)
def test_what_is_lost_by_kind_of_end_of_a_worker(name, judge, tmp_path):
    status = {"`--once`, until all is scored": 0, "SIGTERM or Ctrl-C": 0, "SIGKILL": -signal.SIGKILL}.get(name, 1)
    args = ["--once"] if "once" in name else ["--deadline", "1"] if "hangs" in name else []
    found = []
    for place in WORKER_PLACES:
        folder = tmp_path / place.replace(" ", "-")
        folder.mkdir()
        judge.is_quick.clear()
        judge.requests.clear()
        handed_over(place, folder)
        with OtlpReceiver() as receiver:
            worker = started("-m", "ragtrace", "worker", *args, **of_application(judge, receiver, place, folder))

            def is_early_stored(place=place, folder=folder):
                return "store" not in place or len(exported(folder / setting_up.FILE)) == SCORED

            assert worker_ends(name, judge, worker, place, is_early_stored) == status
            found.append(became(receiver, place, folder, is_kill=name == "SIGKILL"))
    assert tuple(found) == WORKER_ENDS[name]


@pytest.mark.parametrize("is_once", [False, True])
def test_a_worker_whose_spool_vanishes_says_so_and_ends_in_order(judge, tmp_path, is_once):
    folder = tmp_path / "spools"
    folder.mkdir()
    handed_over("spool", folder)
    with OtlpReceiver() as receiver:
        env = of_application(judge, receiver, "spool", folder)
        left = started("-m", "ragtrace", "worker", "--deadline", "1", *["--once"] * is_once, **env)
        until(lambda: any("late" in request.text for request in judge.requests), running=left)
        shutil.rmtree(folder)
        if not is_once:
            left.send_signal(signal.SIGTERM)
        _, said = left.communicate(timeout=120)
    # After a signal it may meet its deadline: what was under way came back from the gate, whose file is gone too.
    assert left.returncode in ({1} if is_once else {0, 1}), said
    # Behind it may stand a word of a call that the deadline left under way.
    (stopped,) = [line for line in said.splitlines() if line.startswith("ragtrace worker: stopped; ")]
    assert re.search(r"pending (when last seen|unknown); the spool cannot be read: ", stopped)
    assert "Traceback" not in said


# -- workers side by side --


def counted(receiver):
    """Return the last cumulative count of evaluations that each process delivered, in sum."""
    last = {}
    for request in receiver.requests:
        for resource in getattr(request, "resource_metrics", ()):
            life = attributes_of(resource.resource.attributes)["service.instance.id"]
            metrics = [metric for scope in resource.scope_metrics for metric in scope.metrics]
            points = [p for m in metrics if m.name == "ragtrace.evaluations" for p in m.sum.data_points]
            last[life] = sum(int(point.as_int or point.as_double) for point in points)
    return sum(last.values())


def test_scorers_side_by_side_send_nothing_twice(tmp_path):
    place = {**setting_up.waiting_in("spool and store", tmp_path), **setting_up.THREE_METRICS}
    capturing = setting_up.variables({**place, **setting_up.offline(), **setting_up.HANDED_OVER})
    units = 300
    done = ran("-m", "tests.guards.ends_app", "produce", 0, 0, units, NOTES=str(tmp_path), **capturing)
    assert done.returncode == 0, done.stderr
    with OtlpReceiver() as receiver:
        scoring = {
            **setting_up.variables(place), **SENT_SOON, "OTEL_METRICS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
        }  # fmt: skip

        def start(life):
            about = f"service.instance.id={life}"
            once = ("worker", "--once", "--deadline", "60")
            return started("-m", "ragtrace", *once, OTEL_RESOURCE_ATTRIBUTES=about, **scoring)

        workers = [start(life) for life in range(3)]
        said = [process.communicate(timeout=120)[1] for process in workers]
        assert [process.returncode for process in workers] == [0, 0, 0], said
        assert start(3).wait(60) == 0  # nothing is left that was not sent
        sent = [score["ragtrace.evaluation.key"] for score in scores_in(receiver)]
        assert len(sent) == len(set(sent)) == counted(receiver) == units * 3


def test_the_page_s_tables_say_the_same():
    page = (ROOT / "docs" / "concepts" / "threat-model.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", page, re.MULTILINE)
    ]
    worker = {row[0]: tuple(row[1:]) for row in rows if len(row) == 3}
    shown = {row[0]: tuple(row[1:]) for row in rows if len(row) == 4}
    assert (shown["kind of end"], worker["kind of end of `ragtrace worker`"]) == (PLACES, WORKER_PLACES)
    assert {name: shown.get(name) for name in ENDS} == ENDS
    assert {name: worker.get(name) for name in WORKER_ENDS} == WORKER_ENDS
