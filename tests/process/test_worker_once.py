"""``ragtrace worker --once`` ends: without a collector, without a judge, and with units that are not due."""

from __future__ import annotations

import re
import socket
import sqlite3
import time

import pytest

from tests.guards.judge_server import Answer, refusal
from tests.process.observing import QUIET, accounts, ran

pytestmark = pytest.mark.slow

OTLP = dict.fromkeys(QUIET, "otlp")
DEADLINE_S = 1
LATE_S = 20  # a busy machine takes seconds to start and to end a process


def once(path, env, *args):
    begun = time.monotonic()
    deadline = ("--once", "--deadline", DEADLINE_S)
    done = ran("-m", "ragtrace", "worker", "--spool", path, *deadline, *args, **env)
    return done, time.monotonic() - begun


@pytest.fixture
def silent():
    """Return the address of a port that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize(
    ("collector", "protocol"),
    [
        ("refuses", "http/protobuf"),
        ("is silent", "http/protobuf"),
        ("is silent", "grpc"),
        ("answers 503", "http/protobuf"),
    ],
)
def test_it_ends_within_its_deadline_beside_any_collector(five_wait, silent, server, collector, protocol):
    server.always = lambda _: Answer(503, {})
    url = {"refuses": "http://127.0.0.1:9", "is silent": silent, "answers 503": server.url}[collector]
    done, took_s = once(
        five_wait, {**OTLP, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    )
    assert (done.returncode, accounts(five_wait).ends) == (1, {("scored", ""): 5}), done.stderr
    assert "every sampled trace was scored; not sent: 25 events" in done.stderr
    assert took_s < DEADLINE_S + LATE_S


def test_it_ends_well_where_nobody_configured_a_collector(five_wait):
    done, took_s = once(five_wait, {**dict.fromkeys(QUIET, ""), "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert (done.returncode, accounts(five_wait).ends) == (0, {("scored", ""): 5}), done.stderr
    assert took_s < LATE_S


def test_it_ends_when_every_unit_waits_for_a_late_retry(five_wait):
    with sqlite3.connect(five_wait) as connection:
        connection.execute("UPDATE jobs SET not_before = ?", (time.clock_gettime(time.CLOCK_BOOTTIME) + 1_200,))
    connection.close()
    done, took_s = once(five_wait, QUIET)
    assert (done.returncode, accounts(five_wait).ready) == (1, 5), done.stderr
    assert "ragtrace worker: 5 units wait: they failed before; the next is due in 20 min" in done.stderr
    assert took_s < LATE_S


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("20000000", r"openai:m refuses the judge's calls \(401\); the next is due in [45] min"),
        ("10", r"budget_exceeded; the next is due in 5 min"),
    ],
    ids=["held", "over the budget"],
)
def test_it_ends_when_the_judge_is_held_or_over_its_budget(five_wait, server, budget, words):
    server.always = lambda _: refusal(401, "wrong key")
    judge = {"OPENAI_API_KEY": "k", "RAGTRACE_JUDGE": "openai:m", "RAGTRACE_JUDGE_BASE_URL": server.url}
    done, took_s = once(five_wait, {**QUIET, **judge, "RAGTRACE_BUDGET_TOKENS_PER_DAY": budget})
    assert (done.returncode, accounts(five_wait).ready) == (1, 5), done.stderr
    assert re.search(rf"ragtrace worker: 5 units wait: {words}", done.stderr), done.stderr
    assert took_s < LATE_S + 60.0  # a slice of the budget may begin within a minute, and is waited for
