"""A judge that becomes stricter behind the same name, and an application that becomes worse: the anchors tell."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from ragtrace import semconv
from ragtrace.cli import main
from ragtrace.service import baseline_monitor, current
from tests.guards.judge_server import Answer, JudgeServer, Request, completion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
HOUR_S, DAY_S = 3_600.0, 86_400.0
ANCHORS, ROUND_S = 60, 120
GOOD, VAGUE, WRONG = "The lab is in Oslo.", "The lab is roughly in Oslo.", "The lab is in Bergen."
CONTEXT = "Our lab stands in Oslo."
HURRIED = "anchors: a watched mean seems to fall; the whole set is scored now"


class Clock:
    """The wall clock and the host's uptime, which a test sets forward: evidence of a drop has to span an hour."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_s = 0.0
        wall, since_boot = time.time, time.clock_gettime
        monkeypatch.setattr(time, "time", lambda: wall() + self.ahead_s)
        monkeypatch.setattr(time, "clock_gettime", lambda which: since_boot(which) + self.ahead_s)


class Judge:
    """Supports an answer that names Oslo; the strict one supports no vague answer.

    Attributes:
        until_round: calls up to the end of a round of the anchors. With each the clock goes on to the next anchor, so
            that a round takes as long by the clock on a slow machine as on a fast one.
    """

    def __init__(self, clock: Clock) -> None:
        self.is_strict = False
        self.until_round = 0
        self._clock = clock

    def __call__(self, request: Request) -> Answer:
        if self.until_round:
            self.until_round -= 1
            self._clock.ahead_s += ROUND_S / ANCHORS
        text = request.body["messages"][-1]["content"]
        answer = next(it for it in (VAGUE, WRONG, GOOD) if it in text)
        is_bad = answer == WRONG or (answer == VAGUE and self.is_strict)
        verdict = {"id": 1, "sources": [] if is_bad else [1], "reason": "", "verdict": "supported"}
        if is_bad:
            verdict["verdict"] = "not_supported"
        reply = {
            "attempted": True,
            "noncommittal": False,
            "claims": [answer],
            "verdicts": [verdict],
            "citations": [],
        }
        return Answer(200, completion(reply))


@pytest.fixture
def judge(judge_server: JudgeServer, clock: Clock) -> Judge:
    found = Judge(clock)
    judge_server.always = found
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def service(
    judge_server: JudgeServer, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InMemoryMetricReader]:
    """A configured service with a store, and 60 anchors that the command froze."""
    del judge
    limits = {"JUDGE_RPM": "0", "JUDGE_TPM": "0", "CONTENT": "full", "JUDGE_API_KEY": "k", "CANARY_EVERY_S": "0"}
    limits |= {"ANCHORS_EVERY_S": str(ROUND_S), "JUDGE": "openai:m", "JUDGE_BASE_URL": judge_server.url}
    limits |= {"STORE": str(tmp_path / "store"), "METRICS": "faithfulness"}
    for name, value in limits.items():
        monkeypatch.setenv(f"RAGTRACE_{name}", value)
    reader = InMemoryMetricReader()
    monkeypatch.setattr(baseline_monitor, "LEARNT_SCORES", 100)
    ragtrace.configure(sample_rate=1.0, meter_provider=MeterProvider([reader], shutdown_on_exit=False))
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(_line(number) for number in range(ANCHORS)))
    assert main(["anchors", "freeze", "--file", str(runs), "--n", str(ANCHORS), "--repeats", "2"]) == 0
    yield reader
    ragtrace.shutdown(10)


def _line(number: int) -> str:
    answer = _answer(number)
    given = {"id": str(number), "query": "Where is the lab?", "answer": answer, "contexts": [CONTEXT]}
    return json.dumps(given) + "\n"


def _answer(number: int) -> str:
    return VAGUE if number % 3 == 0 else WRONG if number % 10 == 9 else GOOD


def serve(first: int, n: int, *, is_bad: bool = False) -> None:
    for number in range(first, first + n):
        answer = WRONG if is_bad and number % 3 == 0 else _answer(number)
        with ragtrace.query("Where is the lab?", session=f"s{number}") as run:
            run.retrieved([CONTEXT])
            run.used([CONTEXT])
            run.answered(answer)
    assert ragtrace.flush(60)


def gauges(reader: InMemoryMetricReader, *names: str) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """Return the points of some gauges, all of one collection."""
    data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, list[tuple[float, dict[str, Any]]]] = {name: [] for name in names}
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if metric.name in found:
                    found[metric.name] += [
                        (point.value, dict(point.attributes)) for point in metric.data.data_points
                    ]
    return found


def wait_for(said: str, caplog: pytest.LogCaptureFixture, timeout_s: float = 60.0) -> str:
    """Wait for a line of the log, which the scorer's thread writes."""
    ends = time.monotonic() + timeout_s
    while time.monotonic() < ends:
        found = [record.getMessage() for record in caplog.records if said in record.getMessage()]
        if found:
            return found[-1]
        time.sleep(0.1)
    raise AssertionError(f"{said!r} was not said: {[it.getMessage() for it in caplog.records]}")


def a_whole_round(judge: Judge, timeout_s: float = 90.0) -> None:
    """Have every anchor scored by the judge of now: in the middle of a round some scores are those of before."""
    judge.until_round = ANCHORS
    ends = time.monotonic() + timeout_s
    while judge.until_round:
        assert time.monotonic() < ends, f"{judge.until_round} anchors are left"
        time.sleep(0.05)


def anchors_of(reader: InMemoryMetricReader, timeout_s: float = 60.0) -> tuple[float, float, dict[str, Any]]:
    """Wait until all anchors have a fresh score; return their state, their mean and its labels."""
    names = (semconv.ANCHOR_N, semconv.ANCHOR_STATE, semconv.ANCHOR_MEAN)
    ends = time.monotonic() + timeout_s
    while time.monotonic() < ends:
        found = gauges(reader, *names)
        if [n for n, _ in found[semconv.ANCHOR_N]] == [ANCHORS]:
            ((state, labels),) = found[semconv.ANCHOR_STATE]
            ((mean, _),) = found[semconv.ANCHOR_MEAN]
            return state, mean, labels
        time.sleep(0.2)
    raise AssertionError(f"anchors with a fresh score: {gauges(reader, *names)}")


def a_normal_day(clock: Clock) -> None:
    """Serve a baseline: 100 scores in 24 hours, which count an hour later since they have sessions."""
    for hour in range(26):
        serve(5 * hour, 5)
        clock.ahead_s += HOUR_S
    clock.ahead_s += DAY_S


def a_bad_day(clock: Clock, *, is_bad: bool) -> None:
    for hour in range(8):
        serve(1_000 + 60 * hour, 60, is_bad=is_bad)
        clock.ahead_s += HOUR_S


def test_a_judge_that_became_stricter_behind_the_same_name(
    service: InMemoryMetricReader, judge: Judge, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ragtrace")
    a_normal_day(clock)
    judge.is_strict = True
    a_whole_round(judge)
    wait_for("judge drift: faithfulness of openai:m changed by -0.", caplog)
    a_bad_day(clock, is_bad=False)
    a_whole_round(judge)
    wait_for(HURRIED, caplog)
    state, mean, labels = anchors_of(service)
    assert (state, labels[semconv.JUDGE_MODEL]) == (3, "openai:m")
    assert mean == pytest.approx(-0.33, abs=0.05)
    scores = gauges(service, semconv.SCORE_N)[semconv.SCORE_N]
    assert {about[semconv.JUDGE_VERSION] for _, about in scores} == {labels[semconv.JUDGE_VERSION]}, (
        "nobody could see it by the version"
    )


def test_an_application_that_became_worse(
    service: InMemoryMetricReader, judge: Judge, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ragtrace")
    a_normal_day(clock)
    a_bad_day(clock, is_bad=True)
    a_whole_round(judge)
    wait_for(HURRIED, caplog)
    state, mean, _ = anchors_of(service)
    assert (state, mean) == (1, 0.0)
    assert not [record for record in caplog.records if "judge drift" in record.getMessage()]
    assert current().anchors is not None
