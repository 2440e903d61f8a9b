"""The turns before a question, where a chat engine or an agent keeps them itself."""

from __future__ import annotations

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.prompts import ChatPromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine

from integrations.llamaindex.tests.parts import Best, Faq, Llm, ToolCaller, engine, until
from ragtrace.model import Message
from tests.kept import ANSWER

SAID = (Message(role="user", content="a?"), Message(role="assistant", content=ANSWER))
EXAMPLE = [ChatMessage("Example?", role="user"), ChatMessage("Example.", role="assistant")]
CHATS = {
    "context": lambda llm, memory: ContextChatEngine.from_defaults(
        Faq(), llm=llm, memory=memory, node_postprocessors=[Best()], system_prompt="Be brief."
    ),
    "condense plus context": lambda llm, memory: CondensePlusContextChatEngine.from_defaults(
        Faq(), llm=llm, memory=memory, node_postprocessors=[Best()]
    ),
    "condense": lambda llm, memory: CondenseQuestionChatEngine.from_defaults(
        engine(llm=llm), llm=llm, memory=memory
    ),
    "simple": lambda llm, memory: SimpleChatEngine.from_defaults(llm=llm, memory=memory),
}


class Talker(ToolCaller):
    """A chat model that completes as well, as those behind an API do."""

    def complete(self, prompt, **kwargs):
        return CompletionResponse(text=self.chat([ChatMessage(prompt, role="user")]).message.content)

    async def acomplete(self, prompt, **kwargs):
        return self.complete(prompt)


MODELS = {"completes": Llm, "chats": lambda: Talker(replies=[ANSWER] * 9)}


@pytest.mark.parametrize("memory", [None, ChatMemoryBuffer])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CHATS)
class TestChatEngines:
    def chat(self, name, model, memory):
        return CHATS[name](MODELS[model](), memory and memory.from_defaults())

    def checked(self, keeper):
        assert [run.record.query for run in keeper.runs] == ["a?", "b?", "c?"]
        assert [run.record.history for run in keeper.runs][:2] == [(), SAID]
        assert [m.content for m in keeper.runs[2].record.history] == ["a?", ANSWER, "b?", ANSWER]

    def test_chat(self, keeper, name, model, memory):
        chat = self.chat(name, model, memory)
        for question in ("a?", "b?", "c?"):
            chat.chat(question)
        self.checked(keeper)

    async def test_achat(self, keeper, name, model, memory):
        chat = self.chat(name, model, memory)
        for question in ("a?", "b?", "c?"):
            await chat.achat(question)
        self.checked(keeper)

    def test_streams(self, keeper, name, model, memory):
        chat = self.chat(name, model, memory)
        for question in ("a?", "b?", "c?"):
            response = chat.stream_chat(question)
            assert "".join(response.response_gen) == ANSWER
            writer = getattr(response, "write_response_to_history_thread", None)  # early versions have none
            if writer is not None:
                writer.join()
        self.checked(keeper)


def test_what_the_caller_gives_comes_first(keeper):
    chat = ContextChatEngine.from_defaults(Faq(), llm=Llm())
    chat.chat("a?")
    chat.chat("b?", chat_history=[ChatMessage("Hi", role="user"), ChatMessage("Hello", role="assistant")])
    assert [m.content for m in keeper.runs[1].record.history] == ["Hi", "Hello"]


@pytest.mark.parametrize("name", ["context", "simple"])
def test_the_examples_of_a_prompt_are_no_history(keeper, name):
    kinds = {"context": lambda: ContextChatEngine.from_defaults(Faq(), llm=Llm(), prefix_messages=list(EXAMPLE)),
             "simple": lambda: SimpleChatEngine.from_defaults(llm=Llm(), prefix_messages=list(EXAMPLE))}  # fmt: skip
    chat = kinds[name]()
    chat.chat("a?")
    chat.chat("b?")
    assert [run.record.history for run in keeper.runs] == [(), SAID]


def test_a_query_engine_has_no_history(keeper):
    template = ChatPromptTemplate.from_messages([*EXAMPLE, ChatMessage("{context_str}{query_str}", role="user")])
    llm = ToolCaller(replies=[ANSWER])
    RetrieverQueryEngine.from_args(Faq(), llm=llm, text_qa_template=template).query("Where?")
    assert keeper.only.record.history == ()


def test_a_turn_of_several_lines(keeper):
    chat = CondenseQuestionChatEngine.from_defaults(engine(llm=Llm(says="Oslo.\n\nOr: Bergen.")), llm=Llm())
    chat.chat("a?\nb?")
    chat.chat("c?")
    assert [m.content for m in keeper.runs[1].record.history] == ["a?\nb?", "Oslo.\n\nOr: Bergen."]


@pytest.mark.parametrize("kind", [FunctionAgent, ReActAgent])
async def test_an_agent_s_memory(keeper, kind):
    reply = ANSWER if kind is FunctionAgent else f"Thought: I can answer.\nAnswer: {ANSWER}"
    llm = ToolCaller(replies=[reply] * 2)
    agent = kind(tools=[], llm=llm, streaming=False)
    memory = ChatMemoryBuffer.from_defaults()
    for number, question in enumerate(("a?", "b?"), start=1):
        await agent.run(user_msg=question, memory=memory)
        await until(lambda number=number: len(keeper.runs) == number)
    first, second = (run.record.history for run in keeper.runs)
    assert (first, [turn.content for turn in second]) == ((), ["a?", reply])  # an agent that reasons keeps that too
