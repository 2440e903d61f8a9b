"""The rounds: every worker in shuffled order, turn by turn; and what a candidate adds, paired within rounds."""

from __future__ import annotations

import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.overhead.crew import Hand
from benchmarks.overhead.environments import Unavailable

MEASURES = ("null", "otlp")  # where spans go: nowhere, or over the wire to another process
PACED = "paced"  # nowhere, with a pause before each call, as an application waits for its index and its model
PAUSE_S = 0.005
PACED_CALLS = 20
WARM_UP = 2
SHORT, LONG = "stream of 1", "stream of 200"
# A state that its steps hand on, of the bare application and of ours: peers write each number out.
STATE, VECTORS = "state", "state with 1,000 vectors of 1,536"
OF_STATES = ("bare", "ours")
# Calls in one turn, spans going nowhere: short turns, so that a burst of other work hits all candidates alike.
CALLS = {"invoke": 10, "query": 10, LONG: 5, STATE: 10, VECTORS: 10}
# With OTLP each turn ends in one flush, which more runs share, as they share a batch in an application.
OTLP_CALLS = {"invoke": 25, "query": 25, LONG: 5}


@dataclass
class Results:
    """Turns by (framework, scenario, measure, unit) and candidate, one value a round, in nanoseconds a run."""

    turns: dict[tuple[str, str, str, str], dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)
    rounds: int = 0

    def added(self, key: tuple[str, str, str, str], candidate: str) -> list[float]:
        """Return what a candidate adds to the bare run of the same round, in nanoseconds a run, one a round."""
        turns = self.turns.get(key, {})
        return [one - bare for one, bare in zip(turns.get(candidate, ()), turns.get("bare", ()), strict=False)]

    def added_a_chunk(self, framework: str, candidate: str) -> list[float]:
        """Return what one more chunk of a stream adds, in nanoseconds, one a round."""
        return self.added((framework, LONG, "null", "chunk_ns"), candidate)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return first quartile, median and third quartile; one value is all three."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def scenarios_of(framework: str) -> list[str]:
    if framework == "langchain":
        return ["invoke", "ainvoke x64", "batch of 64", LONG]
    return ["query", "aquery x64", LONG]


def run(
    hands: list[Hand],
    results: Results,
    *,
    rounds: int,
    said: Callable[[str], None],
    is_short: bool = False,
) -> None:
    """Run the rounds; what is in `results` is whole at any time, so that an interrupt loses one round at most.

    Short rounds have the first scenario with OTLP, and nothing else.
    """
    rng = random.Random(7)
    cells = [
        (framework, scenario, measure)
        for framework in dict.fromkeys(hand.framework for hand in hands)
        for scenario in scenarios_of(framework)
        for measure in (*MEASURES, PACED)
        if (measure != PACED and not is_short) or scenario == scenarios_of(framework)[0]
        if measure == "otlp" or not is_short
    ]
    states = [("langchain", scenario, "null") for scenario in (STATE, VECTORS) if not is_short]
    for number in range(-WARM_UP, rounds):
        said(f"round {number + 1}/{rounds}" if number >= 0 else "warming up")
        for cell in cells:
            _turns(hands, results, cell, rng, keep=number >= 0)
        for cell in states:
            _turns(hands, results, cell, rng, keep=number >= 0, candidates=OF_STATES)
        results.rounds = max(number + 1, 0)


def _order(scenario: str, measure: str) -> dict[str, Any]:
    if (scenario, measure) == (LONG, "null"):
        return {"do": "chunks", "long": LONG, "short": SHORT, "chunks": 199, "calls": CALLS[LONG]}
    if measure == PACED:
        return {"do": "turn", "scenario": scenario, "measure": "null", "calls": PACED_CALLS, "pause_s": PAUSE_S}
    calls = CALLS if measure == "null" else OTLP_CALLS
    return {"do": "turn", "scenario": scenario, "measure": measure, "calls": calls.get(scenario, 1)}


def _turns(
    hands: list[Hand],
    results: Results,
    cell: tuple[str, str, str],
    rng: random.Random,
    *,
    keep: bool,
    candidates: Sequence[str] = (),
) -> None:
    framework, scenario, measure = cell
    order = [hand for hand in hands if hand.framework == framework]
    order = [hand for hand in order if not candidates or hand.candidate.key in candidates]
    rng.shuffle(order)
    taken = {}
    for hand in order:
        try:
            answer = hand.ask(**_order(scenario, measure))
        except Unavailable as error:
            print(f"{hand.candidate.key} {framework}: {error}", file=sys.stderr)
            results.skipped[hand.candidate.key, framework] = f"{scenario}: {error}"
            hands.remove(hand)
            continue
        taken[hand.candidate.key] = answer
    if not keep:
        return
    for candidate, answer in taken.items():
        for unit, value in answer.items():
            results.turns[framework, scenario, measure, unit][candidate].append(value)
