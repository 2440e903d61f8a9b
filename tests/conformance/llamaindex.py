"""The conformance suite's application in LlamaIndex: a query engine with a postprocessor, and a chat engine."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, LLMMetadata
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from ragtrace.testing.conformance import IntegrationConformance
from ragtrace_llamaindex import instrument, request, uninstrument
from ragtrace_llamaindex.instrumentation import tracer

TEMPLATE = "Answer from this:\n{context_str}\nQuestion: {query_str}"


class QueryEngineApplication(IntegrationConformance):
    """``RetrieverQueryEngine`` with a ``BaseNodePostprocessor`` of the application's own."""

    selection_source = "framework"
    lacks: ClassVar = {
        "no ids": "LlamaIndex gives every node an id",
        "duplicate ids": "LlamaIndex's retrievers drop a node with an id that they returned already",
    }

    @pytest.fixture(autouse=True)
    def _uninstruments(self):
        yield
        uninstrument()

    def ask(self, plan, recorder):
        with said(plan, recorder):
            if plan.history:
                turns = [ChatMessage(turn.content, role=turn.role) for turn in plan.history]
                return str(chat_engine(plan).chat(plan.question, chat_history=turns))
            return engine(plan).query(plan.question).response

    async def aask(self, plan, recorder):
        with said(plan, recorder):
            return (await engine(plan).aquery(plan.question)).response

    def stream(self, plan, recorder):
        with said(plan, recorder):
            return engine(plan, is_streaming=True).query(plan.question).response_gen

    def batch(self, plans, recorder):
        async def together():
            return await asyncio.gather(*(self.aask(plan, recorder) for plan in plans))

        return asyncio.run(together())

    def held(self, recorder):
        return len(tracer) + len(tracer.takers)


def said(plan, recorder):
    """Capture from now on, as an application does once, and say of the block what the plan's request says."""
    instrument(recorder)
    of = plan.request
    labels = None
    if of.labels is not None:
        given = of.labels
        labels = {"grades": dict(given.grades)}
        labels |= {"universe": given.label_scope, "scale": given.scale, "version": given.version}
    return request(
        workflow=of.workflow,
        session=of.session,
        user=of.user,
        corpus=of.corpus,
        corpus_version=of.corpus_version,
        reference=of.reference,
        labels=labels,
        k=of.k,
        tags=of.tags,
    )


def engine(plan, *, is_streaming=False):
    def cut(context_str, **_):
        return "\n\n".join(plan.shown(text) for text in context_str.split("\n\n"))

    synthesizer = get_response_synthesizer(
        llm=Model(plan=plan),
        text_qa_template=PromptTemplate(TEMPLATE, function_mappings={"context_str": cut}),
        streaming=is_streaming,
    )
    return RetrieverQueryEngine(
        Index(plan), response_synthesizer=synthesizer, node_postprocessors=postprocessors(plan)
    )


def chat_engine(plan):
    return ContextChatEngine.from_defaults(
        retriever=Index(plan), llm=Model(plan=plan), node_postprocessors=postprocessors(plan)
    )


def postprocessors(plan):
    return [] if plan.choice is None else [Reranker(plan=plan)]


class Index(BaseRetriever):
    """The plan's documents."""

    def __init__(self, plan):
        super().__init__()
        self.plan = plan
        self.index_name = plan.source

    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(
                node=TextNode(
                    id_=one.id, text=one.text, metadata={"page": one.page}, excluded_llm_metadata_keys=["page"]
                ),
                score=one.score,
            )
            for one in self.plan.found()
        ]


class Reranker(BaseNodePostprocessor):
    """The plan's reranker."""

    plan: Any

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=nodes[place].node, score=score) for place, score in self.plan.chosen()]


class Model(CustomLLM):
    """Says what the plan says."""

    plan: Any

    @property
    def metadata(self):
        return LLMMetadata(model_name=self.plan.model, context_window=4_000_000, num_output=256)

    def _reply(self, text):
        sent, written = self.plan.usage.input_tokens, self.plan.usage.output_tokens
        return CompletionResponse(text=text, raw={"usage": {"prompt_tokens": sent, "completion_tokens": written}})

    @llm_completion_callback()
    def complete(self, prompt, **kwargs):
        return self._reply(self.plan.said())

    @llm_completion_callback()
    async def acomplete(self, prompt, **kwargs):
        return self._reply(await self.plan.asaid())

    @llm_completion_callback()
    def stream_complete(self, prompt, **kwargs):
        def pieces():
            text = ""
            for piece in self.plan.pieces():
                text += piece
                reply = self._reply(text)
                reply.delta = piece
                yield reply

        return pieces()
