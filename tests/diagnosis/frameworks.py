"""Runs of the bed through chains, graphs and agents of LangChain, with an extractor between or without one.

A framework is a function of a case, a recorder, the name of an extractor and the labels. Each stage of an application
returns what the case says: the retriever its pool, the reranker its selection, the prompt what was used.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from langchain.agents import create_agent
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

from ragtrace_langchain import RagtraceHandler
from tests.diagnosis import world
from tests.kept import Keeper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.capture import Recorder
    from ragtrace.model import RagRecord
    from tests.diagnosis.bed import Case


class Framework(Protocol):
    """Runs a case through an application of some framework."""

    def __call__(self, case: Case, recorder: Recorder, extractor: str, labels: Mapping[str, int] | None) -> None:
        """Answer the case's question once, captured by the recorder."""


def first_sentence(text: str) -> str:
    """Return what an extractor keeps of a passage."""
    return world.sentences(text)[0]


EXTRACTORS: dict[str, Callable[[list[Document]], list[Any]]] = {
    "none": lambda found: found,
    "new documents": lambda found: [Document(page_content=first_sentence(d.page_content)) for d in found],
    "with the metadata": lambda found: [
        Document(page_content=first_sentence(d.page_content), metadata=d.metadata) for d in found
    ],
    "with the id": lambda found: [
        d.model_copy(update={"page_content": first_sentence(d.page_content)}) for d in found
    ],
    "texts": lambda found: [first_sentence(d.page_content) for d in found],
    "sentences": lambda found: [
        Document(page_content=one, metadata=d.metadata) for d in found for one in world.sentences(d.page_content)
    ],
}


def captured_through(
    framework: Framework, case: Case, extractor: str, labels: Mapping[str, int] | None
) -> RagRecord:
    """Return the record of a case that ran through a framework; `labels` go with the request."""
    from ragtrace.capture import Recorder

    keeper = Keeper()
    framework(case, Recorder(keeper), extractor, labels)
    return keeper.only.record


class _Index(BaseRetriever):
    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.found


class _Stages:
    """What each stage of a case does with documents."""

    def __init__(self, case: Case, extractor: str) -> None:
        self.case = case
        self.documents = {
            name: Document(id=name, page_content=text, metadata={"file": f"{name}.md"})
            for name, text in case.texts.items()
        }
        self.index = _Index(found=[self.documents[name] for name in case.pool])
        self._extract = EXTRACTORS[extractor]

    def ranked(self, found: Sequence[Any]) -> list[Any]:
        """Return the selection of the case, all that was found without one."""
        return list(found) if self.case.selected is None else self._of(self.case.selected, found)

    def extracts(self, found: Sequence[Document]) -> list[Any]:
        return self._extract(list(found))

    def shown(self, given: Sequence[Any]) -> str:
        """Return the prompt's context: of what came in, the texts of the passages that are used."""
        return "\n\n".join(map(_text, self._of(self.case.used, given)))

    def _of(self, names: Sequence[str], found: Sequence[Any]) -> list[Any]:
        return [one for name in names for one in found if self._name(one) == name]

    def _name(self, one: Any) -> str:
        file = getattr(one, "metadata", {}).get("file")
        return file.removesuffix(".md") if file else next(n for n, t in self.case.texts.items() if _text(one) in t)


def _text(one: Any) -> str:
    return one if isinstance(one, str) else one.page_content


def _config(recorder: Recorder, labels: Mapping[str, int] | None) -> Any:
    noted = {} if labels is None else {"ragtrace.labels": dict(labels)}
    return {"callbacks": [RagtraceHandler(recorder)], "metadata": noted}


PROMPT = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: {question}")


def chain(
    case: Case,
    recorder: Recorder,
    extractor: str,
    labels: Mapping[str, int] | None,
    *,
    cuts_as_it_writes: bool = False,
) -> None:
    """Run a case through an LCEL chain: retriever, reranker, extractor, formatter."""
    stages = _Stages(case, extractor)
    steps: Any = stages.index
    if case.selected is not None:
        steps = steps | RunnableLambda(stages.ranked, name="rank")
    if extractor != "none":
        steps = steps | RunnableLambda(stages.extracts, name="extract")
    written = stages.shown
    if cuts_as_it_writes:
        written = lambda given: "\n".join(map(first_sentence, stages.shown(given).split("\n\n")))  # noqa: E731
    context = steps | RunnableLambda(written, name="format")
    model = FakeListChatModel(responses=[case.answer])
    asked = {"context": context, "question": RunnablePassthrough()} | PROMPT | model
    asked.invoke(case.query, config=_config(recorder, labels))


class _State(TypedDict, total=False):
    question: str
    documents: list[Any]
    answer: str


def graph(
    case: Case,
    recorder: Recorder,
    extractor: str,
    labels: Mapping[str, int] | None,
    *,
    extracts_first: bool = False,
) -> None:
    """Run a case through a graph whose nodes hand the documents on in the state."""
    stages = _Stages(case, extractor)
    model = FakeListChatModel(responses=[case.answer])
    nodes: dict[str, Callable[[Any], dict[str, Any]]] = {
        "retrieve": lambda state: {"documents": stages.index.invoke(state["question"])}
    }
    if extractor != "none" and extracts_first:
        nodes["extract"] = lambda state: {"documents": stages.extracts(state["documents"])}
    if case.selected is not None:
        nodes["rank"] = lambda state: {"documents": stages.ranked(state["documents"])}
    if extractor != "none" and not extracts_first:
        nodes["extract"] = lambda state: {"documents": stages.extracts(state["documents"])}
    nodes["answer"] = lambda state: {
        "answer": model.invoke(
            PROMPT.invoke({"context": stages.shown(state["documents"]), "question": state["question"]})
        ).content
    }
    built = StateGraph(_State)
    for name, node in nodes.items():
        built.add_node(name, node)  # type: ignore[call-overload]
    for one, other in zip([START, *nodes], [*nodes, END], strict=True):
        built.add_edge(one, other)
    built.compile().invoke({"question": case.query}, config=_config(recorder, labels))


class _Kept(BaseDocumentCompressor):
    keep: Any

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Any]:
        return list(self.keep(documents))


def compressing(case: Case, recorder: Recorder, extractor: str, labels: Mapping[str, int] | None) -> None:
    """Run a case through a compression retriever that reranks and extracts in one."""
    stages = _Stages(case, extractor)
    steps: Any = stages.index
    if case.selected is not None or extractor != "none":
        keep = _Kept(keep=lambda documents: stages.extracts(stages.ranked(documents)))
        steps = ContextualCompressionRetriever(base_compressor=keep, base_retriever=stages.index)
    model = FakeListChatModel(responses=[case.answer])
    context = steps | RunnableLambda(stages.shown, name="format")
    asked = {"context": context, "question": RunnablePassthrough()} | PROMPT | model
    asked.invoke(case.query, config=_config(recorder, labels))


class _ToolModel(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def agent(case: Case, recorder: Recorder, extractor: str, labels: Mapping[str, int] | None) -> None:
    """Run a case through an agent with a search tool, inside which the stages are runnables."""
    stages = _Stages(case, extractor)
    steps: Any = stages.index
    if case.selected is not None:
        steps = steps | RunnableLambda(stages.ranked, name="rank")
    if extractor != "none":
        steps = steps | RunnableLambda(stages.extracts, name="extract")

    @tool
    def search(query: str) -> str:
        """Search the handbook."""
        return stages.shown(steps.invoke(query))

    call = AIMessage("", tool_calls=[{"name": "search", "args": {"query": case.query}, "id": "1"}])
    model = _ToolModel(messages=iter([call, AIMessage(case.answer)]))
    create_agent(model, [search]).invoke({"messages": [HumanMessage(case.query)]}, config=_config(recorder, labels))


LANGCHAIN: dict[str, Framework] = {
    "chain": chain,
    "chain that cuts as it writes": partial(chain, cuts_as_it_writes=True),
    "graph": graph,
    "graph that extracts first": partial(graph, extracts_first=True),
    "compressing": compressing,
    "agent": agent,
}
