"""What `ragtrace settings` and `ragtrace metrics` print at several widths, and the total of the progress bar."""

from __future__ import annotations

import pytest
from rich.console import Console

from ragtrace.cli import main
from ragtrace.cli.io import console
from ragtrace.cli.io.progress import total
from ragtrace.metrics import all_metrics
from ragtrace.service import build_scorer
from ragtrace.settings import TABLE, Settings
from tests import make


@pytest.fixture
def lines(monkeypatch, capsys):
    def shown(command, width, *options):
        class Sized(console.Shown):
            def __init__(self):
                super().__init__()
                self.width = width

        monkeypatch.setattr(console, "Shown", Sized)
        assert main([command, *options]) == 0
        return capsys.readouterr().out.splitlines()

    return shown


@pytest.mark.parametrize("width", [80, 100, 120, 160, 220])
def test_settings_are_whole_at_every_width(lines, width):
    found = lines("settings", width)
    words = {word for line in found for word in line.split()}
    for name, one in TABLE.items():
        assert name in words
        assert not one.variable or one.variable in words
    assert max(map(len, found)) <= width


@pytest.mark.parametrize("width", [80, 120, 220])
def test_metrics_are_whole_and_each_says_what_it_means(lines, width):
    found = lines("metrics", width)
    text = " ".join(" ".join(found).split())
    assert "…" not in text
    assert found[-1] == "faithfulness under the judge overlap: threshold 0.57"
    for metric in all_metrics().values():
        assert metric.spec.summary in text
        assert all(output.name in text for output in metric.spec.outputs)
    assert max(len(line.rstrip()) for line in found) <= width


def test_metrics_as_markdown_hold_their_meanings(capsys):
    assert main(["metrics", "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "\n| mrr | 1 / rank of the first relevant context; the mean over traces is MRR. |\n" in shown


def judged(capsys, judge):
    """Return the cells of `ragtrace metrics --judge` by exported name: threshold, direction, version, available."""
    assert main(["metrics", "--judge", judge, "--markdown"]) == 0
    rows = [line.strip("| ").split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    return {cells[-5].strip(): [cell.strip() for cell in cells[-4:]] for cells in rows}


async def test_metrics_of_a_judge_have_the_thresholds_and_versions_of_its_scores(capsys):
    shown = judged(capsys, "overlap")
    names = {output.name for metric in all_metrics().values() for output in metric.spec.outputs}
    assert shown.keys() == names
    record = make.record("You can cancel in Settings.", query="How do I cancel?", answer="Cancel in Settings.")
    scorer = build_scorer(Settings.resolve({}, environ={}))
    found = {result.name: result for result in await scorer.results(record)}
    assert {"faithfulness", "invented_specifics", "answered", "diagnosis"} <= found.keys()
    for name, result in found.items():
        assert shown[name][2:] == [result.version, "yes"], name
    assert (shown["faithfulness"][:2], shown["invented_specifics"][:2]) == (["0.57", "up"], ["0.2", "down"])
    assert shown["citation_f1"][2:] == ["", "no: the judge has no task citations"]
    assert shown["nuggets_all"][2:] == ["", "no: the judge takes no prompts of a metric"]
    assert shown["hallucination"][2:] == ["", "no: no pair scorer is set"]
    assert shown["mrr"][3] == "for records with labels"
    assert shown["rouge1_consistency"][3].startswith("no: it compares several answers")


def test_metrics_of_a_language_model_need_neither_key_nor_network(capsys, monkeypatch):
    for name in ("OPENAI_API_KEY", "RAGTRACE_JUDGE_API_KEY", "RAGTRACE_JUDGE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    shown, other = judged(capsys, "openai:a"), judged(capsys, "openai:b")
    assert shown["faithfulness"][0] == "0.8"
    assert {shown[name][3] for name in ("citation_f1", "nuggets_all", "mrr", "diagnosis")} == {"yes"}
    assert shown["faithfulness"][2] != other["faithfulness"][2]
    assert shown["invented_specifics"] == judged(capsys, "overlap")["invented_specifics"], "it asks no judge"
    monkeypatch.setenv("RAGTRACE_JUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    assert judged(capsys, "openai:a") == shown
    monkeypatch.setenv("RAGTRACE_METRIC_OPTIONS_THRESHOLD_1TO5", "4")
    assert judged(capsys, "openai:a")["faithfulness_1to5"][0] == "4"


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("overlp", "unknown judge 'overlp'; did you mean 'overlap'?"),
        ("gpt-4o", "did you mean 'openai:gpt-4o'?"),
        ("openai", "judge 'openai' needs a model"),
        ("", "a name is missing"),
    ],
)
def test_a_judge_that_is_none_is_one_line(capsys, judge, said):
    assert main(["metrics", "--judge", judge]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n"), said in shown.err) == ("", 1, True)


@pytest.mark.parametrize("width", [60, 80, 120, 220])
def test_metrics_of_a_judge_are_whole_at_every_width(lines, width):
    found = lines("metrics", width, "--judge", "overlap")
    text = " ".join(" ".join(found).split())
    assert "…" not in text
    for metric in all_metrics().values():
        assert all(output.name in text for output in metric.spec.outputs)
    assert "the judge has no task citations" in text
    assert max(len(line.rstrip()) for line in found) <= width


@pytest.mark.parametrize(("limit", "expected"), [(None, 5), (2, 2), (9, 5)])
def test_the_total_of_the_bar_is_what_will_be_scored(tmp_path, limit, expected):
    path = tmp_path / "in.jsonl"
    path.write_text("{}\n\n" * 5)
    assert total(str(path), limit) == expected
    assert total("-", limit) == limit


def test_a_console_that_is_piped_folds_nothing():
    assert isinstance(console.Shown(), Console)
    assert console.Shown().width == console.PIPED_COLUMNS


def test_colours_without_a_terminal_fold_nothing(monkeypatch, capsys):
    """Notebooks and CI services set FORCE_COLOR, where rich takes a pipe for a screen of 80 columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert console.Shown().is_terminal
    assert console.Shown().width == console.PIPED_COLUMNS
