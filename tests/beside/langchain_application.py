"""A chain on langchain-core, called in every form that an application uses."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

QUESTION = "Where is the lab?"
ANSWER = "The lab is in Oslo."


class Faq(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(id=f"d{i}", page_content=f'Passage {i}\n"says" that the lab moved {i} times.')
            for i in range(6)
        ]


class Broken(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise ConnectionError("index is down")


class BrokenModel(GenericFakeChatModel):
    def _stream(self, *args: Any, **kwargs: Any) -> Any:
        pieces = super()._stream(*args, **kwargs)
        yield next(pieces)
        raise TimeoutError("model is gone")


def chain(retriever: BaseRetriever | None = None, model: type[GenericFakeChatModel] = GenericFakeChatModel) -> Any:
    best = RunnableLambda(lambda found: [found[4], found[1]], name="rerank")
    shown = RunnableLambda(lambda found: "\n\n".join(one.page_content for one in found), name="format")
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\nQuestion: {question}")
    answer = model(messages=iter([AIMessage(ANSWER)] * 3))
    context = (retriever or Faq()) | best | shown
    return {"context": context, "question": RunnablePassthrough()} | prompt | answer | StrOutputParser()


async def _astream(built: Any) -> list[str]:
    return [piece async for piece in built.astream(QUESTION)]


def _left_after_one_piece() -> list[str]:
    stream = chain().stream(QUESTION)
    taken = [next(stream)]
    stream.close()
    return taken


SCENARIOS = {
    "invoke": lambda: chain().invoke(QUESTION),
    "ainvoke": lambda: chain().ainvoke(QUESTION),
    "stream": lambda: list(chain().stream(QUESTION)),
    "astream": lambda: _astream(chain()),
    "batch": lambda: chain().batch([QUESTION, QUESTION]),
    "abatch": lambda: chain().abatch([QUESTION, QUESTION]),
    "stream left after one piece": _left_after_one_piece,
    "retriever raises": lambda: chain(Broken()).invoke(QUESTION),
    "retriever raises, async": lambda: chain(Broken()).ainvoke(QUESTION),
    "model raises in a stream": lambda: list(chain(model=BrokenModel).stream(QUESTION)),
    "model raises in an async stream": lambda: _astream(chain(model=BrokenModel)),
}
