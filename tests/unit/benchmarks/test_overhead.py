"""Workers of both frameworks as the benchmark runs them: real processes, real OTLP, a handful of runs."""

from __future__ import annotations

import pytest

from benchmarks.overhead import bounds, environments, rounds
from benchmarks.overhead.__main__ import Session, parsed
from benchmarks.overhead.candidates import CANDIDATES, FLOOR, Candidate
from benchmarks.overhead.compared import differences
from benchmarks.overhead.crew import Hand, Receiver
from benchmarks.overhead.environments import Unavailable, python_of
from benchmarks.overhead.memory import line_through
from benchmarks.overhead.rounds import LONG, OF_STATES, SHORT, STATE, VECTORS, Results, run, scenarios_of

pytestmark = pytest.mark.slow

BY_KEY = {one.key: one for one in CANDIDATES}


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module", params=["langchain", "llamaindex"])
def hands(request, receiver):
    hands = {key: Hand(BY_KEY[key], request.param, receiver.endpoint) for key in ("bare", "minimal", "ours")}
    yield hands
    for hand in hands.values():
        hand.close()


def test_a_turn_of_every_scenario_reports_wall_and_cpu(hands):
    for hand in (hands["bare"], hands["ours"]):
        for scenario in scenarios_of(hand.framework):
            for measure in ("null", "otlp"):
                figures = hand.ask(do="turn", scenario=scenario, measure=measure, calls=1)
                assert set(figures) == {"wall_ns", "cpu_ns"}
                assert min(figures.values()) > 10_000, (scenario, figures)


def test_chunks_are_told_from_runs(hands):
    # Of five calls the medians differ by a scheduler's whim on a busy machine; of 51 they do not.
    figures = hands["bare"].ask(do="chunks", long=LONG, short=SHORT, chunks=199, calls=51)
    assert figures["wall_ns"] > figures["chunk_ns"] * 199 > 0


@pytest.mark.parametrize("framework", ["langchain", "llamaindex"])
def test_the_floor_writes_the_spans_of_ragtrace(receiver, framework):
    hands = [Hand(BY_KEY[key], framework, receiver.endpoint) for key in ("ours", FLOOR)]
    try:
        for scenario in scenarios_of(framework):
            ours, floor = (hand.ask(do="spans", scenario=scenario)["traces"] for hand in hands)
            assert list(differences(ours, floor)) == [], scenario
    finally:
        for hand in hands:
            hand.close()


def test_what_a_run_leaves(hands):
    bare, minimal, ours = (
        hands[key].ask(do="look", scenario=scenarios_of(hands[key].framework)[0]) for key in hands
    )
    assert (bare["spans"], bare["bytes"], bare["texts"]) == (0, 0, 0)
    assert (minimal["spans"], minimal["texts"], minimal["ids"], minimal["copies"]) == (3, 50, 50, 1)
    assert (ours["traces"], ours["texts"], ours["ids"], ours["copies"]) == (1, 50, 50, 1.16)  # and 8 in the prompt
    assert ours["bytes"] - ours["bytes_without_content"] > 39_000  # the texts are 40,000 bytes
    assert ours["bytes"] <= bounds.WITH_TEXT_KB * 1e3
    assert ours["bytes_without_content"] <= bounds.WITHOUT_TEXT_KB * 1e3


def test_spans_of_two_workers_are_compared_value_by_value(hands):
    scenario = scenarios_of(hands["ours"].framework)[0]
    one, other = (hands["ours"].ask(do="spans", scenario=scenario)["traces"] for _ in range(2))
    found = {line.split(": ")[0].split(", ")[-1] for line in differences(one, other)}  # another question
    assert found == {"input.value", "gen_ai.retrieval.query.text", "gen_ai.input.messages"}
    assert list(differences(one, one)) == []


def test_memory_is_read_over_runs_that_fail_and_streams_that_are_left(hands):
    found = hands["ours"].ask(do="memory", warm_up=10, runs=30, every=10)
    assert found["low"] <= found["slope"] <= found["high"]
    assert (found["runs"], found["retained"]) == (30, pytest.approx(found["retained_a_run"] * 30))


def test_a_worker_says_what_it_failed_at_and_goes_on(hands):
    with pytest.raises(Unavailable, match="KeyError: 'no such'"):
        hands["ours"].ask(do="turn", scenario="no such", measure="null", calls=1)
    assert hands["ours"].ask(do="turn", scenario=LONG, measure="null", calls=1)["wall_ns"] > 0


@pytest.fixture
def short(monkeypatch):
    """Turns of one call, and none to warm up."""
    monkeypatch.setattr(rounds, "WARM_UP", 0)
    monkeypatch.setattr(rounds, "CALLS", {LONG: 1})
    monkeypatch.setattr(rounds, "OTLP_CALLS", {})


def test_rounds_are_whole_and_the_report_shows_every_figure(hands, short):
    session = Session(parsed(["--peers", ""]))
    session.hands = list(hands.values())
    session.results.skipped["traceloop", session.hands[0].framework] = "its wheel is gone"
    session._look()
    run(list(session.hands), session.results, rounds=2, said=lambda _: None)
    for (_, scenario, *_), by in session.results.turns.items():
        names = OF_STATES if scenario in {STATE, VECTORS} else ("bare", "minimal", "ours")
        assert {key: len(values) for key, values in by.items()} == dict.fromkeys(names, 2)
    text = session.text()
    assert "skipped: its wheel is gone" in text
    for said in (
        "added wall a run",
        "added CPU a run with OTLP",
        "KB on the wire",
        "a streamed chunk",
        "2.1 x minimal",
        *([VECTORS, "1.5 x without them"] if session.hands[0].framework == "langchain" else []),
    ):
        assert said in text
    assert session.as_json()["rounds"] == 2


def test_a_worker_that_is_gone_is_a_skipped_row_and_the_others_go_on(receiver, short):
    gone, stays = (Hand(BY_KEY[key], "llamaindex", receiver.endpoint) for key in ("minimal", "bare"))
    gone._process.kill()
    gone._process.wait()
    results, left = Results(), [gone, stays]
    try:
        run(left, results, rounds=1, said=lambda _: None)
    finally:
        stays.close()
    assert left == [stays]
    assert "the worker is gone" in results.skipped["minimal", "llamaindex"]
    assert set(results.turns["llamaindex", "query", "null", "wall_ns"]) == {"bare"}


def test_what_is_added_is_paired_within_rounds():
    key = ("langchain", "invoke", "null", "wall_ns")
    results = Results()
    results.turns[key].update(bare=[10.0, 20.0, 30.0], ours=[11.0, 22.0])  # ours was interrupted
    assert results.added(key, "ours") == [1.0, 2.0]
    assert results.added(key, "traceloop") == []


def test_the_slope_and_its_interval():
    slope, half = line_through([0.0, 1.0, 2.0, 3.0], [1.0, 3.0, 5.0, 7.0])
    assert (slope, half) == (pytest.approx(2.0), pytest.approx(0.0))
    slope, half = line_through([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 3.0])
    assert slope == pytest.approx(0.8)
    assert half == pytest.approx(1.99 * (1.8 / 2 / 5) ** 0.5)


def test_an_environment_that_cannot_be_made_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setattr(environments, "HOME", tmp_path / "build")
    monkeypatch.setattr(environments, "LOCK", tmp_path / "dev.lock")
    (tmp_path / "dev.lock").write_text("")
    wanted = tmp_path / "requirements" / "overhead" / "gone.in"
    wanted.parent.mkdir(parents=True)
    wanted.write_text("./no-such-folder\n")
    with pytest.raises(Unavailable, match="no-such-folder"):
        python_of(Candidate("gone", "Gone", is_peer=True))
    assert not (tmp_path / "build" / "gone" / ".ready").exists()


def test_unknown_peers_are_refused(capsys):
    with pytest.raises(SystemExit):
        parsed(["--peers", "openinferense"])
    assert "known: otel-genai, openinference, traceloop" in capsys.readouterr().err
