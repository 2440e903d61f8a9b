"""The demo's chain: a LangChain retriever, a reranker, a prompt and a chat model."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from pydantic import PrivateAttr

from ragtrace.demo.answers import SYSTEM, has_answer, render_prompt
from ragtrace.demo.search import HandbookRetriever, rerank

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.documents import Document
    from langchain_core.language_models.base import LangSmithParams
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from ragtrace.demo.answers import Writer
    from ragtrace.demo.incident import Incident


class HandbookModel(BaseChatModel):
    """A chat model around a `Writer`; the incident changes some of its answers."""

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
        # The handler takes this for the provider; the default would be the class' name.
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
        message = self._writer.write(system, user)
        message.content = self._incident.apply(str(message.content), self._answers, has_answer=has_answer(user))
        return ChatResult(generations=[ChatGeneration(message=message)])


def build_chain(writer: Writer, incident: Incident) -> Runnable[str, str]:
    """Return the chain from a question to an answer, which the incident may change.

    Example:
        >>> from ragtrace.demo.answers import OfflineWriter
        >>> from ragtrace.demo.incident import Incident
        >>> chain = build_chain(OfflineWriter(0), Incident(first=None, seed=0))
        >>> "grade 1 or 2" in chain.invoke("What does Harm@K count?")
        True
    """
    prompt = ChatPromptTemplate.from_messages([("system", SYSTEM), ("user", "{prompt}")])
    retrieve = RunnableParallel[str]({"question": RunnablePassthrough(), "candidates": HandbookRetriever()})
    return (
        retrieve
        | RunnablePassthrough.assign(passages=RunnableLambda(rerank, name="coverage-reranker"))
        | {"prompt": itemgetter("question", "passages") | RunnableLambda(_render, name="render")}
        | prompt
        | HandbookModel(writer, incident)
        | StrOutputParser()
    )


def _render(parts: tuple[str, list[Document]]) -> str:
    question, passages = parts
    return render_prompt(question, [(str(p.id), p.page_content) for p in passages])
