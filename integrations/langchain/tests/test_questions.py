"""Only questions are runs: the parts of a program that ask or answer nothing leave none."""

from __future__ import annotations

import asyncio
from typing import TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import START, StateGraph

from integrations.langchain.tests.parts import PROMPT, Broken, Faq, chat, lcel, shown
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace_langchain import RagtraceHandler, instrument, mark_selected, uninstrument
from tests.kept import ANSWER, ids, kinds

POOL = [f"d{i}" for i in range(6)]
HYDE = "The lab has moved to a new building."
WRITE = (
    ChatPromptTemplate.from_template("Write a passage that answers: {question}") | chat(HYDE) | StrOutputParser()
)


@pytest.fixture
def installed(recorder):
    instrument(recorder)
    yield
    uninstrument()


class Caller(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


def calling(name, **args):
    return Caller(messages=iter([AIMessage("", tool_calls=[{"name": name, "args": args, "id": "1"}])]))


@tool
def search(query: str) -> str:
    """Search."""
    return "Nothing."


def store():
    return InMemoryVectorStore(DeterministicFakeEmbedding(size=8))


def ingest(path):
    texts = RunnableLambda(lambda name: [Document(page_content=f"{name} {i}") for i in range(3)])
    split = RunnableLambda(lambda docs: [Document(page_content=d.page_content[:4]) for d in docs])
    (texts | split | RunnableLambda(store().add_documents)).invoke(path)


def failing(part, given):
    with pytest.raises((KeyError, ValueError)):
        part.invoke(given)


GRADE = ChatPromptTemplate.from_template("Is this relevant to {question}?\n{document}")
NO_QUESTIONS = {
    "prompt": lambda: PROMPT.invoke({"context": "", "question": "Where?"}),
    "prompt that fails": lambda: failing(PROMPT, {"question": "Where?"}),
    "parser": lambda: StrOutputParser().invoke("In Oslo."),
    "parser that fails": lambda: failing(JsonOutputParser(), "In Oslo."),
    "parser that is left": lambda: next(StrOutputParser().transform(iter(["In ", "Oslo."]))),
    "lambda": lambda: RunnableLambda(lambda x: x + 1).invoke(1),
    "lambda of a text": lambda: RunnableLambda(str.upper).invoke("Where?"),
    "lambdas": lambda: (RunnableLambda(str.upper) | RunnableLambda(str.lower)).invoke("Where?"),
    "tool": lambda: search.invoke({"query": "Where?"}),
    "ingestion": lambda: ingest("handbook.txt"),
    "splitter": lambda: RunnableLambda(lambda docs: docs[:1]).invoke([Document(page_content="a")] * 2),
    "call of a tool": lambda: calling("search", query="lab").invoke("Where?"),
}


@pytest.mark.parametrize("form", NO_QUESTIONS)
def test_no_question_is_no_run(keeper, recorder, installed, form):
    NO_QUESTIONS[form]()
    assert (keeper.runs, recorder.open_runs) == ([], 0)


def answered_na(captured):
    """The states of all metrics over the answer of a run."""
    metrics = select(["faithfulness", "no_answer", "answer_relevancy", "citations", "answer_similarity"])
    results = asyncio.run(evaluate(metrics, EvalContext(captured.record)))
    return {(result.state, result.reason) for result in results}


RETRIEVALS = {
    "retriever": Faq,
    "formatted": lambda: Faq() | shown,
    "formatted with titles": lambda: Faq() | (lambda docs: "\n".join(f"## {d.id}\n{d.page_content}" for d in docs)),
    "in a state": lambda: RunnablePassthrough.assign(docs=(lambda x: x["question"]) | Faq()),
    "tool": lambda: create_retriever_tool(Faq(), "search", "Searches."),
    "HyDE": lambda: WRITE | Faq(),
    "HyDE formatted": lambda: WRITE | Faq() | shown,
    "HyDE in a state": lambda: RunnablePassthrough.assign(written=WRITE).assign(
        docs=(lambda x: x["written"]) | Faq()
    ),
    "HyDE over a store": lambda: (
        WRITE | RunnableLambda(lambda text: Faq()._get_relevant_documents(text, run_manager=None))
    ),
    "multi-query": lambda: WRITE | str.splitlines | Faq().map() | (lambda lists: lists[0]),
    "graded": lambda: Faq() | RunnableLambda(lambda docs: [d for d in docs if chat("yes").invoke(d.page_content)]),
}


@pytest.mark.parametrize("form", RETRIEVALS)
def test_a_retrieval_alone_has_no_answer(keeper, installed, form):
    asked = {"query": "Where?"} if form == "tool" else {"question": "Where?"}
    RETRIEVALS[form]().invoke("Where?" if form in {"retriever", "formatted", "formatted with titles"} else asked)
    record = keeper.only.record
    assert (record.query, ids(keeper.only, "retrieved"), record.outcome) == ("Where?", POOL, "answered")
    assert (record.answer, record.is_answer_expected) == ("", False)
    assert answered_na(keeper.only) == {("na", "no_answer_expected")}


class TestQuestions:
    def test_a_model_alone(self, keeper, installed):
        chat().invoke("Where is the lab?")
        assert (keeper.only.record.query, keeper.only.record.answer) == ("Where is the lab?", ANSWER)

    def test_yes_is_an_answer_over_documents(self, keeper, installed):
        lcel(model=chat("Yes.")).invoke("Is it in Oslo?")
        assert (keeper.only.record.answer, keeper.only.record.is_answer_expected) == ("Yes.", True)

    @pytest.mark.parametrize("call", ["invoke", "stream"])
    def test_yes_is_an_answer_over_documents_that_are_given(self, keeper, installed, call):
        found = [Document(page_content="The lab is in Oslo."), Document(page_content="It moved in May.")]
        asked = {"question": "Is it in Oslo?", "documents": found}
        prompt = ChatPromptTemplate.from_template("{documents}\n{question}")
        list(getattr(prompt | chat("Yes.") | StrOutputParser(), call)(asked))
        assert (keeper.only.record.query, keeper.only.record.answer) == ("Is it in Oslo?", "Yes.")
        assert len(ids(keeper.only, "retrieved")) == 2

    def test_a_function_that_answers_over_a_retrieval(self, keeper, installed):
        (Faq(size=1) | RunnableLambda(lambda docs: "It moved.")).invoke("Where?")
        assert (keeper.only.record.answer, keeper.only.record.is_answer_expected) == ("It moved.", True)

    def test_a_blank_answer_is_one(self, keeper, installed):
        lcel(model=chat("")).invoke("Where?")
        assert (keeper.only.record.answer, keeper.only.record.is_answer_expected) == ("", True)

    def test_a_search_that_fails_is_an_error(self, keeper, installed):
        def find(question):
            raise ConnectionError("index is down")

        with pytest.raises(ConnectionError):
            lcel(RunnableLambda(find)).invoke("Where?")
        assert (keeper.only.record.query, keeper.only.record.outcome) == ("Where?", "error")
        assert keeper.only.record.is_answer_expected

    def test_a_retriever_alone_that_fails_is_an_error(self, keeper, installed):
        with pytest.raises(ConnectionError):
            Broken().invoke("Where?")
        assert keeper.only.record.outcome == "error"

    def test_a_selection_that_is_marked(self, keeper, installed):
        RunnableLambda(lambda q: len(mark_selected([Document(id="a", page_content="Oslo.")]))).invoke("Where?")
        assert (ids(keeper.only, "reranked"), keeper.only.record.is_answer_expected) == (["a"], False)

    def test_hyde_answer_is_the_last_models(self, keeper, installed):
        given = {"context": WRITE | Faq() | shown, "question": RunnablePassthrough()}
        (given | PROMPT | chat() | StrOutputParser()).invoke("Where?")
        assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["chat", "retrieval", "chat"])


class TestDecoratedChain:
    """``@chain`` groups the calls inside, with and without their config."""

    @pytest.mark.parametrize("is_handed_on", [True, False])
    def test_sync(self, keeper, installed, is_handed_on):
        @chain
        def ask(question, config):
            given = config if is_handed_on else None
            docs = Faq().invoke(question, given)
            kept = [doc for doc in docs[:3] if chat("yes").invoke(f"Fits?\n{doc.page_content}", given).content]
            return chat().invoke(f"{shown(kept)}\n{question}", given).content

        assert ask.invoke("Where?") == ANSWER
        assert (keeper.only.record.workflow, keeper.only.record.answer) == ("ask", ANSWER)
        assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (POOL, ("d0", "d1", "d2"))

    async def test_async(self, keeper, installed):
        @chain
        async def ask(question):
            docs = await Faq().ainvoke(question)
            grades = await asyncio.gather(*(chat("yes").ainvoke(f"Fits?\n{doc.page_content}") for doc in docs[:3]))
            return (await chat().ainvoke(f"{shown(docs[: len(grades)])}\n{question}")).content

        assert await ask.ainvoke("Where?") == ANSWER
        assert (keeper.only.record.answer, ids(keeper.only, "retrieved")) == (ANSWER, POOL)
        assert keeper.only.prompt_ids == ("d0", "d1", "d2")


class TestApplicationsOwnRun:
    """``ragtrace.query`` around hand-written code: one run with all calls inside."""

    @staticmethod
    def ask(question):
        docs = Faq().invoke(question)
        kept = [doc for doc in docs if (GRADE | chat("yes")).invoke({"question": question, "document": doc})][:2]
        text = PROMPT.invoke({"context": shown(kept), "question": question})
        return StrOutputParser().invoke(chat().invoke(text))

    @pytest.mark.parametrize("is_handler_given", [True, False])
    def test_hand_written_steps(self, keeper, recorder, is_handler_given):
        config = {"callbacks": [RagtraceHandler(recorder)]} if is_handler_given else None
        if not is_handler_given:
            instrument(recorder)
        try:
            with recorder.start(query="Where is the lab?"):
                docs = Faq().invoke("lab", config)
                chat().invoke(PROMPT.invoke({"context": shown(docs[:2]), "question": "lab"}), config)
        finally:
            uninstrument()
        run = keeper.only
        assert (run.record.query, run.record.answer, run.record.outcome) == (
            "Where is the lab?",
            ANSWER,
            "answered",
        )
        assert (ids(run, "retrieved"), run.prompt_ids, kinds(run)) == (POOL, ("d0", "d1"), ["retrieval", "chat"])

    def test_grades_between(self, keeper, recorder, installed):
        with recorder.start(query="Where?") as run:
            run.answered(self.ask("Where?"))
        assert (keeper.only.record.answer, ids(keeper.only, "retrieved")) == (ANSWER, POOL)
        assert keeper.only.prompt_ids == ("d0", "d1")

    def test_chains_in_turn(self, keeper, recorder, installed):
        condense = ChatPromptTemplate.from_template("Condense: {question}") | chat("lab city") | StrOutputParser()
        grade = GRADE | chat("yes") | StrOutputParser()
        with recorder.start(query="Where is it?"):
            found = (Faq() | shown).invoke(condense.invoke({"question": "Where is it?"}))
            answer = (PROMPT | chat() | StrOutputParser()).invoke({"context": found, "question": "Where?"})
            grade.invoke({"question": "Where?", "document": answer})
        run = keeper.only
        assert (run.record.query, run.record.answer) == ("Where is it?", ANSWER)
        assert (ids(run, "retrieved"), run.prompt_ids) == (POOL, tuple(POOL))

    def test_a_retrieval_alone(self, keeper, recorder, installed):
        with recorder.start(query="Where?"):
            Faq().invoke("lab")
        assert (keeper.only.record.is_answer_expected, ids(keeper.only, "retrieved")) == (False, POOL)

    def test_an_answer_that_the_application_wrote(self, keeper, recorder, installed):
        with recorder.start(query="Where?") as run:
            Faq().invoke("lab")
            run.answered("In Oslo.")
        assert (keeper.only.record.is_answer_expected, keeper.only.record.answer) == (True, "In Oslo.")

    def test_a_stream_that_the_block_leaves(self, keeper, recorder, installed):
        with recorder.start(query="Where?"):
            for _ in lcel().stream("Where?"):
                break
        assert keeper.only.record.outcome == "partial"

    def test_a_stream_that_the_block_reads(self, keeper, recorder, installed):
        with recorder.start(query="Where?"):
            assert "".join(lcel().stream("Where?")) == ANSWER
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", ANSWER)

    def test_an_error_that_the_block_catches(self, keeper, recorder, installed):
        with recorder.start(query="Where?"):
            with pytest.raises(ConnectionError):
                lcel(Broken()).invoke("Where?")
            lcel().invoke("Where?")
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", ANSWER)

    async def test_tasks_side_by_side(self, keeper, recorder, installed):
        async def ask(name):
            async with recorder.start(query=f"{name}?"):
                await asyncio.gather(
                    Faq(size=2, prefix=f"{name}a").ainvoke("q"), Faq(size=2, prefix=f"{name}b").ainvoke("q")
                )
                await chat(f"Answer {name}.").ainvoke("Where?")

        await asyncio.gather(*map(ask, "xyz"))
        found = {run.record.query: (sorted(ids(run, "retrieved")), run.record.answer) for run in keeper.runs}
        assert found == {
            f"{name}?": ([f"{name}{part}{i}" for part in "ab" for i in range(2)], f"Answer {name}.")
            for name in "xyz"
        }

    def test_what_the_request_says_fills_the_gaps(self, keeper, recorder, installed):
        said = {"ragtrace.session": "s1", "ragtrace.corpus": "faq"}
        with recorder.start(query="Where?", session="s0"):
            lcel().invoke("Where?", {"metadata": said, "tags": ["vip"]})
        record = keeper.only.record
        assert (record.session, record.corpus, record.tags) == ("s0", "faq", ("vip",))

    def test_what_the_application_reports_too_counts_once(self, keeper, recorder, installed):
        with recorder.start(query="Where?") as run:
            run.retrieved([{"id": doc.id, "text": doc.page_content} for doc in Faq().invoke("lab")])
            run.answered("In Oslo.")
        assert ids(keeper.only, "retrieved") == POOL


class State(TypedDict, total=False):
    question: str
    path: str
    hyde: str
    documents: list


def graph(**nodes):
    built = StateGraph(State)
    built.add_sequence(list(nodes.items()))
    built.add_edge(START, next(iter(nodes)))
    return built.compile()


class TestGraphs:
    def test_one_that_retrieves_by_a_written_passage(self, keeper, installed):
        nodes = {
            "write": lambda state: {"hyde": WRITE.invoke(state["question"])},
            "retrieve": lambda state: {"documents": Faq().invoke(state["hyde"])},
        }
        graph(**nodes).invoke({"question": "Where?"})
        record = keeper.only.record
        assert (record.query, record.answer, record.is_answer_expected) == ("Where?", "", False)
        assert (ids(keeper.only, "retrieved"), record.workflow) == (POOL, "rag")

    def test_one_that_searches_by_a_function(self, keeper, installed):
        found = Faq()._get_relevant_documents("", run_manager=None)
        graph(search=lambda state: {"documents": found}).invoke({"question": "Where?"})
        assert (ids(keeper.only, "retrieved"), keeper.only.record.is_answer_expected) == (POOL, False)

    def test_ingestion_is_no_run(self, keeper, installed):
        load = {"load": lambda state: {"documents": [Document(page_content="a"), Document(page_content="b")]}}
        graph(**load, split=lambda state: {"documents": state["documents"][:1]}).invoke({"path": "handbook.txt"})
        assert keeper.runs == []
