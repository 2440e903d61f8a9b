"""A judge that becomes stricter behind the same name, and an application that becomes worse: who is named?"""

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
from ragtrace.cli.main import main
from ragtrace.service import current
from tests.unit.judges.openai.judge_server import Answer, JudgeServer, Request, completion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
HOUR_S, DAY_S = 3_600.0, 86_400.0
GOOD, VAGUE, WRONG = "The lab is in Oslo.", "The lab is roughly in Oslo.", "The lab is in Bergen."
CONTEXT = "Our lab stands in Oslo."


class Judge:
    """Supports an answer that names Oslo; the strict one supports no vague answer."""

    def __init__(self) -> None:
        self.is_strict = False

    def __call__(self, request: Request) -> Answer:
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


class Clock:
    """The wall clock, which a test sets forward: evidence of a drop has to span an hour."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_s = 0.0
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + self.ahead_s)


@pytest.fixture
def judge(judge_server: JudgeServer) -> Judge:
    found = Judge()
    judge_server.always = found
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def service(
    judge_server: JudgeServer, judge: Judge, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InMemoryMetricReader]:
    """A configured service with a store, and 60 anchors that the command froze."""
    del judge, clock
    limits = {"JUDGE_RPM": "0", "JUDGE_TPM": "0", "CONTENT": "full", "JUDGE_API_KEY": "k", "CANARY_EVERY_S": "0"}
    limits |= {"ANCHORS_EVERY_S": "12", "JUDGE": "openai:m", "JUDGE_BASE_URL": judge_server.url}
    limits |= {"STORE": str(tmp_path / "store"), "METRICS": "faithfulness"}
    for name, value in limits.items():
        monkeypatch.setenv(f"RAGTRACE_{name}", value)
    reader = InMemoryMetricReader()
    ragtrace.configure(
        sample_rate=1.0, drift_baseline=100, meter_provider=MeterProvider([reader], shutdown_on_exit=False)
    )
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(_line(number) for number in range(60)))
    assert main(["anchors", "freeze", "--file", str(runs), "--n", "60", "--repeats", "2"]) == 0
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


def gauge(reader: InMemoryMetricReader, name: str) -> list[tuple[float, dict[str, Any]]]:
    data = reader.get_metrics_data()
    assert data is not None
    return [
        (point.value, dict(point.attributes))
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    ]


def wait_for(said: str, caplog: pytest.LogCaptureFixture, timeout_s: float = 60.0) -> str:
    """Wait for a line of the log, which the scorer's thread writes. A culprit may be unknown at first."""
    ends = time.monotonic() + timeout_s
    while time.monotonic() < ends:
        found = [record.getMessage() for record in caplog.records if said in record.getMessage()]
        if found:
            return found[-1]
        time.sleep(0.1)
    raise AssertionError(f"{said!r} was not said: {[it.getMessage() for it in caplog.records]}")


def wait_for_all_anchors(reader: InMemoryMetricReader, timeout_s: float = 90.0) -> None:
    """Wait for a whole round: after the clock was put forward, older scores no longer count."""
    ends = time.monotonic() + timeout_s
    while time.monotonic() < ends:
        if [n for n, _ in gauge(reader, semconv.ANCHOR_N)] == [60]:
            return
        time.sleep(0.2)
    raise AssertionError(f"anchors with a fresh score: {gauge(reader, semconv.ANCHOR_N)}")


def a_normal_day(clock: Clock) -> None:
    serve(0, 120)
    clock.ahead_s += 2 * DAY_S


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
    wait_for("judge drift: faithfulness of openai:m changed by -0.", caplog)
    a_bad_day(clock, is_bad=False)
    wait_for("drift culprit: faithfulness of rag: judge; its mean fell by 0.3", caplog)
    wait_for_all_anchors(service)
    ((state, labels),) = gauge(service, semconv.ANCHOR_STATE)
    ((mean, _),) = gauge(service, semconv.ANCHOR_MEAN)
    assert (state, labels[semconv.JUDGE_MODEL]) == (3, "openai:m")
    assert mean == pytest.approx(-0.33, abs=0.05)
    judges = {labels[semconv.JUDGE_VERSION] for _, labels in gauge(service, semconv.SCORE_N)}
    assert judges == {labels[semconv.JUDGE_VERSION]}, "nobody could see it by the version"


def test_an_application_that_became_worse(
    service: InMemoryMetricReader, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ragtrace")
    a_normal_day(clock)
    a_bad_day(clock, is_bad=True)
    wait_for("drift culprit: faithfulness of rag: system; its mean fell by 0.3", caplog)
    wait_for_all_anchors(service)
    ((state, _),) = gauge(service, semconv.ANCHOR_STATE)
    assert state == 1
    assert gauge(service, semconv.ANCHOR_MEAN)[0][0] == 0.0
    assert not [record for record in caplog.records if "judge drift" in record.getMessage()]
    assert current().anchors is not None
