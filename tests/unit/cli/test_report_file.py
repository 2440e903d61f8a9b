"""A report that cannot be written names the flag and the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragtrace.cli import main
from ragtrace.cli.io.report_file import written
from ragtrace.errors import ConfigError

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize(
    ("command", "flag"), [("calibrate --label good", "--json"), ("compare", "--json"), ("compare", "--csv")]
)
def test_a_full_disk_names_the_flag_and_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, flag: str
) -> None:
    records, scored = tmp_path / "in.jsonl", tmp_path / "scored.jsonl"
    given = {"query": "Where?", "answer": "In Oslo.", "contexts": ["In Oslo."]}
    lines = [json.dumps({"id": str(i), **given, "good": i % 2}) for i in range(4)]
    records.write_text("\n".join(lines), encoding="utf-8")
    assert main(["score", str(records), "--out", str(scored), "--metrics", "faithfulness"]) == 0
    capsys.readouterr()
    assert main([*command.split(), str(scored), flag, str(FULL)]) == 2
    assert capsys.readouterr().err == f"ragtrace: {flag} {FULL}: No space left on device; choose another file\n"


def test_an_error_without_a_text_of_the_system_is_told_as_it_is() -> None:
    with (
        pytest.raises(ConfigError, match=r"^--plot a\.png: no such format; choose another file$"),
        written("--plot", Path("a.png")),
    ):
        raise OSError("no such format")
