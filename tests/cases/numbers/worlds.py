"""Worlds in which scores are missing, each run through a real service: ``python -m tests.cases.numbers.worlds NAME``.

A world asks its runs, of which it knows the truth, and prints as JSON what the service exported. Windows of pressure
last a second. A world runs in a process of its own, since a service is configured once a process.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace.host import Clock
from ragtrace.sampling import Pressure
from tests.guards.judge_server import Answer, JudgeServer, completion
from tests.guards.processes import closed_port
from tests.process.observing import SeededIds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.guards.judge_server import Request

METRIC = "faithfulness"
TOKENS = 1_000  # of each reply of the judge
DAY_S = 86_400.0


class World:
    """A judge on loopback, a service that asks it, and the truth about the runs so far."""

    def __init__(self, **settings: Any) -> None:
        self.rng = random.Random(1)
        self.good: list[bool] = []
        self.is_away = False  # the judge fails at every call
        self.failure = Answer(500, {"error": {"message": "no", "type": "server_error"}})
        self.refused: Answer | None = self.failure  # for runs that are marked; None answers them too
        self.slow_s = 0.0
        self.judged: set[int] = set()  # numbers of the runs that the judge answered
        self.judge = JudgeServer(self._answer)
        self.reader = InMemoryMetricReader()
        unlimited = {"budget_tokens_per_day": 0, "budget_usd_per_day": 0, "judge_rpm": 10**6, "judge_tpm": 10**9}
        given = {"judge_base_url": self.judge.url, **unlimited, **settings}
        ragtrace.configure(
            judge="openai:m", judge_api_key="k", metrics=[METRIC], sample_rate=1.0,
            tracer_provider=TracerProvider(id_generator=SeededIds(3)),
            meter_provider=MeterProvider([self.reader]), logger_provider=LoggerProvider(), **given,
        )  # fmt: skip

    def _answer(self, request: Request) -> Answer:
        said = str(request.body["messages"])
        if self.slow_s:
            time.sleep(self.slow_s)
        if self.is_away:
            return self.failure
        if "MARKED" in said and self.refused is not None:
            return self.refused
        self.judged.update(int(one) for one in re.findall(r"number (\d+)\.", said))
        verdict = "not_supported" if "VERDICT-BAD" in said else "supported"
        reply = {
            "sufficient": True,
            "attempted": True,
            "noncommittal": False,
            "claims": ["c"],
            "citations": [],
            "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": verdict}],
        }
        usage = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": TOKENS}
        return Answer(200, completion(reply, usage=usage))

    def ask(self, runs: int, share_good: float, *, over_s: float, marked: float = 0.0) -> None:
        """Ask some runs at a steady rate; of the bad answers a share is marked for the judge."""
        began = time.monotonic()
        for i in range(runs):
            is_good = self.rng.random() < share_good
            mark = "MARKED " if not is_good and self.rng.random() < marked else ""
            number = len(self.good)
            self.good.append(is_good)
            with ragtrace.query(f"question {number}?") as run:
                run.retrieved([{"id": "a", "text": "t"}])
                run.answered(f"VERDICT-{'GOOD' if is_good else 'BAD'} {mark}number {number}.")
            time.sleep(max(began + over_s * (i + 1) / runs - time.monotonic(), 0.0))

    def read(self) -> dict[str, Any]:
        """Return the exported sums of the metric, and the truth about all runs so far."""
        sums: dict[str, float] = defaultdict(float)
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        about = dict(point.attributes)
                        is_ours = (
                            metric.name.startswith("ragtrace.score.")
                            and about.get("gen_ai.evaluation.name") == METRIC
                            and about.get("ragtrace.stratum") in {None, "random"}
                            # A first judge has a series of its own.
                            and about.get("ragtrace.judge.model") in {None, "openai:m"}
                        )
                        if is_ours:
                            sums[metric.name.removeprefix("ragtrace.score.")] += point.value
        return {"runs": len(self.good), "truth": sum(self.good) / len(self.good), "sums": dict(sums)}

    def until(self, holds: Callable[[dict[str, Any]], bool], most_s: float) -> dict[str, Any]:
        """Read until something holds or the time is over."""
        ends = time.monotonic() + most_s
        while not holds(seen := self.read()) and time.monotonic() < ends:
            time.sleep(0.25)
        return seen

    def settled(self, most_s: float = 8.0) -> dict[str, Any]:
        """Read when nearly every run is due, or after a while."""
        return self.until(lambda seen: seen["sums"].get("due.w", 0.0) >= 0.97 * seen["runs"], most_s)


MIDNIGHT = time.time() // DAY_S * DAY_S


def let_pass(*, from_s: float, speed: float) -> Callable[[], None]:
    """Set the clock of budgets and of pressure to a second of today, at a speed; call what is returned to begin."""
    began = time.monotonic()

    def begin() -> None:
        nonlocal began
        began = time.monotonic()

    Clock.wall = lambda _: MIDNIGHT + from_s + (time.monotonic() - began) * speed  # type: ignore[method-assign]
    # A window of pressure lasts a second still.
    Pressure.__init__.__kwdefaults__.update(window_s=speed, clock=lambda: time.monotonic() * speed)
    return begin


def budget(*, evening: float, **settings: Any) -> dict[str, Any]:
    """A budget for 150 of 750 runs from noon on; the evening has another share of good answers."""
    let_pass(from_s=DAY_S / 2, speed=1.0)
    world = World(**settings)
    world.ask(150, 0.75, over_s=6)
    world.ask(600, evening, over_s=9)
    return world.settled()


def day(*, morning: int, evening: int, share_good: float) -> dict[str, Any]:
    """A budget for half of a day's runs; the shares that were judged in each of four parts of the runs."""
    begin = let_pass(from_s=0.0, speed=DAY_S / 26)
    runs = morning + evening
    world = World(budget_tokens_per_day=runs * TOKENS // 2)
    begin()
    world.ask(morning, 0.9, over_s=12)
    world.ask(evening, share_good, over_s=12)
    seen = world.settled(1)
    quarters = [0, morning // 2, morning, morning + evening // 2, runs]
    shares = [sum(a <= n < b for n in world.judged) / (b - a) for a, b in pairwise(quarters)]
    return {**seen, "shares": shares, "judged": len(world.judged)}


def outage(failure: Answer) -> dict[str, Any]:
    """The judge is away while most answers are bad."""
    world = World()
    world.failure = failure
    world.ask(150, 0.95, over_s=3)
    time.sleep(1)
    world.is_away = True
    world.ask(150, 0.3, over_s=5)
    world.is_away = False  # an open breaker stays open
    world.ask(150, 0.95, over_s=3)
    return world.settled()


def never(**settings: Any) -> dict[str, Any]:
    """No run gets a score."""
    world = World(**settings)
    world.ask(200, 0.7, over_s=4)
    return world.settled()


def refused(answer: Answer) -> dict[str, Any]:
    """70 % of the bad answers get no verdict, always the same ones."""
    world = World()
    world.refused = answer
    world.ask(300, 0.75, over_s=6, marked=0.7)
    return world.settled(10)


def recovered() -> dict[str, Any]:
    """Half of the bad answers get their verdict at a later try; the second comes after 2 s, the third after 60."""
    world = World()
    world.ask(200, 0.75, over_s=1, marked=0.5)
    waiting = world.settled(40)  # of a busy machine; what is refused stays so until then
    world.refused = None
    after = world.until(
        lambda seen: seen["sums"].get("recovered.w", 0.0) >= 0.9 * seen["sums"].get("missing.w", 1.0) > 0.0, 75
    )
    return {**after, "waiting": waiting}


def overflow() -> dict[str, Any]:
    """More runs than a short queue holds before a slow judge; the burst is worse than the rest."""
    world = World(queue_units=50, concurrency=4)
    world.slow_s = 0.1
    world.ask(100, 0.95, over_s=4)
    world.ask(500, 0.5, over_s=2)
    world.ask(100, 0.95, over_s=4)
    return world.settled(12)


def two_judges(**settings: Any) -> dict[str, Any]:
    """The second judge is to score half of the runs, and its budget ends before the worse evening."""
    let_pass(from_s=DAY_S / 2, speed=1.0)
    world = World(first_judge="overlap", judge_rates="0.5", **settings)
    world.ask(200, 0.9, over_s=4)
    world.ask(400, 0.4, over_s=8)
    return world.settled()


def limited(**settings: Any) -> dict[str, Any]:
    """The judge's rate of a minute pays for a small part of steady runs."""
    world = World(**settings)
    world.ask(900, 0.7, over_s=15)
    return world.settled(4)


SERVER_ERROR = Answer(500, {"error": {"message": "no", "type": "server_error"}})
FILTERED = Answer(400, {"error": {"message": "filtered", "code": "content_filter", "type": None}})
PRICES = {"price_input_usd_per_million": 1.0, "price_output_usd_per_million": 1.0}
WORLDS: dict[str, Callable[[], dict[str, Any]]] = {
    "dollars, worse evening": lambda: budget(evening=0.35, budget_usd_per_day=0.15, **PRICES),
    "dollars, better evening": lambda: budget(evening=1.0, budget_usd_per_day=0.15, **PRICES),
    "tokens, worse evening": lambda: budget(evening=0.35, budget_tokens_per_day=150 * TOKENS),
    "tokens, better evening": lambda: budget(evening=1.0, budget_tokens_per_day=150 * TOKENS),
    "tokens, same evening": lambda: budget(evening=0.75, budget_tokens_per_day=150 * TOKENS),
    "day, steady": lambda: day(morning=600, evening=600, share_good=0.9),
    "day, worse evening": lambda: day(morning=600, evening=600, share_good=0.5),
    "day, busier and worse evening": lambda: day(morning=300, evening=900, share_good=0.5),
    "outage, errors": lambda: outage(SERVER_ERROR),
    "outage, dropped connections": lambda: outage(Answer(200, {"half": 1}, drop=True)),
    "outage, key refused": lambda: outage(Answer(401, {"error": {"message": "wrong key"}})),
    "outage, rate limited": lambda: outage(Answer(429, {"error": {"message": "slow down"}})),
    "never, budget below a call": lambda: never(budget_tokens_per_day=10),
    "never, dollars below a call": lambda: never(budget_usd_per_day=1e-6, **PRICES),
    "never, nobody listens": lambda: never(judge_base_url=f"http://127.0.0.1:{closed_port()}/v1"),
    "never, budget and spool": lambda: never(budget_tokens_per_day=10, spool=os.environ["WORLD_SPOOL"]),
    "refused, errors": lambda: refused(SERVER_ERROR),
    "refused, content filter": lambda: refused(FILTERED),
    "refused, refusal": lambda: refused(Answer(200, completion(None, refusal="I cannot help with that."))),
    "refused, no JSON": lambda: refused(Answer(200, completion("I would rather not."))),
    "recovered": recovered,
    "overflow": overflow,
    "two judges, tokens": lambda: two_judges(budget_tokens_per_day=60 * TOKENS),
    "two judges, dollars": lambda: two_judges(budget_usd_per_day=0.06, **PRICES),
    "limited, requests": lambda: limited(judge_rpm=300),
    "limited, tokens": lambda: limited(judge_tpm=300 * TOKENS),
}

if __name__ == "__main__":
    Pressure.__init__.__kwdefaults__["window_s"] = 1.0
    print(json.dumps(WORLDS[sys.argv[1]]()))  # noqa: T201 - it is what the test reads
    sys.stdout.flush()
    os._exit(0)  # what waits for a judge does not hold up the test
