"""The setting `record_events` writes a file that `ragtrace replay` reads."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import ragtrace
from ragtrace.capture import Recorder, internal_errors
from ragtrace.capture.events import Asked, Began, Event, Gave, Sought
from ragtrace.capture.recorded import RecordedRun, read_runs
from ragtrace.capture.values import Doc
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


def test_a_disk_that_takes_no_more_is_one_warning(tmp_path):
    before, limits = internal_errors().get(SITE, 0), resource.getrlimit(resource.RLIMIT_FSIZE)
    file = EventFile(str(tmp_path / "events.jsonl"), is_masked=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        file.write(RUN)
        file.write(RUN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert internal_errors()[SITE] == before + 1


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_a_file_is_made_for_its_owner_only_whatever_the_umask(umask, tmp_path):
    path, before = tmp_path / "events.jsonl", os.umask(umask)
    try:
        EventFile(str(path), is_masked=True).write(RUN)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_others_may_read_is_set_back_before_anything_is_written(tmp_path, caplog):
    path = tmp_path / "events.jsonl"
    path.touch()
    path.chmod(0o644)
    EventFile(str(path), is_masked=True).write(RUN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.getMessage() for one in caplog.records if "mode 644" in one.getMessage()]
    assert len(runs_of(path)) == 1


def linked(path):
    path.with_name("elsewhere").touch()
    path.symlink_to(path.with_name("elsewhere"))


def listening(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (linked, "a symbolic link"),
        (lambda path: path.symlink_to(path.with_name("nowhere")), "a symbolic link"),
        (os.mkfifo, "a pipe"),
        (os.mkdir, "a folder"),
        (listening, "a socket"),
    ],
    ids=["link", "dangling link", "pipe", "folder", "socket"],
)
def test_what_is_no_regular_file_is_refused_in_one_line(make, kind, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most 108 bytes
    path = Path("events.jsonl")
    make(path)
    with pytest.raises(ConfigError, match=rf"^record_events='events.jsonl' is {kind}; name a regular file.*$"):
        ragtrace.configure(record_events=path)
    assert not Path("nowhere").exists()


def test_a_device_is_refused():
    with pytest.raises(ConfigError, match="is a device"):
        EventFile(os.devnull, is_masked=True)


def test_a_pipe_with_a_reader_is_refused_too(tmp_path):
    path = tmp_path / "events.jsonl"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ConfigError, match="is a pipe"):
        EventFile(str(path), is_masked=True)
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir], ids=["pipe", "device", "folder"]
)
def test_replay_reads_regular_files_only(make, tmp_path, capsys):
    path = tmp_path / "events.jsonl"
    make(path)
    assert main(["replay", str(path)]) == 2
    assert capsys.readouterr().err == f"ragtrace: {path}: is no regular file\n"


def test_names_of_a_file_command_no_terminal(tmp_path, capsys):
    path, red = tmp_path / "red\x1b[31m\n.jsonl", "\x1b[31mred\nline\u2028"
    documents = [Doc("The lab is in Oslo.", red)]
    events = [Event("chain", "0", name=red, data=Began("Where?")), Event("search", "1", "0", red, data=Sought("q"))]
    events += [Event("search", "1", "0", red, ended_ns=2, data=documents), replace(RUN.events[-1], name=red)]
    EventFile(str(path), is_masked=False).write(RecordedRun(red, 1, events, ended_ns=2))
    assert main(["replay", str(path)]) == 0
    out = capsys.readouterr().out
    assert (out.count(r"\x1b[31mred\nline\u2028"), "\x1b" in out, "\u2028" in out) == (3, False, False)
    assert main(["replay", str(path), "--run", "3"]) == 2
    assert "\x1b" not in (error := capsys.readouterr().err)
    assert error.count("\n") == 1


def test_a_seed_and_stop_sequences_are_masked(tmp_path):
    path = tmp_path / "events.jsonl"
    request = {"seed": 42, "temperature": 0.25, "stop_sequences": ("Zanzibar",)}
    run = RecordedRun("rag", 1, [Event("model", "1", data=Asked(request=request))], ended_ns=2)
    EventFile(str(path), is_masked=True).write(run)
    told = runs_of(path)[0].events[0].data.request
    assert (told["seed"], told["temperature"], "Zanzibar" in told["stop_sequences"]) == (0, 0.25, False)


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
