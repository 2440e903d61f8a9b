"""Sync, async, streams, threads: each request is a run of its own, with its own question and answer."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index_instrumentation import get_dispatcher

from integrations.llamaindex.tests.parts import Best, Faq, First, Llm, ToolCaller, checked, engine, until
from ragtrace.capture import Generation
from ragtrace.model import Message, Usage
from tests.kept import ANSWER, ids, kinds, step


class TestStreams:
    @pytest.mark.parametrize("read", [str, lambda r: r.get_response().response])
    def test_read_by_the_response_itself(self, keeper, read):
        assert read(engine(streaming=True).query("Where?")) == ANSWER
        checked(keeper.only)

    async def test_read_async(self, keeper):
        response = await engine(streaming=True).aquery("Where?")
        assert "".join([piece async for piece in response.async_response_gen()]) == ANSWER
        checked(keeper.only)

    async def test_sixteen_async_streams_read_in_turns(self, keeper):
        async def ask(number):
            own = engine(Faq(size=2, prefix=f"t{number}-"), [First(n=1)], streaming=True)
            response = await own.aquery(f"{number}?")
            text = ""
            async for piece in response.async_response_gen():
                text += piece
                await asyncio.sleep(0)
            return text

        assert set(await asyncio.gather(*(ask(number) for number in range(16)))) == {ANSWER}
        assert len(keeper.runs) == 16
        for run in keeper.runs:
            assert run.prompt_ids == (f"t{run.record.query[:-1]}-0",)
            assert (run.record.outcome, run.record.answer) == ("answered", ANSWER)

    def test_half_read_and_closed(self, keeper):
        response = engine(streaming=True).query("Where?")
        next(response.response_gen)
        response.response_gen.close()
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "The")

    async def test_half_read_async(self, keeper):
        response = await engine(streaming=True).aquery("Where?")
        stream = response.async_response_gen()
        assert await anext(stream) == "The"
        await stream.aclose()
        del response, stream
        await until(lambda: keeper.runs)
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "The")

    async def test_never_read_async(self, keeper):
        response = await engine(streaming=True).aquery("Where?")
        del response
        gc.collect()
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "")

    def test_a_stream_that_flows_is_not_swept(self, keeper, recorder):
        pieces = engine(streaming=True).query("Where?").response_gen
        next(pieces)
        (run,) = recorder._open.values()
        run.last_activity = 0.0  # as if it had begun long ago
        next(pieces)
        recorder.sweep()
        assert keeper.runs == []
        list(pieces)
        assert keeper.only.record.outcome == "answered"

    def test_read_in_another_thread(self, keeper):
        pieces = engine(streaming=True).query("Where?").response_gen
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit("".join, pieces).result() == ANSWER
        checked(keeper.only)

    def test_of_an_empty_pool(self, keeper):
        assert str(engine(Faq(size=0), streaming=True).query("Where?")) == "Empty Response"
        assert (keeper.only.record.answer, keeper.only.record.outcome) == ("Empty Response", "answered")

    def test_another_query_while_one_is_read(self, keeper):
        pieces = engine(streaming=True).query("a?").response_gen
        next(pieces)
        engine().query("b?")
        list(pieces)
        assert [run.record.query for run in keeper.runs] == ["b?", "a?"]
        for run in keeper.runs:
            checked(run, run.record.query)

    @pytest.mark.parametrize("n", [1, 3])
    def test_a_synthesizer_that_calls_its_model_again_in_the_middle(self, keeper, n):
        own = RetrieverQueryEngine(
            retriever=Faq(size=n), response_synthesizer=EachInTurn(llm=Llm(), streaming=True)
        )
        assert str(own.query("Where?")) == ANSWER * n
        run = keeper.only
        assert run.record.answer == ANSWER * n
        assert kinds(run) == ["retrieval", *["chat"] * n]
        assert [one.outputs[0].content for one in run.steps if isinstance(one, Generation)] == [ANSWER] * n
        assert run.prompt_ids == tuple(f"d{i}" for i in range(n))

    async def test_the_same_async(self, keeper):
        own = RetrieverQueryEngine(
            retriever=Faq(size=2), response_synthesizer=EachInTurn(llm=Llm(), streaming=True)
        )
        response = await own.aquery("Where?")
        assert "".join([piece async for piece in response.async_response_gen()]) == ANSWER * 2
        assert kinds(keeper.only) == ["retrieval", "chat", "chat"]


class EachInTurn(BaseSynthesizer):
    """Shows each chunk to the model in a call of its own, and streams one answer after the other."""

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    def get_response(self, query_str, text_chunks, **kwargs):
        return (one.delta for chunk in text_chunks for one in self._llm.stream_complete(chunk + query_str))

    async def aget_response(self, query_str, text_chunks, **kwargs):
        async def pieces():
            for chunk in text_chunks:
                async for one in await self._llm.astream_complete(chunk + query_str):
                    yield one.delta

        return pieces()


class TestBareCalls:
    def test_retriever(self, keeper):
        Faq(size=2).retrieve("Where?")
        run = keeper.only
        assert (run.record.workflow, run.record.query, run.record.answer) == ("Faq", "Where?", "")
        assert ids(run, "retrieved") == ["d0", "d1"]

    def test_chat(self, keeper):
        turns = [ChatMessage("Hi", role="user"), ChatMessage("Hello", role="assistant"), ChatMessage("Where?")]
        ToolCaller(replies=[ANSWER]).chat(turns)
        record, call = keeper.only.record, step(keeper.only, Generation)
        assert (record.workflow, record.query, record.answer) == ("ToolCaller", "Where?", ANSWER)
        assert record.history == (Message(role="user", content="Hi"), Message(role="assistant", content="Hello"))
        assert (call.model, call.response_model, call.response_id) == ("caller-1", "caller-1-b", "r-7")
        assert record.usage == Usage(input_tokens=3, output_tokens=2)
        assert record.pools == ()

    def test_streams(self, keeper):
        assert "".join(one.delta for one in Llm().stream_complete("Where?")) == ANSWER
        assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["chat"])

    async def test_an_async_stream_over_a_sync_one_is_one_call(self, keeper):
        stream = await Llm().astream_chat([ChatMessage("Where?")])
        assert "".join([one.delta async for one in stream]) == ANSWER
        assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["chat"])

    def test_half_read_stream(self, keeper):
        stream = Llm().stream_complete("Where?")
        next(stream)
        next(stream)
        del stream
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "The lab")

    def test_never_read_stream(self, keeper):
        stream = Llm().stream_complete("Where?")
        assert keeper.runs == []
        del stream
        gc.collect()
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "")

    def test_a_postprocessor_alone_is_no_run(self, keeper):
        Best().postprocess_nodes(Faq()._retrieve("Where?"))
        assert keeper.runs == []

    def test_an_application_s_own_function_holds_its_calls_together(self, keeper):
        @get_dispatcher("tests.app").span
        def answer(question):
            found = Faq().retrieve(question)
            chosen = Best().postprocess_nodes(found)
            return Llm().complete("\n".join(one.text for one in chosen) + question).text

        answer("Where?")
        checked(keeper.only)
        assert keeper.only.record.workflow == "answer"

    def test_a_function_of_no_interest_is_no_run(self, keeper):
        assert get_dispatcher("tests.app").span(lambda question: question)("Where?") == "Where?"
        assert keeper.begun == 0
