"""`ragtrace anchors` as a person runs it, over real stores and the offline judge."""

from __future__ import annotations

import json
import time

import pytest

from ragtrace.cli import main
from ragtrace.model import JudgeInfo
from ragtrace.stores import Label
from tests import make

JUDGE = JudgeInfo(model="overlap", prompt_hash="p")


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A store that kept 70 low runs and, at one in two, 60 perfect ones."""
    monkeypatch.setenv("RAGTRACE_CONTENT", "full")
    monkeypatch.setenv("RAGTRACE_METRICS", "faithfulness")
    store = make.store(tmp_path / "store", has_content=True, payload_share=0.5)
    for number in range(70):
        emit(store, number, 0.2, workflow="support")
    for number in range(100, 220):
        emit(store, number, 1.0, workflow="other")
    store.rate([Label(trace_id=f"{7:032x}", value=0.0, metric="faithfulness", rater="eve")])
    store.close()
    return tmp_path / "store"


def emit(store, number, value, workflow):
    text = "The lab is in Oslo."
    record = make.record(
        text, n=number, id=f"{number:032x}", workflow=workflow, query="Where is the lab?", answer=text
    )
    store.emit(
        record, [make.score(record, value=value, judge=JUDGE, passed=value > 0.5, weight=20.0, at=time.time())]
    )


def run(path, *args):
    return main(["anchors", *args, "--store", str(path)])


def shown(path, capsys):
    capsys.readouterr()
    assert run(path, "show", "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_freeze_show_and_drop(path, capsys):
    assert run(path, "freeze", "--n", "60", "--repeats", "2") == 0
    assert "60 anchors, 120 of 120 scores of the reference" in capsys.readouterr().out
    found = shown(path, capsys)
    assert (found["n"], found["repeats"], found["frozen_at"][:2]) == (60, 2, "20")
    (metric,) = found["metrics"]
    assert (metric["metric"], metric["judge"], metric["n_reference"]) == ("faithfulness", "overlap", 60)
    assert (metric["n"], metric["state"], metric["mean"]) == (0, "learning", None)
    assert run(path, "show") == 0
    said = capsys.readouterr().out
    assert "60 anchors, frozen 20" in said
    assert "60 x 2" in said
    assert run(path, "drop") == 0
    assert capsys.readouterr().out == "60 anchors dropped\n"
    assert shown(path, capsys)["n"] == 0


def test_runs_come_from_all_bands_by_their_share_of_the_traffic(path):
    assert run(path, "freeze", "--n", "50") == 0
    store = make.store(path)
    shares = {it.band: it.share for it in store.anchors.all()}
    store.close()
    assert set(shares) == {0, 4}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares[4] == pytest.approx(120 / 190)


def test_shares_are_those_of_all_scored_runs_where_no_good_one_was_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RAGTRACE_CONTENT", "full")
    monkeypatch.setenv("RAGTRACE_METRICS", "faithfulness")
    store = make.store(tmp_path / "store", has_content=True, payload_share=0.0)
    for number in range(240):
        emit(store, number, 0.2 if number % 4 == 0 else 1.0, workflow="support")
    store.close()
    assert run(tmp_path / "store", "freeze", "--n", "50") == 0
    said = capsys.readouterr().err
    assert "no runs from 0.999 to 1: anchors will say nothing of 75% of the traffic" in said
    assert "from 0 to" not in said
    store = make.store(tmp_path / "store")
    assert {(it.band, it.share) for it in store.anchors.all()} == {(0, 0.25)}
    store.close()


def test_human_labels_stay_with_their_runs(path, capsys):
    assert run(path, "freeze", "--n", "50", "--workflow", "support") == 0
    found = shown(path, capsys)
    store = make.store(path)
    labels = [it.labels for it in store.anchors.all() if it.labels]
    store.close()
    assert len(labels) in {0, 1}
    assert found["metrics"][0]["labelled"] == len(labels)


def test_a_file_of_records_and_of_scored_lines(path, tmp_path, capsys):
    runs = tmp_path / "runs.jsonl"
    given = {"query": "Where is the lab?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}
    scored = {"scores": {"faithfulness": {"state": "ok", "value": 0.1}}}
    runs.write_text("".join(json.dumps(given | (scored if n % 2 else {})) + "\n" for n in range(60)) + "{\n")
    assert run(path, "freeze", "--file", str(runs), "--n", "55") == 0
    said = capsys.readouterr().err
    assert "runs.jsonl:61" in said
    assert "a file of records may have" not in said, "it was given"
    store = make.store(path)
    assert {it.band for it in store.anchors.all()} == {0, 4}
    store.close()


def test_a_file_of_records_makes_a_store_where_there_is_none(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RAGTRACE_CONTENT", "full")
    monkeypatch.setenv("RAGTRACE_METRICS", "faithfulness")
    runs = tmp_path / "runs.jsonl"
    given = {"query": "Where is the lab?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}
    runs.write_text("".join(json.dumps(given) + "\n" for _ in range(50)))
    assert run(tmp_path / "new", "freeze", "--file", str(runs), "--n", "50") == 0
    said = capsys.readouterr().out
    assert "50 anchors, 50 of 50 scores of the reference\nno scorer will score them again" in said
    assert shown(tmp_path / "new", capsys)["n"] == 50


def test_a_new_reference_for_the_same_runs(path, capsys):
    assert run(path, "freeze", "--n", "50") == 0
    store = make.store(path)
    before = [it.record.id for it in store.anchors.all()]
    store.close()
    assert run(path, "freeze") == 2
    assert "50 anchors are kept already" in capsys.readouterr().err
    assert run(path, "freeze", "--again", "--repeats", "1") == 0
    store = make.store(path)
    assert [it.record.id for it in store.anchors.all()] == before
    store.close()
    assert shown(path, capsys)["metrics"][0]["n_reference"] == 50


@pytest.mark.parametrize(
    ("args", "variables", "said"),
    [
        (["freeze"], {"RAGTRACE_CONTENT": "none"}, "set RAGTRACE_CONTENT=full"),
        (["freeze", "--n", "49"], {}, "--n"),
        (["freeze", "--workflow", "nobody"], {}, "50 runs are needed, and there are 0"),
        (["freeze", "--again"], {}, "there are no anchors"),
        (["freeze", "--metrics", "answer_similarity"], {}, "computes none of the metrics"),
        (["freeze", "--file", "missing.jsonl"], {}, "check the path"),
    ],
)
def test_one_line_and_status_two(path, capsys, monkeypatch, args, variables, said):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(path, *args) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
