"""Calls inside ``with ragtrace.query(...)`` belong to that one run, which the application ends."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.evaluation import CorrectnessEvaluator, FaithfulnessEvaluator
from llama_index.core.extractors import KeywordExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.prompts import PromptTemplate
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import Document
from llama_index_instrumentation import get_dispatcher

from integrations.llamaindex.tests.parts import Best, Faq, First, Llm, ToolCaller, checked, engine
from integrations.llamaindex.tests.test_tools import FIRST, call_of, tool
from integrations.llamaindex.tests.test_workflows import Rag
from ragtrace.metrics import answer_lacking
from ragtrace_llamaindex import instrument, mark_retrieved, mark_selected, request
from ragtrace_llamaindex.instrumentation import tracer
from tests.kept import ANSWER, ids, kinds


@pytest.fixture(autouse=True)
def _all_let_go():
    yield
    assert len(tracer.joined) == 0


def by_hand(question):
    """Search, rerank and answer in a few lines, as LlamaIndex's low-level pages do."""
    found = Faq().retrieve(question)
    chosen = Best().postprocess_nodes(found, query_str=question)
    prompt = PromptTemplate("{context}\n{question}")
    return Llm().predict(prompt, context="\n".join(one.text for one in chosen), question=question)


def with_synthesizer(question):
    chosen = Best().postprocess_nodes(Faq().retrieve(question), query_str=question)
    return get_response_synthesizer(llm=Llm()).synthesize(question, chosen).response


def in_workflow(question):
    async def run():
        return await Rag().run(query=question)

    return asyncio.run(run())


FORMS = {
    "by hand": by_hand,
    "synthesizer": with_synthesizer,
    "engine": lambda question: engine().query(question).response,
    "workflow": in_workflow,
    "function": get_dispatcher("tests.app").span(by_hand),
    "stream": lambda question: "".join(engine(streaming=True).query(question).response_gen),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_inside_is_one_run(keeper, recorder, form):
    with recorder.start(query="Where?"):
        assert FORMS[form]("Where?") == ANSWER
        assert keeper.runs == []
    checked(keeper.only)


async def test_concurrent_blocks_stay_apart(keeper, recorder):
    async def ask(question, prefix):
        async with recorder.start(query=question):
            await engine(Faq(prefix=prefix)).aquery(question)

    await asyncio.gather(*(ask(f"{name}?", name) for name in "abcdefgh"))
    runs = {run.record.query: run for run in keeper.runs}
    assert sorted(runs) == [f"{name}?" for name in "abcdefgh"]
    assert all(ids(run, "reranked") == [f"{query[0]}5", f"{query[0]}4"] for query, run in runs.items())


def test_its_own_pool_is_not_doubled(keeper, recorder):
    with recorder.start(query="Where?") as run:
        found = Faq()._retrieve("Where?")
        run.retrieved([{"id": one.node_id, "text": one.text, "score": one.score} for one in found])
        get_response_synthesizer(llm=Llm()).synthesize("Where?", found)
    assert (ids(keeper.only, "retrieved"), keeper.only.record.answer) == ([f"d{i}" for i in range(6)], ANSWER)


def test_marks(keeper, recorder):
    with recorder.start(query="Where?"):
        found = mark_retrieved([{"id": "k1", "text": FIRST}, {"id": "k2", "text": "Rome has none."}], source="faq")
        mark_selected(found[:1])
        Llm().complete(f"{FIRST}\nWhere?")
    run = keeper.only
    assert (ids(run, "retrieved"), ids(run, "reranked"), run.record.answer) == (["k1", "k2"], ["k1"], ANSWER)


def test_a_selection_without_an_end_is_marked_up_to_10000(keeper, recorder):
    with recorder.start(query="Where?"):
        mark_selected({"id": f"d{n}", "text": f"Passage {n}."} for n in itertools.count())
    run = keeper.only
    assert (len(run.record.pool("reranked")), run.record.lossy) == (
        10_000,
        {"passages": 1, "contexts_truncated": 1},
    )


def test_a_search_alone_expects_no_answer(keeper, recorder):
    with recorder.start(query="Where?"):
        Llm(says="lab city").complete("Write a query for: Where?")
        Faq(size=2).retrieve("lab city")
    record = keeper.only.record
    assert (record.answer, answer_lacking(record)) == ("", "no_answer_expected")


def test_evaluators_and_indexes_inside_are_no_steps(keeper, recorder):
    with recorder.start(query="Where?"):
        engine().query("Where?")
        FaithfulnessEvaluator(llm=Llm(says="YES")).evaluate(response=ANSWER, contexts=["The lab is in Oslo."])
        CorrectnessEvaluator(llm=Llm(says="4.0\nfine")).evaluate(query="Where?", response=ANSWER, reference="Oslo")
        pipeline = IngestionPipeline(transformations=[SentenceSplitter(), KeywordExtractor(llm=Llm(says="Rome"))])
        pipeline.run(documents=[Document(text="Rome has none.")])
    checked(keeper.only)


def test_the_last_of_two_answers_counts(keeper, recorder):
    with recorder.start(query="Where?"):
        engine(llm=Llm(says="A draft of the answer, quite long.")).query("Where?")
        engine().query("Where?")
    assert (keeper.only.record.answer, keeper.only.prompt_ids) == (ANSWER, ("d5", "d4"))


def test_a_chat_engine_tells_the_turns_before(keeper, recorder):
    memory = ChatMemoryBuffer.from_defaults(
        [ChatMessage("Hi", role="user"), ChatMessage("Hello", role="assistant")]
    )
    chat = ContextChatEngine.from_defaults(retriever=Faq(size=2), llm=Llm(), memory=memory)
    with recorder.start(query="Where?"):
        chat.chat("Where?")
    assert [turn.content for turn in keeper.only.record.history] == ["Hi", "Hello"]


async def test_an_agent_with_a_text_tool(keeper, recorder):
    agent = FunctionAgent(tools=[tool(FIRST)], llm=ToolCaller(replies=[call_of(), ANSWER]), streaming=False)
    async with recorder.start(query="Where?"):
        assert str(await agent.run(user_msg="Where?")) == ANSWER
    run = keeper.only
    assert [passage.text for passage in run.record.unranked_contexts] == [FIRST]
    assert (run.record.answer, kinds(run)) == (ANSWER, ["chat", "tool", "chat", "agent"])


def test_a_block_inside_a_function_is_the_run(keeper, recorder):
    @get_dispatcher("tests.app").span
    def handler(question):
        with recorder.start(query=question):
            return by_hand(question)

    handler("Where?")
    checked(keeper.only)


def test_a_stream_that_outlives_its_block_is_partial(keeper, recorder):
    with recorder.start(query="Where?"):
        pieces = engine(streaming=True).query("Where?").response_gen
        assert next(pieces) == "The"
    assert "".join(pieces) == " lab is in Oslo."
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "The")


def test_the_request_and_the_defaults_fill_what_is_missing(keeper, recorder):
    instrument(recorder, corpus="faq", user="u-1", tags="all")
    with request(session="s-42", user="u-2", tags="beta"), recorder.start(query="Where?", user="u-7"):
        engine(postprocessors=[First()]).query("Where?")
    record = keeper.only.record
    assert (record.session, record.user, record.corpus, record.tags) == ("s-42", "u-7", "faq", ("all", "beta"))


def test_a_block_without_any_call_is_left_alone(keeper, recorder):
    with recorder.start(query="Where?") as run:
        run.answered("In Oslo.")
    assert (keeper.only.record.answer, keeper.only.record.is_answer_expected) == ("In Oslo.", True)
