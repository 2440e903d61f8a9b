"""`ragtrace anchors freeze` that is interrupted: the work goes on, and an old reference stays meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys

import pytest

from ragtrace.cli import main
from ragtrace.scoring.anchors.reference import Reference
from ragtrace.service import build_scorer
from ragtrace.settings import Settings
from tests import make
from tests.command_line import environment
from tests.guards.judge_server import Answer, completion, refusal

N, REPEATS = 50, 2


def verdict(*, is_good=True):
    """The judge's audit of an answer with one claim."""
    found = {"id": 1, "sources": [1] if is_good else [], "reason": ""}
    found["verdict"] = "supported" if is_good else "not_supported"
    audit = {"attempted": True, "noncommittal": False, "claims": ["The lab is in Oslo."], "citations": []}
    return Answer(200, completion(audit | {"verdicts": [found]}))


@pytest.fixture
def variables(judge_server, tmp_path, monkeypatch):
    given = {"JUDGE": "openai:m", "JUDGE_BASE_URL": judge_server.url, "JUDGE_API_KEY": "k", "CONTENT": "full"}
    given |= {"JUDGE_RPM": "0", "JUDGE_TPM": "0", "METRICS": "faithfulness", "STORE": str(tmp_path / "store")}
    named = {f"RAGTRACE_{name}": value for name, value in given.items()}
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    return named


@pytest.fixture
def first(variables, tmp_path):
    """The arguments of the first freeze."""
    runs = tmp_path / "runs.jsonl"
    given = {"query": "Where is the lab?", "answer": "The lab is in Oslo.", "contexts": ["The lab is in Oslo."]}
    runs.write_text("".join(json.dumps(given | {"id": str(number)}) + "\n" for number in range(N)))
    return ["anchors", "freeze", "--file", str(runs), "--n", str(N), "--repeats", str(REPEATS)]


@pytest.fixture
def store(first, judge_server, tmp_path):
    """A store with 50 anchors, a whole reference of a good judge, and a round of scores since."""
    judge_server.always = lambda _: verdict()
    assert main(first) == 0
    made = make.store(tmp_path / "store")
    score_all(made)
    yield made
    made.close()


def score_all(store):
    """Score every anchor once more, and write it as the scorer's rounds do."""
    reference = Reference(store.anchors.note, build_scorer(Settings.resolve({})), watched={"faithfulness"}, jobs=4)

    async def run():
        await reference.run(store.anchors.all(), 1)
        await reference.aclose()

    asyncio.run(run())
    assert reference.n == N


def shown(capsys):
    capsys.readouterr()
    assert main(["anchors", "show", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def same_but_begun(found, before, scores=None):
    """Whether nothing changed but for a new reference that was begun, of some scores."""
    begun = found["unfinished"]
    return (
        found | {"unfinished": None} == before
        and (begun["is_first"], begun["wanted"]) == (False, N * REPEATS)
        and scores in {None, begun["scores"]}
    )


def again():
    return main(["anchors", "freeze", "--again", "--repeats", str(REPEATS)])


@pytest.mark.slow
def test_a_judge_that_goes_down_leaves_the_old_reference_and_the_same_command_goes_on(store, judge_server, capsys):
    before = shown(capsys)
    assert (before["metrics"][0]["state"], before["metrics"][0]["n"]) == ("ok", N)
    asked = itertools.count(1)

    def fails_later(_):
        return verdict(is_good=False) if next(asked) <= 60 else refusal(400, "away")

    judge_server.always = fails_later
    assert again() == 1
    assert "40 scores are missing (judge_unavailable); the old reference stays in use" in capsys.readouterr().err
    assert same_but_begun(shown(capsys), before, scores=60)
    assert main(["anchors", "show"]) == 0
    line = (
        "a new reference of openai:m is not complete: 60 of 100 scores; the same `ragtrace anchors freeze --again`"
    )
    assert line in capsys.readouterr().out
    judge_server.always = lambda _: verdict()
    score_all(store)
    (metric,) = shown(capsys)["metrics"]
    assert (metric["n"], metric["state"], metric["mean"]) == (N, "ok", 0.0), "the old reference was usable"
    judge_server.always, first = (lambda _: verdict(is_good=False)), len(judge_server.requests)
    assert again() == 0
    assert "50 anchors, 100 of 100 scores of the reference" in capsys.readouterr().out
    assert len(judge_server.requests) - first == 40, "the rest alone"
    (metric,) = shown(capsys)["metrics"]
    assert (metric["n_reference"], metric["n"], metric["state"]) == (N, 0, "learning")
    score_all(store)
    (metric,) = shown(capsys)["metrics"]
    assert (metric["n"], metric["mean"]) == (N, 0.0), "the strict judge's scores are the reference now"


@pytest.mark.slow
def test_a_killed_command_leaves_the_old_reference_and_the_next_goes_on(store, judge_server, capsys, variables):
    before = shown(capsys)
    asked = itertools.count(1)
    args = [sys.executable, "-m", "ragtrace", "anchors", "freeze", "--again", "--repeats", str(REPEATS)]
    held = []

    def kills(_):
        if next(asked) == 70:
            held[0].send_signal(signal.SIGKILL)
        return verdict(is_good=False)

    judge_server.always = kills
    with subprocess.Popen(args, env=environment(**variables)) as process:
        held.append(process)
        assert process.wait(60) == -signal.SIGKILL
    assert same_but_begun(shown(capsys), before)
    judge_server.always, first = (lambda _: verdict(is_good=False)), len(judge_server.requests)
    assert again() == 0
    assert 30 <= len(judge_server.requests) - first <= 40, "what was not written before the kill"
    (metric,) = shown(capsys)["metrics"]
    assert (metric["n_reference"], metric["state"]) == (N, "learning")
    assert store.anchors.begin_draft(repeats=REPEATS, signature="") == {}, "the draft has gone"


def test_a_first_freeze_goes_on_where_the_judge_went_down(first, judge_server, capsys, monkeypatch):
    asked = itertools.count(1)
    judge_server.always = lambda _: verdict() if next(asked) <= 60 else refusal(400, "away")
    assert main(first) == 1
    said = capsys.readouterr().err
    assert "40 scores are missing (judge_unavailable); the same command goes on from here within a day" in said
    begun = shown(capsys)["unfinished"]
    assert (begun["judge"], begun["is_first"], begun["scores"], begun["wanted"]) == ("openai:m", True, 60, 100)
    monkeypatch.setenv("RAGTRACE_JUDGE", "overlap")
    assert main(first) == 2
    assert "the stopped freeze goes on with the same judge, metrics and --repeats" in capsys.readouterr().err
    monkeypatch.setenv("RAGTRACE_JUDGE", "openai:m")
    judge_server.always, before = (lambda _: verdict()), len(judge_server.requests)
    assert main(first) == 0
    said = capsys.readouterr()
    assert "going on with the 50 anchors of the stopped freeze; 60 of 100 scores are there" in said.err
    assert "50 anchors, 100 of 100 scores of the reference" in said.out
    assert len(judge_server.requests) - before == 40, "the rest alone"
    found = shown(capsys)
    assert (found["unfinished"], found["metrics"][0]["n_reference"]) == (None, N)
    assert main(first) == 2
    assert "50 anchors are kept already: --again makes" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_in_a_first_freeze_says_that_the_same_command_goes_on(first, judge_server, capsys, variables):
    asked = itertools.count(1)
    held = []

    def stops(_):
        if next(asked) == 30:
            held[0].send_signal(signal.SIGINT)
        return verdict()

    judge_server.always = stops
    args = [sys.executable, "-m", "ragtrace", *first]
    with subprocess.Popen(args, env=environment(**variables), stderr=subprocess.PIPE, text=True) as process:
        held.append(process)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "ragtrace: stopped; the same command goes on from here within a day" in said
    judge_server.always, before = (lambda _: verdict()), len(judge_server.requests)
    assert main(first) == 0
    assert 70 <= len(judge_server.requests) - before <= 80, "all but those under way"


@pytest.mark.slow
def test_ctrl_c_before_any_score_says_that_it_stopped(variables, tmp_path):
    runs = tmp_path / "pipe"
    os.mkfifo(runs)
    args = [sys.executable, "-m", "ragtrace", "anchors", "freeze", "--file", str(runs)]
    process = subprocess.Popen(args, env=environment(**variables), stderr=subprocess.PIPE, text=True)
    with process, runs.open("w"):  # opens once the command reads
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert (process.returncode, said) == (130, "ragtrace: stopped\n")


@pytest.mark.usefixtures("store")
def test_a_judge_without_values_replaces_nothing(judge_server, capsys):
    before = shown(capsys)
    nothing = {"attempted": True, "noncommittal": True, "claims": [], "verdicts": [], "citations": []}
    judge_server.always = lambda _: Answer(200, completion(nothing))
    assert again() == 1
    assert "too few runs have a value of the judge" in capsys.readouterr().err
    assert same_but_begun(shown(capsys), before, scores=0)


@pytest.mark.usefixtures("store")
def test_a_forgotten_judge_leaves_the_reference_of_the_other(capsys, monkeypatch):
    before = shown(capsys)["metrics"]
    monkeypatch.setenv("RAGTRACE_METRICS", "")
    monkeypatch.setenv("RAGTRACE_JUDGE", "overlap")
    assert main(["anchors", "freeze", "--again", "--repeats", "3"]) == 0
    after = shown(capsys)["metrics"]
    assert [it for it in after if it["judge"] == "openai:m"] == before
    own = {it["metric"]: it["n_reference"] for it in after if it["judge"] == "overlap"}
    assert own["answered"] == own["faithfulness"] == N
    assert main(["anchors", "freeze", "--again", "--metrics", "faithfulness"]) == 0
    later = shown(capsys)["metrics"]
    assert {(it["judge"], it["metric"]) for it in later} == {(it["judge"], it["metric"]) for it in after}
