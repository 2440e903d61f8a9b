"""Graphs of LangGraph: correction, reflection, routing and fusion as state machines, and agents with tools."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import dynamic_prompt
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.tools import create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from ragtrace.model import content_id
from ragtrace_langchain import mark_retrieved
from tests.apps.application import Expected
from tests.apps.langchain_parts import Keywords, LangChainApplication, Replies, calls, joined, store
from tests.apps.shop import TEXTS, WEB


class State(TypedDict, total=False):
    question: str
    documents: list
    web_results: list
    keywords: list
    vectors: list
    attempts: Annotated[int, operator.add]
    verdict: str
    generation: str


class GraphApplication(LangChainApplication):
    """A graph that is asked with a question under its own name."""

    def _given(self):
        return {"question": self.expected[0].question}


def graph(nodes, branches=None, checkpointer=None):
    """Return a graph of nodes in their order; `branches` names for a node the function that says where it goes on."""
    built, names = StateGraph(State), [START, *nodes, END]
    for name, node in nodes.items():
        built.add_node(name, node)
    for one, after in pairwise(names):
        if one in (branches or {}):
            built.add_conditional_edges(one, branches[one])
        else:
            built.add_edge(one, after)
    return built.compile(checkpointer=checkpointer)


def searching(index, k):
    return lambda state: {"documents": index.similarity_search(state["question"], k=k)}


def grading(model):
    """Return a node that keeps the documents to which the model says yes."""

    def grade(state):
        kept = [
            one
            for one in state["documents"]
            if model.invoke(f"Relevant? {one.page_content}\nto: {state['question']}").content == "yes"
        ]
        return {"documents": kept, "verdict": "good" if len(kept) == len(state["documents"]) else "poor"}

    return grade


class RagTutorial(GraphApplication):
    """Two nodes: ``similarity_search`` into the state, and an answer from it."""

    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty", "invoices"),
            prompt=("warranty", "invoices"),
            answer="Two years.",
        ),
    )

    def build(self):
        model = Replies(rules=[("", "Two years.")])
        return graph(
            {
                "retrieve": searching(store({"How long is the warranty?": 128}), 2),
                "generate": lambda state: {"generation": model.invoke(joined(state["documents"])).content},
            }
        )


class CorrectiveRag(GraphApplication):
    """Documents are graded; as some fail, the question is rewritten and the web is searched for mappings."""

    expected = (
        Expected(
            question="Who repairs my lamp?",
            pool=("warranty", "invoices", "customs", "#repairs"),
            selection=("warranty", "#repairs"),
            ranks=(1, 4),
            prompt=("warranty", "#repairs"),
            answer="The desk in Örebro, or Åse & Søn.",
        ),
    )

    def build(self):
        model = Replies(
            rules=[
                ("Relevant? The warranty", "yes"),
                ("Relevant?", "no"),
                ("Rewrite", "lamp repair shop"),
                ("Context", "The desk in Örebro, or Åse & Søn."),
            ]
        )

        def rewrite(state):
            return {"question": model.invoke(f"Rewrite for the web: {state['question']}").content}

        def web_search(state):
            found = [
                {"title": "Åse & Søn", "url": "https://lamps.example", "content": WEB["repairs"], "score": 0.71}
            ]
            return {"web_results": found}

        def generate(state):
            shown = [joined(state["documents"]), *(one["content"] for one in state.get("web_results", ()))]
            return {"generation": model.invoke("Context:\n" + "\n\n".join(shown)).content}

        return graph(
            {
                "retrieve": searching(store({"Who repairs my lamp?": 120}), 3),
                "grade_documents": grading(model),
                "transform_query": rewrite,
                "web_search": web_search,
                "generate": generate,
            },
            {"grade_documents": lambda state: "generate" if state["verdict"] == "good" else "transform_query"},
        )


class SelfRag(GraphApplication):
    """Documents are graded, and the answer is checked: the first one is not grounded and is written anew."""

    expected = (
        Expected(
            question="How long does a parcel to Oslo take?",
            pool=("shipping", "customs", "returns"),
            selection=("shipping", "customs"),
            ranks=(1, 2),
            prompt=("shipping", "customs"),
            answer="It takes 3 to 5 days.",
        ),
    )

    def build(self):
        model = Replies(
            rules=[
                ("Relevant? Returns", "no"),
                ("Relevant?", "yes"),
                ("Grounded? It takes 30 days.", "no"),
                ("Grounded?", "yes"),
                ("Useful?", "yes"),
                ("Attempt 0", "It takes 30 days."),
                ("Attempt 1", "It takes 3 to 5 days."),
            ]
        )

        def generate(state):
            attempt = state.get("attempts", 0)
            said = model.invoke(
                f"Attempt {attempt} from:\n{joined(state['documents'])}\n{state['question']}"
            ).content
            return {"generation": said, "attempts": 1}

        def check(state):
            said = state["generation"]
            if model.invoke(f"Grounded? {said}\nFacts:\n{joined(state['documents'])}").content == "no":
                return "generate"
            return END if model.invoke(f"Useful? {said}\n{state['question']}").content == "yes" else "generate"

        return graph(
            {
                "retrieve": searching(store({"How long does a parcel to Oslo take?": 38}), 3),
                "grade_documents": grading(model),
                "generate": generate,
            },
            {"generate": check},
        )


class AdaptiveRag(GraphApplication):
    """A router sends the question to the web, whose results become one document."""

    expected = (
        Expected(
            question="What is the weather in Oslo?",
            pool=("#weather",),
            prompt=("#weather",),
            answer="Light snow.",
        ),
    )

    def build(self):
        model = Replies(rules=[("Route", "web_search"), ("", "Light snow.")])
        return graph(
            {
                "retrieve": searching(store({}), 2),
                "web_search": lambda state: {"documents": [Document(page_content=WEB["weather"])]},
                "generate": lambda state: {"generation": model.invoke(joined(state["documents"])).content},
            },
            {
                START: lambda state: model.invoke(f"Route: {state['question']}").content,
                "retrieve": lambda _: "generate",
            },
        )


class HybridGraph(GraphApplication):
    """Two parallel nodes search a keyword index without ids and a store; a third fuses by reciprocal ranks."""

    expected = (
        Expected(
            question="Is a refund of customs duty due?",
            pool=("refunds", "#customs", "returns"),
            prompt=("refunds", "#customs", "returns"),
            answer="The carrier's fee is not paid back.",
        ),
    )

    def run(self, form, given):
        result = super().run(form, given)
        if isinstance(result, list):  # LangGraph streams parallel nodes in the order in which they end
            result[:2] = sorted(result[:2], key=str)
        return result

    def build(self):
        index = store({"Is a refund of customs duty due?": 6})
        model = Replies(rules=[("", "The carrier's fee is not paid back.")])

        def fuse(state):
            scores, first = {}, {}
            for documents in (state["keywords"], state["vectors"]):
                for rank, one in enumerate(documents):
                    first.setdefault(one.page_content, one)
                    scores[one.page_content] = scores.get(one.page_content, 0) + 1 / (rank + 60)
            return {"documents": [first[text] for text in sorted(scores, key=lambda text: -scores[text])]}

        built = StateGraph(State)
        built.add_node("keyword_search", lambda state: {"keywords": Keywords().invoke(state["question"])})
        built.add_node(
            "vector_search",
            lambda state: {"vectors": index.as_retriever(search_kwargs={"k": 2}).invoke(state["question"])},
        )
        built.add_node("fuse", fuse)
        built.add_node("generate", lambda state: {"generation": model.invoke(joined(state["documents"])).content})
        for one in ("keyword_search", "vector_search"):
            built.add_edge(START, one)
            built.add_edge(one, "fuse")
        built.add_edge("fuse", "generate")
        built.add_edge("generate", END)
        return built.compile()


class AgentApplication(LangChainApplication):
    """An agent that is asked with a list of messages."""

    def _given(self):
        return {"messages": [HumanMessage(self.expected[0].question)]}


class RetrieverTool(AgentApplication):
    """``create_agent`` with ``create_retriever_tool``."""

    expected = (
        Expected(
            question="By when is my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="Within 14 days.",
        ),
    )

    def build(self):
        found = store({"refund deadline": 4}).as_retriever(search_kwargs={"k": 2})
        model = Replies(
            rules=[(TEXTS["refunds"], "Within 14 days."), ("", calls("search_handbook", query="refund deadline"))]
        )
        return create_agent(model, [create_retriever_tool(found, "search_handbook", "Searches the handbook.")])


class ArtifactTool(AgentApplication):
    """A tool of the agent's tutorial: a text for the model, and the documents as its artifact."""

    expected = (
        Expected(
            question="By when is my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="Within 14 days.",
        ),
    )

    def build(self):
        index = store({"refund deadline": 4})

        @tool(response_format="content_and_artifact")
        def retrieve_context(query: str) -> tuple[str, list[Document]]:
            """Search the handbook."""
            found = index.similarity_search(query, k=2)
            return "\n\n".join(f"Source: {one.metadata}\nContent: {one.page_content}" for one in found), found

        model = Replies(
            rules=[(TEXTS["refunds"], "Within 14 days."), ("", calls("retrieve_context", query="refund deadline"))]
        )
        return create_agent(model, [retrieve_context])


FOUND = joined([Document(TEXTS["refunds"]), Document(TEXTS["returns"])])


class TextTool(AgentApplication):
    """A tool that returns the passages as one text: a context without rank is all that is known."""

    expected = (
        Expected(
            question="By when is my money back?",
            pool=(),
            prompt=(content_id(FOUND),),
            answer="Within 14 days.",
        ),
    )

    def build(self):
        index = store({"refund deadline": 4})

        @tool
        def search_handbook(query: str) -> str:
            """Search the handbook."""
            return joined(index.similarity_search(query, k=2))

        model = Replies(rules=[(FOUND, "Within 14 days."), ("", calls("search_handbook", query="refund deadline"))])
        return create_agent(model, [search_handbook])


class MappingTool(AgentApplication):
    """A tool that returns mappings, of which LangChain makes text."""

    expected = (
        Expected(
            question="Who repairs my lamp?",
            pool=("shop-7", "handbook-5"),
            prompt=("shop-7", "handbook-5"),
            answer="Åse & Søn.",
        ),
    )

    def build(self):
        @tool
        def search_web(query: str) -> list[dict[str, Any]]:
            """Search the web."""
            return [
                {"id": "shop-7", "content": WEB["repairs"], "score": 0.9},
                {"id": "handbook-5", "content": TEXTS["warranty"], "score": 0.4},
            ]

        model = Replies(rules=[("Storgata", "Åse & Søn."), ("", calls("search_web", query="lamp repair"))])
        return create_agent(model, [search_web])


class DynamicPrompt(AgentApplication):
    """A middleware that searches for each prompt and names what it found to ragtrace: no event tells of it."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="Send the form.",
        ),
    )

    def build(self):
        index = store({"How do I get my money back?": 4})

        @dynamic_prompt
        def with_context(request):
            question = request.state["messages"][-1].text
            found = mark_retrieved(index.similarity_search(question, k=2), source="handbook")
            return f"Answer from this:\n\n{joined(found)}"

        return create_agent(Replies(rules=[("", "Send the form.")]), [], middleware=[with_context])


class Conversation(AgentApplication):
    """An agent that remembers a thread: two questions, of which each searches anew."""

    expected = (
        Expected(
            question="By when is my money back?",
            pool=("refunds",),
            prompt=("refunds",),
            answer="Within 14 days.",
        ),
        Expected(
            question="And how do I pack the goods?",
            pool=("returns",),
            prompt=("returns",),
            answer="With the printed label.",
        ),
    )
    stream = astream = None

    def build(self):
        found = store({"refund deadline": 2, "packing": 9}).as_retriever(search_kwargs={"k": 1})
        model = Replies(
            rules=[
                (TEXTS["returns"], "With the printed label."),
                ("how do I pack", calls("search_handbook", query="packing")),
                (TEXTS["refunds"], "Within 14 days."),
                ("", calls("search_handbook", query="refund deadline")),
            ]
        )
        tools = [create_retriever_tool(found, "search_handbook", "Searches the handbook.")]
        return create_agent(model, tools, checkpointer=InMemorySaver())

    def _turns(self, config):
        thread = {**(config or {}), "configurable": {"thread_id": "t-1"}}
        return [({"messages": [HumanMessage(one.question)]}, thread) for one in self.expected]

    def ask(self, config):
        agent = self.build()
        return [agent.invoke(*turn) for turn in self._turns(config)]

    async def aask(self, config):
        agent = self.build()
        return [await agent.ainvoke(*turn) for turn in self._turns(config)]


class Supervisor(AgentApplication):
    """An agent whose tool is another agent with a retriever: the answer goes back to what that one read."""

    expected = (
        Expected(
            question="By when is my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="Our handbook promises two weeks.",
        ),
    )

    def build(self):
        found = store({"refund deadline": 4}).as_retriever(search_kwargs={"k": 2})
        clerk = create_agent(
            Replies(
                rules=[
                    (TEXTS["refunds"], "The money is back within a fortnight."),
                    ("", calls("search_handbook", query="refund deadline")),
                ]
            ),
            [create_retriever_tool(found, "search_handbook", "Searches the handbook.")],
        )

        @tool
        def ask_clerk(question: str) -> str:
            """Ask the clerk."""
            return clerk.invoke({"messages": [HumanMessage(question)]})["messages"][-1].text

        model = Replies(
            rules=[
                ("fortnight", "Our handbook promises two weeks."),
                ("", calls("ask_clerk", question="When is money paid back?")),
            ]
        )
        return create_agent(model, [ask_clerk])


class WebInsteadOfPoor(GraphApplication):
    """A verdict on the whole retrieval; what the web finds takes the place of what was found."""

    expected = (
        Expected(
            question="Who repairs my lamp?",
            pool=("warranty", "invoices", "#repairs"),
            prompt=("#repairs",),
            answer="Åse & Søn.",
        ),
    )

    def build(self):
        model = Replies(rules=[("Relevant?", "no"), ("", "Åse & Søn.")])

        def judge(state):
            return {"verdict": model.invoke(f"Relevant?\n{joined(state['documents'])}").content}

        return graph(
            {
                "retrieve": searching(store({"Who repairs my lamp?": 120}), 2),
                "judge": judge,
                "web_search": lambda state: {"documents": [Document(page_content=WEB["repairs"])]},
                "generate": lambda state: {"generation": model.invoke(joined(state["documents"])).content},
            },
            {"judge": lambda state: "web_search" if state["verdict"] == "no" else "generate"},
        )


class TokenService(GraphApplication):
    """A service that streams a graph's tokens: ``stream_mode="messages"``."""

    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty", "invoices"),
            prompt=("warranty", "invoices"),
            answer="Two years, everywhere in Europe.",
        ),
    )
    ask = aask = None

    def build(self):
        model = Replies(rules=[("", "Two years, everywhere in Europe.")])
        return graph(
            {
                "retrieve": searching(store({"How long is the warranty?": 128}), 2),
                "generate": lambda state: {"generation": model.invoke(joined(state["documents"])).content},
            }
        )

    def stream(self, config):
        for piece, _ in self.build().stream(self._given(), config, stream_mode="messages"):
            yield piece.text

    async def astream(self, config):
        async for piece, _ in self.build().astream(self._given(), config, stream_mode="messages"):
            yield piece.text


class Approval(GraphApplication):
    """A person approves what was found before the answer is written: the run waits, and another one resumes it."""

    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty", "invoices"),
            prompt=None,
            answer="",
            outcome="interrupted",
        ),
        Expected(
            question="How long is the warranty?",
            pool=("warranty", "invoices"),
            prompt=("warranty", "invoices"),
            answer="Two years.",
        ),
    )
    stream = astream = None

    def build(self):
        model = Replies(rules=[("", "Two years.")])
        return graph(
            {
                "retrieve": searching(store({"How long is the warranty?": 128}), 2),
                "approve": lambda state: {"verdict": interrupt("May I use these?")},
                "generate": lambda state: {
                    "generation": model.invoke(f"{state['question']}\n{joined(state['documents'])}").content
                },
            },
            checkpointer=InMemorySaver(),
        )

    def ask(self, config):
        app, thread = self.build(), {**(config or {}), "configurable": {"thread_id": "t-1"}}
        app.invoke(self._given(), thread)
        return app.invoke(Command(resume="yes"), thread)

    async def aask(self, config):
        app, thread = self.build(), {**(config or {}), "configurable": {"thread_id": "t-1"}}
        await app.ainvoke(self._given(), thread)
        return await app.ainvoke(Command(resume="yes"), thread)
