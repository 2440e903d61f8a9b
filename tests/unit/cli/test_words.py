"""What the commands say of a word that is none: in one line, what it stands for and what is nearest."""

from __future__ import annotations

import pytest

from ragtrace.cli.main import main


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
def test_a_word_that_is_none(capsys, args, line):
    try:
        status = main(args)
    except SystemExit as stopped:
        status = stopped.code
    assert (status, capsys.readouterr().err) == (2, f"ragtrace: {line}\n")
