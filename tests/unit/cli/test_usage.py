"""What the commands say of odd arguments: one line, status 2, and no traceback."""

from __future__ import annotations

import pytest

from ragtrace.cli.main import main

LONG = "a" * 300


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(capsys, *args: str) -> str:
    """Run a command that must refuse, and return its one line."""
    try:
        status = main(args)
    except SystemExit as stopped:
        status = stopped.code
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("ragtrace: ")
    return said.err.removeprefix("ragtrace: ")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("demo", "--questions", "abc"), "argument '--questions': must be a valid integer"),
        (("demo", "--questions", "0"), "must be greater than or equal to 1"),
        (("demo", "--rate", "fast"), "argument '--rate': 'fast' is not a number above 0"),
        (("demo", "--rate", "0"), "'0' is not a number above 0"),
        (("demo", "--rate", "nan"), "'nan' is not a number above 0"),
        (("demo", "--port", "65536"), "argument '--port': must be less than or equal to 65535"),
        (("demo", "--port", "http"), "argument '--port': must be a valid integer"),
        (("worker", "--metrics-port", "-1"), "argument '--metrics-port': must be greater than or equal to 0"),
    ],
)
def test_a_number_that_is_none(capsys, args, words):
    assert words in refused(capsys, *args)


@pytest.mark.parametrize("flag", ["--otlp", "--base-url"])
@pytest.mark.parametrize("address", ["nonsense", "http://ada:s3/cret@host:4318", "ada:s3cret@host"])
def test_what_is_no_address_is_refused_before_any_work_and_not_repeated(capsys, flag, address):
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
def test_what_the_system_refuses_is_one_line(capsys, args):
    said = refused(capsys, *args)
    assert LONG in said
    assert "File name too long" in said


@pytest.mark.parametrize(
    ("args", "whole"),
    [
        (("demo", "--quest", "3"), "--questions"),
        (("metrics", "--mark"), "--markdown"),
        (("dashboards", "export", "dist", "--runbook", "http://x"), "--runbook-url"),
        (("dashboards", "export", "dist", "--prom"), "--prometheus"),
        (("baseline", "show", "--jso"), "--json"),
        (("score", "in.jsonl", "--metric", "mrr"), "--metrics"),
    ],
)
def test_a_flag_is_written_out(capsys, args, whole):
    assert f"did you mean '{whole}'?" in refused(capsys, *args)


def test_version_names_what_doctor_names(capsys):
    assert main(["version"]) == 0
    said = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert said == [
        "ragtrace",
        "opentelemetry-sdk",
        "langchain-core",
        "llama-index-core",
        "openai",
        "numpy",
        "pydantic",
    ]


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["scroe"], "unknown command 'scroe'; did you mean 'score'?"),
        (["baseline", "frezee"], "No such command 'frezee'. Did you mean 'freeze'?; see ragtrace baseline --help"),
        (
            ["export", "--out", "-", "--format", "xml"],
            "argument '--format': 'xml' is not one of 'jsonl', 'csv', 'parquet'; see ragtrace export --help",
        ),
        (["demo", "--stack", "foo"], "argument '--stack': 'foo' is not one of 'local'; see ragtrace demo --help"),
        (["score", ""], "'' is no file; check the path"),
    ],
)
def test_an_unknown_word_names_the_nearest(capsys, args, line):
    assert refused(capsys, *args) == f"{line}\n"
