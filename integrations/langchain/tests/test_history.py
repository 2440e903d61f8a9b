"""Earlier turns that the framework keeps: message histories, and the states of graphs with a checkpointer."""

from __future__ import annotations

import warnings

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from integrations.langchain.tests.parts import Faq, chat, shown
from ragtrace.capture.turns import recalled_in
from ragtrace_langchain.values import Values
from tests.kept import ANSWER

warnings.filterwarnings("ignore", message=".*(InMemoryChatMessageHistory|RunnableWithMessageHistory)")
history = pytest.importorskip("langchain_core.runnables.history")
chat_history = pytest.importorskip("langchain_core.chat_history")

EARLIER = [HumanMessage("Hi"), AIMessage("Hello")]
TURNS = [("user", "Hi"), ("assistant", "Hello")]
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Use this:\n{context}"), MessagesPlaceholder("history"), ("human", "{question}")]
)


def remembering(chain, **keys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = chat_history.InMemoryChatMessageHistory(messages=list(EARLIER))
        return history.RunnableWithMessageHistory(chain, lambda session_id: kept, **keys)


def turns(run):
    return [(turn.role, turn.content) for turn in run.record.history]


@pytest.fixture
def session(config):
    return {**config, "configurable": {"session_id": "s1"}}


class TestMessageHistory:
    def chain(self):
        found = RunnablePassthrough.assign(context=(lambda x: x["question"]) | Faq() | shown)
        keys = {"input_messages_key": "question", "history_messages_key": "history"}
        return remembering(found | PROMPT | chat() | StrOutputParser(), **keys)

    def test_under_a_key(self, keeper, session):
        assert self.chain().invoke({"question": "Where?"}, session) == ANSWER
        assert (turns(keeper.only), keeper.only.record.query) == (TURNS, "Where?")

    async def test_async(self, keeper, session):
        assert await self.chain().ainvoke({"question": "Where?"}, session) == ANSWER
        assert (turns(keeper.only), keeper.only.record.query) == (TURNS, "Where?")

    def test_streamed(self, keeper, session):
        assert "".join(self.chain().stream({"question": "Where?"}, session)) == ANSWER
        assert (turns(keeper.only), keeper.only.record.query) == (TURNS, "Where?")

    @pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "batch"])
    async def test_the_session_is_the_one_it_is_configured_with(self, keeper, session, how):
        session = {**session, "configurable": {"session_id": "s1", "user_id": "u1"}}
        chain = self.chain()
        asked = {"question": "Where?"}
        if how == "ainvoke":
            await chain.ainvoke(asked, session)
        elif how == "batch":
            chain.batch([asked, asked], [session, {**session, "configurable": {"session_id": "s2"}}])
        else:
            list(getattr(chain, how)(asked, session))
        runs = [(run.record.session, run.record.user) for run in keeper.runs]
        assert sorted(runs, key=str) == ([("s1", "u1"), ("s2", None)] if how == "batch" else [("s1", "u1")])

    def test_what_a_request_says_comes_before_it(self, keeper, session):
        self.chain().invoke({"question": "Where?"}, {**session, "metadata": {"ragtrace.session": "own"}})
        assert keeper.only.record.session == "own"

    def test_the_next_turn_has_the_turns_of_both(self, keeper, session):
        chain = self.chain()
        chain.invoke({"question": "Where?"}, session)
        chain.invoke({"question": "Where?"}, session)
        assert turns(keeper.runs[1]) == [*TURNS, ("user", "Where?"), ("assistant", ANSWER)]

    def test_before_the_question_in_one_list(self, keeper, session):
        chain = remembering(RunnableLambda(lambda messages: messages) | chat())
        chain.invoke([HumanMessage("Where?")], session)
        assert (turns(keeper.only), keeper.only.record.query) == (TURNS, "Where?")

    def test_before_the_question_under_its_key(self, keeper, session):
        chain = remembering(RunnableLambda(lambda x: x["input"]) | chat(), input_messages_key="input")
        chain.invoke({"input": "Where?"}, session)
        assert (turns(keeper.only), keeper.only.record.query) == (TURNS, "Where?")


def test_a_history_in_the_own_input_comes_first(keeper, config):
    other = RunnablePassthrough.assign(context=lambda x: "c", history=lambda x: EARLIER)
    asked = {"question": "Where?", "chat_history": [HumanMessage("Mine"), AIMessage("Yours")]}
    (other | PROMPT | chat()).invoke(asked, config)
    assert turns(keeper.only) == [("user", "Mine"), ("assistant", "Yours")]


def test_examples_for_the_model_are_no_history(keeper, config):
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("messages"), ("human", "{question}")])
    given = RunnablePassthrough.assign(messages=lambda x: [HumanMessage("2+2?"), AIMessage("4")])
    (given | prompt | chat()).invoke({"question": "Where?"}, config)
    assert turns(keeper.only) == []
    assert (
        recalled_in(Values().of({"examples": EARLIER}), "Where?")
        == recalled_in({"n": [1], "m": []}, "Where?")
        == ()
    )


class TestGraph:
    @pytest.fixture(autouse=True)
    def graphs(self):
        pytest.importorskip("langgraph")

    def test_a_checkpointer_keeps_the_earlier_turns(self, keeper, config):
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, MessagesState, StateGraph

        graph = StateGraph(MessagesState)
        graph.add_node("talk", lambda state: {"messages": [chat().invoke(state["messages"])]})
        graph.add_edge(START, "talk")
        app = graph.compile(checkpointer=InMemorySaver())
        config["configurable"] = {"thread_id": "t1"}
        for question in ("Where?", "When?"):
            app.invoke({"messages": [("user", question)]}, config)
        assert [turns(run) for run in keeper.runs] == [[], [("user", "Where?"), ("assistant", ANSWER)]]

    def test_what_a_run_adds_itself_is_no_history(self, keeper, config):
        from langgraph.graph import START, MessagesState, StateGraph

        graph = StateGraph(MessagesState)
        graph.add_node("talk", lambda state: {"messages": [chat().invoke(state["messages"])]})
        graph.add_node("again", lambda state: {"messages": [HumanMessage("Where?")]})
        graph.add_node("look", lambda state: {})
        for one, other in ((START, "talk"), ("talk", "again"), ("again", "look")):
            graph.add_edge(one, other)
        graph.compile().invoke({"messages": [("user", "Where?")]}, config)
        assert turns(keeper.only) == []
