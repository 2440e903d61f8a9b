"""Stores and files are followed while others write, and broken rows are counted."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from ragtrace.cli.calibrate.label_reader import read_labelled
from ragtrace.views import NewRating, RunFilter, Views
from tests import make
from tests.unit.views.scored_runs import emit, line, open_store, score, write

HOSTILE = (
    "not JSON",
    "[1]",
    {"query": 7, "scores": {}},
    {"query": "x", "scores": {"faithfulness": {"state": "ok", "value": "high"}}},
)


def looked(views):
    """Have the next call look at the file at once, without the pause between looks."""
    views._looked_at = 0.0
    return views


@pytest.fixture
def views(tmp_path):
    found = Views.of_file(write(tmp_path / "a.jsonl", [line(n) for n in range(12)]))
    yield found
    found.close()


def test_only_new_lines_of_a_growing_file_are_read(tmp_path, views):
    before = views.version()
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write(json.dumps(line(12)) + "\n" + json.dumps(line(13))[:40])
        file.flush()
        assert looked(views).runs(RunFilter()).count == 13
        assert views.version() != before
        file.write(json.dumps(line(13))[40:] + "\n")
    assert looked(views).runs(RunFilter()).count == 14
    assert views.run("14").query == line(13)["query"]


def test_an_unchanged_file_keeps_its_version(views):
    assert looked(views).version() == looked(views).version()


def test_a_file_that_was_written_anew_is_read_again(tmp_path, views):
    write(tmp_path / "a.jsonl", [line(50)])
    looked(views).version()
    deadline = time.monotonic() + 10.0
    while looked(views).runs(RunFilter()).count != 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert views.run("1").query == line(50)["query"]


def test_broken_rows_are_counted_and_nothing_raises(tmp_path):
    odd = line(1, query="<b>\ud800</b>", ended=float("nan"), started=None, tags=[{"a": 1}], history="x")
    huge = line(2, answer="word " * 100_000, session=None)
    path = write(tmp_path / "a.jsonl", [*HOSTILE, odd, huge, line(3), line(3), {"answer": "No scores."}])
    views = Views.of_file(path)
    overview = views.overview()
    assert overview.runs == 5
    assert overview.notes[0].startswith("broken rows that were left out: 4 (the first: row 1: not JSON")
    assert "runs without a time, which enter no trend: 2" in overview.notes
    assert [it.id for it in views.runs(RunFilter(text="<B>")).lines] == ["5"]
    for it in views.runs(RunFilter()).lines:
        views.run(it.id)
    assert views.choices().metrics
    assert views.queue().total == 4


def test_other_files_are_read_by_the_caller_or_unpacked(tmp_path):
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(b"".join(json.dumps(line(n)).encode() + b"\n" for n in range(3))))
    rows = [(n + 1, line(n)) for n in range(3)]
    given = Views.of_file(tmp_path / "folder", rows=lambda _broken: rows)
    for views in (Views.of_file(packed), given):
        assert views.overview().runs == 3
        assert views.run("2").query == line(1)["query"]


def test_a_live_view_answers_while_it_reads(tmp_path):
    views = Views.of_file(write(tmp_path / "a.jsonl", [line(n) for n in range(30)]), is_live=True)
    deadline = time.monotonic() + 10.0
    while views.overview().runs < 30 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert views.overview().runs == 30


def test_ratings_of_a_file_are_kept_where_calibrate_reads_them(tmp_path, views):
    ratings = [NewRating(run_id="2", value=value, metric="faithfulness", rater=rater, comment="c")
               for rater, value in (("ada", 0.0), ("bo", 1.0), ("ada", 1.0))]  # fmt: skip
    assert views.rate([*ratings, NewRating(run_id="99", value=1.0)]) == 3
    kept = tmp_path / "a.jsonl.labels.jsonl"
    assert read_labelled(str(kept), ["label.faithfulness"]).ratings == {1: (1.0, 1.0)}
    assert [(it.rater, it.value, it.comment) for it in looked(views).run("2").ratings] == [
        ("bo", 1.0, "c"), ("ada", 1.0, "c"),
    ]  # fmt: skip
    assert kept.stat().st_mode & 0o777 == 0o600
    again = Views.of_file(tmp_path / "a.jsonl")
    assert [it.id for it in again.runs(RunFilter(labelled=True)).lines] == ["2"]


def test_a_store_is_followed(tmp_path):
    path = tmp_path / "s.sqlite"
    store = open_store(path)
    for n in range(6):
        emit(store, line(n))
    views = Views.of_store(path)
    assert views.run(f"{1:032x}").claims[1].text == "Order 0 is free."
    emit(store, line(6))
    assert looked(views).overview().runs == 7
    views.rate([NewRating(run_id=f"{2:032x}", value=0.0, metric="faithfulness", rater="ada")])
    assert looked(views).queue("faithfulness").labelled == 1
    store.forget("trace", f"{2:032x}")
    assert looked(views).overview().runs == 6
    assert views.run(f"{2:032x}") is None
    assert (views.queue("faithfulness").labelled, views.overview().metrics[0].n) == (0, 6)
    views.close()


def test_a_later_score_replaces_the_earlier_one(tmp_path):
    path = tmp_path / "s.sqlite"
    store = open_store(path)
    emit(store, line(0, value=0.2))
    views = Views.of_store(path)
    again = line(0, value=0.8, revision=1)
    emit(store, {**again, "ended": again["ended"] + 5.0})
    assert looked(views).overview().metrics[0].mean.mean == 0.8
    assert views.runs(RunFilter()).lines[0].value == 0.8


def test_a_run_without_texts_is_shown_without_them(tmp_path):

    path = tmp_path / "s.sqlite"
    emit(make.store(path), line(0))
    views = Views.of_store(path)
    found = views.run(f"{1:032x}")
    assert (found.has_texts, found.query, found.verdict) == (
        False,
        "",
        line(0)["scores"]["diagnosis"]["details"]["verdict"],
    )
    assert views.runs(RunFilter()).lines[0].query is None
    assert any(note.startswith("runs without texts: 1") for note in views.overview().notes)


def test_a_rescore_by_another_judge_is_found_by_the_count(tmp_path):
    path = tmp_path / "s.sqlite"
    store = open_store(path)
    emit(store, line(0))
    views = Views.of_store(path)
    record = make.record(span_id="s" * 16)
    store.emit(record, [make.score(record, "mrr", 1.0, version="b2")], source="rescore")
    assert "mrr" in [it.key.metric for it in looked(views).overview().metrics]


def test_score_helper_makes_what_the_reader_takes():
    assert score(None)["state"] == "na"
