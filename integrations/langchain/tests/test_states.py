"""What a step was given and gave out, in every form of a state: commands, dataclasses, lists in lists, pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import BaseModel

from integrations.langchain.tests.parts import PROMPT, Faq, chat, rerank, shown
from ragtrace.capture import Rerank
from ragtrace.capture import documents as reading
from ragtrace.capture.values import Doc, fields_of
from ragtrace_langchain.values import Values
from tests.kept import ids, kinds, scores, step

DOCS = [Document(id=name, page_content=f"Passage {name}.", metadata={"score": 0.5}) for name in "abc"]
READ = [Doc(f"Passage {name}.", name, {"score": 0.5}) for name in "abc"]


def asks(context):
    """A chain that puts into the prompt what `context` makes of the question."""
    return {"context": context, "question": RunnablePassthrough()} | PROMPT | chat() | StrOutputParser()


def first(pairs):
    return shown([document for document, _ in pairs])


@dataclass
class DataState:
    question: str = ""
    docs: list = field(default_factory=list)
    answer: str = ""


@dataclass(slots=True)
class SlotState:
    question: str = ""
    docs: list = field(default_factory=list)
    answer: str = ""


class ModelState(BaseModel):
    question: str = ""
    docs: list[Any] = []
    answer: str = ""


class DictState(TypedDict, total=False):
    question: str
    docs: list
    answer: str


class TestGraph:
    @pytest.fixture(autouse=True)
    def graphs(self):
        pytest.importorskip("langgraph")

    def built(self, kind, **nodes):
        from langgraph.graph import START, StateGraph

        graph = StateGraph(kind)
        for name, node in nodes.items():
            graph.add_node(name, node)
        for one, other in zip([START, *nodes], nodes, strict=False):
            graph.add_edge(one, other)
        return graph.compile()

    @pytest.mark.parametrize("kind", [DataState, SlotState, ModelState])
    def test_a_state_of_attributes(self, keeper, config, kind):
        graph = self.built(
            kind,
            retrieve=lambda s: {"docs": Faq().invoke(s.question)},
            rank=lambda s: {"docs": rerank(s.docs)},
            generate=lambda s: {"answer": chat().invoke(shown(s.docs)).content},
        )
        graph.invoke({"question": "Where?"}, config)
        assert kinds(keeper.only) == ["retrieval", "rerank", "chat"]
        assert (ids(keeper.only, "reranked"), scores(keeper.only, "reranked")) == (["d3", "d2"], [0.9, 0.8])

    def test_commands_that_update_the_state(self, keeper, config):
        from langgraph.types import Command

        graph = self.built(
            DictState,
            retrieve=lambda s: Command(update={"docs": Faq().invoke(s["question"])}),
            rank=lambda s: Command(update={"docs": rerank(s["docs"])}),
            generate=lambda s: Command(update={"answer": chat().invoke(shown(s["docs"])).content}),
        )
        graph.invoke({"question": "Where?"}, config)
        assert kinds(keeper.only) == ["retrieval", "rerank", "chat"]
        assert (ids(keeper.only, "reranked"), keeper.only.prompt_ids) == (["d3", "d2"], ("d3", "d2"))

    def test_a_search_that_appends_to_the_list_of_the_state(self, keeper, config):
        def search(state):
            state["docs"].append(Document(id="web", page_content="The web says that the lab is in Bergen."))
            return {"docs": state["docs"]}

        graph = self.built(
            DictState,
            search=search,
            generate=lambda s: {"answer": chat().invoke(shown(s["docs"])).content},
        )
        graph.invoke({"question": "Where?", "docs": []}, config)
        assert kinds(keeper.only) == ["retrieval", "chat"]
        assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["web"], ("web",))


def test_a_reranker_that_changes_its_input_in_place(keeper, config):
    def rank(state):
        state["docs"] = rerank(state["docs"])
        return state

    found = RunnableParallel(docs=Faq(), question=RunnablePassthrough())
    written = RunnableLambda(lambda x: {"context": shown(x["docs"]), "question": x["question"]})
    (found | rank | written | PROMPT | chat()).invoke("Where?", config)
    assert kinds(keeper.only) == ["retrieval", "rerank", "chat"]
    assert ids(keeper.only, "reranked") == ["d3", "d2"]


def test_a_filter_that_deletes_from_the_list_it_was_given(keeper, config):
    def keep_two(docs):
        del docs[2:]
        return docs

    asks(Faq() | RunnableLambda(keep_two) | shown).invoke("Where?", config)
    assert (kinds(keeper.only)[1], ids(keeper.only, "reranked")) == ("rerank", ["d0", "d1"])


class TestCollections:
    def test_a_fusion_of_lists_one_for_each_query(self, keeper, config):
        def fuse(lists):
            return [lists[1][2], lists[0][0]]

        asks(RunnableLambda(lambda q: [q, q + " Now?"]) | Faq().map() | fuse | shown).invoke("Where?", config)
        run = keeper.only
        assert (ids(run, "reranked"), run.prompt_ids) == (["d2", "d0"], ("d2", "d0"))
        assert step(run, Rerank).model == "fuse"

    def test_a_reranker_that_pairs_documents_with_scores(self, keeper, config):
        def rank(docs):
            return [(docs[3], 0.8), (docs[1], 0.3)]

        asks(Faq() | rank | first).invoke("Where?", config)
        assert kinds(keeper.only) == ["retrieval", "rerank", "chat"]
        assert (ids(keeper.only, "reranked"), scores(keeper.only, "reranked")) == (["d3", "d1"], [0.8, 0.3])

    def test_a_search_with_scores(self, keeper, config):
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        store.add_documents([document.model_copy(update={"metadata": {}}) for document in DOCS])
        found = store.similarity_search_with_score("Where?", k=2)
        asks(RunnableLambda(lambda q: store.similarity_search_with_score(q, k=2)) | first).invoke("Where?", config)
        assert kinds(keeper.only) == ["retrieval", "chat"]
        assert ids(keeper.only, "retrieved") == [document.id for document, _ in found]
        assert scores(keeper.only, "retrieved") == [score for _, score in found]

    def test_a_choice_among_lists_in_a_dict_in_a_dict(self, keeper, config):
        found = RunnableParallel(found=RunnableParallel(faq=Faq()), question=RunnablePassthrough())
        chosen = RunnablePassthrough.assign(docs=lambda x: [x["found"]["faq"][2], x["found"]["faq"][0]])
        written = RunnableLambda(lambda x: {"context": shown(x["docs"]), "question": x["question"]})
        (found | chosen | written | PROMPT | chat()).invoke("Where?", config)
        assert (ids(keeper.only, "reranked"), keeper.only.prompt_ids) == (["d2", "d0"], ("d2", "d0"))

    def test_numbers_that_rise_are_distances_and_no_scores(self):
        for numbers in ((0.1, 0.2, 0.3), (0.3, 0.1, 0.2), (0.3, 0.3, 0.3)):
            assert documents_in(list(zip(DOCS, numbers, strict=True))) == READ
        scored = documents_in(list(zip(DOCS, (0.9, 0.8, 0.8), strict=True))) or ()
        assert [document.metadata["score"] for document in scored] == [0.9, 0.8, 0.8]
        assert [document.metadata["score"] for document in DOCS] == [0.5, 0.5, 0.5]

    def test_one_number_says_neither(self):
        assert documents_in([(DOCS[0], 0.9)]) == READ[:1]

    def test_one_pair_is_a_passage_on_its_way_and_no_list(self):
        assert documents_in((DOCS[0], 0.9)) is documents_in({"pair": (DOCS[0], 0.9)}) is None
        assert documents_in(tuple(DOCS[:2])) == READ[:2]

    def test_lists_in_lists(self):
        assert documents_in([DOCS[:1], [], DOCS[1:]]) == documents_in({"x": [[], DOCS]}) == READ
        assert documents_in([["a"], [1.0]]) is documents_in([[]]) is None

    def test_a_list_that_holds_itself(self):
        endless: list[Any] = []
        endless.append(endless)
        nested: dict[str, Any] = {"docs": DOCS}
        nested["self"] = nested
        assert documents_in(endless) is None
        assert {document.id for document in documents_in(nested) or ()} == {"a", "b", "c"}


def read(value):
    """Return a value of LangChain's as an event holds it."""
    return Values().of(value)


def documents_in(value):
    return reading.documents_in(read(value))


class TestFields:
    def test_no_property_is_called(self):
        @dataclass
        class State:
            docs: list

            @property
            def docs(self):  # a dataclass takes the property for the field's default
                raise AssertionError

            @docs.setter
            def docs(self, value):
                self.kept = value

        assert read(State(docs=DOCS)) == {}
        assert documents_in(State(docs=DOCS)) is None

    def test_langchains_own_objects_have_none(self):
        prompt = PROMPT.invoke({"context": "c", "question": "Where?"})
        given = (prompt, prompt.to_messages()[0], DOCS[0])
        assert [fields_of(read(one)) for one in given] == [None, None, None]

    def test_a_copy_of_a_handed_on_list_is_told_from_a_changed_one(self):
        state = {"docs": list(DOCS), "top": list(DOCS[:1])}
        values = Values()
        given = values.of(state)
        assert reading.new_documents(values.of(state), given) is None
        state["top"].append(DOCS[2])
        assert reading.new_documents(values.of(state), given) == [READ[0], READ[2]]
        state["top"].clear()
        assert reading.new_documents(values.of(state), given) == []

    def test_documents_only(self):
        assert reading.is_documents_only(read({"docs": [(DOCS[0], 0.5)]}))
        assert reading.is_documents_only(read([DOCS, []]))
        assert not reading.is_documents_only(read(DataState(docs=DOCS)))
