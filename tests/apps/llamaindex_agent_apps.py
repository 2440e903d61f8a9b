"""Agents and workflows of LlamaIndex: after its agent and workflow guides."""

from __future__ import annotations

from llama_index.core.agent.workflow import AgentStream, FunctionAgent, ReActAgent
from llama_index.core.response_synthesizers import CompactAndRefine
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from ragtrace_llamaindex import mark_selected
from tests.apps.application import Expected
from tests.apps.llamaindex_parts import Caller, LlamaIndexApplication, Replies, call, index
from tests.apps.shop import TEXTS


class AgentApplication(LlamaIndexApplication):
    """An agent that `build` returns, asked the expected question."""

    def build(self):
        raise NotImplementedError

    async def aask(self, _given):
        return str(await self.build().run(user_msg=self.expected[0].question))

    async def astream(self, _given):
        handler = self.build().run(user_msg=self.expected[0].question)
        async for event in handler.stream_events():
            if isinstance(event, AgentStream):
                yield event.delta
        await handler


class AgentWithEngine(AgentApplication):
    """A function-calling agent with a query engine as its tool: the passages behind the tool's answer count."""

    expected = (
        Expected(
            question="My kettle broke after a year. What now?",
            pool=("warranty", "invoices"),
            prompt=("warranty", "invoices"),
            answer="The warranty still holds: say so at the desk in Örebro.",
        ),
    )

    def build(self):
        inner = Replies(rules=[("", "The warranty lasts two years, at the desk in Örebro.")])
        made = index({"warranty period": 128}).as_query_engine(llm=inner, similarity_top_k=2)
        tool = QueryEngineTool.from_defaults(made, name="handbook", description="The shop's handbook.")
        replies = [call("handbook", input="warranty period"), self.expected[0].answer]
        return FunctionAgent(tools=[tool], llm=Caller(replies=replies), system_prompt="Answer for a shop.")


class AgentWithTextTool(AgentApplication):
    """The tool is a function that returns a text: the text is a context without rank."""

    expected = (
        Expected(
            question="Is there duty on a parcel to Oslo?",
            pool=(),
            prompt=("#customs",),
            answer="Yes, from 22 euros on.",
        ),
    )

    def build(self):
        def read_page(topic: str) -> str:
            """Return a page of the handbook."""
            return TEXTS[topic]

        replies = [call("read_page", topic="customs"), "Yes, from 22 euros on."]
        return FunctionAgent(tools=[read_page], llm=Caller(replies=replies))


class ReactWithResults(AgentApplication):
    """A ReAct agent whose tool returns search results as mappings, of which each is a passage."""

    expected = (
        Expected(
            question="How do I send a kettle back?",
            pool=("returns", "refunds"),
            prompt=("returns", "refunds"),
            answer="Pack it, print the label, and get the money within 14 days.",
        ),
    )

    def build(self):
        def search(query: str) -> list[dict]:
            """Search the handbook."""
            return [
                {"id": name, "content": TEXTS[name], "score": score}
                for name, score in (("returns", 0.9), ("refunds", 0.7))
            ]

        thoughts = [
            'Thought: I need a tool.\nAction: search\nAction Input: {"query": "send back"}\n',
            f"Thought: I can answer.\nAnswer: {self.expected[0].answer}",
        ]
        return ReActAgent(tools=[FunctionTool.from_defaults(search)], llm=Caller(replies=thoughts))


class Retrieved(Event):
    nodes: list


class Chosen(Event):
    nodes: list


class RerankingFlow(Workflow):
    """Steps that search, choose by hand and answer."""

    @step
    async def search(self, event: StartEvent) -> Retrieved:
        found = index({event.query: 12}).as_retriever(similarity_top_k=4)
        return Retrieved(nodes=await found.aretrieve(event.query))

    @step
    async def choose(self, event: Retrieved) -> Chosen:
        return Chosen(nodes=mark_selected([event.nodes[1], event.nodes[0]]))

    @step
    async def answer(self, event: Chosen) -> StopEvent:
        model = Replies(rules=[("", "Print the label; it's free.")])
        made = CompactAndRefine(llm=model)
        return StopEvent(result=str(await made.asynthesize("How do I return it?", nodes=event.nodes)))


class WorkflowWithRerank(LlamaIndexApplication):
    """LlamaIndex's RAG workflow: each step a function, the choice made by hand."""

    expected = (
        Expected(
            question="How do I return it?",
            pool=("returns", "refunds", "shipping", "customs"),
            selection=("refunds", "returns"),
            ranks=(2, 1),
            prompt=("refunds", "returns"),
            answer="Print the label; it's free.",
        ),
    )

    async def aask(self, _given):
        return await RerankingFlow().run(query="How do I return it?")
