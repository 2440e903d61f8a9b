"""The conformance suite's application in LangChain: LCEL with a reranking function, and a compression retriever."""

from __future__ import annotations

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from ragtrace.testing.conformance import IntegrationConformance
from ragtrace_langchain import RagtraceHandler
from ragtrace_langchain.open_runs import runs_of

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from this:\n{context}"),
        MessagesPlaceholder("chat_history"),
        ("human", "{question}"),
    ]
)


class LcelApplication(IntegrationConformance):
    """``retriever | RunnableLambda(rerank)`` in the chain of LangChain's own tutorials."""

    selection_source = "chain"
    metadata_keys = frozenset({"score", "relevance_score"})

    def chain(self, plans):
        plans = {plan.question: plan for plan in plans}
        found = RunnableLambda(lambda given: given["question"]) | self.retriever(plans)
        (plan, *_) = plans.values()
        reranker = None if plan.choice is None else self.reranker(plans)
        if reranker is not None:
            found |= reranker
        shown = found | RunnableLambda(lambda documents: self.shown(plan, documents), name="show")
        model = Model(plans=plans, model_name=plan.model)
        return (
            {
                "context": shown,
                "question": lambda given: given["question"],
                "chat_history": lambda given: given.get("chat_history", []),
            }
            | PROMPT
            | model
            | StrOutputParser()
        )

    def retriever(self, plans):
        return Index(plans=plans, metadata={"ragtrace.source": "faq"})

    def reranker(self, plans):
        return RunnableLambda(lambda documents: rescored(planned(plans, documents), documents), name="rerank")

    def shown(self, plan, documents):
        return "\n".join(plan.shown(document.page_content) for document in documents)

    def ask(self, plan, recorder):
        return self.chain([plan]).invoke(given(plan), config(plan, recorder))

    async def aask(self, plan, recorder):
        return await self.chain([plan]).ainvoke(given(plan), config(plan, recorder))

    def stream(self, plan, recorder):
        return self.chain([plan]).stream(given(plan), config(plan, recorder))

    def batch(self, plans, recorder):
        handler = RagtraceHandler(recorder)
        configs = [config(plan, recorder, handler) for plan in plans]
        return self.chain(plans).batch([given(plan) for plan in plans], configs)

    def held(self, recorder):
        return len(runs_of(recorder))


class CompressionApplication(LcelApplication):
    """``ContextualCompressionRetriever`` with a compressor of the application's own."""

    selection_source = "retriever"

    def retriever(self, plans):
        from langchain_classic.retrievers import ContextualCompressionRetriever

        inner = super().retriever(plans)
        (plan, *_) = plans.values()
        if plan.choice is None:
            return inner
        return ContextualCompressionRetriever(
            base_compressor=self.compressor(plans), base_retriever=inner, metadata={"ragtrace.source": "faq"}
        )

    def compressor(self, plans):
        return Compressor(plans=plans)

    def reranker(self, plans):
        return None


class Index(BaseRetriever):
    """The plan's documents, by the question."""

    plans: dict

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(page_content=one.text, metadata={"page": one.page, "score": one.score})
            if one.id is None
            else Document(id=one.id, page_content=one.text, metadata={"page": one.page, "score": one.score})
            for one in self.plans[query].found()
        ]


class Compressor(BaseDocumentCompressor):
    """The plan's reranker."""

    plans: dict

    def compress_documents(self, documents, query, callbacks=None):
        return rescored(self.plans[query], documents)


class Model(BaseChatModel):
    """Says what the plan whose question stands in the prompt says."""

    plans: dict
    model_name: str

    @property
    def _llm_type(self):
        return "planned"

    def _get_ls_params(self, stop=None, **kwargs):
        return {"ls_provider": "planned", "ls_model_type": "chat", "ls_model_name": self.model_name}

    def _plan(self, messages):
        return self.plans[messages[-1].content]

    def _generate(self, messages, stop=None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs):
        plan = self._plan(messages)
        return result(plan, plan.said())

    async def _agenerate(
        self, messages, stop=None, run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs
    ):
        plan = self._plan(messages)
        return result(plan, await plan.asaid())

    def _stream(self, messages, stop=None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs):
        plan = self._plan(messages)
        for piece in plan.pieces():
            chunk = ChatGenerationChunk(message=AIMessageChunk(piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=usage(plan)))


def usage(plan):
    sent, written = plan.usage.input_tokens, plan.usage.output_tokens
    return {"input_tokens": sent, "output_tokens": written, "total_tokens": sent + written}


def result(plan, text):
    return ChatResult(generations=[ChatGeneration(message=AIMessage(text, usage_metadata=usage(plan)))])


def rescored(plan, documents):
    """As rerankers do it: new documents with the old metadata and one more score."""
    return [
        Document(
            id=documents[place].id,
            page_content=documents[place].page_content,
            metadata={**documents[place].metadata, "relevance_score": score},
        )
        for place, score in plan.chosen()
    ]


def planned(plans, documents):
    """Return the plan whose documents these are."""
    texts = {document.page_content for document in documents}
    return next(plan for plan in plans.values() if texts <= {one.text for one in plan.documents})


def given(plan):
    turns = [("human" if turn.role == "user" else "ai", turn.content) for turn in plan.history]
    return {"question": plan.question, **({"chat_history": turns} if turns else {})}


def config(plan, recorder, handler=None):
    request = plan.request
    facts = {
        "workflow": request.workflow,
        "session": request.session,
        "user": request.user,
        "corpus": request.corpus,
        "corpus_version": request.corpus_version,
        "reference": request.reference,
        "k": request.k,
        "labels": None if request.labels is None else labels(request.labels),
    }
    return {
        "callbacks": [handler or RagtraceHandler(recorder)],
        "metadata": {f"ragtrace.{name}": value for name, value in facts.items() if value is not None},
        "tags": list(request.tags),
    }


def labels(given):
    return {
        "grades": dict(given.grades),
        "universe": given.label_scope,
        "scale": given.scale,
        "version": given.version,
    }
