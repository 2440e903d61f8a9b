"""Threads and tasks that meet inside a run, or at its end: no run takes another's steps, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context

import pytest
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index_instrumentation import get_dispatcher

from integrations.llamaindex.tests.parts import Faq, Llm, checked, engine
from integrations.llamaindex.tests.test_running import EachInTurn
from ragtrace.capture import Recorder, interpret
from ragtrace.model import Usage
from ragtrace_llamaindex import instrument
from tests.kept import ANSWER, ids, kinds
from tests.sweeping import WAIT_S, HeldSweep, SweepBesideTheLastEvent, add_slowly


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


def test_tokens_of_parallel_calls_add_up(keeper, recorder, monkeypatch):
    """In a run that the application opened, their threads report at once."""
    add_slowly(interpret, monkeypatch)

    @get_dispatcher("tests.app").span
    def answer(question):
        return in_threads(*[lambda: Llm().complete(question).text] * 4)[0]

    with recorder.start(query="Where?"):
        answer("Where?")
    assert keeper.only.record.usage == Usage(input_tokens=28, output_tokens=20)


def test_a_sweep_beside_the_end_of_a_run_waits_for_its_last_facts(keeper, monkeypatch):
    sweep = SweepBesideTheLastEvent(keeper, ANSWER)
    sweep.watch(monkeypatch)
    instrument(sweep.recorder)
    sweep.meets(lambda: engine().query("Where?"))
    assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "rerank", "chat"])


class Bridged(Pausing):
    """Streams without awaiting: each piece of its asynchronous model comes from a loop of its own."""

    def get_response(self, query_str, text_chunks, **kwargs):
        def pieces():
            loop = asyncio.new_event_loop()
            for chunk in text_chunks:
                stream = loop.run_until_complete(self._llm.astream_complete(chunk + query_str))
                piece = loop.run_until_complete(anext(stream, None))
                while piece is not None:
                    yield piece.delta
                    piece = loop.run_until_complete(anext(stream, None))
            loop.close()

        return pieces()


def read_in(synthesizer):
    return RetrieverQueryEngine(retriever=Faq(size=2), response_synthesizer=synthesizer)


def test_an_answer_whose_model_is_read_on_a_loop_of_its_own(keeper):
    answer = read_in(Bridged(llm=Llm(), streaming=True)).query("Where?")
    assert "".join(answer.response_gen) == ANSWER * 2
    run = keeper.only
    assert (run.record.outcome, run.record.answer) == ("answered", ANSWER * 2)
    assert kinds(run) == ["retrieval", "chat", "chat"]


class InTasks(Pausing):
    """Streams one answer after the other, and waits for each piece with a limit, which makes a task of it."""

    async def aget_response(self, query_str, text_chunks, **kwargs):
        async def pieces():
            for chunk in text_chunks:
                stream = await self._llm.astream_complete(chunk + query_str)
                while (piece := await asyncio.wait_for(anext(stream, None), WAIT_S)) is not None:
                    yield piece.delta

        return pieces()


async def test_an_answer_whose_pieces_are_awaited_in_tasks_is_one_run(keeper):
    answer = await read_in(InTasks(llm=Llm(), streaming=True)).aquery("Where?")
    assert "".join([piece async for piece in answer.async_response_gen()]) == ANSWER * 2
    run = keeper.only
    assert (run.record.answer, kinds(run)) == (ANSWER * 2, ["retrieval", "chat", "chat"])


def test_a_stream_that_is_collected_waits_for_nobody_who_ends_its_run(keeper):
    """Its thread may hold what redaction waits for, as a logging handler's lock."""
    sweep = HeldSweep(keeper)
    instrument(sweep.recorder)
    pieces = engine(streaming=True).query("Where?").response_gen
    next(pieces)
    sweep.begin()
    assert sweep.lets(pieces.close)
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "The")


@pytest.mark.parametrize("ends", [lambda: ANSWER, lambda: 1 / 0])
def test_a_function_that_ends_while_a_thread_begins_its_run_ends_that_too(keeper, ends):
    asked = threading.Event()

    def redact(text):
        if text == "Where?":
            asked.set()
            over.wait(0.3)  # the function ends here, where it does not wait
        return text

    over = threading.Event()
    recorder = Recorder(keeper, redact=redact)
    instrument(recorder)

    @get_dispatcher("tests.app").span
    def answer(question):
        threads.append(threading.Thread(target=copy_context().run, args=(Faq(size=2).retrieve, "sub-question?")))
        threads[0].start()
        assert asked.wait(WAIT_S)
        return ends()

    threads = []
    with suppress(ZeroDivisionError):
        answer("Where?")
    over.set()
    threads[0].join()
    assert (recorder.open_runs, keeper.only.record.query) == (0, "Where?")
