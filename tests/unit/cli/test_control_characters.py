"""Names, texts and paths from anywhere never move a terminal's cursor, and stand in a picture as they are."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from xml.etree import ElementTree as ET

import pytest
from rich.table import Table
from rich.text import Text

from ragtrace.cli import main
from ragtrace.cli.io.console import Shown
from ragtrace.cli.io.jsonl_reader import one_line
from ragtrace.cli.io.row_writers import cell, writer_of
from ragtrace.demo import PlainConsole
from ragtrace.errors import ConfigError
from ragtrace.metrics import registry
from ragtrace.model import RagRecord, is_printable
from ragtrace.model.printable import printable
from ragtrace.sinks import ConsoleSink
from tests import make
from tests.unit.metrics.test_registry import declared
from tests.unit.telemetry.runs import score as scored

EVIL = "\x1b[2J\x9b31m\u202e\x07\x00[red]$x^2$"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def row(n, **more):
    claims = [{"text": f"A fee {EVIL}", "verdict": "contradicted", "support": 0.0, "reason": EVIL}]
    score = {"state": "ok", "value": n / 9, "passed": False, "details": {"claims": claims}, "judge": EVIL}
    failed = {"state": "error", "value": None, "reason": EVIL, "judge": EVIL, "version": EVIL}
    scores = {f"metric {EVIL}": score, "faithfulness": score, f"failed {EVIL}": failed}
    return {"id": f"q{n}", "query": f"Where {EVIL}?", "answer": f"Oslo {EVIL}", "scores": scores, **more}


@pytest.fixture
def files(tmp_path):
    """Two scored files whose names, fields and metrics are hostile."""
    made = []
    for place in range(2):
        path = tmp_path / f"run{place}\x1b[2J$y$.jsonl"
        rows = [row(n, label=n % 2, **{f"field {EVIL}": 1, "contexts": [EVIL]}) for n in range(1, 9)]
        path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
        made.append(path)
    return made


def told(capsys, *args):
    status = main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    assert UNSAFE.findall(out + err) == []
    return status, out, err


def test_no_command_prints_control_characters(capsys, files, tmp_path):
    first, second = files
    assert told(capsys, "compare", first, second)[0] == 0
    assert told(capsys, "worst", first, "--metric", f"metric {EVIL}")[1].count("\\x1b[2J")
    assert "Oslo \\x1b[2J" in told(capsys, "show", first, "1", "--full")[1]
    told(capsys, "score", first, "--metrics", "answer_similarity,mrr", "--out", tmp_path / "out.jsonl")
    told(capsys, "calibrate", first, "--label", "label", "--metric", "faithfulness")


@pytest.mark.parametrize(
    "args",
    [
        ["score", f"{EVIL}.jsonl".replace("\x00", "")],
        ["score", "FILE", "--metrics", EVIL],
        ["score", "FILE", f"--{EVIL}"],
        ["worst", "FILE", "--metric", EVIL],
        ["show", "FILE", "--id", EVIL],
        ["compare", "FILE", "--k-values", EVIL],
        [EVIL],
    ],
)
def test_no_error_prints_the_control_characters_that_it_quotes(capsys, files, args):
    given = [str(files[0]) if arg == "FILE" else arg for arg in args]
    main(given)
    out, err = capsys.readouterr()
    assert err
    assert UNSAFE.findall(out + err) == []


def test_broken_lines_are_told_without_the_control_characters_of_their_fields(capsys, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text(
        json.dumps({"labels": {EVIL: "x"}}) + "\n" + json.dumps({"contexts": [{"id": {EVIL: 1}}]}) + "\n"
    )
    told(capsys, "score", path, "--metrics", "mrr")


def test_pictures_hold_names_as_they_are_written(capsys, files, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "compare.svg"
    told(capsys, "compare", *files, "--plot", path)
    text = " ".join("".join(part.itertext()) for part in ET.fromstring(path.read_bytes()).iter())  # noqa: S314 - ours
    assert UNSAFE.findall(text) == []
    assert "metric \\x1b[2J" in text
    assert "run0\\x1b[2J$y$" in text


def test_a_store_s_names_are_exported_whole_and_shown_escaped(capsys, tmp_path):
    path = tmp_path / "store.sqlite"
    kept = make.store(path, has_content=True, payload_share=1.0)
    record = make.record(EVIL, ids=[EVIL], query=EVIL, answer=EVIL, workflow=EVIL)
    kept.emit(record, [scored(f"metric {EVIL}")])
    kept.close()
    told(capsys, "worst", path, "--metric", f"metric {EVIL}")
    assert told(capsys, "export", "--store", path, "--out", "-")[0] == 0
    told(capsys, "baseline", "freeze", "--store", path, "--metric", "all", "--least", 1)
    told(capsys, "baseline", "show", "--store", path, "--json")


class Terminal(io.BytesIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(io.BytesIO(), EVIL), (Terminal(), printable(EVIL))])
def test_csv_is_escaped_on_a_terminal_and_whole_in_a_file(stream, shown):
    with writer_of("csv", stream) as write:
        write({"metric": f"m {EVIL}", "details": "{}"})
    (found,) = csv.DictReader(io.StringIO(stream.getvalue().decode(), newline=""))
    assert found["metric"] == f"m {shown}"


def test_a_console_escapes_texts_tables_and_styled_texts_and_keeps_its_own_codes():
    file = io.StringIO()
    console = PlainConsole(file=file, force_terminal=True, width=200, color_system="truecolor")
    table = Table(f"head {EVIL}")
    table.add_row(Text(f"cell {EVIL}", style="red"))
    table.add_row(f"row {EVIL}")
    console.print(table, Text.assemble((f"said {EVIL}", "bold")), markup=False)
    shown = re.sub(r"\x1b\[[\d;]*m", "", file.getvalue())
    assert UNSAFE.findall(shown) == []
    assert shown.count("\\x1b[2J") == 4
    assert "\x1b[31mcell" in file.getvalue()
    assert shown.count("[red]") == 4


def test_a_table_shows_markup_and_emoji_names_as_they_are(capsys):
    Shown().print("[red]faithfulness[/red] :bomb:")
    assert capsys.readouterr().out == "[red]faithfulness[/red] :bomb:\n"


def test_the_console_sink_escapes_what_it_writes(capsys):
    ConsoleSink().emit(RagRecord(id="1", query=EVIL, trace_id=EVIL), [scored(f"m{EVIL}")])
    said = capsys.readouterr().err
    assert UNSAFE.findall(said) == []
    assert "\\x1b[2J" in said


def test_log_lines_of_a_command_are_escaped(capsys):
    main(["version"])
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    log = logging.getLogger("ragtrace")
    log.addHandler(handler)
    try:
        log.warning("drift over: %s of %s, %d", f"m{EVIL}", ValueError(EVIL), 3)
    finally:
        log.removeHandler(handler)
    assert UNSAFE.findall(stream.getvalue()) == []
    assert "\\x1b[2J" in stream.getvalue()


@pytest.mark.parametrize(
    "facts", [{"name": EVIL}, {"outputs": (f"own{EVIL}",)}, {"aliases": ("a\n",)}, {"name": " "}]
)
def test_a_metric_whose_name_has_control_characters_is_refused(facts):
    class Odd:
        spec = declared(**{"name": "odd", "outputs": ("odd",), **facts})

        async def compute(self, case):
            return []

    with pytest.raises(ConfigError, match="no control characters") as error:
        registry.metric(Odd)
    assert is_printable(str(error.value))


def test_escapes_of_json_stay_json():
    assert json.loads(one_line({EVIL: EVIL})) == {EVIL: EVIL}
    assert UNSAFE.sub("", one_line("\x7f\x85\x9b")) == one_line("\x7f\x85\x9b")


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe66", "\u2212"])
def test_no_cell_is_a_formula(sign):
    for before in ("", " ", "\ufeff", "\x00", "\u200b", "\t", "\r", "\u00a0", "\u3000", "\u2060", "\ufe0f"):
        assert cell(f"{before}{sign}1+1") == f"'{before}{sign}1+1"


@pytest.mark.parametrize("text", ["", " ", "a=1", "1-2", "'", "包裹", "\ufeffa", "\u200b"])
def test_other_cells_stay_unless_they_begin_with_a_control_character(text):
    assert cell(text) == text
    assert cell(f"\t{text}") == f"'\t{text}"
