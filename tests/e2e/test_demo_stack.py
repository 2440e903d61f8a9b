"""`ragtrace demo --stack local` as a person runs it: a real Prometheus, a real Alertmanager, and what it delivers."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urldefrag

import pytest

LIMIT_S = 280
HAS_STACK = bool(
    shutil.which("prometheus") and (shutil.which("prometheus-alertmanager") or shutil.which("alertmanager"))
)
needs_stack = pytest.mark.skipif(
    not HAS_STACK, reason="prometheus and alertmanager are not on this machine: apt-get install both from Debian"
)
slow = [needs_stack, pytest.mark.slow, pytest.mark.timeout(2 * LIMIT_S)]


class Demo:
    """A demo in a process of its own, its temporary files in a folder of ours."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder / "temporary"
        self.folder.mkdir()
        foreign = ("OTEL_", "RAGTRACE_", "OPENAI_", "LANGCHAIN_", "LANGSMITH_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        out = ("--out", str(folder / "demo.jsonl"), "--port", "0")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ragtrace", "demo", "--stack", "local", *out, *flags],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**kept, "TMPDIR": str(self.folder)},
        )  # fmt: skip
        self.said = ""

    def until(self, wanted: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if wanted in line:
                return line
        raise AssertionError(f"{wanted!r} was never said:\n{self.said}")

    def end(self) -> int:
        rest, _ = self.process.communicate(timeout=LIMIT_S)
        self.said += rest
        return self.process.returncode

    def children(self) -> list[int]:
        """Return the ids of the running programs: they alone have our folder in their command line."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue  # it has gone meanwhile
            if f"={self.folder}/ragtrace-demo-".encode() in line:
                found.append(int(entry.name))
        return found

    def has_ended_wholly(self) -> bool:
        return not self.children() and not list(self.folder.iterdir())


@pytest.fixture
def start(tmp_path):
    begun = []

    def _start(*flags):
        begun.append(Demo(tmp_path, *flags))
        return begun[-1]

    yield _start
    for demo in begun:
        demo.process.kill()
        demo.process.communicate()


def read(url: str) -> str:
    with urllib.request.urlopen(urldefrag(url).url, timeout=30) as reply:  # noqa: S310 - http on loopback
        assert reply.status == 200
        return reply.read().decode()


def until(holds, limit_s: float = 60.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


class TestWithTheStack:
    pytestmark = slow

    def test_the_incident_makes_alertmanager_deliver_the_alert_and_its_runbook_answers(self, start):
        demo = start()
        where = demo.until("Alertmanager http")
        alertmanager = re.search(r"Alertmanager (\S+)", where).group(1)
        assert len(demo.children()) == 2
        demo.until("the incident begins")
        pages = f"{alertmanager}/api/v2/alerts?filter=alertname%3DRagtraceQualityDrift"
        assert until(lambda: "runbook_url" in read(pages), LIMIT_S), demo.said
        link = re.search(r'"runbook_url":"([^"]+)"', read(pages)).group(1)
        page = read(link)
        assert urldefrag(link).fragment == "first-five-minutes"
        assert re.search(r"^##+ First five minutes$", page, re.MULTILINE), page
        assert "{{" not in page, "a template, not a page"
        board = re.search(r'"dashboard_url":"([^"]+)"', read(pages)).group(1).replace("\\u0026", "&")
        assert "Prometheus" in read(board)  # no Grafana runs here
        assert demo.end() == 0, demo.said

        told = demo.said[demo.said.index("Alertmanager delivered this alert:") :]
        assert "RagtraceQualityDrift (warning)" in told
        assert re.search(
            r"faithfulness of handbook fell from 0\.\d{3} to 0\.\d{3} \(by 0\.\d{3}, 95 % interval ", told
        )
        assert re.search(r"Run: ragtrace investigate --since \d+s --metric faithfulness --workflow handbook", told)
        assert link in told
        assert demo.has_ended_wholly()

    def test_without_the_incident_no_alert_at_all_comes_though_it_could(self, start):
        demo = start("--no-incident")
        assert demo.end() == 0, demo.said
        assert "Alertmanager delivered this alert" not in demo.said
        assert "Also delivered" not in demo.said
        found = re.search(
            r"no drift alert: faithfulness dropped by (-?\d+\.\d+) at most, (\d+\.\d+) fires", demo.said
        )
        assert found is not None, demo.said
        assert float(found[1]) < float(found[2])
        assert demo.has_ended_wholly()

    @pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_nothing_is_left_when_it_is_told_to_stop(self, start, number, status):
        demo = start()
        demo.until("question 50 of")
        assert len(demo.children()) == 2
        demo.process.send_signal(number)
        assert demo.end() == status, demo.said
        assert "Traceback" not in demo.said
        assert demo.has_ended_wholly()

    @pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is not on this machine")
    def test_no_program_outlives_a_demo_that_is_killed(self, start):
        demo = start()
        demo.until("Alertmanager http")
        assert len(demo.children()) == 2
        demo.process.kill()
        assert until(lambda: not demo.children())


def test_missing_programs_are_one_line_that_says_how_to_get_them(start, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    demo = start()
    assert demo.end() == 2
    assert demo.said == (
        "ragtrace: --stack local needs prometheus and alertmanager, which are not on the PATH; "
        "on Debian and Ubuntu: apt-get install prometheus prometheus-alertmanager\n"
    )
    assert not (tmp_path / "demo.jsonl").exists()
