"""A garden adviser on LlamaIndex: a workflow of three steps, and a chat engine that knows what was said.

Run it: ``python app.py``, or with a model: ``python app.py --model gpt-4o-mini [--base-url URL]``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re

from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from model import Model

import ragtrace
import ragtrace_llamaindex

ARTICLES = {
    "prune": "An apple tree is pruned from January to March, while it rests. Do not prune it in frost.",
    "branch": "A dead branch is cut at its collar, with a clean saw, at any time of the year.",
    "shade": "Ferns and hostas grow in shade. They need moist soil.",
    "water": "Water a new tree once a week in its first summer, with twenty litres.",
}


def words(text: str) -> set[str]:
    """Return the words of a text that are worth a search."""
    return set(re.findall(r"[a-z]{4,}", text.lower()))


class Search(BaseRetriever):
    """Ranks the articles by the words that they share with the question; put your index here."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        asked = words(query_bundle.query_str)
        shared = {name: len(asked & words(text)) / len(asked) for name, text in ARTICLES.items()}
        ranked = sorted(shared, key=lambda name: -shared[name])[:3]
        return [NodeWithScore(node=TextNode(id_=name, text=ARTICLES[name]), score=shared[name]) for name in ranked]


class Found(Event):
    """The candidates of a search."""

    question: str
    nodes: list[NodeWithScore]


class Chosen(Event):
    """The passages for the prompt."""

    question: str
    nodes: list[NodeWithScore]


class Adviser(Workflow):
    """Searches, chooses, answers; put your own steps between."""

    def __init__(self, llm: Model) -> None:
        super().__init__(timeout=60)
        self._synthesizer = get_response_synthesizer(llm=llm)

    @step
    async def search(self, event: StartEvent) -> Found:
        """Find candidates."""
        return Found(question=event.question, nodes=await Search().aretrieve(event.question))

    @step
    async def choose(self, event: Found) -> Chosen:
        """Keep the best candidate: a rule of the application's own, so that the run is told of it."""
        return Chosen(question=event.question, nodes=ragtrace_llamaindex.mark_selected(event.nodes[:1]))

    @step
    async def answer(self, event: Chosen) -> StopEvent:
        """Answer from the chosen passage."""
        return StopEvent(result=str(await self._synthesizer.asynthesize(event.question, event.nodes)))


async def ask_workflow(llm: Model, question: str) -> None:
    """Ask the workflow one question."""
    with ragtrace_llamaindex.request(workflow="adviser", session="s-1", corpus="garden"):
        print(f"{question}\n  {await Adviser(llm).run(question=question)}", flush=True)


def chat(llm: Model, *questions: str) -> None:
    """Ask the chat engine several questions of one conversation."""
    memory = ChatMemoryBuffer.from_defaults(token_limit=2000)
    engine = CondensePlusContextChatEngine.from_defaults(retriever=Search(), llm=llm, memory=memory)
    with ragtrace_llamaindex.request(workflow="chat", session="s-2", corpus="garden"):
        for question in questions:
            print(f"{question}\n  {engine.chat(question)}", flush=True)


def main() -> None:
    """Ask both, and print answers and scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="model on an OpenAI-compatible server; default: a script")
    parser.add_argument("--base-url", help="that server; default: OpenAI's, with OPENAI_API_KEY")
    args = parser.parse_args()
    for signal in ("TRACES", "METRICS", "LOGS"):  # no collector here; leave this out in an application
        os.environ.setdefault(f"OTEL_{signal}_EXPORTER", "none")
    ragtrace.configure(sample_rate=1.0, content="full", store="garden.sqlite", console=True)
    ragtrace_llamaindex.instrument()
    llm = Model(name=args.model, base_url=args.base_url)
    asyncio.run(ask_workflow(llm, "When do I prune an apple tree?"))
    chat(llm, "What grows in shade?", "And how do I cut a dead branch there?")
    ragtrace.flush(30)
    ragtrace.shutdown(10)


if __name__ == "__main__":
    main()
