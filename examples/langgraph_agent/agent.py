"""An agent in LangGraph that searches, grades what it found, asks anew, and answers: one run with every search.

Run it: ``python agent.py``, or with a model: ``python agent.py --model gpt-4o-mini [--base-url URL]``.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.prebuilt import ToolNode
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scripted import ScriptedModel

import ragtrace
import ragtrace_langchain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models import BaseChatModel
    from langgraph.graph.state import CompiledStateGraph
    from opentelemetry.sdk.trace import ReadableSpan

ARTICLES = {
    "parcel": "A parcel from the store takes two days. It is sent with a number to follow it.",
    "returns": "Send a lamp back within 30 days. The label for the parcel is in the box.",
    "warranty": "The guarantee on a lamp is two years. It covers the electronics, and not the glass shade.",
    "repair": "The workshop in Bergen repairs lamps under guarantee at no charge.",
}
QUESTIONS = ("How many months am I insured if it breaks?", "Which workshop mends lamps in Bergen?")
MOST_SEARCHES = 2


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Search the articles of the lamp store."""
    asked = set(re.findall(r"[a-z]{4,}", query.lower()))
    shared = {name: len(asked & set(re.findall(r"[a-z]{4,}", text.lower()))) for name, text in ARTICLES.items()}
    best = sorted(shared, key=lambda name: -shared[name])[:2]
    found = [Document(id=name, page_content=ARTICLES[name], metadata={"score": shared[name]}) for name in best]
    return "\n\n".join(one.page_content for one in found), found


class State(TypedDict, total=False):
    """The conversation with the tool, and the documents that passed the grader."""

    question: str
    messages: Annotated[list[AnyMessage], add_messages]
    documents: list[Document]
    searches: int
    answer: str


def build_graph(model: BaseChatModel) -> CompiledStateGraph:
    """Return the graph: decide, search, grade, and then rewrite or answer."""
    searcher = model.bind_tools([search])

    def decide(state: State) -> State:
        asked = state.get("messages") or [HumanMessage(f"Search for what this needs: {state['question']}")]
        return {"messages": [*asked, searcher.invoke(asked)], "searches": state.get("searches", 0) + 1}

    def grade(state: State) -> State:
        def helps(document: Document) -> bool:
            asked = f"Does the passage help? Say yes or no.\n{document.page_content}\nQuestion: {state['question']}"
            return "yes" in str(model.invoke(asked).content).lower()

        return {"documents": [document for document in state["messages"][-1].artifact if helps(document)]}

    def rewrite(state: State) -> State:
        better = model.invoke(f"Say this in the words of a manual: {state['question']}").content
        return {"messages": [HumanMessage(f"Search for what this needs: {better}")]}

    def answer(state: State) -> State:
        context = "\n\n".join(one.page_content for one in state["documents"])
        asked = f"Answer from these passages alone:\n\n{context}\n\nQuestion: {state['question']}"
        return {"answer": str(model.invoke(asked).content)}

    graph = StateGraph(State)
    for name, node in {"decide": decide, "grade": grade, "rewrite": rewrite, "answer": answer}.items():
        graph.add_node(name, node)
    graph.add_node("search", ToolNode([search]))
    graph.add_edge(START, "decide")
    graph.add_conditional_edges("decide", lambda state: "search" if state["messages"][-1].tool_calls else "answer")
    graph.add_edge("search", "grade")
    graph.add_conditional_edges("grade", next_step)
    graph.add_edge("rewrite", "decide")
    graph.add_edge("answer", END)
    return graph.compile(name="lamp-agent")


def next_step(state: State) -> str:
    """Search anew while nothing helps, up to `MOST_SEARCHES`."""
    return "answer" if state["documents"] or state["searches"] >= MOST_SEARCHES else "rewrite"


def print_tree(spans: Sequence[ReadableSpan], parent: int | None = None, depth: int = 0) -> None:
    """Print spans below their parents, in the order of their start."""
    for span in sorted(spans, key=lambda one: one.start_time or 0):
        if (span.parent.span_id if span.parent else None) == parent:
            found = (span.attributes or {}).get("gen_ai.retrieval.query.text", "")
            print("  " * depth + span.name, f"<- {found}" if found else "")
            print_tree(spans, span.context.span_id, depth + 1)


def chat_model(name: str | None, base_url: str | None) -> Any:
    """Return a model of an OpenAI-compatible server that can call tools, or the scripted one."""
    if name is None:
        return ScriptedModel()
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - needed with --model alone

    return ChatOpenAI(model=name, base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))


def main() -> None:
    """Ask twice; print answers, searches and scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="model on an OpenAI-compatible server; default: a script")
    parser.add_argument("--base-url", help="that server; default: OpenAI's, with OPENAI_API_KEY")
    args = parser.parse_args()
    for signal in ("METRICS", "LOGS"):  # no collector here; leave this and the provider out in an application
        os.environ.setdefault(f"OTEL_{signal}_EXPORTER", "none")
    provider, spans = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    ragtrace.configure(
        sample_rate=1.0, content="full", store="lamps.sqlite", console=True, tracer_provider=provider
    )
    ragtrace_langchain.instrument(workflow="lamp-agent", session="s-42")
    graph = build_graph(chat_model(args.model, args.base_url))
    for question in QUESTIONS:
        print(f"{question}\n  {graph.invoke({'question': question})['answer']}", flush=True)
    ragtrace.flush(30)
    ragtrace.shutdown(10)
    ended = spans.get_finished_spans()
    print("The spans of the first question:")
    print_tree([span for span in ended if span.context.trace_id == ended[0].context.trace_id])


if __name__ == "__main__":
    main()
