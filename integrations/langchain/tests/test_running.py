"""Sync, async, batch, streams, threads: each request is a run of its own, with its own question and answer."""

from __future__ import annotations

import asyncio

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableGenerator, RunnableLambda

from integrations.langchain.tests.parts import PROMPT, Faq, chat, lcel, shown
from ragtrace.capture import Generation, Limits, Recorder
from ragtrace.model import Message, Usage
from ragtrace_langchain import RagtraceHandler
from tests.kept import ANSWER, ids, kinds, step


def checked(run, question):
    assert kinds(run) == ["retrieval", "rerank", "chat"]
    assert (run.record.query, run.record.answer, run.record.outcome) == (question, ANSWER, "answered")
    assert (len(ids(run, "retrieved")), ids(run, "reranked"), run.prompt_ids) == (6, ["d3", "d2"], ("d3", "d2"))


async def test_abatch(keeper, config):
    await lcel().abatch(["a?", "b?", "c?"], config)
    assert sorted(run.record.query for run in keeper.runs) == ["a?", "b?", "c?"]
    for run in keeper.runs:
        checked(run, run.record.query)


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


async def test_abandoned_async_stream_is_partial(keeper, config):
    stream = lcel().astream("Where?", config)
    assert await anext(stream) == ANSWER[0]
    await stream.aclose()
    await asyncio.get_running_loop().shutdown_asyncgens()  # the generators inside it
    run = keeper.only
    assert (run.record.outcome, run.record.answer, run.record.query) == ("partial", ANSWER[0], "Where?")
    assert step(run, Generation).failure.kind == "GeneratorExit"
    assert run.failure is None


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
    run.last_activity = 0.0  # as if it had begun long ago
    next(stream)
    recorder.sweep()
    assert keeper.runs == []
    list(stream)
    assert keeper.only.record.outcome == "answered"


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
