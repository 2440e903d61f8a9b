"""The summary: what is counted, what is warned of, and when a threshold is missed."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from ragtrace.cli.io.summary import Limit, Summary, limits_from
from ragtrace.errors import ConfigError
from ragtrace.metrics import Output
from ragtrace.model import RagRecord
from ragtrace.model.reading import Reading, Sign

if TYPE_CHECKING:
    from collections.abc import Iterable

OUTPUTS = {
    "faithfulness": Output(name="faithfulness"),
    "harm_at_k": Output(name="harm_at_k", direction="down", threshold=0.2),
}


def ok(value: float, **more: Any) -> Any:
    return {"state": "ok", "value": value, "passed": value >= 0.8, "judge": "overlap", "version": "v1", **more}


def failed(state: str, reason: str) -> Any:
    return {"state": state, "value": None, "passed": None, "reason": reason}


def shown(summary: Summary, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    summary.show(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def summed(lines: Iterable[Any]) -> Summary:
    summary = Summary()
    for line in lines:
        summary.add(line)
    return summary


@pytest.fixture
def summary() -> Summary:
    return summed(
        [
            *({"faithfulness": ok(value), "harm_at_k": ok(0.1)} for value in (1.0, 0.5, 0.9, 1.0)),
            *[{"faithfulness": failed("na", "no_claims"), "harm_at_k": failed("error", "judge_timeout")}] * 3,
            {"faithfulness": failed("error", "judge_unavailable"), "harm_at_k": failed("na", "no_labels")},
        ]
    )


def test_it_says_how_many_of_the_runs_carry_a_sign() -> None:
    summary = Summary()
    for signs in ((), (Sign("question_guessed"),), (Sign("tool_unused"), Sign("tool_unused"))):
        summary.add({"faithfulness": ok(0.9)}, RagRecord(id="1", reading=Reading(signs=signs)))
    summary.add({"faithfulness": ok(0.9)}, RagRecord(id="1"))
    assert "2 of 4 runs carry a sign; `ragtrace worst --sign any` lists them" in shown(summary, 200)


def test_nothing_is_said_of_signs_where_there_are_none(summary: Summary) -> None:
    assert "sign" not in shown(summary, 200)


@pytest.mark.parametrize("width", [200, 80])
def test_the_table_counts_and_never_averages_a_failure(summary: Summary, width: int) -> None:
    text = shown(summary, width)
    row = next(line for line in text.splitlines() if line.startswith("faithfulness")).split()
    assert row[1:3] == ["4", "0.850"]
    assert "75.0%" in row
    for reason in ("3 no_claims", "1 judge_unavailable", "3 judge_timeout", "1 no_labels"):
        assert reason in text


@pytest.mark.parametrize("name", ["session", "user", "query"])
def test_lines_of_one_session_user_or_query_count_as_one_in_the_interval(name: str) -> None:
    def interval(records: list[RagRecord | None]) -> str:
        summary = Summary()
        for number, record in enumerate(records):
            summary.add({"faithfulness": ok(float(number % 40 < 36))}, record)
        return shown(summary, 200).split("0.900")[1].split("  ")[1].strip()

    alone = interval([RagRecord(id=str(n), **{name: str(n)}) for n in range(40)])
    again = interval([RagRecord(id=str(n), **{name: str(n % 40)}) for n in range(120)])
    assert alone == again == interval([None] * 40)
    assert interval([None] * 120) != alone


@pytest.mark.parametrize("name", ["session", "user", "query"])
def test_lines_that_all_belong_together_are_one_piece_of_evidence_as_in_the_gauges(name: str) -> None:
    summary = Summary()
    for number in range(40):
        summary.add({"faithfulness": ok(float(number < 36))}, RagRecord(id=str(number), **{name: "the same"}))
    assert "0.000 to 1.000" in shown(summary, 200)
    assert len(found := summary.warnings()) == 1
    assert found[0].startswith("all lines are of one session, user or query and count as one")


def test_mixed_judges_and_left_out_lines_are_warned_of(summary: Summary) -> None:
    assert summary.warnings() == []
    summary.add({"faithfulness": ok(1.0, judge="openai:m")})
    assert summary.warnings() == [
        "faithfulness: scores of different judges or versions in one mean: openai:m v1, overlap v1",
        "harm_at_k: 1 of 9 lines scored without it",
    ]


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (Limit("faithfulness", 0.85, is_up=True), None),
        (Limit("faithfulness", 0.86, is_up=True), "faithfulness: mean 0.8500 is below 0.86"),
        (Limit("harm_at_k", 0.2, is_up=False), None),
        (Limit("harm_at_k", 0.05, is_up=False), "harm_at_k: mean 0.1000 is above 0.05"),
        (Limit("mrr", 0.0, is_up=True), "mrr: no score to hold against 0 (n = 0)"),
    ],
)
def test_thresholds_follow_the_metrics_direction(summary: Summary, limit: Limit, said: str | None) -> None:
    assert summary.missed([limit]) == ([] if said is None else [said])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([failed("error", "judge_timeout")], "no value of answered: 1 score is an error, judge_timeout"),
        (
            [failed("error", "judge_unavailable")] * 3
            + [failed("error", "judge_timeout"), failed("na", "abstained")],
            "no value of answered: 4 scores are errors, 3 of them judge_unavailable",
        ),
        ([failed("error", "judge_timeout"), ok(1.0)], None),
        ([failed("na", "abstained")], None),
        ([failed("error", "zero_embedding")], None),
        (
            [failed("error", "budget_exceeded"), failed("error", "zero_embedding")],
            "no value of answered: 2 scores are errors, 1 of them budget_exceeded",
        ),
        ([], None),
    ],
)
def test_a_metric_that_the_judge_never_answered_is_told(lines: list[Any], said: str | None) -> None:
    assert (
        summed({"answered": line, "citation_f1": failed("na", "no_citations")} for line in lines).unjudged() == said
    )


def test_a_mean_equal_to_its_threshold_in_exact_arithmetic_meets_it() -> None:
    summary = summed([{"faithfulness": ok(0.1)}] * 10)
    assert summary.missed([Limit("faithfulness", 0.1, is_up=True)]) == []


def test_limits_are_read_with_and_without_a_cut_off() -> None:
    found = limits_from(["faithfulness=.8", "harm_at_k@3=0.2", "harm_at_k@10=1e-1"], OUTPUTS, (3, 10))
    assert [(limit.name, limit.value, limit.is_up) for limit in found] == [
        ("faithfulness", 0.8, True),
        ("harm_at_k", 0.2, False),
        ("harm_at_k@10", 0.1, False),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fathfulness=0.8", "did you mean 'faithfulness'"),
        ("faithfulness", "write METRIC=NUMBER"),
        ("faithfulness=high", "write METRIC=NUMBER"),
        ("faithfulness=nan", "write METRIC=NUMBER"),
        ("harm_at_k@7=0.2", "K 7 is not computed; add it to --k-values"),
    ],
)
def test_wrong_limits_are_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")) as caught:
        limits_from([text], OUTPUTS, (3, 10))
    assert "\n" not in str(caught.value)


def test_the_ratio_of_means_stands_beside_the_mean_of_ratios() -> None:
    second = {"ra_nwg_at_k@10": ok(0.5), "proc_at_k@10": ok(1.0)}
    summary = summed(
        {"ra_nwg_at_k": ok(ra), "proc_at_k": ok(proc), "pct_proc_at_k": ok(ra / proc), **second}
        for ra, proc in ((0.2, 0.4), (0.9, 0.9))
    )
    summary.add({"ra_nwg_at_k": failed("na", "zero_oracle"), "proc_at_k": failed("na", "zero_oracle")})
    rows = {line.split()[0]: line.split()[1:3] for line in shown(summary, 200).splitlines() if line.strip()}
    assert rows["pct_proc_at_k"] == ["2", "0.750"]
    assert rows["pct_proc_micro"] == ["2", "0.846"]
    assert rows["pct_proc_micro@10"] == ["2", "0.500"]


def test_a_ratio_over_nothing_has_no_number() -> None:
    summary = summed([{"ra_nwg_at_k": ok(0.0), "proc_at_k": ok(0.0)}])
    assert shown(summary, 200).splitlines()[-1].split() == ["pct_proc_micro", "1"]


def test_values_over_several_universes_in_one_mean_are_warned_of() -> None:
    summary = summed({"ra_nwg_at_k": ok(0.5, universe=scope)} for scope in ("gold", "cache"))
    assert "over cache" in summary.warnings()[0]


def mixed() -> Summary:
    unlabelled = failed("na", "no_labels")
    return summed(
        [
            *({"p_at_k": ok(0.2, k=10) if n % 3 else ok(1.0, k=2), "mrr": ok(1.0)} for n in range(6)),
            {"p_at_k": failed("error", "judge_timeout"), "mrr": unlabelled},
            {"p_at_k": {**failed("na", "unlabelled_topk"), "k": 10}, "mrr": unlabelled},
        ]
    )


def test_a_mean_is_of_one_k() -> None:
    lines = [line.split() for line in shown(mixed(), 200).splitlines()]
    rows = {" ".join(line[:3]): line[3:] for line in lines if line[0] == "p_at_k"}
    assert list(rows) == ["p_at_k (K 2)", "p_at_k (K 10)"]
    assert rows["p_at_k (K 2)"][:2] == ["2", "1.000"]
    assert rows["p_at_k (K 10)"][:2] == ["4", "0.200"]
    assert "judge_timeout" in rows["p_at_k (K 2)"]
    assert "unlabelled_topk" in rows["p_at_k (K 10)"]
    assert [line[1:3] for line in lines if line[0] == "mrr"] == [["6", "1.000"]]
    assert mixed().warnings() == []


def test_a_mean_is_of_one_label_scale() -> None:
    scales = {"direct5": 1.0, "umbrela_mapped": 0.5}
    summary = summed({"p_at_k": ok(value, k=3, label_scale=scale)} for scale, value in scales.items())
    rows = [line.split()[:4] for line in shown(summary, 200).splitlines()]
    assert rows[1:] == [["p_at_k", "(direct5)", "1", "1.000"], ["p_at_k", "(umbrela_mapped)", "1", "0.500"]]


def test_a_threshold_over_several_kinds_of_scores_is_refused_in_one_line() -> None:
    assert mixed().missed([Limit("p_at_k", 0.1, is_up=True), Limit("mrr", 0.1, is_up=True)]) == [
        "p_at_k: no mean to hold against 0.1: K goes from 2 to 10; choose one with --k-values"
    ]
    summary = summed({"mrr": ok(1.0, label_scale=scale)} for scale in ("direct5", "umbrela_mapped"))
    said = (
        "no mean to hold against 0.1: the label scales are direct5, umbrela_mapped; score each in a file of its own"
    )
    assert summary.missed([Limit("mrr", 0.1, is_up=True)]) == [f"mrr: {said}"]


def test_the_ratio_of_means_is_of_one_k() -> None:
    given = ((2, 0.5), (3, 0.25), (3, 0.25))
    summary = summed({"ra_nwg_at_k": ok(ra, k=k), "proc_at_k": ok(1.0, k=k)} for k, ra in given)
    lines = [line.split() for line in shown(summary, 200).splitlines()]
    found = {" ".join(line[:3]): line[3:5] for line in lines if line[0] == "pct_proc_micro"}
    assert found == {"pct_proc_micro (K 2)": ["1", "0.500"], "pct_proc_micro (K 3)": ["2", "0.250"]}


def test_labels_with_a_version_a_query_are_no_judges() -> None:
    details = [{"labels_version": f"{n}"} for n in range(3)]
    assert summed({"mrr": ok(1.0, judge="labels", details=one)} for one in details).warnings() == []
