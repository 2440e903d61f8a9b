"""The run of an enclosing block, runs that are dropped, tools, and runs that expect no answer."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING

from ragtrace.capture import FinishedRun, Recorder, Run, ToolCall, current_run, finished_run
from ragtrace.metrics import answer_lacking
from ragtrace.model import record_from_json, record_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.capture import Run


class _Ref:
    trace_id = "1" * 32
    span_id = "2" * 16


class _Kept:
    def __init__(self) -> None:
        self.runs: list[FinishedRun] = []

    def on_start(self, workflow: str, started_ns: int) -> _Ref:
        return _Ref()

    def on_end(self, root: _Ref, run: Run) -> None:
        self.runs.append(finished_run(run))


def test_blocks_nest_and_each_restores_the_run_outside_it() -> None:
    recorder = Recorder()
    with recorder.start() as outer:
        with recorder.start() as inner:
            assert current_run() is inner
        assert current_run() is outer
    assert current_run() is None


async def test_tasks_and_copied_contexts_see_the_run_and_other_threads_do_not() -> None:
    seen: list[Run | None] = []

    async def look() -> None:
        await asyncio.sleep(0)
        seen.append(current_run())

    async with Recorder().start() as run:
        await asyncio.gather(look(), look())
        seen.append(copy_context().run(current_run))
        thread = threading.Thread(target=lambda: seen.append(current_run()))
        thread.start()
        thread.join()
    assert seen == [run, run, run, None]


def test_a_block_that_ends_in_another_context_leaves_no_run_behind() -> None:
    def pieces() -> Iterator[str]:
        with Recorder().start():
            yield "a"

    stream = pieces()
    copy_context().run(next, stream)
    stream.close()  # type: ignore[attr-defined]
    assert current_run() is None


def test_a_finished_run_is_not_current() -> None:
    with Recorder().start() as run:
        run.finish()
        assert current_run() is None


def test_a_discarded_run_is_handed_to_nobody_and_forgotten() -> None:
    kept = _Kept()
    recorder = Recorder(kept)
    run = recorder.start(query="Where?")
    run.discard()
    run.finish()
    recorder.end_all()
    assert (kept.runs, recorder.open_runs, run.is_finished) == ([], 0, True)


def test_a_run_without_an_answer_to_expect_says_so_in_the_record_and_in_a_file() -> None:
    kept = _Kept()
    with Recorder(kept).start(query="Where?") as run:
        run.retrieved(["Oslo."])
        run.expects_no_answer()
    record = kept.runs[0].record
    assert answer_lacking(record) == "no_answer_expected"
    assert record_from_json(record_to_json(record), fallback_id="1") == record


def test_a_tool_call_is_a_step_with_redacted_texts() -> None:
    kept = _Kept()
    with Recorder(kept, redact=lambda text: text.replace("Ada", "[name]")).start() as run:
        run.tool_called(
            "search", arguments={"who": "Ada"}, result="Ada is here", call_id="c1", error=ValueError("Ada")
        )
    (step,) = kept.runs[0].steps
    assert isinstance(step, ToolCall)
    assert (step.name, step.arguments, step.result) == ("search", "{'who': '[name]'}", "[name] is here")
    assert step.failure is not None
    assert step.failure.message == "[name]"
