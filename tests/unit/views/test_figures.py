"""The figures of an overview are those of the command line."""

from __future__ import annotations

import pytest

from ragtrace.cli.io.summary import Summary
from ragtrace.errors import ConfigError
from ragtrace.model import cluster_of, record_from_json
from ragtrace.scoring import ComparedFile, ScoredSource, clusters_of, compare, ends_of, investigated, scored_row
from ragtrace.stats import clustered_interval
from ragtrace.views import RunFilter, Views, compare_sources
from tests.unit.views.scored_runs import START, emit, line, open_store, score, write


def close(found, wanted):
    return found == pytest.approx(tuple(wanted), rel=1e-12)


def test_means_equal_those_of_compare_and_of_the_summary(tmp_path):
    lines = [line(n, session=None if n % 4 else f"s{n // 8}", query=f"q {n % 30}") for n in range(90)]
    lines[7]["scores"]["faithfulness"] = score(None)
    views = Views.of_file(write(tmp_path / "a.jsonl", lines))
    compared = {
        it.key.metric: it.sides[0]
        for it in compare([ComparedFile("a", [scored_row(it, n) for n, it in enumerate(lines, 1)])]).lines
        if not it.is_over_runs
    }
    summary = Summary()
    for it in lines:
        summary.add(it["scores"], record_from_json(it, fallback_id="1"))
    found = views.overview().metrics
    assert {it.key.metric for it in found} == {"faithfulness", "contradicted_rate", "diagnosis"}
    assert found[0].key.metric == "faithfulness"
    for it in found:
        side = compared[it.key.metric]
        assert close(it.mean, side.mean)
        assert (it.n, it.na) == (len(side.values), side.na)
        (column,) = summary.columns[it.key.metric].values()
        own = clustered_interval(
            column.values, clusters_of(column.units), ends=ends_of(it.key.metric, column.values)
        )
        assert close(it.mean, own)


def test_a_store_s_means_are_weighted_over_clusters_and_without_the_forced_stratum(tmp_path):
    store = open_store(tmp_path / "s.sqlite")
    for n in range(30):
        emit(store, line(n), weight=1.0 + n % 3)
    emit(store, line(30, value=0.0), stratum="forced")
    views = Views.of_store(tmp_path / "s.sqlite")
    first = views.overview().metrics[0]
    values = [line(n)["scores"]["faithfulness"]["value"] for n in range(30)]
    clusters = [cluster_of(record_from_json(line(n), fallback_id="1")) for n in range(30)]
    wanted = clustered_interval(values, clusters, [1.0 + n % 3 for n in range(30)])
    assert close(first.mean, wanted)
    assert (first.n, first.forced, first.units) == (30, 1, "sessions")


def test_two_judges_are_two_series(tmp_path):
    lines = [line(n) for n in range(20)]
    for it in lines[10:]:
        it["scores"]["faithfulness"]["judge"] = "other"
    found = [it for it in Views.of_file(write(tmp_path / "a.jsonl", lines)).overview().metrics if it.key.judge]
    both = [it for it in found if it.key.metric == "faithfulness"]
    assert {(it.key.judge, it.n) for it in both} == {("overlap", 10), ("other", 10)}
    assert len({it.label for it in both}) == 2


def test_trend_and_histogram_hold_every_score_and_bins_have_the_interval_of_a_mean(tmp_path):
    lines = [line(n) for n in range(60)]
    first = Views.of_file(write(tmp_path / "a.jsonl", lines)).overview(bins=4).metrics[0]
    assert sum(first.trend.counts) == sum(first.histogram.counts) == 60
    size = first.trend.counts[0]
    own = [it["scores"]["faithfulness"]["value"] for it in lines[:size]]
    wanted = clustered_interval(own, [n // 3 for n in range(size)])
    assert close((first.trend.means[0], first.trend.lows[0], first.trend.highs[0]), wanted)


@pytest.mark.parametrize(("after", "state"), [(0.3, "fell"), (0.9, "steady")])
def test_drift_is_the_investigation_s_finding(tmp_path, after, state):
    lines = [line(n, value=(0.9 if n < 90 else after) - n % 7 / 100, session=None) for n in range(150)]
    views = Views.of_file(write(tmp_path / "a.jsonl", lines))
    source = ScoredSource((record_from_json(it, fallback_id="1"), it["scores"]) for it in lines)
    found = investigated(source, metric="faithfulness", before=START, until=START + 1e6)
    shown = views.investigate(metric="faithfulness")
    drift = views.overview().metrics[0].drift
    assert drift.state == state
    assert found.is_fallen == (state == "fell") == shown.is_fallen
    if state == "fell":
        assert drift.since == found.since == found.changed_at == shown.since
        assert (drift.before, drift.after) == (found.change.before.mean, found.change.window.mean)
        assert shown.example_ids
        assert shown.lines[0].startswith("What      faithfulness fell by")
    else:
        assert (drift.since, found.changed_at, shown.since) == (None, None, None)
        assert shown.headline.startswith("Nothing is shown to have fallen. faithfulness moved most, by")
        assert shown.headline.endswith("; this may be chance")


def test_a_fall_under_a_judge_that_scores_no_more_is_told_by_no_view(tmp_path):
    """Of the older version the mean fell a day before it was replaced; under the newer one it stays."""
    lines = []
    for n in range(400):
        at = START + n * 1_800.0
        value = (0.4 if 150 <= n < 200 else 0.9) - n % 7 / 100
        it = line(n, value=value, session=None, started=at, ended=at + 2.0)
        it["scores"] = {"faithfulness": it["scores"]["faithfulness"] | {"version": "v1" if n < 200 else "v2"}}
        lines.append(it)
    old = Views.of_file(write(tmp_path / "old.jsonl", lines[:200]))
    assert [it.drift.state for it in old.overview().metrics] == ["fell"]
    views = Views.of_file(write(tmp_path / "a.jsonl", lines))
    drifts = {it.key.version: it.drift.state for it in views.overview().metrics}
    assert drifts == {"v1": "unwatched", "v2": "steady"}
    assert not views.investigate().is_fallen


def test_verdicts_are_shares_with_the_most_frequent_failure_first(tmp_path):
    found = Views.of_file(write(tmp_path / "a.jsonl", [line(n) for n in range(40)])).overview().verdicts
    assert [it.verdict for it in found] == ["unsupported", "ok"]
    assert sum(it.share.mean for it in found) == pytest.approx(1.0)
    assert sum(it.n for it in found) == 40


def test_two_files_are_paired_as_by_compare_and_the_worst_regression_stands_first(tmp_path):
    before = [line(n) for n in range(30)]
    after = [line(n, value=0.05 if n == 4 else None) for n in range(30)]
    after[4]["query"] = before[4]["query"]
    one, other = (write(tmp_path / name, it) for name, it in (("a.jsonl", before), ("b.jsonl", after)))
    found = compare_sources(Views.of_file(one), Views.of_file(other))
    rows = [[scored_row(it, n) for n, it in enumerate(side, 1)] for side in (before, after)]
    wanted = compare([ComparedFile("a", rows[0]), ComparedFile("b", rows[1])]).lines[0].contrasts[0].difference
    first = found.metrics[0]
    assert (first.metric, first.pairs) == ("faithfulness", 30)
    assert (first.difference, first.low, first.high) == (wanted.value, wanted.low, wanted.high)
    assert found.runs[0].after_id == "5"
    assert found.runs[0].change == min(it.change for it in found.runs) < 0


def test_periods_are_compared_by_their_means(tmp_path):
    views = Views.of_file(
        write(tmp_path / "a.jsonl", [line(n, value=0.9 if n < 60 else 0.2, session=None) for n in range(120)])
    )
    middle = START + 60 * 60.0
    found = views.compare_periods((0.0, middle), (middle, 2e9))
    assert found.counts == (60, 60)
    assert (found.metrics[0].verdict, round(found.metrics[0].difference, 3)) == ("worse", -0.7)
    assert [it.verdict for it in found.metrics if it.metric == "contradicted_rate"] == ["worse"]


def test_of_a_question_asked_often_the_worst_runs_are_compared(tmp_path):
    values = [0.9, 0.5, 0.8, 0.7, 0.1, 0.6]
    rows = [line(n, value=value, session=None, query="How long?") for n, value in enumerate(values)]
    views, middle = Views.of_file(write(tmp_path / "a.jsonl", rows)), START + 3 * 60.0
    [pair] = views.compare_periods((0.0, middle), (middle, 2e9), metric="faithfulness").runs
    assert (pair.before, pair.after) == (0.5, 0.1)
    [pair] = views.compare_periods((0.0, middle), (middle, 2e9), metric="contradicted_rate").runs
    assert (pair.before, pair.after) == (0.5, 0.9)


def test_nothing_scored_gives_an_empty_overview(tmp_path):
    views = Views.of_file(write(tmp_path / "a.jsonl", [{"query": "Where?"}]))
    assert (views.overview().metrics, views.runs(RunFilter()).count) == ((), 1)
    assert "rows without scores: 1" in views.overview().notes[0]
    assert not views.investigate().is_fallen
    assert views.queue().items == ()


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path):
    with pytest.raises(ConfigError, match="there is no file"):
        Views.of_file(tmp_path / "none.jsonl")
