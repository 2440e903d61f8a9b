"""``python -m benchmarks.overhead``: makes the environments, runs the rounds, prints the tables."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.overhead.candidates import BEFORE, CANDIDATES, FLOOR, FRAMEWORKS, PEERS, Candidate
from benchmarks.overhead.compared import differences
from benchmarks.overhead.crew import Hand, Receiver
from benchmarks.overhead.environments import ROOT, Unavailable, checked_out
from benchmarks.overhead.report import report
from benchmarks.overhead.rounds import Results, run, scenarios_of

ROUNDS, COMPARED_ROUNDS, QUICK_ROUNDS = 40, 100, 6
# Warm-up, runs, and runs between readings of the memory.
MOST_SHOWN = 10  # differences of spans
MEMORY, QUICK_MEMORY = (2_000, 20_000, 250), (200, 2_000, 100)


class Session:
    """One measurement from beginning to end; what is there is printed whatever ends it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.results = Results()
        self.looks: dict[tuple[str, str], Any] = {}
        self.memory: dict[tuple[str, str], Any] = {}
        self.versions: dict[str, str] = {}
        self.notes: list[str] = []
        self.spans: list[str] = []  # of a comparison with --against
        self.hands: list[Hand] = []
        self.other_load = os.getloadavg()[0]
        self.before = checked_out(options.against) if options.against else None

    def measure(self, receiver: Receiver) -> None:
        for framework in self.options.frameworks:
            for candidate in CANDIDATES:
                if self._is_wanted(candidate):
                    self._join(candidate, framework, receiver.endpoint)
        if not self.options.only_memory:
            self._look()
            if self.before is not None:
                self._compare()
            is_short = self.before is not None
            run(self.hands, self.results, rounds=self.options.rounds, said=_say, is_short=is_short)
        if self.options.memory:
            self._remember()

    def _is_wanted(self, candidate: Candidate) -> bool:
        if candidate.key == BEFORE:
            return self.before is not None
        if self.before is not None and candidate.key in {"empty", "minimal", FLOOR}:
            return False
        if candidate.is_peer and candidate.key not in self.options.peers:
            return False
        return not self.options.only_memory or self._is_remembered(candidate.key)

    def _is_remembered(self, key: str) -> bool:
        return self.options.memory_of_all or key in {"bare", "ours", BEFORE}

    def _join(self, candidate: Candidate, framework: str, endpoint: str) -> None:
        _say(f"starting {candidate.key} for {framework}")
        try:
            source = self.before if candidate.key == BEFORE and self.before is not None else ROOT
            hand = Hand(candidate, framework, endpoint, source)
        except Unavailable as error:
            self.results.skipped[candidate.key, framework] = str(error)
            return
        self.hands.append(hand)
        if hand.note:
            self.notes.append(f"{candidate.title}: {hand.note}")
        self.versions = self.versions or hand.versions
        other = [f"{name} {has}" for name, has in hand.versions.items() if self.versions.get(name, has) != has]
        if other:
            self.notes.append(f"{candidate.title}, {framework}: runs with {', '.join(other)}")

    def _look(self) -> None:
        for hand in list(self.hands):
            key = (hand.candidate.key, hand.framework)
            try:
                self.looks[key] = hand.ask(do="look", scenario=scenarios_of(hand.framework)[0])
            except Unavailable as error:
                self.results.skipped[key] = str(error)
                self.hands.remove(hand)
                continue
            for name, why in self.looks[key].get("dropped", {}).items():
                self.notes.append(f"{hand.candidate.title}, {key[1]}: measured without {name}: {why}")
        for hand in list(self.hands):  # a floor of other spans is none
            floor, ours = (self.looks.get((key, hand.framework)) for key in (FLOOR, "ours"))
            if hand.candidate.key == FLOOR and floor and ours and floor["hash"] != ours["hash"]:
                self.results.skipped[FLOOR, hand.framework] = "its spans are not those of ragtrace"
                self.hands.remove(hand)

    def _compare(self) -> None:
        """Look at the spans of both commits, scenario by scenario."""
        by = {(hand.framework, hand.candidate.key): hand for hand in self.hands}
        for framework in self.options.frameworks:
            ours, before = by.get((framework, "ours")), by.get((framework, BEFORE))
            if ours is None or before is None:
                continue
            for scenario in scenarios_of(framework):
                now, then = (hand.ask(do="spans", scenario=scenario)["traces"] for hand in (ours, before))
                spans, facts = sum(map(len, now)), sum(len(span) for trace in now for span in trace)
                found = list(differences(now, then))
                verdict = f"{len(found)} differ" if found else "all equal"
                self.spans.append(f"{framework} {scenario}: {spans} spans, {facts} values: {verdict}")
                self.spans += [f"  {line}" for line in found[:MOST_SHOWN]]

    def _remember(self) -> None:
        warm_up, runs, every = QUICK_MEMORY if self.options.quick else MEMORY
        for hand in self.hands:
            key = (hand.candidate.key, hand.framework)
            if not self._is_remembered(key[0]):
                continue
            _say(f"memory of {key[0]} for {key[1]}: {runs} runs")
            try:
                self.memory[key] = hand.ask(do="memory", warm_up=warm_up, runs=runs, every=every)
                _say(f"{self.memory[key]}")
            except Unavailable as error:
                self.notes.append(f"memory of {hand.candidate.title}, {hand.framework}: skipped: {error}")

    def close(self) -> None:
        for hand in self.hands:
            hand.close()

    def text(self) -> str:
        return report(
            self.results, self.looks, self.memory, self.versions, [*self.spans, *self.notes], self.other_load
        )

    def as_json(self) -> dict[str, Any]:
        """Every turn, so that other figures can be had from the same run."""
        return {
            "rounds": self.results.rounds,
            "load_before": self.other_load,
            "versions": self.versions,
            "turns": {"/".join(key): dict(by) for key, by in self.results.turns.items()},
            "skipped": {"/".join(key): why for key, why in self.results.skipped.items()},
            "looks": {"/".join(key): look for key, look in self.looks.items()},
            "memory": {"/".join(key): found for key, found in self.memory.items()},
            "spans": self.spans,
            "notes": self.notes,
        }


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    names: Callable[[str], list[str]] = lambda text: [one for one in text.split(",") if one]  # noqa: E731
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds: a look, not a record")
    parser.add_argument("--rounds", type=int, help=f"rounds, default {ROUNDS}, {COMPARED_ROUNDS} with --against")
    parser.add_argument("--peers", type=names, help=f"which of {','.join(PEERS)}; '' = none")
    parser.add_argument("--frameworks", type=names, default=list(FRAMEWORKS), help="default both")
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare with an earlier commit: CPU of a run with OTLP, and spans"
    )
    parser.add_argument("--memory", action="store_true", help="also 20,000 runs each, for what is kept")
    parser.add_argument("--memory-of-all", action="store_true", help="the same for every candidate")
    parser.add_argument("--only-memory", action="store_true", help="no rounds")
    parser.add_argument("--json", type=Path, help="write every turn to this file")
    options = parser.parse_args(arguments)
    if options.peers is None:
        options.peers = [] if options.against else list(PEERS)
    for given, known in ((options.peers, PEERS), (options.frameworks, FRAMEWORKS)):
        if unknown := sorted(set(given) - set(known)):
            parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    options.rounds = options.rounds or (
        QUICK_ROUNDS if options.quick else COMPARED_ROUNDS if options.against else ROUNDS
    )
    options.memory = options.memory or options.memory_of_all or options.only_memory
    return options


def main(arguments: list[str] | None = None) -> int:
    try:
        session = Session(parsed(arguments))
    except Unavailable as error:
        print(f"--against: {error}", file=sys.stderr)
        return 2
    # A timeout's end is an interrupt too: workers must not outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    receiver = Receiver()
    status = 0
    try:
        session.measure(receiver)
    except KeyboardInterrupt:
        status = 130
        print("interrupted: what is there", file=sys.stderr)
    finally:
        session.close()
        receiver.close()
    print(session.text())
    if session.options.json:
        session.options.json.write_text(json.dumps(session.as_json()))
    return status


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
