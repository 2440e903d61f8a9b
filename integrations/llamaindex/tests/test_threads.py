"""Threads and tasks that meet inside a run, or at its end: no run takes another's steps, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index_instrumentation import get_dispatcher

from integrations.llamaindex.tests.parts import ANSWER, Faq, Llm, checked, engine, ids, kinds
from integrations.llamaindex.tests.test_running import EachInTurn
from ragtrace.capture import Generation, Recorder
from ragtrace.model import Usage
from ragtrace_llamaindex import calls, instrument

WAIT_S = 30.0


class Pausing(BaseSynthesizer):
    """Streams one answer after the other, and waits between them inside a read."""

    reached: asyncio.Event
    go_on: asyncio.Event

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    def get_response(self, query_str, text_chunks, **kwargs):
        raise NotImplementedError

    async def aget_response(self, query_str, text_chunks, **kwargs):
        async def pieces():
            for number, chunk in enumerate(text_chunks):
                if number:
                    self.reached.set()
                    await self.go_on.wait()
                async for one in await self._llm.astream_complete(chunk + query_str):
                    yield one.delta

        return pieces()


def apart(runs):
    first, second = sorted(runs, key=lambda run: run.record.query)
    assert (first.record.query, first.record.answer) == ("a?", ANSWER * 2)
    assert (kinds(first), ids(first, "retrieved")) == (["retrieval", "chat", "chat"], ["a0", "a1"])
    checked(second, "b?")


async def test_a_task_that_asks_while_a_stream_waits_for_its_next_model_has_a_run_of_its_own(keeper):
    synthesizer = Pausing(llm=Llm(), streaming=True)
    synthesizer.reached, synthesizer.go_on = asyncio.Event(), asyncio.Event()
    own = RetrieverQueryEngine(retriever=Faq(size=2, prefix="a"), response_synthesizer=synthesizer)

    async def read():
        return "".join([piece async for piece in (await own.aquery("a?")).async_response_gen()])

    reader = asyncio.create_task(read())
    await synthesizer.reached.wait()
    await engine().aquery("b?")
    synthesizer.go_on.set()
    assert await reader == ANSWER * 2
    apart(keeper.runs)


def test_a_question_between_two_reads_has_a_run_of_its_own(keeper):
    own = RetrieverQueryEngine(
        retriever=Faq(size=2, prefix="a"), response_synthesizer=EachInTurn(llm=Llm(), streaming=True)
    )
    pieces = own.query("a?").response_gen
    text = "".join(next(pieces) for _ in ANSWER.split()) + next(pieces)  # the second model has begun
    engine().query("b?")
    assert text + "".join(pieces) == ANSWER * 2
    apart(keeper.runs)


def test_a_model_that_ends_in_another_thread_leaves_nothing_there(keeper):
    answer = engine(streaming=True).query("a?")
    with ThreadPoolExecutor(1) as pool:
        assert next(answer.response_gen) == "The"
        assert pool.submit(lambda: "".join(answer.response_gen)).result() == ANSWER.removeprefix("The")
        pool.submit(engine().query, "b?").result()
    for run in keeper.runs:
        checked(run, run.record.query)


def in_threads(*works):
    with ThreadPoolExecutor(len(works)) as pool:
        return [done.result() for done in [pool.submit(copy_context().run, work) for work in works]]


def test_parallel_first_steps_of_a_function_begin_one_run(keeper):
    class Slow(Recorder):
        def start(self, **facts):
            met.wait(0.3)  # two that begin a run at once meet here
            return super().start(**facts)

    met = threading.Event()
    instrument(Slow(keeper))

    @get_dispatcher("tests.app").span
    def answer(question):
        in_threads(*(lambda one=one: Faq(size=2, prefix=one).retrieve("sub-question?") for one in "xy"))

    answer("Where?")
    run = keeper.only
    assert (run.record.query, kinds(run)) == ("Where?", ["retrieval", "retrieval"])
    assert sorted(ids(run, "retrieved")) == ["x0", "x1", "y0", "y1"]


def test_tokens_of_parallel_calls_add_up(keeper, monkeypatch):
    met = threading.Event()

    def slow(*usages):
        met.wait(0.1)  # another call ends here
        return added(*usages)

    added = calls.added_usage
    monkeypatch.setattr(calls, "added_usage", slow)

    @get_dispatcher("tests.app").span
    def answer(question):
        return in_threads(*[lambda: Llm().complete(question).text] * 4)[0]

    answer("Where?")
    assert keeper.only.record.usage == Usage(input_tokens=28, output_tokens=20)


def test_a_sweep_beside_the_end_of_a_run_waits_for_its_last_facts(keeper):
    ending, swept = threading.Event(), threading.Event()

    def redact(text):
        steps = next(iter(recorder._open.values())).steps if recorder.open_runs else ()
        is_told = any(isinstance(step, Generation) for step in steps)  # then the answer follows
        if text == ANSWER and is_told and threading.current_thread() is not sweeper:
            ending.set()
            swept.wait(0.5)  # until the sweep has passed by, where it does not wait
        return text

    def sweep():
        assert ending.wait(WAIT_S)
        recorder.end_all()
        swept.set()

    recorder = Recorder(keeper, redact=redact)
    instrument(recorder)
    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    engine().query("Where?")
    sweeper.join(WAIT_S)
    assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "rerank", "chat"])
