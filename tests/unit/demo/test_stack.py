"""What the local stack is made of: programs, pace, files, and the words at the end."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ragtrace.demo import (
    DeliveredAlert,
    DemoOptions,
    Verdict,
    check_pace,
    describe_verdict,
    find_programs,
    run_server,
    stack_config,
    stack_files,
)
from ragtrace.demo.options import STACK_QUESTIONS, STACK_RATE
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

PACE = DemoOptions(stack="local", questions=STACK_QUESTIONS, rate=STACK_RATE)
QUIET = Verdict(drifts=(), others=(), missing=(), largest_drop=0.042, fires_above=0.1, is_settled=True)


def program(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_alertmanager_is_found_under_both_names(tmp_path: Path) -> None:
    prometheus = program(tmp_path, "prometheus")
    authors = program(tmp_path, "alertmanager")
    assert find_programs(str(tmp_path)).alertmanager == authors
    debians = program(tmp_path, "prometheus-alertmanager")
    found = find_programs(str(tmp_path))
    assert (found.prometheus, found.alertmanager) == (prometheus, debians)


def test_only_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    program(tmp_path, "prometheus")
    with pytest.raises(ConfigError) as caught:
        find_programs(str(tmp_path))
    assert "alertmanager, which is not" in str(caught.value)
    assert str(caught.value).endswith("apt-get install prometheus-alertmanager")


def test_the_pace_of_the_command_fits_with_room() -> None:
    check_pace(PACE)


@pytest.mark.parametrize(
    ("wrong", "choose"),
    [
        (replace(PACE, is_fast=True), "choose a --rate"),
        (replace(PACE, rate=4.0), "--rate 4.5 or more"),
        (replace(PACE, questions=300), "--questions 500 or more"),
    ],
)
def test_a_pace_at_which_no_alert_could_come_is_refused(wrong: DemoOptions, choose: str) -> None:
    with pytest.raises(ConfigError, match=choose):
        check_pace(wrong)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on this machine")
def test_promtool_takes_the_files(tmp_path: Path) -> None:
    files = stack_files(stack_config("http://127.0.0.1:1"), "http://127.0.0.1:9464/metrics", "http://127.0.0.1:2")
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    command = [str(shutil.which("promtool")), "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "http://127.0.0.1:1/runbooks/RagtraceQualityDrift.md#first-five-minutes"
        in files["rules/ragtrace-alerts.yaml"]
    )


def alert(name: str) -> DeliveredAlert:
    notes = {"summary": "It fell.", "description": "Look.", "runbook_url": "http://r", "dashboard_url": "http://d"}
    return DeliveredAlert(labels={"alertname": name, "severity": "critical"}, annotations=notes)


def lines(verdict: Verdict) -> list[str]:
    return [line.plain for line in describe_verdict(verdict)]


def test_a_delivered_alert_is_shown_whole() -> None:
    said = lines(replace(QUIET, drifts=(alert("Drift"),), others=(alert("Low"), alert("Low"))))
    assert said[1:4] == ["  Drift (critical)", "  It fell.", "  Look."]
    assert [line.split() for line in said[4:6]] == [["runbook", "http://r"], ["dashboard", "http://d"]]
    assert said[6] == "Also delivered: Low (critical)."


def test_quiet_says_how_near_it_came_or_that_it_could_not_tell() -> None:
    assert lines(QUIET) == [
        "Alertmanager delivered no drift alert: faithfulness dropped by 0.042 at most, 0.100 fires.",
    ]
    assert "too few scores" in lines(replace(QUIET, largest_drop=None))[0]


def test_what_did_not_happen_in_time_is_said() -> None:
    said = lines(replace(QUIET, missing=("Drift",), is_settled=False))
    assert "the machine is too busy" in said[0]
    assert said[1] == "Prometheus raised Drift, and Alertmanager did not deliver it in time."


SERVER = """
import http.server, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.parametrize("flag", ["", "deaf"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_server_has_ended_however_the_block_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], flag: str
) -> None:
    monkeypatch.setattr("ragtrace.demo.processes.STOP_LIMIT_S", 0.2)
    ports = []

    def command(port: int) -> tuple[str, ...]:
        ports.append(port)
        return sys.executable, "-c", SERVER, str(port), flag

    with pytest.raises(error), run_server("server", command, tmp_path / "log"):
        raise error
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ports[0]), timeout=5)


@pytest.mark.parametrize(
    ("code", "reason"),
    [("raise SystemExit('address in use')", "address in use"), ("import time; time.sleep(60)", "its log is empty")],
)
def test_a_server_that_never_becomes_ready_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    monkeypatch.setattr("ragtrace.demo.processes.READY_LIMIT_S", 0.5)
    with (
        pytest.raises(ConfigError, match=reason),
        run_server("server", lambda _: (sys.executable, "-c", code), tmp_path / "log"),
    ):
        pass
