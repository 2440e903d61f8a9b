"""The demo's chain: a LangChain retriever, a reranker step, a prompt and a chat model. Needs langchain-core."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from pydantic import PrivateAttr

from ragtrace.demo.handbook import handbook
from ragtrace.demo.search import TermIndex, relevance
from ragtrace.demo.writers import SYSTEM, rendered

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
    from langchain_core.language_models.base import LangSmithParams
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from ragtrace.demo.handbook import HandbookPassage
    from ragtrace.demo.invention import Incident
    from ragtrace.demo.writers import Writer

CANDIDATES = 12
DELIVERED = 4


class HandbookRetriever(BaseRetriever):
    """Finds the 12 best passages of the handbook by their words; the score stands in the metadata."""

    _index: TermIndex = PrivateAttr(default_factory=lambda: TermIndex(handbook()))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
    ) -> list[Document]:
        found = self._index.search(query, CANDIDATES)
        return [_document(passage, round(score, 4)) for passage, score in found]


class HandbookModel(BaseChatModel):
    """A chat model around a `Writer`, through which the incident reaches the answers."""

    model: str
    _writer: Writer = PrivateAttr()
    _incident: Incident = PrivateAttr()
    _answers: int = PrivateAttr(default=0)

    def __init__(self, writer: Writer, incident: Incident) -> None:
        super().__init__(model=writer.model)  # type: ignore[call-arg]
        self._writer = writer
        self._incident = incident

    @property
    def _llm_type(self) -> str:
        return "ragtrace-demo"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # What the handler takes for the provider; the default would be the class' name.
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": self._writer.provider}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **_kwargs: Any,
    ) -> ChatResult:
        system, user = (str(message.content) for message in messages)
        self._answers += 1
        written = self._writer.write(system, user)
        sent, made = written.input_tokens, written.output_tokens
        message = AIMessage(self._incident.touch(written.text, self._answers))
        if sent is not None and made is not None:
            message.usage_metadata = {"input_tokens": sent, "output_tokens": made, "total_tokens": sent + made}
        return ChatResult(generations=[ChatGeneration(message=message)])


def _document(passage: HandbookPassage, score: float) -> Document:
    return Document(id=passage.id, page_content=passage.text, metadata={"title": passage.title, "score": score})


def rerank(found: dict[str, Any]) -> list[Document]:
    """Keep the 4 candidates that cover the question best, with a score of their own.

    Args:
        found: ``question`` and ``candidates``.
    """
    scored = [_rescored(found["question"], document) for document in found["candidates"]]
    return sorted(scored, key=lambda document: -document.metadata["relevance_score"])[:DELIVERED]


def _rescored(question: str, document: Document) -> Document:
    score = round(relevance(question, document.metadata["title"], document.page_content), 4)
    return document.model_copy(update={"metadata": {**document.metadata, "relevance_score": score}})


def build_chain(writer: Writer, incident: Incident) -> Runnable[str, str]:
    """Return the chain from a question to an answer.

    Args:
        writer: writes the answers.
        incident: may touch them; it counts the answers of this chain from 1.

    Example:
        >>> from ragtrace.demo.invention import Incident
        >>> from ragtrace.demo.writers import OfflineWriter
        >>> chain = build_chain(OfflineWriter(0), Incident(first=None, seed=0))
        >>> "grade 1 or 2" in chain.invoke("What does Harm@K count?")
        True
    """
    prompt = ChatPromptTemplate.from_messages([("system", SYSTEM), ("user", "{prompt}")])
    retrieve = RunnableParallel[str]({"question": RunnablePassthrough(), "candidates": HandbookRetriever()})
    return (
        retrieve
        | RunnablePassthrough.assign(passages=RunnableLambda(rerank, name="coverage-reranker"))
        | {"prompt": itemgetter("question", "passages") | RunnableLambda(_rendered, name="render")}
        | prompt
        | HandbookModel(writer, incident)
        | StrOutputParser()
    )


def _rendered(parts: tuple[str, list[Document]]) -> str:
    question, passages = parts
    return rendered(question, [(str(p.id), p.page_content) for p in passages])
