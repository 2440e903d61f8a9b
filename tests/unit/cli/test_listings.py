"""What `ragtrace settings` and `ragtrace metrics` print at several widths, and the total of the progress bar."""

from __future__ import annotations

import pytest
from rich.console import Console

from ragtrace.cli.io import console
from ragtrace.cli.io.progress import total
from ragtrace.cli.main import main
from ragtrace.metrics.registry import all_metrics
from ragtrace.settings import variables


@pytest.fixture
def lines(monkeypatch, capsys):
    def shown(command, width):
        class Sized(console.Shown):
            def __init__(self):
                super().__init__()
                self.width = width

        monkeypatch.setattr(console, "Shown", Sized)
        assert main([command]) == 0
        return capsys.readouterr().out.splitlines()

    return shown


@pytest.mark.parametrize("width", [80, 100, 120, 160, 220])
def test_settings_are_whole_at_every_width(lines, width):
    found = lines("settings", width)
    words = {word for line in found for word in line.split()}
    for name, variable, _, _ in variables():
        assert name in words
        assert not variable or variable in words
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
