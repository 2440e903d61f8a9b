"""The recorded traces of one application give the same records and scores, up to what each dialect lacks."""

from __future__ import annotations

import pytest

from docs import dialect_table
from ragtrace.ingest import all_dialects, read_trace
from tests.ingest.record.application import shop
from tests.ingest.recorded import NAMES, runs_of, traces_of

CHAINS = [name for name in NAMES if not any(word in name for word in ("openai", "ragtrace"))]
OWN = {"langchain": "ragtrace-langchain-full", "llama": "ragtrace-llamaindex-full"}
# Numbers that a lack leaves out; all others are those of our own callback.
NEEDS_TEXT = {"faithfulness", "invented_specifics"}
NEEDS_ID = {
    "p_at_k", "mrr", "ndcg_at_k", "ra_nwg_at_k", "proc_at_k", "pct_proc_at_k", "n_recall4_at_k", "n_recall5_at_k",
}  # fmt: skip


def own_of(name: str) -> str:
    return next(own for word, own in OWN.items() if word in name)


def test_every_dialect_has_fixtures_of_its_own():
    found = {dialect for name in NAMES for run in runs_of(name) for dialect in run.dialects}
    assert {*all_dialects()} <= found


@pytest.mark.parametrize("name", [name for name in NAMES if name.partition("-")[0] in all_dialects()])
def test_each_trace_is_at_most_one_run(name):
    assert all(len(read_trace(spans)) <= 1 for spans in traces_of(name))


@pytest.mark.parametrize("name", [name for name in CHAINS if name.partition("-")[0] in all_dialects()])
def test_what_is_carried_equals_what_our_own_callback_captured(name):
    ours, theirs = runs_of(own_of(name)), runs_of(name)
    for own, run in zip(ours, theirs, strict=True):
        lacks = {*run.lacks}
        if "question" not in lacks and "retrieval" not in lacks:
            assert run.record.query == own.record.query
        if not lacks & {"answer", "model_call"}:
            assert run.record.answer == own.record.answer
        if not lacks & {"documents", "retrieval", "document_text"}:
            assert [p.text for p in run.record.contexts] == [p.text for p in own.record.contexts]
        if not lacks & {"documents", "retrieval", "document_id"}:
            assert run.record.pool("retrieved") == () or run.record.pools[0].ids == own.record.pools[0].ids
        if not lacks & {"documents", "retrieval", "document_score"}:
            scores = [[p.score for p in one.record.pool("retrieved")] for one in (run, own)]
            assert scores[0] == scores[1]


@pytest.mark.parametrize("name", [name for name in CHAINS if name.partition("-")[0] in all_dialects()])
def test_scores_equal_those_of_our_own_callback_or_say_what_is_lacking(name):
    runs = runs_of(name)
    pairs = zip(dialect_table.scores_of(runs_of(own_of(name))), dialect_table.scores_of(runs), runs, strict=True)
    for own, theirs, run in pairs:
        for expected, result in zip(own, theirs, strict=True):
            if (expected.value, expected.reason) == (result.value, result.reason):
                continue
            assert run.lacks, f"{result.name}: {expected.value} is {result.value}, and nothing is lacking"
            is_by_id = result.name in NEEDS_ID and "document_id" in run.lacks
            assert result.state == "na" or "retrieval" in run.lacks or is_by_id, result


def test_the_questions_are_those_of_the_application():
    assert [run.record.query for run in runs_of("ragtrace-langchain-full")] == [one.text for one in shop.QUESTIONS]


def test_the_page_has_todays_tables():
    text = dialect_table.PAGE.read_text(encoding="utf-8")
    assert dialect_table.with_tables(text) == text, "run python -m docs.dialect_table"
