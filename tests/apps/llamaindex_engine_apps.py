"""Query and chat engines of LlamaIndex: after its starter, create-llama and its query engine guides."""

from __future__ import annotations

import json

from llama_index.core import get_response_synthesizer
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.postprocessor import LLMRerank, SimilarityPostprocessor
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool

from tests.apps.application import Expected
from tests.apps.llamaindex_parts import (
    EngineApplication,
    Keywords,
    LlamaIndexApplication,
    Replies,
    StreamingEngineApplication,
    index,
)


class Starter(StreamingEngineApplication):
    """``VectorStoreIndex.from_documents(...).as_query_engine()``: the starter tutorial."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns", "shipping"),
            prompt=("refunds", "returns", "shipping"),
            answer="Within 14 days, by form.",
        ),
    )

    def build(self, *, streaming=False):
        model = Replies(rules=[("", "Within 14 days, by form.")])
        made = index({"How do I get my money back?": 4})
        return made.as_query_engine(llm=model, similarity_top_k=3, streaming=streaming)


class SimpleSummary(StreamingEngineApplication):
    """All passages in one prompt, without metadata: ``response_mode="simple_summarize"``."""

    expected = (
        Expected(
            question="What is due at the border?",
            pool=("customs", "shipping", "returns", "invoices"),
            prompt=("customs", "shipping", "returns", "invoices"),
            answer="Customs duty.",
        ),
    )

    def build(self, *, streaming=False):
        made = index({"What is due at the border?": 49})
        model = Replies(rules=[("", "Customs duty.")])
        return made.as_query_engine(
            llm=model, similarity_top_k=4, response_mode="simple_summarize", streaming=streaming
        )


class CreateLlamaChat(LlamaIndexApplication):
    """create-llama's chat: condense the question, search, drop weak passages, answer; with a history."""

    expected = (
        Expected(
            question="And to Norway?",
            pool=("shipping", "customs"),
            selection=("shipping",),
            ranks=(1,),
            prompt=("shipping",),
            answer="Five days to Norway.",
        ),
    )
    history = (ChatMessage("How long does shipping take?", role="user"), ChatMessage("3 days.", role="assistant"))

    def build(self):
        standalone = "How long does shipping to Norway take?"
        model = Replies(rules=[("standalone question", standalone), ("", "Five days to Norway.")])
        return CondensePlusContextChatEngine.from_defaults(
            retriever=index({standalone: 38}).as_retriever(similarity_top_k=2),
            llm=model,
            node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.985)],
            system_prompt="You answer for a shop.",
        )

    def ask(self, _given):
        return str(self.build().chat("And to Norway?", chat_history=list(self.history)))

    async def aask(self, _given):
        return str(await self.build().achat("And to Norway?", chat_history=list(self.history)))

    def stream(self, _given):
        return self.build().stream_chat("And to Norway?", chat_history=list(self.history)).response_gen

    async def astream(self, _given):
        answer = await self.build().astream_chat("And to Norway?", chat_history=list(self.history))
        async for piece in answer.async_response_gen():
            yield piece


class TwoTurns(LlamaIndexApplication):
    """``as_chat_engine(chat_mode="context")``: two questions of one chat, each a run of its own."""

    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty",),
            prompt=("warranty",),
            answer="Two years.",
        ),
        Expected(
            question="What of a parcel for Malmö?",
            pool=("shipping",),
            prompt=("shipping",),
            answer="Three to five days.",
        ),
    )

    def build(self):
        queries = {"How long is the warranty?": 129, "What of a parcel for Malmö?": 31}
        model = Replies(rules=[("a parcel", "Three to five days."), ("", "Two years.")])
        return ContextChatEngine.from_defaults(
            retriever=index(queries).as_retriever(similarity_top_k=1), llm=model, system_prompt="Answer for a shop."
        )

    def ask(self, _given):
        chat = self.build()
        return [str(chat.chat(one.question)) for one in self.expected]

    def stream(self, _given):
        chat = self.build()
        for one in self.expected:
            yield from chat.stream_chat(one.question).response_gen


class SubQuestions(EngineApplication):
    """A model splits the question; each part goes to an engine of its own, and a model joins the answers."""

    expected = (
        Expected(
            question="Compare refunds and shipping.",
            pool=("refunds", "shipping"),
            prompt=("refunds", "shipping"),
            answer="Refunds take 14 days, shipping at most 5.",
        ),
    )
    parts = {"refunds": "How fast are refunds paid?", "shipping": "How long does shipping take?"}

    def build(self, *, streaming=False):
        items = [{"sub_question": asked, "tool_name": name} for name, asked in self.parts.items()]
        model = Replies(
            rules=[
                ("sub_question", f"```json\n{json.dumps({'items': items})}\n```"),
                ("Refunds are paid within 14 days.", "Refunds take 14 days, shipping at most 5."),
                (self.parts["refunds"], "Refunds are paid within 14 days."),
                (self.parts["shipping"], "Shipping takes 3 to 5 days at most."),
            ]
        )
        made = index({self.parts["refunds"]: 1, self.parts["shipping"]: 31})
        tools = [
            QueryEngineTool.from_defaults(
                made.as_query_engine(llm=model, similarity_top_k=1), name=name, description=f"On {name}."
            )
            for name in self.parts
        ]
        return SubQuestionQueryEngine.from_defaults(
            tools,
            llm=model,
            question_gen=LLMQuestionGenerator.from_defaults(llm=model),
            response_synthesizer=get_response_synthesizer(llm=model),
            verbose=False,
            use_async=False,
        )


class Router(StreamingEngineApplication):
    """A model selects one of two engines; its choice is no part of the answer."""

    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty", "invoices"),
            prompt=("warranty", "invoices"),
            answer="Two years.",
        ),
    )

    def build(self, *, streaming=False):
        model = Replies(rules=[("choices", '[{"choice": 2, "reason": "a fact"}]'), ("", "Two years.")])
        made = index({"How long is the warranty?": 129})
        modes = {"summaries": "tree_summarize", "facts": "compact"}
        tools = [
            QueryEngineTool.from_defaults(
                made.as_query_engine(llm=model, similarity_top_k=2, response_mode=mode, streaming=streaming),
                name=name,
                description=f"For {name}.",
            )
            for name, mode in modes.items()
        ]
        return RouterQueryEngine(
            selector=LLMSingleSelector.from_defaults(llm=model), query_engine_tools=tools, llm=model
        )


class RecursiveGuides(StreamingEngineApplication):
    """Summaries of guides point to engines over their passages; the answer is made of the engines' answers."""

    expected = (
        Expected(
            question="What does a parcel from Norway cost?",
            pool=("customs", "shipping"),
            prompt=("customs", "shipping"),
            answer="Duty, and a fee of 6 euros.",
        ),
    )

    def build(self, *, streaming=False):
        asked = "What does a parcel from Norway cost?"
        model = Replies(
            rules=[("Response: ", "Duty, and a fee of 6 euros."), ("", "There is duty and a fee: 6 €.")]
        )
        guides = index({asked: 44}).as_query_engine(llm=model, similarity_top_k=2)
        summary = IndexNode(id_="guide", text="On parcels from abroad.", index_id="parcels")
        found = RecursiveRetriever(
            "root",
            retriever_dict={"root": Fixed([NodeWithScore(node=summary, score=0.9)])},
            query_engine_dict={"parcels": guides},
        )
        return RetrieverQueryEngine.from_args(found, llm=model, streaming=streaming)


class Fixed(Keywords):
    """Returns the nodes that it was made with."""

    def __init__(self, nodes):
        super().__init__()
        self._nodes = nodes

    def _retrieve(self, query_bundle):
        return self._nodes


class Citations(EngineApplication):
    """``CitationQueryEngine``: passages in numbered pieces, an answer with their numbers."""

    expected = (
        Expected(
            question="Who pays the duty?",
            pool=("customs", "shipping"),
            prompt=("customs", "shipping"),
            answer="The buyer pays it outside the EU [1]. A parcel takes 3 to 5 days [2].",
            cited=("customs", "shipping"),
        ),
    )

    def build(self, *, streaming=False):
        model = Replies(rules=[("", self.expected[0].answer)])
        made = index({"Who pays the duty?": 47})
        return CitationQueryEngine.from_args(made, llm=model, similarity_top_k=2, citation_chunk_size=512)


class Fusion(StreamingEngineApplication):
    """``QueryFusionRetriever`` over vectors and keywords: reciprocal ranks."""

    expected = (
        Expected(
            question="Does the warranty cover shipping damage?",
            pool=("shipping", "customs", "warranty"),
            prompt=("shipping", "customs", "warranty"),
            answer="It does, in all of Europe.",
        ),
    )

    def build(self, *, streaming=False):
        asked = self.expected[0].question
        model = Replies(rules=[("", "It does, in all of Europe.")])
        found = QueryFusionRetriever(
            [index({asked: 55}).as_retriever(similarity_top_k=2), Keywords()],
            llm=model,
            num_queries=1,
            mode="reciprocal_rerank",
            similarity_top_k=3,
            use_async=False,
        )
        return RetrieverQueryEngine.from_args(found, llm=model, streaming=streaming)


class Reranked(StreamingEngineApplication):
    """``LLMRerank``: a model grades four passages and keeps two; its prompt is not the answer's."""

    expected = (
        Expected(
            question="What does customs cost?",
            pool=("customs", "shipping", "returns", "invoices"),
            selection=("shipping", "customs"),
            ranks=(2, 1),
            prompt=("shipping", "customs"),
            answer="A fee of 6 euros.",
        ),
    )

    def build(self, *, streaming=False):
        model = Replies(
            rules=[("Relevance", "Doc: 2, Relevance: 9\nDoc: 1, Relevance: 4"), ("", "A fee of 6 euros.")]
        )
        return index({"What does customs cost?": 49}).as_query_engine(
            llm=model,
            similarity_top_k=4,
            node_postprocessors=[LLMRerank(llm=model, top_n=2)],
            streaming=streaming,
        )
