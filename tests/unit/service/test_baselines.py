"""Baselines of a running scorer: what they are learnt from, what the gauges say, and frozen ones that change."""

from __future__ import annotations

import random
import sqlite3
import time

import pytest

import ragtrace
from ragtrace import semconv
from ragtrace.capture import internal_errors
from ragtrace.metrics import Output, all_metrics
from ragtrace.model import JudgeInfo, RagRecord, SeriesKey
from ragtrace.queues import Unit
from ragtrace.service import BaselineMonitor, current
from ragtrace.service import baseline_monitor as module
from ragtrace.stats import Baseline
from ragtrace.stores import FrozenBaseline
from tests import make

UP = Output(name="faithfulness", threshold=0.8)
DOWN = Output(name="incorrect_rate", threshold=0.2, direction="down")
OUTPUTS = {
    it.name: it
    for it in (UP, DOWN, Output(name="open", threshold=None), Output(name="cosine", threshold=0.5, low=-1.0))
}
HOUR = 3_600.0


JUDGE = JudgeInfo(model="small")


class Taken:
    """Stands for `Falls`: keeps what a baseline would count."""

    def __init__(self):
        self.scores = []

    def add(self, key, x, weight, at):
        self.scores.append((key, x, weight, at))


@pytest.fixture
def learning(monkeypatch):
    """Return a monitor whose baselines have so many scores."""

    def made(scores, outputs=OUTPUTS, **given):
        monkeypatch.setattr(module, "LEARNT_SCORES", scores)
        return BaselineMonitor(outputs, **given)

    return made


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1_000.0

        def monotonic(self):
            return self.now

        def time(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def score(
    value,
    *,
    metric="faithfulness",
    version="v",
    k=None,
    weight=1.0,
    stratum="random",
    at=0.0,
    judge=JUDGE,
    universe=None,
):
    return make.score(
        metric=metric,
        value=value,
        version=version,
        k=k,
        judge=judge,
        label_scope=universe,
        stratum=stratum,
        weight=weight,
        at=at,
    )


def frozen(mean=0.9, *, metric="faithfulness", version="v", at=1.0, n=500, n_eff=None, **more):
    key = SeriesKey(metric, "rag", version=version, **more)
    return FrozenBaseline(key=key, frozen_at=at, baseline=Baseline(mean=mean, sd=0.15, n=n, n_eff=n_eff))


def judge_version(state):
    return state.attributes.get(semconv.JUDGE_VERSION)


def fed(monitor, values, *, start=0.0, every=HOUR, **given):
    for i, value in enumerate(values):
        monitor.observe([score(value, at=start + i * every, **given)], "rag")
    return start + len(values) * every


def good(n, seed=1):
    draw = random.Random(seed)
    return [draw.uniform(0.8, 1.0) for _ in range(n)]


def of(monitor, metric="faithfulness"):
    [found] = [it for it in monitor.states() if it.key.metric == metric]
    return found


def test_a_baseline_is_learnt_from_the_first_scores_and_the_gauges_say_so(learning):
    monitor = learning(100)
    end = fed(monitor, good(50))
    about = {
        "gen_ai.evaluation.name": "faithfulness", "gen_ai.workflow.name": "rag", "ragtrace.judge.version": "v",
    }  # fmt: skip
    assert [it.attributes for it in monitor.states()] == [about]
    assert not any(monitor.points(field) for field in module.GAUGES.values()), "nothing is known yet"
    end = fed(monitor, good(60), start=end)
    told = {name: monitor.points(field) for name, field in module.GAUGES.items()}
    assert told.pop("ragtrace.baseline.frozen.time") == []
    assert told.pop("ragtrace.baseline.n") == [(100.0, about)]
    assert {name: found[0][1] for name, found in told.items()} == {
        "ragtrace.baseline.mean": about, "ragtrace.baseline.sd": about
    }  # fmt: skip
    assert {*about} <= {*next(it for it in semconv.METRICS if it.name == "ragtrace.baseline.n").attributes}
    before = of(monitor)
    fed(monitor, [0.1] * 200, start=end)
    assert of(monitor) == before, "a slow decline is not learnt"


def test_lower_is_better_is_told_in_score_units(learning):
    monitor = learning(100)
    fed(monitor, [1 - x for x in good(150)], metric="incorrect_rate")
    assert of(monitor, metric="incorrect_rate").mean == pytest.approx(0.1, abs=0.02)


def in_session(number, **more):
    return RagRecord(id="1", session=f"session {number}", **more)


def test_turns_of_a_session_are_one_score_an_hour_after_the_first(learning):
    monitor = learning(1)
    for at, value in ((0.0, 1.0), (60.0, 0.0), (3_000.0, 0.2)):
        monitor.observe([score(value, at=at)], "rag", in_session(1))
    assert of(monitor).mean is None
    monitor.observe([score(1.0, at=3_700.0)], "rag", in_session(2))
    assert of(monitor).mean == pytest.approx(0.4)


def test_a_session_is_counted_also_when_nothing_comes_after_it(clock, learning):
    monitor = learning(1)
    monitor.observe([score(0.5, at=clock.now)], "rag", in_session(1))
    clock.now += HOUR - 60.0
    monitor.refresh()
    assert of(monitor).mean is None
    clock.now += 61.0
    monitor.refresh()
    assert of(monitor).mean == 0.5


def taken_of(asked):
    """Return when the scores came that count, of runs at so many seconds."""
    taken = Taken()
    monitor = BaselineMonitor(OUTPUTS, falls=taken)
    for at, record in asked:
        monitor.observe([score(0.9, at=at)], "rag", RagRecord(id="1", **record))
    return [at for *_, at in taken.scores]


def test_a_question_that_is_repeated_within_an_hour_counts_once():
    asked = ((0.0, "Where?"), (60.0, "where?"), (120.0, "When?"), (3_700.0, "Where?"), (3_800.0, ""))
    assert taken_of((at, {"query": query}) for at, query in asked) == [0.0, 120.0, 3_700.0, 3_800.0]


def test_runs_of_a_user_without_sessions_are_one_score_an_hour_after_the_first():
    users = ((0.0, "ada"), (60.0, "ada"), (120.0, "bob"), (3_700.0, "cy"), (3_800.0, "ada"))
    asked = [(at, {"user": user, "query": "Where?"}) for at, user in users]
    assert taken_of(asked) == [0.0, 120.0], "those of ada's and bob's first hour"
    sessions = ((8_000.0, "one"), (8_001.0, "two"), (20_000.0, "three"))
    asked += [(at, {"user": "dan", "session": session}) for at, session in sessions]
    assert len(taken_of(asked)) == 6, "cy, ada again, and dan's two sessions"


def test_runs_of_one_trace_count_once():
    asked = ((0.0, "a", "Where?"), (5.0, "a", "When?"), (9.0, "b", "When?"), (9.5, "c", "where?"))
    counted = taken_of((at, {"trace_id": trace * 32, "query": query}) for at, trace, query in asked)
    assert counted == [0.0, 9.0], "a question that its trace left out was not asked before"


@pytest.mark.parametrize(
    "first",
    [
        pytest.param({"stratum": "forced"}, id="a forced run"),
        pytest.param({"metric": "answered"}, id="a run drawn for another metric"),
        pytest.param({"version": "first judge"}, id="a run that the second judge did not score"),
    ],
)
def test_a_repeated_question_counts_for_a_series_that_the_first_run_gave_nothing(first):
    taken = Taken()
    monitor = BaselineMonitor(OUTPUTS | {"answered": Output(name="answered", threshold=0.5)}, falls=taken)
    asked = RagRecord(id="1", query="Where?")
    monitor.observe([score(0.2, at=0.0, **first)], "rag", asked)
    monitor.observe([score(0.9, at=60.0)], "rag", asked)
    monitor.observe([score(0.9, at=120.0)], "rag", asked)
    found = [at for key, *_, at in taken.scores if (key.metric, key.version) == ("faithfulness", "v")]
    assert found == [60.0]


def test_what_is_not_watched():
    monitor = BaselineMonitor(OUTPUTS)
    monitor.observe([score(0.5, metric="open"), score(0.5, metric="cosine"), score(0.5, metric="other")], "rag")
    monitor.observe([score(0.5, stratum="forced"), score(0.5, weight=None)], "rag")
    assert monitor.states() == []


def test_refusals_are_watched_though_they_neither_pass_nor_fail(learning):
    outputs = {it.name: it for metric in all_metrics().values() for it in metric.spec.outputs}
    found = module.watched(outputs)
    assert [name for name, it in found.items() if it.threshold is None] == ["answered"]
    monitor = learning(50, outputs)
    fed(monitor, [1.0] * 80, metric="answered")
    assert of(monitor, "answered").mean == 1.0


def test_the_number_of_a_baseline_is_its_effective_one(learning):
    monitor = learning(500)
    end = fed(monitor, good(450), weight=1.0)
    fed(monitor, good(50), weight=20.0, start=end)
    assert of(monitor).n_eff == pytest.approx(1_450**2 / 20_450)


def test_scores_by_other_labels_are_series_of_their_own(learning):
    """Of one version, since it does not tell what was labelled, and on which scale."""
    monitor = learning(10)
    five, four = JudgeInfo(model="human", label_scale="1-5"), JudgeInfo(model="human", label_scale="0-3")
    for mean, judge, universe in ((0.3, five, "pool"), (0.7, four, "gold"), (0.5, five, "gold")):
        fed(monitor, [mean] * 20, judge=judge, universe=universe)
    told = {
        (it.attributes["ragtrace.label_scale"], it.attributes["ragtrace.universe"]): round(it.mean, 6)
        for it in monitor.states()
    }
    assert told == {("1-5", "pool"): 0.3, ("0-3", "gold"): 0.7, ("1-5", "gold"): 0.5}
    assert len(monitor.states()) == 3
    fed(monitor, [0.5], judge=JUDGE)
    [bare] = [it for it in monitor.states() if it.key.label_scale is None]
    assert not {"ragtrace.label_scale", "ragtrace.universe"} & set(bare.attributes)


def test_a_series_too_many_is_counted_once_and_the_others_go_on(monkeypatch, learning):
    monkeypatch.setattr(module, "MAX_SERIES", 2)
    before = internal_errors().get("ragtrace.service.baseline_monitor.series", 0)
    kept = [frozen(version="f1"), frozen(version="f2"), frozen(version="f3")]
    monitor = learning(10, frozen=lambda: kept)
    monitor.refresh()
    for version in ("f1", "a", "b", "a"):
        fed(monitor, good(20), version=version)
    assert {it.key.version for it in monitor.states()} == {"f1"}
    monkeypatch.setattr(module, "REFRESH_S", 0.0)
    monitor.refresh()
    assert internal_errors()["ragtrace.service.baseline_monitor.series"] - before == 3, "f3, a and b"


# -- frozen baselines --


def test_a_frozen_baseline_is_exported_before_the_first_score_and_nothing_is_learnt(learning):
    monitor = learning(10, frozen=lambda: [frozen(0.9), frozen(0.1, metric="incorrect_rate")])
    monitor.refresh()
    assert (of(monitor).mean, of(monitor).n_eff) == (0.9, 500.0)
    assert of(monitor, "incorrect_rate").mean == pytest.approx(0.1)
    fed(monitor, [0.4] * 60)
    assert (of(monitor).mean, of(monitor).n_eff) == (0.9, 500.0)


def test_a_frozen_baseline_is_of_one_label_scale_and_universe(learning):
    judge = JudgeInfo(model="human", label_scale="1-5")
    kept = [frozen(0.4, label_scale="1-5", universe="pool", n_eff=103.0), frozen(0.9)]
    monitor = learning(100, frozen=lambda: kept)
    monitor.refresh()
    fed(monitor, [0.4] * 60, judge=judge, universe="pool")
    fed(monitor, [0.4] * 60, judge=judge, universe="gold")
    told = {(it.key.universe, it.n_eff) for it in monitor.states()}
    assert told == {("pool", 103.0), ("gold", None), (None, 500.0)}


def test_a_running_monitor_takes_a_new_normal_within_ten_seconds(clock, learning):
    kept = [frozen(0.9)]
    reads = []
    monitor = learning(100, frozen=lambda: reads.append(1) or list(kept))
    monitor.refresh()
    fed(monitor, [0.5] * 80)
    kept[:] = [frozen(0.5, at=2.0)]
    monitor.refresh()
    assert of(monitor).mean == 0.9, "it reads every ten seconds"
    clock.now += 10.0
    monitor.refresh()
    assert len(reads) == 2
    assert (of(monitor).mean, of(monitor).frozen_at) == (0.5, 2.0)
    assert judge_version(of(monitor)) == "v"


def test_a_frozen_version_of_long_ago_does_not_hide_the_one_that_scores(learning):
    monitor = learning(10, frozen=lambda: [frozen(0.6, version="old", at=9.0)])
    fed(monitor, good(20), version="new")
    monitor.refresh()
    assert of(monitor).mean == pytest.approx(0.9, abs=0.05)
    fed(monitor, [0.6], version="old")
    assert of(monitor).mean == 0.6, "now it is the last begun"


def test_each_k_is_told_and_of_its_versions_the_one_begun_last(learning):
    monitor = learning(10, frozen=lambda: [frozen(0.6, k=5, version="old", at=9.0)])
    monitor.refresh()
    fed(monitor, good(20), k=3)
    fed(monitor, [x - 0.3 for x in good(20)], k=5)
    told = {it.key.k: (judge_version(it), round(it.mean, 1)) for it in monitor.states()}
    assert told == {3: ("v", 0.9), 5: ("v", 0.6)}
    fed(monitor, [0.5], k=5, version="new")
    assert {it.key.k: (judge_version(it), it.mean is None) for it in monitor.states()} == {
        3: ("v", False), 5: ("new", True),
    }  # fmt: skip
    [one] = [it for it in monitor.states() if it.key.k == 3]
    assert one.attributes == {
        "gen_ai.evaluation.name": "faithfulness", "gen_ai.workflow.name": "rag", "ragtrace.judge.version": "v",
        "ragtrace.k": 3,
    }  # fmt: skip


def test_readings_are_labelled_as_the_scores_are(clock, learning):
    """Alerts join the two: scores that no judge gave have no version, and frozen baselines of them neither."""
    monitor = learning(10, frozen=lambda: [frozen(0.9)])
    monitor.refresh()
    assert judge_version(of(monitor)) == "v"
    fed(monitor, [0.9], judge=None)
    assert "ragtrace.judge.version" not in of(monitor).attributes
    fed(monitor, [0.9], version="", judge=JudgeInfo(model="small", prompt_hash="cafe"))
    assert judge_version(of(monitor)) == "cafe"


def test_only_a_frozen_baseline_tells_when_it_was_frozen(clock, learning):
    kept = []
    monitor = learning(10, frozen=lambda: list(kept))
    fed(monitor, good(20))
    assert (of(monitor).n_eff, of(monitor).frozen_at) == (10.0, None)
    kept.append(frozen(0.9, at=1_700_000_000.0))
    monitor.refresh()
    assert [value for value, _ in monitor.points("frozen_at")] == [1_700_000_000.0]


def test_a_store_that_cannot_be_read_leaves_what_is_there(clock, learning):
    fails = []

    def read():
        if fails:
            raise sqlite3.OperationalError("disk I/O error")
        return [frozen(0.9)]

    monitor = learning(10, frozen=read)
    monitor.refresh()
    fails.append(True)
    clock.now += 60.0
    with pytest.raises(sqlite3.OperationalError):
        monitor.refresh()
    assert of(monitor).mean == 0.9


# -- the real service --


def test_a_service_reads_its_store_s_baselines_at_its_start_and_again_while_it_runs(tmp_path, monkeypatch):
    path, site = tmp_path / "store", "ragtrace.service.service.Service.refresh_baselines"
    before = internal_errors().get(site, 0)
    store = make.store(path)
    store.freeze([frozen(0.91, n=321)])
    monkeypatch.setattr(module, "REFRESH_S", 0.05)
    ragtrace.configure(store=str(path), sample_rate=1.0, metrics=("faithfulness",))
    try:
        service = current()
        assert of(service.baselines).n_eff == 321.0
        store.freeze([frozen(0.81, n=322, at=2.0)])
        service.begin()
        end = time.monotonic() + 20.0
        while of(service.baselines).n_eff != 322.0 and time.monotonic() < end:
            time.sleep(0.02)
        assert (of(service.baselines).mean, of(service.baselines).n_eff) == (0.81, 322.0)
        assert internal_errors().get(site, 0) == before
    finally:
        ragtrace.shutdown(5.0)
        store.close()


def test_baselines_name_a_workflow_as_the_scores_do():
    ragtrace.configure(sample_rate=1.0, metrics=("faithfulness",))
    try:
        service = current()
        for name in ["w" * 300, *(f"workflow {i}" for i in range(120))]:
            record = RagRecord(id="1", trace_id="t", workflow=name)
            service.handler.publish(
                Unit(record=record, decision="random", probability=1.0), [score(0.9)], time.time_ns()
            )
        named = {it.key.workflow for it in service.baselines.states()}
        assert len(named) == 101
        assert {"w" * 128, "workflow 98", "other"} < named
    finally:
        ragtrace.shutdown(5.0)


def test_an_application_that_hands_its_units_on_watches_nothing(tmp_path):
    path = tmp_path / "store"
    store = make.store(path)
    store.freeze([frozen(0.91)])
    store.close()
    ragtrace.configure(store=str(path), spool=str(path), scorer="worker", metrics=("faithfulness",))
    try:
        assert current().baselines.states() == []
    finally:
        ragtrace.shutdown(5.0)
