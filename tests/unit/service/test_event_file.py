"""The setting `record_events` writes a file that `ragtrace replay` reads."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import ragtrace
from ragtrace.capture import Recorder, internal_errors
from ragtrace.capture.events import Began, Event, Gave
from ragtrace.capture.recorded import RecordedRun, read_runs
from ragtrace.cli.main import main
from ragtrace.errors import ConfigError
from ragtrace.service import event_file
from ragtrace.service.event_file import EventFile
from tests.kept import Keeper

SITE = "ragtrace.service.event_file"
RUN = RecordedRun(
    "rag",
    1,
    [
        Event("chain", "0", name="ask", data=Began({"question": "Where is the lab?"})),
        Event("search", "1", "0", "store", 1),
        Event("chain", "0", name="ask", ended_ns=2, data=Gave({"answer": "In Oslo."})),
    ],
    ended_ns=2,
)
APP = """
import os, sys
import ragtrace
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from ragtrace_langchain import RagtraceHandler

class Store(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(id="secret-7", page_content="The laboratory is in Oslo.")]

ragtrace.configure(record_events=sys.argv[1], sample_rate=0.0)
handler = RagtraceHandler(user="ada-lovelace", session="talk-99")
for _ in range(2):
    Store().invoke("Where is the laboratory?", config={"callbacks": [handler]})
ragtrace.flush()
os.kill(os.getpid(), 9)
"""


def runs_of(path):
    return list(read_runs(path.read_bytes().splitlines(keepends=True)))


def test_a_killed_application_leaves_its_runs_masked_and_without_user_and_session(tmp_path, capsys):
    path = tmp_path / "events.jsonl"
    env = os.environ | dict.fromkeys(
        ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "none"
    )
    done = subprocess.run(
        [sys.executable, "-c", APP, str(path)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == -9, done.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    told = path.read_text().casefold()
    assert not [word for word in ("oslo", "laboratory", "secret", "ada-", "lovelace", "talk") if word in told]
    assert main(["replay", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("retrieved: 1") == 2
    assert "26 characters" in printed
    assert main(["replay", str(path), "--run", "2"]) == 0
    assert capsys.readouterr().out.startswith("run 2 of ")


def test_the_folder_must_exist(tmp_path):
    with pytest.raises(ConfigError, match=r"record_events=.*No such file or directory"):
        ragtrace.configure(record_events=tmp_path / "nowhere" / "events.jsonl")


def test_two_processes_may_append(tmp_path):
    path = tmp_path / "events.jsonl"
    for _ in range(2):
        EventFile(str(path), is_masked=False).write(RUN)
    assert [run.events for run in runs_of(path)] == [RUN.events, RUN.events]


def test_texts_are_redacted_before_they_are_written(tmp_path):
    path = tmp_path / "events.jsonl"
    EventFile(str(path), is_masked=False).write(RUN, lambda text: text.replace("Oslo", "[town]"))
    assert runs_of(path)[0].events[-1].data.value == {"answer": "In [town]."}


def test_what_capture_has_redacted_is_not_redacted_again(tmp_path):
    path = tmp_path / "events.jsonl"
    file = EventFile(str(path), is_masked=False)
    recorder = Recorder(Keeper(), redact=lambda text: text.replace("lab", "lab!"))
    recorder.config = replace(recorder.config, events=file)
    run = recorder.start()
    for event in RUN.events:
        run.add(event)
    run.finish()
    assert runs_of(path)[0].events[0].data.value == {"question": "Where is the lab!?"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a full disk at hand")
def test_a_full_disk_is_one_warning():
    before = internal_errors().get(SITE, 0)
    file = EventFile("/dev/full", is_masked=True)
    file.write(RUN)
    file.write(RUN)
    assert internal_errors()[SITE] == before + 1


def test_a_file_ends_where_it_is_full(tmp_path, monkeypatch):
    path, before = tmp_path / "events.jsonl", internal_errors().get(SITE, 0)
    file = EventFile(str(path), is_masked=True)
    file.write(RUN)
    monkeypatch.setattr(event_file, "MOST_BYTES", path.stat().st_size + 10)
    file.write(RUN)
    file.write(RUN)
    assert len(runs_of(path)) == 1
    assert internal_errors()[SITE] == before + 1


@pytest.mark.parametrize(("text", "said"), [("{}\n", ":1: is no line"), ("", ": no run is in it")])
def test_a_bad_file_is_one_line(text, said, tmp_path, capsys):
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    assert main(["replay", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}{said}" in error
    assert error.count("\n") == 1


def test_a_run_that_is_not_there(tmp_path, capsys):
    path = tmp_path / "events.jsonl"
    EventFile(str(path), is_masked=True).write(RUN)
    assert main(["replay", str(path), "--run", "7"]) == 2
    assert "has 1 runs" in capsys.readouterr().err
