"""One candidate and one framework in a process: reads orders as JSON lines, answers each with one line."""

from __future__ import annotations

import json
import logging
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

from benchmarks.overhead.compared import as_values, hash_of
from benchmarks.overhead.installing import Installed, install
from benchmarks.overhead.pipeline import Switch, tracer_provider, wire_bytes, written_in
from benchmarks.overhead.texts import found_in

LOOKS = 5


class Worker:
    """Does what the main process orders; `answer` is the only way in."""

    def __init__(self, candidate: str, framework: str, endpoint: str) -> None:
        self.switch = Switch(endpoint)
        self.provider = tracer_provider(self.switch)
        self.installed: Installed = install(candidate, framework, self.provider)
        self.app = _app(framework, self.installed)

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        done: Callable[..., dict[str, Any]] = getattr(self, f"do_{order.pop('do')}")
        return done(**order)

    def do_turn(self, scenario: str, measure: str, calls: int, pause_s: float = 0.0) -> dict[str, Any]:
        """Make `calls` calls: the median call's wall a run, and all threads' CPU a run with the flush.

        An application waits for its index and its model; `pause_s` before each call is such a wait, in which other
        threads work.
        """
        call = self._ready(scenario, measure)
        failed = self.switch.exact.failed
        walls, runs, cpu = [], 0, time.process_time_ns()
        for _ in range(calls):
            if pause_s:
                time.sleep(pause_s)
            began = time.perf_counter_ns()
            made = call()
            walls.append((time.perf_counter_ns() - began) / made)
            runs += made
        self.provider.force_flush()
        cpu = time.process_time_ns() - cpu
        if self.switch.exact.failed > failed:
            raise RuntimeError(f"the exporter lost {self.switch.exact.failed - failed} spans")
        return {"wall_ns": statistics.median(walls), "cpu_ns": cpu / runs}

    def do_chunks(self, long: str, short: str, chunks: int, calls: int) -> dict[str, Any]:
        """Stream long and short in turn: the long run's wall, and what one of the `chunks` between them costs."""
        scenarios = [self._ready(name, "null") for name in (long, short)]
        walls: list[list[int]] = [[], []]
        for _ in range(calls):
            for call, taken in zip(scenarios, walls, strict=True):
                began = time.perf_counter_ns()
                call()
                taken.append(time.perf_counter_ns() - began)
        whole, least = (statistics.median(taken) for taken in walls)
        return {"wall_ns": whole, "chunk_ns": (whole - least) / chunks}

    def _ready(self, scenario: str, measure: str) -> Callable[[], int]:
        _log_to_nobody()
        self.switch.use(measure)
        found: Callable[[], int] = self.app.scenarios[scenario]
        return found

    def do_look(self, scenario: str) -> dict[str, Any]:
        """Say what a run leaves: spans, bytes on the wire, documents; with less content too, where that can be."""
        looked = self._look(scenario)
        if self.installed.without_content is not None and self.installed.with_content is not None:
            self.installed.without_content()
            looked["bytes_without_content"] = self._look(scenario)["bytes"]
            self.installed.with_content()
        return {**looked, "dropped": self.installed.dropped}

    def do_spans(self, scenario: str) -> dict[str, Any]:
        """Return the spans of one call; of two workers with the same orders the questions are the same."""
        keeper = self.switch.keep()
        self.app.scenarios[scenario]()
        self.provider.force_flush()
        self.switch.use("null")
        return {"traces": as_values(keeper.spans)}

    def _look(self, scenario: str) -> dict[str, Any]:
        call = self.app.scenarios[scenario]
        self.switch.use("null")
        call()  # what is written once in a process is no run's cost
        self.provider.force_flush()  # spans may be written in another thread
        single = self.switch.keep()
        call()
        self.provider.force_flush()
        keeper = self.switch.keep()
        runs = sum(call() for _ in range(LOOKS))
        self.provider.force_flush()
        self.switch.use("null")
        return {
            "spans": len(keeper.spans) / runs,
            "bytes": wire_bytes(keeper.spans) / runs,
            "hash": hash_of(single.spans),
            "traces": len({span.context.trace_id for span in keeper.spans}) / runs,
            **found_in(written_in(single.spans)),
        }

    def do_memory(self, warm_up: int, runs: int, every: int) -> dict[str, Any]:
        from benchmarks.overhead.memory import measure

        self.switch.use("null")
        return measure(self.app, warm_up=warm_up, runs=runs, every=every)


def _app(framework: str, installed: Installed) -> Any:
    if framework == "langchain":
        from benchmarks.overhead.langchain_app import App

        return App(installed.config)
    from benchmarks.overhead.llamaindex_app import App as LlamaIndexApp

    return LlamaIndexApp()


def versions(names: list[str]) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _log_to_nobody() -> None:
    """Make warnings, but do not write them: with 50 documents the SDK makes 100 a run of one peer's attributes."""
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


def _own_stdout() -> TextIO:
    """Keep the answers' channel to ourselves: what a library prints goes to stderr."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def main() -> int:
    answers = _own_stdout()

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    candidate, framework, endpoint, *names = sys.argv[1:]
    try:
        worker = Worker(candidate, framework, endpoint)
    except Exception as error:
        traceback.print_exc()
        say({"error": f"{type(error).__name__}: {error}"})
        return 1
    say({"versions": versions(names)})
    for line in sys.stdin:
        try:
            say(worker.answer(json.loads(line)))
        except Exception as error:
            traceback.print_exc()
            say({"error": f"{type(error).__name__}: {error}"})
    return 0


if __name__ == "__main__":
    # Not sys.exit: an exporter's or an executor's threads must not hold the process.
    sys.stdout.flush()
    os._exit(main())
