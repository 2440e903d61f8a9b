"""`ragtrace rescore` keeps to the judge's limits, and a run that they end goes on with the same command."""

from __future__ import annotations

import time

import pytest

from ragtrace.cli import main
from tests import make
from tests.guards.judge_server import Answer, JudgeServer, completion, refusal
from tests.unit.cli.test_store_commands import record, rows_of, score

GOOD = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["Oslo is the capital."],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
    "citations": [],
}
RECORDS = 14


@pytest.fixture
def server():
    with JudgeServer(lambda _: Answer(200, completion(GOOD))) as made:
        yield made


@pytest.fixture
def command(tmp_path, server, monkeypatch):
    store = make.store(tmp_path / "store", has_content=True)
    for n in range(RECORDS):
        store.emit(record(n), [score(record(n), 0.1)])
    store.close()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    return [
        "rescore", "--store", str(tmp_path / "store"), "--since", "1d", "--metric", "faithfulness",
        "--judge", "openai:m", "--base-url", server.url,
    ]  # fmt: skip


def new(tmp_path):
    return [row for row in rows_of(tmp_path / "store") if row["source"] == "rescore"]


def lines(capsys):
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("ragtrace:")]


def test_a_spent_budget_ends_the_run_without_a_call_and_the_same_command_goes_on(
    command, server, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("RAGTRACE_BUDGET_TOKENS_PER_DAY", "10")
    assert main(command) == 3
    told = capsys.readouterr().err
    assert told.startswith("0 rescored with 0 judge calls, ")
    (said,) = [
        line for line in told.splitlines() if line.startswith("ragtrace: the") or "raise budget_usd_per_day" in line
    ]
    assert "budget" in said
    assert "the same command goes on" in said
    assert (server.requests, new(tmp_path)) == ([], [])
    monkeypatch.setenv("RAGTRACE_BUDGET_TOKENS_PER_DAY", "0")
    assert main(command) == 0
    assert {row["state"] for row in new(tmp_path)} == {"ok"}
    assert len(new(tmp_path)) == RECORDS


@pytest.mark.slow
def test_the_rate_is_kept(command, server, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGTRACE_JUDGE_RPM", "60")  # bursts of 10, then one a second
    began = time.monotonic()
    assert main(command) == 0
    assert time.monotonic() - began > len(server.requests) - 10 - 1.0
    assert len(server.requests) >= RECORDS
    assert len(new(tmp_path)) == RECORDS


def test_a_judge_that_refuses_the_key_ends_the_run_in_one_line(command, server, tmp_path, capsys):
    server.always = lambda _: refusal(401, "wrong key")
    assert main(command) == 1
    (said,) = lines(capsys)
    assert said.endswith("; the same command goes on in 5 min")
    assert len(server.requests) <= 4  # those that were under way
    assert new(tmp_path) == []
