"""Sync, async, batch, streams, threads: each request is a run of its own, with its own question and answer."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableGenerator, RunnableLambda

from integrations.langchain.tests.parts import ANSWER, PROMPT, Faq, chat, ids, kinds, lcel, rerank, shown, step
from ragtrace.capture import Generation, Limits, Recorder
from ragtrace.model import Message, Usage
from ragtrace_langchain import RagtraceHandler


def checked(run, question):
    assert kinds(run) == ["retrieval", "rerank", "chat"]
    assert (run.record.query, run.record.answer, run.record.outcome) == (question, ANSWER, "answered")
    assert (len(ids(run, "retrieved")), ids(run, "reranked"), run.prompt_ids) == (6, ["d3", "d2"], ("d3", "d2"))


async def test_async(keeper, config):
    assert await lcel().ainvoke("Where?", config) == ANSWER
    checked(keeper.only, "Where?")


def test_batch_of_three_is_three_runs_and_the_next_is_clean(keeper, config):
    lcel().batch(["a?", "b?", "c?"], config)
    assert sorted(run.record.query for run in keeper.runs) == ["a?", "b?", "c?"]
    for run in keeper.runs:
        checked(run, run.record.query)
    keeper.runs.clear()
    lcel().invoke("d?", config)
    checked(keeper.only, "d?")


async def test_abatch(keeper, config):
    await lcel().abatch(["a?", "b?", "c?"], config)
    assert sorted(run.record.query for run in keeper.runs) == ["a?", "b?", "c?"]
    for run in keeper.runs:
        checked(run, run.record.query)


def test_stream(keeper, config):
    assert "".join(lcel().stream("Where?", config)) == ANSWER
    checked(keeper.only, "Where?")
    call = step(keeper.only, Generation)
    assert 0 <= call.first_chunk_s <= (call.ended_ns - call.started_ns) / 1e9
    assert call.outputs == (Message(role="assistant", content=ANSWER),)


async def test_astream(keeper, config):
    assert "".join([chunk async for chunk in lcel().astream("Where?", config)]) == ANSWER
    checked(keeper.only, "Where?")
    assert step(keeper.only, Generation).first_chunk_s is not None


async def test_astream_events(keeper, config):
    assert [event async for event in lcel().astream_events("Where?", config, version="v2")]
    checked(keeper.only, "Where?")


def test_stream_of_pieces_that_cannot_be_added(keeper, config):
    def pieces(chunks):
        for chunk in chunks:
            yield {"answer": chunk.content}

    list((PROMPT | chat() | RunnableGenerator(pieces)).stream({"context": "", "question": "Where?"}, config))
    assert keeper.only.record.answer == ANSWER


def test_abandoned_stream_is_partial(keeper, config):
    stream = lcel().stream("Where?", config)
    assert next(stream) == ANSWER[0]
    del stream
    run = keeper.only
    assert (run.record.outcome, run.record.answer, run.record.query) == ("partial", ANSWER[0], "Where?")
    assert kinds(run) == ["retrieval", "rerank", "chat"]


async def test_abandoned_async_stream_is_partial(keeper, config):
    stream = lcel().astream("Where?", config)
    assert await anext(stream) == ANSWER[0]
    await stream.aclose()
    await asyncio.get_running_loop().shutdown_asyncgens()  # the generators inside it
    run = keeper.only
    assert (run.record.outcome, run.record.answer, run.record.query) == ("partial", ANSWER[0], "Where?")
    assert step(run, Generation).failure.kind == "GeneratorExit"
    assert run.failure is None


def test_leaked_stream_ends_by_the_sweep(keeper, recorder, handler, config):
    stream = lcel().stream("Where?", config)
    next(stream)
    recorder.sweep(now=1e12)
    run = keeper.only
    assert run.record.query == "Where?"  # known from the retriever; a stream's own input comes at its end
    assert (run.record.outcome, run.record.answer) == ("partial", ANSWER[0])
    assert (kinds(run), ids(run, "reranked")) == (["retrieval", "rerank", "chat"], ["d3", "d2"])
    assert len(handler._runs) == 0  # at once, without another run
    list(stream)  # what comes later is ignored
    assert len(keeper.runs) == 1
    lcel().invoke("Next?", config)
    assert keeper.runs[1].record.query == "Next?"


def test_a_leaked_stream_that_has_to_make_room_keeps_its_pieces(keeper, loses):
    recorder = Recorder(keeper, limits=Limits(open_runs=1))
    config = {"callbacks": [RagtraceHandler(recorder)]}
    stream = lcel().stream("Where?", config)
    next(stream)
    lcel().invoke("Next?", config)
    assert [(run.record.outcome, run.record.answer) for run in keeper.runs] == [
        ("partial", ANSWER[0]),
        ("answered", ANSWER),
    ]
    del stream
    assert len(keeper.runs) == 2


def test_a_stream_that_flows_is_not_swept(keeper, recorder, handler, config):
    stream = lcel().stream("Where?", config)
    next(stream)
    (run,) = recorder._open.values()
    run.touched = 0.0  # as if it had begun long ago
    next(stream)
    recorder.sweep()
    assert keeper.runs == []
    list(stream)
    assert keeper.only.record.outcome == "answered"


async def test_cancelled(keeper, config):
    begun = asyncio.Event()

    class Slow(Faq):
        async def _aget_relevant_documents(self, query, *, run_manager):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(lcel(Slow()).ainvoke("Where?", config))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = keeper.only
    assert (run.record.outcome, run.failure) == ("cancelled", None)
    assert [s.failure.kind for s in run.steps] == ["CancelledError"]


def test_thirty_threads_share_a_handler(keeper, config):
    barrier = threading.Barrier(30)

    def ask(number):
        barrier.wait()
        for turn in range(3):
            question = f"{number}-{turn}?"
            retriever = Faq(size=3, prefix=f"t{number}-{turn}-")
            lcel(retriever, reranker=lambda docs: docs[:1]).invoke(question, config)

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(ask, range(30)))
    assert len(keeper.runs) == 90
    for run in keeper.runs:
        name = run.record.query[:-1]
        assert ids(run, "retrieved") == [f"t{name}-{i}" for i in range(3)]
        assert run.prompt_ids == (f"t{name}-0",)


def test_two_handlers_of_one_recorder_count_once(keeper, recorder, handler):
    other = RagtraceHandler(recorder, workflow="other")
    lcel().invoke("Where?", {"callbacks": [handler, other]})
    checked(keeper.only, "Where?")


def test_handlers_of_two_recorders_both_take_the_run(keeper, handler):
    second = type(keeper)()
    other = RagtraceHandler(Recorder(second))
    lcel().invoke("Where?", {"callbacks": [handler, other]})
    checked(keeper.only, "Where?")
    checked(second.only, "Where?")


def test_a_handler_on_an_inner_part_alone_opens_a_run_there(keeper, handler):
    inner = RunnableLambda(lambda q: shown(Faq(size=1).invoke(q))).with_config(callbacks=[handler])
    (RunnableLambda(lambda q: q + "!") | inner | chat()).invoke("Where", {})
    assert (keeper.only.record.query, ids(keeper.only, "retrieved")) == ("Where!", ["d0"])


def test_a_chain_called_inside_a_run_with_the_handler_given_again_belongs_to_it(keeper, config):
    RunnableLambda(lambda q: lcel().invoke(q, config)).invoke("Where?", config)
    checked(keeper.only, "Where?")


def test_messages_usage_and_history(keeper, config):
    usage = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
    facts = {"model_name": "m-1", "finish_reason": "stop", "id": "resp-7"}
    reply = AIMessage(ANSWER, usage_metadata=usage, response_metadata=facts)
    model = GenericFakeChatModel(messages=iter([reply]))
    turns = [HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("Where?")]
    RunnableLambda(lambda x: model.invoke(x["messages"])).invoke({"messages": turns}, config)
    record, call = keeper.only.record, step(keeper.only, Generation)
    assert (record.query, record.answer) == ("Where?", ANSWER)
    assert record.history == (Message(role="user", content="Hi"), Message(role="assistant", content="Hello"))
    assert record.usage == call.usage == Usage(input_tokens=30, output_tokens=5)
    assert (call.response_model, call.response_id, call.finish_reasons) == ("m-1", "resp-7", ("stop",))
    assert [m.role for m in call.inputs] == ["user", "assistant", "user"]
    assert call.is_in_process


def test_k_of_a_hundred_loses_nothing(keeper, config):
    lcel(Faq(size=100), reranker=lambda docs: docs[::-1]).invoke("?", config)
    assert ids(keeper.only, "retrieved") == [f"d{i}" for i in range(100)]
    assert ids(keeper.only, "reranked") == [f"d{i}" for i in reversed(range(100))]


def test_prompt_set_of_long_passages(keeper, config):
    def search(question):
        return [Document(id=str(i), page_content=f"{i} " + "word " * 3000) for i in range(3)]

    (RunnableLambda(search) | RunnableLambda(rerank) | shown | chat()).invoke("?", config)
    assert keeper.only.prompt_ids == ("2", "1")
