"""`ragtrace baseline` as a person runs it, over real stores, and a real scorer that notices."""

from __future__ import annotations

import json
import time

import pytest

from ragtrace.cli import main
from ragtrace.model import JudgeInfo
from ragtrace.service import BaselineMonitor, watched
from ragtrace.stores import Label
from tests import make

DAY_S = 86_400.0


def emit(store, values, *, days_ago=1.0, metric="faithfulness", version="v", k=None, weight=20.0, **more):
    """Write scores a second apart."""
    given = {"stratum": "random", "workflow": "support"} | more
    labelled = {name: given[name] for name in ("judge", "label_scope") if name in given}
    at = time.time() - days_ago * DAY_S
    for i, value in enumerate(values):
        trace = f"{hash((metric, version, k, days_ago, i, given['workflow'])) & (2**127 - 1):032x}"
        record = make.record(id=trace, trace_id=trace, span_id=trace[:16], workflow=given["workflow"])
        facts = {"version": version, "k": k, "weight": weight, "stratum": given["stratum"], "at": at + i}
        store.emit(record, [make.score(record, metric, value, **facts, **labelled)])


@pytest.fixture
def path(tmp_path):
    """A week at .9, and a day at .6 after it."""
    path = tmp_path / "store"
    store = make.store(path)
    emit(store, [0.8, 1.0] * 150, days_ago=7.0)
    emit(store, [0.5, 0.7] * 110, days_ago=0.5)
    emit(store, [0.1, 0.3] * 110, days_ago=1.0, metric="incorrect_rate", k=None)
    emit(store, [0.5] * 12, days_ago=1.0, version="other")
    store.close()
    return path


def shown(path, capsys):
    capsys.readouterr()
    assert main(["baseline", "show", "--store", str(path), "--json"]) == 0
    return {(it["metric"], it["version"]): it for it in json.loads(capsys.readouterr().out)}


def run(path, *args):
    return main(["baseline", *args, "--store", str(path)])


def test_show_before_any(path, capsys):
    assert run(path, "show") == 0
    assert "no baseline is frozen" in capsys.readouterr().out
    assert shown(path, capsys) == {}


def test_freeze_keeps_all_there_is_and_leaves_frozen_ones_alone(path, capsys):
    assert run(path, "freeze", "--until", "2d", "--note", "release 1.4") == 0
    printed = capsys.readouterr()
    assert printed.out == "frozen: faithfulness of support (version v): mean 0.900 over 300 scores\n"
    assert run(path, "freeze") == 0
    printed = capsys.readouterr()
    assert "frozen: incorrect_rate of support (version v): mean 0.200 over 220 scores" in printed.out
    assert "kept: faithfulness of support (version v), frozen 20" in printed.out
    assert printed.err == "too few: faithfulness of support (version other): 12 scores, 200 are needed\n"
    found = shown(path, capsys)
    assert set(found) == {("faithfulness", "v"), ("incorrect_rate", "v")}
    first = found["faithfulness", "v"]
    assert (first["mean"], first["sd"], first["n"]) == (pytest.approx(0.9), pytest.approx(0.1), 300)
    assert (first["n_eff"], first["mean_weight"], first["max_weight"]) == (pytest.approx(300), 20.0, 20.0)
    assert (first["workflow"], first["k"], first["note"]) == ("support", None, "release 1.4")
    assert first["frozen_at"].startswith("20")
    assert first["frozen_at"].endswith("Z")


def test_accept_takes_the_last_scores_over_what_was_frozen(path, capsys):
    run(path, "freeze", "--until", "2d")
    assert run(path, "accept", "--scores", "200", "--metric", "faithfulness") == 0
    assert "accepted: faithfulness of support (version v): mean 0.600 over 200" in capsys.readouterr().out
    assert set(shown(path, capsys)) == {("faithfulness", "v")}
    assert run(path, "accept", "--since", "1d", "--metric", "faithfulness") == 0
    assert "--since" not in capsys.readouterr().out
    assert shown(path, capsys)["faithfulness", "v"]["n"] == 220, "all since then, where that is said"
    assert run(path, "accept") == 0
    assert "give --since the change" in capsys.readouterr().out
    assert shown(path, capsys)["faithfulness", "v"]["n"] == 500, "else as many as a running scorer learns from"


def test_the_table_for_people(path, capsys):
    run(path, "freeze", "--until", "2d", "--note", "release 1.4")
    capsys.readouterr()
    assert run(path, "show") == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["metric", "workflow", "version", "K", "mean", "sd", "n", "frozen", "(UTC)", "note"]
    assert row.split()[:6] == ["faithfulness", "support", "v", "0.900", "0.100", "300"]
    assert row.endswith("release 1.4")


def test_what_no_mean_takes_is_not_in_a_baseline(path, tmp_path, capsys):
    store = make.store(path)
    emit(store, [0.0] * 300, days_ago=3.0, stratum="forced")
    emit(store, [0.0] * 300, days_ago=3.1, weight=None)
    emit(store, [0.0] * 300, days_ago=3.2, metric="answer_similarity")
    for n in range(1, 4):
        store.rate([Label(trace_id=f"{n:032x}", value=0.0, metric="faithfulness")])
    store.close()
    run(path, "freeze", "--until", "2d")
    found = shown(path, capsys)
    assert set(found) == {("faithfulness", "v")}
    assert found["faithfulness", "v"]["mean"] == pytest.approx(0.9)


def test_every_k_and_workflow_has_its_own(tmp_path, capsys):
    store = make.store(tmp_path / "s")
    emit(store, [0.4, 0.6] * 100, metric="p_at_k", k=3, days_ago=1.0, weight=1 / 0.3)  # equal, so all count
    emit(store, [0.2, 0.4] * 100, metric="p_at_k", k=5, days_ago=1.1, workflow="sales")
    store.close()
    assert run(tmp_path / "s", "freeze") == 0
    out = capsys.readouterr().out
    assert "p_at_k K=3 of support (version v): mean 0.500" in out
    assert "p_at_k K=5 of sales (version v): mean 0.300" in out
    assert run(tmp_path / "s", "accept", "--workflow", "sales", "--note", "x") == 0
    assert capsys.readouterr().out.startswith("accepted: p_at_k K=5 of sales")
    assert main(["baseline", "show", "--store", str(tmp_path / "s"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(it["k"], it["note"]) for it in found] == [(3, ""), (5, "x")]
    assert {(it["label_scale"], it["universe"]) for it in found} == {(None, None)}


def test_labels_of_another_scale_or_universe_are_not_averaged(tmp_path, capsys):
    store = make.store(tmp_path / "s")
    five, four = (JudgeInfo(model="panel", label_scale=scale) for scale in ("1-5", "0-3"))
    emit(store, [0.2, 0.4] * 100, metric="harm_at_k", k=5, days_ago=1.0, judge=five, label_scope="pool")
    emit(store, [0.0, 0.1] * 100, metric="harm_at_k", k=5, days_ago=1.1, judge=four, label_scope="gold")
    store.close()
    assert run(tmp_path / "s", "freeze") == 0
    out = capsys.readouterr().out
    assert "harm_at_k K=5 of support (version v, labels 1-5, pool): mean 0.300" in out
    assert "harm_at_k K=5 of support (version v, labels 0-3, gold): mean 0.050" in out
    assert run(tmp_path / "s", "show") == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:7] == ["metric", "workflow", "version", "K", "label", "scale", "universe"]
    assert sorted(row.split()[4:7] for row in rows) == [["0-3", "gold", "0.050"], ["1-5", "pool", "0.300"]]


def test_unequal_weights_make_fewer_effective_scores(tmp_path, capsys):
    """What is needed is needed in effective scores, as the alerts count them; `--least` may ask for less."""
    path = tmp_path / "s"
    store = make.store(path)
    emit(store, [0.5, 0.7] * 270, days_ago=0.5, weight=1.0)
    emit(store, [0.5, 0.7] * 30, days_ago=0.4, weight=50.0)
    store.close()
    assert run(path, "accept", "--since", "1d") == 2
    told = capsys.readouterr()
    assert "no series has 200 effective scores; faithfulness of support (version v) has 83 (of 600):" in told.err
    assert "--least lower" in told.err
    assert "alerts leave one below 200 aside" in told.err
    assert run(path, "accept", "--since", "1d", "--least", "80") == 0
    told = capsys.readouterr()
    assert (
        told.out == "accepted: faithfulness of support (version v): mean 0.600 over 83 effective scores (of 600)\n"
    )
    assert told.err.startswith(
        "83 effective scores are too few for alerts: below 200 they leave that baseline aside,"
    )
    assert shown(path, capsys)["faithfulness", "v"]["n"] == 600
    assert run(path, "show") == 0
    assert "83 of 600" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["freeze", "--metric", "faithfullness"], "did you mean 'faithfulness'"),
        (["freeze", "--metric", "answer_similarity"], "it is not watched for a drop"),
        (["freeze", "--since", "soon"], "'soon' is not a moment"),
        (["freeze", "--since", "1d", "--until", "2d"], "--since"),
        (["freeze", "--workflow", "sales"], "the store has no such scores"),
        (["accept", "--least", "2000"], "no series has 2000 scores; faithfulness of support (version v) has 5"),
        (["accept", "--scores", "0"], "greater than or equal to 1"),
        ([], "Missing command"),
    ],
)
def test_bad_input_is_one_line_status_2_and_loses_nothing(path, capsys, args, said):
    run(path, "freeze", "--until", "2d")
    before = shown(path, capsys)
    assert main(["baseline", *args, *(["--store", str(path)] if args else [])]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert printed.out == ""
    assert shown(path, capsys) == before


def test_a_running_scorer_takes_the_new_normal_that_is_accepted(path, monkeypatch):
    """What the command writes is what the rules hold scores against, in the metric's own direction."""
    import ragtrace
    from ragtrace.service import baseline_monitor, current

    monkeypatch.setattr(baseline_monitor, "REFRESH_S", 0.05)
    assert run(path, "freeze", "--until", "2d") == 0
    ragtrace.configure(store=str(path), sample_rate=1.0, metrics=("faithfulness",))
    try:
        monitor = current().baselines
        before = state(monitor)
        current().begin()
        assert run(path, "accept", "--since", "1d", "--metric", "faithfulness") == 0
        end = time.monotonic() + 20.0
        while state(monitor).frozen_at == before.frozen_at and time.monotonic() < end:
            time.sleep(0.02)
        assert before.mean == pytest.approx(0.9)
        assert state(monitor).mean == pytest.approx(0.6)
        assert state(monitor).frozen_at > before.frozen_at
    finally:
        ragtrace.shutdown(5.0)


def state(monitor):
    [found] = monitor.states()
    return found


def test_a_frozen_metric_of_which_less_is_better_is_told_in_score_units(path):
    from ragtrace.service import watched_outputs

    assert run(path, "freeze", "--metric", "incorrect_rate") == 0
    store = make.store(path)
    monitor = BaselineMonitor(watched(watched_outputs()), frozen=store.baselines)
    monitor.refresh()
    store.close()
    assert state(monitor).mean == pytest.approx(0.2)


def test_a_frozen_baseline_takes_scores_as_a_running_scorer_does(tmp_path, capsys):
    """One score of a user's hour, one of a trace; and it keeps how alike they are."""
    store, now = make.store(tmp_path / "s"), time.time() - DAY_S
    for number in range(60):
        for turn in range(3):
            trace = f"{1 + 3 * number + turn:032x}" if number % 2 else f"{1_000 + number:032x}"
            at = now + 60.0 * number + turn
            user = f"user {number}" if number % 2 else None
            facts = {"id": trace, "trace_id": trace, "workflow": "support", "user": user}
            record = make.record(n=turn + 1, **facts)
            store.emit(record, [make.score(record, value=float(number // 6 % 2), at=at)])
    store.close()
    assert run(tmp_path / "s", "freeze", "--least", "20") == 0
    found = shown(tmp_path / "s", capsys)["faithfulness", "v"]
    assert found["n"] == 60
    assert found["design_effect"] > 2.0, "six after another have one score"
