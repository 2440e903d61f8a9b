"""One candidate and one framework in a process: reads orders as JSON lines, answers each with one line."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

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

    def do_turn(self, scenario: str, measure: str, calls: int) -> dict[str, Any]:
        """Make `calls` calls of a scenario; wall and CPU of all threads a run, the export's flush included."""
        call = self.app.scenarios[scenario]
        self.switch.use(measure)
        failed = self.switch.exact.failed
        gc.collect()
        cpu, wall, runs = time.process_time_ns(), time.perf_counter_ns(), 0
        for _ in range(calls):
            runs += call()
        self.provider.force_flush()
        wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
        if self.switch.exact.failed > failed:
            raise RuntimeError(f"the exporter lost {self.switch.exact.failed - failed} spans")
        return {"wall_ns": wall / runs, "cpu_ns": cpu / runs}

    def do_look(self, scenario: str) -> dict[str, Any]:
        """Say what a run leaves: spans, bytes on the wire, documents; without content too, where that can be."""
        looked = self._look(scenario)
        if self.installed.without_content is not None and self.installed.with_content is not None:
            self.installed.without_content()
            looked["bytes_without_content"] = self._look(scenario)["bytes"]
            self.installed.with_content()
        return looked

    def _look(self, scenario: str) -> dict[str, Any]:
        call = self.app.scenarios[scenario]
        self.switch.use("null")
        call()  # what is written once in a process is no run's cost
        keeper = self.switch.keep()
        runs = sum(call() for _ in range(LOOKS))
        self.switch.use("null")
        one_run = [span for span in keeper.spans if span.context.trace_id == keeper.spans[-1].context.trace_id]
        return {
            "spans": len(keeper.spans) / runs,
            "bytes": wire_bytes(keeper.spans) / runs,
            "traces": len({span.context.trace_id for span in keeper.spans}) / runs,
            **found_in(written_in(one_run)),
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
