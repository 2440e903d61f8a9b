"""The mean at the baseline's mix through a real service: a hot topic, restarts, and the application's own kinds."""

from __future__ import annotations

import random

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from ragtrace import semconv
from ragtrace.service import current
from ragtrace.service.means import mix
from tests import make
from tests.process.observing import points, providers

GOOD, BAD = "The lab is in Oslo.", "The station is closed since 1904 because of nine angry monks."
CONTEXT = {"id": "a", "text": "The lab is in Oslo. The lab has three rooms.", "score": 0.9}


@pytest.fixture
def path(tmp_path):
    yield tmp_path / "store"
    ragtrace.shutdown(5.0)


@pytest.fixture
def learnt(monkeypatch):
    """Return what sets the runs that a mix is learnt from."""
    return lambda runs: monkeypatch.setattr(mix, "LEARNT_RUNS", runs)


def configured(path=None, **more):
    reader = InMemoryMetricReader()
    ragtrace.configure(
        store=None if path is None else str(path), sample_rate=1.0, metrics=("faithfulness",),
        **more, **providers(meter_provider=MeterProvider([reader])),
    )  # fmt: skip
    return reader


def ask(topic, number, answer, **about):
    question = {"lab": f"In which town is laboratory {number}?", "station": f"When does train {number} leave?"}[
        topic
    ]
    with ragtrace.query(question, workflow="labs", **about) as run:
        run.retrieved([CONTEXT])
        run.answered(answer)


def day(first, labs, stations, chance, **about):
    """Ask so many questions on labs, of which 95 % are answered well, and on stations, of which 20 % are."""
    topics = ["lab"] * labs + ["station"] * stations
    chance.shuffle(topics)
    for number, topic in enumerate(topics, start=first):
        share = 0.95 if topic == "lab" else 0.2
        named = {"tags": [f"kind:{topic}"]} if about.get("is_named") else {}
        ask(topic, number, GOOD if chance.random() < share else BAD, **named)
    assert ragtrace.flush(60.0)


def adjusted(reader):
    return {
        name.rpartition(".")[2]: value
        for name in (semconv.ADJUSTED_MEAN, semconv.ADJUSTED_LOW, semconv.ADJUSTED_HIGH)
        for value in points(reader, name).values()
    }


def raw(reader):
    return sum(points(reader, semconv.SCORE_WX).values()) / sum(points(reader, semconv.SCORE_W).values())


@pytest.mark.slow
@pytest.mark.parametrize("is_named", [False, True])
def test_a_hot_topic_moves_the_raw_mean_and_not_the_adjusted_one(learnt, is_named):
    learnt(100)
    chance, reader = random.Random(1), configured()
    day(0, 90, 10, chance, is_named=is_named)  # is learnt
    assert adjusted(reader) == {}
    day(1_000, 180, 20, chance, is_named=is_named)
    calm = adjusted(reader)
    day(2_000, 180, 260, chance, is_named=is_named)
    hot = adjusted(reader)
    truth = 0.9 * 0.95 + 0.1 * 0.2
    assert hot["low"] <= truth <= hot["high"]
    assert hot["mean"] == pytest.approx(calm["mean"], abs=0.06)
    assert raw(reader) < 0.7
    ragtrace.shutdown(5.0)


def test_the_mix_is_kept_over_a_restart_and_learnt_anew_when_it_is_deleted(path, learnt):
    learnt(40)
    chance, reader = random.Random(1), configured(path)
    day(0, 30, 10, chance)
    day(100, 6, 6, chance)
    before = adjusted(reader)
    assert before
    ragtrace.shutdown(5.0)
    reader = configured(path)
    day(200, 8, 8, chance)
    assert adjusted(reader)  # it did not have to learn
    store = make.store(path)
    assert store.question_mix_workflows() == {"labs"}
    assert store.forget_question_mixes() == 1
    store.close()
    current().mix._looked_at = float("-inf")  # ten seconds pass
    current().mix.refresh()
    assert adjusted(reader) == {}


def test_beyond_fifty_named_kinds_the_rest_is_other(path, learnt):
    learnt(200)
    reader = configured(path)
    for number in range(200):  # forty kinds of four, and forty of one
        ask("lab", number, GOOD, tags=[f"kind:{number % 40 if number < 160 else number}"])
    assert ragtrace.flush(60.0)
    kept = make.store(path).question_mix("labs").mix
    assert len(kept) == 50
    assert (kept["kind:7"], kept["other"]) == (4.0, 31.0)
    for number in range(300, 400):
        ask("lab", number, GOOD if number % 40 < 31 else BAD, tags=[f"kind:rare{number}"])
        ask("lab", number, GOOD, tags=[f"kind:{number % 40}"])
    assert ragtrace.flush(60.0)
    assert adjusted(reader)["mean"] < 0.99, "rare kinds count with their share"


def test_a_question_that_looks_like_a_tag_is_no_named_kind(path, learnt):
    learnt(20)
    configured(path)
    for number in range(20):
        with ragtrace.query(f"kind:{number} of what?", workflow="labs") as run:
            run.retrieved([CONTEXT])
            run.answered(GOOD)
    assert ragtrace.flush(60.0)
    assert not [name for name in make.store(path).question_mix("labs").mix if name.startswith("kind:")]


def test_the_store_holds_no_question(path, learnt):
    learnt(20)
    configured(path)
    day(0, 20, 0, random.Random(1))
    ragtrace.shutdown(5.0)
    assert b"laboratory" not in path.read_bytes()


def test_the_store_keeps_the_kind_of_a_question_once_the_mix_is_learnt(path, learnt):
    learnt(60)
    configured(path)
    for number in range(60):
        ask("lab" if number % 2 else "station", number, GOOD)
    assert ragtrace.flush(60.0)
    assert kinds(path) == {"lab": {None}, "station": {None}}
    ragtrace.shutdown(5.0)
    configured(path)
    for number in range(100, 140):
        ask("lab" if number % 2 else "station", number, GOOD)
    assert ragtrace.flush(60.0)
    found = kinds(path)
    assert all(len(own - {None}) == 1 for own in found.values()), found
    assert found["lab"] & found["station"] == {None}


def kinds(path):
    """Return the kinds of the stored runs by their topic, which the length of the question tells."""
    store = make.store(path)
    found = {"lab": set(), "station": set()}
    for row in store.scores_with_facts("faithfulness", since=0.0, until=9e9):
        found["lab" if row["query_chars"] > 26 else "station"].add(row["kind"])
    store.close()
    return found
