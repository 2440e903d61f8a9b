"""The play out of LangChain's parts, with the reranker as a function of the chain or as a compressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from ragtrace_langchain import RagtraceHandler

if TYPE_CHECKING:
    from ragtrace.testing.integration import Play

TEMPLATE = "Use this:\n{context}\n\nQuestion: {question}"


class Index(BaseRetriever):
    play: Any

    def _get_relevant_documents(self, query, *, run_manager):
        if self.play.fails == "retriever":
            raise ConnectionError("down")
        return [
            Document(id=doc.id, page_content=doc.text, metadata={"score": doc.score}) for doc in self.play.documents
        ]


class Model(BaseChatModel):
    play: Any

    @property
    def _llm_type(self):
        return "stage"

    def _get_ls_params(self, stop=None, **kwargs):
        return {"ls_model_type": "chat", "ls_provider": "stage", "ls_model_name": self.play.model}

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if self.play.fails == "model":
            raise ConnectionError("down")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.play.text))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for piece in self.play.answer:
            chunk = ChatGenerationChunk(message=AIMessageChunk(piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk


def reranked(play: Play, documents):
    if play.fails == "reranker":
        raise ConnectionError("down")
    return [
        Document(
            id=documents[place].id,
            page_content=documents[place].page_content,
            metadata={**documents[place].metadata, "relevance_score": score},
        )
        for place, score in play.chosen
    ]


class Compressor(BaseDocumentCompressor):
    play: Any

    def compress_documents(self, documents, query, callbacks=None):
        return reranked(self.play, documents)


def shown(play: Play):
    return lambda documents: "\n\n".join(d.page_content[: play.shown_chars] for d in documents)


def chain(play: Play, found):
    given = {"context": found | RunnableLambda(shown(play)), "question": RunnablePassthrough()}
    return given | ChatPromptTemplate.from_template(TEMPLATE) | Model(play=play) | StrOutputParser()


def config(recorder, play: Play):
    metadata = {f"ragtrace.{name}": value for name, value in play.request.items() if name != "tags"}
    return {
        "callbacks": [RagtraceHandler(recorder)],
        "metadata": metadata,
        "tags": list(play.request.get("tags", ())),
    }
