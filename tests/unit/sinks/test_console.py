"""Each scored run on standard error: one line, and its worst claim."""

from __future__ import annotations

import pytest

from ragtrace.model import JudgeInfo, MetricResult, RagRecord, bad_claims
from ragtrace.sinks import ConsoleSink, run_lines
from tests import make

CLAIMS = [
    {"text": "The lab is in Oslo.", "verdict": "supported", "support": 0.9},
    {"text": "It has\n12 rooms.", "verdict": "not_supported", "support": 0.2, "reason": "12 is nowhere"},
    {"text": "It is closed.", "verdict": "contradicted", "support": 0.0},
]

REFUSAL = {"claims": [{"text": "I do not know.", "verdict": "not_supported", "support": 0.0}]}


@pytest.mark.parametrize(
    ("results", "lines"),
    [
        ([make.result(passed=True)], ["ragtrace: faithfulness 0.50 | Where?"]),
        (
            [make.result(passed=False), make.result("mrr", 1.0)],
            ["ragtrace: faithfulness 0.50 LOW, mrr 1.00 | Where?"],
        ),
        (
            [make.result(details={"claims": CLAIMS[:2]})],
            ["ragtrace: faithfulness 0.50 | Where?", "          not supported (0.20): It has 12 rooms."],
        ),
        (
            [make.result(), MetricResult(name="citations", state="na", reason="no_parts")],
            ["ragtrace: faithfulness 0.50 | Where?"],
        ),
        (
            [make.result(), MetricResult(name="nuggets", state="error", reason="judge_timeout")],
            ["ragtrace: faithfulness 0.50, nuggets error (judge_timeout) | Where?"],
        ),
        (
            [MetricResult(name="faithfulness", state="na", reason="no_contexts")],
            ["ragtrace: faithfulness na (no_contexts) | Where?"],
        ),
        (
            [
                make.result("answered"),
                MetricResult(name="faithfulness", state="na", reason="abstained", details=REFUSAL),
            ],
            ["ragtrace: answered 0.50 | Where?"],
        ),
        (
            [
                make.result("answered"),
                MetricResult(
                    name="diagnosis",
                    state="na",
                    reason="undetermined",
                    details={"verdict": "undetermined", "because": "sufficiency_unknown"},
                ),
            ],
            ["ragtrace: answered 0.50, diagnosis undetermined (sufficiency_unknown) | Where?"],
        ),
        ([], ["ragtrace: no metrics | Where?"]),
    ],
)
def test_the_lines_of_a_run(results, lines):
    assert run_lines(RagRecord(id="1", query="Where?"), results) == lines


def test_a_metric_where_less_is_better_is_high_when_it_misses():
    results = [make.result("invented_specifics", 1.0, passed=False), make.result(passed=False)]
    (line,) = run_lines(RagRecord(id="1", query="Where?"), results, {"invented_specifics"})
    assert line == "ragtrace: invented_specifics 1.00 HIGH, faithfulness 0.50 LOW | Where?"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "0.50 LOW (bad below 0.57)"), (0.5699, "0.5699 LOW (bad below 0.57)")]
)
def test_a_mark_names_its_threshold_and_the_value_never_seems_to_meet_it(value, shown):
    (line,) = run_lines(RagRecord(id="1"), [make.result(value=value, passed=False)], threshold_of=lambda _: 0.57)
    assert line == f"ragtrace: faithfulness {shown}"


def test_a_skipped_score_says_nothing_of_every_run(capsys):
    sink = ConsoleSink()
    for state, reason in [("skipped", "not_sampled"), ("na", "no_labels"), ("skipped", "not_sampled")]:
        it = MetricResult(name="nuggets", state=state, reason=reason)
        sink.emit(RagRecord(id="1", query="Where?"), make.scores(None, it, make.result()))
    (told,) = (line for line in capsys.readouterr().err.splitlines() if "Where?" not in line)
    assert told == (
        "ragtrace: nuggets: na (no_labels) in every run so far, since the metric needs relevance labels of its kind, "
        "and the record has none; give labels with the record, or leave the metric out"
    )


def test_a_long_question_stays_on_one_line():
    (line,) = run_lines(RagRecord(id="1", query="Where\nis " + "the lab " * 50, trace_id="a" * 32), [make.result()])
    assert len(line) < 160
    assert line.endswith(f"... | trace {'a' * 32}")


def test_the_worst_claim_comes_first_and_odd_details_give_none():
    assert [claim.text for claim in bad_claims({"claims": CLAIMS})] == ["It is closed.", "It has\n12 rooms."]
    for odd in ({}, {"claims": 3}, {"claims": ["text", {"verdict": "not_supported"}, {"text": "x"}]}):
        assert bad_claims(odd) == []


def test_it_writes_to_standard_error(capsys):
    ConsoleSink().emit(RagRecord(id="1", query="Where?"), [make.score()])
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "ragtrace: faithfulness 0.50 | Where?\n")


def test_it_tells_once_what_the_offline_judge_does_not_see(capsys):
    sink = ConsoleSink()
    for model in ("openai:m", "overlap", "overlap"):
        judged = make.result(details={"claims": CLAIMS[:1]}, judge=JudgeInfo(model=model))
        sink.emit(RagRecord(id="1", query="Where?"), make.scores(None, judged))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "Where?" not in line] == [lines[2]]
    assert "the judge overlap" in lines[2]
    assert "contradictions in other words" in lines[2]
