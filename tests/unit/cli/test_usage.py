"""Odd arguments give one line, status 2, and no traceback; every option has a help text."""

from __future__ import annotations

import pytest

from ragtrace.cli import COMMANDS, build_app, main

LONG = "a" * 300


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(capsys, *args: str) -> str:
    """Run a command that must refuse, and return its one line."""
    status = main(args)
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("ragtrace: ")
    return said.err.removeprefix("ragtrace: ")


def options(command):
    yield from command.params
    for child in getattr(command, "commands", {}).values():
        yield from options(child)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text_of_whole_sentences(name):
    command = build_app(name).commands[name]
    assert command.help
    for option in options(command):
        assert option.help[:1].isupper() or option.help.startswith("`"), option.name
        assert option.help.endswith("."), option.name


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("demo", "--questions", "abc"), "'--questions': Input should be a valid integer"),
        (("demo", "--rate", "nan"), "'--rate': Input should be"),
        (("demo", "--port", "65536"), "'--port': Input should be less than or equal to 65535"),
    ],
)
def test_a_wrong_number_is_refused(capsys, args, words):
    assert words in refused(capsys, *args)


@pytest.mark.parametrize("flag", ["--otlp", "--base-url"])
@pytest.mark.parametrize("address", ["nonsense", "http://ada:s3/cret@host:4318", "ada:s3cret@host"])
def test_a_wrong_address_is_refused_before_any_work_and_not_repeated(capsys, flag, address):
    said = refused(capsys, "demo", "--questions", "1", "--fast", flag, address)
    assert said.startswith(f"{flag} ")
    assert "cret" not in said


@pytest.mark.parametrize(
    "args",
    [
        ("compare", "in.jsonl", "--json", LONG),
        ("calibrate", LONG, "--label", "x"),
        ("score", "in.jsonl", "--pairs", f"onnx:{LONG}"),
        ("score", "in.jsonl", "--embedder", f"local:{LONG}"),
        ("export", "--out", "-", "--store", LONG),
        ("forget", "--user", "ada", "--store", LONG),
        ("worker", "--once", "--spool", LONG),
    ],
)
def test_a_name_that_the_system_refuses_is_one_line(capsys, args):
    said = refused(capsys, *args)
    assert LONG in said
    assert "File name too long" in said


@pytest.mark.parametrize(
    ("args", "whole"),
    [
        (("demo", "--quest", "3"), "--questions"),
        (("metrics", "--mark"), "--markdown"),
        (("baseline", "show", "--jso"), "--json"),
    ],
)
def test_a_flag_is_written_out(capsys, args, whole):
    assert whole in refused(capsys, *args)


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (
            ["export", "--out", "-", "--format", "xml"],
            "Invalid value for '--format': 'xml' is not one of 'jsonl', 'csv'; see ragtrace export --help",
        ),
        (["score", ""], "'' is not a file; check the path"),
    ],
)
def test_an_unknown_word_names_the_known_ones(capsys, args, line):
    assert refused(capsys, *args) == f"{line}\n"


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (
            ["plan", "x", "--width", "1"],
            "No such command 'plan'; begin with RAGTRACE_FIRST_JUDGE=overlap RAGTRACE_JUDGE_RATES=0=0.40,0.8=0.15,none=0.40",
        ),
        (
            ["score", "x", "--unfused"],
            "No such option: --unfused; leave it out; RAGTRACE_METRIC_OPTIONS_GRADE_BATCH=1 grades one passage a call",
        ),
        (
            ["calibrate", "x", "--label", "y", "--gate-pairs", "0"],
            "No such option: --gate-pairs; leave it out; RAGTRACE_METRIC_OPTIONS_GRADE_BATCH=1 grades one passage a call",
        ),
        (
            ["calibrate", "x", "--label", "y", "--no-length-check"],
            "No such option: --no-length-check; leave it out: no line is judged again",
        ),
        (
            ["export", "--out", "x", "--format", "parquet"],
            "Invalid value for '--format': 'parquet'; write jsonl, and Parquet from it: docs/how-to/store.md",
        ),
    ],
)
def test_what_is_gone_says_what_to_write_instead(capsys, args, line):
    assert refused(capsys, *args) == f"{line}\n"


def test_the_worker_warns_once_of_an_unknown_variable(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "ragtrace")
    monkeypatch.setenv("RAGTRACE_SAMPEL_RATE", "1")
    monkeypatch.setenv("RAGTRACE_SINKS", "fenix")  # refused behind the settings
    assert main(["worker", "--once", "--spool", str(tmp_path / "spool.sqlite")]) == 2
    assert caplog.text.count("RAGTRACE_SAMPEL_RATE") == 1
